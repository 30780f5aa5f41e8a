// Package losses puts together the digests of both ends of each link that is metered
// (switch.lossradar, hosts.lossradar), and compares what they report with what was lost.
package losses

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"gswitch/fabric"
	"gswitch/fabric/flows"
	"gswitch/fabric/measure"
	"gswitch/fabric/observe"
	"gswitch/fabric/observe/controller"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/view"
	"gswitch/fabric/vnet"
	"gswitch/fault"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/sim"
	"gswitch/telemetry"
	"gswitch/telemetry/lossradar"
	"gswitch/telemetry/lossradar/nic"
	meters "gswitch/telemetry/lossradar/point"
	"gswitch/vswitch"
	"gswitch/wire"
)

func init() {
	observe.Register(&observe.System{
		Name:      meters.Name,
		On:        on,
		Configure: agree,
		Divided:   "switch.lossradar: digests of both ends of a link are put together in one process: run it with --processes one",
		Values:    values,
		New: func(_ context.Context, r *observe.Run) (*observe.Observer, error) {
			var l *losses
			return &observe.Observer{
				Begin:  func(n *vnet.Network, _ *measure.Recorder) error { l = collect(n, r.Doc.Controller); return nil },
				Losses: func(v []view.Loss) []view.Loss { return l.shown(v) },
				Finish: func(_ *vnet.Network, out *results.Run) error { return l.finish(out) },
			}, nil
		},
	})
}

// on reports whether a run has meters.
func on(d *scenario.Document) bool { return observe.Feature(meters.Name)(d) || d.Hosts.Has(nic.Name) }

// agree refuses meters in hosts that those of their switches could not be compared with.
func agree(r *scenario.Run, _ bool, c *vnet.Config) error {
	if !r.Doc.Hosts.Has(nic.Name) {
		return nil
	}
	i := slices.IndexFunc(c.Features, func(f vnet.Feature) bool { return f.Name == meters.Name })
	if i < 0 {
		return errors.New("hosts.lossradar: the switches have no meters, and cannot read frames with a tag; turn switch.lossradar on")
	}
	atSwitch, err := c.Features[i].Options(c.Features[i].Queues, 0)
	if err != nil {
		return err
	}
	atHost, err := r.Doc.Hosts.Options(&hostnic.Config{})
	if err != nil {
		return err
	}
	if atHost[nic.Name] != atSwitch.(meters.Config).Config {
		return errors.New("hosts.lossradar: batch, timeout, cells, hashes and seed must be those of switch.lossradar, or the ends of a link cannot be compared")
	}
	return nil
}

// losses is what is known of a run.
type losses struct {
	n        *vnet.Network
	meters   []*lossradar.Config // by node of the topology, nil where there are no meters
	segments []lossradar.Segment
	ends     []segment
	collect  *lossradar.Collector
	found    []lossradar.Finding
	counted  []view.Loss                   // of found, by segment and cause
	truth    map[lostFrame]lossradar.Cause // of links' faults
	byFault  []int64                       // how many, by segment
	strange  int                           // reports of unknown meters
	err      error                         // the first that a report had
	scratch  *frame.Pool
	arena    *frame.Arena
	parser   *wire.Parser
	control  *controller.Controller
	moved    []float64 // seconds from the first loss to a destination until the controller moved it off the link
	knows    bool      // the engine says what links lose, so that it can be compared
}

// segment is a direction of a link: the ports where it begins and where it ends.
type segment struct {
	from, to fabric.End
	link     int // of the topology
	way      sim.Way
}

// lostFrame names a frame that was lost.
type lostFrame struct {
	segment int
	sig     lossradar.Signature
}

