package replay

import (
	"encoding/binary"
	"fmt"

	"gswitch/frame"
)

// A network whose nodes one goroutine steps is recorded as one: what a node is given is
// what another one sent, so that no frame is written but those that links changed. What is
// written is the order of all calls, their instants, and which frame of a link came next.
// Who replays it makes all nodes, and what else acts on them at instants (an agenda:
// arrivals of a workload, samples), anew.

// Entries of networks, beside those of nodes.
const (
	nodeTag   = 12 // small: node of what follows
	agendaTag = 13 // the first entry of the agenda that is due is done
	pastTag   = 14 // uvarint nanoseconds: Advance so long before now
)

// The codes of frames that arrive. A run of n frames, each of them the one that was sent
// after the last, is runCode + n - 1.
const (
	jumpCode = 1 // zigzag: how many frames after that one
	newCode  = 2 // none that was sent: uvarint length, bytes
	headCode = 3 // uvarint: where the frames from here on begin in their chunks
)

// window is how many frames of a link are kept. Those that links lose or hold back
// are found among them.
const window = 2048

// NetworkRecorder records a network.
type NetworkRecorder struct {
	r     Recorder
	nodes []*recordedNode
	at    int // node of the entries
}

// track is one way of a link.
type track struct {
	sums   [window]uint64 // of the frames that were sent last, by number
	sent   uint64         // frames
	expect uint64         // number of the frame that comes next
	head   uint16
}

// recordedNode is a node of a network that is recorded, in the place of the node.
type recordedNode struct {
	frame.Stepper
	net     *NetworkRecorder
	index   int
	after   func(now frame.Time)
	skipped frame.Time
	changed bool // the next Advance is noted: a callback may have something to do
	in, out []*track
}

// NewNetworkRecorder returns a recorder of a network whose nodes allocate from pool.
func NewNetworkRecorder(now frame.Time, pool *frame.Pool, feed *Feed) (*NetworkRecorder, error) {
	r, err := NewRecorder(now, nil, pool, feed)
	if err != nil {
		return nil, err
	}
	return &NetworkRecorder{r: *r, at: -1}, nil
}

// Add returns what is to be stepped in the place of a node. after is called behind each
// call of Receive and Advance, and may be nil: who steps the node does not call it.
func (n *NetworkRecorder) Add(s frame.Stepper, after func(now frame.Time)) frame.Stepper {
	x := &recordedNode{Stepper: s, net: n, index: len(n.nodes), after: after, skipped: frame.Never}
	n.nodes = append(n.nodes, x)
	return x
}

// Connect reports a link between two ports of nodes, which are numbered as they were
// added.
func (n *NetworkRecorder) Connect(a int, pa uint16, b int, pb uint16) {
	forth, back := &track{}, &track{}
	n.nodes[a].out, n.nodes[b].in = place(n.nodes[a].out, pa, forth), place(n.nodes[b].in, pb, forth)
	n.nodes[b].out, n.nodes[a].in = place(n.nodes[b].out, pb, back), place(n.nodes[a].in, pa, back)
}

func place[T any](v []*T, port uint16, t *T) []*T {
	for len(v) <= int(port) {
		v = append(v, nil)
	}
	v[port] = t
	return v
}

// Poke says that something else than a call of its methods changed a node.
func (n *NetworkRecorder) Poke(node int) { n.nodes[node].changed = true }

// Agenda notes that the first entry that is due is done now, which do does. Calls of
// nodes that it makes follow.
func (n *NetworkRecorder) Agenda(now frame.Time, do func(now frame.Time)) {
	r := &n.r
	noted := r.room(now, entryRoom, 0)
	if noted {
		r.begin(now)
		r.b = append(r.b, agendaTag)
	}
	step, asked, failed := r.step, r.pool.Asked(), r.pool.Failed()
	r.startMisses()
	do(now)
	if noted && r.step == step {
		r.end(asked, failed)
	}
}

// Lose ends the recording: why says what cannot be recorded.
func (n *NetworkRecorder) Lose(why string) {
	if n.r.seg == nil {
		return
	}
	n.r.sum()
	n.r.hand(n.r.time)
	n.r.lose(why)
}

// End ends the recording.
func (n *NetworkRecorder) End(now frame.Time) { n.r.End(now) }

// note begins an entry of a node, of n bytes at most, and reports whether there is to be
// one.
func (x *recordedNode) note(now frame.Time, n int) bool {
	r := &x.net.r
	if !r.room(now, n+entryRoom, 0) {
		return false
	}
	r.at(now)
	if x.net.at != x.index {
		x.net.at = x.index
		r.tag(nodeTag, uint64(x.index))
	}
	if x.skipped != frame.Never {
		r.b = binary.AppendUvarint(append(r.b, pastTag), uint64(now-x.skipped))
		x.skipped = frame.Never
		r.step++
	}
	r.step++
	return true
}

// done ends a call, with what is to be done behind it.
func (x *recordedNode) done(now frame.Time, asked, failed uint64, noted bool) {
	if x.after != nil {
		x.after(now)
	}
	if noted {
		x.net.r.end(asked, failed)
	}
}

