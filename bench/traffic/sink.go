package traffic

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Offsets in struct __sk_buff of linux/bpf.h.
const (
	skbLen      = 0
	skbProtocol = 16
	skbIfindex  = 40
	skbData     = 76
	skbDataEnd  = 80
)

// tc actions (linux/pkt_cls.h).
const (
	actOK   = 0
	actShot = 2
)

// etherIPv4 is EtherType 0x0800 as __sk_buff carries it, in network order on a little-endian machine.
const etherIPv4 = 0x0008

// Sink counts the IPv4 frames that reach a device and drops them there,
// before the kernel's network stack spends anything more on them.
type Sink struct {
	counts *ebpf.Map
	prog   *ebpf.Program
}

// NewSink attaches a sink to the device behind h, a handle in its namespace.
func NewSink(h *netlink.Handle, device string) (*Sink, error) {
	counts, err := ebpf.NewMap(&ebpf.MapSpec{Name: "sink", Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 16, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "sink", Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word),
		asm.JNE.Imm(asm.R1, etherIPv4, "pass"),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, counts.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
		asm.LoadMem(asm.R2, asm.R6, skbLen, asm.Word),
		asm.LoadMem(asm.R1, asm.R0, 8, asm.DWord),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.StoreMem(asm.R0, 8, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, actShot),
		asm.Return(),
		asm.Mov.Imm(asm.R0, actOK).WithSymbol("pass"),
		asm.Return(),
	}})
	if err != nil {
		counts.Close()
		return nil, fmt.Errorf("sink program: %w", err)
	}
	s := &Sink{counts, prog}
	if err := attachIngress(h, device, prog); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Count returns the frames and bytes (without FCS) that reached the sink.
func (s *Sink) Count() (frames, bytes uint64, err error) {
	var v []struct{ Frames, Bytes uint64 }
	if err := s.counts.Lookup(uint32(0), &v); err != nil {
		return 0, 0, err
	}
	for _, c := range v {
		frames += c.Frames
		bytes += c.Bytes
	}
	return frames, bytes, nil
}

// Close frees the program; its attachment ends with the namespace of the device.
func (s *Sink) Close() {
	s.prog.Close()
	s.counts.Close()
}

// attachIngress runs prog on all that arrives at the device.
func attachIngress(h *netlink.Handle, device string, prog *ebpf.Program) error {
	link, err := h.LinkByName(device)
	if err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	index := link.Attrs().Index
	if err := h.QdiscReplace(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}); err != nil {
		return fmt.Errorf("%s: clsact: %w", device, err)
	}
	err = h.FilterReplace(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1},
		Fd:          prog.FD(), Name: "gbench", DirectAction: true,
	})
	if err != nil {
		return fmt.Errorf("%s: attach: %w", device, err)
	}
	return nil
}

// Detach removes what a sink or a reflector attached to a device that outlives them.
func Detach(h *netlink.Handle, device string) {
	link, err := h.LinkByName(device)
	if err != nil {
		return // the device is gone, and the attachment with it
	}
	_ = h.QdiscDel(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}})
}
