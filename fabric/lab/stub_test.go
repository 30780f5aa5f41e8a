package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"gswitch/config"
)

// The lab's tests ask of a switch only that it forwards. This binary, called
// as the lab calls gswitch, has the kernel do it: a bridge for each switch, a
// veth pair for each wire, and routes where there is one switch to a
// namespace. So they test the lab alone, and IPv4 alone.
const (
	stubEnv  = "GFABRIC_TEST_STUB"  // "1": be a switch; "silent": never get ready; "broken": fail
	childEnv = "GFABRIC_TEST_CHILD" // be a gfabric that raises the topology of this value
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "run" && os.Getenv(stubEnv) != "":
		if err := stub(os.Args[3], os.Getenv(stubEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case os.Getenv(childEnv) != "":
		os.Exit(child(os.Getenv(childEnv)))
	}
	os.Exit(m.Run())
}

func stub(file, how string) error {
	if how == "broken" {
		return fmt.Errorf("the stub fails as it was asked to")
	}
	stop, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	wires := map[string]string{} // to the name of the end that is still free
	for i := range c.Switches {
		if err := stubSwitch(&c.Switches[i], i, wires); err != nil {
			return err
		}
	}
	if how != "silent" {
		fmt.Println("stub: ready")
	}
	<-stop.Done()
	return nil
}

func stubSwitch(s *config.Switch, index int, wires map[string]string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = fmt.Sprintf("br%d", index)
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	if err := netlink.LinkAdd(bridge); err != nil {
		return err
	}
	for _, key := range []string{"ip", "arp"} {
		setSysctls(map[string]string{"net/bridge/bridge-nf-call-" + key + "tables": "0"})
	}
	for _, v := range s.VLANs {
		if err := stubAddress(bridge, v.Addresses); err != nil {
			return err
		}
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		name := p.Interface
		if p.Wire != "" {
			name = wires[p.Wire]
			if name == "" {
				a := netlink.NewLinkAttrs()
				a.Name = fmt.Sprintf("w%dp%da", index, i)
				wires[p.Wire] = fmt.Sprintf("w%dp%db", index, i)
				if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: a, PeerName: wires[p.Wire]}); err != nil {
					return err
				}
				name = a.Name
			}
		}
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if len(p.Addresses) > 0 {
			err = stubAddress(link, p.Addresses)
		} else {
			err = netlink.LinkSetMaster(link, bridge)
		}
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return err
	}
	for _, r := range s.Routes {
		if r.Prefix.Addr().Is6() {
			continue
		}
		nr := &netlink.Route{Dst: ipNet(r.Prefix)}
		for _, h := range r.NextHops {
			nr.MultiPath = append(nr.MultiPath, &netlink.NexthopInfo{Gw: net.IP(h.Via.AsSlice())})
		}
		if err := netlink.RouteAdd(nr); err != nil {
			return fmt.Errorf("route %v: %w", r.Prefix, err)
		}
	}
	return setSysctls(map[string]string{"net/ipv4/ip_forward": "1"})
}

func stubAddress(link netlink.Link, prefixes []netip.Prefix) error {
	for _, a := range prefixes {
		if a.Addr().Is6() {
			continue
		}
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(a)}); err != nil {
			return err
		}
	}
	return nil
}
