package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/config"
	"gswitch/control/privilege"
	"gswitch/dataplane"
	"gswitch/dataplane/xsk"
	"gswitch/metrics"
)

// shareQueues divides the queues of a port among its workers, in turn.
func shareQueues(p *config.Port) ([][]int, error) {
	if p.Interface == "" {
		return make([][]int, 1), nil
	}
	n := p.Queues
	if n == 0 {
		var err error
		if n, err = countQueues(p); err != nil {
			return nil, err
		}
	}
	if n < len(p.Workers) {
		return nil, fmt.Errorf("%s has %d queues for %d workers: give it more queues (ethtool -L, or numrxqueues of a veth), or fewer workers", p.Interface, n, len(p.Workers))
	}
	shares := make([][]int, len(p.Workers))
	for q := range n {
		shares[q%len(shares)] = append(shares[q%len(shares)], q)
	}
	return shares, nil
}

// interfacePoll is how often to look for a missing interface.
const interfacePoll = 50 * time.Millisecond

// countQueues returns the number of receive queues. A port must take all of them, or the
// kernel would get some of the frames.
func countQueues(p *config.Port) (int, error) {
	i, err := FindInterface(p.Interface, p.NetNS)
	return i.Queues, err
}

// Interface describes a network interface before it is opened.
type Interface struct {
	MAC    net.HardwareAddr
	MTU    int
	Queues int // receive queues
}

// FindInterface returns the description of an interface.
func FindInterface(name, netns string) (i Interface, err error) {
	err = xsk.InNetNS(netns, func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		i = Interface{l.Attrs().HardwareAddr, l.Attrs().MTU, dataplane.Channels(name)}
		return nil
	})
	if err != nil {
		return i, ExplainInterface(name, netns, err)
	}
	return i, nil
}

// AwaitInterface returns an interface once it exists. It waits until the deadline or the
// end of ctx.
func AwaitInterface(ctx context.Context, name, netns string, deadline time.Time) (Interface, error) {
	for {
		i, err := FindInterface(name, netns)
		if err == nil || !time.Now().Before(deadline) {
			return i, err
		}
		select {
		case <-ctx.Done():
			return i, fmt.Errorf("%w: no longer waited for: %w", ctx.Err(), err)
		case <-time.After(interfacePoll):
		}
	}
}

// awaitInterfaces waits until the interfaces of all ports exist.
func awaitInterfaces(ctx context.Context, c *config.Config, wait time.Duration) error {
	deadline := time.Now().Add(wait)
	for i := range c.Switches {
		s := &c.Switches[i]
		for j := range s.Ports {
			p := &s.Ports[j]
			if p.Interface == "" {
				continue
			}
			if _, err := AwaitInterface(ctx, p.Interface, p.NetNS, deadline); err != nil {
				return fmt.Errorf("port %s: %w", metrics.PortName(s.Name, p.Name), err)
			}
		}
	}
	return nil
}

// harmless rejects an interface whose loss would cut this machine off, unless the
// configuration allows it. With a filter the kernel keeps the frames that the filter does
// not select.
func harmless(p *config.Port) error {
	if p.Interface == "" || p.Take || p.Filter != nil {
		return nil
	}
	what, err := dataplane.Carries(p.NetNS, p.Interface)
	if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
		return nil // it may appear later
	}
	if err != nil || what == "" {
		return err
	}
	return fmt.Errorf("interface %s %s: the switch would take that over; if that is meant, say so with run --take, or take: true at the port", p.Interface, what)
}

// nearInterfaces explains why a port could not be opened.
func nearInterfaces(p *config.Port, err error) error {
	return ExplainInterface(p.Interface, p.NetNS, err)
}

// ExplainInterface explains why an interface could not be opened. If it does not exist,
// the error lists those that do.
func ExplainInterface(name, netns string, err error) error {
	var missing netlink.LinkNotFoundError
	if name == "" || !errors.As(err, &missing) {
		return ExplainSystem(err)
	}
	where, names := "this network namespace", []string{}
	if netns != "" {
		where = "network namespace " + netns
	}
	// If the list fails, the error is only shorter.
	_ = xsk.InNetNS(netns, func() error {
		links, err := netlink.LinkList()
		for _, l := range links {
			if l.Attrs().Name != "lo" {
				names = append(names, l.Attrs().Name)
			}
		}
		return err
	})
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return fmt.Errorf("there is no interface %s in %s, which has none but lo", name, where)
	case len(names) > 12:
		names = append(names[:12], "...")
	}
	return fmt.Errorf("there is no interface %s in %s; there are %s", name, where, strings.Join(names, ", "))
}

// ExplainSystem adds to an error of a system call what to do about it.
func ExplainSystem(err error) error {
	hint := ""
	file := new(fs.PathError)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errExplained):
		return err
	case privilege.Dropped() && errors.As(err, &file) && errors.Is(err, fs.ErrPermission):
		hint = "this daemon dropped access to files that its configuration did not name at the start: start it anew with this configuration, or with run --keep-privileges"
	case errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), unix.EPERM.Error()):
		hint = permissionHint()
	case errors.Is(err, unix.EAFNOSUPPORT):
		hint = "this kernel has no AF_XDP sockets; it needs CONFIG_XDP_SOCKETS, and version 5.11 or later"
	case errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENOMEM):
		hint = "the packet memory could not be locked; raise the limit (ulimit -l unlimited), or set memory.frames lower"
	default:
		return err
	}
	return explained{err, hint}
}

// permissionHint names the capabilities that the process may lack.
func permissionHint() string {
	var names []string
	namespaces := false
	for _, c := range privilege.Missing() {
		switch {
		case c == privilege.Namespaces:
			namespaces = true
			names = append(names, c.Name+" (for other network namespaces)")
		case c.Needed:
			names = append(names, c.Name)
		}
	}
	switch {
	case names == nil:
		return "the capabilities that are needed are there; a security module (seccomp, AppArmor, SELinux) may refuse it"
	case privilege.Dropped() && namespaces:
		return "this daemon dropped what its configuration did not need at the start: CAP_SYS_ADMIN, for other network namespaces, among it; start it anew with this configuration, or with run --keep-privileges"
	case os.Geteuid() == 0:
		return "root has no " + strings.Join(names, ", ") + " here; a container needs them added"
	}
	return "missing " + strings.Join(names, ", ") + "; run it as root, or see deploy/systemd"
}

var errExplained = errors.New("explained")

type explained struct {
	error
	hint string
}

func (e explained) Error() string        { return e.error.Error() + "\n  " + e.hint }
func (e explained) Unwrap() error        { return e.error }
func (e explained) Is(target error) bool { return target == errExplained }
