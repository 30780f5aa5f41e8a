package deter

import (
	"fmt"

	"gswitch/frame"
	"gswitch/tcp"
)

// Cause is why data took long (dissertation, tables 6.2 and 6.3; the thresholds are
// ours: the paper has none).
type Cause uint8

const (
	RTO          Cause = iota // data was lost, and the timer found it
	TailDrop                  // the same, and nothing behind it arrived that could have shown it
	ACKDrop                   // the timer ran out although data arrived: acknowledgements were lost
	FastRecovery              // acknowledgements reported a loss
	LateRecovery              // they did so long after the third, which reordering that was seen had made too few
	DelayedACK                // an acknowledgement was held back while data waited for it
	ZeroWindow                // the receiver's window held the sender back
	InSlowStart               // nothing went wrong; it ended within slow start
	Congestion                // nothing went wrong, and it was slow nevertheless
	NumCauses
)

var causeNames = [NumCauses]string{"rto", "tail-drop", "ack-drop", "fast-retransmit", "late-retransmit", "delayed-ack", "zero-window", "slow-start", "congestion"}

func (c Cause) String() string { return causeNames[c] }

// Rules are the thresholds of a diagnosis.
type Rules struct {
	// Held is from when on an acknowledgement is held back for long.
	Held frame.Time
	// Window is the share of its time that the receiver's window must hold back data.
	Window float64
	// Slow is how long data takes, at least, of which slow start or congestion is
	// reported where nothing else is found; 0: never.
	Slow frame.Time
}

// DefaultRules are the usual ones.
var DefaultRules = Rules{Held: 20 * frame.Millisecond, Window: 0.5}

// Finding is something that went wrong.
type Finding struct {
	Cause  Cause
	At     frame.Time
	Lasted frame.Time // until then, for nothing
	Why    string
}

// Interval is a message as a connection knows one: from when an application wrote
// while nothing was under way, until all of it was acknowledged.
type Interval struct {
	Sender   int // end
	From, To frame.Time
	Bytes    int
	Open     bool // it was not over when the record ended
	Findings []Finding
}

// Main is the cause that took the most time, false if there is none.
func (v *Interval) Main() (c Cause, ok bool) {
	var lasted [NumCauses]frame.Time
	for _, f := range v.Findings {
		lasted[f.Cause] += f.Lasted + 1
	}
	for k, d := range lasted {
		if d > lasted[c] || d > 0 && !ok {
			c, ok = Cause(k), true
		}
	}
	return c, ok
}

// Diagnosis is what is known of a connection.
type Diagnosis struct {
	Name      string
	Replay    Result
	Intervals []Interval
}

// Diagnose replays a connection and finds what went wrong, for each message. Of a
// record of one end alone it cannot distinguish losses of data and of acknowledgements.
func Diagnose(logs []*Log, rules Rules) (*Diagnosis, error) {
	d := &doctor{rules: rules, both: len(logs) == 2}
	r, err := Replay(logs, d.learn)
	if err != nil {
		return nil, err
	}
	if _, err = Replay(logs, d.look); err != nil {
		return nil, err
	}
	out := &Diagnosis{Name: logs[0].Name, Replay: r}
	for i := range d.ends {
		e := &d.ends[i]
		if e.open {
			e.now.Open, e.now.To = true, e.last
			d.judge(e)
		}
		out.Intervals = append(out.Intervals, e.intervals...)
	}
	return out, nil
}

// doctor runs a replay twice: which packets were of no use is known after the
// first time.
type doctor struct {
	rules Rules
	both  bool
	ends  [2]patient
}

// patient is an end.
type patient struct {
	sent    []packet
	arrived map[uint32]bool // of those, at the peer
	order   []uint32        // numbers of the peer's that arrived here

	conn      *tcp.Conn
	open      bool
	now       Interval
	intervals []Interval
	last      frame.Time // step
	sentAt    frame.Time // of the last data
	heldSince frame.Time // an acknowledgement, -1: none
	heldAgain bool       // of data that was sent again
	seen      int        // of sent
	taken     int        // of order
	dups      uint64     // duplicate acknowledgements since the last progress
	updates   uint64
	firstDup  frame.Time
	thirdDup  frame.Time
	blocked   frame.Time // by the receiver's window
	waiting   frame.Time // the same since the last progress: its cause is known when there is more
	lost      bool       // what was to make progress was lost
	limit     tcp.Limit
	fast      bool // it left slow start
}

