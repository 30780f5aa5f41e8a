package flowradar

import (
	"cmp"
	"maps"
	"slices"

	"gswitch/frame"
)

// Node is a switch whose reports a Collector gets.
type Node struct {
	ID     uint16
	Shards int   // workers that report, each by itself
	Ports  []End // what each of its ports leads to
}

// Slot is what all switches counted in one slot.
type Slot struct {
	Number   uint64
	From, To frame.Time
	Switches []SwitchSlot // by the collector's nodes
}

// SwitchSlot is what a switch counted in a slot.
type SwitchSlot struct {
	// Known says that all its reports came, each about this slot alone. Of a switch
	// that is not known the counts are unknown: what is missing is not zero.
	Known   bool
	Records []Record // what came out of the tables: of encoded ones, where there are any
	Packets uint64   // of all flows, whether or not they came out
	Bytes   uint64
	Flows   uint64 // that the switch counted, each of its ways in an exact table by itself
	Alone   int    // flows that the encoded tables gave without others' help
	// Complete says that every flow came out, and Counters that each has exact packets.
	Complete, Counters bool
	Truth              []Entry // of exact tables beside the encoded ones
	Overflow           uint64  // packets that found an exact table full
}

// Collector puts the reports of switches together, slot by slot, and decodes them.
type Collector struct {
	nodes []Node
	index map[uint16]int
	grace frame.Time // how long after the end of a slot a report may come
	open  map[uint64]*openSlot
	done  uint64 // slots before this one were reported
	// Late counts reports that came after their slot had been reported, and those of
	// unknown switches.
	Late, Unknown uint64
}

type openSlot struct {
	from, to frame.Time
	reports  [][]*Report // by node
}

// NewCollector returns a collector of the reports of these switches.
func NewCollector(nodes []Node, grace frame.Time) *Collector {
	c := &Collector{nodes: slices.Clone(nodes), index: map[uint16]int{}, grace: grace, open: map[uint64]*openSlot{}}
	for i, n := range nodes {
		c.index[n.ID] = i
	}
	return c
}

// Workers says how many workers of a switch report from now on.
func (c *Collector) Workers(id uint16, n int) {
	if i, ok := c.index[id]; ok {
		c.nodes[i].Shards = n
	}
}

// Add takes a report that arrived, and keeps it.
func (c *Collector) Add(r *Report) {
	i, ok := c.index[r.Node]
	switch {
	case !ok:
		c.Unknown++
		return
	case r.Slot < c.done:
		c.Late++
		return
	}
	o := c.open[r.Slot]
	if o == nil {
		o = &openSlot{from: r.From, to: r.To, reports: make([][]*Report, len(c.nodes))}
		c.open[r.Slot] = o
	}
	o.from, o.to = min(o.from, r.From), min(o.to, r.To)
	o.reports[i] = append(o.reports[i], r)
}

// Advance returns the slots that are over, in their order: all reports are there, or
// those that are missing will not come any more.
func (c *Collector) Advance(now frame.Time) (v []*Slot) {
	for _, n := range slices.Sorted(maps.Keys(c.open)) {
		o := c.open[n]
		if now < o.to+c.grace && !c.all(o) {
			break
		}
		delete(c.open, n)
		c.done = n + 1
		v = append(v, c.decode(n, o))
	}
	return v
}

// Flush is Advance when no report will come any more.
func (c *Collector) Flush() []*Slot { return c.Advance(frame.Never) }

func (c *Collector) all(o *openSlot) bool {
	for i, v := range o.reports {
		if len(v) < c.nodes[i].Shards {
			return false
		}
	}
	return true
}

// decode gets the flows out of the reports of a slot.
func (c *Collector) decode(n uint64, o *openSlot) *Slot {
	s := &Slot{Number: n, From: o.from, To: o.to, Switches: make([]SwitchSlot, len(c.nodes))}
	var tables []*Table
	at := make([][]int, len(c.nodes)) // tables of each node
	short := false
	for i, v := range o.reports {
		w := &s.Switches[i]
		w.Known = len(v) >= c.nodes[i].Shards && !slices.ContainsFunc(v, func(r *Report) bool { return r.Slots != 1 })
		for _, r := range v {
			w.Packets += r.Packets
			w.Bytes += r.Bytes
			if r.Exact != nil {
				w.Overflow += r.Exact.Overflow
				for k := range r.Exact.Len() {
					w.Truth = append(w.Truth, r.Exact.At(k))
				}
			}
			if m := r.image(); m != nil {
				t := m.Single()
				w.Flows += m.Flows
				w.Alone += len(t.Records)
				short = short || !t.FlowsDone()
				at[i] = append(at[i], len(tables))
				tables = append(tables, t)
			}
		}
	}
	if short {
		c.help(tables, at)
	}
	for i := range s.Switches {
		s.Switches[i].fill(tables, at[i])
	}
	return s
}

