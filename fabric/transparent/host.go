package transparent

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"

	"gswitch/dataplane/xsk"
)

// Interfaces of a host behind a bump, besides its own.
const (
	innerName = "ghost0" // the other end of the host's interface
	outerName = "net0"   // the cable to the switch
)

// insert puts a veth pair between the kernel of a host and its cable: the
// host's interface is new, with the name, link address, addresses, routes and
// neighbours of the one before.
func insert(namespace string) error {
	return xsk.InNetNS(namespace, func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		var cable netlink.Link
		for _, l := range links {
			if l.Type() == "veth" {
				cable = l
			}
		}
		if cable == nil {
			return fmt.Errorf("%s has no cable", namespace)
		}
		return move(cable)
	})
}

func move(cable netlink.Link) error {
	old := cable.Attrs()
	addresses, err := netlink.AddrList(cable, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	routes, err := netlink.RouteList(cable, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	neighbors, err := netlink.NeighList(old.Index, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if err := netlink.AddrDel(cable, &a); err != nil {
			return fmt.Errorf("address %v: %w", a, err)
		}
	}
	at := netlink.NewLinkAttrs()
	at.Name, at.MTU, at.HardwareAddr = old.Name, old.MTU, old.HardwareAddr
	for _, step := range []func() error{
		func() error { return netlink.LinkSetDown(cable) },
		func() error { return netlink.LinkSetName(cable, outerName) },
		func() error {
			return netlink.LinkAdd(&netlink.Veth{LinkAttrs: at, PeerName: innerName, PeerMTU: uint32(old.MTU)})
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	// The kernel has no business on the bump's interfaces.
	for _, name := range []string{outerName, innerName} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0); err != nil {
			return err
		}
	}
	var own netlink.Link
	for _, name := range []string{outerName, innerName, old.Name} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return err
		}
		own = l
	}
	return configure(own, addresses, routes, neighbors)
}

// configure gives an interface addresses, routes and neighbours.
func configure(l netlink.Link, addresses []netlink.Addr, routes []netlink.Route, neighbors []netlink.Neigh) error {
	for _, a := range addresses {
		if a.IP.IsLinkLocalUnicast() {
			continue // the kernel makes one
		}
		if err := netlink.AddrReplace(l, &netlink.Addr{IPNet: a.IPNet, Flags: 0x02}); err != nil { // IFA_F_NODAD
			return fmt.Errorf("address %v: %w", a.IPNet, err)
		}
	}
	for _, direct := range []bool{true, false} { // gateways must be on a link that is known
		for _, r := range routes {
			if r.Protocol == 2 || (r.Gw == nil) != direct { // RTPROT_KERNEL: made with the address
				continue
			}
			r.LinkIndex = l.Attrs().Index
			if err := netlink.RouteReplace(&r); err != nil {
				return fmt.Errorf("route %v: %w", r, err)
			}
		}
	}
	for _, n := range neighbors {
		if n.State&netlink.NUD_PERMANENT == 0 || n.IP.IsMulticast() {
			continue
		}
		n.LinkIndex = l.Attrs().Index
		if err := netlink.NeighSet(&n); err != nil {
			return fmt.Errorf("neighbour %v: %w", n.IP, err)
		}
	}
	return nil
}

// startLine starts a program, which is killed if this one is, and returns the
// first line that it prints, empty if it ends before. ended is closed when it
// has ended.
func startLine(c *exec.Cmd) (line string, ended chan struct{}, err error) {
	out, err := c.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ended = make(chan struct{})
	started, first := make(chan error), make(chan string, 1)
	go func() {
		// The signal comes when the thread dies that started it (prctl(2)).
		runtime.LockOSThread()
		defer close(ended)
		err := c.Start()
		started <- err
		if err != nil {
			return
		}
		s := bufio.NewScanner(out)
		s.Scan()
		first <- s.Text()
		_ = c.Wait() // its end, whatever it was, is wanted
	}()
	if err := <-started; err != nil {
		return "", nil, err
	}
	return <-first, ended, nil
}
