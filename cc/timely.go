package cc

import (
	"cmp"
	"fmt"
	"math"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/options"
)

func init() {
	Register(Info{
		Name:  "timely",
		Title: "TIMELY, by the gradient of the round trip time",
		Paper: "Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015",
		Cite:  "TIMELY, SIGCOMM 2015",
		Kind:  "rate",
		Needs: feature.RoundTrips,
		Note:  "The RTT of a frame runs from its start on the link; that of a segment which the NIC paces (hosts.segment, of one frame or more) from the instant at which its pace lets it go, so that waiting in the NIC counts, as in the paper. Both end with the acknowledgement of all of it; the time that it takes itself is taken off here.",
		Params: []options.Param{
			{Name: "alpha", Unit: options.Number, Default: "= 0.875, and 0.04 where the NIC sends segments as bursts", Min: 1e-6, Max: 1, Source: "0.875: HPCC's simulation of TIMELY, of single frames; 0.04: fitted to TIMELY's table 1; the paper gives none",
				Doc: "weight of the newest difference in the average of RTT differences. A burst of 16 kB moves an RTT by 13 us at 10 Gb/s, and 0.875 of that takes half of the throughput away"},
			{Name: "beta", Unit: options.Number, Default: "0.8", Min: 0, Max: 1, Source: "TIMELY section 4.3",
				Doc: "strength of the multiplicative decrease"},
			{Name: "delta", Unit: options.Rate, Default: "= 10Mbps for each 10Gbps of the line rate", Min: 1, Max: 1e13, Source: "TIMELY section 4.3, which has 10 Gb/s",
				Doc: "additive increase of one update"},
			{Name: "tlow", Unit: options.Time, Default: "50us", Max: 1e12, Source: "TIMELY section 4.3",
				Doc: "below this RTT the rate always grows"},
			{Name: "thigh", Unit: options.Time, Default: "500us", Max: 1e12, Source: "TIMELY section 4.3",
				Doc: "above this RTT the rate always falls"},
			{Name: "minrtt", Unit: options.Time, Default: "20us", Min: 1, Max: 1e12, Source: "TIMELY section 4.3",
				Doc: "the constant that normalises the gradient; not measured"},
			{Name: "mode", Unit: options.Choice, Default: "gradient", Choices: []string{"gradient", "patched", "queue"}, Source: "TIMELY sections 4.3 and 4.4; patched: Zhu et al., CoNEXT 2016",
				Doc: "gradient: as published. patched: weighs the gradient and adds the distance from rtt_ref, which makes the fixed point unique. queue: no gradient, one threshold (target)"},
			{Name: "hai", Unit: options.Choice, Default: "gradient", Choices: []string{"gradient", "below", "increase", "off"}, Source: "TIMELY section 4.3",
				Doc: "hyperactive increase, hai_factor*delta. gradient: after hai_after negative gradients in a row, between the thresholds (as listed in the paper). below: also below tlow. increase: after hai_after increases since the last decrease (authors' HPCC simulator). off: never"},
			{Name: "hai_after", Unit: options.Count, Default: "5", Max: 1e6, Source: "TIMELY section 4.3", Doc: "updates before the hyperactive increase"},
			{Name: "hai_factor", Unit: options.Count, Default: "5", Min: 1, Max: 1e6, Source: "TIMELY section 4.3", Doc: "N: by how much the hyperactive increase is larger"},
			{Name: "update", Unit: options.Choice, Default: "completion", Choices: []string{"completion", "window"}, Source: "TIMELY section 4.3; window: HPCC's simulator",
				Doc: "completion: each completed segment updates the rate. window: the first acknowledgement of what was sent after the last update does"},
			{Name: "segment", Unit: options.Bytes, Default: "0", Max: 1e9, Source: "TIMELY's evaluation has 16 kB",
				Doc: "payload between two updates, at least; 0: each acknowledgement with an RTT completes a segment, be it a frame or what the NIC sends as one burst"},
			{Name: "scale", Unit: options.Flag, Default: "true", Source: "TIMELY section 4.3",
				Doc: "with several completions in one minrtt divide delta and beta by their number"},
			{Name: "serialization", Unit: options.Choice, Default: "subtract", Choices: []string{"subtract", "keep"}, Source: "TIMELY section 3.1; keep: HPCC's simulator",
				Doc: "whether the time that the segment itself takes on the link is taken off its RTT"},
			{Name: "burst_rate", Unit: options.Rate, Default: "= that of the NIC", Min: 1, Max: 1e13, Source: "TIMELY's evaluation of NIC pacing",
				Doc: "rate at which the NIC sends the frames of a segment"},
			{Name: "delay", Unit: options.Choice, Default: "round-trip", Choices: []string{"round-trip", "one-way"}, Source: "Li's dissertation, section 3.6.3",
				Doc: "one-way: in place of the RTT the time until the last switch sent the frame on, where clocks are synchronised and data carries telemetry; congestion on the way back does not count. Elsewhere the RTT"},
			{Name: "gate", Unit: options.Number, Default: "0.8", Max: 1, Source: "TIMELY section 4.3",
				Doc: "the rate grows only while the flow sends more than this share of it; 0: always"},
			{Name: "thigh_rtt", Unit: options.Choice, Default: "sample", Choices: []string{"sample", "average"}, Source: "TIMELY section 4.3 (average: its ablation)",
				Doc: "the RTT that is compared with thigh; average: with the weight alpha"},
			{Name: "target", Unit: options.Time, Default: "50us", Min: 1, Max: 1e12, Source: "TIMELY section 4.4", Doc: "mode=queue: both thresholds"},
			{Name: "patched_beta", Unit: options.Number, Default: "0.008", Max: 1, Source: "Zhu et al., CoNEXT 2016", Doc: "mode=patched: strength of the decrease"},
			{Name: "rtt_ref", Unit: options.Time, Default: "= tlow", Min: 1, Max: 1e12, Source: "Zhu et al., CoNEXT 2016", Doc: "mode=patched: RTT of the fixed point"},
			{Name: "fmin", Unit: options.Number, Default: "= 1-beta", Max: 1, Source: "ours: the paper's factor can be negative",
				Doc: "least factor of one decrease by gradient"},
			{Name: "deadband", Unit: options.Time, Default: "0", Max: 1e9, Source: "ours", Doc: "averages of RTT differences smaller than this count as 0"},
			{Name: "idle", Unit: options.Time, Default: "= 10*minrtt", Max: 1e12, Source: "ours",
				Doc: "a flow that sent nothing for so long, and for two segments' time, compares its next RTT with no older one; 0: never"},
			{Name: "initial", Unit: options.Rate, Default: "= line rate", Min: 1, Max: 1e13, Source: "HPCC section 5.1", Doc: "rate at the start"},
			minRateParam(""),
			backoffParam(),
			windowParam("none"),
		},
		New: newTimely,
	})
	preset("timely+win", "timely", "TIMELY with HPCC's window", "HPCC section 5.1", map[string]string{"window": "rate"})
	preset("timely-packet", "timely", "TIMELY with one update for each window of packets", "authors' HPCC simulator", map[string]string{"update": "window", "alpha": "0.875"})
	preset("timely-segment", "timely", "TIMELY with segments of 16 kB sent as bursts", "TIMELY's evaluation; alpha is fitted to it", map[string]string{"segment": "16kB", "alpha": "0.04"})
}