// collect returns nil where nothing is metered.
func collect(n *vnet.Network, c scenario.Controller) *losses {
	l := &losses{n: n, control: controller.New(n, c), truth: map[lostFrame]lossradar.Cause{}, meters: make([]*lossradar.Config, len(n.Topology.Nodes))}
	on := false
	note := func(node int, d *telemetry.Desk[lossradar.Report], c lossradar.Config) {
		if d.Outbox() != nil {
			l.meters[node], on = &c, true
		}
	}
	for i, sw := range n.Switches {
		if m, is := sw.Nodes[0].Feature(meters.Name).(*meters.Meters); is {
			note(n.SwitchNode(i), m.Reports(), m.Config().Config)
		}
	}
	for i, h := range n.Hosts {
		if m, is := h.Feature(nic.Name).(*nic.Meters); is {
			note(n.HostNode(i), m.Reports(), m.Config())
		}
	}
	if !on {
		return nil
	}
	var judges []lossradar.Thresholds
	var timing lossradar.Timing
	for i := range n.Topology.Links {
		link := &n.Topology.Links[i]
		if !l.metered(link.A) || !l.metered(link.B) {
			continue
		}
		timing = l.meters[link.A.Node].Timing
		judge := lossradar.DefaultThresholds(float64(link.Rate))
		judge.Interval = 10 * timing.Period // the paper's: 100 ms and 10 ms
		for _, s := range [...]segment{{link.A, link.B, i, sim.Forth}, {link.B, link.A, i, sim.Back}} {
			l.ends = append(l.ends, s)
			l.segments = append(l.segments, lossradar.Segment{
				Name: n.Topology.Nodes[s.from.Node].Name + ">" + n.Topology.Nodes[s.to.Node].Name,
				Up:   []lossradar.Meter{meter(s.from, false)}, Down: []lossradar.Meter{meter(s.to, true)},
			})
			judges = append(judges, judge)
		}
	}
	if len(l.segments) == 0 {
		return nil // every link leads to a host without meters
	}
	l.collect = lossradar.NewCollector(timing, timing.Period/2, l.segments, judges)
	l.byFault = make([]int64, len(l.segments))
	for _, s := range l.ends {
		for _, cause := range lossradar.Causes() {
			l.counted = append(l.counted, view.Loss{End: view.End{Node: s.from.Node, Port: s.from.Port}, Cause: cause})
		}
	}
	l.arena = frame.MustArena(4, 1024, frame.DefaultHeadroom)
	l.scratch = frame.NewPool(l.arena)
	l.parser = wire.NewParser(wire.NewHasher(0, false))
	if e, ok := n.Engine.(interface {
		OnLost(func(sim.LinkID, sim.Way, fault.Loss, []byte))
	}); ok {
		e.OnLost(l.lost)
		l.knows = true
	}
	every := timing.Period / 8
	n.Engine.Every(every, every, l.take)
	return l
}

// metered reports whether an end of a link has meters.
func (l *losses) metered(e fabric.End) bool {
	if l.meters[e.Node] == nil {
		return false
	}
	sw := l.n.SwitchAt(e.Node)
	if sw < 0 {
		return true // a host, which has one link
	}
	_, is := l.n.Switches[sw].Program().Config.Ports[e.Port].Options[meters.Name].(meters.Config)
	return is
}

// meter names a meter by its place in the topology.
func meter(e fabric.End, down bool) lossradar.Meter {
	return lossradar.Meter{Node: uint16(e.Node), Port: uint16(e.Port), Down: down}
}

// take brings reports from the nodes to the collector.
func (l *losses) take(now frame.Time) {
	for node, c := range l.meters {
		if c == nil {
			continue
		}
		report := func(body []byte) {
			r, err := lossradar.Parse(body, c.Shape.Cells)
			if err != nil {
				l.err = cmp.Or(l.err, err)
				return
			}
			r.Meter.Node = uint16(node)
			if !l.collect.Add(now, r) {
				l.strange++
			}
		}
		if sw := l.n.SwitchAt(node); sw >= 0 {
			err := l.n.Change(now, sw, vswitch.TakeReports{System: meters.Name, Taken: func(_ int, _ string, body []byte) { report(body) }})
			l.err = cmp.Or(l.err, err)
		} else {
			err := l.n.ChangeHost(now, l.n.HostAt(node), hostnic.TakeReports{Feature: nic.Name, Taken: func(_ string, body []byte) { report(body) }})
			l.err = cmp.Or(l.err, err)
		}
	}
	v := l.collect.Advance(now)
	l.note(v)
	if l.control.Losses == "move" {
		l.move(now, v)
	}
}

