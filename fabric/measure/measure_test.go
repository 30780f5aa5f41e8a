package measure

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gswitch/fabric/results"
	"gswitch/frame"
)

const us = frame.Microsecond

// Every value falls into a bin whose top is at most 0.4 % above it, and bins
// follow each other.
func TestHistBins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Range(0, 1<<62).Draw(t, "v")
		b := binOf(v)
		top := binTop(b)
		if top < v || float64(top-v) > float64(v)/256 {
			t.Fatalf("%d lies in bin %d up to %d", v, b, top)
		}
		if binOf(top) != b || binOf(top+1) != b+1 {
			t.Fatalf("bin %d ends at %d, but %d and %d are in bins %d and %d", b, top, top, top+1, binOf(top), binOf(top+1))
		}
	})
}

func TestHistQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Uint64Range(0, 1_000_000), 1, 200).Draw(t, "x")
		var h Hist
		sorted := make([]float64, len(x))
		for i, v := range x {
			h.Add(v, 0.5)
			sorted[i] = float64(v)
		}
		slices.Sort(sorted)
		for _, p := range []float64{0.01, 0.5, 0.95, 1} {
			want := results.Quantile(sorted, p)
			if got := h.Quantile(p); got < want || got > want*1.004+1e-9 {
				t.Fatalf("quantile %v of %v is %v, want %v", p, sorted, got, want)
			}
		}
		if got := h.Mean(); math.Abs(got-results.Mean(sorted)) > 1e-6*got+1e-9 {
			t.Fatalf("mean %v, want %v", got, results.Mean(sorted))
		}
		if h.Max() != uint64(sorted[len(sorted)-1]) {
			t.Fatal("maximum")
		}
	})
	if h := (&Hist{}); !math.IsNaN(h.Quantile(0.5)) || !math.IsNaN(h.Zero()) {
		t.Error("an empty histogram has values")
	}
}

// A long series keeps its shape: peaks stay, means stay.
func TestTraceMerges(t *testing.T) {
	peak, mean := Trace{Peak: true}, Trace{}
	const n = 5 * maxTrace
	for i := range n {
		v := float64(i % 10)
		if i == 12_345 {
			v = 1000
		}
		peak.Add(frame.Time(i)*us, v)
		mean.Add(frame.Time(i+1)*us, v)
	}
	if len(peak.t) > maxTrace || len(mean.t) > maxTrace {
		t.Fatalf("%d and %d points", len(peak.t), len(mean.t))
	}
	at := slices.Index(peak.v, 1000)
	if at < 0 || math.Abs(peak.t[at]-0.012345) > 10e-6 {
		t.Errorf("the peak is lost or at point %d", at)
	}
	if got := results.Mean(mean.v); math.Abs(got-4.5) > 0.1 {
		t.Errorf("mean %v, want 4.5", got)
	}
	if !slices.IsSorted(peak.t) || !slices.IsSorted(mean.t) {
		t.Error("time goes back")
	}
	if last := mean.t[len(mean.t)-1]; math.Abs(last-n*1e-6) > 20e-6 {
		t.Errorf("the last mean ends at %v", last)
	}
}

func config() Config {
	return Config{Groups: []string{"long", "mice"}, Streams: []bool{true, false}, Frame: 1000, Sample: us, Bin: 10 * us, End: 100 * us,
		Queues: []Queue{{"s:a", true}, {"s:b", false}}, Links: []Link{{"s:a", 1e9}}, Low: 5e8, Series: 1}
}

