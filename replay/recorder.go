package replay

import (
	"encoding/binary"
	"fmt"

	"gswitch/frame"
)

// An entry begins with a byte: its tag in the low four bits, a small number in the
// others.
const (
	timeTag    = 1 // the instant of what follows: uvarint nanoseconds after the last one
	advanceTag = 2
	receiveTag = 3  // small: port; uvarint frames, then the frames (flow.go)
	sendTag    = 4  // small: port; uvarint room, uvarint frames that came
	linkTag    = 5  // small: 1 = up; uvarint port
	commandTag = 6  // uvarint length, the command
	missTag    = 7  // of the call before: uvarint runs, each the first, counted from the call on, and how many
	hashTag    = 8  // 4 bytes: of what was sent so far; uvarint frames
	endTag     = 9  // the recording was ended here
	epochTag   = 10 // uvarint instant, uvarint calls before: what follows can be replayed from an image, too
	failTag    = 11 // of the call before, behind missTag: uvarint checks of payload that failed, and each, counted from the one before
	stampTag   = 15 // of the frames of the vector that comes next: uvarint how many have a stamp; of each uvarint place, varint stamp less now

	escape = 15 // small number: it follows as a uvarint
)

const (
	// segmentSize is how many bytes of entries make a segment: the entry that exceeds it is the last.
	segmentSize = 256 << 10
	// segmentTime is for how long a segment is filled at most: what a process that
	// is killed has not written yet.
	segmentTime = 250 * frame.Millisecond
	// missRuns is how many runs of failed allocations one call may have.
	missRuns = 512
	// entryRoom is what entries beside frames and commands need at most.
	entryRoom = 64 + missRuns*3*binary.MaxVarintLen64
	// frameRoom is what a frame needs beside its bytes at most, and mostVector how many frames an entry
	// has that a segment is to have room for: engines pass at most so many at once.
	frameRoom  = 32
	mostVector = 64
)

// Recorder is a frame.Node that records another one. Like that it is called by
// one goroutine. It gives full segments to a Feed.
type Recorder struct {
	node frame.Stepper
	pool *frame.Pool
	feed *Feed

	seg     *Segment
	b       []byte // of seg
	time    frame.Time
	skipped frame.Time // of the last Advance that is not noted, Never if there is none
	enc     encoder
	sent    sent
	step    uint64 // entries that are calls
	nextSum uint64 // frames sent at which the hash is due
	why     string // not empty: no longer recorded
	misses  []frame.Misses

	verdicts *frame.Verdicts // nil: the node checks no payload
	judged   uint64
}

// judge is a node that checks payload.
type judge interface{ Verdicts() *frame.Verdicts }

// NewRecorder returns a recorder of a node that allocates from pool, at the
// instant now. The node must be as its Build makes it: not stepped yet. If it was,
// Begin comes next.
func NewRecorder(now frame.Time, node frame.Stepper, pool *frame.Pool, feed *Feed) (*Recorder, error) {
	r := &Recorder{node: node, pool: pool, feed: feed, skipped: frame.Never, nextSum: hashEvery, misses: make([]frame.Misses, missRuns)}
	if !r.next(now) {
		return nil, fmt.Errorf("the feed of a recorder has no room")
	}
	pool.LogMisses(r.misses)
	r.enc.to, _ = node.(extender)
	if j, ok := node.(judge); ok {
		r.verdicts = j.Verdicts()
		r.verdicts.Log(make([]uint64, missRuns))
	}
	return r, nil
}

// next begins a segment and reports whether there is one.
func (r *Recorder) next(now frame.Time) bool {
	s := r.feed.take()
	if s == nil {
		return false
	}
	s.First, s.Step, s.Epoch = now, r.step, nil
	r.seg, r.b, r.enc.rows = s, s.b[:0], s.rows[:0]
	return true
}

// hand passes the segment to the feed.
func (r *Recorder) hand(now frame.Time) {
	if r.seg == nil {
		return
	}
	r.seg.b, r.seg.rows, r.seg.Last, r.seg.End = r.b, r.enc.rows, now, r.step
	r.feed.give(r.seg)
	r.seg, r.b = nil, nil
}

// room makes room for an entry of n bytes with so many frames and reports whether there is
// some.
func (r *Recorder) room(now frame.Time, n, frames int) bool {
	if r.seg == nil {
		return false
	}
	if len(r.b) == 0 || len(r.b) < segmentSize && len(r.b)+n <= cap(r.b) && len(r.enc.rows)+frames*mostRows <= cap(r.enc.rows) && now-r.seg.First < segmentTime {
		return true
	}
	r.hand(now)
	if !r.next(now) {
		r.lose(behind)
		return false
	}
	return true
}

