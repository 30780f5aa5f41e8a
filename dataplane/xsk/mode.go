package xsk

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"gswitch/bpf"
)

// Mode is how frames pass between the device and the UMEM. The zero value asks for the
// best one that works.
type Mode uint8

const (
	Auto     Mode = iota // ZeroCopy, else Native, else Generic
	ZeroCopy             // the device writes and reads the UMEM itself
	Native               // the XDP program runs in the driver, the kernel copies
	Generic              // the XDP program runs in the network stack, the kernel copies
)

var modeNames = [...]string{Auto: "auto", ZeroCopy: "zero-copy", Native: "native", Generic: "generic"}

// String returns the mode's name, as ParseMode takes it.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "unknown"
}

// ladder returns the modes to try, best first.
func (m Mode) ladder() []Mode {
	if m == Auto {
		return []Mode{ZeroCopy, Native, Generic}
	}
	return []Mode{m}
}

// Rung is one step of the mode ladder: a mode that was tried and why it was refused. Err
// is nil for the mode that was obtained.
type Rung struct {
	Mode Mode
	Err  error
}

// String returns "native: ok" or "zero-copy: refused: ...".
func (r Rung) String() string {
	if r.Err == nil {
		return r.Mode.String() + ": ok"
	}
	return fmt.Sprintf("%s: refused: %v", r.Mode, r.Err)
}

var (
	// ErrQueueBusy: another AF_XDP socket holds the queue, or the kernel has not yet
	// released a closed one.
	ErrQueueBusy = errors.New("the queue is held by another AF_XDP socket")
	// ErrDown: the device is down. The socket works again once it is up.
	ErrDown = errors.New("the device is down")
	// ErrGone: the device was removed. The socket must be closed.
	ErrGone = errors.New("the device is gone")
	// ErrMTU: the device's frames do not fit into a chunk.
	ErrMTU = errors.New("MTU too large")
)

// modeMatters reports whether another mode may work after this error.
func modeMatters(err error) bool {
	for _, e := range [...]error{bpf.ErrBusy, ErrMTU, ErrDown, unix.EBUSY, unix.EPERM, unix.ENOBUFS, unix.ENOMEM, unix.ENODEV} {
		if errors.Is(err, e) {
			return false
		}
	}
	return true
}

// refused joins the errors of all rungs.
func refused(rungs []Rung) error {
	if len(rungs) == 1 {
		return rungs[0].Err
	}
	text := make([]string, 0, len(rungs))
	args := make([]any, 0, 2*len(rungs))
	for _, r := range rungs {
		text = append(text, "%s: %w")
		args = append(args, r.Mode, r.Err)
	}
	return fmt.Errorf("no mode works: "+strings.Join(text, "; "), args...)
}