func TestFlows(t *testing.T) {
	c := config()
	c.Warmup = 5 * us
	c.Sizes = []Sizes{{"small", 0, 5000}, {"large", 5000, 0}, {"none", 1, 500}}
	r := New(c)
	if n := r.Start(1*us, 1, 0, "a", "b", 500, us); n != -1 {
		t.Errorf("a flow of the warm-up has number %d", n)
	}
	if n := r.Start(6*us, 0, 0, "a", "b", 500, us); n != -1 {
		t.Errorf("a piece of a stream has number %d", n)
	}
	x := r.Start(10*us, 1, 1, "a", "b", 500, 2*us)
	y := r.Start(12*us, 1, 1, "a", "c", 5000, 10*us)
	z := r.Start(20*us, 1, 2, "a", "c", 5000, 10*us)
	r.Repaired(14*us, x, 1, 2, 1)
	r.Done(14*us, x, 1, 1, 3*us, 4*us)
	r.Done(40*us, y, 1, 1, 25*us, 28*us)
	_ = z
	r.Close(50 * us)
	var run results.Run
	r.Result(&run)
	for k, want := range map[string]float64{
		"flows_total": 3, "flows_unfinished_total": 1, "mice.flows_total": 3, "fct_max_seconds": 25e-6, "slowdown_p50": 1.5, "slowdown_max": 2.5,
		"rtt_max_seconds": 4e-6, "single_slowdown_max": 1.5, "retransmissions_total": 2, "mice.retransmissions_total": 2, "long.retransmissions_total": 0,
		"mice.completion_max_seconds": 30e-6, "timeout_share": 1.0 / 3, "small.timeout_share": 1, "large.timeout_share": 0,
		"small.flows_total": 1, "small.slowdown_max": 1.5, "large.flows_total": 2, "large.flows_unfinished_total": 1, "large.fct_p50_seconds": 25e-6,
		"fct_bytes_mean_seconds":   (500*3e-6 + 5000*25e-6) / 5500,
		"large.flow_rate_mean_bps": 8 * 5000 / 25e-6, "large.flow_rate_deviation_bps": 0, "small.flow_rate_mean_bps": 8 * 500 / 3e-6,
	} {
		if got := run.Values[k]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s = %v, want %v", k, got, want)
		}
	}
	if _, ok := run.Values["none.flows_total"]; ok {
		t.Error("a range of sizes without flows has values")
	}
	if len(run.Flows) != 3 || run.Flows[2].FCT != 0 || len(run.Buckets) == 0 {
		t.Errorf("%+v %+v", run.Flows, run.Buckets)
	}
}

func TestQueueAndDrain(t *testing.T) {
	c := config()
	c.Windows = []Window{{"late", 50 * us, 0}}
	c.Events = []Event{{Name: "burst", At: 10 * us, Starts: -1, Ends: -1, Goodput: -1, Below: 100, Drains: true}, {Name: "never", At: 10 * us, Starts: -1, Ends: -1, Goodput: -1, Below: 1, Drains: true}}
	r := New(c)
	depths := func(now frame.Time) uint64 {
		switch {
		case now < 12*us:
			return 7
		case now < 20*us:
			return 500
		case now < 22*us:
			return 90
		case now < 30*us:
			return 800
		case now < 60*us:
			return 100
		}
		return 2
	}
	for now := us; now <= 100*us; now += us {
		r.QueueSample(now, func(i int) uint64 { return depths(now) * uint64(1-i) })
	}
	r.Close(100 * us)
	var run results.Run
	r.Result(&run)
	for k, want := range map[string]float64{
		"burst.drain_seconds": 20e-6, "burst.drained": 1, "burst.peak_bytes": 800, "burst.crossings": 2, "burst.at_seconds": 10e-6,
		"never.drain_seconds": 90e-6, "never.drained": 0,
		"queue_max_bytes": 800, "late.queue_max_bytes": 100, "late.queue_p50_bytes": 0, "queue_busy_share": 0.5,
	} {
		if got := run.Values[k]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s = %v, want %v", k, got, want)
		}
	}
	if s := run.Series; len(s) == 0 || s[0].Name != "queue" || s[0].Object != "s:a" {
		t.Errorf("%+v", s)
	}
}

