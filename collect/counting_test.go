package collect

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gswitch/mirror"
	"gswitch/telemetry"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// tally is a collector that counts, as far as counters go.
type tally struct {
	*Workers
	analysis *Analysis
}

// tallyOf starts one, with counters of its own.
func tallyOf(t *testing.T, h *hub, id string, fixed ...string) *tally {
	t.Helper()
	n := lineOf(t, "l3")
	for _, name := range fixed {
		if err := n.Count(name, "tcp"); err != nil {
			t.Fatal(err)
		}
	}
	c := &tally{&Workers{Store: h.store, Network: n, ID: id, Metrics: NewMetrics(prometheus.NewRegistry()), Log: discard}, NewAnalysis(n)}
	c.Metrics.have(n)
	if _, err := h.store.lanes.Put(t.Context(), "collector."+id, nil); err != nil {
		t.Fatal(err)
	}
	for subject, answers := range map[string]func(context.Context, []byte) any{countedSubject: c.Metrics.counted, countSubject: h.store.counter(n, c.Metrics)} {
		group := ""
		if subject == countSubject {
			group = countGroup
		}
		sub, err := h.store.subscribe(t.Context(), subject, group, answers)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sub.Unsubscribe() })
	}
	return c
}

// sees has the collector analyse packets to a port.
func (c *tally) sees(t *testing.T, port uint16, packets int) {
	c.adoptCounters(t.Context())
	for range packets {
		c.analysis.count(&mirror.Trace{Key: mirror.Key{Proto: 6, DstPort: port}, Hops: []mirror.Hop{{TTL: 64, Bytes: 100}}})
	}
	c.Metrics.analysed(1, c.analysis.Stats(), uses{})
}

