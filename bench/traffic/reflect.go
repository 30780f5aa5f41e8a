package traffic

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
)

// Reflector sends every IPv4 frame that reaches a device back, with its MAC
// and IP addresses swapped (which leaves the checksum as it is).
type Reflector struct{ prog *ebpf.Program }

// NewReflector attaches a reflector to the device behind h, a handle in its namespace.
func NewReflector(h *netlink.Handle, device string) (*Reflector, error) {
	swap := func(a, b int16, size asm.Size) asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R1, asm.R7, a, size),
			asm.LoadMem(asm.R2, asm.R7, b, size),
			asm.StoreMem(asm.R7, a, asm.R2, size),
			asm.StoreMem(asm.R7, b, asm.R1, size),
		}
	}
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word),
		asm.JNE.Imm(asm.R1, etherIPv4, "pass"),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, headerLen),
		asm.FnSkbPullData.Call(), // headers in linear memory, and our own
		asm.JNE.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R7, asm.R6, skbData, asm.Word),
		asm.LoadMem(asm.R8, asm.R6, skbDataEnd, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.Add.Imm(asm.R1, headerLen),
		asm.JGT.Reg(asm.R1, asm.R8, "pass"),
	}
	for _, at := range []int16{0, 2, 4} {
		code = append(code, swap(at, at+6, asm.Half)...)
	}
	code = append(code, swap(ethLen+12, ethLen+16, asm.Word)...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.R6, skbIfindex, asm.Word),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, actOK).WithSymbol("pass"),
		asm.Return(),
	)
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "reflector", Type: ebpf.SchedCLS, License: "GPL", Instructions: code})
	if err != nil {
		return nil, fmt.Errorf("reflector program: %w", err)
	}
	if err := attachIngress(h, device, prog); err != nil {
		prog.Close()
		return nil, err
	}
	return &Reflector{prog}, nil
}

// Close frees the program; its attachment ends with the namespace of the device.
func (r *Reflector) Close() { r.prog.Close() }
