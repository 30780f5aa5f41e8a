package cc

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	inband "gswitch/int"
)

// unsound says what is wrong with what an algorithm decided.
func unsound(a Algorithm, env *Env) string {
	r, w := a.Rate(), a.Window()
	switch {
	case !(r > 0 && r <= env.Rate):
		return fmt.Sprintf("rate %g is not in (0, %g]", r, env.Rate)
	case math.IsNaN(w) || w < 0 || math.IsInf(w, 0):
		return fmt.Sprintf("window %g", w)
	}
	return ""
}

// torment gives an algorithm n calls with arbitrary, mostly impossible
// feedback, and returns what was wrong after one of them.
func torment(a Algorithm, seed uint64, n int) string {
	rnd := frame.NewRand(seed)
	any64 := func() uint64 { return rnd.Uint64() >> (rnd.Uint32n(64)) }
	now := frame.Time(0)
	var p inband.Path
	for range n {
		now += frame.Time(any64() >> 30)
		switch rnd.Uint32n(8) {
		case 0:
			a.OnCNP(now)
		case 1:
			a.OnLoss(now, Loss(rnd.Uint32n(2)))
		case 2:
			a.OnSend(now, uint32(any64()))
		case 3:
			a.OnTimer(now)
		default:
			f := Feedback{Now: now, Ack: any64(), SndNxt: any64(), Newly: uint32(any64()), RTT: frame.Time(any64() >> 1), Bytes: uint32(any64()),
				CE: rnd.Uint32n(2) == 0, NAK: rnd.Uint32n(4) == 0}
			if rnd.Uint32n(4) != 0 {
				p.ID, p.N = uint16(rnd.Uint32n(2)), int(rnd.Uint32n(inband.MaxHops+3))-1
				for i := range p.Hops {
					h := &p.Hops[i]
					if rnd.Uint32n(4) == 0 {
						*h = inband.Hop{Rate: any64(), TS: any64(), Tx: any64(), Q: any64()}
					} else {
						h.Rate, h.TS, h.Tx, h.Q = 100e9, h.TS+uint64(rnd.Uint32n(5000)), h.Tx+uint64(rnd.Uint32n(50_000)), uint64(rnd.Uint32n(1<<20))
					}
				}
				f.Path = &p
			}
			a.OnAck(&f)
		}
		if w := a.Window(); !(a.Rate() > 0) || !(w >= 0) || math.IsInf(w, 0) {
			return fmt.Sprintf("rate %g, window %g", a.Rate(), w)
		}
	}
	return ""
}

// Whatever arrives, rate and window stay numbers within their bounds.
func TestArbitraryFeedbackGivesSoundRates(t *testing.T) {
	// Every algorithm as it is by default; these with options, too.
	more := map[string][][]string{
		"hpcc":   {{"reaction", "perAck"}, {"multirate", "true"}, {"multirate", "true", "alpha_fair", "3"}, {"form", "rate"}, {"sample_feedback", "true"}, {"wai", "0"}, {"maxStage", "5"}},
		"timely": {{"mode", "patched"}, {"mode", "queue"}, {"update", "window", "hai", "increase", "fmin", "0"}, {"segment", "16kB"}},
		"dcqcn":  {{"cut", "immediate", "byte_counter", "10MB"}},
		"dctcp":  {{"fraction", "inflight"}},
		"aimd":   {{"ecn", "true", "pace", "true"}},
	}
	envs := []Env{hundredGig, {Rate: 1e6, BaseRTT: frame.Second, MTU: 64, Payload: 1}, {Rate: 800e9, BaseRTT: 1, MTU: 9000, Payload: 8900}}
	for _, name := range Names() {
		for _, options := range append([][]string{nil}, more[name]...) {
			for i := range envs {
				for seed := range uint64(30) {
					a := build(t, &envs[i], name, options...)
					if why := torment(a, seed, 300); why != "" {
						t.Errorf("%s %v, seed %d: %s", name, options, seed, why)
					} else if why := unsound(a, &envs[i]); why != "" {
						t.Errorf("%s %v, seed %d: %s", name, options, seed, why)
					}
				}
			}
		}
	}
}

// drawTrace is a plausible run over one hop.
func drawTrace(rt *rapid.T) (out []Feedback) {
	ts, tx, ack := uint64(0), uint64(0), uint64(0)
	for range rapid.IntRange(2, 60).Draw(rt, "n") {
		dt := uint64(rapid.IntRange(100, 30_000).Draw(rt, "dt"))
		ts += dt
		tx += uint64(rapid.Float64Range(0, 1).Draw(rt, "load") * float64(dt) * 12.5)
		ack += uint64(rapid.IntRange(0, 30_000).Draw(rt, "acked"))
		q := uint64(rapid.IntRange(0, 400_000).Draw(rt, "q"))
		out = append(out, Feedback{Now: frame.Time(ts), Ack: ack, SndNxt: ack + 100_000, Newly: 1000, Path: path(1, hop(12.5, ts, tx, q))})
	}
	return out
}

