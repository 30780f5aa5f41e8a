package dataplane

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
	"gswitch/dataplane/xsk/xsktest"
	"gswitch/frame"
)

// twoPorts starts an engine that bridges d0 and d1 of a lab.
func twoPorts(t *testing.T, l *lab, c Config, spec PortSpec) (e *Engine, b *bridge, ports [2]*Port) {
	t.Helper()
	e = mustEngine(t, c)
	b = newBridge(e.Worker(0))
	mustNode(t, e, 0, b)
	for i, name := range []string{"d0", "d1"} {
		spec.Interface, spec.NetNS = name, l.dut
		ports[i] = mustPort(t, e, 0, b, uint16(i), spec)
	}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	return e, b, ports
}

// state returns the state of the port with the number.
func state(e *Engine, number int) PortStats {
	for _, p := range e.Stats().Ports {
		if int(p.Number) == number {
			return p
		}
	}
	return PortStats{}
}

// awaitPort waits until a port is up, or down.
func awaitPort(e *Engine, number int, up bool) PortStats {
	for {
		if p := state(e, number); p.Up == up {
			return p
		}
		pause()
	}
}

func TestXDPForwards(t *testing.T) {
	for _, poll := range []PollMode{Adaptive, Spin, Sleep} {
		t.Run(poll.String(), func(t *testing.T) {
			l := newLab(t, 2, 1)
			e, _, _ := twoPorts(t, l, Config{Workers: []WorkerConfig{{Poll: poll}}}, PortSpec{})
			awaitPort(e, 0, true)
			awaitPort(e, 1, true)
			h0, h1 := l.socket(t, "h0"), l.socket(t, "h1")
			const n = 500
			for i := range uint64(n) {
				send(t, h0, i, 60+int(i)%1400)
				expect(t, h1, i)
				send(t, h1, i, 60+int(i)%1400)
				expect(t, h0, i)
			}
			p := state(e, 0)
			if p.RxFrames < n || p.TxFrames < n || p.Kicks == 0 {
				t.Errorf("counted %d in, %d out, %d kicks; want at least %d, %d and one", p.RxFrames, p.TxFrames, p.Kicks, n, n)
			}
			if p.Mode != xsk.Native || !strings.Contains(p.ModeWhy, "zero-copy: refused") {
				t.Errorf("mode %v because %q, want native after zero-copy was refused", p.Mode, p.ModeWhy)
			}
		})
	}
}

// A burst larger than what one transmit call sends leaves whole, without
// anything else happening at the worker.
func TestXDPBurstLeavesWhole(t *testing.T) {
	l := newLab(t, 1, 1)
	e := mustEngine(t, Config{Chunks: 8192, Workers: []WorkerConfig{{Poll: Sleep}}})
	n := &tester{pool: e.Worker(0).Pool(), size: 60}
	mustNode(t, e, 0, n)
	mustPort(t, e, 0, n, 0, PortSpec{Interface: "d0", NetNS: l.dut, TxDepth: 2048})
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	awaitPort(e, 0, true)
	h0 := l.socket(t, "h0")
	e.Worker(0).Do(func(frame.Time) { n.toSend = 1500 })
	for i := range uint64(1500) {
		expect(t, h0, i)
	}
	if s := e.Stats().Workers[0]; s.KickFrames < 20*s.Kicks {
		t.Errorf("%d frames in %d calls, want at least 20 a call", s.KickFrames, s.Kicks)
	}
}

// With an MTU beyond a chunk frames come and go in several.
func TestXDPJumbo(t *testing.T) {
	l := newLab(t, 2, 1)
	for i := range 2 {
		for ns, name := range map[string]string{l.dut: fmt.Sprintf("d%d", i), l.host: fmt.Sprintf("h%d", i)} {
			l.in(t, ns, func() error {
				link, err := netlink.LinkByName(name)
				if err != nil {
					return err
				}
				return netlink.LinkSetMTU(link, 9000)
			})
		}
	}
	e, _, _ := twoPorts(t, l, Config{}, PortSpec{})
	if p := awaitPort(e, 0, true); p.MTU != 9000 {
		t.Errorf("MTU %d", p.MTU)
	}
	if p := state(e, 0); !p.MultiBuffer || p.TxBudget < 32 {
		t.Errorf("multi-buffer %v, %d frames in a transmit call", p.MultiBuffer, p.TxBudget)
	}
	awaitPort(e, 1, true)
	h0, h1 := l.socket(t, "h0"), l.socket(t, "h1")
	for i := range uint64(50) {
		send(t, h0, i, 60+int(i)*180)
		expect(t, h1, i)
	}
}

