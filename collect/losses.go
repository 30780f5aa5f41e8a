package collect

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"gswitch/frame"
	"gswitch/telemetry"
	"gswitch/telemetry/lossradar"
)

// lossKind is the kind of digests.
const lossKind = "lossradar"

const (
	// reportTimeout is how long a switch may be silent before its neighbours' digests are
	// judged without it.
	reportTimeout = 10 * time.Second
	// longestBatch is the longest batch period that is accepted.
	longestBatch = frame.Second
	// mostDigests bounds the bytes of digests that wait for the other end, over all links
	// of a lane, and mostBatches those of undecided batches. Beyond the first, the newest
	// digests of the link with the most are dropped; beyond the second, the link with the
	// most restarts.
	mostDigests = 256 << 20
	mostBatches = 512 << 20
	// digestCost is the memory of a digest besides its cells, in bytes.
	digestCost = 256
)

// linkKey is a direction of a link.
type linkKey struct {
	link int
	from int // node
}

// node is a switch that reports.
type node struct {
	workers int
	// reportedTo is the time up to which it has sent digests, in its own time; lastSeen
	// is when the stream received the last one.
	reportedTo frame.Time
	lastSeen   time.Time
	// missedTo is the time, in its own time, up to which digests may be missing for good;
	// 0: none is. boot and missed are from the last message that said so. within holds
	// until a digest arrives from after the missing ones, since a message may also have
	// reports from before them.
	missedTo     frame.Time
	boot, missed uint64
	within       bool
}

// miss records what the message of a digest says about lost earlier ones: the exporter
// had no memory for them, or restarted.
func (n *node) miss(now time.Time, m *message, sequence uint64, d *lossradar.Report) {
	if n.boot != 0 && n.boot != m.Boot || m.Missed > n.missed {
		n.missed, n.within = m.Missed, true
	}
	if n.within {
		n.missedTo = min(d.To, frame.Time(now.UnixNano())+frame.Time(reportTimeout))
		n.within = sequence <= n.missed
	}
	n.boot = m.Boot
}

// missedUntil returns the time up to which a missing report of a node says nothing about
// a batch; 0: it always does. A digest may lag up to two batches behind those of other
// ports.
func (n *node) missedUntil(period frame.Time) frame.Time {
	if n.missedTo == 0 {
		return 0
	}
	return n.missedTo + 2*period
}

// link is one direction of a link whose ends report.
type link struct {
	name     string
	ends     [2]string // names
	from, to *node     // nil: it does not report
	collect  *lossradar.Collector
	shape    lossradar.Shape
	period   frame.Time
	workers  [2]int
	waiting  []*lossradar.Report // ordered by their end
	bytes    int                 // of the waiting digests
	judged   frame.Time          // up to which the collector has judged
	sum      lossradar.Sum       // at the last check
	early    *early              // nil: one end is unknown
}

// The numbers of a link's two ends in its collector, since switches of different daemons
// may have the same number.
const (
	nearEnd = 1
	farEnd  = 2
)

// digest processes a digest.
func (a *Analysis) digest(m *message, r *telemetry.Report) {
	d, err := lossradar.Parse(r.Body, 1<<16)
	if err != nil {
		a.problem("bad")
		return
	}
	if d.To < d.From || (d.To-d.From)/longestBatch > 256 {
		a.problem("bad")
		return
	}
	name := nodeName(&m.Hello, r.Node)
	e, ok := a.network.end(name, int(d.Meter.Port))
	if !ok {
		a.problem("foreign")
		return
	}
	n := a.nodes[name]
	if n == nil {
		n = &node{}
		a.nodes[name] = n
	}
	n.workers = 1
	for _, o := range m.Nodes {
		if o.ID == r.Node {
			n.workers = o.Workers
		}
	}
	// The nodes' clocks start with the exporter.
	d.From, d.To = d.From+frame.Time(m.Boot), d.To+frame.Time(m.Boot)
	n.lastSeen, n.reportedTo = a.now, max(n.reportedTo, d.To)
	n.miss(a.now, m, r.Sequence, d)
	t := a.network.plan.Topology
	from, to := e.node, e.peer.Node
	if d.Meter.Down {
		from, to = to, from
	}
	key := linkKey{e.link, from}
	l := a.links[key]
	if l == nil {
		l = &link{name: t.Nodes[from].Name + ">" + t.Nodes[to].Name, ends: [2]string{t.Nodes[from].Name, t.Nodes[to].Name}}
		a.links[key] = l
	}
	if d.Meter.Node = nearEnd; d.Meter.Down {
		d.Meter.Node = farEnd
	}
	d.Meter.Port = 0
	l.from, l.to = a.nodes[l.ends[0]], a.nodes[l.ends[1]]
	a.addEarly(l, d)
	l.add(a, d)
}

