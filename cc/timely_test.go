package cc

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

var tenGig = Env{Rate: 10e9, BaseRTT: 20 * frame.Microsecond, MTU: 1048, Payload: 1000}

// timelyAt is TIMELY with the options of its worked examples: RTTs are given
// net of serialisation, one completion in each minimum RTT, increase allowed.
func timelyAt(t testing.TB, mbps string, options ...string) *timely {
	return build(t, &tenGig, "timely", append([]string{"initial", mbps + "Mbps", "delta", "10Mbps", "minrate", "1Mbps", "scale", "false", "gate", "0", "serialization", "keep"}, options...)...).(*timely)
}

// rates feeds RTTs in us and returns the rate in Mbit/s after each.
func (t *timely) rates(us ...float64) []float64 {
	out := make([]float64, len(us))
	for i, rtt := range us {
		t.OnAck(&Feedback{Newly: 1, RTT: frame.Time(math.Round(rtt * 1000)), Bytes: 16_000})
		out[i] = t.Rate() / 1e6
	}
	return out
}

func checkRates(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	for i := range want {
		if math.Abs(got[i]-want[i]) > tolerance {
			t.Errorf("%s, sample %d: %.4f Mb/s, want %.4f", what, i+1, got[i], want[i])
		}
	}
}

func TestTimelyTakesSerializationOffTheRTT(t *testing.T) {
	for _, c := range []struct {
		rtt    frame.Time
		bytes  uint32
		pacer  string
		wantNs float64
	}{
		{104_200, 64_000, "10Gbps", 53_000},
		{104_200, 65_536, "10Gbps", 51_771.2},
		{800_000, 64_000, "700Mbps", 68_571.4},
	} {
		a := build(t, &tenGig, "timely", "burst_rate", c.pacer).(*timely)
		if got := a.netRTT(&Feedback{RTT: c.rtt, Bytes: c.bytes}); math.Abs(got-c.wantNs) > 1 {
			t.Errorf("%d ns, %d bytes at %s: %.1f ns, want %.1f", c.rtt, c.bytes, c.pacer, got, c.wantNs)
		}
	}
}

// The weight of the newest difference is that of frames or of bursts, unless it is given.
func TestTimelyWeighsBurstsLess(t *testing.T) {
	bursts := tenGig
	bursts.Segment = 16_000
	for _, c := range []struct {
		env     *Env
		options []string
		want    float64
	}{
		{&tenGig, nil, 0.875},
		{&bursts, nil, 0.04},
		{&bursts, []string{"alpha", "0.5"}, 0.5},
	} {
		if got := build(t, c.env, "timely", c.options...).(*timely).alpha; got != c.want {
			t.Errorf("segments of %d bytes, options %v: alpha %v, want %v", c.env.Segment, c.options, got, c.want)
		}
	}
}

// vectorA visits all branches: rising, constant, low, high, falling.
var vectorA = []float64{100, 110, 105, 105, 105, 105, 105, 105, 40, 600, 490, 500, 50}

func TestTimelyFollowsTheWorkedTrace(t *testing.T) {
	a := timelyAt(t, "1000", "alpha", "0.875")
	diffs := []float64{8.75, -3.28125, -0.410156, -0.051270, -0.006409, -0.000801, -0.000100, -56.875013, 482.890623, -35.888672, 4.263916, -393.217011}
	var got []float64
	for i, rtt := range vectorA {
		r := a.rates(rtt)[0]
		if i == 0 {
			if r != 1000 {
				t.Errorf("the first sample changed the rate to %.4f", r)
			}
			continue
		}
		got = append(got, r)
		if d := a.diff / 1000; math.Abs(d-diffs[i-1]) > 1e-4 {
			t.Errorf("sample %d: difference %.6f us, want %.6f", i, d, diffs[i-1])
		}
	}
	checkRates(t, "alpha .875", got, []float64{650, 660, 670, 680, 690, 740, 790, 800, 693.3333, 703.3333, 583.3752, 593.3752}, 1e-4)
}

func TestTimelyVariantsFollowTheWorkedTrace(t *testing.T) {
	checkRates(t, "hai below tlow", timelyAt(t, "1000", "hai", "below").rates(vectorA...)[8:], []float64{840, 728, 738, 612.1292, 622.1292}, 1e-4)
	checkRates(t, "alpha .04", timelyAt(t, "1000", "alpha", "0.04").rates(vectorA...)[1:],
		[]float64{984, 976.7578, 969.8564, 963.2779, 957.0053, 951.0229, 945.3157, 955.3157, 827.9403, 336.4559, 139.3337, 149.3337}, 1e-4)
	checkRates(t, "hai off", timelyAt(t, "1000", "hai", "off").rates(vectorA...)[1:], []float64{650, 660, 670, 680, 690, 700, 710, 720}, 1e-4)
	// A dead band ends the streak of a difference that only decays.
	checkRates(t, "dead band", timelyAt(t, "1000", "deadband", "100ns").rates(vectorA...)[1:], []float64{650, 660, 670, 680, 690, 700, 710}, 1e-4)
}

