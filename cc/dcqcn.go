package cc

import (
	"fmt"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/options"
)

func init() {
	Register(Info{
		Name:  "dcqcn",
		Title: "DCQCN with the timers that NIC vendors ship",
		Paper: "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015",
		Cite:  "DCQCN, SIGCOMM 2015",
		Kind:  "rate",
		Needs: feature.CNPs | feature.EchoedMarks,
		Params: []options.Param{
			{Name: "ti", Unit: options.Time, Default: "300us", Min: 1000, Max: 1e12, Source: "HPCC section 5.1, vendor default (DCQCN: 55us)",
				Doc: "T_i: time between two rate increases"},
			{Name: "td", Unit: options.Time, Default: "4us", Min: 1000, Max: 1e12, Source: "HPCC section 5.1, vendor default (DCQCN: 50us)",
				Doc: "T_d: time between two rate decreases, at least"},
			{Name: "cut", Unit: options.Choice, Default: "tick", Choices: []string{"tick", "immediate"}, Source: "authors' HPCC simulator; immediate: DCQCN section 3.1",
				Doc: "tick: a timer of period td runs from the first CNP on and cuts if one came since its last expiry. immediate: a CNP cuts when it comes, unless td has not passed since the last cut"},
			{Name: "alpha_timer", Unit: options.Time, Default: "1us", Min: 100, Max: 1e12, Source: "authors' HPCC simulator (DCQCN: 55us)",
				Doc: "period after which alpha is updated"},
			{Name: "g", Unit: options.Number, Default: "0.00390625", Min: 1e-9, Max: 1, Source: "DCQCN section 5 (1/256)", Doc: "weight of the newest period in alpha"},
			{Name: "alpha0", Unit: options.Number, Default: "1", Max: 1, Source: "DCQCN section 3.1", Doc: "alpha at the first CNP"},
			{Name: "f", Unit: options.Count, Default: "1", Max: 1e6, Source: "authors' HPCC simulator (DCQCN: 5)",
				Doc: "F: stages of fast recovery before the target grows"},
			{Name: "byte_counter", Unit: options.Bytes, Default: "0", Max: 1e15, Source: "authors' HPCC simulator (DCQCN: 10MB)",
				Doc: "bytes sent between two rate increases, beside the timer; 0: the timer alone"},
			{Name: "rai", Unit: options.Rate, Default: "= 5Mbps for each 25Gbps of the line rate", Max: 1e13, Source: "authors' HPCC simulator (DCQCN: 40Mbps at 40Gbps)",
				Doc: "R_AI: growth of the target in the additive stage"},
			{Name: "rhai", Unit: options.Rate, Default: "= 50Mbps for each 25Gbps of the line rate", Max: 1e13, Source: "authors' HPCC simulator",
				Doc: "R_HAI: growth of the target in the hyper stage: when timer and byte counter are both beyond F; without byte counter from stage F+2 on"},
			{Name: "clamp", Unit: options.Flag, Default: "false", Source: "authors' HPCC simulator, CLAMP_TARGET_RATE",
				Doc: "true: each cut makes the present rate the target. false: not while no increase came since the last cut"},
			minRateParam(""),
			{Name: "cnp", Unit: options.Choice, Default: "any", Choices: []string{"any", "frame", "ack"}, Source: "ours",
				Doc: "what counts as congestion notification: CNP frames, the mark echoed in acknowledgements, or both"},
			backoffParam(),
			windowParam("none"),
		},
		New: newDCQCN,
	})
	// The hyper stage of the original needs R_HAI, which its paper does not
	// give; 200 Mb/s at 40 Gb/s is what simulations of it use.
	original := map[string]string{"ti": "55us", "td": "50us", "cut": "immediate", "alpha_timer": "55us", "f": "5", "byte_counter": "10MB",
		"rai": "40Mbps", "rhai": "200Mbps", "clamp": "true"}
	preset("dcqcn+win", "dcqcn", "DCQCN with vendor timers and HPCC's window", "HPCC section 5.1", map[string]string{"window": "rate"})
	preset("dcqcn-original", "dcqcn", "DCQCN with the timers and the byte counter of its paper", "DCQCN, as its simulations have it", original)
	preset("dcqcn-vendor", "dcqcn", "DCQCN with vendor timers, T_i 300us and T_d 4us", "HPCC section 5.1, vendor default; authors' HPCC simulator", map[string]string{"ti": "300us", "td": "4us", "cut": "tick", "alpha_timer": "1us"})
}

