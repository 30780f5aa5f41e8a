package collect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gswitch/frame"
	"gswitch/telemetry"
	"gswitch/telemetry/flowradar"
)

// flowKind is the kind of FlowRadar's reports.
const flowKind = "flowradar"

const (
	// slotWait is the least time to wait for the reports of a slot: an exporter that
	// sends what it has accumulated is not the only one.
	slotWait = 2 * time.Second
	// window is the time within which a watcher is sure to see all that belongs together.
	// A watcher lasts for two windows, and one starts in each window, so that none keeps
	// anything for longer.
	window      = 20 * frame.Second
	longestSlot = frame.Second
	// apart is how many slots earlier or later one switch may count a packet than
	// another: slots start when the daemon did, and clocks differ.
	apart = 2
	// mostLengths bounds the number of different slot lengths.
	mostLengths = 8
	// mostWaiting bounds the bytes of waiting slots of all lengths. Beyond it the oldest
	// are judged early.
	mostWaiting = 256 << 20
	// mostJudged bounds the memory for the reports of one slot while it is judged: each
	// takes flowCost times its bytes, whatever table size it announces. Further reports
	// are rejected.
	mostJudged = 1 << 30
	flowCost   = 16
	// mostFollowed bounds the flows that a watcher follows at each place. Beyond it all
	// are dropped.
	mostFollowed = 1 << 21
)

// slots holds the reports of all switches for slots of one length. Slots are numbered by
// the wall clock.
type slots struct {
	length    frame.Time
	names     []string // of switches
	index     map[string]int
	ports     [][]flowradar.End
	links     map[flowradar.End]string // by the end where they start
	decode    *flowradar.Collector
	waiting   map[uint64]*waitingSlot
	order     []uint64 // of the waiting slots
	bytes     int
	next      uint64 // earlier slots have been judged
	noted     uint64 // the last one that watchers have seen
	reporters map[reporter]*reported
	watchers  map[uint64]*flowradar.Watcher // by the window with which they start
}

// waitingSlot is a slot that has not been judged.
type waitingSlot struct {
	since   time.Time // when the first report arrived
	reports []waitingReport
	cost    int // memory of its reports while they are judged
}

type waitingReport struct {
	sw, workers int
	whole       bool // it covers exactly one slot, completely
	body        []byte
}

// size returns the memory that a report takes until its slot is judged.
func (w *waitingReport) size() int { return len(w.body) + 128 }

// cost returns the memory that it takes while its slot is judged: the nonzero part of its
// table, a copy of that, and its flows.
func (w *waitingReport) cost() int { return flowCost * len(w.body) }

// reporter is a worker of a switch.
type reporter struct{ sw, shard int }

// reported is the progress of a worker's reports.
type reported struct {
	slot     uint64
	lastSeen time.Time
}

func newSlots(n *Network, length frame.Time) *slots {
	t := n.plan.Topology
	s := &slots{length: length, index: map[string]int{}, links: map[flowradar.End]string{}, waiting: map[uint64]*waitingSlot{},
		reporters: map[reporter]*reported{}, watchers: map[uint64]*flowradar.Watcher{}}
	var nodes []flowradar.Node
	at := map[int]int{}
	for i, node := range t.Switches() {
		at[node] = i
	}
	for i, node := range t.Switches() {
		name := t.Nodes[node].Name
		s.names, s.index[name] = append(s.names, name), i
		var ports []flowradar.End
		for p := range t.Nodes[node].Links {
			peer := t.Peer(node, p)
			s.links[flowradar.End{Switch: i, Port: uint16(p)}] = name + ">" + t.Nodes[peer.Node].Name
			e := flowradar.End{Switch: -1}
			if k, ok := at[peer.Node]; ok {
				e = flowradar.End{Switch: k, Port: uint16(peer.Port)}
			}
			ports = append(ports, e)
		}
		s.ports = append(s.ports, ports)
		nodes = append(nodes, flowradar.Node{ID: uint16(i), Shards: 1, Ports: ports})
	}
	s.decode = flowradar.NewCollector(nodes, 0)
	return s
}

