package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/control/api"
)

// bumpNet is a switch that stamps telemetry and kernel hosts, of which some
// have a ghost as a bump in the wire.
type bumpNet struct {
	*lab
	sw    *daemon
	bumps []*daemon
}

// newBumpNet makes hosts on links of 100 Mb/s, the first bumps of them behind
// a ghost each. Offloads of the hosts' interfaces stay on.
func newBumpNet(t *testing.T, hosts, bumps int) *bumpNet {
	n := &bumpNet{lab: newLab(t, hosts, labOptions{ipv6: true}), bumps: make([]*daemon, bumps)}
	var ports strings.Builder
	for i := range hosts {
		fmt.Fprintf(&ports, "  - {interface: d%d, netns: %s, rate: 100Mbps, burst: 5ms}\n", i, n.lab.sw)
	}
	n.sw, _ = runConfig(t, "version: 1\nswitches:\n- name: s1\n  telemetry: {int: true, links: [100Mbps]}\n  ports:\n"+ports.String())
	for i := range bumps {
		n.hosts[i].addBump(t)
	}
	for i, h := range n.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.0.%d/24", i+1), fmt.Sprintf("fd00::%d/64", i+1)})
	}
	for i := range bumps {
		n.start(t, i)
	}
	return n
}

// addBump puts a veth pair between a host's kernel and its cable: eth0 is new,
// g0 its other end, and net0 the cable.
func (h *host) addBump(t *testing.T) {
	in(t, h.ns, func() error {
		cable, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		for _, step := range []func() error{
			func() error { return netlink.LinkSetDown(cable) },
			func() error { return netlink.LinkSetName(cable, "net0") },
			func() error {
				at := netlink.NewLinkAttrs()
				at.Name = "eth0"
				return netlink.LinkAdd(&netlink.Veth{LinkAttrs: at, PeerName: "g0"})
			},
		} {
			if err := step(); err != nil {
				return err
			}
		}
		// The kernel has no business on the ghost's interfaces.
		for _, name := range []string{"net0", "g0"} {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0); err != nil {
				return err
			}
		}
		for _, name := range []string{"net0", "g0", "eth0"} {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(l); err != nil {
				return err
			}
		}
		return nil
	})
}

// document is the configuration of a host's ghost, with more keys. A channel stays until
// the end of a test, however long others take on a busy machine.
func (n *bumpNet) document(i int, more string) string {
	return fmt.Sprintf(`version: 1
transparent:
- {name: b%d, inner: g0, outer: net0, netns: %s, rate: 100Mbps, base_rtt: 10ms, idle: 1h, telemetry: {links: [100Mbps]}%s}
`, i, n.hosts[i].ns, more)
}

// start starts the ghost of a host, in place of one that is gone.
func (n *bumpNet) start(t *testing.T, i int) {
	dir := t.TempDir()
	file := filepath.Join(dir, "bump.yaml")
	write(t, file, n.document(i, ""))
	n.bumps[i] = launchProgram(t, ghost, filepath.Join(dir, "sock"), "-c", file)
	n.bumps[i].await()
}

// program starts a program in a host.
func (h *host) program(t *testing.T, name string, args ...string) (c *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	out = new(bytes.Buffer)
	c = exec.Command(name, args...)
	c.Stdout, c.Stderr = out, out
	in(t, h.ns, c.Start)
	return c, out
}

