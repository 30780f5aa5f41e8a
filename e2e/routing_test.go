package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/control/api"
	"gswitch/dataplane/xsk/xsktest"
	"gswitch/vswitch"
)

// bird runs the routing daemon in a namespace until the test ends or stop is
// called.
type bird struct {
	t    *testing.T
	ns   string
	ctl  string
	stop func()
}

func startBird(t *testing.T, ns, conf string) *bird {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "bird.conf")
	if err := os.WriteFile(file, []byte("log stderr all;\nprotocol device {}\n"+conf), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bird{t: t, ns: ns, ctl: filepath.Join(dir, "bird.ctl")}
	var out strings.Builder
	c := exec.Command("bird", "-f", "-c", file, "-s", b.ctl, "-P", filepath.Join(dir, "pid"))
	c.Stdout, c.Stderr = &out, &out
	in(t, ns, c.Start)
	ended := false
	b.stop = func() {
		if ended {
			return
		}
		ended = true
		c.Process.Signal(syscall.SIGTERM) // it takes its routes back
		c.Wait()
		if t.Failed() {
			t.Logf("bird in %s:\n%s", ns, out.String())
		}
	}
	t.Cleanup(b.stop)
	return b
}

// up waits until protocols are as they are when they work.
func (b *bird) up(names ...string) {
	b.t.Helper()
	eventually(b.t, "protocols of bird in "+b.ns, func() error {
		out, err := exec.Command("birdc", "-s", b.ctl, "show", "protocols").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for _, name := range names {
			ok := false
			for line := range strings.Lines(string(out)) {
				f := strings.Fields(line)
				ok = ok || len(f) > 5 && f[0] == name && (f[5] == "Established" || f[5] == "Running")
			}
			if !ok {
				return fmt.Errorf("%s is not up:\n%s", name, out)
			}
		}
		return nil
	})
}

const twins = `version: 1
switches:
  - name: s1
    ports:
      - {name: h, interface: d0, netns: %[1]s, address: [10.0.0.1/24, "fd00:0::1/64"]}
      - {name: up, wire: w, address: [10.1.0.1/30, "fd01::1/64"]}
      - {tap: {of: h, name: h}, netns: %[2]s}
      - {tap: {of: up, name: up}, netns: %[2]s}
  - name: s2
    ports:
      - {name: h, interface: d1, netns: %[1]s, address: [10.0.1.1/24, "fd00:1::1/64"]}
      - {name: up, wire: w, address: [10.1.0.2/30, "fd01::2/64"]}
      - {tap: {of: h, name: h}, netns: %[3]s}
      - {tap: {of: up, name: up}, netns: %[3]s}
`

// What routers of both kinds say, of switch 1 and 2: id, own number, the other's.
const (
	toKernel = `
router id %[1]d.%[1]d.%[1]d.%[1]d;
protocol kernel { ipv4 { import none; export where source != RTS_DEVICE; }; }
protocol kernel { ipv6 { import none; export where source != RTS_DEVICE; }; }
`
	speakBGP = toKernel + `
protocol direct { ipv4; ipv6; interface "h"; }
template bgp peer { connect delay time 1; connect retry time 1; error wait time 1, 2; local as 6500%[1]d; }
protocol bgp four from peer { local 10.1.0.%[1]d; neighbor 10.1.0.%[2]d as 6500%[2]d; ipv4 { import all; export all; }; }
protocol bgp six from peer { local fd01::%[1]d; neighbor fd01::%[2]d as 6500%[2]d; ipv6 { import all; export all; }; }
`
	speakOSPF = toKernel + `
protocol ospf v2 four { ipv4 { import all; export none; }; area 0 {
  interface "up" { type broadcast; hello 1; dead 10; wait 2; }; interface "h" { stub; }; }; }
protocol ospf v3 six { ipv6 { import all; export none; }; area 0 {
  interface "up" { type ptp; hello 1; dead 10; }; interface "h" { stub; }; }; }
`
)

// learned returns the prefixes that a switch has of its kernel.
func (d *daemon) learned(sw string) map[string]bool {
	v := map[string]bool{}
	for _, r := range show(d, &api.Routes{}, "routes").Routes {
		if r.Switch == sw && r.Kind == "learned" {
			v[r.Prefix] = true
		}
	}
	return v
}

func (d *daemon) awaitLearned(t *testing.T, want bool) {
	t.Helper()
	for sw, prefixes := range map[string][]string{"s1": {"10.0.1.0/24", "fd00:1::/64"}, "s2": {"10.0.0.0/24", "fd00::/64"}} {
		eventually(t, "routes of "+sw, func() error {
			got := d.learned(sw)
			for _, p := range prefixes {
				if got[p] != want {
					return fmt.Errorf("%s learned %v", sw, got)
				}
			}
			return nil
		})
	}
}