// The window is a function of reference and U alone: an acknowledgement
// within a round trip that repeats the network's state repeats the window,
// however often it comes.
func TestHPCCWindowIsAFunctionOfReferenceAndU(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newTestHPCC(t)
		for _, f := range drawTrace(rt) {
			before := *h
			h.OnAck(&f)
			if h.nhop == 0 || before.nhop == 0 {
				continue
			}
			if f.Ack <= before.boundary && h.ref != before.ref {
				rt.Fatalf("the reference moved within a round trip")
			}
			s := hpccState{ref: before.ref, u: h.u, stage: before.stage}
			if want := h.next(&s); h.u != before.u && h.Window() != want {
				rt.Fatalf("W %g, want %g from Wc %g and U %g", h.Window(), want, before.ref, h.u)
			}
			// The steady state of this instant, repeated: U and W converge and do not drift.
			g := *h
			g.boundary = math.MaxUint64
			u := .5 + float64(f.Ack%100)/100
			var last float64
			ts, tx := f.Path.Hops[0].TS, f.Path.Hops[0].Tx
			for i := range 50 {
				ts, tx = ts+13_000, tx+uint64(min(u, 1)*162_500)
				g.OnAck(&Feedback{Now: frame.Time(ts), Ack: f.Ack, SndNxt: f.SndNxt, Path: path(1, hop(12.5, ts, tx, uint64(max(u-1, 0)*162_500)))})
				if i > 1 && !near(g.Window(), last, 1e-9) {
					rt.Fatalf("repetition %d moves W from %g to %g", i, last, g.Window())
				}
				last = g.Window()
			}
		}
	})
}

func TestHPCCWindowStaysInItsBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newTestHPCC(t, "maxStage", rapid.SampledFrom([]string{"0", "5"}).Draw(rt, "maxStage"),
			"reaction", rapid.SampledFrom([]string{"hpcc", "perAck", "perRtt"}).Draw(rt, "reaction"))
		for _, f := range drawTrace(rt) {
			h.OnAck(&f)
			if w := h.Window(); w < 80 || w > 162_500 {
				rt.Fatalf("W %g", w)
			}
			if !near(h.Rate(), h.Window()*8e9/13_000, 1e-12) {
				rt.Fatalf("R %g is not W/T for W %g", h.Rate(), h.Window())
			}
		}
	})
}

// Rates divided and times multiplied by one factor leave the windows alone;
// bytes multiplied by a factor multiply them.
func TestHPCCScales(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slow := rapid.SampledFrom([]uint64{1, 8, 100, 1000}).Draw(rt, "slow")
		big := rapid.SampledFrom([]uint64{1, 2, 16}).Draw(rt, "big")
		env := hundredGig
		env.Range = inband.Range{TS: 1 << 50, Tx: 1 << 50}
		a := build(t, &env, "hpcc", "wai", "80B")
		env.Rate *= float64(big) / float64(slow)
		env.BaseRTT *= frame.Time(slow)
		env.MTU *= int(big)
		b := build(t, &env, "hpcc", "wai", fmt.Sprint(80*big)+"B")
		for _, f := range drawTrace(rt) {
			x := f.Path.Hops[0]
			a.OnAck(&f)
			f.Now *= frame.Time(slow)
			f.Path = path(1, inband.Hop{Rate: x.Rate * big / slow, TS: x.TS * slow, Tx: x.Tx * big, Q: x.Q * big})
			b.OnAck(&f)
			if !near(b.Window(), a.Window()*float64(big), 1e-9) || !near(b.Rate(), a.Rate()*float64(big)/float64(slow), 1e-9) {
				rt.Fatalf("W %g and %g, R %g and %g", a.Window(), b.Window(), a.Rate(), b.Rate())
			}
		}
	})
}

