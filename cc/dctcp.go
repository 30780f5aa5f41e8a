package cc

import (
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/options"
)

func init() {
	Register(Info{
		Name:  "dctcp",
		Title: "DCTCP without slow start, paced at window/T",
		Paper: "Alizadeh et al., Data Center TCP, SIGCOMM 2010; RFC 8257",
		Cite:  "DCTCP, SIGCOMM 2010",
		Kind:  "rate+window",
		Needs: feature.EchoedMarks,
		Params: []options.Param{
			{Name: "g", Unit: options.Number, Default: "0.0625", Min: 1e-9, Max: 1, Source: "RFC 8257 (1/16)", Doc: "weight of the newest window in alpha"},
			{Name: "alpha0", Unit: options.Number, Default: "1", Max: 1, Source: "RFC 8257", Doc: "alpha at the start"},
			{Name: "ai", Unit: options.Bytes, Default: "= payload of a frame", Max: 1e12, Source: "RFC 5681 section 3.1", Doc: "growth of the window in each round trip"},
			{Name: "ai_rate", Unit: options.Rate, Default: "= ai/T", Max: 1e13, Source: "authors' HPCC simulator, DCTCP_RATE_AI (615Mbps)", Doc: "growth of the rate in each round trip; takes the place of ai"},
			{Name: "fraction", Unit: options.Choice, Default: "bytes", Choices: []string{"bytes", "inflight"}, Source: "RFC 8257; inflight: authors' HPCC simulator",
				Doc: "marked share of a window: marked bytes of those acknowledged, or marked acknowledgements of the frames that were in flight at its start"},
			{Name: "loss", Unit: options.Choice, Default: "halve", Choices: []string{"halve", "none"}, Source: "RFC 8257; none: authors' HPCC simulator",
				Doc: "answer to a loss: half the window, one frame after a timeout; or none"},
			{Name: "initial", Unit: options.Bytes, Default: "= line rate*T", Min: 1, Max: 1e12, Source: "HPCC section 5.1", Doc: "window at the start"},
			minRateParam(""),
		},
		New: newDCTCP,
	})
}

type dctcpConfig struct {
	g, alpha0, ai, aiRate, initial, least float64
	inflight, halve                       bool
}

func newDCTCP(p options.Values) (func(*Env) Algorithm, error) {
	c := &dctcpConfig{
		g: p.Float("g"), alpha0: p.Float("alpha0"), ai: p.Float("ai"), aiRate: p.Float("ai_rate"),
		initial: p.Float("initial"), least: p.Float("minrate"),
		inflight: p.Choice("fraction") == "inflight", halve: p.Choice("loss") == "halve",
	}
	return func(env *Env) Algorithm {
		d := &dctcp{cfg: c}
		d.Reset(env)
		return d
	}, nil
}

// dctcp is the state of one queue pair. The window is kept as the rate that
// sends it in T.
type dctcp struct {
	cfg    *dctcpConfig
	rate   float64 // bit/s
	win    float64
	alpha  float64
	marked float64 // of the present window: bytes, or acknowledgements
	total  float64 // bytes acknowledged, or frames that were in flight
	end    uint64  // the window's end
	cwr    bool    // reduced: not again before cwrEnd is passed
	cwrEnd uint64
	sndNxt uint64

	line, t, add, least, payload float64
}

// Reset implements Resetter.
func (d *dctcp) Reset(env *Env) {
	c := d.cfg
	*d = dctcp{cfg: c, line: env.Rate, t: float64(max(env.BaseRTT, 1)), alpha: c.alpha0, payload: float64(max(env.Payload, 1))}
	d.least = minRate(c.least, d.line)
	d.add = options.Or(c.aiRate, options.Or(c.ai, d.payload)*8e9/d.t)
	d.set(options.Or(c.initial*8e9/d.t, d.line))
}

func (d *dctcp) set(rate float64) {
	d.rate = min(max(rate, d.least), d.line)
	d.win = windowOf(d.rate, d.t)
}

// OnAck implements Algorithm.
func (d *dctcp) OnAck(f *Feedback) {
	c := d.cfg
	d.sndNxt = max(d.sndNxt, f.SndNxt)
	switch {
	case c.inflight && f.CE:
		d.marked++
	case !c.inflight:
		d.total += float64(f.Newly)
		if f.CE {
			d.marked += float64(f.Newly)
		}
	}
	round := f.Ack > d.end
	if round {
		d.close(f)
	}
	if d.cwr && f.Ack > d.cwrEnd {
		d.cwr = false
	}
	if f.CE && !d.cwr {
		d.reduce(d.rate * (1 - float64(d.alpha/2)))
	}
	if round && !d.cwr {
		d.set(d.rate + d.add)
	}
}

// close ends a window and takes its marked share into alpha. The very first
// acknowledgement only begins one.
func (d *dctcp) close(f *Feedback) {
	if d.end != 0 && d.total > 0 {
		share := min(d.marked/d.total, 1)
		d.alpha += float64(d.cfg.g * (share - d.alpha))
	}
	if d.end != 0 || !d.cfg.inflight {
		d.marked = 0
	}
	d.total = 0
	if d.cfg.inflight {
		first := f.Ack
		if d.end == 0 {
			first = 0
		}
		d.total = float64(uint64(float64(f.SndNxt-min(first, f.SndNxt))/d.payload)) + 1
	}
	d.end = max(f.SndNxt, d.end, 1)
}

// reduce cuts once for all that is in flight now.
func (d *dctcp) reduce(rate float64) {
	d.set(rate)
	d.cwr, d.cwrEnd = true, d.sndNxt
}

// OnLoss implements Algorithm.
func (d *dctcp) OnLoss(_ frame.Time, why Loss) {
	switch {
	case !d.cfg.halve:
	case why == LossTimeout:
		d.reduce(d.payload * 8e9 / d.t)
	case !d.cwr:
		d.reduce(d.rate / 2)
	}
}

func (d *dctcp) OnCNP(frame.Time)          {}
func (d *dctcp) OnSend(frame.Time, uint32) {}
func (d *dctcp) OnTimer(frame.Time)        {}
func (d *dctcp) Timer() frame.Time         { return frame.Never }
func (d *dctcp) Rate() float64             { return d.rate }
func (d *dctcp) Window() float64           { return d.win }

// Inspect implements Inspector.
func (d *dctcp) Inspect(yield func(string, float64)) {
	yield("W", d.win)
	yield("R", d.rate)
	yield("alpha", d.alpha)
}