// serveLoad answers load tests in a host until the end of the test.
func (h *host) serveLoad(t *testing.T) {
	link(t, h.ns, "lo", netlink.LinkSetUp)
	c, out := h.program(t, gfabric, "load", "serve", "--listen", "[::]:7400")
	t.Cleanup(func() {
		c.Process.Signal(unix.SIGTERM)
		c.Wait()
	})
	eventually(t, "the load server", func() error {
		var err error
		in(t, h.ns, func() error {
			conn, e := net.Dial("tcp", "127.0.0.1:7400")
			if err = e; e == nil {
				conn.Close()
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// bump reads the status of a ghost.
func (n *bumpNet) bump(i int) *api.BumpStatus {
	return asked(n.bumps[i], &api.Bumps{}, "show", "bumps").Bumps[0]
}

// streamed is what gfabric load stream prints.
type streamed struct {
	Bytes uint64   `json:"bytes"`
	Each  []uint64 `json:"stream_bytes"`
}

// stream runs a load test to its end; its server has compared every byte.
func (h *host) stream(t *testing.T, address string, streams int, size uint64) {
	t.Helper()
	c, out := h.program(t, gfabric, "load", "stream", address, "--streams", fmt.Sprint(streams), "--bytes", fmt.Sprint(size), "--time", "0s", "--json")
	if err := c.Wait(); err != nil {
		t.Fatalf("stream from host %d to %s: %v: %s", h.i, address, err, out)
	}
	var r streamed
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Bytes != uint64(streams)*size {
		t.Fatalf("stream from host %d to %s: %v: %s", h.i, address, err, out)
	}
}

// TCP in both directions, UDP, ICMP, over IPv4 and IPv6 between kernels: all
// in channels, every byte compared; a host without a ghost is served too, and
// its kernel's answers to what ghosts ask stay with them.
func TestTransparent(t *testing.T) {
	n := newBumpNet(t, 3, 2)
	for _, h := range n.hosts {
		h.serveLoad(t)
	}
	for _, a := range []string{"10.0.0.2", "fd00::2"} {
		n.hosts[0].pings(t, a, 56)
		n.hosts[0].pings(t, a, 1200)
	}
	n.hosts[0].stream(t, "10.0.0.2", 4, 2<<20)
	n.hosts[1].stream(t, "10.0.0.1", 2, 2<<20)
	n.hosts[0].stream(t, "fd00::2", 2, 2<<20)
	n.hosts[0].echoes(t, n.hosts[1], "10.0.0.2", 300)
	n.hosts[0].echoes(t, n.hosts[1], "fd00::2", 300)
	a, b := n.bump(0), n.bump(1)
	// 12 MiB in packets of at most 1412 bytes, and their acknowledgements; the
	// SYN of each of eight streams, or the answer to it, was clamped here.
	if a.Carried < 9000 || b.Carried < 3000 || a.Delivered == 0 || a.Clamped < 8 || a.LostChannels != 0 {
		t.Errorf("host 0: %v", a)
	}
	for i, s := range []*api.BumpStatus{a, b} {
		if s.PassedOut > 200 {
			t.Errorf("host %d: %d frames passed", i, s.PassedOut)
		}
		for _, d := range s.Drops {
			// Full queues drop as a device's would; the rest is the ghosts' own.
			if d.Reason != "queue-tail" && d.Reason != "local-consumed" && d.Reason != "qp-stale" {
				t.Errorf("host %d dropped %v", i, d)
			}
		}
	}
	protocols := map[string]bool{}
	for _, c := range asked(n.bumps[0], &api.Channels{}, "show", "channels").Channels {
		protocols[c.Protocol] = true
		if c.Congestion != "hpcc" || !netip.MustParseAddr(c.Remote).IsValid() || c.Packet < 1392 {
			t.Errorf("%v", c)
		}
	}
	for _, p := range []string{"tcp", "udp"} {
		if !protocols[p] {
			t.Errorf("no channel for %s in %v", p, protocols)
		}
	}
	if text := scrape(t, n.bumps[0]); !strings.Contains(text, `gswitch_bump_packets_total{host="b0",way="carried"}`) || !strings.Contains(text, `gswitch_bump_peers{host="b0",state="known"} 2`) {
		t.Errorf("/metrics lack channels:\n%s", text)
	}

	n.hosts[0].pings(t, "10.0.0.3", 56)
	n.hosts[0].stream(t, "10.0.0.3", 2, 1<<20)
	n.hosts[2].stream(t, "fd00::1", 2, 1<<20)
	carried := n.bump(0)
	if carried.Refusals == 0 {
		t.Errorf("the host without a ghost did not refuse: %v", carried)
	}
	for _, p := range carried.Peers {
		if (p.Address == "10.0.0.3" || p.Address == "fd00::3") && p.State != "absent" {
			t.Errorf("%v", p)
		}
	}
	n.bumps[0].do("show", "bumps")
	n.bumps[0].do("show", "channels")
	for i := range n.bumps {
		n.bumps[i].stop(n.hosts[i].ns)
	}
}

// echoes sends datagrams to a server in another host and sees them come back
// as they were. They are lost only by a queue, and there is none to fill.
func (h *host) echoes(t *testing.T, to *host, address string, count int) {
	t.Helper()
	// By name: package net tests for IPv6 in whichever namespace it
	// was first used.
	family := "udp4"
	if strings.Contains(address, ":") {
		family = "udp6"
	}
	var server, client net.PacketConn
	in(t, to.ns, func() (err error) {
		server, err = net.ListenPacket(family, net.JoinHostPort(address, "0"))
		return err
	})
	defer server.Close()
	go func() {
		b := make([]byte, 2000)
		for {
			k, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			server.WriteTo(b[:k], from)
		}
	}()
	in(t, h.ns, func() (err error) {
		client, err = net.ListenPacket(family, ":0")
		return err
	})
	defer client.Close()
	for i := range count {
		sent := bytes.Repeat([]byte{byte(i), byte(i >> 8), 7}, 1+i)
		got := make([]byte, 2000)
		if _, err := client.WriteTo(sent, server.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		client.SetReadDeadline(time.Now().Add(patience))
		k, _, err := client.ReadFrom(got)
		if err != nil || !bytes.Equal(got[:k], sent) {
			t.Fatalf("datagram %d of %d bytes to %s: %d bytes came back, %v", i, len(sent), address, k, err)
		}
	}
}

// A ghost that is killed in mid-transfer and started again: every connection
// goes on, every byte arrives as it was sent, and channels are used again.
func TestTransparentRestart(t *testing.T) {
	n := newBumpNet(t, 2, 2)
	n.hosts[0].serveLoad(t)
	n.hosts[1].serveLoad(t)
	n.hosts[0].pings(t, "10.0.0.2", 56)
	const streams, size = 2, 6 << 20
	var runs []*exec.Cmd
	var outs []*bytes.Buffer
	for i, address := range []string{"10.0.0.2", "10.0.0.1", "fd00::2"} {
		c, out := n.hosts[i%2].program(t, gfabric, "load", "stream", address, "--streams", fmt.Sprint(streams), "--bytes", fmt.Sprint(size), "--time", "0s", "--json")
		runs, outs = append(runs, c), append(outs, out)
	}
	for _, which := range []int{1, 0} {
		eventually(t, "packets in the channels of both", func() error {
			for i := range n.bumps {
				if s := n.bump(i); s.Carried < 300 || s.Delivered < 300 {
					return fmt.Errorf("host %d: %d carried, %d delivered", i, s.Carried, s.Delivered)
				}
			}
			return nil
		})
		n.bumps[which].Process.Kill()
		<-n.bumps[which].done
		if left := xdpPrograms(t, n.hosts[which].ns); left != nil {
			t.Errorf("programs are left on %v", left)
		}
		n.start(t, which)
	}
	for i, c := range runs {
		var r streamed
		if err := c.Wait(); err != nil || json.Unmarshal(outs[i].Bytes(), &r) != nil || r.Bytes != streams*size {
			t.Errorf("stream %d: %v: %s", i, err, outs[i])
		}
	}
	if s := n.bump(1); s.LostChannels == 0 || s.Carried == 0 || s.Delivered == 0 {
		t.Errorf("host 1 did not notice that its peer started again: %v", s)
	}
	if s := n.bump(0); s.Carried == 0 || s.Delivered == 0 {
		t.Errorf("no channels after the restart: %v", s)
	}
	for i := range n.bumps {
		n.bumps[i].stop(n.hosts[i].ns)
	}
}
