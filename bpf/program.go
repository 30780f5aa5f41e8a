package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// Program is the XDP program of one port, loaded into the kernel. Its methods
// may be called from any goroutine.
type Program struct {
	objects xdpObjects
}

// Counters count frames since the program was loaded, over all CPUs.
type Counters struct {
	Redirected uint64 // handed to a socket; what its rings could not take is in the socket's statistics
	Passed     uint64 // left to the kernel by the filter
	NoSocket   uint64 // left to the kernel because their queue has no socket
}

// StampLen is how many bytes of metadata stand before a frame of PTP on a port that
// stamps those.
const StampLen = 24

// stampMagic begins them. Memory before a frame may hold anything else.
const stampMagic = 0x67737769746368

// Stamp reads the instants at which a frame came from the StampLen bytes before it, in
// nanoseconds: when the driver handed it over, by CLOCK_MONOTONIC, and when hardware saw
// it, by its own clock. It takes them away, so that they are not read for another frame.
// The first is 0 where the driver had no room for them, the second where hardware has
// stamped nothing.
func Stamp(b []byte) (monotonic, hardware uint64) {
	if len(b) != StampLen || binary.NativeEndian.Uint64(b) != stampMagic {
		return 0, 0
	}
	clear(b[:8])
	return binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])
}

// Load loads a program with the filter f, which stamps frames of PTP or does not. It
// must be closed. Attachments made from it live on until they are closed themselves.
func Load(f Filter, stamp bool) (*Program, error) { return loadFor(f, stamp, 0) }

// LoadHardware loads a program that stamps frames of PTP with the instants of the
// hardware, too. It is bound to the interface ifindex of the calling thread's network
// namespace, and can be attached to that alone, in native mode. ErrNotSupported: the
// driver or the kernel, before 6.3, has no such programs.
func LoadHardware(f Filter, ifindex int) (*Program, error) { return loadFor(f, true, ifindex) }

// loadFor binds the program to the interface, where there is one.
func loadFor(f Filter, stamp bool, ifindex int) (*Program, error) {
	word, keys, err := f.compile()
	if err != nil {
		return nil, err
	}
	// Kernels before 5.11 charge maps to RLIMIT_MEMLOCK; later ones ignore it.
	// Which one this is was asked at the start, when a process that raises its
	// capabilities itself could not find out: loading shows.
	limit := rlimit.RemoveMemlock()
	object := loadXdp
	if ifindex != 0 {
		object = loadHardware
	}
	spec, err := object()
	if err != nil {
		return nil, fmt.Errorf("XDP program: %w", err)
	}
	if ifindex != 0 {
		main := spec.Programs["gswitch_port"]
		main.Ifindex, main.Flags = uint32(ifindex), main.Flags|unix.BPF_F_XDP_DEV_BOUND_ONLY
	}
	if err := spec.Variables["filter"].Set(word); err != nil {
		return nil, fmt.Errorf("XDP program: set filter: %w", err)
	}
	if stamp {
		if err := spec.Variables["stamp"].Set(uint32(1)); err != nil {
			return nil, fmt.Errorf("XDP program: ask for stamps: %w", err)
		}
	}
	p := &Program{}
	if err := spec.LoadAndAssign(&p.objects, nil); err != nil {
		if errors.Is(err, unix.EPERM) {
			if limit != nil {
				err = fmt.Errorf("%w; RLIMIT_MEMLOCK could not be raised, which kernels before 5.11 need CAP_SYS_RESOURCE for: %w", err, limit)
			}
			return nil, fmt.Errorf("XDP program: load (needs CAP_BPF and CAP_NET_ADMIN): %w", err)
		}
		return nil, fmt.Errorf("XDP program: load: %w", notSupported(err))
	}
	for _, k := range keys {
		if err := p.objects.Match.Put(k, uint8(1)); err != nil {
			p.Close()
			return nil, fmt.Errorf("XDP program: fill the match table: %w", err)
		}
	}
	return p, nil
}

// Register makes the AF_XDP socket fd the receiver of a queue. The socket
// must be bound. The kernel removes it when the socket is closed.
func (p *Program) Register(queue int, fd int) error {
	if queue < 0 || uint32(queue) >= p.objects.Sockets.MaxEntries() {
		return fmt.Errorf("XDP program: queue %d, only 0 to %d are possible", queue, p.objects.Sockets.MaxEntries()-1)
	}
	if err := p.objects.Sockets.Put(uint32(queue), uint32(fd)); err != nil {
		return fmt.Errorf("XDP program: register the socket of queue %d: %w", queue, err)
	}
	return nil
}

// Unregister leaves a queue without a socket: its frames go to the kernel.
func (p *Program) Unregister(queue int) error {
	err := p.objects.Sockets.Delete(uint32(queue))
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("XDP program: unregister queue %d: %w", queue, err)
	}
	return nil
}

// Counters reads the program's counters.
func (p *Program) Counters() (Counters, error) {
	var total [3]uint64
	var perCPU []uint64
	for i := range total {
		if err := p.objects.Counters.Lookup(uint32(i), &perCPU); err != nil {
			return Counters{}, fmt.Errorf("XDP program: read counters: %w", err)
		}
		for _, n := range perCPU {
			total[i] += n
		}
	}
	return Counters{Redirected: total[0], Passed: total[1], NoSocket: total[2]}, nil
}

// Close unloads the program once no attachment holds it.
func (p *Program) Close() error { return p.objects.Close() }