// Two BIRDs behind two switches hold sessions of BGP and OSPF, of both IP
// versions, through the twins of ports; what they learn carries frames; and a link that
// goes takes the carrier of the twins with it.
func TestRoutingDaemons(t *testing.T) {
	need(t, "bird")
	l := newLab(t, 2, labOptions{ipv6: true})
	for i, h := range l.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.%d.2/24", i), fmt.Sprintf("fd00:%d::2/64", i)}, fmt.Sprintf("10.0.%d.1", i), fmt.Sprintf("fd00:%d::1", i))
	}
	b1, b2 := l.sw+"-b1", l.sw+"-b2"
	xsktest.NetNS(t, b1)
	xsktest.NetNS(t, b2)
	d, _ := runConfig(t, fmt.Sprintf(twins, l.sw, b1, b2))
	a, b := l.hosts[0], l.hosts[1]
	for kind, conf := range map[string]string{"BGP": speakBGP, "OSPF": speakOSPF} {
		t.Run(kind, func(t *testing.T) {
			one, two := startBird(t, b1, fmt.Sprintf(conf, 1, 2)), startBird(t, b2, fmt.Sprintf(conf, 2, 1))
			one.up("four", "six")
			two.up("four", "six")
			d.awaitLearned(t, true)
			a.pings(t, "10.0.1.2", 56)
			b.pings(t, "fd00:0::2", 56)
			transfer(t, a, b, "10.0.1.2", 2<<20)
			transfer(t, b, a, "fd00:0::2", 2<<20)
			a.pings(t, "10.0.0.1", 56) // the switch itself, beside its kernel
			one.stop()
			two.stop()
			d.awaitLearned(t, false)
		})
	}
	awaitCarrier(t, b1, "up", true)
	awaitCarrier(t, b2, "up", true)
	d.do("set", "port", "up", "--switch", "s1", "--disable")
	awaitCarrier(t, b1, "up", false)
	awaitCarrier(t, b2, "up", false) // the other end of the wire
	d.do("set", "port", "up", "--switch", "s1", "--enable")
	awaitCarrier(t, b1, "up", true)
	awaitCarrier(t, b2, "up", true)
	d.stop(l.sw)
	link(t, b1, "lo", func(netlink.Link) error {
		if _, err := netlink.LinkByName("up"); !errors.As(err, new(netlink.LinkNotFoundError)) {
			t.Errorf("the twin outlived its switch: %v", err)
		}
		return nil
	})
}

// A neighbour announces 100,000 prefixes by BGP. All are in force, and of each
// 997 the first leads, on frames.
func TestHundredThousandRoutes(t *testing.T) {
	need(t, "bird")
	const routes = 100_000
	l := newLab(t, 2, labOptions{})
	a, peer := l.hosts[0], l.hosts[1]
	a.address(t, []string{"10.0.0.2/24"}, "10.0.0.1")
	peer.address(t, []string{"10.0.1.2/24"}, "10.0.1.1")
	// Every address of 20.0.0.0/7 is the peer's own: it answers for all of them.
	link(t, peer.ns, "lo", func(lo netlink.Link) error {
		_, all, err := net.ParseCIDR("20.0.0.0/7")
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetUp(lo), netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: all, Type: unix.RTN_LOCAL,
			Scope: unix.RT_SCOPE_HOST, Table: unix.RT_TABLE_LOCAL}))
	})
	ns := l.sw + "-b1"
	xsktest.NetNS(t, ns)
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
switches:
  - name: s1
    ports:
      - {name: h, interface: d0, netns: %[1]s, address: [10.0.0.1/24]}
      - {name: up, interface: d1, netns: %[1]s, address: [10.0.1.1/24]}
      - {tap: {of: up}, netns: %[2]s}
`, l.sw, ns))
	var conf strings.Builder
	conf.WriteString("router id 9.9.9.9;\nprotocol static many {\n ipv4;\n")
	prefix := func(i int) string { return fmt.Sprintf("%d.%d.%d.0/24", 20+i>>16, i>>8&255, i&255) }
	for i := range routes {
		fmt.Fprintf(&conf, " route %s blackhole;\n", prefix(i))
	}
	conf.WriteString("}\nprotocol bgp four { local 10.0.1.2 as 65002; neighbor 10.0.1.1 as 65001; connect delay time 1; connect retry time 1; ipv4 { import none; export all; }; }\n")
	startBird(t, peer.ns, conf.String())
	one := startBird(t, ns, `router id 1.1.1.1;
protocol kernel { ipv4 { import none; export where source = RTS_BGP; }; }
protocol bgp four { local 10.0.1.1 as 65001; neighbor 10.0.1.2 as 65002; connect delay time 1; connect retry time 1; ipv4 { import all; export none; }; }
`)
	one.up("four")
	var first time.Time // that there was one
	eventually(t, "routes", func() error {
		n := show(d, &api.Routes{}, "routes", "--limit", "1").Total
		if n > 3 && first.IsZero() {
			first = time.Now()
		}
		if n < routes {
			return fmt.Errorf("%d routes", n)
		}
		return nil
	})
	t.Logf("the last of %d routes is in force %v after the first, at BIRD's pace", routes, time.Since(first))
	found := false
	for _, k := range show(d, &api.Limits{}, "limits").Limits {
		if k.Name == "routes of the kernel" {
			found = k.Switch == "s1" && k.Used >= routes && k.Limit == vswitch.MaxLearned
		}
	}
	if !found {
		t.Error("show limits does not say that so many routes are learned")
	}
	for i := 0; i < routes; i += 997 {
		a.pings(t, strings.Replace(prefix(i), ".0/24", ".7", 1), 56)
	}
	a.pings(t, strings.Replace(prefix(routes-1), ".0/24", ".7", 1), 56)
	d.stop(l.sw)
}