func TestGoodputLinkAndRecovery(t *testing.T) {
	c := config()
	c.Events = []Event{{Name: "after", Ends: 1, Starts: -1, Goodput: 0, Share: 0.9, Reaches: 0.79e9}, {Name: "never", At: 40 * us, Ends: -1, Starts: -1, Goodput: 0, Reaches: 1e9}}
	r := New(c)
	// 1000 bytes in 10 us are 0.8 Gb/s. The mouse takes the link from 30 to 50
	// us; what drains right after it is no recovery.
	rate := []uint64{1000, 1000, 1000, 0, 0, 1200, 500, 950, 1000, 1000}
	r.Open(0, 1, 0, "a to b")
	r.Open(0, 2, 0, "c to b")
	n := r.Start(30*us, 1, 0, "d", "b", 2000, us)
	r.Open(30*us, 3, 1, "d to b")
	var sent, acked uint64
	for i, x := range rate {
		now := frame.Time(i+1) * 10 * us
		acked += x
		sent += 1000
		if i == 9 {
			sent -= 400
		}
		if i == 4 {
			r.Ended(3, 2000)
			r.Done(50*us, n, 1, 0, 20*us, 20*us)
		}
		r.LinkSample(now, func(int) uint64 { return sent })
		r.GoodputSample(now, func(id uint64) uint64 {
			return map[uint64]uint64{1: acked / 2, 2: acked / 2}[id]
		})
	}
	r.Close(100 * us)
	var run results.Run
	r.Result(&run)
	for k, want := range map[string]float64{
		"after.recovery_seconds": 20e-6, "after.recovered": 1, "after.at_seconds": 50e-6, "goodput_bps": (7650 + 2000) * 8 / 100e-6,
		"after.reach_seconds": 10e-6, "after.reached": 1, "never.reach_seconds": 60e-6, "never.reached": 0,
		"goodput_min_bps": 0, "long.jain_index": 1, "utilisation_share": 0.768, "link_min_bps": 4.8e8, "link_low_seconds": 10e-6, "mice.goodput_bps": 1.6e8,
	} {
		if got := run.Values[k]; math.Abs(got-want) > 1e-6*want+1e-12 {
			t.Errorf("%s = %v, want %v", k, got, want)
		}
	}
	kept := 0
	for _, s := range run.Series {
		if s.Name == "goodput" {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("%d connections have series, want one of each group", kept)
	}
}

// Round-trip times count from the end of the warm-up on, by group and window,
// and not of connections that are closed.
func TestRTT(t *testing.T) {
	c := config()
	c.Warmup = 10 * us
	c.Windows = []Window{{"late", 50 * us, 0}}
	r := New(c)
	r.Open(0, 7, 0, "a to b")
	r.Open(0, 8, 1, "c to b")
	for _, x := range []struct {
		now frame.Time
		id  uint64
		rtt frame.Time
	}{{5 * us, 7, 900 * us}, {20 * us, 7, 20 * us}, {30 * us, 8, 30 * us}, {60 * us, 7, 40 * us}, {60 * us, 9, 900 * us}} {
		r.RTT(x.now, x.id, x.rtt)
	}
	r.Close(100 * us)
	var run results.Run
	r.Result(&run)
	for k, want := range map[string]float64{"ack_rtt_mean_seconds": 30e-6, "ack_rtt_max_seconds": 40e-6, "long.ack_rtt_mean_seconds": 30e-6, "mice.ack_rtt_p99_seconds": 30e-6, "late.ack_rtt_mean_seconds": 40e-6} {
		if got := run.Values[k]; math.Abs(got-want) > 0.005*want {
			t.Errorf("%s = %v, want %v", k, got, want)
		}
	}
}

// Whatever a run gives, its key is documented, and the other way round.
func TestKeysAreKnown(t *testing.T) {
	c := config()
	c.Sizes = []Sizes{{"small", 0, 120_000}}
	c.Windows = []Window{{"w", 0, 0}}
	c.Events = []Event{{Name: "e", Starts: -1, Ends: -1, Goodput: 0, Share: 0.9, Reaches: 1e9, Drains: true, Before: Window{"", 0, 50 * us}}}
	r := New(c)
	r.Open(0, 1, 0, "a to b")
	r.Open(0, 2, 0, "c to b")
	r.RTT(us, 1, 5*us)
	r.Open(0, 3, 1, "c to b")
	r.Open(0, 4, 1, "c to b")
	r.RTT(us, 3, 5*us)
	n := r.Start(us, 1, 0, "a", "b", 10, us)
	r.Done(3*us, n, 1, 0, 2*us, 2*us)
	for now := us; now <= 100*us; now += us {
		r.QueueSample(now, func(int) uint64 { return uint64(now) % 7 })
		if now%(10*us) == 0 {
			r.LinkSample(now, func(int) uint64 { return uint64(now) })
			r.GoodputSample(now, func(id uint64) uint64 { return uint64(now) / id })
		}
	}
	r.Close(100 * us)
	var run results.Run
	r.Result(&run)
	known := Known(c.Groups, []string{"small"}, []string{"w"}, []string{"e"})
	var strange []string
	for k := range run.Values {
		if !slices.Contains(known, k) {
			strange = append(strange, k)
		}
	}
	if diff := cmp.Diff([]string(nil), strange); diff != "" {
		t.Error("values without a documented key:", diff)
	}
	// What nodes count is added by the engine; streams have no flows.
	counted := []string{"drops_total", "late_frames_total", "arena_exhausted_total", "drop_share", "faults_total", "marks_total", "pauses_total", "pause_frames_total", "pause_seconds", "pause_share", "host_pause_share", "timeouts_total", "data_frames_total", "deadlocks_total", "quenches_total", "notices_total",
		"paths_tier1_share", "paths_tier2_share", "paths_tier3_share", "paths_tier4_share", "paths_any_share", "paths_choices_total", "flowlets_total", "telemetry_unstamped_total", "inversions_total", "broken_connections_total"}
	for _, k := range known {
		if _, ok := run.Values[k]; !ok && !slices.Contains(counted, k) && k[:min(5, len(k))] != "long." {
			t.Errorf("%s is documented, but was not measured", k)
		}
	}
}
