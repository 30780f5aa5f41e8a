package vswitch_test

import (
	"fmt"
	intpoint "gswitch/int/point"
	roccpoint "gswitch/rocc/point"
	"gswitch/vswitch"
	"slices"

	"pgregory.net/rapid"

	"gswitch/buffer"
	"gswitch/crossbar"
	crossbarpoint "gswitch/crossbar/point"
	escapepoint "gswitch/escape/point"
	"gswitch/frame"
	"gswitch/loopguard"
	qcnpoint "gswitch/qcn/point"
	"gswitch/wire"
)

// world is a switch among four neighbours, and the books that are kept of every
// frame between them.
type world struct {
	features
	*device
	tb    rapid.TB
	rnd   frame.Rand
	ns    [worldPorts]*neighbour
	known map[uint32]*entry
	next  uint32
	seq   uint64
	last  map[flow]map[uint16]uint64 // by port, the last frame of a flow that left there
	loose uint8                      // classes that had an order which may divide a flow
	swaps uint64                     // frames that left before earlier ones of their flow
	trace uint64                     // hash of what left, when, and by which port
	taps  [][]frame.Ref
	due   [worldPorts]frame.Time // when ports send, as they said last

	in, out, dropped  int             // frames
	marks, pauses     int             // frames marked for congestion, and pauses that neighbours were asked for
	clocks            int             // messages of the clock that left
	groups            [worldPorts]int // frames to the group of next hops, by port
	inBytes, outBytes uint64
}

// entry is what is known of a frame that a neighbour sent.
type entry struct {
	f    flow
	seq  uint64 // order of arrival
	outs int
	gone frame.Reason
}

// waits reports whether the switch has the frame.
func (e *entry) waits() bool { return e.seq != 0 && e.outs == 0 && e.gone == frame.Keep }

func newWorld(tb rapid.TB, f features, seed uint64) *world {
	workers := 1
	if f.has(featWorkers) {
		workers = 2
	}
	w := &world{features: f, tb: tb, rnd: frame.NewRand(seed), known: map[uint32]*entry{}, last: map[flow]map[uint16]uint64{}}
	w.loosen()
	w.device = newDevice(tb, f.config(), workers, 8192)
	for i := range w.ns {
		w.due[i] = frame.Never
		w.ns[i] = &neighbour{w: w, port: i}
	}
	for _, n := range w.sw.Nodes {
		w.taps = append(w.taps, make([]frame.Ref, 1024))
		n.TapDrops(w.taps[len(w.taps)-1])
	}
	return w
}

// loosen notes the classes in which a flow may leave in another order.
func (w *world) loosen() {
	if w.has(featRanked) {
		w.loose |= 1 << rankedClass
	}
	if w.has(featPacks) {
		w.loose |= 1 << packsClass
	}
}

func (w *world) fail(format string, args ...any) {
	w.tb.Fatalf("%v at %v: %s", w.features, (w.now - frame.Second).Duration(), fmt.Sprintf(format, args...))
}

// offer gives a neighbour frames to send.
func (w *world) offer(f flow, count, bytes int) {
	n := w.ns[f.from]
	for i := range count {
		if len(n.waiting[f.class]) > 300 {
			return
		}
		w.next++
		n.waiting[f.class] = append(n.waiting[f.class], parcel{id: w.next, f: f, data: w.frameOf(f.from, f.to, f, w.next, bytes-bytes/8*(i%4))})
		w.known[w.next] = &entry{f: f}
	}
}

// run lets time pass.
func (w *world) run(d frame.Time) {
	for end := w.now + d; w.now < end; {
		w.step(min(tick, end-w.now))
	}
}

func (w *world) step(d frame.Time) {
	before := w.now
	w.advance(d)
	for p, n := range w.ns {
		n.step(before, w.now)
		var v [][]byte
		for len(n.to) > 0 && n.to[0].at <= w.now {
			w.arrives(&n.to[0])
			v = append(v, n.to[0].data)
			n.to = n.to[1:]
		}
		if len(v) > 0 {
			w.receive(uint16(p), v...)
		}
	}
	w.touched()
	for sent, round := 1, 0; sent > 0; round++ { // what leaves may let a neighbour go on
		if sent = 0; round > w.arena.Chunks() {
			w.fail("ports send for ever")
		}
		for p := range w.ns {
			due := w.due[p]
			k := w.transmit(uint16(p), func(m *frame.Meta, b []byte) { w.departs(p, m, b) })
			if k > 0 && due > w.now {
				w.fail("port %d sends, and said that it would in %v", p, (due - w.now).Duration())
			}
			w.due[p] = w.node(uint16(p)).PortWake(w.now, uint16(p))
			w.touched()
			sent += k
		}
	}
	w.drops()
}