// Receive implements frame.Node.
func (x *recordedNode) Receive(now frame.Time, port uint16, v []frame.Ref) {
	r := &x.net.r
	noted := x.note(now, len(v)*(r.pool.ChunkSize()+frameRoom))
	if noted {
		r.tag(receiveTag, uint64(port))
		r.b = binary.AppendUvarint(r.b, uint64(len(v)))
		r.arrivals(x.in[port], v)
	}
	r.startMisses()
	asked, failed := r.pool.Asked(), r.pool.Failed()
	x.Stepper.Receive(now, port, v)
	x.done(now, asked, failed, noted)
}

// arrivals writes which frames of a link arrive.
func (r *Recorder) arrivals(t *track, v []frame.Ref) {
	run := 0
	endRun := func() {
		for ; run > 0; run -= min(run, longest) {
			r.b = append(r.b, byte(runCode+min(run, longest)-1))
		}
	}
	for _, f := range v {
		m, b := r.pool.Arena.Meta(f), r.pool.Arena.Bytes(f)
		if m.Head != t.head {
			endRun()
			t.head = m.Head
			r.b = binary.AppendUvarint(append(r.b, headCode), uint64(m.Head))
		}
		switch number, known := t.find(fingerprint(b)); {
		case !known:
			endRun()
			r.b = binary.AppendUvarint(append(r.b, newCode), uint64(len(b)))
			r.b = append(r.b, b...)
		case number == t.expect:
			run++
			t.expect++
		default:
			endRun()
			r.b = binary.AppendVarint(append(r.b, jumpCode), int64(number-t.expect))
			t.expect = max(t.expect, number+1)
		}
	}
	endRun()
}

// find returns the number of a frame that was sent: the next one that it may be, else
// the last one before.
func (t *track) find(sum uint64) (number uint64, known bool) {
	oldest := t.sent - min(t.sent, window)
	for i := max(t.expect, oldest); i < t.sent; i++ {
		if t.sums[i%window] == sum {
			return i, true
		}
	}
	for i := min(t.expect, t.sent); i > oldest; i-- {
		if t.sums[(i-1)%window] == sum {
			return i - 1, true
		}
	}
	return 0, false
}

// fingerprint distinguishes frames.
func fingerprint(b []byte) uint64 {
	var s sent
	s.mix(uint64(len(b)))
	for ; len(b) >= 8; b = b[8:] {
		s.mix(binary.LittleEndian.Uint64(b))
	}
	for _, c := range b {
		s.mix(uint64(c))
	}
	return s.h
}

// Transmit implements frame.Node.
func (x *recordedNode) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	r := &x.net.r
	idle := x.PortWake(now, port) > now
	asked, failed := r.pool.Asked(), r.pool.Failed()
	r.startMisses()
	k := x.Stepper.Transmit(now, port, out)
	if k == 0 && idle || !x.note(now, 0) {
		return k
	}
	r.tag(sendTag, uint64(port))
	r.b = binary.AppendUvarint(binary.AppendUvarint(r.b, uint64(len(out))), uint64(k))
	r.end(asked, failed)
	x.changed = x.changed || x.after != nil
	t := x.out[port]
	for _, f := range out[:k] {
		if r.pool.Arena.Meta(f).Next != frame.Nil {
			x.net.Lose(fmt.Sprintf("node %d sent a frame of several chunks", x.index))
			return k
		}
		t.sums[t.sent%window] = fingerprint(r.pool.Arena.Bytes(f))
		t.sent++
		r.sent.add(r.pool.Arena, f, portOf(x.index, port))
	}
	if r.sent.frames >= r.nextSum {
		r.sum()
	}
	return k
}

// portOf stands for a port of a node in hashes.
func portOf(node int, port uint16) uint16 { return uint16(node)<<6 ^ port }

// Advance implements frame.Node.
func (x *recordedNode) Advance(now frame.Time) {
	noted := false
	if x.changed || x.TimerWake(now) <= now {
		x.skipped = frame.Never // this one has the time, too
		if noted = x.note(now, 0); noted {
			x.changed = false
			x.net.r.b = append(x.net.r.b, advanceTag)
		}
	} else {
		x.skipped = now
	}
	r := &x.net.r
	asked, failed := r.pool.Asked(), r.pool.Failed()
	r.startMisses()
	x.Stepper.Advance(now)
	x.done(now, asked, failed, noted)
}

// SetLink implements frame.Node.
func (x *recordedNode) SetLink(now frame.Time, port uint16, up bool) {
	r := &x.net.r
	noted := x.note(now, 0)
	if noted {
		small := uint64(0)
		if up {
			small = 1
		}
		r.tag(linkTag, small)
		r.b = binary.AppendUvarint(r.b, uint64(port))
	}
	asked, failed := r.pool.Asked(), r.pool.Failed()
	r.startMisses()
	x.Stepper.SetLink(now, port, up)
	x.changed = x.changed || x.after != nil
	if noted {
		r.end(asked, failed)
	}
}

// Inner returns the node itself.
func (x *recordedNode) Inner() frame.Stepper { return x.Stepper }
