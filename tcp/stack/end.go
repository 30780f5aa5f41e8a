package stack

import (
	"fmt"

	"gswitch/frame"
	"gswitch/tcp"
	"gswitch/wire"
)

// end is one end of a connection.
type end struct {
	conn *tcp.Conn // nil before the SYN that it waits for
	opts Options
	tap  Tap
	flow tcp.Flow
	eth  [wire.EthernetLen]byte
	id   uint16 // identification of the next packet: how many were sent

	messages        []message // written and not acknowledged, oldest first
	waiting         uint64    // bytes of them that are not in the send buffer yet
	posted          uint64    // bytes of all
	expected        []uint64  // messages that are to come: where they end
	announced, read uint64
	readAt          frame.Time

	stream *stream // nil: it carries messages

	closing bool // its events are no longer reported
	failed  bool
	listed  bool // in Stack.ready
	due     frame.Time
	place   int // in the heap
}

// message is one that was posted.
type message struct {
	id, bytes, end uint64
	start          frame.Time
	retransmitted  uint64 // by the connection before it
	timeouts       uint64
}

// Send posts a message at an end. ID comes back when all of it is acknowledged.
func (s *Stack) Send(now frame.Time, slot uint32, bytes, id uint64) error {
	e := s.end(slot)
	if e == nil || e.closing || e.conn == nil {
		return fmt.Errorf("host %s: connection %d is not open", s.cfg.Name, slot)
	}
	e.posted += bytes
	e.waiting += bytes
	e.messages = append(e.messages, message{id: id, bytes: bytes, end: e.posted, start: now,
		retransmitted: e.conn.Stats.Retransmitted, timeouts: e.conn.Stats.Timeouts})
	s.act(now, slot)
	return nil
}

// Expect says that a message of so many bytes is to come at an end.
func (s *Stack) Expect(slot uint32, bytes uint64) {
	if e := s.end(slot); e != nil {
		e.announced += bytes
		e.expected = append(e.expected, e.announced)
	}
}

// Close ends a connection at one end, which closes its direction when all is sent;
// nothing more of it is reported.
func (s *Stack) Close(now frame.Time, slot uint32) {
	e := s.end(slot)
	if e == nil {
		return
	}
	e.closing = true
	if e.conn == nil {
		s.remove(slot)
		return
	}
	s.act(now, slot)
}

// Acked is how many bytes of an end's messages were acknowledged.
func (s *Stack) Acked(slot uint32) uint64 {
	if e := s.end(slot); e != nil && e.conn != nil {
		return e.conn.Stats.BytesAcked
	}
	return 0
}

// act lets the application of an end go on, notes what is complete, and when it
// is to be looked at again. It may have something to send.
func (s *Stack) act(now frame.Time, slot uint32) {
	e := s.timers.ends[slot]
	if e.conn != nil && !e.listed {
		s.list(slot, e)
	}
	s.update(now, slot)
}

// update is act for an end that has nothing to send.
func (s *Stack) update(now frame.Time, slot uint32) {
	e := s.timers.ends[slot]
	if e.conn == nil {
		s.timers.set(slot, frame.Never)
		return
	}
	if e.stream != nil {
		s.flow(now, slot, e)
		return
	}
	s.write(now, e)
	s.readNext(now, slot, e)
	s.complete(slot, e)
	if e.closing {
		s.close(now, slot, e)
	}
	if e.conn.State() == tcp.Closed && (e.closing || e.conn.Err() == nil) {
		s.remove(slot)
		return
	}
	due := e.conn.Due()
	if due != frame.Never {
		due = clock(due + frame.Microsecond - 1)
	}
	s.timers.set(slot, min(due, e.readAt))
}

// write fills the send buffer.
func (s *Stack) write(now frame.Time, e *end) {
	if e.waiting == 0 {
		return
	}
	n := int(min(e.waiting, uint64(e.conn.Room())))
	if n == 0 {
		return
	}
	if e.tap != nil {
		e.tap.Write(clock(now), n)
	}
	e.waiting -= uint64(e.conn.WriteLen(n))
}

// readNext reads what the application takes now.
func (s *Stack) readNext(now frame.Time, slot uint32, e *end) {
	n := e.conn.Readable()
	if n == 0 {
		if e.readAt <= now {
			e.readAt = frame.Never
		}
		return
	}
	if rate := e.opts.ReadRate; rate > 0 {
		if e.readAt != frame.Never && now < e.readAt {
			return
		}
		n = min(n, e.opts.TCP.MSS)
		e.readAt = now + max(1, frame.Time(float64(n)*8e9/float64(rate)))
	}
	if e.tap != nil {
		e.tap.Read(clock(now), n)
	}
	e.read += uint64(e.conn.ReadLen(clock(now), n))
	for len(e.expected) > 0 && e.expected[0] <= e.read {
		e.expected = e.expected[:copy(e.expected, e.expected[1:])]
		if !e.closing {
			s.done = append(s.done, Completion{End: slot, Op: Arrived})
		}
	}
}

// complete notes the messages that were acknowledged.
func (s *Stack) complete(slot uint32, e *end) {
	st := &e.conn.Stats
	for len(e.messages) > 0 && e.messages[0].end <= st.BytesAcked {
		m := e.messages[0]
		e.messages = e.messages[:copy(e.messages, e.messages[1:])]
		if !e.closing {
			s.done = append(s.done, Completion{End: slot, Op: Sent, ID: m.id, Bytes: m.bytes, Start: m.start,
				Retransmitted: uint32(st.Retransmitted - m.retransmitted), Timeouts: uint32(st.Timeouts - m.timeouts)})
		}
	}
	if err := e.conn.Err(); err != nil && !e.failed && !e.closing {
		e.failed = true
		s.count.Failed++
		s.done = append(s.done, Completion{End: slot, Op: Failed, Err: err})
	}
}

// close closes the direction to the peer when all was written.
func (s *Stack) close(now frame.Time, slot uint32, e *end) {
	if e.waiting > 0 || e.conn.Closing() {
		return
	}
	if e.tap != nil {
		e.tap.Close(clock(now))
	}
	e.conn.CloseWrite()
	if !e.listed {
		s.list(slot, e)
	}
}

// list puts an end behind the others of its class that may send.
func (s *Stack) list(slot uint32, e *end) {
	e.listed = true
	c := e.opts.Class & 7
	s.lists[c] = append(s.lists[c], slot)
	s.ready |= 1 << c
}

// add adds up counters.
func add(to, v *tcp.Stats) {
	to.Sent += v.Sent
	to.Received += v.Received
	to.BytesSent += v.BytesSent
	to.BytesAcked += v.BytesAcked
	to.Retransmitted += v.Retransmitted
	to.Recoveries += v.Recoveries
	to.Timeouts += v.Timeouts
	to.TailProbes += v.TailProbes
	to.DuplicateACKs += v.DuplicateACKs
	to.WindowUpdates += v.WindowUpdates
	to.DelayedACKs += v.DelayedACKs
	to.ZeroWindows += v.ZeroWindows
	to.SmallWindows += v.SmallWindows
	to.Marked += v.Marked
	to.Echoed += v.Echoed
	to.OutOfOrder += v.OutOfOrder
	to.Duplicates += v.Duplicates
	to.Unacceptable += v.Unacceptable
	to.Unchallenged += v.Unchallenged
}