// Weights of the newest RTT difference. With that of frames connections that
// send bursts throttle each other for what one burst in the queue does to the
// next one's RTT.
const (
	alphaOfFrames = 0.875
	alphaOfBursts = 0.04
)

type timelyMode uint8

const (
	timelyGradient timelyMode = iota
	timelyPatched
	timelyQueue
)

type timelyHAI uint8

const (
	haiGradient timelyHAI = iota
	haiBelow
	haiIncrease
	haiOff
)

// timelyConfig is what all queue pairs of a factory share; times in ns, rates
// in bit/s, NaN where a rule applies.
type timelyConfig struct {
	alpha, beta, fmin           float64
	delta, initial, least       float64
	tlow, thigh, minRTT, rttRef float64
	patchedBeta                 float64
	burst, gate, deadband, idle float64
	backoff                     float64
	mode                        timelyMode
	hai                         timelyHAI
	haiAfter                    int
	haiFactor                   float64
	perWindow, scale, keep      bool
	averaged, oneWay            bool
	segment                     uint32
	window                      windowRule
}

func newTimely(p options.Values) (func(*Env) Algorithm, error) {
	c := &timelyConfig{
		alpha: p.Float("alpha"), beta: p.Float("beta"), delta: p.Float("delta"), initial: p.Float("initial"), least: p.Float("minrate"),
		tlow: p.Float("tlow"), thigh: p.Float("thigh"), minRTT: p.Float("minrtt"), patchedBeta: p.Float("patched_beta"),
		burst: p.Float("burst_rate"), gate: p.Float("gate"), deadband: p.Float("deadband"),
		backoff: p.Float("backoff"), haiAfter: p.Int("hai_after"), haiFactor: p.Float("hai_factor"),
		perWindow: p.Choice("update") == "window", scale: p.Flag("scale"), keep: p.Choice("serialization") == "keep",
		averaged: p.Choice("thigh_rtt") == "average", oneWay: p.Choice("delay") == "one-way", segment: uint32(p.Float("segment")), window: windowOption(&p),
	}
	c.idle = options.Or(p.Float("idle"), 10*c.minRTT)
	c.fmin = options.Or(p.Float("fmin"), 1-c.beta)
	c.rttRef = options.Or(p.Float("rtt_ref"), max(c.tlow, 1))
	switch p.Choice("mode") {
	case "patched":
		c.mode = timelyPatched
	case "queue":
		c.mode = timelyQueue
		c.tlow, c.thigh = p.Float("target"), p.Float("target")
	}
	switch p.Choice("hai") {
	case "below":
		c.hai = haiBelow
	case "increase":
		c.hai = haiIncrease
	case "off":
		c.hai = haiOff
	}
	if c.tlow > c.thigh {
		return nil, fmt.Errorf("tlow: %s is above thigh, which is %s", options.Format(c.tlow, options.Time), options.Format(c.thigh, options.Time))
	}
	return func(env *Env) Algorithm {
		t := &timely{cfg: c}
		t.Reset(env)
		return t
	}, nil
}

