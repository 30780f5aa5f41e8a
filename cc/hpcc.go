package cc

import (
	"math"

	"gswitch/feature"
	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/options"
)

// HPCC as the paper's Algorithm 1 has it. The quantity that it controls is the
// bytes in flight on the worst link of the path, relative to what the link
// holds in a base RTT: U = max over hops of qlen/(B*T) + txRate/B. Windows in
// bytes and rates in bit/s follow the same arithmetic, so one state machine
// serves both forms: what it computes is "the size", in bytes (form=window) or
// in bit/s (form=rate).
func init() {
	Register(Info{
		Name:  "hpcc",
		Title: "High Precision Congestion Control, by in-band telemetry",
		Paper: "Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019",
		Cite:  "HPCC, SIGCOMM 2019",
		Kind:  "rate+window",
		Needs: feature.Telemetry,
		Note: "The byte counter in the telemetry is a setting of the switches: bytes sent gives the paper's txRate, " +
			"bytes received for the port its rxRate ablation. The arithmetic here is the same.",
		Params: []options.Param{
			{Name: "eta", Unit: options.Number, Default: "0.95", Min: 0.01, Max: 1, Source: "HPCC section 3.3",
				Doc: "target of the normalised bytes in flight"},
			{Name: "maxStage", Unit: options.Count, Default: "0", Max: 1e6, Source: "HPCC section 5.1 (0 in simulation, 5 on the testbed)",
				Doc: "round trips of additive increase only before a multiplicative increase"},
			{Name: "wai", Unit: options.Bytes, Default: "= W_init*(1-eta)/n", Max: 1e9, Source: "HPCC section 3.3",
				Doc: "additive increase W_AI per round trip, form=window; may be a fraction of a byte"},
			{Name: "n", Unit: options.Count, Default: "100", Min: 1, Max: 1e6, Source: "HPCC section 5.1",
				Doc: "flows on one link up to which the queue stays empty; sets wai and ai unless they are given"},
			{Name: "wmin", Unit: options.Bytes, Default: "= wai, at least 1B", Max: 1e12, Source: "ours: the paper has no lower bound",
				Doc: "least window, form=window"},
			{Name: "reaction", Unit: options.Choice, Default: "hpcc", Choices: []string{"hpcc", "perAck", "perRtt"}, Source: "HPCC section 3.2",
				Doc: "hpcc: each acknowledgement moves the window from a reference that changes once per round trip. perAck: it also moves the reference. perRtt: the window moves with the reference only"},
			{Name: "fast_react", Unit: options.Flag, Default: "true", Source: "authors' simulator, FAST_REACT",
				Doc: "false: acknowledgements between two updates of the reference are not looked at, telemetry included"},
			{Name: "sample_feedback", Unit: options.Flag, Default: "false", Source: "authors' simulator, SAMPLE_FEEDBACK",
				Doc: "between two updates of the reference, ignore hops whose queue is empty"},
			{Name: "multirate", Unit: options.Flag, Default: "false", Source: "HPCC appendix (general utility functions); authors' simulator, MULTI_RATE",
				Doc: "keep a window for each hop; the least of them counts, or their combination by alpha_fair"},
			{Name: "alpha_fair", Unit: options.Number, Default: "0", Max: 1000, Source: "HPCC appendix (alpha-fairness)",
				Doc: "with multirate: W = (sum of W_i^-a)^(-1/a), 1 is proportional fairness. 0: the least W_i, which is max-min"},
			{Name: "limit", Unit: options.Choice, Default: "both", Choices: []string{"both", "window", "pacing"}, Source: "HPCC section 3.2: a window and pacing at W/T",
				Doc: "what holds the sender back. window: it sends what the window allows at line rate. pacing: it keeps to the rate, whatever is in flight"},
			{Name: "start", Unit: options.Number, Default: "1", Min: 1e-6, Max: 1, Source: "HPCC section 3.2: flows start at line rate",
				Doc: "share of W_init, or of the line rate, at which a flow starts"},
			{Name: "form", Unit: options.Choice, Default: "window", Choices: []string{"window", "rate"}, Source: "window: HPCC Algorithm 1; rate: authors' simulator",
				Doc: "what is computed: the window, and the rate is W/T; or the rate, and the window is floor(R*T)"},
			{Name: "ai", Unit: options.Rate, Default: "= line rate*(1-eta)/n", Max: 1e13, Source: "authors' simulator, RATE_AI",
				Doc: "additive increase per round trip, form=rate"},
			minRateParam(", form=rate"),
		},
		// The reference moves once in a round trip, by a U that is an average over T: with
		// a multiplicative increase each time it answers the same measurement several
		// times, overshoots, and the links are empty by turns. maxStage=5 is what the
		// paper's testbed has (section 5.1). n=10 is for as many flows on a link as share
		// that of a machine, so that additive increase finds what is free in between.
		Machines: map[string]string{"maxStage": "5", "n": "10"},
		New:      newHPCC,
	})
}

