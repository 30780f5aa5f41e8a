package cc

import (
	"fmt"
	"math"
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
)

// The setting of the worked examples: 100 Gb/s, T = 13 us, so that a base
// RTT holds 162,500 bytes.
var hundredGig = Env{Rate: 100e9, BaseRTT: 13 * frame.Microsecond, MTU: 1090, Payload: 1000,
	Range: inband.Range{TS: 1 << 24, Tx: 1 << 27}}

// build constructs an algorithm with options given as key, value, ...
func build(t testing.TB, env *Env, name string, options ...string) Algorithm {
	t.Helper()
	m := map[string]string{}
	for i := 0; i < len(options); i += 2 {
		m[options[i]] = options[i+1]
	}
	f, err := Factory(name, m)
	if err != nil {
		t.Fatal(err)
	}
	return f(env)
}

func newTestHPCC(t testing.TB, options ...string) *hpcc {
	return build(t, &hundredGig, "hpcc", append([]string{"wai", "80B"}, options...)...).(*hpcc)
}

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want))
}

func hop(bytesPerNs float64, ts, tx, q uint64) inband.Hop {
	return inband.Hop{Rate: uint64(bytesPerNs * 8e9), TS: ts, Tx: tx, Q: q}
}

func path(id uint16, hops ...inband.Hop) *inband.Path {
	p := &inband.Path{ID: id, N: len(hops)}
	copy(p.Hops[:], hops)
	return p
}

// U is the EWMA of the worst hop, weighted by the time that its measurement
// covers.
func TestHPCCMeasuresBytesInFlight(t *testing.T) {
	for _, c := range []struct {
		name       string
		u0         float64
		from, to   []inband.Hop
		wantU      float64
		wantWorstU float64
	}{
		{"the lesser queue counts", 1, []inband.Hop{hop(12.5, 1_000_000, 10_000_000, 0)}, []inband.Hop{hop(12.5, 1_001_300, 10_016_250, 8125)}, 1.0, 1.0},
		{"a standing queue", 1, []inband.Hop{hop(12.5, 1_000_000, 10_000_000, 16_250)}, []inband.Hop{hop(12.5, 1_001_300, 10_016_250, 8125)}, 1.005, 1.05},
		{"half a base RTT", 1, []inband.Hop{hop(12.5, 1_000_000, 0, 0)}, []inband.Hop{hop(12.5, 1_006_500, 40_625, 0)}, .75, .5},
		{"a gap of three base RTTs", .2, []inband.Hop{hop(12.5, 0, 0, 162_500)}, []inband.Hop{hop(12.5, 39_000, 487_500, 325_000)}, 2.0, 2.0},
		{"two hops", .9, []inband.Hop{hop(12.5, 0, 0, 0), hop(50, 0, 0, 100_000)}, []inband.Hop{hop(12.5, 2600, 29_250, 0), hop(50, 1300, 32_500, 65_000)}, .9, .9},
	} {
		h := newTestHPCC(t)
		h.OnAck(&Feedback{Ack: 1, SndNxt: 10, Path: path(1, c.from...)})
		worst := 0.0
		for i := range c.to {
			u, _ := h.measure(i, &c.to[i])
			worst = max(worst, u)
		}
		h.u = c.u0
		h.OnAck(&Feedback{Ack: 2, SndNxt: 10, Path: path(1, c.to...)})
		if !near(h.u, c.wantU, 1e-6) || !near(worst, c.wantWorstU, 1e-6) {
			t.Errorf("%s: U = %.7f of u = %.7f, want %.7f of %.7f", c.name, h.u, worst, c.wantU, c.wantWorstU)
		}
	}
}