func TestTimelySingleSteps(t *testing.T) {
	for _, c := range []struct{ prev, diff, rtt, wantDiff, want float64 }{
		{60, 0, 80, 17.5, 3000}, {60, 0, 600, 472.5, 8666.6667}, {60, 17.5, 58, .4375, 9825},
	} {
		a := timelyAt(t, "10000")
		a.seeded, a.prev, a.diff = true, c.prev*1000, c.diff*1000
		got := a.rates(c.rtt)[0]
		if math.Abs(got-c.want) > 1e-3 || math.Abs(a.diff/1000-c.wantDiff) > 1e-9 {
			t.Errorf("rtt %.0f after %.0f: %.4f Mb/s, difference %.4f; want %.4f, %.4f", c.rtt, c.prev, got, a.diff/1000, c.want, c.wantDiff)
		}
	}
}

func TestTimelyClampsOneDecrease(t *testing.T) {
	checkRates(t, "clamp", timelyAt(t, "1000").rates(60, 200, 200, 120), []float64{1000, 200, 77.5, 87.5}, 1e-9)
	checkRates(t, "no floor", timelyAt(t, "1000", "fmin", "0").rates(60, 200), []float64{1000, 1}, 1e-9)
}

// However long the round trips, the rate is at least 100 Mb/s, and a hundredth of that of a
// slow link: from less it would take a burst of 16 kB at 1 Mb/s, 128 ms, to grow again.
func TestTimelyLeastRate(t *testing.T) {
	for rate, want := range map[uint64]float64{10e9: 100, 100e9: 100, 1e9: 10} {
		env := tenGig
		env.Rate = float64(rate)
		a := build(t, &env, "timely").(*timely)
		var got float64
		for range 50 {
			got = a.rates(50_000)[0]
		}
		if got != want {
			t.Errorf("at %d bit/s: %g Mb/s, want %g", rate, got, want)
		}
	}
}

func TestTimelyThresholds(t *testing.T) {
	checkRates(t, "above thigh", timelyAt(t, "1000").rates(1000, 1000, 2000, 5000), []float64{1000, 600, 240, 67.2}, 1e-9)
	// A threshold itself is in the gradient zone.
	checkRates(t, "thigh, flat", timelyAt(t, "1000").rates(500, 500), []float64{1000, 1010}, 1e-9)
	checkRates(t, "tlow, rising", timelyAt(t, "1000").rates(49, 50), []float64{1000, 1000 * (1 - .8*.875/20)}, 1e-9)
	// The averaged RTT lags: one spike does not reach the threshold.
	a := timelyAt(t, "1000", "thigh_rtt", "average", "alpha", "0.1")
	if a.rates(100, 600); a.avg != 150_000 || a.Rate() == 1000e6*(1-.8*(1-500./600)) {
		t.Errorf("average %.0f ns, rate %.1f", a.avg, a.Rate())
	}
	// One threshold and no gradient.
	checkRates(t, "queue size", timelyAt(t, "1000", "mode", "queue", "target", "100us").rates(80, 90, 200), []float64{1000, 1010, 1010 * .6}, 1e-9)
}

// The mode patched: between gradients of -1/4 and 1/4 the weight moves from
// pure increase to pure decrease towards rtt_ref.
func TestTimelyPatched(t *testing.T) {
	checkRates(t, "flat above the reference", timelyAt(t, "1000", "mode", "patched").rates(100, 100), []float64{1000, 5 + 1000*(1-.008*.5*1)}, 1e-9)
	checkRates(t, "rising", timelyAt(t, "1000", "mode", "patched").rates(80, 100), []float64{1000, 1000 * (1 - .008*1)}, 1e-9)
	checkRates(t, "falling", timelyAt(t, "1000", "mode", "patched").rates(120, 100), []float64{1000, 1010}, 1e-9)
	checkRates(t, "at the reference", timelyAt(t, "1000", "mode", "patched", "rtt_ref", "100us").rates(100, 100), []float64{1000, 1005}, 1e-9)
}

func TestTimelyCapAndGate(t *testing.T) {
	checkRates(t, "cap", timelyAt(t, "9995").rates(30, 30, 30), []float64{9995, 10_000, 10_000}, 1e-9)
	for _, c := range []struct{ sending, rtt, want float64 }{
		{700, 30, 1000}, {801, 30, 1010}, {800, 30, 1000}, {700, 1000, 600},
	} {
		a := timelyAt(t, "1000", "gate", "0.8")
		a.rates(c.rtt)
		a.meter = sendMeter{running: true, measured: c.sending * 1e6, against: 1000e6, allowed: 1000e6}
		if got := a.rates(c.rtt)[0]; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("sending %.0f of 1000 Mb/s, RTT %.0f us: %.4f, want %.4f", c.sending, c.rtt, got, c.want)
		}
	}
}