// The worst hop decides wherever on the path it is.
func TestHPCCOrderOfHopsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := newTestHPCC(t), newTestHPCC(t)
		n := rapid.IntRange(1, 5).Draw(rt, "hops")
		order := rapid.Permutation([]int{0, 1, 2, 3, 4}[:n]).Draw(rt, "order")
		hops := make([]inband.Hop, n)
		for k := range 20 {
			turned := make([]inband.Hop, n)
			for i := range hops {
				h := &hops[i]
				dt := uint64(rapid.IntRange(100, 10_000).Draw(rt, "dt"))
				h.Rate, h.TS, h.Tx, h.Q = 100e9, h.TS+dt, h.Tx+dt*uint64(rapid.IntRange(1, 12).Draw(rt, "rate")), uint64(rapid.IntRange(0, 1e5).Draw(rt, "q"))
			}
			for i, j := range order {
				turned[i] = hops[j]
			}
			f := Feedback{Now: frame.Time(k), Ack: uint64(k) * 1000, SndNxt: uint64(k)*1000 + 4000}
			f.Path = path(1, hops...)
			a.OnAck(&f)
			f.Path = path(1, turned...)
			b.OnAck(&f)
			if a.Window() != b.Window() {
				rt.Fatalf("W %g in one order and %g in the other", a.Window(), b.Window())
			}
		}
	})
}

// network is the model of HPCC's appendix: flows that cross links.
type network struct {
	capacity []float64
	crosses  [][]bool // by flow and link
	rate     []float64
}

// loads returns the load of each link.
func (n *network) loads() []float64 {
	load := make([]float64, len(n.capacity))
	for j, r := range n.rate {
		for i, c := range n.crosses[j] {
			if c {
				load[i] += r / n.capacity[i]
			}
		}
	}
	return load
}

// worst returns the load of the worst link of a flow.
func (n *network) worst(j int, load []float64) (w float64) {
	for i, c := range n.crosses[j] {
		if c {
			w = max(w, load[i])
		}
	}
	return w
}

// step divides each rate by the load of its worst link and returns the
// largest relative fall.
func (n *network) step() (fall float64) {
	load := n.loads()
	for j := range n.rate {
		w := n.worst(j, load)
		n.rate[j] /= w
		fall = max(fall, 1-1/w)
	}
	return fall
}

// pareto says whether every flow crosses a full link, so that none can grow
// without another's loss.
func (n *network) pareto() bool {
	load := n.loads()
	for j := range n.rate {
		if n.worst(j, load) < 1-1e-6 {
			return false
		}
	}
	return true
}

func randomNetwork(rnd *frame.Rand) *network {
	n := &network{capacity: make([]float64, 1+rnd.Uint32n(6)), crosses: make([][]bool, 1+rnd.Uint32n(8))}
	for i := range n.capacity {
		n.capacity[i] = 1 + 99*rnd.Float64()
	}
	for j := range n.crosses {
		n.crosses[j] = make([]bool, len(n.capacity))
		for i := range n.crosses[j] {
			n.crosses[j][i] = rnd.Uint32n(3) == 0
		}
		n.crosses[j][rnd.Uint32n(uint32(len(n.capacity)))] = true
		n.rate = append(n.rate, .01+200*rnd.Float64())
	}
	return n
}

// The convergence lemma of HPCC's appendix: if each flow divides its rate
// by the load of its worst link, all links are feasible after one step, rates
// never fall after it, and they approach a Pareto optimum. How soon depends on
// the share of a link that flows hold which cannot grow any more: most nets
// are there after 200 steps, not all.
func TestHPCCConvergenceLemma(t *testing.T) {
	rnd := frame.NewRand(11)
	late := 0
	for net := range 1000 {
		n := randomNetwork(&rnd)
		step := 0
		for ; step < 20_000 && !(step > 0 && n.pareto()); step++ {
			if fall := n.step(); step > 0 && fall > 1e-12 {
				t.Fatalf("net %d, step %d: a rate falls by %g", net, step+1, fall)
			}
			for i, l := range n.loads() {
				if l > 1+1e-12 {
					t.Fatalf("net %d, step %d: link %d is loaded %g", net, step+1, i, l)
				}
			}
		}
		if !n.pareto() {
			t.Errorf("net %d is not at a Pareto optimum after %d steps", net, step)
		}
		if step > 200 {
			late++
		}
	}
	if late > 10 {
		t.Errorf("%d of 1000 nets took more than 200 steps", late)
	}
}

// The lemma's third part, "after as many steps as there are links", does not
// hold: here a flow shares a link with two that are frozen by others, and
// halves its distance with each step.
func TestHPCCConvergesGeometricallyBesideFrozenFlows(t *testing.T) {
	n := &network{
		capacity: []float64{9.5, 9.5, 38},
		crosses:  [][]bool{{true, true, true}, {true, false, false}, {false, true, false}, {false, false, true}},
		rate:     []float64{9.5, 9.5, 4, 10},
	}
	for i, want := range []float64{2.815, 3.535, 4.053, 4.374, 4.554} {
		n.step()
		if got := n.rate[2]; math.Abs(got-want) > 5e-4 {
			t.Errorf("step %d: %.4f, want %.3f", i+1, got, want)
		}
	}
}