func TestXDPGenericWhenPinned(t *testing.T) {
	l := newLab(t, 2, 1)
	e, _, _ := twoPorts(t, l, Config{}, PortSpec{Mode: xsk.Generic})
	awaitPort(e, 0, true)
	awaitPort(e, 1, true)
	h0, h1 := l.socket(t, "h0"), l.socket(t, "h1")
	for i := range uint64(20) {
		send(t, h0, i, 100)
		expect(t, h1, i)
	}
	if p := state(e, 0); p.Mode != xsk.Generic {
		t.Errorf("mode %v (%s), want generic", p.Mode, p.ModeWhy)
	}
}

// Queues of one interface on two workers: a frame reaches its node whichever
// queue it comes by.
func TestXDPQueuesOnTwoWorkers(t *testing.T) {
	l := newLab(t, 1, 2)
	e := mustEngine(t, Config{Workers: []WorkerConfig{{}, {}}})
	var nodes [2]*tester
	for i := range nodes {
		nodes[i] = &tester{pool: e.Worker(i).Pool()}
		mustNode(t, e, i, nodes[i])
		mustPort(t, e, i, nodes[i], 0, PortSpec{Interface: "d0", NetNS: l.dut, Queues: []int{i}})
	}
	third := &tester{pool: e.Worker(0).Pool()}
	mustNode(t, e, 0, third)
	if _, err := e.AddPort(0, third, 0, PortSpec{Interface: "d0", NetNS: l.dut, Queues: []int{1}}); err == nil {
		t.Error("a queue was given to two ports")
	}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	awaitPort(e, 0, true)
	h0 := l.socket(t, "h0")
	const n = 200
	for i := range uint64(n) {
		send(t, h0, i, 60)
	}
	for {
		sum := uint64(0)
		for i, x := range nodes {
			e.Worker(i).Do(func(frame.Time) { sum += x.received })
		}
		if sum >= n {
			break
		}
		pause()
	}
}

func TestXDPLinkDownAndUp(t *testing.T) {
	l := newLab(t, 2, 1)
	e, b, _ := twoPorts(t, l, Config{Workers: []WorkerConfig{{Poll: Sleep}}}, PortSpec{})
	awaitPort(e, 0, true)
	for _, end := range []struct{ ns, name, why string }{{l.host, "h0", "no carrier"}, {l.dut, "d0", "set down"}} {
		l.set(t, end.ns, end.name, false)
		if p := awaitPort(e, 0, false); !strings.Contains(p.State, end.why) {
			t.Errorf("after %s was set down the port is %q, want a reason with %q", end.name, p.State, end.why)
		}
		e.Worker(0).Do(func(frame.Time) {
			if b.up[0] {
				t.Error("the node was not notified")
			}
		})
		l.set(t, end.ns, end.name, true)
		awaitPort(e, 0, true)
		awaitPort(e, 1, true)
		h0, h1 := l.socket(t, "h0"), l.socket(t, "h1")
		for i := range uint64(5) {
			send(t, h0, i, 60)
			expect(t, h1, i)
			send(t, h1, i, 60)
			expect(t, h0, i)
		}
	}
}

func TestXDPInterfaceDeletedAndReturned(t *testing.T) {
	l := newLab(t, 2, 1)
	e, _, _ := twoPorts(t, l, Config{Workers: []WorkerConfig{{Poll: Adaptive}}}, PortSpec{})
	awaitPort(e, 0, true)
	for range 2 {
		l.in(t, l.host, func() error {
			link, err := netlink.LinkByName("h0")
			if err != nil {
				return err
			}
			return netlink.LinkDel(link)
		})
		if p := awaitPort(e, 0, false); p.State != "down: interface was deleted" {
			t.Errorf("the port is %q", p.State)
		}
		if p := state(e, 1); !p.Up {
			t.Errorf("the other port is %q", p.State)
		}
		l.cable(t, 0, 1)
		awaitPort(e, 0, true)
		h0, h1 := l.socket(t, "h0"), l.socket(t, "h1")
		for i := range uint64(5) {
			send(t, h1, i, 60)
			expect(t, h0, i)
			send(t, h0, i, 60)
			expect(t, h1, i)
		}
	}
	if p := state(e, 0); p.Reopened != 2 {
		t.Errorf("reopened %d times, want 2", p.Reopened)
	}
}

