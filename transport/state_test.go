package transport

import (
	"encoding/binary"
	"testing"

	"gswitch/frame"
)

// packSender writes what IRN adds to a sender that goes back: the paper's
// recovery sequence, next retransmission and flags, and the SACK bitmap.
func packSender(b []byte, s *Sender) []byte {
	flags := uint16(0)
	for i, f := range []bool{s.inRec, s.rtxFirst, s.byTimeout, s.timer.low} {
		if f {
			flags |= 1 << i
		}
	}
	// rtxNext is within the cap above cum; recSeq may lie far back, and then
	// says no more than that no recovery is under way.
	off := uint16(0)
	if s.rtxNext > s.cum {
		off = uint16(s.rtxNext - s.cum)
	}
	b = append(b, byte(s.recSeq>>16), byte(s.recSeq>>8), byte(s.recSeq))
	b = binary.BigEndian.AppendUint16(b, flags<<12|off)
	for _, w := range s.sacked {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return b
}

// unpackSender brings a sender from s's other state and the packed delta.
func unpackSender(s Sender, b []byte) Sender {
	head := binary.BigEndian.Uint16(b[3:])
	s.recSeq = Unwrap(s.cum, uint32(b[0])<<16|uint32(b[1])<<8|uint32(b[2]))
	s.inRec, s.rtxFirst, s.byTimeout, s.timer.low = head>>12&1 != 0, head>>13&1 != 0, head>>14&1 != 0, head>>15&1 != 0
	s.rtxNext = s.cum + uint64(head&0xfff)
	words := make(bitmap, len(s.sacked))
	s.hi, s.edge = 0, 0
	for i := range words {
		words[i] = binary.BigEndian.Uint64(b[5+8*i:])
	}
	s.sacked = words
	for q := s.cum; q < s.next; q++ {
		if words.has(q) {
			s.hi, s.edge = q, q
		}
	}
	s.records = append([]record(nil), s.records...)
	return s
}

func packReceiver(b []byte, r *Receiver, completions bool) []byte {
	for i := range r.low {
		if completions {
			b = binary.BigEndian.AppendUint64(b, r.low[i])
			b = binary.BigEndian.AppendUint64(b, r.high[i])
		} else {
			b = binary.BigEndian.AppendUint64(b, r.low[i]|r.high[i])
		}
	}
	return b
}

// The paper counts 160 bits and five bitmaps of 128 for a queue pair: a
// sender and a receiver of requests, the same for read responses (whose
// receiver counts no messages), and 56 bits for the reads in progress.
func TestStateThatIRNAdds(t *testing.T) {
	const readBuffer = 7
	rnd := frame.NewRand(9)
	cfg := irn(128)
	var s Sender
	var r Receiver
	s.Init(cfg)
	r.Init(cfg)
	now, packed := frame.Time(0), 0
	for range 200_000 {
		now += frame.Time(rnd.Uint32n(1000))
		// Grow to the cap, so that the ring is that of 128.
		if seq, rtx, ok := s.Peek(now, 1<<40); ok {
			s.Sent(now, seq, 1000, rtx)
			if rnd.Uint32n(10) > 0 {
				if v := r.Data(now, seq, Middle); rnd.Uint32n(10) > 0 {
					s.Ack(now, Ack{NAK: v.Reply == NakReply, Cum: v.Cum, Sack: v.Sack})
				}
			}
		} else if now >= s.Deadline() {
			s.Timeout(now)
		}
		if len(s.sacked) != 2 || rnd.Uint32n(50) > 0 {
			continue
		}
		b := packSender(packSender(nil, &s), &s)
		b = packReceiver(packReceiver(b, &r, true), &r, false)
		packed++
		if n := len(b) + readBuffer; n > 100 {
			t.Fatalf("%d bytes for a queue pair, want at most 100", n)
		}
		// What was packed suffices: the copy does the same from here on.
		twin := unpackSender(s, b)
		orig := s
		orig.sacked = append(bitmap(nil), s.sacked...)
		orig.records = append([]record(nil), s.records...)
		for range 40 {
			if now += frame.Time(rnd.Uint32n(5000)); now >= orig.Deadline() {
				if orig.Timeout(now) != twin.Timeout(now) {
					t.Fatal("the timers differ")
				}
			}
			q1, x1, ok1 := orig.Peek(now, 1<<40)
			q2, x2, ok2 := twin.Peek(now, 1<<40)
			if q1 != q2 || x1 != x2 || ok1 != ok2 {
				t.Fatalf("the packed copy sends %d %v %v, the original %d %v %v", q2, x2, ok2, q1, x1, ok1)
			}
			if ok1 {
				orig.Sent(now, q1, 1000, x1)
				twin.Sent(now, q2, 1000, x2)
			}
			a := Ack{NAK: true, Cum: orig.Cum() + uint64(rnd.Uint32n(3)), Sack: orig.Cum() + uint64(rnd.Uint32n(128))}
			if *orig.Ack(now, a) != *twin.Ack(now, a) || orig.Deadline() != twin.Deadline() {
				t.Fatal("an acknowledgement is taken differently")
			}
		}
	}
	if packed < 100 {
		t.Errorf("only %d states were packed", packed)
	}
}