// slotOf returns the length of a report's slot, and false if the slot ended early. A
// node's slots start at multiples of their length.
func slotOf(r *flowradar.Report) (frame.Time, bool) {
	const most = 1 << 40
	if r.Slots == 0 || r.Slot > most || r.From < 0 || r.To <= r.From {
		return 0, false
	}
	ends := frame.Time(r.Slot + uint64(r.Slots))
	length := r.To / ends
	return length, length >= frame.Millisecond && length <= longestSlot && r.To%ends == 0 && r.From/length == frame.Time(r.Slot)
}

// flowReport adds a FlowRadar report to those of its slot.
func (a *Analysis) flowReport(m *message, r *telemetry.Report) {
	h, err := flowradar.ParseHeader(r.Body)
	if err != nil {
		a.problem("bad")
		return
	}
	length, ok := slotOf(h)
	if !ok {
		a.problem("different")
		return
	}
	name := nodeName(&m.Hello, r.Node)
	if _, ok := a.network.end(name, 0); !ok {
		a.problem("foreign")
		return
	}
	s := a.slots[length]
	if s == nil && len(a.slots) == mostLengths {
		a.problem("different")
		return
	}
	if s == nil {
		s = newSlots(a.network, length)
		a.slots[length] = s
	}
	sw, ok := s.index[name]
	if !ok {
		a.problem("foreign") // from a host
		return
	}
	// The nodes' clocks start with the exporter.
	begin := frame.Time(h.Slot)*length + frame.Time(m.Boot)
	slot := uint64((begin + length/2) / length)
	if begin < 0 || begin > frame.Time(a.now.UnixNano())+frame.Time(reportTimeout) {
		a.problem("ahead")
		return
	}
	w := waitingReport{sw: sw, workers: 1, whole: h.Slots == 1 && h.From == frame.Time(h.Slot)*length, body: r.Body}
	for _, n := range m.Nodes {
		if n.ID == r.Node {
			w.workers = n.Workers
		}
	}
	for a.waitingBytes()+w.size() > a.most.waiting && a.judgeOldest() {
	}
	switch {
	case slot < s.next:
		a.problem("late")
		return
	case s.waiting[slot] != nil && s.waiting[slot].cost+w.cost() > a.most.judged:
		a.refused.judged++
		a.problem("full")
		return
	}
	if s.waiting[slot] == nil {
		s.waiting[slot] = &waitingSlot{since: a.now}
		at, _ := slices.BinarySearch(s.order, slot)
		s.order = slices.Insert(s.order, at, slot)
	}
	s.waiting[slot].reports = append(s.waiting[slot].reports, w)
	s.waiting[slot].cost += w.cost()
	s.bytes += w.size()
	key := reporter{sw, int(h.Shard)}
	if s.reporters[key] == nil {
		s.reporters[key] = new(reported)
	}
	t := s.reporters[key]
	t.slot, t.lastSeen = max(t.slot, slot+uint64(h.Slots)-1), a.now
}

// waitingBytes returns the memory of waiting slots of all lengths.
func (a *Analysis) waitingBytes() (n int) {
	for _, s := range a.slots {
		n += s.bytes
	}
	return n
}

// judgeOldest judges a slot early: the oldest one of the length that takes the most
// memory. It returns false if none is waiting.
func (a *Analysis) judgeOldest() bool {
	var most *slots
	for _, length := range slices.Sorted(maps.Keys(a.slots)) {
		if s := a.slots[length]; len(s.order) > 0 && (most == nil || s.bytes > most.bytes) {
			most = s
		}
	}
	if most == nil {
		return false
	}
	n := most.order[0]
	most.order = most.order[1:]
	a.judgeSlot(most, n)
	return true
}

// judgeSlots decodes the slots that all switches have reported.
func (a *Analysis) judgeSlots() {
	for _, length := range slices.Sorted(maps.Keys(a.slots)) {
		s := a.slots[length]
		until := s.reportedTo(a.now)
		for len(s.order) > 0 {
			n := s.order[0]
			if n > until || a.now.Sub(s.waiting[n].since) < slotWait {
				break
			}
			s.order = s.order[1:]
			a.judgeSlot(s, n)
		}
		if len(s.waiting) == 0 && len(s.reporters) == 0 {
			delete(a.slots, length)
		}
	}
}

