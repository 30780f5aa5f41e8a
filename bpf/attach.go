package bpf

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Mode says where in the receive path the program runs.
type Mode uint8

const (
	Native  Mode = iota // in the driver, before the kernel builds a packet
	Generic             // in the network stack; works with every driver, costs a copy more
)

// String returns the name of the mode.
func (m Mode) String() string {
	if m == Generic {
		return "generic"
	}
	return "native"
}

var (
	// ErrBusy: another XDP program sits on the interface. The error is a
	// *BusyError, which names it.
	ErrBusy = errors.New("another XDP program is attached")
	// ErrNotSupported: the driver or the kernel cannot do what was asked.
	ErrNotSupported = errors.New("not supported")
)

// BusyError says which program already sits on an interface.
type BusyError struct {
	IfIndex   int
	Interface string
	ID        uint32 // program id, 0 if it could not be read
	Name      string // program name, empty if it has none
	err       error
}

// Error names the interface and the program, and what to do.
func (e *BusyError) Error() string {
	who := "an XDP program"
	if e.ID != 0 {
		who = fmt.Sprintf("XDP program %d", e.ID)
	}
	if e.Name != "" {
		who += fmt.Sprintf(" %q", e.Name)
	}
	return fmt.Sprintf("%s is already attached to %s; detach it first (ip link set dev %s xdp off, or end the process that holds its link)", who, e.Interface, e.Interface)
}

// Is makes errors.Is(err, ErrBusy) true.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// Unwrap returns the kernel's error.
func (e *BusyError) Unwrap() error { return e.err }

// Attach attaches the program to the interface ifindex of the calling
// thread's network namespace. Closing the result detaches it; so does the end
// of the process, and losing the last reference to the result. It never replaces a program that is already there: it then
// returns a *BusyError.
func (p *Program) Attach(ifindex int, mode Mode) (io.Closer, error) {
	flags := link.XDPDriverMode
	if mode == Generic {
		flags = link.XDPGenericMode
	}
	l, err := link.AttachXDP(link.XDPOptions{Program: p.objects.GswitchPort, Interface: ifindex, Flags: flags})
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		// EEXIST: a program is attached in the other mode.
		return nil, busy(ifindex, err)
	case errors.Is(err, unix.ERANGE):
		return nil, fmt.Errorf("the driver of %s takes no %s XDP program at its MTU: %w: %w", name(ifindex), mode, ErrNotSupported, err)
	case errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("attach the XDP program to %s (needs CAP_NET_ADMIN): %w", name(ifindex), err)
	}
	return nil, fmt.Errorf("attach the %s XDP program to %s: %w", mode, name(ifindex), notSupported(err))
}

// busy finds out who sits on the interface.
func busy(ifindex int, err error) *BusyError {
	e := &BusyError{IfIndex: ifindex, Interface: name(ifindex), err: err}
	l, lerr := netlink.LinkByIndex(ifindex)
	if lerr != nil || l.Attrs().Xdp == nil {
		return e
	}
	e.ID = l.Attrs().Xdp.ProgId
	other, perr := ebpf.NewProgramFromID(ebpf.ProgramID(e.ID))
	if perr != nil {
		return e
	}
	defer other.Close()
	if info, ierr := other.Info(); ierr == nil {
		e.Name = info.Name
	}
	return e
}

func name(ifindex int) string {
	if l, err := netlink.LinkByIndex(ifindex); err == nil {
		return l.Attrs().Name
	}
	return fmt.Sprintf("#%d", ifindex)
}

// notSupported adds ErrNotSupported to the kernel's ways of saying so.
func notSupported(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, ebpf.ErrNotSupported) {
		return fmt.Errorf("%w: %w", ErrNotSupported, err)
	}
	return err
}
