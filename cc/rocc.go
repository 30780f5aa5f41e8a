package cc

import (
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/options"
)

func init() {
	Register(Info{
		Name:  "rocc",
		Title: "RoCC, by the fair rate that switches work out and send",
		Paper: "Menikkumbura, Congestion Management in Data Center Networks (Purdue 2022), chapter 3; Taheri et al., RoCC, CoNEXT 2020",
		Cite:  "RoCC, CoNEXT 2020",
		Kind:  "rate",
		Needs: feature.FairRates,
		Params: []options.Param{
			{Name: "recovery", Unit: options.Time, Default: "= ten periods of the point that is followed, as its notices give them, at least 400us", Min: 1000, Max: 1e12, Source: "ours: flows with few frames get no notice in every period, and points at slow ports update seldom",
				Doc: "time without a notice after which the rate doubles, and again"},
			windowParam("none"),
		},
		New: newRoCC,
	})
}

// FairRater is an Algorithm that follows rates that switches compute.
type FairRater interface {
	// OnFairRate takes the rate in bit/s that a congestion point allows since
	// its update of the given number, and the time in ns between two updates.
	// Points are distinguished by number.
	OnFairRate(now frame.Time, point uint64, update uint32, rate float64, period frame.Time)
}

type roccConfig struct {
	recovery frame.Time // 0: as the periods are
	window   windowRule
}

func newRoCC(p options.Values) (func(*Env) Algorithm, error) {
	c := &roccConfig{window: windowOption(&p)}
	if p.Set("recovery") {
		c.recovery = p.Time("recovery")
	}
	return func(env *Env) Algorithm {
		r := &rocc{cfg: c}
		r.Reset(env)
		return r
	}, nil
}

// What a sender accepts of a notice, which may be forged by whoever guesses
// what it quotes. Points send no less than a thousandth of their link's rate
// (section 3.5), and their periods are as long as their links are slow: 40 us at
// 40 Gb/s (section 3.5).
const (
	leastPeriod = 40 * frame.Microsecond
	mostPeriod  = 200 * frame.Millisecond // of a link of 8 Mb/s
	leastShare  = 1e-4                    // of the line rate, that a point may send: of a link that is ten times slower
	slowestPort = 64                      // times slower than the own link may be a port whose period is accepted
)

// believed returns the period of a point as far as a sender with the given line
// rate accepts it.
func believed(period frame.Time, line float64) frame.Time {
	longest := frame.Time(float64(leastPeriod) * slowestPort * 40e9 / line)
	return max(leastPeriod, min(period, longest, mostPeriod))
}

// patience returns the time without notices after which a rate doubles that came from a
// point with the given period.
func (c *roccConfig) patience(period frame.Time, line float64) frame.Time {
	if c.recovery > 0 {
		return c.recovery
	}
	return 10 * believed(period, line)
}

// rocc is the reaction point (section 3.3.5): it follows the least rate that any
// congestion point sends, goes with that point's rate up and down, and doubles
// its rate when no notice comes that it would follow.
type rocc struct {
	cfg          *roccConfig
	line, t      float64
	rate         float64 // of the limiter, less than twice the line rate; the line rate without one
	limited      bool
	point        uint64 // that is followed, while limited
	update       uint32 // the last one that came from it
	due          frame.Time
	recoverAfter frame.Time // after which the rate doubles, while limited
	win          float64

	accepted, ignored, switched, doubled uint64
}

// Reset implements Resetter. Flows start at line rate.
func (r *rocc) Reset(env *Env) {
	*r = rocc{cfg: r.cfg, line: env.Rate, t: float64(max(env.BaseRTT, 1)), rate: env.Rate, due: frame.Never}
	r.publish()
}

func (r *rocc) publish() { r.win = r.cfg.window.of(r.Rate(), r.line, r.t) }

// stale is how many updates of a point later a notice of it is taken for one of
// a point that began anew, and not for one that was overtaken: more periods
// than a notice is ever under way.
const stale = 32

// OnFairRate implements FairRater.
func (r *rocc) OnFairRate(now frame.Time, point uint64, update uint32, rate float64, period frame.Time) {
	if r.due <= now {
		r.OnTimer(now)
	}
	rate = max(rate, r.line*leastShare)
	switch {
	case !r.limited && rate >= r.line:
		// A limiter at line rate limits nothing.
		r.ignored++
		return
	case r.limited && rate > r.rate && point != r.point:
		// A less congested point raises no rate, and does not put off the
		// recovery either: the one that is followed may be gone.
		r.ignored++
		return
	case r.limited && point != r.point:
		r.switched++
	case r.limited && int32(update-r.update) < 0 && int32(r.update-update) < stale:
		// What the point said before, overtaken on the way, or said again by
		// somebody else.
		r.ignored++
		return
	}
	r.accepted++
	r.limited, r.rate, r.point, r.update = true, rate, point, update
	r.recoverAfter = r.cfg.patience(period, r.line)
	r.due = now + r.recoverAfter
	r.publish()
}

// OnTimer implements Algorithm: fast recovery. The doubling that crosses the
// line rate is kept for one more period, so that a point that is congested
// still finds the limiter where it was.
func (r *rocc) OnTimer(now frame.Time) {
	for r.due <= now {
		if r.rate > r.line {
			r.limited, r.rate, r.due = false, r.line, frame.Never
			break
		}
		r.doubled++
		r.rate *= 2
		r.due += r.recoverAfter
	}
	r.publish()
}

func (r *rocc) Timer() frame.Time         { return r.due }
func (r *rocc) OnAck(*Feedback)           {}
func (r *rocc) OnCNP(frame.Time)          {}
func (r *rocc) OnLoss(frame.Time, Loss)   {}
func (r *rocc) OnSend(frame.Time, uint32) {}
func (r *rocc) Rate() float64             { return min(r.rate, r.line) }
func (r *rocc) Window() float64           { return r.win }

// Inspect implements Inspector.
func (r *rocc) Inspect(yield func(string, float64)) {
	yield("R", r.rate)
	limited := 0.0
	if r.limited {
		limited = 1
	}
	yield("limited", limited)
	yield("accepted", float64(r.accepted))
	yield("ignored", float64(r.ignored))
	yield("switched", float64(r.switched))
	yield("doubled", float64(r.doubled))
}