func TestHPCCComputesTheWindow(t *testing.T) {
	for i, c := range []struct {
		wc, u           float64
		stage, maxStage int
		full            bool
		w, wantWc       float64
		wantStage       int
	}{
		{162500, 1.9, 0, 0, true, 81330, 81330, 0},
		{162500, 1.9, 0, 5, false, 81330, 162500, 0},
		{81330, .475, 0, 0, true, 162500, 162500, 0},
		{81330, .475, 2, 5, true, 81410, 81410, 3},
		{81330, .475, 5, 5, true, 162500, 162500, 0},
		{81330, .95, 0, 5, true, 81410, 81410, 0},
		{5000, 65, 0, 0, true, 153.0769, 153.0769, 0},
		{162500, 65, 0, 0, true, 2455, 2455, 0},
	} {
		h := newTestHPCC(t, "maxStage", fmt.Sprint(c.maxStage))
		s := hpccState{ref: c.wc, u: c.u, stage: c.stage}
		w := h.next(&s)
		h.commit(&s, w, c.full)
		if !near(w, c.w, 1e-6) || !near(s.ref, c.wantWc, 1e-6) || s.stage != c.wantStage {
			t.Errorf("row %d: W %.4f Wc %.4f stage %d, want %.4f %.4f %d", i, w, s.ref, s.stage, c.w, c.wantWc, c.wantStage)
		}
	}
}

// trace is a run over one 100 Gb/s hop: a queue that builds and drains.
var trace = []struct {
	ack, sndNxt, ts, tx, q uint64
	u, w, wc               float64
}{
	{1000, 162_000, 100_000, 1_000_000, 40_000, 1, 162_500, 162_500},
	{2000, 163_000, 101_300, 1_016_250, 48_000, 1.024615, 150_746.291, 162_500},
	{3000, 163_000, 102_600, 1_032_500, 56_000, 1.051692, 146_867.229, 162_500},
	{4000, 163_000, 103_900, 1_048_750, 64_000, 1.080985, 142_889.618, 162_500},
	{163_000, 164_000, 117_000, 1_212_500, 81_250, 1.393846, 110_834.691, 110_834.691},
	{164_000, 170_000, 118_300, 1_228_750, 73_125, 1.399462, 75_318.192, 110_834.691},
	{165_000, 171_000, 119_600, 1_245_000, 65_000, 1.399515, 75_315.298, 75_315.298},
	{171_000, 180_000, 132_600, 1_407_500, 16_250, 1.1, 65_125.030, 75_315.298},
	{181_000, 200_000, 145_600, 1_550_500, 0, .88, 81_386.287, 81_386.287},
	{201_000, 230_000, 158_600, 1_680_500, 0, .8, 96_726.216, 96_726.216},
	{231_000, 260_000, 171_600, 1_830_000, 0, .92, 99_960.332, 99_960.332},
}

// feed gives row i of the trace, with counters moved by offsets modulo range.
func feed(h Algorithm, i int, dts, dtx uint64, r inband.Range) {
	x := trace[i]
	h.OnAck(&Feedback{Now: frame.Time(x.ts), Ack: x.ack, SndNxt: x.sndNxt, Newly: 1000,
		Path: path(7, hop(12.5, (x.ts+dts)&(r.TS-1), (x.tx+dtx)&(r.Tx-1), x.q))})
}

func TestHPCCFollowsTheWorkedTrace(t *testing.T) {
	h := newTestHPCC(t)
	for i, x := range trace {
		feed(h, i, 0, 0, hundredGig.Range)
		if !near(h.u, x.u, 1e-6) || !near(h.Window(), x.w, 1e-6) || !near(h.ref, x.wc, 1e-6) {
			t.Errorf("row %d: U %.6f W %.3f Wc %.3f, want %.6f %.3f %.3f", i+1, h.u, h.Window(), h.ref, x.u, x.w, x.wc)
		}
		if !near(h.Rate(), h.Window()*8e9/13000, 1e-12) {
			t.Errorf("row %d: R %.0f is not W/T", i+1, h.Rate())
		}
	}
}