// lose ends the recording.
func (r *Recorder) lose(why string) {
	if r.why != "" {
		return // it ended before
	}
	r.why = why
	r.seg, r.b = nil, nil
	r.endMisses()
	r.feed.lose(why)
}

// endMisses ends taking note of failures.
func (r *Recorder) endMisses() {
	r.misses = nil
	r.pool.LogMisses(nil)
	if r.verdicts != nil {
		r.verdicts.Log(nil)
	}
}

// begin notes the instant of a call, and the Advance before it that was left
// out.
func (r *Recorder) begin(now frame.Time) {
	r.catchUp()
	r.at(now)
	r.step++
}

func (r *Recorder) catchUp() {
	if r.skipped != frame.Never {
		at := r.skipped
		r.skipped = frame.Never
		r.at(at)
		r.b = append(r.b, advanceTag)
		r.step++
	}
}

func (r *Recorder) at(now frame.Time) {
	if now < r.time {
		r.lose(fmt.Sprintf("a call of %v came behind one of %v", now.Duration(), r.time.Duration()))
		return
	}
	if now != r.time {
		r.b = binary.AppendUvarint(append(r.b, timeTag), uint64(now-r.time))
		r.time = now
	}
}

func (r *Recorder) tag(tag byte, small uint64) {
	if small < escape {
		r.b = append(r.b, tag|byte(small)<<4)
		return
	}
	r.b = binary.AppendUvarint(append(r.b, tag|escape<<4), small)
}

// end notes what a call that was noted did: which allocations failed.
func (r *Recorder) end(asked, failed uint64) {
	if r.pool.Failed() != failed {
		r.missed(asked)
	}
	if r.verdicts != nil {
		r.judge()
	}
}

// judge notes which checks of payload failed in a call.
func (r *Recorder) judge() {
	bad, all := r.verdicts.Take()
	if before := r.judged; len(bad) > 0 && r.seg != nil {
		if !all {
			r.lose(fmt.Sprintf("more than %d checks of payload failed in one call", missRuns))
			return
		}
		r.b = binary.AppendUvarint(append(r.b, failTag), uint64(len(bad)))
		for _, n := range bad {
			r.b = binary.AppendUvarint(r.b, n-before)
			before = n
		}
	}
	r.judged = r.verdicts.Asked()
}

func (r *Recorder) missed(asked uint64) {
	runs, all := r.pool.TakeMisses()
	if r.seg == nil {
		return
	}
	if !all {
		r.lose(fmt.Sprintf("more than %d runs of allocations failed in one call", missRuns))
		return
	}
	r.b = binary.AppendUvarint(append(r.b, missTag), uint64(len(runs)))
	for _, m := range runs {
		r.b = binary.AppendUvarint(binary.AppendUvarint(r.b, m.First-asked), m.N)
	}
}

// Receive implements frame.Node.
func (r *Recorder) Receive(now frame.Time, port uint16, v []frame.Ref) {
	if !r.room(now, entryRoom+len(v)*(r.pool.ChunkSize()+frameRoom), len(v)) {
		r.node.Receive(now, port, v)
		return
	}
	r.begin(now)
	n := r.enc.steadyFrames(r.pool.Arena, v)
	if n < len(v) {
		r.stamps(now, v)
	}
	r.tag(receiveTag, uint64(port))
	r.b = binary.AppendUvarint(r.b, uint64(len(v)))
	r.b = r.enc.vector(r.b, r.pool.Arena, v[n:])
	r.startMisses()
	asked, failed := r.pool.Asked(), r.pool.Failed()
	r.node.Receive(now, port, v)
	r.end(asked, failed)
}

// stamps writes when frames came by the device's clock, of messages of clocks.
func (r *Recorder) stamps(now frame.Time, v []frame.Ref) {
	n := uint64(0)
	for _, ref := range v {
		if r.pool.Meta(ref).Stamp != 0 {
			n++
		}
	}
	if n == 0 {
		return
	}
	r.b = binary.AppendUvarint(append(r.b, stampTag), n)
	for i, ref := range v {
		if at := r.pool.Meta(ref).Stamp; at != 0 {
			r.b = binary.AppendVarint(binary.AppendUvarint(r.b, uint64(i)), int64(at-now))
		}
	}
}

// startMisses begins the notes of a call's allocations: none of rings, captures and other nodes.
// Nodes that share a pool are recorded each with a log of its own, and one that ends leaves
// those of the others alone.
func (r *Recorder) startMisses() { r.pool.LogMisses(r.misses) }