// reportedTo returns the last slot that every active worker has reported.
func (s *slots) reportedTo(now time.Time) uint64 {
	until := ^uint64(0)
	for k, t := range s.reporters {
		switch idle := now.Sub(t.lastSeen); {
		case idle < reportTimeout:
			until = min(until, t.slot)
		case idle > Memory/2:
			delete(s.reporters, k)
		}
	}
	return until
}

// judgeSlot decodes what switches counted in a slot, and passes it to the watchers.
func (a *Analysis) judgeSlot(s *slots, n uint64) {
	from := frame.Time(n) * s.length
	for _, w := range s.waiting[n].reports {
		s.bytes -= w.size()
		r, err := flowradar.Parse(w.body)
		if err != nil {
			a.problem("bad")
			continue
		}
		r.Node, r.Slot, r.From, r.To = uint16(w.sw), n, from, from+s.length
		if !w.whole {
			r.Slots = 0 // not about this slot alone
		}
		s.decode.Workers(r.Node, w.workers)
		s.decode.Add(r)
	}
	delete(s.waiting, n)
	for _, slot := range s.decode.Flush() {
		for i := range slot.Switches {
			switch w := &slot.Switches[i]; {
			case !w.Known:
				a.stats[Stat{flowSlots, "unknown"}]++
			case !w.Complete:
				a.stats[Stat{flowSlots, "crowded"}]++
			default:
				a.stats[Stat{flowSlots, "whole"}]++
			}
		}
		a.watch(s, slot)
	}
	s.next = n + 1
}

// watch turns what a slot shows into events.
func (a *Analysis) watch(s *slots, slot *flowradar.Slot) {
	now := slot.Number / uint64(window/s.length)
	for first := range s.watchers {
		if first+1 < now {
			delete(s.watchers, first)
		}
	}
	found := map[string]Event{}
	for _, first := range []uint64{now - 1, now} {
		w := s.watchers[first]
		if w == nil {
			w = flowradar.NewLooseWatcher(s.ports, apart)
			s.watchers[first] = w
		} else if slot.Number > s.noted+1 {
			// There are no reports of the slots in between.
			w.Note(slot.From, &flowradar.Slot{Number: slot.Number - 1, From: slot.From - s.length, To: slot.From, Switches: make([]flowradar.SwitchSlot, len(s.names))})
		}
		for _, f := range w.Note(slot.To, slot) {
			e := s.event(&f)
			found[e.ID] = e // what both watchers see is one event
		}
		if w.Len() > a.most.followed {
			delete(s.watchers, first)
			a.refused.followed++
			a.problem("full")
		}
	}
	s.noted = slot.Number
	v := slices.Collect(maps.Values(found))
	byName(v)
	a.out = append(a.out, v...)
}

func (s *slots) event(f *flowradar.Finding) Event {
	e := Event{Kind: Flows, What: f.Kind.String(), Where: s.names[f.Switch], At: wall(f.From), Until: wall(f.Seen), Packets: uint64(f.Packets),
		SrcPort: uint16(f.Flow.Rest >> 24), DstPort: uint16(f.Flow.Rest >> 8), Protocol: uint8(f.Flow.Rest)}
	if link, ok := s.links[flowradar.End{Switch: f.Switch, Port: f.Port}]; ok {
		e.Where = link
	}
	var names []string
	for _, sw := range f.Cycle {
		names = append(names, s.names[sw])
	}
	e.Path = strings.Join(names, " ")
	if f.Flow.Rest&telemetry.HashedAddrs == 0 {
		e.Src, e.Dst = ipv4(f.Flow.Src()), ipv4(f.Flow.Dst())
	} else {
		e.Reason = fmt.Sprint(f.Flow) // for IPv6 there are only hashes of addresses
	}
	e.name(e.What, e.Where, f.Flow, f.From)
	return e
}