func TestXDPNetNSDeletedAndReturned(t *testing.T) {
	l := newLab(t, 1, 1)
	e := mustEngine(t, Config{})
	n := &tester{pool: e.Worker(0).Pool()}
	mustNode(t, e, 0, n)
	mustPort(t, e, 0, n, 0, PortSpec{Interface: "d0", NetNS: l.dut})
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	awaitPort(e, 0, true)
	if err := netns.DeleteNamed(l.dut); err != nil {
		t.Fatal(err)
	}
	if p := awaitPort(e, 0, false); !strings.Contains(p.State, "was deleted") {
		t.Errorf("the port is %q", p.State)
	}
	// The engine let go of the namespace, so the pair went with it.
	for {
		gone := false
		l.in(t, l.host, func() error {
			_, err := netlink.LinkByName("h0")
			gone = err != nil
			return nil
		})
		if gone {
			break
		}
		pause()
	}
	xsktest.NetNS(t, l.dut)
	l.cable(t, 0, 1)
	awaitPort(e, 0, true)
}

// An optional port comes up when its interface appears.
func TestXDPOptionalPortAppears(t *testing.T) {
	l := newLab(t, 0, 1)
	e := mustEngine(t, Config{})
	n := &tester{pool: e.Worker(0).Pool()}
	mustNode(t, e, 0, n)
	if _, err := e.AddPort(0, n, 0, PortSpec{Interface: "d0", NetNS: l.dut}); err == nil || !strings.Contains(err.Error(), "d0") {
		t.Errorf("a missing interface gives %v", err)
	}
	mustPort(t, e, 0, n, 0, PortSpec{Interface: "d0", NetNS: l.dut, Optional: true})
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	if p := state(e, 0); p.Up {
		t.Error("up without an interface")
	}
	l.cable(t, 0, 1)
	awaitPort(e, 0, true)
}

// What a veth needs is done and said.
func TestXDPPreparesVeth(t *testing.T) {
	l := newLab(t, 1, 1)
	l.in(t, l.dut, func() error {
		et, err := OpenEthtool()
		if err != nil {
			return err
		}
		defer et.Close()
		return et.Change("d0", map[string]bool{"rx-gro": true})
	})
	e := mustEngine(t, Config{})
	n := &tester{pool: e.Worker(0).Pool()}
	mustNode(t, e, 0, n)
	mustPort(t, e, 0, n, 0, PortSpec{Interface: "d0", NetNS: l.dut})
	p := state(e, 0)
	// Frames that were merged would be counted, sampled and copied as one.
	for _, want := range []string{"qdisc pfifo", "tx-checksum-ip-generic off", "tx-generic-segmentation off", "rx-gro off", "tx-vlan-hw-insert off", "promiscuous on", "link set up"} {
		if !slices.Contains(p.Setup, want) {
			t.Errorf("setup %q lacks %q", p.Setup, want)
		}
	}
	if len(p.Warnings) != 1 || !strings.HasSuffix(p.Warnings[0], "run: ip netns exec "+l.host+" ethtool -K h0 tx off tso off gso off txvlan off") {
		t.Errorf("warnings %q, want both of the peer's offloads", p.Warnings)
	}
	l.in(t, l.dut, func() error {
		et, err := OpenEthtool()
		if err != nil {
			return err
		}
		defer et.Close()
		f, err := et.Features("d0")
		if err != nil {
			return err
		}
		for _, name := range append([]string{"rx-gro", "tx-tcp-segmentation", "tx-generic-segmentation", "tx-udp-segmentation"}, offloadsOff...) {
			if f[name] {
				t.Errorf("%s is still on", name)
			}
		}
		link, err := netlink.LinkByName("d0")
		if err != nil {
			return err
		}
		qs, err := netlink.QdiscList(link)
		if err != nil {
			return err
		}
		if len(qs) == 0 || qs[0].Type() != "pfifo" {
			t.Errorf("queueing disciplines %v, want a pfifo", qs)
		}
		return nil
	})
}