func TestHPCCVariantsFollowTheWorkedTrace(t *testing.T) {
	for _, c := range []struct {
		options []string
		from    int // first row to compare, counted from 1
		what    string
		want    []float64
	}{
		{[]string{"maxStage", "5"}, 9, "W", []float64{75_395.298, 75_475.298, 75_555.298}},
		{[]string{"reaction", "perAck"}, 2, "Wc", []float64{150_746.291, 136_250.033, 119_820.401, 81_745.671, 55_571.620, 37_802.371, 32_727.502}},
		{[]string{"reaction", "perRtt"}, 1, "W", []float64{162_500, 162_500, 162_500, 162_500, 110_834.691, 110_834.691, 75_315.298, 75_315.298}},
	} {
		h := newTestHPCC(t, c.options...)
		for i := range trace {
			feed(h, i, 0, 0, hundredGig.Range)
			k := i + 1 - c.from
			if k < 0 || k >= len(c.want) {
				continue
			}
			got := h.Window()
			if c.what == "Wc" {
				got = h.ref
			}
			if !near(got, c.want[k], 1e-6) {
				t.Errorf("%v, row %d: %s = %.3f, want %.3f", c.options, i+1, c.what, got, c.want[k])
			}
		}
	}
}

// The counters' wrap must not show, wherever in the trace it falls.
func TestHPCCSurvivesWraps(t *testing.T) {
	r := hundredGig.Range
	for _, at := range []uint64{101_000, 110_000, 118_000, 150_000} {
		h := newTestHPCC(t)
		for i, x := range trace {
			feed(h, i, r.TS-at, r.Tx-at*11, r)
			if !near(h.Window(), x.w, 1e-6) {
				t.Errorf("wrap at %d, row %d: W %.3f, want %.3f", at, i+1, h.Window(), x.w)
			}
		}
		if h.resets != 0 {
			t.Errorf("wrap at %d: %d records were discarded", at, h.resets)
		}
	}
}

// Quantised to units of 128 and 80 bytes the windows stay within 0.15 %.
func TestHPCCToleratesTheWireUnits(t *testing.T) {
	h := newTestHPCC(t)
	for i, x := range trace {
		h.OnAck(&Feedback{Now: frame.Time(x.ts), Ack: x.ack, SndNxt: x.sndNxt, Path: path(7, hop(12.5, x.ts, x.tx&^127, x.q/80*80))})
		if !near(h.Window(), x.w, .0015) {
			t.Errorf("row %d: W %.3f, want %.3f", i+1, h.Window(), x.w)
		}
	}
}

func TestHPCCStagesOfIncrease(t *testing.T) {
	h := newTestHPCC(t, "maxStage", "5")
	s := hpccState{ref: 40_000, u: .5}
	for i, want := range []float64{40_080, 40_160, 40_240, 40_320, 40_400, 76_840, 76_920, 77_000} {
		w := h.next(&s)
		h.commit(&s, w, true)
		if !near(w, want, 1e-9) {
			t.Errorf("round %d: W %.3f, want %.3f", i+1, w, want)
		}
		if i == 4 && s.stage != 5 || i == 5 && s.stage != 0 {
			t.Errorf("round %d: stage %d", i+1, s.stage)
		}
	}
}

// Two acknowledgements of one round trip report the same congestion: only
// per-ACK reaction answers it twice.
func TestHPCCDoesNotOverreact(t *testing.T) {
	for reaction, want := range map[string][2]float64{"hpcc": {81_250, 81_250}, "perAck": {81_250, 40_625}, "perRtt": {162_500, 162_500}} {
		h := newTestHPCC(t, "wai", "0", "wmin", "1B", "reaction", reaction)
		h.u = 1.9
		tx := uint64(0)
		h.OnAck(&Feedback{Ack: 1000, SndNxt: 100_000, Path: path(1, hop(12.5, 0, 0, 146_250))})
		for i := range 2 {
			tx += 16_250
			h.OnAck(&Feedback{Now: 1, Ack: 2000, SndNxt: 100_000, Path: path(1, hop(12.5, uint64(i+1)*1300, tx, 146_250))})
			if !near(h.Window(), want[i], 1e-9) {
				t.Errorf("%s, acknowledgement %d: W %.1f, want %.1f (U %.3f)", reaction, i+1, h.Window(), want[i], h.u)
			}
		}
	}
}

