package cc

import (
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/options"
)

func init() {
	Register(Info{
		Name:  "qcn",
		Title: "QCN, by quantized feedback",
		Paper: "IEEE 802.1Qau-2010, clause 32; Alizadeh et al., Data Center Transport Mechanisms, Allerton 2008",
		Cite:  "IEEE 802.1Qau",
		Kind:  "rate",
		Needs: feature.Quantized,
		Note:  "The standard's values are for 10 Gb/s. Its random spread of the byte counter and the timer is left out.",
		Params: []options.Param{
			{Name: "byte_reset", Unit: options.Bytes, Default: "150kB", Min: 1000, Max: 1e12, Source: "IEEE 802.1Qau, rpgByteReset",
				Doc: "bytes sent from one stage of the byte counter to the next; half of it after fast recovery"},
			{Name: "time_reset", Unit: options.Time, Default: "15ms", Min: 1000, Max: 1e12, Source: "IEEE 802.1Qau, rpgTimeReset",
				Doc: "time from one stage of the timer to the next; half of it after fast recovery"},
			{Name: "threshold", Unit: options.Count, Default: "5", Max: 1e6, Source: "IEEE 802.1Qau, rpgThreshold",
				Doc: "stages of fast recovery before the target grows"},
			{Name: "rai", Unit: options.Rate, Default: "5Mbps", Max: 1e13, Source: "IEEE 802.1Qau, rpgAiRate",
				Doc: "growth of the target in the active increase stage"},
			{Name: "rhai", Unit: options.Rate, Default: "50Mbps", Max: 1e13, Source: "IEEE 802.1Qau, rpgHaiRate",
				Doc: "growth of the target in the hyper increase stage, times the number of the stage"},
			{Name: "gd", Unit: options.Number, Default: "0.0078125", Min: 1e-9, Max: 1, Source: "IEEE 802.1Qau, rpgGd (2^-7)",
				Doc: "decrease for each step of feedback"},
			{Name: "least_factor", Unit: options.Number, Default: "0.5", Min: 1e-9, Max: 1, Source: "IEEE 802.1Qau, rpgMinDecFac",
				Doc: "a decrease leaves at least this share of the rate"},
			{Name: "minrate", Unit: options.Rate, Default: "10Mbps", Min: 1, Max: 1e13, Source: "IEEE 802.1Qau, rpgMinRate", Doc: "least rate"},
			windowParam("none"),
		},
		New: newQCN,
	})
}

// QuantizedListener is an Algorithm that reacts to quantized feedback.
type QuantizedListener interface {
	// OnQuantized takes feedback from 1 to 63 of a congestion point.
	OnQuantized(now frame.Time, feedback uint8)
}

type qcnConfig struct {
	bytes           uint64
	period          frame.Time
	threshold       int
	rai, rhai       float64
	gd, leastFactor float64
	least           float64
	window          windowRule
}

func newQCN(p options.Values) (func(*Env) Algorithm, error) {
	c := &qcnConfig{bytes: uint64(p.Float("byte_reset")), period: p.Time("time_reset"), threshold: p.Int("threshold"), rai: p.Float("rai"), rhai: p.Float("rhai"),
		gd: p.Float("gd"), leastFactor: p.Float("least_factor"), least: p.Float("minrate"), window: windowOption(&p)}
	return func(env *Env) Algorithm {
		q := &qcn{cfg: c}
		q.Reset(env)
		return q
	}, nil
}

// qcn is the reaction point of one queue pair: its rate falls by feedback, and
// rises in stages that bytes and time count, until it is that of the line.
type qcn struct {
	cfg                *qcnConfig
	line, t            float64
	least              float64
	rc, rt             float64 // current and target rate, bit/s
	limited            bool
	byBytes            int // stages since the last decrease
	byTime             int
	sent               uint64 // bytes since the last stage of the byte counter
	due                frame.Time
	win                float64
	notices, strongest float64
}

// Reset implements Resetter. Flows start at line rate.
func (q *qcn) Reset(env *Env) {
	*q = qcn{cfg: q.cfg, line: env.Rate, t: float64(max(env.BaseRTT, 1)), rc: env.Rate, rt: env.Rate, due: frame.Never}
	q.least = minRate(q.cfg.least, q.line)
	q.publish()
}

func (q *qcn) publish() { q.win = q.cfg.window.of(q.rc, q.line, q.t) }

// OnQuantized implements QuantizedListener. A decrease before the byte counter
// came to its first stage keeps the target: it belongs to the same congestion.
func (q *qcn) OnQuantized(now frame.Time, feedback uint8) {
	if q.due <= now {
		q.OnTimer(now)
	}
	c := q.cfg
	q.notices++
	q.strongest = max(q.strongest, float64(feedback))
	if !q.limited || q.byBytes != 0 {
		q.rt, q.sent = q.rc, 0
	}
	q.limited, q.byBytes, q.byTime = true, 0, 0
	q.rc = max(q.least, q.rc*max(c.leastFactor, 1-float64(c.gd*float64(feedback))))
	q.due = now + c.period
	q.publish()
}

// raise is one stage of either counter: fast recovery halves the distance to
// the target, active increase moves the target by R_AI first, and hyper
// increase, where both counters are beyond fast recovery, by ever more.
func (q *qcn) raise() {
	c := q.cfg
	switch least := min(q.byBytes, q.byTime); {
	case (q.byBytes == 1 || q.byTime == 1) && q.rt > 10*q.rc:
		q.rt /= 8 // a target from before a long congestion
	case least > c.threshold:
		q.rt += float64(c.rhai * float64(least-c.threshold))
	case max(q.byBytes, q.byTime) > c.threshold:
		q.rt += c.rai
	}
	q.rt = min(q.rt, q.line)
	q.rc = float64((q.rc + q.rt) / 2)
	if q.line-q.rc < 1 { // less than a bit per second: nothing to limit
		q.rc, q.limited, q.due = q.line, false, frame.Never
	}
	q.publish()
}

// OnSend implements Algorithm.
func (q *qcn) OnSend(_ frame.Time, n uint32) {
	if !q.limited {
		return
	}
	q.sent += uint64(n)
	for q.limited {
		stage := q.cfg.bytes
		if q.byBytes >= q.cfg.threshold {
			stage /= 2
		}
		if q.sent < stage {
			return
		}
		q.sent -= stage
		q.byBytes++
		q.raise()
	}
}

// OnTimer implements Algorithm.
func (q *qcn) OnTimer(now frame.Time) {
	for q.due <= now {
		q.byTime++
		if q.byTime < q.cfg.threshold {
			q.due += q.cfg.period
		} else {
			q.due += q.cfg.period / 2
		}
		q.raise()
	}
}

func (q *qcn) Timer() frame.Time       { return q.due }
func (q *qcn) OnAck(*Feedback)         {}
func (q *qcn) OnCNP(frame.Time)        {}
func (q *qcn) OnLoss(frame.Time, Loss) {}
func (q *qcn) Rate() float64           { return q.rc }
func (q *qcn) Window() float64         { return q.win }

// Inspect implements Inspector.
func (q *qcn) Inspect(yield func(string, float64)) {
	yield("R", q.rc)
	yield("target", q.rt)
	yield("stage_bytes", float64(q.byBytes))
	yield("stage_time", float64(q.byTime))
	yield("notices", q.notices)
	yield("strongest", q.strongest)
}