// add inserts a digest in order.
func (l *link) add(a *Analysis, d *lossradar.Report) {
	if !d.Meter.Down {
		l.period = (d.To - d.From) / frame.Time(d.Merged+1)
	}
	if d.To < l.judged {
		a.problem("late")
		if l.collect != nil {
			l.collect.Missed(d.Meter.Node, l.judged)
		}
		return
	}
	at, _ := slices.BinarySearchFunc(l.waiting, d, func(x, y *lossradar.Report) int {
		if x.To <= y.To {
			return -1
		}
		return 1
	})
	l.waiting = slices.Insert(l.waiting, at, d)
	l.hold(a, sizeOf(d))
	for a.digests > a.most.digests {
		a.leaveOut()
	}
}

// sizeOf returns the memory of a digest.
func sizeOf(d *lossradar.Report) int { return d.Shape.Bytes() + digestCost }

// hold counts the bytes of waiting digests.
func (l *link) hold(a *Analysis, n int) {
	l.bytes += n
	a.digests += n
}

// leaveOut drops the newest digest of the link that has the most: one that is far in the
// future would wait forever.
func (a *Analysis) leaveOut() {
	var most *link
	for _, k := range a.linkKeys() {
		if l := a.links[k]; most == nil || l.bytes > most.bytes {
			most = l
		}
	}
	last := len(most.waiting) - 1
	d := most.waiting[last]
	most.waiting = slices.Delete(most.waiting, last, last+1)
	most.hold(a, -sizeOf(d))
	if most.collect != nil {
		most.collect.Missed(d.Meter.Node, min(d.To, frame.Time(a.now.UnixNano())+frame.Time(reportTimeout)))
	}
	a.refused.digests++
	a.problem("full")
}

// batchBytes returns the memory of undecided batches of all links.
func (a *Analysis) batchBytes() (n int) {
	for _, l := range a.links {
		n += l.batchBytes()
	}
	return n
}

func (l *link) batchBytes() (n int) {
	if l.collect != nil {
		n = l.collect.Bytes()
	}
	if l.early != nil {
		n += l.early.Bytes()
	}
	return n
}

// beginAnew restarts the link whose batches take the most memory.
func (a *Analysis) beginAnew() {
	var most *link
	for _, k := range a.linkKeys() {
		if l := a.links[k]; most == nil || l.batchBytes() > most.batchBytes() {
			most = l
		}
	}
	if most.collect != nil {
		a.found(most, most.collect.Flush())
	}
	most.collect, most.early = nil, nil
	a.refused.batches++
	a.problem("full")
}

// judgeLinks determines how far the ends of links have reported, and evaluates what both
// have.
func (a *Analysis) judgeLinks() {
	for _, k := range a.linkKeys() {
		l := a.links[k]
		l.from, l.to = a.nodes[l.ends[0]], a.nodes[l.ends[1]]
		a.judgeEarly(l)
		a.judgeLink(l)
		if len(l.waiting) == 0 && a.now.Sub(l.lastSeen()) > Memory/2 {
			delete(a.links, k)
		}
	}
	for a.batchBytes() > a.most.batches {
		a.beginAnew()
	}
	for name, n := range a.nodes {
		if a.now.Sub(n.lastSeen) > Memory/2 {
			delete(a.nodes, name)
		}
	}
}

// linkKeys returns the keys of all links in a fixed order.
func (a *Analysis) linkKeys() []linkKey {
	keys := make([]linkKey, 0, len(a.links))
	for k := range a.links {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y linkKey) int { return cmp.Or(cmp.Compare(x.link, y.link), cmp.Compare(x.from, y.from)) })
	return keys
}

func (l *link) lastSeen() (t time.Time) {
	for _, n := range []*node{l.from, l.to} {
		if n != nil && n.lastSeen.After(t) {
			t = n.lastSeen
		}
	}
	return t
}

// reportedTo returns how far both ends have reported. An end that has been silent for
// long does not count, but if nothing was received from anyone, for instance while the
// collector was down, the wait starts when reports resume.
func (l *link) reportedTo(now, resumed time.Time) frame.Time {
	until, first := frame.Never, frame.Time(0)
	back := now.Sub(resumed) < reportTimeout
	for _, n := range []*node{l.from, l.to} {
		switch {
		case n != nil && (back || now.Sub(n.lastSeen) < reportTimeout):
			until = min(until, n.reportedTo)
		case n == nil && len(l.waiting) > 0 && (back || now.UnixNano()-int64(l.waiting[0].To) < int64(reportTimeout)):
			return 0 // it may start reporting a little later
		}
		if n != nil {
			first = max(first, n.reportedTo)
		}
	}
	if until == frame.Never {
		return first + 4*longestBatch // both have ended: nothing more will arrive
	}
	return until
}

