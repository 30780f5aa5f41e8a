package e2e

import (
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// awaitCarrier waits until an interface of a namespace has a carrier, or none.
func awaitCarrier(t *testing.T, ns, name string, want bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("carrier of %s in %s: %v", name, ns, want), func() (err error) {
		link(t, ns, name, func(l netlink.Link) error {
			if got := l.Attrs().RawFlags&unix.IFF_RUNNING != 0; got != want {
				err = fmt.Errorf("carrier is %v", got)
			}
			return nil
		})
		return err
	})
}

// A port that is disabled takes the carrier of the host at the other end of its
// cable, and a host that goes takes the port's: no frame is sent where it would be lost. A switch that
// ends leaves the interface as it found it, up.
func TestCableWithoutCarrier(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	a, b := l.hosts[0], l.hosts[1]
	a.address(t, []string{"10.0.0.1/24"})
	b.address(t, []string{"10.0.0.2/24"})
	document := `version: 1
switches:
  - name: s1
    ports:
      - {interface: d0, netns: %[1]s}
      - {interface: d1, netns: %[1]s, enabled: %[2]s}
`
	link(t, l.sw, "d1", netlink.LinkSetUp)
	d, file := runConfig(t, fmt.Sprintf(document, l.sw, "false"))
	awaitCarrier(t, b.ns, "eth0", false)
	awaitCarrier(t, a.ns, "eth0", true)
	write(t, file, fmt.Sprintf(document, l.sw, "true"))
	d.do("apply", file)
	awaitCarrier(t, b.ns, "eth0", true)
	a.pings(t, "10.0.0.2", 56)
	d.do("set", "port", "d1", "--disable")
	awaitCarrier(t, b.ns, "eth0", false)
	d.do("set", "port", "d1", "--enable")
	awaitCarrier(t, b.ns, "eth0", true)
	a.pings(t, "10.0.0.2", 56)
	link(t, b.ns, "eth0", netlink.LinkSetDown)
	d.awaitState("d1", "down: no carrier: the other end is down")
	link(t, b.ns, "eth0", netlink.LinkSetUp)
	d.awaitState("d1", "up")
	a.pings(t, "10.0.0.2", 56)
	d.do("set", "port", "d1", "--disable")
	awaitCarrier(t, b.ns, "eth0", false)
	d.stop(l.sw)
	awaitCarrier(t, b.ns, "eth0", true)
}
