package lossradar

import (
	"cmp"
	"slices"

	"gswitch/frame"
)

// Cause is why packets were lost.
type Cause uint8

const (
	Unknown    Cause = iota
	Congestion       // a full queue
	Blackhole        // a table sends some flows nowhere
	Random           // a link that damages packets now and then
	Loop             // the time to live ran out
	NumCauses
)

var causeNames = [...]string{"unknown", "congestion", "blackhole", "random", "loop"}

// String returns the cause in words.
func (c Cause) String() string { return causeNames[c] }

// Causes returns all causes in words.
func Causes() []string { return causeNames[:] }

// Loss is a lost packet with its instant at the upstream meter.
type Loss struct {
	At frame.Time
	Signature
	Cause Cause
}

// Times gives the losses of an outcome their instants: the stamp counts units of
// 1/2^14 of the batch.
func Times(o *Outcome, t Timing) []Loss {
	out := make([]Loss, len(o.Lost))
	for i, s := range o.Lost {
		at := o.From + frame.Time(uint64(s.Extra&stampMask)*uint64(t.Period)>>StampBits)
		out[i] = Loss{At: at, Signature: s}
		if s.Rest&flagExpires != 0 {
			out[i].Cause = Loop
		}
	}
	return out
}

// Thresholds are the parameters of classification (section 5.6, its defaults).
type Thresholds struct {
	Gap         frame.Time // losses of a burst are less than this apart
	Burst       int        // losses of a burst, at least
	InBurst     int        // consecutive losses of a flow within a burst that make a blackhole: more than this
	Consecutive int        // consecutive losses of a flow without a burst that make a blackhole, at least
	SYN         float64    // share of SYNs among what is left that makes these a blackhole: more than this
	Spread      float64    // share of an interval's parts in which something was lost that makes it random: more than this
	// FewestRandom is how many losses are needed before they are called random:
	// one alone always lies in every part there is. Not in the paper; ten let
	// evenly spread losses pass in 9 of 10 intervals.
	FewestRandom int
	Interval     frame.Time // over which what is no burst is judged
}

// DefaultThresholds are the paper's, with the gap for a port of that rate in
// bits/s: 20 us at 10 Gb/s are 16.7 packets of 1,500 bytes.
func DefaultThresholds(rate float64) Thresholds {
	return Thresholds{
		Gap: frame.Time(20e3 * 10e9 / rate), Burst: 5, InBurst: 30, Consecutive: 5,
		SYN: 0.9, Spread: 0.5, FewestRandom: 10, Interval: 100 * frame.Millisecond,
	}
}

// flow is the five-tuple of a signature.
type flow struct{ addrs, rest uint64 }

func (s Signature) flow() flow { return flow{s.Addrs, s.Rest &^ (0xffff<<16 | 0xff)} }
func (s Signature) id() uint16 { return uint16(s.Rest >> 16) }

// Bursts classifies what was lost in bursts in one batch at one port (algorithm
// 10). It sorts the losses by time and sets their Cause; what is in no burst
// stays Unknown, for Interval.
//
// Of a batch that did not decode, unnamed packets were lost, too. That a flow's
// losses have gaps then does not show that packets of it passed: as long as these
// can fill all gaps of the batch, they do.
func (t *Thresholds) Bursts(losses []Loss, unnamed int64) {
	filled := unnamed > 0 && gaps(losses) <= unnamed
	slices.SortStableFunc(losses, func(a, b Loss) int { return cmp.Compare(a.At, b.At) })
	open := losses[:0:0]
	var index []int
	for i := range losses {
		if losses[i].Cause == Unknown {
			open = append(open, losses[i])
			index = append(index, i)
		}
	}
	for from := 0; from < len(open); {
		to := from + 1
		for to < len(open) && open[to].At-open[to-1].At < t.Gap {
			to++
		}
		if to-from >= t.Burst {
			t.burst(open[from:to], filled)
		}
		from = to
	}
	for k, i := range index {
		losses[i].Cause = open[k].Cause
	}
}