func TestHPCCStartsOverOnAnotherPath(t *testing.T) {
	h := newTestHPCC(t)
	for i := range 4 {
		feed(h, i, 0, 0, hundredGig.Range)
	}
	before := h.Window()
	for name, p := range map[string]*inband.Path{
		"another identifier":       path(8, hop(12.5, 105_000, 50, 1000)),
		"more hops":                path(7, hop(12.5, 105_000, 50, 1000), hop(12.5, 105_000, 50, 1000)),
		"time ran back":            path(7, hop(12.5, 103_000, 1_049_000, 1000)),
		"more than the link sends": path(7, hop(12.5, 104_900, 1_080_000, 1000)),
		"no rate":                  path(7, hop(0, 105_000, 1_060_000, 1000)),
	} {
		g := *h
		g.OnAck(&Feedback{Now: 105_000, Ack: 5000, SndNxt: 163_000, Path: p})
		if g.Window() != before || g.resets != 1 {
			t.Errorf("%s: W %.3f after %.3f, %d resets", name, g.Window(), before, g.resets)
		}
		// The next one is compared with the new record.
		next := *p
		for i := range next.N {
			next.Hops[i].Rate, next.Hops[i].TS, next.Hops[i].Tx = 100e9, next.Hops[i].TS+13_000, next.Hops[i].Tx+162_500
		}
		g.OnAck(&Feedback{Now: 118_000, Ack: 6000, SndNxt: 163_000, Path: &next})
		want := 162_500*.95/g.u + 80
		if g.resets != 1 || !near(g.u, 1+1000/162_500., 1e-9) || !near(g.Window(), want, 1e-9) {
			t.Errorf("%s: next U %.6f W %.3f, %d resets", name, g.u, g.Window(), g.resets)
		}
	}
	g := *h
	g.OnAck(&Feedback{Now: 103_900 + 1<<22 + 1, Ack: 5000, SndNxt: 163_000, Path: path(7, hop(12.5, 105_200, 1_065_000, 1000))})
	if g.Window() != before || g.resets != 1 {
		t.Errorf("a record older than a quarter of the range was used")
	}
}

// Acknowledgements without telemetry, or with impossible telemetry, say nothing.
func TestHPCCIgnoresAcksWithoutTelemetry(t *testing.T) {
	h := newTestHPCC(t)
	for i := range 4 {
		feed(h, i, 0, 0, hundredGig.Range)
	}
	before := *h
	h.OnAck(&Feedback{Now: 105_000, Ack: 200_000, SndNxt: 300_000})
	h.OnAck(&Feedback{Now: 105_000, Ack: 200_000, SndNxt: 300_000, Path: &inband.Path{}})
	h.OnAck(&Feedback{Now: 105_000, Ack: 200_000, SndNxt: 300_000, Path: &inband.Path{N: inband.MaxHops + 1}})
	if *h != before {
		t.Error("the state changed")
	}
}

func TestHPCCRateForm(t *testing.T) {
	// The same trace with rates as the state: AI of 80 B per T in bit/s gives
	// the same numbers, the window cut off to whole bytes.
	h := build(t, &hundredGig, "hpcc", "form", "rate", "ai", "49230769bps").(*hpcc)
	for i, x := range trace {
		feed(h, i, 0, 0, hundredGig.Range)
		if !near(h.Rate(), x.w*8e9/13000, 1e-6) || h.Window() != math.Floor(h.Rate()*13000/8e9) {
			t.Errorf("row %d: R %.0f W %.3f, want W %.3f", i+1, h.Rate(), h.Window(), x.w)
		}
	}
	h = build(t, &hundredGig, "hpcc", "form", "rate", "minrate", "1Gbps").(*hpcc)
	h.u, h.ref = 1000, 1e9
	if h.next(&h.hpccState) != 1e9 {
		t.Error("the least rate does not hold")
	}
}

