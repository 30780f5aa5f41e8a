package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"

	"gswitch/fabric/view"
)

// What is seen of a fabric's hosts that ghosts drive: two by one daemon, which
// names their namespaces; one by a daemon in the host's own; two kernels with
// a ghost in their wires.
func TestWatchGhosts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for network namespaces and AF_XDP sockets")
	}
	name := fmt.Sprintf("e2e-ghosts-%d", os.Getpid())
	raiseFabric(t, name, "star:5", "--rate", "50Mbps")
	ns := func(host int) string { return fmt.Sprintf("gf.%s.h%d", name, host) }
	// Beside those of the fabric the view looks for ghosts, and down removes them.
	sockets := filepath.Join("/run/gfabric", name)
	own := func(host int) string { return filepath.Join(sockets, fmt.Sprintf("ghost-h%d.sock", host)) }
	dir := t.TempDir()

	text := "version: 1\nhosts:\n"
	for h := 1; h <= 2; h++ {
		text += fmt.Sprintf("- {name: one%d, netns: %s, interface: eth0, address: 10.0.0.%d/24, rate: 50Mbps, burst: 5ms, base_rtt: 10ms, congestion: none, telemetry: {format: none}, serve: true}\n", h, ns(h), h)
	}
	write(t, filepath.Join(dir, "hosts.yaml"), text)
	hosts := launchProgram(t, ghost, own(1), "-c", filepath.Join(dir, "hosts.yaml"))
	hosts.await()
	alone := exec.Command(gfabric, "exec", "--name", name, "h3", "--", ghost, "run", "--socket", own(3), "--port", "eth0", "--addr", "10.0.0.3/24",
		"--link-rate", "50Mbps", "--base-rtt", "10ms", "--cc", "dcqcn")
	if err := alone.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		alone.Process.Signal(os.Interrupt)
		alone.Wait()
	})

	text = "version: 1\ntransparent:\n"
	for h := 4; h <= 5; h++ {
		insertBump(t, ns(h), fmt.Sprintf("10.0.0.%d/24", h))
		text += fmt.Sprintf("- {name: wire%d, inner: g0, outer: net0, netns: %s, rate: 50Mbps, base_rtt: 10ms, congestion: dctcp, telemetry: {format: none}}\n", h, ns(h))
	}
	write(t, filepath.Join(dir, "wires.yaml"), text)
	wires := launchProgram(t, ghost, own(4), "-c", filepath.Join(dir, "wires.yaml"))
	wires.await()

	background(t, "exec", "--name", name, "h5", "--", gfabric, "load", "serve")
	eventually(t, "the load server", func() (err error) {
		in(t, ns(4), func() error {
			conn, e := net.Dial("tcp", "10.0.0.5:7400")
			if err = e; e == nil {
				conn.Close()
			}
			return nil
		})
		return err
	})
	background(t, "exec", "--name", name, "h4", "--", gfabric, "load", "stream", "10.0.0.5", "--time", "10m")
	eventually(t, "h3 to reach h2", func() error {
		if out, err := exec.Command(ghost, "--socket", own(3), "ping", "10.0.0.2", "-n", "1").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	for _, args := range [][]string{
		{"--socket", own(1), "--host", "one2", "send", "--to", "10.0.0.1"},
		{"--socket", own(3), "send", "--to", "10.0.0.2"},
	} {
		c := exec.Command(ghost, append(args, "--size", "1MB", "--count", "100000", "--json")...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Process.Kill()
			c.Wait()
		})
	}

	// Node i is h(i+1); the path of each is the switch's port to its host.
	want := map[[2]int]string{{1, 0}: "send none", {2, 1}: "send dcqcn", {3, 4}: "tcp dctcp"}
	eventually(t, "the three flows", func() error {
		out, err := exec.Command(gfabric, "watch", name, "-n", "1", "--json").Output()
		if err != nil {
			t.Fatalf("gfabric watch: %v", err)
		}
		var s view.Sample
		if err := json.Unmarshal(out, &s); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		seen := 0
		for _, f := range s.Flows {
			w, ok := want[[2]int{f.Src, f.Dst}]
			if !ok || f.Goodput < 1e5 {
				continue
			}
			kind, _, _ := strings.Cut(f.Group, " ")
			if got := kind + " " + f.Control; got != w {
				t.Fatalf("flow from %d to %d is of %s, want %s: %s", f.Src, f.Dst, got, w, out)
			}
			if len(f.Path) != 1 || f.Path[0].Port != f.Dst || f.Acked == 0 {
				t.Fatalf("flow from %d to %d goes by %v and has %d bytes acknowledged", f.Src, f.Dst, f.Path, f.Acked)
			}
			if kind == "send" && f.Bytes != 100e9 {
				t.Fatalf("flow from %d to %d has %d bytes, want 100 GB", f.Src, f.Dst, f.Bytes)
			}
			seen++
		}
		if seen < len(want) {
			return fmt.Errorf("seen are %s", out)
		}
		return nil
	})
}

// insertBump puts a veth pair between the kernel of a namespace and its cable
// eth0: eth0 is new with the same link address, g0 its other end, and net0 the
// cable.
func insertBump(t *testing.T, ns, address string) {
	t.Helper()
	in(t, ns, func() error {
		cable, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		if err := errors.Join(netlink.LinkSetDown(cable), netlink.LinkSetName(cable, "net0")); err != nil {
			return err
		}
		old, err := netlink.AddrList(cable, netlink.FAMILY_V4)
		for i := range old {
			err = errors.Join(err, netlink.AddrDel(cable, &old[i]))
		}
		if err != nil {
			return err
		}
		at := netlink.NewLinkAttrs()
		at.Name, at.HardwareAddr = "eth0", cable.Attrs().HardwareAddr
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: at, PeerName: "g0"}); err != nil {
			return err
		}
		for _, name := range []string{"net0", "g0", "eth0"} {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if name != "eth0" { // the cable's ends belong to no host: they have no address
				err = netlink.LinkSetIP6AddrGenMode(link, nl.IN6_ADDR_GEN_MODE_NONE)
			}
			if err := errors.Join(err, netlink.LinkSetUp(link)); err != nil {
				return err
			}
			if name == "eth0" {
				a, err := netlink.ParseAddr(address)
				if err != nil {
					return err
				}
				return netlink.AddrAdd(link, a)
			}
		}
		return nil
	})
}