// burst judges one burst: packets of any flow that are not consecutive mean a
// queue that took some and refused others, unless losses without a name fill the gaps.
func (t *Thresholds) burst(v []Loss, filled bool) {
	flows := byFlow(v)
	for _, f := range flows {
		if !filled && !consecutive(ids(v, f)) {
			for i := range v {
				v[i].Cause = Congestion
			}
			return
		}
	}
	for _, f := range flows {
		cause := Congestion
		if len(f) > t.InBurst {
			cause = Blackhole
		}
		for _, i := range f {
			v[i].Cause = cause
		}
	}
}

// Over classifies what was lost at one port in one interval (algorithm 11), of
// which Bursts has seen every batch. from is where the interval begins.
func (t *Thresholds) Over(losses []Loss, from frame.Time) {
	for _, f := range byFlow(losses) {
		var open []int
		for _, i := range f {
			if losses[i].Cause == Unknown {
				open = append(open, i)
			}
		}
		// Consecutive among all that the flow lost, as many as needed among what is
		// not explained yet.
		if len(open) >= t.Consecutive && consecutive(ids(losses, f)) {
			for _, i := range open {
				losses[i].Cause = Blackhole
			}
		}
	}
	rest, syns := 0, 0
	for i := range losses {
		if losses[i].Cause == Unknown {
			rest++
			if losses[i].Rest&flagSYN != 0 {
				syns++
			}
		}
	}
	if rest > 0 && float64(syns) > t.SYN*float64(rest) {
		for i := range losses {
			if losses[i].Cause == Unknown && losses[i].Rest&flagSYN != 0 {
				losses[i].Cause = Blackhole
			}
		}
		rest -= syns
	}
	if rest < t.FewestRandom {
		return
	}
	hit, parts := make([]bool, rest), 0
	for i := range losses {
		if losses[i].Cause != Unknown {
			continue
		}
		at := int(int64(losses[i].At-from) * int64(rest) / int64(t.Interval))
		if at = min(max(at, 0), rest-1); !hit[at] {
			hit[at] = true
			parts++
		}
	}
	if float64(parts) > t.Spread*float64(rest) {
		for i := range losses {
			if losses[i].Cause == Unknown {
				losses[i].Cause = Random
			}
		}
	}
}

// byFlow returns the indices of the losses of each flow, in the order in which
// the flows first appear.
func byFlow(v []Loss) [][]int {
	at := map[flow]int{}
	var out [][]int
	for i := range v {
		f := v[i].flow()
		k, ok := at[f]
		if !ok {
			k = len(out)
			at[f] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return out
}

func ids(v []Loss, of []int) []uint16 {
	out := make([]uint16, len(of))
	for k, i := range of {
		out[k] = v[i].id()
	}
	return out
}

// gaps is how many packets of all flows lie between those that they lost.
func gaps(losses []Loss) (n int64) {
	for _, f := range byFlow(losses) {
		v := ids(losses, f)
		slices.Sort(v)
		v = slices.Compact(v)
		widest := 1<<16 - int64(v[len(v)-1]-v[0]) // around the circle
		for i := 1; i < len(v); i++ {
			widest = max(widest, int64(v[i]-v[i-1]))
		}
		n += 1<<16 - widest + 1 - int64(len(v))
	}
	return n
}

// consecutive reports whether identifications follow each other without a gap,
// in any order, modulo 2^16.
func consecutive(v []uint16) bool {
	if len(v) <= 1 {
		return true
	}
	if len(v) > 1<<16 {
		return false
	}
	slices.Sort(v)
	gaps := 0
	for i, x := range v {
		next := v[(i+1)%len(v)]
		switch next - x {
		case 1:
		case 0:
			return false
		default:
			gaps++
		}
	}
	return gaps <= 1 // the one around the circle
}