// packet is what is kept of one that was sent.
type packet struct {
	seq, ack uint32
	len      int
	flags    tcp.Flags
}

func (d *doctor) learn(s *Step) {
	e := &d.ends[s.End]
	switch s.Kind {
	case Send:
		e.sent = append(e.sent, packet{s.Seg.Seq, s.Seg.Ack, s.Seg.Len, s.Seg.Flags})
	case Accept, Receive:
		peer := &d.ends[1-s.End]
		if peer.arrived == nil {
			peer.arrived = map[uint32]bool{}
		}
		peer.arrived[s.ID] = true
		e.order = append(e.order, s.ID)
	}
}

func (d *doctor) look(s *Step) {
	e := &d.ends[s.End]
	if e.conn == nil {
		e.conn, e.heldSince = s.Conn, -1
	}
	if e.open && e.limit == tcp.LimitPeer {
		e.waiting += s.At - e.last
	}
	e.last = s.At
	switch s.Kind {
	case Write:
		if !e.open {
			e.open, e.blocked, e.waiting, e.lost, e.fast = true, 0, 0, false, false
			e.now = Interval{Sender: s.End, From: s.At}
			e.dups, e.updates = 0, 0
		}
		e.now.Bytes += s.N
	case Send:
		if s.Conn.Stats.TailProbes > s.Before.TailProbes {
			d.probe(s, e)
		}
		e.seen++
		if s.Seg.Len > 0 {
			e.sentAt = s.At
		}
		d.acknowledges(e, s)
	case Advance:
		if s.Conn.Stats.Timeouts > s.Before.Timeouts {
			d.timeout(s, e)
		}
	case Accept:
		e.taken++
	case Receive:
		e.taken++
		d.receive(s, e)
	}
	// Behind the progress that the same step may have made: it is what comes now that waits for the repair.
	e.lost = e.lost || s.Conn.Stats.Timeouts > s.Before.Timeouts || s.Conn.Stats.Recoveries > s.Before.Recoveries
	e.limit = s.Conn.Limited()
	e.fast = e.fast || !s.Conn.SlowStart()
	if e.open && s.Kind == Receive && s.Conn.Unacked() == 0 {
		e.now.To = s.At
		d.judge(e)
	}
}

// progress takes that more is acknowledged, or that nothing will be. A window that was
// full held data back if the receiver had all that was sent, or was about to; if some
// of it was lost, the loss did, whatever the window.
func (e *patient) progress() {
	if !e.lost {
		e.blocked += e.waiting
	}
	e.waiting, e.lost = 0, false
}

// judge ends an interval.
func (d *doctor) judge(e *patient) {
	e.progress()
	v := &e.now
	if took := v.To - v.From; float64(e.blocked) > d.rules.Window*float64(took) && e.blocked > 0 {
		v.Findings = append(v.Findings, Finding{ZeroWindow, v.From, e.blocked, fmt.Sprintf("the receiver's window held data back for %v of %v", e.blocked.Duration(), took.Duration())})
	} else if len(v.Findings) == 0 && d.rules.Slow > 0 && took >= d.rules.Slow {
		f := Finding{InSlowStart, v.From, took, "it ended before the window had found its size"}
		if e.fast {
			f.Cause, f.Why = Congestion, "nothing was lost or held back"
		}
		v.Findings = append(v.Findings, f)
	}
	e.intervals = append(e.intervals, *v)
	e.open, e.now = false, Interval{}
}

// acknowledges notes how long an acknowledgement was held back when it leaves.
func (d *doctor) acknowledges(e *patient, s *Step) {
	since := e.heldSince
	e.heldSince = -1
	peer := &d.ends[1-s.End]
	if since < 0 || s.At-since < d.rules.Held || peer.conn == nil || !peer.open || peer.conn.Unsent() == 0 && !e.heldAgain {
		return
	}
	peer.now.Findings = append(peer.now.Findings, Finding{DelayedACK, since, s.At - since,
		fmt.Sprintf("its receiver held an acknowledgement back for %v", (s.At - since).Duration())})
}