// Transmit implements frame.Node.
func (r *Recorder) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	idle := r.node.PortWake(now, port) > now
	asked, failed := r.pool.Asked(), r.pool.Failed()
	r.startMisses()
	k := r.node.Transmit(now, port, out)
	if k == 0 && idle || !r.room(now, entryRoom, 0) {
		return k
	}
	r.begin(now)
	r.tag(sendTag, uint64(port))
	r.b = binary.AppendUvarint(binary.AppendUvarint(r.b, uint64(len(out))), uint64(k))
	r.end(asked, failed)
	r.sent.vector(r.pool.Arena, out[:k], port)
	if r.sent.frames >= r.nextSum {
		r.sum()
	}
	return k
}

// Begin lets what follows be replayed on its own: from an image of the node, which
// e holds. It is called between two calls of the node, or before the first one of
// a node that was stepped before it was recorded.
func (r *Recorder) Begin(now frame.Time, e *Epoch) {
	if r.seg == nil {
		return
	}
	if len(r.b) > 0 || r.skipped != frame.Never {
		r.catchUp()
		r.at(now)
		if r.seg == nil {
			return
		}
		r.sum()
		r.hand(now)
		if !r.next(now) {
			r.lose(behind)
			return
		}
	}
	r.seg.Epoch = e
	e.Header.Start, r.time = now, now
	r.enc, r.sent, r.nextSum = encoder{to: r.enc.to, rows: r.enc.rows}, sent{}, hashEvery
	r.b = binary.AppendUvarint(binary.AppendUvarint(append(r.b, epochTag), uint64(now)), r.step)
}

// behind is why a recording ends whose writer is too slow.
const behind = "what is recorded was not written as fast as it came"

// sum notes the hash of what was sent.
func (r *Recorder) sum() {
	r.nextSum = r.sent.frames + hashEvery
	if r.seg == nil {
		return
	}
	r.b = binary.AppendUvarint(be.AppendUint32(append(r.b, hashTag), r.sent.sum()), r.sent.frames)
}

// Advance implements frame.Node.
func (r *Recorder) Advance(now frame.Time) {
	if r.node.TimerWake(now) > now || !r.room(now, entryRoom, 0) {
		if now >= r.time { // a node of a network learns the time late, and had a command meanwhile
			r.skipped = now
		}
		r.node.Advance(now)
		return
	}
	r.skipped = frame.Never // this one has the time, too
	r.begin(now)
	r.b = append(r.b, advanceTag)
	asked, failed := r.pool.Asked(), r.pool.Failed()
	r.startMisses()
	r.node.Advance(now)
	r.end(asked, failed)
}

// Wake implements frame.Node.
func (r *Recorder) Wake(now frame.Time) frame.Time { return r.node.Wake(now) }

// SetLink implements frame.Node.
func (r *Recorder) SetLink(now frame.Time, port uint16, up bool) {
	if r.room(now, entryRoom, 0) {
		small := uint64(0)
		if up {
			small = 1
		}
		r.begin(now)
		r.tag(linkTag, small)
		r.b = binary.AppendUvarint(r.b, uint64(port))
	}
	asked, failed := r.pool.Asked(), r.pool.Failed()
	r.startMisses()
	r.node.SetLink(now, port, up)
	r.end(asked, failed)
}

// Command carries out a command.
func (r *Recorder) Command(now frame.Time, c frame.Command) {
	b := c.Encode(nil)
	if r.room(now, entryRoom+len(b), 0) {
		r.begin(now)
		r.b = append(binary.AppendUvarint(append(r.b, commandTag), uint64(len(b))), b...)
	}
	asked, failed := r.pool.Asked(), r.pool.Failed()
	r.startMisses()
	c.Do(now)
	r.end(asked, failed)
}

// Flush passes on what is recorded so far: what a process that is killed
// afterwards leaves behind.
func (r *Recorder) Flush(now frame.Time) {
	if r.seg == nil || len(r.b) == 0 {
		return
	}
	r.sum()
	r.hand(now)
	if !r.next(now) {
		r.lose(behind)
	}
}

// End ends the recording. The node goes on without the recorder.
func (r *Recorder) End(now frame.Time) {
	r.endMisses()
	if r.seg == nil {
		return
	}
	r.catchUp()
	r.at(now)
	r.sum()
	r.b = append(r.b, endTag)
	r.hand(now)
}

// Lost returns why the recording ended before it was to end, or "".
func (r *Recorder) Lost() string { return r.why }

// Steps returns how many calls were noted. It may be asked where the worker
// stands only.
func (r *Recorder) Steps() uint64 { return r.step }

// Sent returns how many frames left since the beginning.
func (r *Recorder) Sent() uint64 { return r.sent.frames }