// note keeps and counts what was found.
func (l *losses) note(v []lossradar.Finding) {
	l.found = append(l.found, v...)
	for i := range v {
		c := &l.counted[v[i].Segment*int(lossradar.NumCauses)+int(v[i].Cause)]
		c.Frames++
		c.Last = max(c.Last, v[i].At.Seconds())
	}
}

// shown appends what was found so far.
func (l *losses) shown(v []view.Loss) []view.Loss {
	if l == nil {
		return v
	}
	for i := range l.counted {
		if l.counted[i].Frames > 0 {
			v = append(v, l.counted[i])
		}
	}
	return v
}

// move has the controller send what is for the destinations of lost frames by other
// links, where the link or a table is to blame. Full queues are left to congestion
// control.
func (l *losses) move(now frame.Time, v []lossradar.Finding) {
	moved := map[lostTo]bool{}
	for i := range v {
		to := lostTo{v[i].Segment, uint32(v[i].Addrs)}
		if v[i].Cause != lossradar.Blackhole && v[i].Cause != lossradar.Random || moved[to] {
			continue
		}
		moved[to] = true
		from, end, since := l.ends[to.segment].from, l.ends[to.segment].to, v[i].At
		if l.n.SwitchAt(from.Node) < 0 || l.n.SwitchAt(end.Node) < 0 {
			continue // a host has no other link
		}
		l.control.Later(now, func(now frame.Time) {
			if l.control.Leave(now, controller.HostRoute(to.dst), flows.Way{Node: from.Node, Port: from.Port}) {
				l.moved = append(l.moved, (now - since).Seconds())
			}
		})
	}
}

// lostTo is a destination of frames that were lost on a segment.
type lostTo struct {
	segment int
	dst     uint32
}

// lost notes what a link lost, with what the frame's tag says.
func (l *losses) lost(id sim.LinkID, way sim.Way, why fault.Loss, b []byte) {
	i := slices.IndexFunc(l.ends, func(s segment) bool { return l.n.Link(s.link) == id && s.way == way })
	if i < 0 || len(b) > l.arena.Room() {
		return
	}
	r := l.scratch.New(b)
	defer l.scratch.Free(r)
	t, ok := wire.PopLinkTag(l.arena, r)
	if !ok {
		return
	}
	l.arena.Meta(r).Wire = math.MaxUint16 // its headers may be all that there is of it
	l.parser.Parse(l.arena, []frame.Ref{r})
	s, ok := lossradar.OfFrame(l.arena.Bytes(r), l.arena.Meta(r))
	if !ok {
		return
	}
	cause := lossradar.Random
	switch why {
	case fault.LossChosen:
		cause = lossradar.Blackhole
	case fault.LossLink, fault.LossReboot:
		cause = lossradar.Unknown
	}
	l.byFault[i]++
	l.truth[lostFrame{i, s.At(t.Stamp)}] = cause
}

// inTables are the reasons for which a switch drops what a link brought, other than
// for want of room and because it is configured to.
var inTables = []frame.Reason{frame.ACLDrop, frame.NoRoute, frame.Blackhole, frame.Unreachable, frame.Prohibited, frame.TTLExpired, frame.NeighborQueue, frame.NeighborFailed, frame.MTUExceeded, frame.EgressPortDown}

// dropped is how many frames the switches at both ends of a segment dropped: in the
// queue before it, and in the tables behind it.
func (l *losses) dropped(s *segment) (k int64) {
	if from, is := l.counts(s.from); is {
		for _, q := range from.QueueDrops {
			k += int64(q)
		}
	}
	if to, is := l.counts(s.to); is {
		for _, why := range inTables {
			k += int64(to.Drops[why])
		}
	}
	return k
}

// counts reads what the port of a switch counted; false: it is a host.
func (l *losses) counts(e fabric.End) (c vswitch.PortCounts, is bool) {
	sw := l.n.SwitchAt(e.Node)
	if sw >= 0 {
		l.n.Switches[sw].Nodes[0].ReadPort(uint16(e.Port), &c)
	}
	return c, sw >= 0
}

