package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"gswitch/dataplane"
	"gswitch/dataplane/xsk"
	wt "gswitch/wire/wiretest"
)

// With OnlyUsed a queue and a class have series from their first frame on, and
// lossless classes always.
func TestOnlyUsed(t *testing.T) {
	src, n := lab(t)
	src.OnlyUsed = true
	count := func(name string) int {
		t.Helper()
		return testutil.CollectAndCount(NewCollector(func() *Snapshot { return Take(src) }), name)
	}
	if q, c := count("gswitch_queue_enqueued_packets_total"), count("gswitch_class_receive_packets_total"); q != 0 || c != 0 {
		t.Errorf("idle: %d queues and %d classes have series, want none", q, c)
	}
	if n := count("gswitch_pfc_held_back_seconds"); n != 2 {
		t.Errorf("idle: %d lossless classes of two ports have series, want 2", n)
	}
	send(t, src, n, 0, wt.UDP4(wt.MAC(8), wt.MAC(7), "10.0.0.1", "10.0.0.2", 1, 2, make([]byte, 40)))
	if q, c := count("gswitch_queue_enqueued_packets_total"), count("gswitch_class_receive_packets_total"); q != 1 || c != 1 {
		t.Errorf("after one frame: %d queues and %d classes have series, want one each", q, c)
	}
}

func TestMissing(t *testing.T) {
	s := Snapshot{Engine: dataplane.Stats{Ports: []dataplane.PortStats{
		{Name: "s1/p1", Kind: dataplane.XDP, Mode: xsk.Native, State: "down: no carrier"}, {Name: "s1/w", Kind: dataplane.Wire, State: "down: no carrier"}}}}
	if v := s.Missing(); v != nil {
		t.Errorf("links that are down: %q", v)
	}
	s.Engine.Ports = append(s.Engine.Ports, dataplane.PortStats{Name: "s1/p2", Kind: dataplane.XDP, State: "down: interface was deleted"},
		dataplane.PortStats{Name: "s1/p3-tap", Kind: dataplane.Tap, State: "down: interface was deleted"})
	if v := strings.Join(s.Missing(), ", "); v != "s1/p2 is down: interface was deleted, s1/p3-tap is down: interface was deleted" {
		t.Errorf("%q", v)
	}
}
