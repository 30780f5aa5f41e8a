package rocc

import "math"

// looks bounds how many entries are judged to make room for one packet, so
// that what a frame costs is bounded.
const looks = 8

// aged keeps flows that sent within Age periods. The publication bounds the
// table by FMax/FMin flows and evicts by age. Where it is full, of the next
// eight in turn the one without a packet for longest makes room, unless all of
// them sent in this very period.
func (t *Table) aged(hash uint32, key Key) *Flow {
	if i, ok := t.find(hash, key); ok {
		t.entries[i].seen = t.tick
		return nil
	}
	if len(t.free) == 0 {
		oldest, age := uint32(0), uint32(0)
		for range min(looks, t.n) {
			i := t.following(t.hand)
			t.hand = i + 1
			if a := t.tick - t.entries[i].seen; a > age {
				oldest, age = i, a
			}
		}
		if age == 0 {
			t.Full++
			return nil
		}
		t.remove(oldest)
		t.Evicted++
	}
	return &t.flows[t.add(hash, key)]
}

// afd keeps the flow table of AFD (Pan, Breslau, Prabhakar, Shenker,
// "Approximate Fairness through Differential Dropping", CCR 33(2), 2003): a
// shadow buffer keeps packets that were sampled, each new one in place of
// one chosen at random, and the table counts those of each flow. So a flow is
// there with a probability that grows with its rate, and ages by the traffic
// of all: also by that of flows for which there is no room.
func (t *Table) afd(hash uint32, key Key) *Flow {
	var fresh *Flow
	i, ok := t.find(hash, key)
	if !ok {
		if len(t.free) == 0 && !t.release() {
			t.Full++
			t.displace()
			return nil
		}
		i = t.add(hash, key)
		fresh = &t.flows[i]
	}
	e := &t.entries[i]
	e.count++
	e.seen = t.tick
	*t.displace() = sample{i, e.life}
	return fresh
}

// displace removes a sampled packet, chosen at random, and returns
// its place.
func (t *Table) displace() *sample {
	s := &t.shadow[t.rng.Uint64()>>32*uint64(len(t.shadow))>>32]
	if old := &t.entries[s.index]; old.life == s.life {
		old.count--
	}
	s.life = none
	return s
}

// release makes room for a flow: of the next eight in turn the one of which
// the fewest packets are kept may have to go, with a chance of one to
// their number and one, so that flows without a place have their turn, too
// (Ben Basat, Einziger, Friedman, Kassner, "Randomized Admission Policy for
// Efficient Top-k and Frequency Estimation", INFOCOM 2017).
func (t *Table) release() bool {
	least := t.following(t.hand)
	for range min(looks, t.n) {
		i := t.following(t.hand)
		t.hand = i + 1
		if t.entries[i].count < t.entries[least].count {
			least = i
		}
	}
	if t.rng.Uint64()>>32*uint64(t.entries[least].count+1)>>32 != 0 {
		return false
	}
	t.remove(least)
	t.Evicted++
	return true
}

// trap is ElephantTrap (Lu, Wang, Prabhakar, Bonomi, "ElephantTrap: A Low Cost
// Device for Identifying Large Flows", Hot Interconnects 2007): sampled packets
// count for their flows, and a hand that goes round makes room for new ones:
// it halves what is counted until it finds a flow with next to nothing.
func (t *Table) trap(hash uint32, key Key) *Flow {
	if i, ok := t.find(hash, key); ok {
		e := &t.entries[i]
		e.seen = t.tick
		if e.count < math.MaxUint32 {
			e.count++
		}
		return nil
	}
	for step := 0; len(t.free) == 0; step++ {
		if step == looks {
			t.Full++
			return nil
		}
		i := t.following(t.hand)
		t.hand = i + 1
		if e := &t.entries[i]; e.count > 0 {
			e.count /= 2
			continue
		}
		t.remove(i)
		t.Evicted++
	}
	return &t.flows[t.add(hash, key)]
}

// bubble is a cache after BubbleCache (Ros-Giralt, Commike, Maji,
// Veeraraghavan, "High Speed Elephant Flow Detection under Partial
// Information", ISNCC 2018): flows that are sampled more often than the one
// above them rise by a place, new ones come in at the bottom, and the sampling
// rate follows the traffic: as few packets as distinguish large flows from small ones.
func (t *Table) bubble(hash uint32, key Key) *Flow {
	i, ok := t.find(hash, key)
	if ok {
		e := &t.entries[i]
		if e.count < math.MaxUint32 {
			e.count++
		}
		if e.rank > 0 {
			if above := t.order[e.rank-1]; t.entries[above].count < e.count {
				t.swap(e.rank)
			}
		}
		return nil
	}
	if len(t.free) == 0 {
		last := t.order[len(t.order)-1]
		// Who is last pays for each packet of those that have no place.
		if e := &t.entries[last]; e.past > 0 {
			e.past--
			t.Full++
			return nil
		} else if e.count > 1 {
			e.count--
			t.Full++
			return nil
		}
		t.order = t.order[:len(t.order)-1]
		t.remove(last)
		t.Evicted++
	}
	i = t.add(hash, key)
	e := &t.entries[i]
	e.count, e.rank = 1, uint32(len(t.order))
	t.order = append(t.order, i)
	return &t.flows[i]
}

// swap exchanges ranks r-1 and r.
func (t *Table) swap(r uint32) {
	o := t.order
	o[r-1], o[r] = o[r], o[r-1]
	t.entries[o[r-1]].rank, t.entries[o[r]].rank = r-1, r
}

// wanted is how many samples of a flow in a round Bubble aims at: with fewer,
// large and small flows look alike by chance; more cost time and add nothing
// new. The publication derives its aim from the likelihood of a wrong order;
// this is ours.
const wanted = 8

// small is by how much flows that matter may be smaller than the largest.
const small = 4

// round ends a round of Bubble: flows of which no packet was sampled go, and
// the sampling rate is judged by what the flows that matter,
// those above a quarter of the largest, had.
func (t *Table) round() {
	t.largest = 0
	for _, i := range t.order {
		t.largest = max(t.largest, t.entries[i].count)
	}
	sum, n := uint64(0), uint64(0)
	kept := t.order[:0]
	for _, i := range t.order {
		e := &t.entries[i]
		if e.count == 0 {
			t.remove(i)
			continue
		}
		if e.count >= t.largest/small {
			sum, n = sum+uint64(e.count), n+1
		}
		e.past, e.count, e.rank = e.count, 0, uint32(len(kept))
		kept = append(kept, i)
	}
	t.order = kept
	switch {
	case n == 0:
	case sum > 2*wanted*n:
		t.gap = min(2*t.gap, maxSample)
	case sum < wanted*n:
		t.gap = max(t.gap/2, 1)
	}
}