// touched asks again when ports send of which the switch says that it may be earlier than it
// said last, as an engine does that steps nothing that is not due.
func (w *world) touched() {
	var ports [worldPorts]uint16
	for _, n := range w.sw.Nodes {
		for _, p := range ports[:n.Touched(ports[:])] {
			if n.Owns(p) {
				w.due[p] = n.PortWake(w.now, p)
			}
		}
	}
}

func (w *world) arrives(p *parcel) {
	w.in++
	w.inBytes += uint64(len(p.data))
	if marked(p.data) {
		w.inBytes -= wire.TokenMarkLen // which the port takes off before it counts
	}
	if p.id != 0 {
		w.seq++
		w.known[p.id].seq = w.seq
	}
}

// departs books a frame that the switch sent.
func (w *world) departs(port int, m *frame.Meta, b []byte) {
	w.out++
	w.outBytes += uint64(m.Wire)
	n := w.ns[port]
	n.fro = append(n.fro, parcel{at: m.Depart + frame.Time(m.Span) + cable, data: slices.Clone(b)})
	if m.Flags&frame.MarkCE != 0 {
		w.marks++
	}
	if wire.Ethernet(b).EtherType() == wire.EtherTypePTP {
		w.clocks++
	}
	// What a switch says to its neighbours waits for the frame before it, outside of queues.
	if et := wire.Ethernet(b).EtherType(); m.Depart > w.now && et>>8 != 0x88 && et != loopguard.EtherType {
		w.fail("port %d sends at %v, in the future", port, m.Depart)
	}
	id, ok := labelOf(b)
	if !ok || m.Flags&(frame.IsClone|frame.HasICMP) != 0 || isICMP(b) {
		return
	}
	for _, v := range []uint64{uint64(id), uint64(port), uint64(m.Depart)} {
		w.trace = (w.trace ^ v) * 0x100000001b3
	}
	e := w.known[id]
	if e == nil || e.seq == 0 {
		w.fail("frame %d left by port %d and never came", id, port)
	}
	if e.outs++; e.outs > 1 || e.gone != frame.Keep {
		w.fail("frame %d of %+v left by port %d; before, it left %d times and was dropped: %v", id, e.f, port, e.outs-1, e.gone)
	}
	if e.f.group {
		if port > 1 {
			w.fail("frame %d for the group left by port %d", id, port)
		}
		w.groups[port]++
		return // each frame may go by another port
	}
	if port != e.f.to {
		w.fail("frame %d of %+v left by port %d", id, e.f, port)
	}
	by := w.last[e.f]
	if by == nil {
		by = map[uint16]uint64{}
		w.last[e.f] = by
	}
	switch before := e.seq <= by[uint16(port)]; {
	case before && w.loose>>e.f.class&1 != 0:
		w.swaps++
	case before:
		w.fail("frame %d of %+v, which came %d frames earlier, left later than another of its flow", id, e.f, by[uint16(port)]-e.seq)
	}
	by[uint16(port)] = e.seq
}

// isICMP says what the switch says of a frame from the frame.
func isICMP(b []byte) bool {
	o := 14
	for b[o-2] == 0x81 && b[o-1] == 0 || b[o-2] == 0x88 && b[o-1] == 0xb5 {
		o += 4
	}
	return b[o-2] == 8 && b[o-1] == 0 && b[o+9] == 1
}

// congested are the reasons for which no frame of a lossless class may go.
var congested = []frame.Reason{frame.BufferFull, frame.QueueTail, frame.IngressLimit, frame.HeadroomFull, frame.IngressQueue, frame.ArenaExhausted, frame.WorkerRing, frame.TxOversize, frame.MTUExceeded, frame.NoRoute, frame.PushedOut,
	frame.QueueRefused, frame.QueueShed, frame.StormControl, frame.FloodShare}

// drops books what the switch dropped.
func (w *world) drops() {
	for i, node := range w.sw.Nodes {
		for _, r := range node.TakeDrops() {
			m, b := w.arena.Meta(r), w.arena.Bytes(r)
			w.dropped++
			id, ok := labelOf(b)
			if e := w.known[id]; ok && e != nil && m.Flags&frame.IsClone == 0 && !isICMP(b) {
				if e.outs > 0 || e.gone != frame.Keep {
					w.fail("frame %d was dropped, %v, and left %d times; dropped before: %v", id, m.Reason, e.outs, e.gone)
				}
				if e.gone = m.Reason; lossless>>e.f.class&1 != 0 && slices.Contains(congested, m.Reason) {
					w.fail("frame %d of %+v was lost: %v", id, e.f, m.Reason)
				}
			}
			w.pools[i].Free(r)
		}
		node.TapDrops(w.taps[i])
	}
}

