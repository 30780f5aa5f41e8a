package transport

import (
	"encoding/binary"
	"testing"

	"gswitch/frame"
)

// A hostile peer may answer or send anything: nothing panics, the memory of a
// direction stays bounded, and what makes no sense is counted.
func FuzzHostilePeer(f *testing.F) {
	f.Add(uint8(1), uint8(8), []byte{0, 1, 0, 0, 1, 3, 0, 0, 2, 0, 0, 5, 3, 0, 0, 7})
	f.Add(uint8(0), uint8(0), []byte{0, 0, 0, 9, 1, 0, 0, 2, 4, 0, 0, 0, 2, 255, 255, 255})
	f.Add(uint8(4), uint8(200), []byte{0, 0, 0, 90, 1, 0, 40, 7, 4, 0, 0, 0, 5, 0, 0, 1})
	f.Add(uint8(3), uint8(0), []byte{3, 7, 255, 255, 3, 15, 255, 255, 3, 0, 0, 0})
	f.Fuzz(func(t *testing.T, mode, limit uint8, in []byte) {
		cfg := Config{Recovery: kinds[int(mode)%len(kinds)], Cap: uint32(limit), RTOLow: 100 * us, RTOHigh: 320 * us, N: 3, PartialAck: mode&8 != 0, NackThreshold: mode >> 4}
		var s Sender
		var r Receiver
		s.Init(&cfg)
		r.Init(&cfg)
		now := frame.Time(0)
		for ; len(in) >= 4; in = in[4:] {
			word := binary.BigEndian.Uint32(in)
			arg := word & 0xffffff
			now += frame.Time(arg & 0xffff)
			switch before := s.stats.BadAcks; word >> 24 % 6 {
			case 0:
				for range arg & 0xff {
					if seq, rtx, ok := s.Peek(now, 1<<40); ok {
						s.Sent(now, seq, 1000, rtx)
					}
				}
			case 1:
				a := Ack{NAK: true, Cum: Unwrap(s.Cum(), arg>>12), Sack: Unwrap(s.Cum(), arg&0xfff)}
				sensible := a.Cum <= s.Next() && (!cfg.Kind().SACKs || a.Sack < s.Next())
				s.Ack(now, a)
				if sensible == (s.stats.BadAcks > before) {
					t.Fatalf("%+v of %d to %d: counted %v", a, s.Cum(), s.Next(), !sensible)
				}
			case 2:
				s.Ack(now, Ack{Cum: Unwrap(s.Cum(), arg)})
			case 3, 4:
				seq, beyond := Unwrap(r.Expected(), arg), r.stats.Beyond
				far := seq >= r.Expected()+cfg.limit()
				if v := r.Data(now, seq, PacketKind(arg%3)); far && (v.Deliver || v.Reply != None) || far != (r.stats.Beyond > beyond) {
					t.Fatalf("packet %d was taken: %+v", seq, v)
				}
			default:
				s.Timeout(now)
			}
			if s.Cum() > s.Next() || s.Next()-s.Cum() > cfg.limit() || s.resend < s.Cum() || s.resend > s.Next() {
				t.Fatalf("cum %d, resend %d, next %d", s.cum, s.resend, s.next)
			}
			if got := 1000 * (s.next - s.cum); s.flight > got {
				t.Fatalf("%d bytes in flight of at most %d", s.flight, got)
			}
		}
		room := max(64, 2*int(cfg.limit()))
		if len(s.records) > room || 64*len(s.sacked) > room || 64*len(r.low) > room || 64*len(r.high) > room {
			t.Fatalf("%d records, bitmaps of %d, %d and %d words for a cap of %d", len(s.records), len(s.sacked), len(r.low), len(r.high), cfg.limit())
		}
	})
}