// help decodes tables with those of other switches: a flow whose ports are known is
// looked for where it came from and went to, others at all neighbours and at the
// other workers of their own switch.
func (c *Collector) help(tables []*Table, at [][]int) {
	owner, near, trusted := make([]int, len(tables)), make([][]int, len(tables)), make([]bool, len(tables))
	for i, t := range tables {
		trusted[i] = t.original.Wrong() < rarelyWrong
	}
	tablesAt := func(e End) []int {
		if e.Switch < 0 {
			return nil
		}
		return at[e.Switch]
	}
	for i, n := range c.nodes {
		for _, t := range at[i] {
			owner[t] = i
			for _, e := range n.Ports {
				near[t] = append(near[t], tablesAt(e)...)
			}
			near[t] = slices.DeleteFunc(append(near[t], at[i]...), func(o int) bool { return o == t })
		}
	}
	Network(tables, near, func(i int, k Key) (v []int) {
		if r, ok := tables[i].Find(k); ok && r.Exact {
			for _, port := range [...]uint16{r.In, r.Out} {
				if ports := c.nodes[owner[i]].Ports; int(port) < len(ports) {
					v = append(v, tablesAt(ports[port])...)
				}
			}
			return v
		}
		for _, j := range near[i] {
			if trusted[j] {
				v = append(v, j)
			}
		}
		return v
	})
}

// rarelyWrong is the largest rate of false positives of a filter that is queried for flows whose path
// is not known: there are some hundred thousand such queries in a slot.
const rarelyWrong = 1e-6

// fill takes the records out of the tables of a switch.
func (w *SwitchSlot) fill(tables []*Table, at []int) {
	if len(at) == 0 {
		w.Flows, w.Alone = uint64(len(w.Truth)), len(w.Truth)
		w.Complete = w.Overflow == 0
		w.Counters = true
		for _, e := range w.Truth {
			w.Records = append(w.Records, Record{Key: e.Key, Traffic: e.Traffic, Exact: true})
		}
		w.Truth = nil
		return
	}
	w.Complete, w.Counters = true, true
	for _, i := range at {
		t := tables[i]
		if !t.Done() {
			Counters(t)
		}
		w.Complete = w.Complete && t.FlowsDone()
		for _, r := range t.Records {
			w.Counters = w.Counters && r.Exact
			w.Records = append(w.Records, r)
		}
	}
	w.Counters = w.Counters && w.Complete
}

// Compare says how many flows of the exact table came out of the encoded one, how
// many of these with the right packets, and how many came out that were never there.
func (w *SwitchSlot) Compare() (found, right, garbage int) {
	type counts struct {
		was, got   uint64
		out, exact bool
	}
	var all []counts
	index := map[Key]int{}
	at := func(k Key) *counts {
		i, ok := index[k]
		if !ok {
			i = len(all)
			index[k] = i
			all = append(all, counts{exact: true})
		}
		return &all[i]
	}
	for _, e := range w.Truth {
		at(e.Key).was += uint64(e.Packets)
	}
	for _, r := range w.Records {
		c := at(r.Key)
		c.got += uint64(r.Packets)
		c.out, c.exact = true, c.exact && r.Exact
	}
	for _, c := range all {
		switch {
		case c.was == 0:
			garbage++
		case c.out:
			found++
			if c.exact && c.was == c.got {
				right++
			}
		}
	}
	return found, right, garbage
}

// Top returns the flows of a switch that leave by a port, the largest first.
func (w *SwitchSlot) Top(port uint16) []Record {
	var v []Record
	for _, r := range w.Records {
		if r.Out == port {
			v = append(v, r)
		}
	}
	slices.SortFunc(v, func(a, b Record) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Addrs, b.Addrs), cmp.Compare(a.Rest, b.Rest))
	})
	return v
}
