package flowradar

import (
	"maps"
	"slices"
)

// A flow's path in a slot is the set of switches that report it, chained along
// the topology.

// Loop is a cycle in which a flow's packets may have circulated.
type Loop struct {
	Cycle     []int  // switches, the one where the flow enters first
	Entering  int    // the switch before the cycle, -1 if the flow begins in it
	Outside   uint32 // packets at Entering
	Inside    uint32 // packets at the second switch of the cycle
	Confirmed bool   // more packets inside than entered
}

// mostCycles bounds the search: a flow's path has few switches.
const mostCycles = 1000

// FindLoop looks for a loop of a flow among the switches that report it in one
// slot (section 4.4.1). counts holds the packets at each switch that reports the
// flow, edges leads from a switch to those that it may forward the flow to (all
// its neighbours, where routes are not known), and source is the switch by which
// the flow enters the network. A cycle may only mean that the route changed
// within the slot. It is a loop if more packets were counted inside than entered
// it, by more than inFlight: what the links between may hold.
func FindLoop(counts map[int]uint32, edges func(int) []int, source int, inFlight uint32) (Loop, bool) {
	nodes := slices.Sorted(maps.Keys(counts))
	from := reach(nodes, edges, source)
	var best Loop
	for _, cycle := range cycles(nodes, edges) {
		l := enter(cycle, from, counts, inFlight)
		if l.Confirmed {
			return l, true
		}
		// Two neighbours are a cycle of every path, since links work both ways.
		if len(cycle) > 2 && len(cycle) > len(best.Cycle) {
			best = l
		}
	}
	return best, best.Cycle != nil
}

// reach returns, for each switch that a flow from source reaches, the one before
// it on the shortest way, and the order in which they are reached.
func reach(nodes []int, edges func(int) []int, source int) (way [][2]int) {
	if !slices.Contains(nodes, source) {
		return nil
	}
	way = append(way, [2]int{source, -1})
	for i := 0; i < len(way); i++ {
		for _, next := range edges(way[i][0]) {
			if slices.Contains(nodes, next) && !slices.ContainsFunc(way, func(w [2]int) bool { return w[0] == next }) {
				way = append(way, [2]int{next, way[i][0]})
			}
		}
	}
	return way
}

// enter turns a cycle so that the switch that the flow reaches first comes first.
func enter(cycle []int, from [][2]int, counts map[int]uint32, inFlight uint32) Loop {
	l := Loop{Cycle: cycle, Entering: -1}
	for _, w := range from {
		if at := slices.Index(cycle, w[0]); at >= 0 {
			l.Cycle, l.Entering = slices.Concat(cycle[at:], cycle[:at]), w[1]
			break
		}
	}
	l.Inside = counts[l.Cycle[1]]
	if l.Entering >= 0 {
		l.Outside = counts[l.Entering]
		l.Confirmed = l.Inside > l.Outside+inFlight
	}
	return l
}

// cycles returns the simple cycles among nodes, each once.
func cycles(nodes []int, edges func(int) []int) (out [][]int) {
	var path []int
	var visit func(start, s int)
	visit = func(start, s int) {
		path = append(path, s)
		for _, next := range edges(s) {
			switch {
			case len(out) == mostCycles:
			case next == start && len(path) > 1:
				out = append(out, slices.Clone(path))
			case next > start && slices.Contains(nodes, next) && !slices.Contains(path, next):
				visit(start, next)
			}
		}
		path = path[:len(path)-1]
	}
	for _, s := range nodes {
		visit(s, s)
	}
	return out
}

// FlowletLosses compares what two neighbours counted of one flow, slot by slot,
// and returns the packets lost between them, for each flowlet that has ended: a
// run of slots in which one of them saw the flow, with an empty one behind it
// (section 4.4.2). Slot by slot the counts need not agree: packets under way at
// the end of a slot are counted in the next one. Slots for which a report is
// missing are negative; a flowlet that touches one is not judged.
func FlowletLosses(up, down []int64) []Flowlet {
	var out []Flowlet
	for from := 0; from < len(up); {
		if up[from] == 0 && down[from] == 0 {
			from++
			continue
		}
		to, known := from, true
		f := Flowlet{From: from}
		for to < len(up) && (up[to] != 0 || down[to] != 0) {
			known = known && up[to] >= 0 && down[to] >= 0
			f.Lost += up[to] - down[to]
			f.Sent += up[to]
			to++
		}
		f.To = to
		if to < len(up) && known {
			out = append(out, f)
		}
		from = to
	}
	return out
}

// Flowlet is a burst of a flow between two slots without it.
type Flowlet struct {
	From, To   int // slots: the first, and the empty one behind the last
	Sent, Lost int64
}

// Blackhole looks for the switch behind which a flow disappears: the last one of
// its way that reports it in a slot, if the way goes on. way is the flow's path
// from source to destination; has says whether a switch reports it in the slot
// and known whether its report came at all. It returns the position on the way of
// the last switch that saw the flow, or -1 if it arrives or that is not known.
func Blackhole(way []int, has, known func(int) bool) int {
	last := -1
	for i, s := range way {
		switch {
		case !known(s):
			return -1
		case has(s):
			last = i
		case last >= 0:
			// Behind the last switch none may report it, or it only went another way.
			for _, s := range way[i:] {
				if !known(s) || has(s) {
					return -1
				}
			}
			return last
		}
	}
	return -1
}

// Imbalance describes what crossed the members of an ECMP group in a slot.
type Imbalance struct {
	Flows, Packets []uint64 // by member
	// Most and Least are the largest and smallest share of the mean.
	FlowsMost, PacketsMost float64
	// Hash says that the flows are divided badly; otherwise a few flows carry what
	// is too much (section 4.5.3).
	Hash bool
}

// Divide judges how flows are divided among members of a group: threshold is the
// share of the mean above which a member has too much, such as 1.5. ok is false
// where no member has.
func Divide(members [][]Record, threshold float64) (m Imbalance, ok bool) {
	var flows, packets uint64
	for _, v := range members {
		var n uint64
		for _, r := range v {
			n += uint64(r.Packets)
		}
		m.Flows, m.Packets = append(m.Flows, uint64(len(v))), append(m.Packets, n)
		flows += uint64(len(v))
		packets += n
	}
	if packets == 0 {
		return m, false
	}
	share := func(v []uint64, sum uint64) float64 {
		return float64(slices.Max(v)) * float64(len(v)) / float64(sum)
	}
	m.FlowsMost, m.PacketsMost = share(m.Flows, flows), share(m.Packets, packets)
	m.Hash = m.FlowsMost > threshold
	return m, m.PacketsMost > threshold
}