type hpccReaction uint8

const (
	reactHPCC hpccReaction = iota
	reactPerAck
	reactPerRTT
)

type hpccLimit uint8

const (
	limitBoth hpccLimit = iota
	limitWindow
	limitPacing
)

// hpccConfig is what all queue pairs of a factory share.
type hpccConfig struct {
	eta         float64
	maxStage    int
	wai, wmin   float64 // bytes; NaN: by rule
	ai, minRate float64 // bit/s; ai NaN: by rule
	n           float64
	start       float64 // share of the largest size
	reaction    hpccReaction
	limit       hpccLimit
	fastReact   bool
	sampled     bool
	multi       bool
	alphaFair   float64
	rateForm    bool
}

func newHPCC(p options.Values) (func(*Env) Algorithm, error) {
	c := &hpccConfig{
		eta: p.Float("eta"), maxStage: p.Int("maxStage"),
		wai: p.Float("wai"), wmin: p.Float("wmin"), ai: p.Float("ai"), minRate: p.Float("minrate"),
		n: p.Float("n"), start: p.Float("start"), fastReact: p.Flag("fast_react"), sampled: p.Flag("sample_feedback"),
		multi: p.Flag("multirate"), alphaFair: p.Float("alpha_fair"), rateForm: p.Choice("form") == "rate",
	}
	switch p.Choice("reaction") {
	case "perAck":
		c.reaction = reactPerAck
	case "perRtt":
		c.reaction = reactPerRTT
	}
	switch p.Choice("limit") {
	case "window":
		c.limit = limitWindow
	case "pacing":
		c.limit = limitPacing
	}
	return func(env *Env) Algorithm {
		h := &hpcc{cfg: c}
		if c.multi {
			h.hops = new([inband.MaxHops]hpccState)
		}
		h.Reset(env)
		return h
	}, nil
}

// hpccRecord is what is kept of a hop's last telemetry.
type hpccRecord struct {
	ts, tx, q uint64
}

// hpccState is the controller proper: one for the path, or one for each hop.
type hpccState struct {
	ref   float64 // Wc: the size from which all of this round trip derive
	u     float64 // EWMA of the normalised bytes in flight
	stage int     // round trips of additive increase so far
}

// hpcc is the state of one queue pair.
type hpcc struct {
	cfg  *hpccConfig
	size float64 // W in bytes or R in bit/s
	hpccState
	hops *[inband.MaxHops]hpccState // multirate only

	boundary uint64 // lastUpdateSeq: an acknowledgement beyond it starts a round trip
	last     frame.Time
	nhop     int
	pathID   uint16
	record   [inband.MaxHops]hpccRecord

	// Derived from the queue pair's surroundings.
	init, least, add float64 // of size
	line             float64 // bit/s
	t                float64 // T in ns
	rng              inband.Range
	stale            frame.Time // age from which a record cannot be compared
	half             uint64     // of the timestamp's range, ns
	wrap             float64    // range of the byte counter
	slack            float64    // bytes of one frame

	rate, window float64
	resets       uint64 // records discarded: path changed, too old, implausible
}

// Reset implements Resetter.
func (h *hpcc) Reset(env *Env) {
	c, hops := h.cfg, h.hops
	*h = hpcc{cfg: c, hops: hops}
	h.line, h.t, h.rng = env.Rate, float64(max(env.BaseRTT, 1)), env.Range
	h.slack = float64(env.MTU)
	h.stale, h.half, h.wrap = frame.Never, math.MaxInt64, math.MaxInt64
	if env.Range.TS != 0 {
		// Differences are modulo the range; beyond a quarter of it they may mean anything.
		h.stale, h.half = frame.Time(env.Range.TS/4), env.Range.TS/2
	}
	if env.Range.Tx != 0 {
		h.wrap = float64(env.Range.Tx)
	}
	if c.rateForm {
		h.init = env.Rate
		h.add = options.Or(c.ai, env.Rate*(1-c.eta)/c.n)
		h.least = minRate(c.minRate, h.init)
	} else {
		// W_init = B_NIC*T: flows start at line rate.
		h.init = env.BDP()
		h.add = options.Or(c.wai, h.init*(1-c.eta)/c.n)
		h.least = min(options.Or(c.wmin, max(h.add, 1)), h.init)
	}
	h.size = h.bound(h.init * c.start)
	h.hpccState = hpccState{ref: h.size, u: 1}
	if hops != nil {
		for i := range hops {
			hops[i] = h.hpccState
		}
	}
	h.publish()
}

