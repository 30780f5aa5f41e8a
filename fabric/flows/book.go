// Package flows puts what switches report of flows (package flowradar) on the map of
// a fabric: who uses which link in which slot, where packets are lost, which flows go
// nowhere or round in circles.
package flows

import (
	"fmt"

	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/telemetry/flowradar"
)

// Book collects the reports of a fabric's switches.
type Book struct {
	topology *fabric.Topology
	switches []int // nodes
	index    map[int]int
	collect  *flowradar.Collector
	watch    *flowradar.Watcher
	links    []*link // by switch and port, those to hosts, too
	at       map[port]*link
	keep     bool
	rows     []Slot
	more     int // rows that are not kept
	found    []Finding
	sum      Sum
}

// Finding is one with what was done about it.
type Finding struct {
	flowradar.Finding
	Moved frame.Time // when a controller moved the flow; 0: not
}

// Sum is what all slots came to.
type Sum struct {
	Slots    int // of all switches
	Unknown  int // of which nothing is known
	Complete int // of which every flow is
	Counters int // of which every counter is
	Flows    uint64
	Most     uint64 // flows of a switch and slot
	Alone    uint64 // that came out of their table without help
	Packets  uint64
	Overflow uint64
	// With exact tables beside the encoded ones:
	Truth, Out, Right, Garbage int
}

type port struct {
	sw   int
	port uint16
}

// link is one direction of a link of the fabric.
type link struct {
	name  string
	users map[flowradar.Key]*user
	order []*user
	bytes uint64
}

type user struct {
	flow           flowradar.Key
	packets, bytes uint64
	slots          int
	peak           float64 // bytes per second
	peakAt         frame.Time
}

// mostRows is how many rows of slots are kept.
const mostRows = 1 << 20

// New returns a book of a fabric. shards is how many workers of each switch report,
// by the order of the topology's switches; ids are the switches' IDs. grace is how
// long reports take. With keep every slot is kept.
func New(t *fabric.Topology, ids []uint16, shards []int, grace frame.Time, keep bool) *Book {
	b := &Book{topology: t, switches: t.Switches(), index: map[int]int{}, at: map[port]*link{}, keep: keep}
	for i, n := range b.switches {
		b.index[n] = i
	}
	var nodes []flowradar.Node
	var ports [][]flowradar.End
	for i, n := range b.switches {
		node := flowradar.Node{ID: ids[i], Shards: shards[i]}
		var ends []flowradar.End
		for p := range t.Nodes[n].Links {
			peer := t.Peer(n, p)
			e := flowradar.End{Switch: -1}
			if k, ok := b.index[peer.Node]; ok {
				e = flowradar.End{Switch: k, Port: uint16(peer.Port)}
			}
			ends = append(ends, e)
			l := &link{name: t.Nodes[n].Name + ">" + t.Nodes[peer.Node].Name, users: map[flowradar.Key]*user{}}
			b.links = append(b.links, l)
			b.at[port{i, uint16(p)}] = l
		}
		node.Ports = ends
		nodes, ports = append(nodes, node), append(ports, ends)
	}
	b.collect, b.watch = flowradar.NewCollector(nodes, grace), flowradar.NewWatcher(ports)
	return b
}

// Add takes a report.
func (b *Book) Add(r *flowradar.Report) { b.collect.Add(r) }

// Strange counts reports of switches that are not of the fabric, and those that came
// too late.
func (b *Book) Strange() uint64 { return b.collect.Unknown + b.collect.Late }

// Advance takes up the slots that are over and returns what they show; the slice is
// good until the next call.
func (b *Book) Advance(now frame.Time) []Finding { return b.note(now, b.collect.Advance(now)) }

// Flush is Advance when no report will come any more.
func (b *Book) Flush(now frame.Time) []Finding { return b.note(now, b.collect.Flush()) }

func (b *Book) note(now frame.Time, v []*flowradar.Slot) []Finding {
	before := len(b.found)
	for _, s := range v {
		for i := range s.Switches {
			b.sum.add(&s.Switches[i])
			b.use(i, s)
		}
		for _, f := range b.watch.Note(now, s) {
			b.found = append(b.found, Finding{Finding: f})
		}
	}
	return b.found[before:]
}

