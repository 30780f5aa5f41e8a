package flowradar

import (
	"cmp"
	"slices"

	"gswitch/frame"
)

// End is what a port leads to: a port of another switch of the collector. Switch is
// -1 where it leads to a host, or to what does not report.
type End struct {
	Switch int
	Port   uint16
}

// Kind is what a Watcher finds.
type Kind uint8

const (
	Lost       Kind = iota // packets of a flow were lost
	Blackholed             // all packets of a flow are lost at one place
	Looped                 // packets of a flow circulate
	numKinds
)

func (k Kind) String() string { return [numKinds]string{"loss", "blackhole", "loop"}[k] }

// Finding is something that the slots of a network show.
type Finding struct {
	Kind   Kind
	Flow   Key
	Switch int    // where the flow was last seen, or where the loop begins
	Port   uint16 // by which it left; NoPort: it was dropped by the tables of the switch
	Next   int    // the switch that the port leads to; -1 for NoPort
	// From is the beginning of the first slot that shows it, Seen when that was known.
	From, Seen frame.Time
	Packets    int64 // lost so far; in a loop those that circulated
	Entered    int64 // of a loop: packets that came to it
	Cycle      []int // of a loop
}

// Watcher follows flows from switch to switch and from slot to slot.
type Watcher struct {
	ports      [][]End
	places     map[place]*flowlet
	order      []place // of places, as they came
	came       map[visit]arrival
	purged     uint64         // slot up to which came was gone through
	loops      map[Key]circle // by flow
	apart      uint64
	incomplete []uint64 // with apart: 1 + the last slot of which a switch did not report all
	out        []Finding
}

// place is a flow on a link, or, without a port, in the tables of a switch.
type place struct {
	flow Key
	sw   int
	port uint16
}

// flowlet is a burst of a flow between two slots without it (section 4.4.2): only
// when it is over the counts of both ends of a link can be compared, since packets
// that are under way at the end of a slot are counted in the next one.
type flowlet struct {
	from          frame.Time
	sent, arrived int64
	unknown       bool // a report that it is in did not come, or has no ports for it
	gone          int64
	since         uint64     // the slot of the first packet of gone
	sinceAt       frame.Time // its beginning
	reported      bool
	up, down      int64  // of the slot that is being noted
	vague         bool   // in that slot
	passes        bool   // in that slot the tables let other packets of the flow pass
	last          uint64 // slot with a packet
	arrivedUntil  uint64 // 1 + the last slot in which packets arrived, or may have
}

// leastGone is how many packets of a flow must be lost one after the other, in more
// than one slot, to call it a blackhole: of a link that loses one in a hundred
// three in a row are one in a million.
const leastGone = 3

// loopSlack is how many more packets than came to a cycle may have been counted in
// it without a loop: those that were under way when the slot began.
const loopSlack = 10

// NewWatcher returns a watcher of a network: ports says what each port of each
// switch leads to.
func NewWatcher(ports [][]End) *Watcher {
	return &Watcher{ports: ports, places: map[place]*flowlet{}, came: map[visit]arrival{}, loops: map[Key]circle{}}
}

// NewLooseWatcher returns a watcher of a network whose switches begin their slots each
// at times of its own: packets may be counted up to apart slots earlier or later at one end
// of a link than at the other, beside those that are under way. Losses and blackholes
// are known so many slots later, and a loop in the second slot that shows it.
func NewLooseWatcher(ports [][]End, apart uint64) *Watcher {
	w := NewWatcher(ports)
	w.apart = apart
	return w
}

// Len is how much a watcher holds: flows at links and in tables, where they came
// from, and those that circulate.
func (w *Watcher) Len() int { return len(w.places) + len(w.came) + len(w.loops) }

// Note takes the next slot and returns what it shows, by flow. The slice is good
// until the next call.
func (w *Watcher) Note(now frame.Time, s *Slot) []Finding {
	w.out = w.out[:0]
	w.purge(s.Number)
	w.noteIncomplete(s)
	flows := w.count(s)
	for _, hops := range flows {
		w.loop(now, s, hops)
	}
	keep := w.order[:0]
	for _, at := range w.order {
		if w.follow(now, s, at, w.places[at]) {
			keep = append(keep, at)
		} else {
			delete(w.places, at)
		}
	}
	w.order = keep
	slices.SortFunc(w.out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Flow.Addrs, b.Flow.Addrs), cmp.Compare(a.Flow.Rest, b.Flow.Rest), cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port))
	})
	return w.out
}

// noteIncomplete notes which switches do not report all of a slot. Before the first
// one none does.
func (w *Watcher) noteIncomplete(s *Slot) {
	if w.apart == 0 {
		return
	}
	if w.incomplete == nil {
		w.incomplete = slices.Repeat([]uint64{s.Number}, len(w.ports))
	}
	for i := range s.Switches {
		unsure := func(r Record) bool { return !r.sure() }
		if !s.complete(i) || slices.ContainsFunc(s.Switches[i].Records, unsure) {
			w.incomplete[i] = s.Number + 1
		}
	}
}

