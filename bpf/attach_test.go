package bpf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// inNewNetNS runs fn in a network namespace of its own, which ends with it,
// on a veth interface v0 of the MTU given.
func inNewNetNS(t *testing.T, mtu int, fn func(link netlink.Link) error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces and XDP")
	}
	errSkip := errors.New("cannot make a network namespace with a veth pair")
	done := make(chan error)
	go func() {
		// The thread is never unlocked: it ends with the goroutine, and the
		// unnamed namespace with it.
		runtime.LockOSThread()
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("%w: %w", errSkip, err)
			}
			la := netlink.NewLinkAttrs()
			la.Name, la.MTU = "v0", mtu
			if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: la, PeerName: "v1", PeerMTU: uint32(mtu)}); err != nil {
				return fmt.Errorf("%w: %w", errSkip, err)
			}
			link, err := netlink.LinkByName("v0")
			if err != nil {
				return err
			}
			return fn(link)
		}()
	}()
	if err := <-done; errors.Is(err, errSkip) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// attached returns the id of the program on v0, 0 if none.
func attached() (uint32, error) {
	l, err := netlink.LinkByName("v0")
	if err != nil || l.Attrs().Xdp == nil {
		return 0, err
	}
	return l.Attrs().Xdp.ProgId, nil
}

func TestAttachAndDetach(t *testing.T) {
	p := load(t, Filter{})
	for _, mode := range []Mode{Native, Generic} {
		for _, mtu := range []int{1500, 9000} {
			inNewNetNS(t, mtu, func(link netlink.Link) error {
				l, err := p.Attach(link.Attrs().Index, mode)
				if err != nil {
					return err
				}
				if id, err := attached(); err != nil || id == 0 {
					return fmt.Errorf("%v: program %d, %v after attach", mode, id, err)
				}
				if err := l.Close(); err != nil {
					return err
				}
				if id, err := attached(); err != nil || id != 0 {
					return fmt.Errorf("%v: program %d, %v after close", mode, id, err)
				}
				return nil
			})
		}
	}
}

// A program that asks the driver for stamps of the hardware is bound to its interface, and
// runs in the driver alone. Where the kernel or the driver has none, the error says so.
func TestHardwareProgram(t *testing.T) {
	inNewNetNS(t, 1500, func(link netlink.Link) error {
		p, err := LoadHardware(Filter{}, link.Attrs().Index)
		if errors.Is(err, ErrNotSupported) {
			t.Logf("this kernel has no such programs: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
		defer p.Close()
		l, err := p.Attach(link.Attrs().Index, Native)
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
		if _, err := p.Attach(link.Attrs().Index, Generic); err == nil {
			return errors.New("it was attached in generic mode")
		}
		far, err := netlink.LinkByName("v1")
		if err != nil {
			return err
		}
		if _, err := p.Attach(far.Attrs().Index, Native); err == nil {
			return errors.New("it was attached to another interface")
		}
		if _, err := LoadHardware(Filter{}, 1<<30); err == nil {
			return errors.New("it was loaded for an interface that does not exist")
		}
		return nil
	})
}

// A program that is attached already stays, and the error names it: our own program or
// another's, attached by link or by netlink, in the same mode or the other.
func TestAttachRefusesSecondProgram(t *testing.T) {
	p, other := load(t, Filter{}), load(t, Filter{})
	info, err := other.objects.GswitchPort.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	byNetlink := func(link netlink.Link, flags int) (io.Closer, error) {
		return io.NopCloser(nil), netlink.LinkSetXdpFdWithFlags(link, other.objects.GswitchPort.FD(), flags)
	}
	for name, first := range map[string]func(netlink.Link) (io.Closer, error){
		"link, native":     func(l netlink.Link) (io.Closer, error) { return other.Attach(l.Attrs().Index, Native) },
		"link, generic":    func(l netlink.Link) (io.Closer, error) { return other.Attach(l.Attrs().Index, Generic) },
		"netlink, native":  func(l netlink.Link) (io.Closer, error) { return byNetlink(l, unix.XDP_FLAGS_DRV_MODE) },
		"netlink, generic": func(l netlink.Link) (io.Closer, error) { return byNetlink(l, unix.XDP_FLAGS_SKB_MODE) },
	} {
		inNewNetNS(t, 1500, func(link netlink.Link) error {
			l, err := first(link)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			defer l.Close()
			for _, mode := range []Mode{Native, Generic} {
				_, err = p.Attach(link.Attrs().Index, mode)
				var busy *BusyError
				if !errors.Is(err, ErrBusy) || !errors.As(err, &busy) || busy.ID != uint32(id) || busy.Name != "gswitch_port" || busy.Interface != "v0" {
					return fmt.Errorf("%s, then %v: %v", name, mode, err)
				}
				if text := err.Error(); !strings.Contains(text, "v0") || !strings.Contains(text, fmt.Sprint(id)) {
					return fmt.Errorf("unreadable: %s", text)
				}
			}
			if now, err := attached(); err != nil || now != uint32(id) {
				return fmt.Errorf("%s: program %d, %v after the refusal, want %d", name, now, err, id)
			}
			return nil
		})
	}
}

func TestAttachErrors(t *testing.T) {
	p := load(t, Filter{})
	inNewNetNS(t, 1500, func(link netlink.Link) error {
		if _, err := p.Attach(4711, Native); err == nil || !strings.Contains(err.Error(), "4711") {
			return fmt.Errorf("interface that does not exist: %v", err)
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if _, err := p.Attach(lo.Attrs().Index, Native); !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "lo") {
			return fmt.Errorf("native XDP on loopback: %v", err)
		}
		return nil
	})
}

func TestRegisterErrors(t *testing.T) {
	p := load(t, Filter{})
	if err := p.Register(256, 0); err == nil || !strings.Contains(err.Error(), "queue 256") {
		t.Errorf("queue beyond the map: %v", err)
	}
	if err := p.Register(0, 0); err == nil {
		t.Error("a descriptor that is no AF_XDP socket was accepted")
	}
	if err := p.Unregister(3); err != nil {
		t.Errorf("unregister an empty queue: %v", err)
	}
}