// timely is the state of one queue pair.
type timely struct {
	cfg  *timelyConfig
	rate float64 // bit/s
	win  float64

	prev, diff, avg float64 // ns: last RTT, EWMA of differences, EWMA of RTTs
	seeded          bool
	streak          int    // negative gradients in a row, or increases since a decrease
	boundary        uint64 // update=window: an acknowledgement beyond it updates
	newly           uint32 // payload acknowledged of the present segment
	meter           sendMeter
	gradient        float64

	alpha, line, t, delta, least, burst float64
	unit                                uint32 // bytes that the NIC paces as one, at least
}

// Reset implements Resetter.
func (t *timely) Reset(env *Env) {
	c := t.cfg
	*t = timely{cfg: c, line: env.Rate, t: float64(max(env.BaseRTT, 1))}
	t.delta = options.Or(c.delta, 10e6*env.Rate/10e9)
	t.least = minRate(c.least, t.line)
	t.burst = min(options.Or(c.burst, cmp.Or(env.Burst, t.line)), t.line)
	t.unit = env.Segment
	t.alpha = options.Or(c.alpha, alphaOfFrames)
	if env.Segment > 0 {
		t.alpha = options.Or(c.alpha, alphaOfBursts)
	}
	t.rate = min(max(options.Or(c.initial, t.line), t.least), t.line)
	t.publish()
}

func (t *timely) publish() { t.win = t.cfg.window.of(t.rate, t.line, t.t) }

// OnAck implements Algorithm.
func (t *timely) OnAck(f *Feedback) {
	c := t.cfg
	t.newly += f.Newly
	if f.RTT <= 0 || t.newly < c.segment || c.perWindow && f.Ack <= t.boundary {
		return
	}
	t.newly, t.boundary = 0, f.SndNxt
	t.sample(t.netRTT(f), float64(max(f.Bytes, c.segment)))
}

// netRTT is the RTT without the time that the segment takes to be sent
// (TIMELY section 3.1), in ns.
func (t *timely) netRTT(f *Feedback) float64 {
	rtt := float64(f.RTT)
	if t.cfg.oneWay && f.OneWay > 0 {
		rtt = float64(f.OneWay)
	}
	if t.cfg.keep {
		return rtt
	}
	return max(rtt-float64(f.Bytes)*8e9/t.burst, 0)
}

