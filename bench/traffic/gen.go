package traffic

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"runtime"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Generator sends a frame over and over, from inside the kernel: a BPF
// program runs over frames that BPF_PROG_RUN makes and recycles
// (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18) and redirects each to a device.
type Generator struct {
	Device string
	Frame  Frame
	Flows  int     // UDP source ports that are used in turn
	Rate   float64 // frames/s, 0 = as many as can be
	CPU    int     // -1 = any
}

// Sent is what a generator did.
type Sent struct {
	Frames  uint64  `json:"frames"`
	Seconds float64 `json:"seconds"`
}

// State of the program, one array element.
const (
	stSent = 0  // frames sent
	stNext = 8  // when the next frame is due, picoseconds
	stFlow = 16 // the flow of the last frame
	stSize = 24
)

// Values of the kernel's interface (linux/bpf.h).
const (
	xdpDrop    = 1
	liveFrames = 1 << 1 // BPF_F_TEST_XDP_LIVE_FRAMES
	liveBatch  = 64     // frames that are made and redirected together
)

// Loaded is a generator whose program is in the kernel: it can start at once,
// while loading waits for RCU and so, beside a core that spins, for seconds.
type Loaded struct {
	g     Generator
	frame []byte
	state *ebpf.Map
	prog  *ebpf.Program
}

// Load checks g and loads its program.
func (g Generator) Load() (*Loaded, error) {
	if g.Flows < 1 || g.Flows > math.MaxUint16-firstPort {
		return nil, fmt.Errorf("%d flows: want from 1 to %d", g.Flows, math.MaxUint16-firstPort)
	}
	if g.Rate < 0 {
		return nil, fmt.Errorf("the rate %g is negative", g.Rate)
	}
	b, err := g.Frame.Bytes()
	if err != nil {
		return nil, err
	}
	dev, err := net.InterfaceByName(g.Device)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.Device, err)
	}
	state, err := ebpf.NewMap(&ebpf.MapSpec{Name: "generator", Type: ebpf.Array, KeySize: 4, ValueSize: stSize, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "generator", Type: ebpf.XDP, License: "GPL", Instructions: g.program(b, dev.Index, state.FD())})
	if err != nil {
		state.Close()
		return nil, fmt.Errorf("generator program: %w", err)
	}
	return &Loaded{g, b, state, prog}, nil
}

// Run sends until stop is closed. The kernel call that sends cannot be
// cancelled from within, so Run returns while a thread is still in it: the
// process must end then, which ends the call.
func (l *Loaded) Run(stop <-chan struct{}) (Sent, error) {
	start := time.Now()
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := pin(l.g.CPU); err != nil {
			failed <- err
			return
		}
		// One call for the whole time: each costs 10-20 ms of RCU waits.
		for {
			_, err := l.prog.Run(&ebpf.RunOptions{
				Data:      l.frame,
				Context:   xdpContext{DataEnd: uint32(len(l.frame))},
				Repeat:    math.MaxInt32,
				Flags:     liveFrames,
				BatchSize: liveBatch,
			})
			if err != nil {
				failed <- fmt.Errorf("run generator (Linux 5.18 or later is needed): %w", err)
				return
			}
		}
	}()
	select {
	case err := <-failed:
		return Sent{}, err
	case <-stop:
	}
	var v [stSize]byte
	if err := l.state.Lookup(uint32(0), &v); err != nil {
		return Sent{}, err
	}
	return Sent{Frames: binary.NativeEndian.Uint64(v[stSent:]), Seconds: time.Since(start).Seconds()}, nil
}

// pin binds the calling thread to a core; -1 leaves it free.
func pin(cpu int) error {
	if cpu < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("cpu %d: %w", cpu, err)
	}
	return nil
}

// xdpContext is struct xdp_md of linux/bpf.h.
type xdpContext struct{ Data, DataEnd, DataMeta, IngressIfindex, RxQueueIndex, EgressIfindex uint32 }

// program returns the code: pace, rewrite the headers, count, redirect.
func (g Generator) program(b []byte, ifindex, state int) asm.Instructions {
	p := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMapValue(asm.R7, state, 0),
	}
	if g.Rate > 0 {
		gap := int64(1e12 / g.Rate)
		p = append(p,
			// A frame ahead of the schedule is recycled without being sent.
			asm.FnKtimeGetNs.Call(),
			asm.Mul.Imm(asm.R0, 1000),
			asm.LoadMem(asm.R1, asm.R7, stNext, asm.DWord),
			asm.JLT.Reg(asm.R0, asm.R1, "drop"),
			// What was missed by more than 20 ms is not sent in a burst afterwards.
			asm.Mov.Reg(asm.R2, asm.R0),
			asm.Sub.Reg(asm.R2, asm.R1),
			asm.LoadImm(asm.R3, 20e9, asm.DWord),
			asm.JLE.Reg(asm.R2, asm.R3, "due"),
			asm.Mov.Reg(asm.R1, asm.R0),
			asm.LoadImm(asm.R3, gap, asm.DWord).WithSymbol("due"),
			asm.Add.Reg(asm.R1, asm.R3),
			asm.StoreMem(asm.R7, stNext, asm.R1, asm.DWord),
		)
	}
	p = append(p,
		asm.LoadMem(asm.R2, asm.R6, 0, asm.Word), // data
		asm.LoadMem(asm.R3, asm.R6, 4, asm.Word), // data_end
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, headerLen),
		asm.JGT.Reg(asm.R4, asm.R3, "drop"),
	)
	// The memory of a frame comes back with what a switch wrote into it
	// (addresses, TTL, ECN), so every header is written anew.
	i := 0
	for ; i+8 <= headerLen; i += 8 {
		p = append(p, asm.LoadImm(asm.R1, int64(binary.NativeEndian.Uint64(b[i:])), asm.DWord), asm.StoreMem(asm.R2, int16(i), asm.R1, asm.DWord))
	}
	for ; i < headerLen; i += 2 {
		p = append(p, asm.StoreImm(asm.R2, int16(i), int64(binary.NativeEndian.Uint16(b[i:])), asm.Half))
	}
	if g.Flows > 1 {
		p = append(p,
			asm.LoadMem(asm.R1, asm.R7, stFlow, asm.DWord),
			asm.Add.Imm(asm.R1, 1),
			asm.JLT.Imm(asm.R1, int32(g.Flows), "flow"),
			asm.Mov.Imm(asm.R1, 0),
			asm.StoreMem(asm.R7, stFlow, asm.R1, asm.DWord).WithSymbol("flow"),
			// The checksum goes down by what the port goes up, in ones' complement.
			asm.Mov.Imm(asm.R4, int32(binary.BigEndian.Uint16(b[ethLen+ipLen+6:]))),
			asm.Sub.Reg(asm.R4, asm.R1),
			asm.JSGT.Imm(asm.R4, 0, "sum"),
			asm.Add.Imm(asm.R4, 0xffff),
			asm.HostTo(asm.BE, asm.R4, asm.Half).WithSymbol("sum"),
			asm.StoreMem(asm.R2, ethLen+ipLen+6, asm.R4, asm.Half),
			asm.Add.Imm(asm.R1, firstPort),
			asm.HostTo(asm.BE, asm.R1, asm.Half),
			asm.StoreMem(asm.R2, ethLen+ipLen, asm.R1, asm.Half),
		)
	}
	return append(p,
		asm.LoadMem(asm.R1, asm.R7, stSent, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R7, stSent, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, int32(ifindex)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, xdpDrop).WithSymbol("drop"),
		asm.Return(),
	)
}