// inside is what waits in the switch.
func (w *world) inside() (frames int) {
	for i, node := range w.sw.Nodes {
		for p := range worldPorts {
			if node.Owns(uint16(p)) {
				k, _ := node.Scheduler(uint16(p)).Backlog()
				frames += k
			}
		}
		for _, nb := range node.Neighbors() {
			frames += nb.Pending
		}
		for _, v := range crossbarAt(w.sw.Nodes[i]) {
			frames += int(v.In.Frames - v.Out.Frames)
		}
	}
	return frames
}

// crossbarAt is what the crossbar of a worker reports of each port, if it has one.
func crossbarAt(n *vswitch.Node) (v []crossbar.View) {
	x := crossbarpoint.At(n)
	for p := uint16(0); x != nil && p < worldPorts; p++ {
		v = append(v, x.Port(p))
	}
	return v
}

// balance holds the books to each other: frames that came or were made left, were
// dropped or wait; and the switch counted what its neighbours did.
func (w *world) balance() {
	var made, lost, rx, tx, rxBytes, txBytes uint64
	for p := range worldPorts {
		c := w.counts(uint16(p))
		rx, tx, rxBytes, txBytes = rx+c.Rx.Frames, tx+c.Tx.Frames, rxBytes+c.Rx.Bytes, txBytes+c.Tx.Bytes
		for _, k := range c.Drops {
			lost += k
		}
	}
	for _, n := range w.sw.Nodes {
		made += n.Counts().Made
		for _, k := range n.SelfDrops() {
			lost += k
		}
	}
	switch {
	case rx != uint64(w.in) || rxBytes != w.inBytes:
		w.fail("%d frames, %d bytes came; the switch counts %d, %d", w.in, w.inBytes, rx, rxBytes)
	case tx != uint64(w.out) || txBytes != w.outBytes:
		w.fail("%d frames, %d bytes left; the switch counts %d, %d", w.out, w.outBytes, tx, txBytes)
	case lost != uint64(w.dropped):
		w.fail("%d frames were dropped; the switch counts %d", w.dropped, lost)
	}
	w.ledgers(false)
	if k := w.inside(); rx+made != tx+lost+uint64(k) {
		w.fail("%d frames came and %d were made, but %d left, %d were dropped and %d wait", rx, made, tx, lost, k)
	}
	for p := range worldPorts {
		if by := w.sw.DisabledBy(uint16(p)); by != "" {
			w.fail("port %d is disabled by %s, and its neighbour does what it is asked for", p, by)
		}
	}
	for _, n := range w.sw.Nodes {
		for _, v := range escapepoint.Views(n, nil) {
			if v.On && v.Free+v.Kept+v.Taken != places || v.Free < 0 || v.Kept < 0 || v.Taken < 0 || v.Parked < 0 || v.Parked > places || v.Made+v.Forwarded != v.Arrived+v.Reclaimed+uint64(v.Kept) {
				w.fail("places and tokens: %+v", v)
			}
		}
	}
}

// drain lets everything come to rest: neighbours have nothing more to send and
// pause no class.
func (w *world) drain() {
	for _, n := range w.ns {
		n.storm(w.now, 0xff, 0)
	}
	idle := func() bool {
		for p, n := range w.ns {
			if n.has() || len(n.to) > 0 || len(n.fro) > 0 || !w.node(uint16(p)).Scheduler(uint16(p)).Empty() {
				return false
			}
		}
		return w.inside() == 0
	}
	for end := w.now + 100*frame.Millisecond; !idle(); w.step(tick) {
		if w.now > end {
			w.fail("no rest: %d frames inside", w.inside())
		}
	}
	for range 300 { // tokens that are out, periods, renewals
		w.step(5 * frame.Microsecond)
	}
}

// atRest holds a switch in which nothing waits to what it must be.
func (w *world) atRest() {
	w.balance()
	w.ledgers(true)
	for id, e := range w.known {
		if e.waits() {
			w.fail("frame %d of %+v neither left nor was dropped", id, e.f)
		}
	}
	for i, n := range w.sw.Nodes {
		if k := n.Held(); k != 0 {
			w.fail("worker %d: %d frames count as held", i, k)
		}
		var s buffer.Snapshot
		if n.Buffer(&s, false); s.Held != 0 || s.InShared != 0 {
			w.fail("worker %d: %d bytes are charged, %d of them shared", i, s.Held, s.InShared)
		}
		for p, ps := range s.Ports {
			for k := range 8 {
				if g, q := ps.Groups[k], ps.Queues[k]; g.Reserved+g.Shared+g.Headroom+q.Reserved+q.Beyond != 0 {
					w.fail("port %d, class or queue %d: %+v, %+v", p, k, g, q)
				}
			}
		}
		for _, v := range crossbarAt(n) {
			if v.Frames != 0 || v.Ingress != [8]uint32{} || v.Egress != [8]uint32{} {
				w.fail("crossbar: %+v", v)
			}
		}
		for _, v := range escapepoint.Views(n, nil) {
			if v.Free != places || v.Parked != 0 {
				w.fail("places: %+v", v)
			}
		}
		for _, v := range roccpoint.Views(n, nil) {
			if v.Flows != 0 || v.QueueBytes != 0 {
				w.fail("RoCC: %+v", v)
			}
		}
		if at := n.Wake(w.now); at <= w.now {
			w.fail("worker %d has something to do for ever", i)
		}
	}
	for p := range worldPorts {
		if paused := w.node(uint16(p)).PFC(uint16(p)).XOFFSent(); paused != 0 {
			w.fail("the neighbour at port %d is asked to pause classes %08b", p, paused)
		}
		if c := w.ns[p].paused; slices.Max(c[:]) > w.now {
			w.fail("the neighbour at port %d pauses: %v", p, c)
		}
	}
}

