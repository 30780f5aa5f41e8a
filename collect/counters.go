package collect

import (
	"gswitch/fabric/traces"
	"gswitch/frame"
	"gswitch/mirror"
)

// count adds a packet to the counters of the links that it passed, and to those whose filter
// chooses it (Everflow section 4.2.2: analyzers keep counters of the packets that were
// copied, by link and by filter).
func (a *Analysis) count(t *mirror.Trace) {
	a.book.Passages(t, func(p traces.Passage) {
		link := p.From + ">" + p.To
		a.stats[Stat{tracedLinks, link}]++
		a.stats[Stat{tracedBytes, link}] += uint64(p.Bytes)
		if p.Took >= 0 {
			a.stats[Stat{tracedDelays, link + " " + delayClass(p.Took)}]++
		}
	})
	for i := range a.network.counters {
		c := &a.network.counters[i]
		if !c.filter.Match(t) {
			continue
		}
		a.stats[Stat{countedPackets, c.name}]++
		a.stats[Stat{countedBytes, c.name}] += uint64(bytesOf(t))
	}
}

// bytesOf is how long a packet was where it was seen first.
func bytesOf(t *mirror.Trace) uint16 {
	for _, v := range [][]mirror.Hop{t.Hops, t.Dropped} {
		if len(v) > 0 {
			return v[0].Bytes
		}
	}
	return 0
}

// delayClass is one of the four classes of delays of a link. The paper has four and does not
// say which.
func delayClass(d frame.Time) string {
	switch {
	case d < 100*frame.Microsecond:
		return "100us"
	case d < 500*frame.Microsecond:
		return "500us"
	case d < frame.Millisecond:
		return "1ms"
	}
	return "more"
}