// finish takes what is still to come when the run is over, and writes what was
// found. Of batches that are not over nothing is known: a run that is to name every
// loss ends a few batches after its traffic.
func (l *losses) finish(out *results.Run) error {
	if l == nil {
		return nil
	}
	l.take(l.n.Engine.Now())
	l.note(l.collect.Flush())
	l.compare(out)
	Found.Set(out, l.table())
	return l.err
}

// compare holds what was found against what was lost.
func (l *losses) compare(out *results.Run) {
	found := make([]int64, len(l.segments))
	var by, right [lossradar.NumCauses]float64
	var delays []float64
	faults := map[lossradar.Cause]float64{}
	for _, c := range l.truth {
		faults[c]++
	}
	for _, f := range l.found {
		found[f.Segment]++
		by[f.Cause]++
		delays = append(delays, (f.Seen - f.At).Seconds())
		c, ok := l.truth[lostFrame{f.Segment, f.Signature}]
		if !ok {
			c = lossradar.Congestion
		}
		if c == f.Cause {
			right[f.Cause]++
		}
	}
	var sum lossradar.Sum
	lost, wrong, named := int64(0), int64(0), int64(0)
	for i := range l.segments {
		s := &l.collect.Sums()[i]
		sum.Add(*s)
		was := l.byFault[i] + l.dropped(&l.ends[i])
		lost += was
		wrong += max(0, found[i]-was) + s.Extra
		named += min(found[i], was)
	}
	put := func(name string, v float64) { out.Values[name] = v }
	share := func(name string, k, of float64) {
		if of > 0 {
			put(name, k/of)
		}
	}
	put("lost_named_total", float64(sum.Found))
	put("lost_unknown_batches_total", float64(sum.Unknown))
	put("lost_strange_reports_total", float64(l.strange))
	put("lost_moved_total", float64(len(l.moved)))
	slices.Sort(l.moved)
	results.Summarize(out.Values, "lost_moved", "seconds", l.moved)
	if l.knows {
		put("lost_frames_total", float64(lost))
		put("lost_wrong_total", float64(wrong))
		share("lost_named_share", float64(named), float64(lost))
	}
	share("lost_decoded_batches_share", float64(sum.Complete), float64(sum.Lossy))
	for c := range by {
		name := lossradar.Cause(c).String()
		put("lost_"+name+"_total", by[c])
		if c := lossradar.Cause(c); l.knows && (c == lossradar.Random || c == lossradar.Blackhole) {
			share("lost_"+name+"_precision_share", right[c], by[c])
			share("lost_"+name+"_recall_share", right[c], faults[c])
		}
	}
	slices.Sort(delays)
	results.Summarize(out.Values, "lost_seen", "seconds", delays)
}

// table is what was found by link and cause.
func (l *losses) table() (v []Loss) {
	type key struct {
		segment int
		cause   lossradar.Cause
	}
	at := map[key]int{}
	flows := map[key]map[lossradar.Tuple]bool{}
	for _, f := range l.found {
		k := key{f.Segment, f.Cause}
		i, ok := at[k]
		if !ok {
			i = len(v)
			at[k], flows[k] = i, map[lossradar.Tuple]bool{}
			v = append(v, Loss{Link: l.segments[f.Segment].Name, Cause: f.Cause.String(), First: f.At.Seconds(), Sent: uint64(l.collect.Sums()[f.Segment].Sent)})
		}
		row := &v[i]
		row.Frames++
		row.First, row.Last = min(row.First, f.At.Seconds()), max(row.Last, f.At.Seconds())
		if t := f.Tuple(); !flows[k][t] {
			flows[k][t] = true
			row.Flows++
			if len(row.Examples) < 3 {
				row.Examples = append(row.Examples, t.String())
			}
		}
	}
	slices.SortStableFunc(v, func(a, b Loss) int { return int(b.Frames) - int(a.Frames) })
	return v
}