// The meter itself: a paced flow measures its rate, one with pauses less.
func TestTimelyMeasuresWhatIsSent(t *testing.T) {
	for _, share := range []float64{1, .7, .3} {
		a := timelyAt(t, "1000", "gate", "0.8")
		a.prev = 30_000
		gap := frame.Time(1000 * 8 / share) // 1000 bytes at 1 Gb/s
		for i := range frame.Time(200) {
			a.OnSend(i*gap, 1000)
		}
		if got := a.meter.measured / 1e9; math.Abs(got-share) > 1e-3 {
			t.Errorf("sending %.2f Gb/s measures %.4f", share, got)
		}
		if a.meter.above(.8, a.rate) != (share > .8) {
			t.Errorf("sending %.2f: the gate is wrong", share)
		}
	}
	a := timelyAt(t, "1000", "gate", "0.8")
	a.rates(100)
	a.OnSend(0, 1000)
	a.OnSend(1_000_000, 1000) // a millisecond later
	if a.rates(400)[0] != 1000 || a.diff != 0 || a.prev != 400_000 {
		t.Error("the first RTT after a pause was compared with the one before")
	}
}

// Between two segments of 64 kB at 200 Mb/s lie 2.6 ms: the flow is not idle,
// and its rate is measured over whole segments.
func TestTimelyIsNotIdleBetweenSegments(t *testing.T) {
	env := tenGig
	env.Segment = 64_000
	a := build(t, &env, "timely", "initial", "200Mbps", "delta", "10Mbps", "alpha", "0.875").(*timely)
	for i := range frame.Time(8) {
		for k := range frame.Time(64) {
			a.OnSend(i*2560_000+k*800, 1000)
		}
		a.OnAck(&Feedback{Newly: 64_000, RTT: (101 + 5*i) * frame.Microsecond, Bytes: 64_000})
	}
	if a.Rate() >= 200e6 || a.diff <= 0 {
		t.Errorf("rate %.0f after round trips that grew: every segment passed for the first after a pause", a.Rate())
	}
	steady := build(t, &env, "timely", "initial", "200Mbps").(*timely)
	for i := range frame.Time(512) {
		steady.OnSend(i/64*2560_000+i%64*800, 1000)
	}
	if m := steady.meter.measured / 1e6; math.Abs(m-200) > 1 {
		t.Errorf("measured %.1f Mb/s of 200", m)
	}
}

func TestTimelyScalesByCompletions(t *testing.T) {
	for _, c := range []struct{ bytes, mbps, want float64 }{
		{4000, 10_000, 6.25}, {16_000, 10_000, 1.5625}, {16_000, 500, 1}, {64_000, 10_000, 1},
	} {
		a := timelyAt(t, "1000", "scale", "true")
		a.rate = c.mbps * 1e6
		if got := a.completionsPerRTT(c.bytes); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%.0f bytes at %.0f Mb/s: n = %.4f, want %.4f", c.bytes, c.mbps, got, c.want)
		}
	}
	a := timelyAt(t, "5000", "scale", "true") // n = 20 us * 5 Gb/s / 4000 B = 3.125
	a.sample(30_000, 4000)
	if a.sample(30_000, 4000); !near(a.rate, 5003.2e6, 1e-12) {
		t.Errorf("increase to %.1f, want 5003.2 Mb/s", a.rate/1e6)
	}
	a = timelyAt(t, "5000", "scale", "true")
	a.sample(100_000, 4000)
	if a.sample(1000_000, 4000); !near(a.rate, 5000e6*(1-.8/3.125*.5), 1e-12) {
		t.Errorf("decrease to %.1f", a.rate/1e6)
	}
}

// One update for each window of packets, as HPCC's simulator has it.
func TestTimelyPerWindow(t *testing.T) {
	a := timelyAt(t, "1000", "update", "window", "hai", "increase", "fmin", "0", "minrate", "1Mbps")
	ack := func(ack, nxt uint64, us frame.Time) float64 {
		a.OnAck(&Feedback{Ack: ack, SndNxt: nxt, Newly: 1000, RTT: us * 1000, Bytes: 1056})
		return a.Rate() / 1e6
	}
	if ack(1000, 10_000, 60) != 1000 || ack(2000, 11_000, 100) != 1000 || ack(10_000, 20_000, 200) != 1000 {
		t.Fatal("the rate changed within the first window")
	}
	end := uint64(10_000)
	for i, want := range []float64{1010, 1020, 1030, 1040, 1050, 1100, 1150} { // five plain increases, then hyperactive
		if got := ack(end+1, end+10_000, 40); math.Abs(got-want) > 1e-6 {
			t.Errorf("window %d: %.3f, want %.3f", i+1, got, want)
		}
		end += 10_000
	}
	if got := ack(end+1, end+10_000, 1000); math.Abs(got-1150*.6) > 1e-6 {
		t.Errorf("above thigh: %.3f", got)
	}
	end += 10_000
	if got := ack(end+1, end+10_000, 40); math.Abs(got-(1150*.6+10)) > 1e-6 {
		t.Errorf("after a decrease the hyperactive increase goes on: %.3f", got)
	}
}