// With one hop a window for each hop is the window of the path; with two the
// lesser counts, and alpha-fair combination of many hops lies below it.
func TestHPCCMultiRate(t *testing.T) {
	one, many := newTestHPCC(t), newTestHPCC(t, "multirate", "true")
	for i := range trace {
		feed(one, i, 0, 0, hundredGig.Range)
		feed(many, i, 0, 0, hundredGig.Range)
		if one.Window() != many.Window() {
			t.Errorf("row %d: %.3f with one window, %.3f with one for each hop", i+1, one.Window(), many.Window())
		}
	}
	run := func(options ...string) float64 {
		h := newTestHPCC(t, append([]string{"multirate", "true"}, options...)...)
		for i, x := range trace {
			h.OnAck(&Feedback{Now: frame.Time(x.ts), Ack: x.ack, SndNxt: x.sndNxt, Path: path(7, hop(12.5, x.ts, x.tx, x.q), hop(50, x.ts, x.tx, 0))})
			if i == 4 {
				return h.Window()
			}
		}
		return 0
	}
	least, fair, hard := run(), run("alpha_fair", "1"), run("alpha_fair", "500")
	if !near(least, 110_834.691, 1e-6) {
		t.Errorf("the lesser window is %.3f", least)
	}
	if want := 1 / (1/least + 1/162_500.); !near(fair, want, 1e-9) {
		t.Errorf("proportionally fair window %.3f, want %.3f", fair, want)
	}
	if !near(hard, least, 1e-3) {
		t.Errorf("for large alpha the window is %.3f, want nearly the least, %.3f", hard, least)
	}
}

func TestHPCCSkipsWhatIsConfigured(t *testing.T) {
	// Between two boundaries nothing is looked at, so row 5 measures from row 1.
	h := newTestHPCC(t, "fast_react", "false")
	for i := range 5 {
		feed(h, i, 0, 0, hundredGig.Range)
		if i < 4 && h.Window() != 162_500 {
			t.Errorf("row %d: W %.3f", i+1, h.Window())
		}
	}
	if want := 40_000/162_500. + 212_500/17_000./12.5; !near(h.u, want, 1e-9) {
		t.Errorf("U %.6f, want %.6f", h.u, want)
	}
	h = newTestHPCC(t, "sample_feedback", "true")
	feed(h, 0, 0, 0, hundredGig.Range)
	before := h.u
	h.OnAck(&Feedback{Now: 101_300, Ack: 2000, SndNxt: 163_000, Path: path(7, hop(12.5, 101_300, 1_016_250, 0))})
	if h.u != before || h.record[0].ts != 100_000 {
		t.Error("an empty hop was looked at between boundaries")
	}
}

func TestHPCCIncreaseByRule(t *testing.T) {
	for _, c := range []struct {
		rate float64
		t    frame.Time
		n    string
		want float64
	}{{100e9, 13000, "100", 81.25}, {100e9, 4000, "16", 156.25}, {100e9, 4000, "100", 25}, {25e9, 9000, "100", 14.0625}} {
		h := build(t, &Env{Rate: c.rate, BaseRTT: c.t}, "hpcc", "n", c.n).(*hpcc)
		if !near(h.add, c.want, 1e-9) {
			t.Errorf("%g bit/s, T %d ns, n %s: W_AI %.4f, want %.4f", c.rate, c.t, c.n, h.add, c.want)
		}
	}
}

// After going back the reference goes on from round trip to round trip: it does
// not wait until all is acknowledged that was sent before the loss.
func TestHPCCReferenceAfterGoingBack(t *testing.T) {
	h := newTestHPCC(t)
	now, tx := frame.Time(0), uint64(0)
	ack := func(at, sent, next uint64) float64 {
		now += 1000
		tx += 12_500 // the link is full
		h.OnAck(&Feedback{Now: now, Ack: at, SndNxt: sent, Next: next, Path: path(1, hop(12.5, uint64(now), tx, 100_000))})
		return h.ref
	}
	ack(1000, 160_000, 0) // the first telemetry
	if before := h.ref; ack(161_000, 320_000, 0) >= before {
		t.Fatal("a queue of 100 KB did not lower the reference")
	}
	before := h.ref
	if ack(162_000, 320_000, 0) != before {
		t.Error("the reference changed within a round trip")
	}
	ack(162_000, 320_000, 162_000) // a NAK: the sender goes back
	if got := ack(163_000, 320_000, 170_000); got >= before {
		t.Errorf("the reference is %.0f, and was %.0f before the sender went back", got, before)
	}
	before = h.ref
	if ack(170_000, 320_000, 180_000) != before {
		t.Error("the reference changed within the round trip of what was sent again")
	}
	if ack(171_000, 320_000, 180_000) >= before {
		t.Error("the reference stands still behind it")
	}
}