// sample is one completion (TIMELY Algorithm 1).
func (t *timely) sample(rtt, bytes float64) {
	c := t.cfg
	if !t.seeded || t.meter.idled {
		// Nothing to compare with: the first, or the last one is from before a pause.
		t.prev, t.avg, t.seeded, t.meter.idled = rtt, rtt, true, false
		return
	}
	// The averages follow in every branch, or the first gradient after one
	// of the outer zones would be of long ago.
	t.diff = float64((1-t.alpha)*t.diff) + float64(t.alpha*(rtt-t.prev))
	t.avg = float64((1-t.alpha)*t.avg) + float64(t.alpha*rtt)
	t.prev = rtt
	if math.Abs(t.diff) < c.deadband {
		t.diff = 0
	}
	g := t.diff / c.minRTT
	t.gradient = g

	n := 1.0
	if c.scale {
		n = t.completionsPerRTT(bytes)
	}
	delta, beta := t.delta/n, c.beta/n
	high := rtt
	if c.averaged {
		high = t.avg
	}
	if c.hai != haiIncrease {
		if g < 0 {
			t.streak++
		} else {
			t.streak = 0
		}
	}

	next := t.rate
	switch {
	case rtt < c.tlow:
		if c.hai == haiBelow || c.hai == haiIncrease {
			delta *= t.boost()
		}
		next += delta
	case high > c.thigh:
		next *= 1 - float64(beta*(1-c.thigh/high))
	case c.mode == timelyPatched:
		w := min(max(float64(2*g)+0.5, 0), 1)
		next = float64(delta*(1-w)) + float64(next*max(c.fmin, 1-c.patchedBeta/n*w*(rtt-c.rttRef)/c.rttRef))
	case g <= 0:
		next += float64(delta * t.boost())
	default:
		next *= max(c.fmin, 1-float64(beta*g))
	}
	t.apply(next)
}

// completionsPerRTT is how many completions fall into one minimum RTT, at
// least 1: the formula means at most one (TIMELY section 4.3).
func (t *timely) completionsPerRTT(bytes float64) float64 {
	if bytes <= 0 {
		return 1
	}
	return max(1, t.cfg.minRTT*t.rate/(8e9*bytes))
}

// boost is the factor of the hyperactive increase.
func (t *timely) boost() float64 {
	if t.cfg.hai != haiOff && t.streak >= t.cfg.haiAfter {
		return t.cfg.haiFactor
	}
	return 1
}

// apply takes over a rate. A flow that does not use its rate does not get
// more, or its next burst would be unpaced; a decrease always counts.
func (t *timely) apply(next float64) {
	up := next > t.rate
	if t.cfg.hai == haiIncrease {
		if up {
			t.streak++
		} else {
			t.streak = 0
		}
	}
	if up && t.cfg.gate > 0 && !t.meter.above(t.cfg.gate, t.rate) {
		return
	}
	t.rate = min(max(next, t.least), t.line)
	t.publish()
}

// OnSend implements Algorithm.
func (t *timely) OnSend(now frame.Time, n uint32) {
	if t.cfg.gate > 0 || t.cfg.idle > 0 {
		t.meter.send(now, n, t.unit, t.rate, t.prev, t.cfg.idle)
	}
}

// OnLoss implements Algorithm.
func (t *timely) OnLoss(frame.Time, Loss) {
	if t.cfg.backoff > 0 {
		t.streak = 0
		t.apply(t.rate * (1 - t.cfg.backoff))
	}
}

func (t *timely) OnCNP(frame.Time)   {}
func (t *timely) OnTimer(frame.Time) {}
func (t *timely) Timer() frame.Time  { return frame.Never }
func (t *timely) Rate() float64      { return t.rate }
func (t *timely) Window() float64    { return t.win }

// Inspect implements Inspector.
func (t *timely) Inspect(yield func(string, float64)) {
	yield("R", t.rate)
	yield("W", t.win)
	yield("rtt", t.prev)
	yield("gradient", t.gradient)
	yield("streak", float64(t.streak))
}