func TestTimelySegments(t *testing.T) {
	a := timelyAt(t, "1000", "segment", "16kB", "idle", "0")
	n := 0
	for range 160 { // ten segments of sixteen frames; the first seeds
		before := a.Rate()
		a.OnAck(&Feedback{Newly: 1000, RTT: 30_000, Bytes: 1048})
		if a.Rate() != before {
			n++
		}
	}
	if n != 9 {
		t.Errorf("%d updates, want 9", n)
	}
}

// Two flows on one path see the same gradient: the decrease is proportional
// to the rate and the increase is not, so they become equal.
func TestTimelyConvergesToFairness(t *testing.T) {
	a, b := timelyAt(t, "800"), timelyAt(t, "200")
	jain := func() float64 {
		x, y := a.rate, b.rate
		return (x + y) * (x + y) / (2 * (x*x + y*y))
	}
	last := jain()
	for range 20 {
		for _, f := range []*timely{a, b} {
			// One gradient of 0.25 from a flat average, then ten falling slowly
			// in runs of less than five.
			f.seeded, f.prev, f.diff, f.streak = true, 100_000, 0, 0
			f.sample(100_000+5000/.875, 16_000)
			for i := range 10 {
				f.diff, f.prev = 0, 100_000
				if i%4 == 3 {
					f.streak = 0
				}
				f.sample(100_000, 16_000)
			}
		}
		if j := jain(); j < last {
			t.Fatalf("Jain's index fell from %.6f to %.6f", last, j)
		} else {
			last = j
		}
	}
	if last < .99 || math.Abs(a.rate/1e6-503.5) > .1 || math.Abs(b.rate/1e6-496.5) > .1 {
		t.Errorf("Jain's index %.5f at %.1f and %.1f Mb/s", last, a.rate/1e6, b.rate/1e6)
	}
}

// Times may be scaled together, and nothing makes a rate leave its range.
func TestTimelyScaleInvariance(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.SampledFrom([]float64{2, 4, 16, 1024}).Draw(rt, "s") // powers of two keep the arithmetic exact
		rtts := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 200).Draw(rt, "rtts")
		mode := rapid.SampledFrom([]string{"gradient", "patched", "queue"}).Draw(rt, "mode")
		hai := rapid.SampledFrom([]string{"gradient", "below", "increase", "off"}).Draw(rt, "hai")
		a := timelyAt(t, "1000", "mode", mode, "hai", hai)
		c := *a.cfg
		c.tlow, c.thigh, c.minRTT, c.rttRef = c.tlow*s, c.thigh*s, c.minRTT*s, c.rttRef*s
		b := *a
		b.cfg = &c
		for i, rtt := range rtts {
			a.sample(rtt*1000, 16_000)
			b.sample(rtt*1000*s, 16_000)
			if a.rate != b.rate {
				rt.Fatalf("sample %d: %g and %g", i, a.rate, b.rate)
			}
			if !(a.rate >= a.least && a.rate <= a.line) {
				rt.Fatalf("sample %d: rate %g is not in [%g, %g]", i, a.rate, a.least, a.line)
			}
		}
	})
}

// By one-way delay the RTT does not count, unless nothing else is known.
func TestTimelyByOneWayDelay(t *testing.T) {
	for _, c := range []struct {
		delay       string
		oneWay      frame.Time
		first, last float64 // us of RTT
		grows       bool
	}{
		{"round-trip", 10_000, 100, 900, false},
		{"one-way", 10_000, 100, 900, true},
		{"one-way", 900_000, 20, 20, false},
		{"one-way", 0, 100, 900, false},
		{"one-way", 0, 20, 20, true},
	} {
		a := timelyAt(t, "1000", "delay", c.delay)
		for i := range 10 {
			rtt := c.first
			if i > 0 {
				rtt = c.last
			}
			a.OnAck(&Feedback{Newly: 1, RTT: frame.Time(rtt * 1000), OneWay: c.oneWay, Bytes: 16_000})
		}
		if grows := a.Rate() > 1000e6; grows != c.grows {
			t.Errorf("%+v: %.0f Mb/s", c, a.Rate()/1e6)
		}
	}
}
