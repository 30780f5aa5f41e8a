package collect

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gswitch/mirror"
	"gswitch/telemetry"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// copyOf is a report of a packet's copy that a switch of a line made, as it comes without a
// stamp, at an instant.
func copyOf(n *Network, sw string, at time.Time, packet ...wt.Layer) telemetry.Report {
	i, _ := n.plan.Topology.Lookup(sw)
	s := mirror.Session{Format: mirror.GRE, Src: n.plan.Nodes[i].Loopback[0], Dst: n.plan.Nodes[i].Loopback[0]}
	b, orig := make([]byte, 2048), wt.Frame(append([]wt.Layer{wt.Eth(wt.MAC(1), wt.MAC(2))}, packet...)...)
	k, _ := s.Copy(b, orig, uint32(len(orig)), mirror.Info{})
	body := framed(s.Src, b[wire.EthernetLen+wire.IPv4Len:k])
	binary.BigEndian.PutUint64(body, uint64(at.UnixNano()))
	return telemetry.Report{Kind: Mirrored, Body: body}
}

// Copies that are put into the stream together have come at instants of their own.
func TestCopiesHaveTheirOwnInstants(t *testing.T) {
	n := lineOf(t, "l3")
	m := &message{}
	for i, sw := range []string{"s1", "s2"} {
		ip := wt.IPv4("10.0.0.1", "10.0.1.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.ID, f.TTL = 7, uint8(64-i) }))
		r := copyOf(n, sw, start.Add(time.Duration(i)*700*time.Microsecond), ip, wt.UDP(1, 2), wt.Zeros(50))
		r.Sequence = uint64(i + 1)
		m.reports = append(m.reports, r)
	}
	a := NewAnalysis(n)
	a.Add(start.Add(time.Second), m)
	a.Add(start.Add(time.Minute), &message{})
	if got := a.Stats(); got[Stat{tracedLinks, "s1>s2"}] != 1 || got[Stat{tracedDelays, "s1>s2 1ms"}] != 1 {
		t.Errorf("%v", got)
	}
}

// Packets that arrived become events if they were marked for tracing, with the switches that they
// passed and when; others are counted.
func TestTracesThatAreKept(t *testing.T) {
	n := lineOf(t, "l3")
	m := &message{}
	for _, dscp := range []uint8{0, mirror.DebugDSCP} {
		for i, sw := range []string{"s1", "s2"} {
			ip := wt.IPv4("10.0.0.1", "10.0.1.2", wt.TOS(dscp<<2), wt.IPv4With(func(f *wire.IPv4Fields) { f.ID, f.TTL = 7+uint16(dscp), uint8(64-i) }))
			r := copyOf(n, sw, start.Add(time.Duration(i)*700*time.Microsecond), ip, wt.UDP(1, 2), wt.Zeros(50))
			r.Sequence = uint64(len(m.reports) + 1)
			m.reports = append(m.reports, r)
		}
	}
	a := NewAnalysis(n)
	a.Add(start.Add(time.Second), m)
	v := a.Add(start.Add(time.Minute), &message{})
	if len(v) != 1 || v[0].What != "delivered" || v[0].Path != "s1 s2" || v[0].Times != "0 700000" || v[0].Until.Sub(v[0].At) != 700*time.Microsecond {
		t.Errorf("%+v", v)
	}
	if got := a.Stats()[Stat{tracedPackets, "delivered"}]; got != 2 {
		t.Errorf("%d are counted", got)
	}
}

// What numbers say is missing is found where copies come in: lanes have but some of them each.
func TestMissingCopies(t *testing.T) {
	c := &Copies{Metrics: NewMetrics(prometheus.NewRegistry())}
	s := mirror.Session{Format: mirror.ERSPAN3, Src: netip.MustParseAddr("10.10.0.1"), Dst: netip.MustParseAddr("10.9.0.1")}
	for i := range uint16(1000) {
		b, orig := make([]byte, 2048), wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4("10.0.0.1", "10.0.1.2"), wt.UDP(i, 2), wt.Zeros(50))
		if n, _ := s.Copy(b, orig, uint32(len(orig)), mirror.Info{}); i%100 != 7 {
			c.count(1, b[:n])
		}
	}
	if n := testutil.ToFloat64(c.Metrics.lost); n != 10 {
		t.Errorf("%v are missing, want 10", n)
	}
}

// All copies of a packet are analysed together, whichever switches made them, before a load
// balancer and behind it; those of different flows are spread over all lanes, from one
// switch, too.
func TestLanesOfCopies(t *testing.T) {
	n := lineOf(t, "l3")
	const flows = 3200
	var load [Lanes]int
	for i := range flows {
		ip, udp := wt.IPv4("10.0.0.1", fmt.Sprintf("10.0.%d.2", i%200)), wt.UDP(uint16(i), 4791)
		plain := copyOf(n, "s1", start, ip, udp)
		lane := n.laneOf(nil, &plain)
		for _, r := range []telemetry.Report{copyOf(n, "s2", start, ip, udp), copyOf(n, "s2", start, wt.IPv4("192.168.0.1", "192.168.0.2"), ip, udp)} {
			if got := n.laneOf(nil, &r); got != lane {
				t.Fatalf("flow %d: one copy in lane %d, another one in lane %d", i, lane, got)
			}
		}
		load[lane]++
	}
	for lane, got := range load {
		if got < flows/Lanes/2 || got > flows/Lanes*2 {
			t.Errorf("lane %d has %d of %d flows", lane, got, flows)
		}
	}
}

// Neither reports nor copies are taken from where none may come from, and both are counted.
func TestStrangersAreRefused(t *testing.T) {
	h := openHub(t, t.TempDir(), 16<<20)
	m := NewMetrics(prometheus.NewRegistry())
	from := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	ctx, stop := context.WithCancel(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { NewReceiver(h.store, line(t), from, m, discard).Serve(ctx, l) })
	all.Go(func() {
		(&Copies{Store: h.store, Network: line(t), From: from, Name: "c", Metrics: m, Log: discard}).Serve(ctx, u)
	})
	defer all.Wait()
	defer stop()
	for i, at := range []net.Addr{l.Addr(), u.LocalAddr()} {
		c, err := net.Dial(at.Network(), at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(make([]byte, 100)); err != nil && i == 1 { // a connection may be gone already
			t.Fatal(err)
		}
		if i == 0 {
			if b, _ := io.ReadAll(c); len(b) > 0 {
				t.Errorf("a stranger is told %x", b)
			}
		}
		for testutil.ToFloat64(m.refused.WithLabelValues([]string{"reports", "copies"}[i])) != 1 {
			if testutil.ToFloat64(m.bad) > 0 || testutil.CollectAndCount(m.copies) > 0 {
				t.Fatal("what a stranger says is looked at")
			}
			time.Sleep(time.Millisecond)
		}
	}
	if n := len(h.numbers(t)); n != 0 {
		t.Errorf("%d reports are in the stream", n)
	}
}