// dcqcnConfig is what all queue pairs of a factory share.
type dcqcnConfig struct {
	ti, td, ta    frame.Time
	tick          bool
	g, alpha0     float64
	decay         [40]float64 // (1-g)^(2^i)
	f             int
	byteCounter   uint64
	rai, rhai     float64 // NaN: by rule
	clamp         bool
	least         float64
	backoff       float64
	frames, marks bool
	window        windowRule
}

func newDCQCN(p options.Values) (func(*Env) Algorithm, error) {
	c := &dcqcnConfig{
		ti: p.Time("ti"), td: p.Time("td"), ta: p.Time("alpha_timer"), tick: p.Choice("cut") == "tick",
		g: p.Float("g"), alpha0: p.Float("alpha0"), f: p.Int("f"), byteCounter: uint64(p.Float("byte_counter")),
		rai: p.Float("rai"), rhai: p.Float("rhai"), clamp: p.Flag("clamp"), least: p.Float("minrate"), backoff: p.Float("backoff"),
		frames: p.Choice("cnp") != "ack", marks: p.Choice("cnp") != "frame", window: windowOption(&p),
	}
	if c.byteCounter != 0 && c.byteCounter < 1000 {
		return nil, fmt.Errorf("byte_counter: %dB is less than a frame; write 1kB or more, or 0 for none", c.byteCounter)
	}
	d := 1 - c.g
	for i := range c.decay {
		c.decay[i] = d
		d *= d
	}
	return func(env *Env) Algorithm {
		d := &dcqcn{cfg: c}
		d.Reset(env)
		return d
	}, nil
}

// dcqcn is the reaction point of one queue pair. Of the three timers only
// those that can change the rate are ever pending: the increase timer until
// the line rate is reached, the decrease timer while a CNP waits for it.
// Alpha, which only the next cut reads, is brought up to date there.
type dcqcn struct {
	cfg    *dcqcnConfig
	rc, rt float64 // current and target rate, bit/s
	alpha  float64
	win    float64

	active    bool       // the first CNP came
	pending   bool       // a CNP waits for the decrease timer
	marked    bool       // a CNP came in the present alpha period
	alphaNext frame.Time // end of the present alpha period
	cutNext   frame.Time // tick: expiry of the decrease timer; immediate: when the next cut is allowed
	incNext   frame.Time // expiry of the increase timer
	byTime    int        // stages since the last cut, by timer
	byBytes   int        // and by byte counter
	sent      uint64     // bytes since the byte counter's last stage

	line, t, rai, rhai, least float64
}

// Reset implements Resetter. Flows start at line rate.
func (d *dcqcn) Reset(env *Env) {
	c := d.cfg
	*d = dcqcn{cfg: c, line: env.Rate, t: float64(max(env.BaseRTT, 1)), rc: env.Rate, rt: env.Rate, alpha: c.alpha0, incNext: frame.Never}
	d.rai, d.rhai = options.Or(c.rai, 5e6*env.Rate/25e9), options.Or(c.rhai, 50e6*env.Rate/25e9)
	d.least = minRate(c.least, d.line)
	d.publish()
}

func (d *dcqcn) publish() { d.win = d.cfg.window.of(d.rc, d.line, d.t) }

// OnAck implements Algorithm.
func (d *dcqcn) OnAck(f *Feedback) {
	if f.CE && d.cfg.marks {
		d.notify(f.Now)
	}
}

// OnCNP implements Algorithm.
func (d *dcqcn) OnCNP(now frame.Time) {
	if d.cfg.frames {
		d.notify(now)
	}
}

// notify takes a congestion notification.
func (d *dcqcn) notify(now frame.Time) {
	if d.Timer() <= now {
		d.OnTimer(now)
	}
	c := d.cfg
	if !c.tick {
		d.notifyAtOnce(now)
		return
	}
	if !d.active {
		// The first one starts the timers; the decrease timer runs 1 ns
		// behind, so that alpha is always updated before it is used.
		d.active, d.pending = true, true
		d.rt = d.rc
		d.alphaNext, d.cutNext = now+c.ta, now+c.td+1
		return
	}
	d.age(now)
	d.marked = true
	if !d.pending {
		d.pending = true
		if d.cutNext <= now {
			d.cutNext += ((now-d.cutNext)/c.td + 1) * c.td
		}
	}
}