// publish sets what the sender reads.
func (h *hpcc) publish() {
	if h.cfg.rateForm {
		h.rate = h.size
		h.window = windowOf(h.size, h.t)
	} else {
		h.window = h.size
		h.rate = min(h.size*8e9/h.t, h.line)
	}
	switch h.cfg.limit {
	case limitWindow:
		h.rate = h.line
	case limitPacing:
		h.window = 0
	}
}

// OnAck implements Algorithm. Negative acknowledgements carry telemetry too and
// count alike.
func (h *hpcc) OnAck(f *Feedback) {
	p := f.Path
	if p == nil || p.N <= 0 || p.N > inband.MaxHops {
		return
	}
	if h.nhop != p.N || h.pathID != p.ID || f.Now-h.last > h.stale {
		h.adopt(f)
		return
	}
	next := f.SndNxt
	if f.Next != 0 && f.Next < next {
		// The sender went back: what it sends again is a round trip like any
		// other. Else the reference did not move until all was repaired.
		next = f.Next
		h.boundary = min(h.boundary, next)
	}
	full := f.Ack > h.boundary
	if !full && !h.cfg.fastReact {
		return
	}
	var plausible bool
	if h.hops == nil {
		plausible = h.single(p, full)
	} else {
		plausible = h.multi(p, full)
	}
	if !plausible {
		h.adopt(f)
		return
	}
	h.last = f.Now
	if full && next > h.boundary {
		h.boundary = next
	}
	h.publish()
}

// adopt makes the telemetry of f the one to compare with. Nothing can be
// computed from it alone.
func (h *hpcc) adopt(f *Feedback) {
	if h.nhop == 0 {
		h.boundary = f.SndNxt
	} else {
		h.resets++
	}
	h.nhop, h.pathID, h.last = f.Path.N, f.Path.ID, f.Now
	for i := range h.nhop {
		h.keep(i, &f.Path.Hops[i])
	}
}

func (h *hpcc) keep(i int, hop *inband.Hop) {
	h.record[i] = hpccRecord{hop.TS, hop.Tx, hop.Q}
}

// delta returns by how much a hop's counters moved since the last record.
func (h *hpcc) delta(i int, hop *inband.Hop) (ns, bytes uint64) {
	r := &h.record[i]
	return h.rng.Delta(r.ts, r.tx, hop)
}

// implausible is what measure returns as the time of a measurement that cannot
// be one.
const implausible = -1

// measure returns the normalised bytes in flight at a hop, qlen/(B*T) +
// txRate/B over one denominator, and the time in ns that the measurement
// covers: 0 if no time passed. The lesser of two queues filters bursts of one
// frame (HPCC section 3.2).
//
// The path's identifier does not see a change of port between the same
// switches, nor of their order; the counters do: time runs forward, and no
// port sends faster than its link, give or take a tenth and a frame. Nor can
// more have been sent than the byte counter's range shows.
func (h *hpcc) measure(i int, hop *inband.Hop) (u, dt float64) {
	ns, bytes := h.delta(i, hop)
	q := min(hop.Q, h.record[i].q)
	if int64(ns|bytes|q|hop.Rate) < 0 || hop.Rate == 0 || ns >= h.half {
		return 0, implausible
	}
	dt = float64(int64(ns))
	b := float64(int64(hop.Rate)) * (1.0 / 8e9) // bytes per ns
	sent, room := float64(int64(bytes)), b*dt
	if sent > float64(1.1*room)+h.slack || room > h.wrap {
		return 0, implausible
	}
	if ns == 0 {
		return math.Inf(-1), 0
	}
	return (float64(float64(int64(q))*dt) + float64(sent*h.t)) / (room * h.t), dt
}