// receive takes a segment that arrived.
func (d *doctor) receive(s *Step, e *patient) {
	st, b := &s.Conn.Stats, &s.Before
	if s.Seg.Len > 0 && e.heldSince < 0 {
		e.heldSince, e.heldAgain = s.At, d.again(1-s.End, s.ID)
	}
	if st.BytesAcked > b.BytesAcked {
		e.progress()
		e.dups, e.updates = 0, 0
	}
	if st.DuplicateACKs > b.DuplicateACKs {
		if e.dups++; e.dups == 1 {
			e.firstDup = s.At
		}
		if e.dups == 3 {
			e.thirdDup = s.At
		}
	}
	e.updates += st.WindowUpdates - b.WindowUpdates
	if st.Recoveries == b.Recoveries || !e.open {
		return
	}
	f := Finding{FastRecovery, e.firstDup, s.At - e.firstDup, fmt.Sprintf("after %d duplicate acknowledgements", e.dups)}
	late := e.dups > 3 || e.dups >= 3 && s.At-e.thirdDup > 2*s.Conn.RTT()
	if late && s.Conn.Reordering() > s.Conn.Config().DupThresh { // else not for reordering: a duplicate may report no further segment
		f.Cause = LateRecovery
		f.Why += fmt.Sprintf(", of which %d would do (reordering that was seen raised it to %d)", s.Conn.Config().DupThresh, s.Conn.Reordering())
	}
	if e.dups == 0 {
		f.At, f.Lasted, f.Why = s.At, 0, "found by time"
	}
	e.now.Findings = append(e.now.Findings, f)
}

// again reports whether a packet of an end has data that was sent before.
func (d *doctor) again(end int, id uint32) bool {
	sent := d.ends[end].sent
	if int(id) >= len(sent) {
		return false
	}
	p := &sent[id]
	for i := range sent[:id] {
		if q := &sent[i]; q.len > 0 && q.seq == p.seq {
			return true
		}
	}
	return false
}

// probe takes a tail probe: what it is for may be there, and wait for a delayed
// acknowledgement.
func (d *doctor) probe(s *Step, e *patient) {
	if _, got, _, _ := d.oldest(s, e); e.open && !got {
		e.now.Findings = append(e.now.Findings, Finding{TailDrop, e.sentAt, s.At - e.sentAt, "a tail probe found it"})
	}
}

// oldest returns the first byte that is not acknowledged, whether it arrived,
// whether anything behind it did, and how often it was sent.
func (d *doctor) oldest(s *Step, e *patient) (una uint32, got, behind bool, copies int) {
	mine := e.sent[:e.seen]
	una = mine[0].seq + 1 + uint32(s.Conn.Stats.BytesAcked)
	for id := range mine {
		p := &mine[id]
		if p.len == 0 {
			continue
		}
		there := e.arrived[uint32(id)]
		switch {
		case p.seq == una:
			copies++
			got = got || there
		case int32(p.seq-una) > 0:
			behind = behind || there
		}
	}
	return una, got, behind, copies
}

// timeout finds out why the timer ran out.
func (d *doctor) timeout(s *Step, e *patient) {
	if !e.open {
		return
	}
	f := Finding{RTO, e.sentAt, s.At - e.sentAt, ""}
	una, got, behind, copies := d.oldest(s, e)
	peer := &d.ends[1-s.End]
	// Acknowledgements that the peer sent before the next packet that comes from it.
	lostACK, next := false, uint32(0)
	if e.taken < len(e.order) {
		next = e.order[e.taken]
	}
	for id := uint32(0); id < min(next, uint32(len(peer.sent))); id++ {
		p := &peer.sent[id]
		lostACK = lostACK || p.flags&tcp.ACK != 0 && int32(p.ack-una) > 0 && !peer.arrived[id]
	}
	switch {
	case !d.both:
		f.Why = fmt.Sprintf("%d duplicate acknowledgements", e.dups)
	case got && lostACK:
		f.Cause, f.Why = ACKDrop, "the data had arrived, its acknowledgement was lost"
	case got:
		f.Why = "the data had arrived, and was not acknowledged yet"
	case e.updates >= uint64(s.Conn.Reordering()):
		f.Why = fmt.Sprintf("%d acknowledgements changed the window and so were no duplicates (window update)", e.updates)
	case behind:
		f.Why = fmt.Sprintf("not enough duplicate acknowledgements: %d of %d", e.dups, s.Conn.Reordering())
	default:
		f.Cause, f.Why = TailDrop, "nothing behind it arrived"
	}
	if copies > 1 && !got {
		f.Why += fmt.Sprintf("; sent %d times", copies)
	}
	e.now.Findings = append(e.now.Findings, f)
}