// judgeLink passes what both ends have reported to the collector of a link, in the order
// of time.
func (a *Analysis) judgeLink(l *link) {
	if l.from == nil || l.period <= 0 {
		return
	}
	until := l.reportedTo(a.now, a.resumed) - 2*l.period
	if until <= l.judged {
		return
	}
	for len(l.waiting) > 0 && l.waiting[0].To <= until {
		d := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.hold(a, -sizeOf(d))
		if !l.fits(d) && !l.begin(a, d) {
			continue
		}
		l.judged = d.To
		l.seen(a.now, d.To)
		if !l.collect.Add(d.To, d) {
			a.problem("different")
		}
		a.found(l, l.collect.Advance(d.To))
	}
	if l.judged = until; l.collect != nil {
		l.seen(a.now, until)
		a.found(l, l.collect.Advance(until))
	}
}

// seen tells the collector that the ends have reported everything up to an instant, so
// that a missing report of a batch means that they counted nothing.
func (l *link) seen(now time.Time, at frame.Time) {
	if l.collect == nil {
		return
	}
	for id, n := range map[uint16]*node{nearEnd: l.from, farEnd: l.to} {
		if n != nil {
			l.collect.Missed(id, n.missedUntil(l.period))
		}
		if n != nil && n.reportedTo >= at && now.Sub(n.lastSeen) < reportTimeout {
			l.collect.Seen(id, at)
		}
	}
}

// fits reports whether the collector is suitable for such digests.
func (l *link) fits(d *lossradar.Report) bool {
	return l.collect != nil && (d.Meter.Down || l.shape == d.Shape && l.workers == l.shards())
}

func (l *link) shards() (w [2]int) {
	w[0] = l.from.workers
	if w[1] = 1; l.to != nil {
		w[1] = l.to.workers
	}
	return w
}

// begin makes a collector for the shape and period of the digests of the upstream end.
func (l *link) begin(a *Analysis, d *lossradar.Report) bool {
	timing := lossradar.Timing{Period: l.period, Timeout: 2 * l.period}
	if l.period > longestBatch || timing.Validate() != nil {
		a.problem("bad")
		return false
	}
	if l.collect != nil {
		a.found(l, l.collect.Flush())
	}
	l.shape, l.workers, l.sum = d.Shape, l.shards(), lossradar.Sum{}
	judge := lossradar.DefaultThresholds(a.network.rate(l.name))
	judge.Interval = 10 * l.period // as in the paper: 100 ms for batches of 10 ms
	l.collect = lossradar.NewCollector(timing, l.period, []lossradar.Segment{l.segment(l.workers)}, []lossradar.Thresholds{judge})
	return true
}

// segment returns the link with the meters of the given numbers of workers at its ends.
func (l *link) segment(workers [2]int) lossradar.Segment {
	s := lossradar.Segment{Name: l.name}
	for shard := range workers[0] {
		s.Up = append(s.Up, lossradar.Meter{Node: nearEnd, Shard: uint8(shard)})
	}
	for shard := range workers[1] {
		s.Down = append(s.Down, lossradar.Meter{Node: farEnd, Shard: uint8(shard), Down: true})
	}
	return s
}

// found turns lost packets into events: one for each flow, cause and interval.
func (a *Analysis) found(l *link, v []lossradar.Finding) {
	type flow struct {
		src, dst uint32
		sp, dp   uint16
		proto    uint8
		cause    lossradar.Cause
		interval frame.Time
	}
	at := map[flow]*Event{}
	for i := range v {
		f := v[i].Fields()
		// An interval consists of whole batches: the batch determines which one it is.
		batch := v[i].At - frame.Time(uint64(f.Stamp)*uint64(l.period)>>lossradar.StampBits)
		k := flow{f.Src, f.Dst, f.SrcPort, f.DstPort, f.Proto, v[i].Cause, batch / (10 * l.period)}
		e := at[k]
		if e == nil {
			e = &Event{Kind: Loss, What: k.cause.String(), Where: l.name, Src: ipv4(f.Src), Dst: ipv4(f.Dst), SrcPort: f.SrcPort, DstPort: f.DstPort, Protocol: f.Proto,
				At: wall(v[i].At), Until: wall(v[i].At)}
			e.name(l.name, k)
			at[k] = e
		}
		e.Packets++
		if t := wall(v[i].At); t.Before(e.At) {
			e.At = t
		} else if t.After(e.Until) {
			e.Until = t
		}
	}
	found := make([]Event, 0, len(at))
	for _, e := range at {
		found = append(found, *e)
	}
	byName(found)
	a.out = append(a.out, found...)

	sum := l.collect.Sums()[0]
	for family, n := range map[string]int64{linkSent: sum.Sent - l.sum.Sent, linkLost: sum.Lost - l.sum.Lost, linkFound: sum.Found - l.sum.Found,
		linkUnknown: int64(sum.Unknown - l.sum.Unknown)} {
		a.stats[Stat{family, l.name}] += uint64(max(n, 0))
	}
	l.sum = sum
}

func ipv4(v uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, v)))
}
