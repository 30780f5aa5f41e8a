package cc

import (
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/options"
)

func init() {
	Register(Info{
		Name:  "aimd",
		Title: "TCP's additive increase and multiplicative decrease, without slow start",
		Paper: "Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018; RFC 5681",
		Cite:  "IRN, SIGCOMM 2018",
		Kind:  "window",
		Needs: feature.Losses,
		Params: aimdParams(map[string]string{"slow_start": "false", "initial": "= line rate*T",
			"source": "IRN: flows start at line rate"}),
		New: newAIMD,
	})
	Register(Info{
		Name:  "newreno",
		Title: "TCP NewReno: slow start, then a frame more each round trip",
		Paper: "RFC 5681, RFC 6582, RFC 6928",
		Cite:  "RFC 6582",
		Kind:  "window",
		Needs: feature.Losses,
		Params: aimdParams(map[string]string{"slow_start": "true", "initial": "= 10 frames, at most 14600B",
			"source": "RFC 6928 section 2"}),
		New: newAIMD,
	})
}

// aimdParams describes the options that both have, with their own start.
func aimdParams(start map[string]string) []options.Param {
	return []options.Param{
		{Name: "slow_start", Unit: options.Flag, Default: start["slow_start"], Source: "RFC 5681 section 3.1", Doc: "double the window each round trip until the first loss"},
		{Name: "initial", Unit: options.Bytes, Default: start["initial"], Min: 1, Max: 1e12, Source: start["source"], Doc: "window at the start"},
		{Name: "increase", Unit: options.Number, Default: "1", Min: 1e-6, Max: 1e6, Source: "RFC 5681 section 3.1", Doc: "frames by which the window grows in each round trip"},
		{Name: "decrease", Unit: options.Number, Default: "0.5", Min: 0.01, Max: 1, Source: "RFC 5681 section 3.2", Doc: "factor of the window after a loss"},
		{Name: "abc_limit", Unit: options.Number, Default: "2", Min: 1, Max: 1e6, Source: "RFC 3465 sections 2.2 and 2.3", Doc: "frames by which one acknowledgement grows the window in slow start, at most"},
		{Name: "validate", Unit: options.Flag, Default: "true", Source: "RFC 7661", Doc: "grow only while the flow fills its window"},
		{Name: "ecn", Unit: options.Flag, Default: "false", Source: "RFC 3168 section 6.1.2", Doc: "answer a congestion mark as a loss, once for each window"},
		{Name: "pace", Unit: options.Flag, Default: "false", Source: "ours", Doc: "send at window/T instead of in bursts at line rate"},
		{Name: "max", Unit: options.Bytes, Default: "1GB", Min: 1, Max: 1e12, Source: "RFC 7323 section 2.3 (largest TCP window)", Doc: "largest window"},
	}
}

type aimdConfig struct {
	slowStart, validate, ecn, pace           bool
	initial, increase, decrease, limit, most float64
}

func newAIMD(p options.Values) (func(*Env) Algorithm, error) {
	c := &aimdConfig{
		slowStart: p.Flag("slow_start"), validate: p.Flag("validate"), ecn: p.Flag("ecn"), pace: p.Flag("pace"),
		initial: p.Float("initial"), increase: p.Float("increase"), decrease: p.Float("decrease"), limit: p.Float("abc_limit"),
		most: p.Float("max"),
	}
	return func(env *Env) Algorithm {
		a := &aimd{cfg: c}
		a.Reset(env)
		return a
	}, nil
}

// aimd is the state of one queue pair. Which frames to send again is the
// transport's matter; it says once for each recovery episode that there was a
// loss, so the window needs no inflation meanwhile (RFC 6582).
type aimd struct {
	cfg      *aimdConfig
	win      float64 // bytes
	ssthresh float64
	flight   float64 // bytes in flight at the last acknowledgement
	sndNxt   uint64
	cutEnd   uint64 // ecn: no further cut before it is acknowledged

	mss, line, t, rate float64
}

// Reset implements Resetter.
func (a *aimd) Reset(env *Env) {
	c := a.cfg
	*a = aimd{cfg: c, mss: float64(max(env.Payload, 1)), line: env.Rate, t: float64(max(env.BaseRTT, 1))}
	switch {
	case c.slowStart:
		a.ssthresh = c.most
		a.set(options.Or(c.initial, max(min(10*a.mss, 14600), 2*a.mss)))
	default:
		a.set(options.Or(c.initial, env.BDP()))
	}
}

func (a *aimd) set(w float64) {
	a.win = min(max(w, a.mss), max(a.cfg.most, a.mss))
	a.rate = a.line
	if a.cfg.pace {
		a.rate = min(a.win*8e9/a.t, a.line)
	}
}

// OnAck implements Algorithm.
func (a *aimd) OnAck(f *Feedback) {
	c := a.cfg
	a.sndNxt = max(a.sndNxt, f.SndNxt)
	a.flight = float64(f.SndNxt - min(f.Ack, f.SndNxt))
	if c.ecn && f.CE && f.Ack > a.cutEnd {
		a.cut()
		a.cutEnd = a.sndNxt
		return
	}
	if f.Newly == 0 {
		return
	}
	used, newly := a.flight+float64(f.Newly), float64(f.Newly)
	switch slow := a.win < a.ssthresh; {
	case slow && (!c.validate || 2*used >= a.win):
		a.set(min(a.win+min(newly, c.limit*a.mss), max(a.ssthresh, a.win)))
	case !slow && (!c.validate || used+a.mss > a.win):
		a.set(a.win + c.increase*a.mss*newly/a.win)
	}
}

// cut is the decrease, of what was in flight or could have been.
func (a *aimd) cut() {
	a.ssthresh = max(a.win*a.cfg.decrease, 2*a.mss)
	a.set(a.ssthresh)
	if !a.cfg.slowStart {
		a.ssthresh = 0
	}
}

// OnLoss implements Algorithm.
func (a *aimd) OnLoss(_ frame.Time, why Loss) {
	a.cut()
	a.cutEnd = a.sndNxt
	if why == LossTimeout {
		a.set(a.mss)
	}
}

func (a *aimd) OnCNP(frame.Time)          {}
func (a *aimd) OnSend(frame.Time, uint32) {}
func (a *aimd) OnTimer(frame.Time)        {}
func (a *aimd) Timer() frame.Time         { return frame.Never }
func (a *aimd) Rate() float64             { return a.rate }
func (a *aimd) Window() float64           { return a.win }

// Inspect implements Inspector.
func (a *aimd) Inspect(yield func(string, float64)) {
	yield("W", a.win)
	yield("ssthresh", a.ssthresh)
	yield("flight", a.flight)
}