// notifyAtOnce is the algorithm of the paper: cut, raise alpha, start over.
func (d *dcqcn) notifyAtOnce(now frame.Time) {
	c := d.cfg
	if d.active {
		d.age(now)
	}
	d.alphaNext = now + c.ta
	if d.active && now < d.cutNext {
		return
	}
	d.active = true
	d.decrease(now)
	d.alpha = float64((1-c.g)*d.alpha) + c.g
	d.cutNext = now + c.td
}

// age brings alpha up to date: every full period multiplies it by 1-g, one in
// which a CNP came also adds g.
func (d *dcqcn) age(now frame.Time) {
	c := d.cfg
	if now < d.alphaNext {
		return
	}
	k := uint64((now-d.alphaNext)/c.ta) + 1
	d.alphaNext += frame.Time(k) * c.ta
	if d.marked {
		d.alpha = float64((1-c.g)*d.alpha) + c.g
		d.marked = false
		k--
	}
	for i := 0; k != 0 && i < len(c.decay); i, k = i+1, k>>1 {
		if k&1 != 0 {
			d.alpha *= c.decay[i]
		}
	}
}

// decrease cuts the rate and starts the increase over.
func (d *dcqcn) decrease(now frame.Time) { d.cut(now, float64(d.alpha/2)) }

// cut takes a share of the rate.
func (d *dcqcn) cut(now frame.Time, share float64) {
	if d.cfg.clamp || d.byTime != 0 || d.byBytes != 0 {
		d.rt = d.rc
	}
	d.rc = max(d.least, d.rc*(1-share))
	d.byTime, d.byBytes, d.sent = 0, 0, 0
	d.incNext = now + d.cfg.ti
	d.publish()
}

// increase is one stage of the way up: fast recovery halves the distance to
// the target; later stages move the target first.
func (d *dcqcn) increase() {
	c := d.cfg
	stage := max(d.byTime, d.byBytes)
	hyper := stage > c.f+1
	if c.byteCounter != 0 {
		hyper = min(d.byTime, d.byBytes) > c.f
	}
	switch {
	case stage <= c.f:
	case hyper:
		d.rt += d.rhai
	default:
		d.rt += d.rai
	}
	d.rt = min(d.rt, d.line)
	d.rc = float64((d.rc + d.rt) / 2)
	if d.line-d.rc < 1 { // less than a bit per second: arrived
		d.rc = d.line
		d.incNext = frame.Never
	}
	d.publish()
}

// OnSend implements Algorithm.
func (d *dcqcn) OnSend(_ frame.Time, n uint32) {
	c := d.cfg
	if c.byteCounter == 0 || d.incNext == frame.Never {
		return
	}
	for d.sent += uint64(n); d.sent >= c.byteCounter && d.incNext != frame.Never; {
		d.sent -= c.byteCounter
		d.byBytes++
		d.increase()
	}
}

// OnTimer implements Algorithm.
func (d *dcqcn) OnTimer(now frame.Time) {
	for {
		switch next := d.Timer(); {
		case next > now:
			return
		case next == d.incNext:
			d.incNext += d.cfg.ti
			d.byTime++
			d.increase()
		default:
			d.age(next)
			d.pending = false
			d.decrease(next)
			d.cutNext = next + d.cfg.td
		}
	}
}

// Timer implements Algorithm.
func (d *dcqcn) Timer() frame.Time {
	if d.pending {
		return min(d.incNext, d.cutNext)
	}
	return d.incNext
}

// OnLoss implements Algorithm.
func (d *dcqcn) OnLoss(now frame.Time, _ Loss) {
	if d.cfg.backoff > 0 {
		d.OnTimer(now)
		d.cut(now, d.cfg.backoff)
	}
}

func (d *dcqcn) Rate() float64   { return d.rc }
func (d *dcqcn) Window() float64 { return d.win }

// Inspect implements Inspector. Alpha is that of the last cut or CNP.
func (d *dcqcn) Inspect(yield func(string, float64)) {
	yield("R", d.rc)
	yield("target", d.rt)
	yield("alpha", d.alpha)
	yield("W", d.win)
	yield("stage", float64(max(d.byTime, d.byBytes)))
}