// What was set is put back at the end, on a veth too; what was so before is
// left and listed.
func TestXDPPutsBack(t *testing.T) {
	l := newLab(t, 1, 1)
	e := mustEngine(t, Config{})
	n := &tester{pool: e.Worker(0).Pool()}
	mustNode(t, e, 0, n)
	look := func() (link netlink.Link, qdisc string, checksum bool) {
		l.in(t, l.dut, func() error {
			et, err := OpenEthtool()
			if err != nil {
				return err
			}
			defer et.Close()
			f, err := et.Features("d0")
			if err != nil {
				return err
			}
			checksum = f["tx-checksum-ip-generic"]
			if link, err = netlink.LinkByName("d0"); err != nil {
				return err
			}
			qs, err := netlink.QdiscList(link)
			if len(qs) > 0 {
				qdisc = qs[0].Type()
			}
			return err
		})
		return link, qdisc, checksum
	}
	p := mustPort(t, e, 0, n, 0, PortSpec{Interface: "d0", NetNS: l.dut})
	if err := e.RemovePort(p); err != nil {
		t.Fatal(err)
	}
	const touched = unix.IFF_UP | unix.IFF_PROMISC
	if link, qdisc, checksum := look(); link.Attrs().RawFlags&touched != 0 || qdisc == "pfifo" || !checksum {
		t.Errorf("left: flags %#x, queue %q, checksum offload %v", link.Attrs().RawFlags, qdisc, checksum)
	}

	l.set(t, l.dut, "d0", true)
	p = mustPort(t, e, 0, n, 0, PortSpec{Interface: "d0", NetNS: l.dut})
	if setup := state(e, 0).Setup; !slices.ContainsFunc(setup, func(s string) bool {
		return strings.HasPrefix(s, "already so: ") && strings.HasSuffix(s, "link up")
	}) {
		t.Errorf("setup %q does not say that the link was up", setup)
	}
	if err := e.RemovePort(p); err != nil {
		t.Fatal(err)
	}
	if link, _, _ := look(); link.Attrs().RawFlags&touched != unix.IFF_UP {
		t.Errorf("a link that was up is left with flags %#x", link.Attrs().RawFlags)
	}
}

// A warning goes when the other end is repaired.
func TestXDPWarningGoes(t *testing.T) {
	l := newLab(t, 1, 1)
	e := mustEngine(t, Config{})
	n := &tester{pool: e.Worker(0).Pool()}
	mustNode(t, e, 0, n)
	mustPort(t, e, 0, n, 0, PortSpec{Interface: "d0", NetNS: l.dut})
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	if p := state(e, 0); len(p.Warnings) != 1 {
		t.Fatalf("warnings %q, want one", p.Warnings)
	}
	l.in(t, l.host, func() error {
		et, err := OpenEthtool()
		if err != nil {
			return err
		}
		defer et.Close()
		return et.Change("h0", map[string]bool{"tx-checksum-ip-generic": false, "tx-vlan-hw-insert": false})
	})
	for len(state(e, 0).Warnings) > 0 {
		pause()
	}
}

// An interface that carries another XDP program is refused, and untouched.
func TestXDPRefusesForeignProgram(t *testing.T) {
	l := newLab(t, 1, 1)
	other := mustEngine(t, Config{})
	n := &tester{pool: other.Worker(0).Pool()}
	mustNode(t, other, 0, n)
	mustPort(t, other, 0, n, 0, PortSpec{Interface: "d0", NetNS: l.dut})

	e := mustEngine(t, Config{})
	m := &tester{pool: e.Worker(0).Pool()}
	mustNode(t, e, 0, m)
	_, err := e.AddPort(0, m, 0, PortSpec{Interface: "d0", NetNS: l.dut})
	if err == nil || !strings.Contains(err.Error(), "already attached") {
		t.Errorf("got %v, want the program that is already attached", err)
	}
	if p := state(other, 0); p.Mode == xsk.Auto {
		t.Error("the other switch lost its interface")
	}
}

// A killed process leaves nothing that stops its successor.
func TestKilledProcessLeavesNothing(t *testing.T) {
	if ns := os.Getenv("DATAPLANE_VICTIM"); ns != "" {
		e := mustEngine(t, Config{Workers: []WorkerConfig{{Poll: Sleep}}})
		b := newBridge(e.Worker(0))
		mustNode(t, e, 0, b)
		mustPort(t, e, 0, b, 0, PortSpec{Interface: "d0", NetNS: ns})
		mustPort(t, e, 0, b, 1, PortSpec{Interface: "d1", NetNS: ns})
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("ready\n")
		select {}
	}
	l := newLab(t, 2, 1)
	victim := exec.Command(os.Args[0], "-test.run", "^TestKilledProcessLeavesNothing$")
	victim.Env = append(os.Environ(), "DATAPLANE_VICTIM="+l.dut)
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make([]byte, 6)
	if _, err := out.Read(ready); err != nil || string(ready) != "ready\n" {
		t.Errorf("the victim says %q: %v", ready, err)
	}
	victim.Process.Kill()
	victim.Wait()
	l.in(t, l.dut, func() error {
		link, err := netlink.LinkByName("d0")
		if err != nil {
			return err
		}
		if x := link.Attrs().Xdp; x != nil && x.Attached {
			t.Error("a program is still attached")
		}
		return nil
	})
	e, _, _ := twoPorts(t, l, Config{}, PortSpec{})
	awaitPort(e, 0, true)
	awaitPort(e, 1, true)
	h0, h1 := l.socket(t, "h0"), l.socket(t, "h1")
	send(t, h0, 7, 60)
	expect(t, h1, 7)
}
