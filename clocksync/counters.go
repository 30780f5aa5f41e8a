package clocksync

import (
	"slices"

	"gswitch/feature"
	"gswitch/frame"
)

// Counters are what Instance.Read reads, of a kind of nodes that the prefix of
// their names identifies.
func Counters(prefix string) []feature.Counter {
	v := slices.Clone(counters)
	for i := range v {
		v[i].Name = prefix + v[i].Name
	}
	return v
}

var counters = []feature.Counter{
	{Name: "clock_uncertainty_seconds", Help: "Bound on the error of the synchronised clock; none while it is not synchronised.", Gauge: true},
	{Name: "clock_depth", Help: "Hops from the root of the synchronised time.", Gauge: true},
	{Name: "clock_state", Help: "1 for what the clock takes itself for.", Labels: []string{"state"}, Values: stateNames[:], Gauge: true},
	{Name: "clock_messages_total", Help: "Synchronisation messages by what became of them.", Labels: []string{"outcome"},
		Values: []string{"valid", "ignored", "early", "other-root", "invalid", "malformed", "foreign", "boundless", "stray", "unstamped", "unanswered", "unsent", "excess"}},
	{Name: "clock_turns_total", Help: "Times that the clock turned to its second parent, became root or found itself broken.", Labels: []string{"cause"},
		Values: []string{"timeout", "invalid", "elected", "evicted"}},
	{Name: "clock_gaps_total", Help: "Times that no sync message of the root was received for longer than one lost message explains, or, where all clocks send by a timer, for as long or until a controller acts."},
	{Name: "clock_impacted_seconds_total", Help: "The length of these times together."},
	{Name: "clock_second_root_total", Help: "Messages by any port that name another root than the one that is followed, by the same plan, or by another one for longer than a plan takes to come to all."},
}

// Read calls emit with what was counted, by the index in Counters.
func (n *Instance) Read(now frame.Time, emit func(counter int, value float64, labels ...string)) {
	if eps := n.Uncertainty(now); eps != Forever {
		emit(0, eps.Seconds())
	}
	emit(1, float64(n.depth))
	emit(2, 1, n.State().String())
	c, m := &n.Counts, &n.Messages
	for i, v := range []uint64{c.Valid, c.Ignored, c.Early, c.OtherRoot, c.Invalid, m.Malformed, m.Foreign, m.Boundless, m.Strays, m.Unstamped, m.Unanswered, m.Unsent, m.Excess} {
		emit(3, float64(v), counters[3].Values[i])
	}
	for i, v := range []uint64{c.FlipTimeout, c.FlipInvalid, c.Elected, c.Evicted} {
		emit(4, float64(v), counters[4].Values[i])
	}
	emit(5, float64(c.Gaps))
	emit(6, c.Impacted.Seconds())
	emit(7, float64(c.SecondRoot))
}