func (s *Sum) add(w *flowradar.SwitchSlot) {
	s.Slots++
	if !w.Known {
		s.Unknown++
	}
	if w.Complete {
		s.Complete++
	}
	if w.Counters {
		s.Counters++
	}
	s.Flows += w.Flows
	s.Most = max(s.Most, w.Flows)
	s.Alone += uint64(w.Alone)
	s.Packets += w.Packets
	s.Overflow += w.Overflow
	if w.Truth != nil {
		found, right, garbage := w.Compare()
		s.Truth += found + missing(w, found)
		s.Out += found
		s.Right += right
		s.Garbage += garbage
	}
}

// missing is how many flows of the exact table did not come out of the encoded one.
func missing(w *flowradar.SwitchSlot, found int) int {
	flows := map[flowradar.Key]bool{}
	for _, e := range w.Truth {
		flows[e.Key] = true
	}
	return len(flows) - found
}

// use enters the flows that used the links of a switch in a slot.
func (b *Book) use(sw int, s *flowradar.Slot) {
	long := (s.To - s.From).Seconds()
	for _, r := range s.Switches[sw].Records {
		name := b.name(sw) + " (dropped)"
		if r.Out == flowradar.Local {
			name = b.name(sw) + " (itself)"
		}
		if !r.Exact {
			name = b.name(sw) + " (unknown)"
		}
		if l := b.at[port{sw, r.Out}]; l != nil {
			name = l.name
			u := l.users[r.Key]
			if u == nil {
				u = &user{flow: r.Key}
				l.users[r.Key] = u
				l.order = append(l.order, u)
			}
			u.packets += uint64(r.Packets)
			u.bytes += r.Bytes
			l.bytes += r.Bytes
			u.slots++
			if rate := float64(r.Bytes) / long; long > 0 && rate > u.peak {
				u.peak, u.peakAt = rate, s.From
			}
		}
		switch {
		case !b.keep:
		case len(b.rows) == mostRows:
			b.more++
		default:
			b.rows = append(b.rows, Slot{Slot: s.From.Seconds(), Length: long, Switch: b.name(sw), Link: name, Flow: r.Key.String(), Packets: uint64(r.Packets), Bytes: r.Bytes, Exact: r.Exact})
		}
	}
}

func (b *Book) name(sw int) string { return b.topology.Nodes[b.switches[sw]].Name }

// place names where a finding is.
func (b *Book) place(f *flowradar.Finding) string {
	if l := b.at[port{f.Switch, f.Port}]; l != nil {
		return l.name
	}
	return b.name(f.Switch)
}

// Node returns the topology's node of a switch of a finding.
func (b *Book) Node(sw int) int { return b.switches[sw] }

// Findings are all so far.
func (b *Book) Findings() []Finding { return b.found }

// Moved notes that a controller moved the flow of a finding.
func (b *Book) Moved(i int, at frame.Time) { b.found[i].Moved = at }

// Sum returns what all slots came to.
func (b *Book) Sum() Sum { return b.sum }

// Rows are the slots that were kept, and how many were not.
func (b *Book) Rows() ([]Slot, int) { return b.rows, b.more }

// Way is a place where a flow can be sent another way: a port of a switch to avoid.
type Way struct {
	Node int // of the topology
	Port int
}

// Ways returns the ports by which the flow of a finding came to where it is lost, the
// last one first: a controller sends it another way at the first of them that has
// one.
func (b *Book) Ways(f *flowradar.Finding) (v []Way) {
	sw, p := f.Switch, f.Port
	for range len(b.switches) {
		if p != flowradar.NoPort {
			v = append(v, Way{b.switches[sw], int(p)})
		}
		from, ok := b.watch.Before(f.Flow, sw)
		if !ok {
			return v
		}
		sw, p = from.Switch, from.Port
	}
	return v
}

// String is a finding in a line.
func (b *Book) String(f *Finding) string {
	return fmt.Sprintf("%v of %v at %s: %d packets", f.Kind, f.Flow, b.place(&f.Finding), f.Packets)
}