// skips says whether a hop is left alone between two updates of the reference.
func (h *hpcc) skips(hop *inband.Hop, full bool) bool {
	return h.cfg.sampled && hop.Q == 0 && !full
}

// single is the paper's controller: the worst hop decides. It reports false,
// having changed nothing, if a record is implausible.
func (h *hpcc) single(p *inband.Path, full bool) bool {
	worst, tau := math.Inf(-1), 0.0
	for i := range p.N {
		hop := &p.Hops[i]
		u, dt := h.measure(i, hop)
		if dt == implausible {
			return false
		}
		if (u > worst || u == worst && dt > tau) && !h.skips(hop, full) {
			worst, tau = u, dt
		}
	}
	for i := range p.N {
		if hop := &p.Hops[i]; !h.skips(hop, full) {
			h.keep(i, hop)
		}
	}
	if tau == 0 {
		return true
	}
	h.average(&h.hpccState, worst, tau)
	next := h.next(&h.hpccState)
	h.commit(&h.hpccState, next, full)
	if h.cfg.reaction != reactPerRTT || full {
		h.size = next
	}
	return true
}

// multi keeps a size for each hop. It reports false like single.
func (h *hpcc) multi(p *inband.Path, full bool) bool {
	var us, dts [inband.MaxHops]float64
	for i := range p.N {
		if us[i], dts[i] = h.measure(i, &p.Hops[i]); dts[i] == implausible {
			return false
		}
	}
	least, sum, a := h.init, 0.0, h.cfg.alphaFair
	h.u = 0 // of the worst hop, for Inspect
	for i := range p.N {
		hop, s := &p.Hops[i], &h.hops[i]
		size := s.ref
		if !h.skips(hop, full) {
			if dts[i] != 0 {
				h.average(s, us[i], dts[i])
				size = h.next(s)
				h.commit(s, size, full)
			}
			h.keep(i, hop)
		}
		least = min(least, size)
		if a > 0 {
			sum += 1 / power(size/h.init, a) // relative, or large a overflows
		}
		h.u = max(h.u, s.u)
	}
	if h.cfg.reaction == reactPerRTT && !full {
		return true
	}
	h.size = least
	if a > 0 {
		h.size = h.bound(h.init / power(sum, 1/a))
	}
	return true
}

// average is the paper's parameterless EWMA: a measurement weighs as much of
// the base RTT as it covers, so that after a gap it counts alone.
func (h *hpcc) average(s *hpccState, u, tau float64) {
	w := min(tau, h.t) / h.t
	s.u = float64((1-w)*s.u) + float64(w*u)
}

// next is ComputeWind of Algorithm 1.
func (h *hpcc) next(s *hpccState) float64 {
	if s.u >= h.cfg.eta || s.stage >= h.cfg.maxStage {
		return h.bound(s.ref*h.cfg.eta/s.u + h.add)
	}
	return h.bound(s.ref + h.add)
}

// bound keeps a size within its limits before it becomes a reference: a flow
// with little to send sees a small U and would grow without end. A U of zero
// (0/0 or x/0) ends at the upper one.
func (h *hpcc) bound(v float64) float64 {
	if !(v < h.init) {
		return h.init
	}
	return max(v, h.least)
}

// commit moves the reference: with the first acknowledgement of what was sent
// under it, so that the same bytes in flight are never answered twice.
func (h *hpcc) commit(s *hpccState, next float64, full bool) {
	if full {
		if s.u >= h.cfg.eta || s.stage >= h.cfg.maxStage {
			s.stage = 0
		} else {
			s.stage++
		}
	}
	if full || h.cfg.reaction == reactPerAck {
		s.ref = next
	}
}

func (h *hpcc) OnCNP(frame.Time)          {}
func (h *hpcc) OnLoss(frame.Time, Loss)   {}
func (h *hpcc) OnSend(frame.Time, uint32) {}
func (h *hpcc) OnTimer(frame.Time)        {}
func (h *hpcc) Timer() frame.Time         { return frame.Never }
func (h *hpcc) Rate() float64             { return h.rate }
func (h *hpcc) Window() float64           { return h.window }

// Inspect implements Inspector.
func (h *hpcc) Inspect(yield func(string, float64)) {
	yield("U", h.u)
	yield("W", h.window)
	yield("R", h.rate)
	yield("Wc", h.ref)
	yield("stage", float64(h.stage))
	yield("resets", float64(h.resets))
}
