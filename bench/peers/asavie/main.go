// Peer-asavie forwards every frame between two interfaces with the library
// github.com/asavie/xdp v0.3.3: the simplest switch that it allows, written
// to be as fast as it allows. Each of the library's sockets owns its memory,
// so a frame is copied from the one to the other.
//
//	peer-asavie -cpu 1 IF0 IF1
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"

	"github.com/asavie/xdp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	vector = 64
	// Half of the frames wait in the fill ring, the others are for sending.
	// The library looks for free frames from the first on, so more would
	// cost time and fewer would overrun.
	frames = 4096
	ring   = frames / 2
)

// port is an interface with its one socket.
type port struct {
	sock  *xdp.Socket
	prog  *xdp.Program
	index int
}

func open(name string) (p port, err error) {
	nl, err := netlink.LinkByName(name)
	if err != nil {
		return p, fmt.Errorf("%s: %w", name, err)
	}
	p.index = nl.Attrs().Index
	if p.prog, err = xdp.NewProgram(1); err != nil {
		return p, fmt.Errorf("%s: load: %w", name, err)
	}
	if err = p.prog.Attach(p.index); err != nil {
		return p, fmt.Errorf("%s: attach: %w", name, err)
	}
	p.sock, err = xdp.NewSocket(p.index, 0, &xdp.SocketOptions{
		NumFrames: frames, FrameSize: 2048,
		FillRingNumDescs: ring, CompletionRingNumDescs: ring, RxRingNumDescs: ring, TxRingNumDescs: ring,
	})
	if err != nil {
		return p, fmt.Errorf("%s: socket: %w", name, err)
	}
	if err = p.prog.Register(0, p.sock.FD()); err != nil {
		return p, fmt.Errorf("%s: register: %w", name, err)
	}
	p.sock.Fill(p.sock.GetDescs(ring))
	return p, nil
}

// forward moves up to one vector from in to out.
func forward(in, out *xdp.Socket) {
	if n := out.NumCompleted(); n > 0 {
		out.Complete(n)
	}
	n := min(in.NumReceived(), vector)
	if n == 0 {
		if out.NumTransmitted() > 0 {
			out.Transmit(nil) // the kernel sends at most 32 frames a call: ask for the rest
		}
		return
	}
	got := in.Receive(n)
	free := out.GetDescs(min(n, out.NumFreeTxSlots()))
	for i := range free {
		free[i].Len = uint32(copy(out.GetFrame(free[i]), in.GetFrame(got[i])))
	}
	if len(free) > 0 {
		out.Transmit(free)
	}
	in.Fill(got)
}

func run() error {
	cpu := flag.Int("cpu", -1, "run on this CPU")
	flag.Parse()
	if flag.NArg() != 2 {
		return fmt.Errorf("usage: peer-asavie [-cpu N] IF0 IF1")
	}
	// Kernels before 5.11 count maps against this limit; where it cannot be
	// raised and must be, creating a map says so.
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	xdp.DefaultXdpFlags = unix.XDP_FLAGS_DRV_MODE

	var ports [2]port
	for i := range ports {
		p, err := open(flag.Arg(i))
		if p.prog != nil {
			defer p.prog.Detach(p.index)
		}
		if err != nil {
			return err
		}
		defer p.sock.Close()
		ports[i] = p
	}

	runtime.LockOSThread()
	if *cpu >= 0 {
		var set unix.CPUSet
		set.Set(*cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("cpu %d: %w", *cpu, err)
		}
	}
	var stop atomic.Bool
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGINT, syscall.SIGTERM)
	go func() { <-sig; stop.Store(true) }()
	fmt.Println("ready")
	for !stop.Load() {
		forward(ports[0].sock, ports[1].sock)
		forward(ports[1].sock, ports[0].sock)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peer-asavie:", err)
		os.Exit(1)
	}
}