// counted are the counters of what features are for.
var counted = map[string]feature{"hull_marked_packets_total": featHULL, "slack_packets_total": featSlack, "lossradar_sent_frames_total": featLossRadar,
	"flowradar_packets_total": featFlowRadar, "lldp_sent_total": featLLDP, "watch_copies_total": featWatch, "loops_sent_total": featLoops}

// did says how often each feature did what it is for.
func (w *world) did() (k [numFeatures]uint64) {
	var hits, arrived uint64
	for _, n := range w.sw.Nodes {
		for _, v := range roccpoint.Views(n, nil) {
			k[featRoCC] += v.Notices
		}
		for _, v := range qcnpoint.Views(n, nil) {
			k[featQCN] += v.Messages
		}
		for _, v := range escapepoint.Views(n, nil) {
			hits, arrived = hits+v.Hits, arrived+v.Arrived
		}
		for _, v := range crossbarAt(n) {
			k[featCrossbar] += v.Out.Frames
		}
		sourced, sunk := uint64(0), uint64(0)
		n.ReadFeatures(func(f *vswitch.Feature, c int, _ uint16, v float64, labels ...string) {
			switch {
			case f.Name == intpoint.Name && labels[0] == "source":
				sourced += uint64(v)
			case f.Name == intpoint.Name && labels[0] == "sink":
				sunk += uint64(v)
			default:
				if x, ok := counted[f.Counters[c].Name]; ok {
					k[x] += uint64(v)
				}
			}
		})
		k[featTelemetry] += min(sourced, sunk)
		k[featLists] += n.Counts().Mirrored
	}
	k[featEscape] = min(hits, arrived)
	k[featGentle], k[featDynamic], k[featFewChunks] = uint64(w.pauses), uint64(w.pauses), uint64(w.pauses)
	k[featPaths] = uint64(min(w.groups[0], w.groups[1]))
	k[featPI], k[featErrDisable], k[featRanked] = uint64(w.marks), uint64(w.pauses), w.swaps
	k[featECN], k[featClock] = uint64(w.marks), uint64(w.clocks)
	for p := range worldPorts {
		c := w.counts(uint16(p))
		k[featWatchdog] += c.Drops[frame.PFCWatchdog]
		for _, f := range []feature{featPacks, featRED, featAIFO} {
			k[f] += c.Drops[frame.QueueRefused]
		}
		for _, f := range []feature{featFair, featCoDel} {
			k[f] += c.Drops[frame.QueueShed]
		}
		k[featStorm] += c.Drops[frame.StormControl]
		k[featFloods] += c.Drops[frame.FloodShare]
		k[featLimits] += c.Drops[frame.QueueTail] + c.Drops[frame.IngressLimit]
		if pushed := c.Drops[frame.PushedOut]; w.has(featPolicy) {
			k[featPolicy] += pushed
		} else {
			k[featPushOut] += pushed
		}
	}
	for _, f := range []feature{featRates, featVLAN, featRouting, featWorkers, featTimed, featTurns, featShadow, featLedger, featOnlooker} {
		k[f] = uint64(w.out)
	}
	return k
}

// end gives back what the test has, and counts chunks.
func (w *world) end() {
	for _, n := range w.sw.Nodes {
		n.TapDrops(nil)
	}
	w.close(worldPorts)
}

// change applies the configuration of other features.
func (w *world) change(f features) {
	w.features = f
	w.loosen()
	if err := w.sw.Apply(f.config()); err != nil {
		w.fail("%v", err)
	}
	w.runAll()
	w.drops()
}

// flap takes a link down and up again.
func (w *world) flap(port int, down frame.Time) {
	w.link(uint16(port), false)
	w.runAll()
	w.drops()
	w.ns[port].unplug()
	n := w.ns[port]
	n.free = w.now + down + 10*cable
	w.run(down)
	w.link(uint16(port), true)
	w.runAll()
}