// unsure reports whether packets on a link may be counted at its other end in a slot
// without a report.
func (w *Watcher) unsure(p place, s *Slot) bool {
	next := w.end(p.sw, p.port).Switch
	return w.apart > 0 && next >= 0 && s.Number < max(w.incomplete[p.sw], w.incomplete[next])+w.apart
}

// end is what a port of a switch leads to.
func (w *Watcher) end(sw int, port uint16) End {
	if port < uint16(len(w.ports[sw])) {
		return w.ports[sw][port]
	}
	return End{Switch: -1}
}

func (w *Watcher) at(p place, s *Slot) *flowlet {
	f := w.places[p]
	if f == nil {
		f = &flowlet{from: s.From, unknown: w.unsure(p, s)}
		w.places[p] = f
		w.order = append(w.order, p)
	}
	return f
}

// Before returns where a flow came from to a switch in the last slot in which it did:
// the switch before it, and its port. It returns false for a flow that came from a
// host, or not at all.
func (w *Watcher) Before(flow Key, sw int) (End, bool) {
	e, ok := w.came[visit{flow, sw}]
	return e.from, ok && e.from.Switch >= 0
}

// arrival is where a flow came from, and the last slot in which it did.
type arrival struct {
	from End
	slot uint64
}

// purge removes where flows came from that have not been seen for long.
func (w *Watcher) purge(slot uint64) {
	if slot < w.purged+keptSlots {
		return
	}
	w.purged = slot
	keep := map[visit]arrival{}
	for k, a := range w.came {
		if a.slot+keptSlots > slot {
			keep[k] = a
		}
	}
	w.came = keep
	loops := map[Key]circle{}
	for k, c := range w.loops {
		if c.slot+keptSlots > slot {
			loops[k] = c
		}
	}
	w.loops = loops
}

// visit is a flow at a switch.
type visit struct {
	flow Key
	sw   int
}

// count enters the records of a slot at the two ends of each link, and returns the
// records of each flow.
func (w *Watcher) count(s *Slot) (flows [][]hop) {
	index := map[Key]int{}
	for i := range s.Switches {
		for _, r := range s.Switches[i].Records {
			k, ok := index[r.Key]
			if !ok {
				k = len(flows)
				index[r.Key] = k
				flows = append(flows, nil)
			}
			flows[k] = append(flows[k], hop{i, r})
			if !r.sure() {
				continue
			}
			n := int64(r.Packets)
			from := w.end(i, r.In)
			w.came[visit{r.Key, i}] = arrival{from, s.Number}
			if from.Switch >= 0 {
				w.at(place{r.Key, from.Switch, from.Port}, s).down += n
			}
			switch {
			case r.Out == Local:
			case r.Out == NoPort:
				w.at(place{r.Key, i, NoPort}, s).up += n
			default:
				if w.end(i, r.Out).Switch >= 0 {
					w.at(place{r.Key, i, r.Out}, s).up += n
				}
			}
		}
	}
	// Flows that came out of a table with others' help have neither ports nor counts
	// that are sure: nothing is said about their links.
	for _, v := range flows {
		for _, h := range v {
			if f := w.places[place{h.Key, h.sw, NoPort}]; f != nil && h.Out < Local {
				f.passes = true
			}
			if !h.sure() {
				for _, o := range v {
					w.vague(h.Key, o.sw)
				}
				break
			}
		}
	}
	return flows
}

// sure reports whether packets and ports are known: of flows that came out of a
// table with others' help, ports never are.
func (r *Record) sure() bool { return r.Exact && r.In != NoPort }

// hop is a record and the switch that it is of.
type hop struct {
	sw int
	Record
}

// vague excludes from the findings of this slot the links of a switch that a flow leaves
// or comes by.
func (w *Watcher) vague(k Key, sw int) {
	if f := w.places[place{k, sw, NoPort}]; f != nil {
		f.vague = true
	}
	for port, e := range w.ports[sw] {
		if f := w.places[place{k, sw, uint16(port)}]; f != nil {
			f.vague = true
		}
		if f := w.places[place{k, e.Switch, e.Port}]; f != nil {
			f.vague = true
		}
	}
}

