package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// A bridge that is plugged in by two cables makes a loop. One of the two ports is shut, what all others send goes
// on, and when the cable is pulled and the port enabled it is back.
func TestLoop(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	a, b := l.hosts[0], l.hosts[1]
	a.address(t, []string{"10.0.0.1/24"})
	b.address(t, []string{"10.0.0.2/24"})
	l.wire(t, "c0", "e0")
	l.wire(t, "c1", "e1")
	in(t, l.sw, func() error {
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br"}}
		if err := netlink.LinkAdd(br); err != nil {
			return err
		}
		errs := []error{netlink.LinkSetUp(br)}
		for _, name := range []string{"e0", "e1"} {
			e, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			errs = append(errs, netlink.LinkSetMaster(e, br), netlink.LinkSetUp(e))
		}
		return errors.Join(errs...)
	})
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
switches:
  - name: s1
    loops: {shut: 1h}
    ports:
      - {interface: d0, netns: %[1]s}
      - {interface: d1, netns: %[1]s}
      - {interface: c0, netns: %[1]s}
      - {interface: c1, netns: %[1]s}
`, l.sw))
	d.awaitState("c1", "down: err-disabled by loops")
	a.pings(t, "10.0.0.2", 56)
	for port, p := range d.ports() {
		if port != "c1" && port != "s1/c1" && p.State != "up" {
			t.Errorf("port %s is %s", port, p.State)
		}
	}
	logged := func(text string) {
		eventually(t, "log of "+text, func() error {
			if !strings.Contains(d.log.String(), text) {
				return errors.New(d.log.String())
			}
			return nil
		})
	}
	logged(`msg="the port is err-disabled" port=s1/c1 by=loops`)
	if out := d.do("show", "loops", "c1"); !strings.Contains(out, "c0") {
		t.Errorf("where the frames came from is not shown:\n%s", out)
	}
	link(t, l.sw, "e1", netlink.LinkSetNoMaster)
	d.do("set", "port", "c1", "--disable")
	d.do("set", "port", "c1", "--enable")
	d.awaitState("c1", "up")
	logged(`msg="the port is open again" port=s1/c1`)
	d.stop(l.sw)
}
