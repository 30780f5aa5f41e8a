package vnet

import (
	"cmp"
	"fmt"

	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/vswitch"
)

// hop is one link of a path.
type hop struct {
	link int
	from int // sending node
	port int // its port
}

// ways finds shortest paths between hosts.
type ways struct {
	t       *fabric.Topology
	hosts   []int
	dist    [][]int    // by switch that has hosts: hops to it from every node
	near    [][][]int  // likewise, then by node: the ports that lead nearer to it; nil until needed
	cross   []uint64   // by node: bit/s from its input to its output queues, 0 if it has none; nil if no node has
	delayed frame.Time // from a frame's arrival at an input queue until it may leave it
}

func newWays(t *fabric.Topology) *ways {
	w := &ways{t: t, hosts: t.Hosts(), dist: make([][]int, len(t.Nodes)), near: make([][][]int, len(t.Nodes))}
	for _, h := range w.hosts {
		if s := t.Peer(h, 0).Node; w.dist[s] == nil {
			w.dist[s] = t.HopsTo(s)
		}
	}
	return w
}

// pass makes frames wait at inputs of the switches.
func (w *ways) pass(c vswitch.Passage) {
	w.cross, w.delayed = make([]uint64, len(w.t.Nodes)), c.Wait()
	for _, i := range w.t.Switches() {
		fastest := uint64(0)
		for _, l := range w.t.Nodes[i].Links {
			fastest = max(fastest, cmp.Or(w.t.Links[l].Rate, pfc.DefaultRate))
		}
		w.cross[i] = c.Rate(fastest)
	}
}

// chooser picks one of the ports of a node that lead nearer to the destination.
type chooser func(node int, ports []int) (int, error)

// first chooses the first port.
func first(_ int, ports []int) (int, error) { return ports[0], nil }

// nearer returns the ports of switch n that lead nearer to the switch dst.
func (w *ways) nearer(n, dst int) []int {
	if w.near[dst] == nil {
		w.near[dst] = make([][]int, len(w.t.Nodes))
	}
	v := w.near[dst][n]
	if v == nil {
		d := w.dist[dst]
		for p := range w.t.Nodes[n].Links {
			m := w.t.Peer(n, p).Node
			if w.t.Nodes[m].Kind == fabric.Switch && d[m] == d[n]-1 {
				v = append(v, p)
			}
		}
		w.near[dst][n] = v
	}
	return v
}

// walk appends the hops from host src to host dst (indices among the hosts).
func (w *ways) walk(hops []hop, src, dst int, choose chooser) ([]hop, error) {
	t := w.t
	from, to := w.hosts[src], w.hosts[dst]
	last := t.Peer(to, 0)
	hops = append(hops, hop{t.Nodes[from].Links[0], from, 0})
	for n := t.Peer(from, 0).Node; n != last.Node; {
		near := w.nearer(n, last.Node)
		if len(near) == 0 {
			return nil, fmt.Errorf("no way leads from %s to %s", t.Nodes[from].Name, t.Nodes[to].Name)
		}
		p, err := choose(n, near)
		if err != nil {
			return nil, err
		}
		hops = append(hops, hop{t.Nodes[n].Links[p], n, p})
		n = t.Peer(n, p).Node
	}
	return append(hops, hop{t.Nodes[to].Links[0], last.Node, last.Port}), nil
}

// pairs calls f with a path for every pair of hosts whose paths can differ. Hosts of one
// switch with equal links have equal paths, so two of them represent all.
func (w *ways) pairs(f func(hops []hop)) error {
	type class struct {
		node  int
		rate  uint64
		delay int64
	}
	count := map[class]int{}
	var some []int
	for i, h := range w.hosts {
		l := &w.t.Links[w.t.Nodes[h].Links[0]]
		k := class{w.t.Peer(h, 0).Node, l.Rate, int64(l.Delay)}
		if count[k]++; count[k] <= 2 {
			some = append(some, i)
		}
	}
	var hops []hop
	var err error
	for _, a := range some {
		for _, b := range some {
			if a == b {
				continue
			}
			if hops, err = w.walk(hops[:0], a, b, first); err != nil {
				return err
			}
			f(hops)
		}
	}
	return nil
}

// wire is a frame as links see it: its bytes and how their time is rounded.
type wire struct {
	bytes   uint64 // with the link's overhead
	wholeNs bool
}

// span returns how long the frame takes on link l in picoseconds.
func (f wire) span(l *fabric.Link) int64 {
	if l.Rate == 0 {
		return 0
	}
	if f.wholeNs {
		return int64(f.bytes*8e9/l.Rate) * 1000
	}
	// In two steps, to stay within 64 bits: the remainder is less than a rate of at most
	// 2^40 bit/s, and 1000 times that is less than 2^50.
	ns, rem := f.bytes*8e9/l.Rate, f.bytes*8e9%l.Rate
	return int64(ns)*1000 + int64(rem*1000/l.Rate)
}

// crossing returns how long the frame takes from input to output queue in picoseconds.
func (f wire) crossing(rate uint64) int64 { return max(1, int64(f.bytes*8e9/rate)) * 1000 }

// alone returns the picoseconds from the start of n frames of size full and one of size
// last, at the source of an empty path, until the last byte arrives: every hop stores a
// frame before it forwards it, and frames follow each other at the rate of the slowest
// hop. The step from an input to an output queue is a hop in this sense.
func (w *ways) alone(hops []hop, n uint64, full, last wire) int64 {
	var first, slowest int64 // when the first full frame has passed a hop; the largest time of a frame at a hop so far
	var end int64            // when the last frame has passed it
	pass := func(delay, span, ends int64) {
		end += delay
		first += delay
		if n > 0 {
			first += span
			slowest = max(slowest, span)
			end = max(end, first+int64(n-1)*slowest)
		}
		end += ends
	}
	delay := int64(0)
	for i, h := range hops {
		l := &w.t.Links[h.link]
		if i > 0 && w.cross != nil {
			pass(delay+int64(w.delayed)*1000, full.crossing(w.cross[h.from]), last.crossing(w.cross[h.from]))
			delay = 0
		}
		pass(delay, full.span(l), last.span(l))
		delay = int64(l.Delay) * 1000
	}
	return end + int64(w.t.Links[hops[len(hops)-1].link].Delay)*1000
}

// delay returns the propagation along a path plus the least time that frames wait at
// inputs.
func (w *ways) delay(hops []hop) (d frame.Time) {
	for _, h := range hops {
		d += frame.Time(w.t.Links[h.link].Delay)
	}
	if w.cross != nil {
		d += frame.Time(len(hops)-1) * w.delayed
	}
	return d
}

// bottleneck returns the lowest rate along a path in bit/s, 0 if no link has one.
func (w *ways) bottleneck(hops []hop) (rate uint64) {
	for _, h := range hops {
		if r := w.t.Links[h.link].Rate; r != 0 && (rate == 0 || r < rate) {
			rate = r
		}
	}
	return rate
}

// nanoseconds rounds picoseconds up.
func nanoseconds(ps int64) frame.Time { return frame.Time((ps + 999) / 1000) }