// follow says what a slot shows of a flow at a place, and whether the flow is to be
// kept there.
func (w *Watcher) follow(now frame.Time, s *Slot, at place, f *flowlet) bool {
	up, down := f.up, f.down
	next := w.end(at.sw, at.port).Switch
	known := !f.vague && s.complete(at.sw) && (next < 0 || s.complete(next))
	passes := down > 0 || f.passes
	f.up, f.down, f.vague, f.passes = 0, 0, false, false
	if up > 0 || down > 0 {
		f.last = s.Number
	}
	if f.sent == f.arrived {
		f.from = s.From // nothing is missing of what was before
	}
	f.sent += up
	f.arrived += down
	f.unknown = f.unknown || !known
	apart := w.apart
	if at.port == NoPort {
		apart = 0
	}
	find := func(k Kind, from frame.Time, n int64) {
		w.out = append(w.out, Finding{Kind: k, Flow: at.flow, Switch: at.sw, Port: at.port, Next: next, From: from, Seen: now, Packets: n})
	}
	switch {
	case !known:
	case up == 0 && down == 0 && apart > 0 && s.Number <= f.last+apart:
		// What is missing may still be counted.
	case up == 0 && down == 0:
		if !f.unknown && f.sent > f.arrived {
			find(Lost, f.from, f.sent-f.arrived)
		}
		f.sent, f.arrived, f.unknown = 0, 0, w.unsure(at, s)
	}
	switch {
	case !known || passes:
		f.gone, f.reported, f.arrivedUntil = 0, false, s.Number+1
	case apart > 0 && (f.arrivedUntil > 0 && s.Number < f.arrivedUntil+apart || f.gone == 0 && w.unsure(at, s)):
		// The packets of this slot may have been counted in one before at the other end.
	case f.gone == 0:
		f.gone, f.since, f.sinceAt = up, s.Number, s.From
	default:
		f.gone += up
	}
	// What the last packets of a slot become is known after the next. Tables drop at
	// once.
	if !f.reported && f.gone >= leastGone && (s.Number > f.since+apart || at.port == NoPort) {
		f.reported = true
		find(Blackholed, f.sinceAt, f.gone)
	}
	// A flow all of whose packets were lost waits for its timeout, and is to be known
	// again.
	idle := s.Number - f.last
	return idle == 0 || idle <= keptSlots && (f.gone > 0 || f.sent > 0 || f.arrived > 0)
}

// complete reports whether a flow that a switch has no record of was not there.
func (s *Slot) complete(sw int) bool { return s.Switches[sw].Known && s.Switches[sw].Complete }

// keptSlots is for how many slots a flow is kept all of whose packets were
// lost: a connection tries again after a second or more.
const keptSlots = 1000

// loop looks for a cycle in the way of a flow in a slot (section 4.4.1): its switches
// forward it to each other in a ring, and more packets were counted inside than came
// to it. Without the second it may be a route that changed within the slot.
func (w *Watcher) loop(now frame.Time, s *Slot, hops []hop) {
	k := hops[0].Key
	seen, ok := w.loops[k]
	if ok = ok && s.Number <= seen.slot+1+w.apart; ok {
		for _, h := range hops { // the end of it
			w.vague(k, h.sw)
		}
	}
	if len(hops) < 2 {
		return
	}
	edges := func(sw int) (v []int) {
		for _, h := range hops {
			if h.sw == sw {
				if to := w.end(sw, h.Out).Switch; to >= 0 && !slices.Contains(v, to) {
					v = append(v, to)
				}
			}
		}
		return v
	}
	var nodes []int
	for _, h := range hops {
		if !slices.Contains(nodes, h.sw) {
			nodes = append(nodes, h.sw)
		}
	}
	slices.Sort(nodes)
	found := cycles(nodes, edges)
	if len(found) == 0 {
		if w.circulates(hops, ok) {
			for _, h := range hops {
				w.vague(k, h.sw)
			}
			if ok {
				seen.slot = s.Number
				w.loops[k] = seen
			}
		}
		return
	}
	cycle := found[0]
	var entered, inside int64
	for _, h := range hops {
		to := w.end(h.sw, h.Out).Switch
		switch in := slices.Contains(cycle, h.sw); {
		case !in && slices.Contains(cycle, to):
			entered += int64(h.Packets)
		case in && h.In != NoPort && w.end(h.sw, h.In).Switch < 0: // from a host
			entered += int64(h.Packets)
		case in && slices.Contains(cycle, to):
			inside = max(inside, int64(h.Packets))
		}
	}
	// Its packets may pass a link again and again, and end in the loop: nothing else is
	// reported of them.
	for _, h := range hops {
		w.vague(k, h.sw)
	}
	c := circle{slot: s.Number, reported: ok && seen.reported, entered: entered}
	if ok && w.apart > 0 {
		entered += seen.entered
	}
	if !c.reported && inside > entered+loopSlack && (ok || w.apart == 0) {
		c.reported = true
		w.out = append(w.out, Finding{Kind: Looped, Flow: k, Switch: cycle[0], Port: NoPort, Next: -1, From: s.From, Seen: now, Packets: inside, Entered: entered, Cycle: cycle})
	}
	w.loops[k] = c
}

// circulates reports whether a flow of which tables dropped packets goes on in a loop
// that its ports do not show: an encoded table keeps those of the first packet of a slot,
// and that may be one whose time to live was over. The others did not vanish there, since
// more were counted than came from hosts. known says that the flow looped just before;
// otherwise what comes from hosts has to be counted in the same slots.
func (w *Watcher) circulates(hops []hop, known bool) bool {
	var entered, most int64
	dropped := false
	for _, h := range hops {
		if h.In != NoPort && w.end(h.sw, h.In).Switch < 0 {
			entered += int64(h.Packets)
		}
		most = max(most, int64(h.Packets))
		dropped = dropped || h.Out == NoPort && h.sure()
	}
	return dropped && most > entered+loopSlack && (known || w.apart == 0 && entered > 0)
}

// circle is what is known of a flow whose switches forward it in a ring.
type circle struct {
	slot     uint64 // the last one in which they did
	reported bool
	entered  int64 // packets that came to it then
}