func countersAfter(t *testing.T, h *hub, r CountRequest) *CountState {
	t.Helper()
	st, err := h.store.AskCount(t.Context(), &r)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// What is added is counted by all collectors that run, also by those that are started later,
// and until it is removed; their sums are what is shown. One that is added again counts anew.
func TestCountersAreAdded(t *testing.T) {
	h := openHub(t, t.TempDir(), 16<<20)
	h.store.patience = time.Hour
	a, b := tallyOf(t, h, "a", "all"), tallyOf(t, h, "b", "all")
	add := func(name, filter string) CountRequest { return CountRequest{Add: &Counter{Name: name, Filter: filter}} }
	shows := func(want string) {
		t.Helper()
		var got []string
		for _, c := range countersAfter(t, h, CountRequest{}).Counters {
			got = append(got, fmt.Sprintf("%s %d %d", c.Name, c.Packets, c.Bytes))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s, want %s", s, want)
		}
	}
	a.sees(t, 80, 1)
	if st := countersAfter(t, h, add("web", "tcp.dstport == 80")); st.Refused != "" || len(st.Counters) != 2 {
		t.Fatalf("%+v", st)
	}
	a.sees(t, 80, 2)
	a.sees(t, 443, 5)
	b.sees(t, 80, 3)
	shows("all 11 1100, web 5 500")
	if st := countersAfter(t, h, add("web", "tcp.dstport == 80")); st.Refused != "" || len(st.Counters) != 2 {
		t.Errorf("asked again: %+v", st)
	}
	refused := map[string]CountRequest{
		"already, of":           add("web", "tcp.dstport == 443"),
		"two counters all":      add("all", "tcp"),
		"digits":                add("a b", "tcp"),
		"the counter x":         add("x", "switch == s9"),
		"more than 1024":        add("x", strings.Repeat(" ", mostFilter)+"tcp"),
		"one of --count":        {Remove: "all"},
		"no counter \"nobody\"": {Remove: "nobody"},
	}
	for why, r := range refused {
		if st := countersAfter(t, h, r); !strings.Contains(st.Refused, why) || len(st.Counters) != 2 {
			t.Errorf("%+v, want %q", st, why)
		}
	}
	if n := testutil.ToFloat64(a.Metrics.refused.WithLabelValues("counters")) + testutil.ToFloat64(b.Metrics.refused.WithLabelValues("counters")); int(n) != len(refused) {
		t.Errorf("%v are counted as refused, want %d", n, len(refused))
	}
	// After a restart it is there, and begins at zero as every metric does.
	c := tallyOf(t, h, "c")
	c.sees(t, 80, 4)
	shows("all 11 1100, web 9 900")
	if st := countersAfter(t, h, CountRequest{Remove: "web"}); st.Refused != "" || len(st.Counters) != 1 {
		t.Errorf("%+v", st)
	}
	for _, x := range []*tally{a, b, c} {
		x.sees(t, 80, 1)
	}
	shows("all 13 1300")
	if n := testutil.CollectAndCount(c.Metrics, "gcollect_counted_packets_total"); n != 0 {
		t.Errorf("%d counters are among the metrics", n)
	}
	countersAfter(t, h, add("web", "tcp.dstport == 443"))
	a.sees(t, 443, 1)
	shows("all 14 1400, web 1 100")
	countersAfter(t, h, CountRequest{Remove: "web"})
	countersAfter(t, h, add("web", "tcp.dstport == 444")) // before any collector has noticed that it was removed
	a.sees(t, 444, 2)
	shows("all 16 1600, web 2 200")
	// One that cannot be had, as another collector has another network, keeps no other one out.
	if _, err := h.store.lanes.Put(t.Context(), countKey, []byte(`[{"name":"x","filter":"switch == s9","since":"2026-11-28T00:00:00Z"},{"name":"y","filter":"tcp","since":"2026-11-28T00:00:00Z"}]`)); err != nil {
		t.Fatal(err)
	}
	a.sees(t, 80, 1)
	if v := a.Network.counters.Load(); len(v.all) != 2 || v.all[1].Name != "y" || !strings.Contains(a.unknown, "the counter x") {
		t.Errorf("%+v, %q", v, a.unknown)
	}
}

// Each packet is counted once, also when another collector reads again what the one before it had
// read.
func TestPacketsAreCountedOnce(t *testing.T) {
	h := openHub(t, t.TempDir(), 16<<20)
	n := lineOf(t, "l3")
	n.TraceIdle = time.Millisecond
	if err := n.Count("all", "udp"); err != nil {
		t.Fatal(err)
	}
	k := newKeeper(h.store, n, telemetry.Hello{Version: telemetry.HelloVersion, Name: "copies", Boot: 1})
	next := uint16(0)
	put := func() {
		next++
		r := copyOf(n, "s1", time.Now(), wt.IPv4("10.0.0.1", "10.0.1.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = next })), wt.UDP(1, 2), wt.Zeros(50))
		r.Boot, r.Sequence = 1, uint64(next)
		if _, err := k.keep(t.Context(), []telemetry.Report{r}); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]uint64{"one": 5, "two": 3} {
		w := &Workers{Store: h.store, Network: n, ID: id, Metrics: NewMetrics(prometheus.NewRegistry()), Log: discard}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		for range want {
			put()
		}
		got := uint64(0)
		for got < want {
			time.Sleep(20 * time.Millisecond)
			sum, _ := w.Metrics.sum()
			got = sum[Stat{countedPackets, "all"}]
		}
		if got != want {
			t.Errorf("%s counts %d packets, want %d", id, got, want)
		}
		stop()
		<-done
		if sum, _ := w.Metrics.sum(); sum[Stat{countedPackets, "all"}] != want {
			t.Errorf("%s has counted %v, want %d", id, sum, want)
		}
	}
}

// A name of --count is taken, also where another collector than the one that answers has it.
func TestNamesOfOtherCollectors(t *testing.T) {
	h := openHub(t, t.TempDir(), 16<<20)
	h.store.patience = time.Hour
	a := tallyOf(t, h, "a")
	tallyOf(t, h, "b", "mine")
	for _, r := range []*CountRequest{{Add: &Counter{Name: "mine", Filter: "tcp"}}, {Remove: "mine"}} {
		st, err := h.store.changeCounters(t.Context(), a.Network, r)
		if err != nil || !strings.Contains(st.Refused, "of --count") || len(st.Counters) != 1 {
			t.Errorf("%+v, %v", st, err)
		}
	}
	both := CountRequest{Add: &Counter{Name: "x", Filter: "tcp"}, Remove: "x"}
	if st := countersAfter(t, h, both); !strings.Contains(st.Refused, "one at a time") {
		t.Errorf("%+v", st)
	}
}

// A server that is behind the others shows an earlier state, or none: counters stay, and go on.
func TestEarlierCountersAreNotAdopted(t *testing.T) {
	h := openHub(t, t.TempDir(), 16<<20)
	a := tallyOf(t, h, "a")
	if err := a.Network.SetCounters([]Counter{{Name: "web", Filter: "tcp", Since: start}}); err != nil {
		t.Fatal(err)
	}
	for _, kept := range []string{"", "[]"} {
		a.counters = 1000
		if kept != "" {
			if _, err := h.store.lanes.Put(t.Context(), countKey, []byte(kept)); err != nil {
				t.Fatal(err)
			}
		}
		a.sees(t, 80, 1)
	}
	id := a.Network.counters.Load().all[0].key
	if sum, _ := a.Metrics.sum(); sum[Stat{countedPackets, id}] != 2 {
		t.Errorf("%v, want 2 packets", sum)
	}
	before := Stats{{countedPackets, id}: 5}
	if n := a.analysis.Stats().minus(before)[Stat{countedPackets, id}]; n != 0 {
		t.Errorf("%d of a counter that began anew", n)
	}
	// What is left of a counter that was removed goes with it.
	a.counters = 0
	a.sees(t, 80, 0)
	a.Metrics.leftLane(1)
	if n := len(a.Metrics.left); n == 0 || a.Metrics.left[Stat{countedPackets, id}] != 0 {
		t.Errorf("left: %v", a.Metrics.left)
	}
	a.Metrics.left[Stat{countedPackets, id}] = 7
	a.Metrics.leftLane(2)
	if _, ok := a.Metrics.left[Stat{countedPackets, id}]; ok {
		t.Error("a counter that was removed is kept")
	}
}
