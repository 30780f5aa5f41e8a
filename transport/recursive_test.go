package transport

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gswitch/frame"
)

// rc3 is TCP with RC3's second loop.
func rc3(kind *Kind, levels []uint64, cross Crossing) *Config {
	return &Config{Recovery: kind, RTOLow: 200 * us, RTOHigh: frame.Millisecond, Recursive: &Recursive{Levels: levels, Cross: cross}}
}

// Quotas count from the tail (specified in section 2.2; Linux compares the
// distance, counted from 1 there, with 40 and 400).
func TestLevelsOfPackets(t *testing.T) {
	for _, c := range []struct {
		levels []uint64
		behind uint64
		want   uint8
	}{
		{DesignLevels, 0, 1}, {DesignLevels, 39, 1}, {DesignLevels, 40, 2}, {DesignLevels, 439, 2}, {DesignLevels, 440, 3},
		{DesignLevels, 4439, 3}, {DesignLevels, 4440, 3},
		{LinuxLevels, 39, 1}, {LinuxLevels, 40, 2}, {LinuxLevels, 399, 2}, {LinuxLevels, 400, 3},
		{FourLevels, 9, 1}, {FourLevels, 10, 2}, {FourLevels, 11109, 4}, {OneLevel, 1 << 40, 1},
	} {
		r := Recursive{Levels: c.levels}
		if got := r.level(c.behind); got != c.want {
			t.Errorf("%v: level(%d) = %d; want %d", c.levels, c.behind, got, c.want)
		}
	}
}

// A loop that stops does so with its last level, another at the head.
func TestLoopStopsWithTheLastLevel(t *testing.T) {
	for stop, want := range map[bool]int{true: 440, false: 1000} {
		cfg := rc3(TCP, []uint64{40, 440}, Meet)
		cfg.Recursive.Stop = stop
		var s Sender
		s.Init(cfg)
		s.Posted(0, 1000)
		if got := low(&s, 2000); len(got) != want {
			t.Errorf("stop %v: %d packets, want %d", stop, len(got), want)
		}
	}
}

// low sends what the second loop offers, up to n packets, and writes down
// "seq/level".
func low(s *Sender, n int) (out []string) {
	for range n {
		seq, level, ok := s.PeekLow()
		if !ok {
			break
		}
		s.SentLow(seq, level)
		out = append(out, fmt.Sprintf("%d/%d", seq, level))
	}
	return out
}

// hp sends n packets of the ordinary loop.
func hp(t *testing.T, s *Sender, n int, posted uint64) (seqs []uint64) {
	t.Helper()
	for range n {
		seq, rtx, ok := s.Peek(0, posted)
		if !ok {
			break
		}
		s.Sent(0, seq, 1000, rtx)
		seqs = append(seqs, seq)
	}
	return seqs
}

// 66 packets, a window of 4: the second loop sends the last 40 at level 1 and
// those before at level 2, down to the ordinary loop.
func TestSecondLoopGoesFromTheTail(t *testing.T) {
	var s Sender
	s.Init(rc3(TCP, DesignLevels, Meet))
	s.Posted(0, 66)
	hp(t, &s, 4, 66)
	got := low(&s, 1000)
	if len(got) != 62 || got[0] != "65/1" || got[39] != "26/1" || got[40] != "25/2" || got[61] != "4/2" {
		t.Errorf("it sends %v", got)
	}
	if st := s.Second(); st.Sent[1] != 40 || st.Sent[2] != 22 {
		t.Errorf("%+v", st)
	}
	if s.BytesInFlight() != 4000 || s.Next() != 4 {
		t.Errorf("the second loop is in the flight: %d bytes, next %d", s.BytesInFlight(), s.Next())
	}
}

// Bursts go from the tail backwards and each from its head on, at the level of
// its worst packet; the ordinary loop ends the last one early.
func TestSecondLoopInBursts(t *testing.T) {
	cfg := rc3(TCP, DesignLevels, Meet)
	cfg.Recursive.Burst = 43
	var s Sender
	s.Init(cfg)
	s.Posted(0, 100)
	hp(t, &s, 4, 100)
	got := low(&s, 50)
	if got[0] != "57/2" || got[42] != "99/2" || got[43] != "14/2" || got[49] != "20/2" {
		t.Fatalf("it sends %v", got)
	}
	hp(t, &s, 20, 100) // 4 to 23, of which 21 to 23 had their turn to come
	if got = low(&s, 1000); len(got) != 33 || got[0] != "24/2" || got[32] != "56/2" {
		t.Errorf("then %v", got)
	}
	if st := s.Second(); st.Sent[2] != 83 {
		t.Errorf("%+v", st)
	}
}

// The last levels of a loop that stops are not exceeded by a burst.
func TestBurstStopsWithTheLevels(t *testing.T) {
	cfg := rc3(TCP, []uint64{40}, Meet)
	cfg.Recursive.Burst, cfg.Recursive.Stop = 16, true
	var s Sender
	s.Init(cfg)
	s.Posted(0, 100)
	if got := low(&s, 1000); len(got) != 40 || got[32] != "60/1" || got[39] != "67/1" {
		t.Errorf("it sends %v", got)
	}
}

// Pushed at once it goes on to the head; with flushing down to what is
// acknowledged.
func TestSecondLoopCrosses(t *testing.T) {
	for cross, want := range map[Crossing]int{Meet: 10, Push: 20, Flush: 14} {
		var s Sender
		s.Init(rc3(TCP, DesignLevels, cross))
		s.Posted(0, 20)
		hp(t, &s, 10, 20)
		s.Ack(1, Ack{Cum: 6})
		if got := low(&s, 100); len(got) != want {
			t.Errorf("crossing %d: %d packets, want %d", cross, len(got), want)
		}
	}
}

// Packets 4 to 11 are outstanding and 12 to 19 at the receiver by the second
// loop: an acknowledgement of 20 moves the sender there, and congestion control
// is credited with eight.
func TestBumpOfTheCumulativeAcknowledgement(t *testing.T) {
	var s Sender
	s.Init(rc3(TCP, DesignLevels, Meet))
	s.Posted(0, 30)
	hp(t, &s, 12, 30)
	s.Ack(1, Ack{Cum: 4})
	if r := s.Ack(2, Ack{Cum: 20}); r.NewPackets != 0 || s.Stats().BadAcks != 1 {
		t.Fatalf("an acknowledgement of what nobody sent was taken: %+v", r)
	}
	low(&s, 10) // 29 to 20
	low(&s, 8)  // 19 to 12
	r := s.Ack(2, Ack{Cum: 20})
	if s.Cum() != 20 || s.Next() != 20 || s.BytesInFlight() != 0 || r.NewBytes != 8000 || r.NewPackets != 16 || r.RTT != 0 {
		t.Errorf("cum %d, next %d, %d bytes in flight, %+v", s.Cum(), s.Next(), s.BytesInFlight(), r)
	}
	if s.Second().Bumps != 1 {
		t.Errorf("%+v", s.Second())
	}
	// The next packet is the first that nothing is known of.
	s.AckLow(3, 20, 24)
	if seq, rtx, ok := s.Peek(3, 30); seq != 24 || rtx || !ok {
		t.Errorf("the next packet is %d, %v, %v", seq, rtx, ok)
	}
}

// Replies to the second loop change nothing of the ordinary one.
func TestLowRepliesMoveNothing(t *testing.T) {
	var s Sender
	s.Init(rc3(TCP, DesignLevels, Meet))
	s.Posted(0, 2000)
	hp(t, &s, 10, 2000)
	low(&s, 5000)
	before := s
	for i := range uint64(1000) {
		if r := s.AckLow(frame.Time(i), 1999-i, 2000); r != (AckResult{}) {
			t.Fatalf("%+v", r)
		}
	}
	if s.Cum() != before.cum || s.flight != before.flight || s.inRec || s.dups != 0 || s.timer != before.timer || s.hi != before.hi || s.edge != before.edge {
		t.Error("a reply to the second loop changed the ordinary one")
	}
	if got := s.second.arrived.zero(1000, 2000); got != 2000 || s.Second().Arrived != 1000 {
		t.Errorf("packet %d is not noted, %d are", got, s.Second().Arrived)
	}
	if _, ok := s.second.arrived.nthBelow(999, 10, 1); ok {
		t.Error("more is noted than arrived")
	}
	// Three packets above a gap report a loss if the ordinary loop sent them.
	s.Ack(5, Ack{Cum: 2})
	if s.Ack(6, Ack{NAK: true, Cum: 2, Sack: 3}); s.InRecovery() {
		t.Error("packets of the second loop count as evidence of a loss")
	}
}

func TestLowRangesAreChecked(t *testing.T) {
	var s Sender
	s.Init(rc3(TCP, DesignLevels, Meet))
	s.Posted(0, 50)
	low(&s, 20)
	for _, bad := range [][2]uint64{{40, 51}, {40, 40}, {41, 40}, {60, 70}} {
		s.AckLow(0, bad[0], bad[1])
	}
	if s.Second().BadRanges != 4 || s.Second().Arrived != 0 {
		t.Errorf("%+v", s.Second())
	}
	if s.AckLow(0, 40, 50); s.Second().Arrived != 10 {
		t.Errorf("what was posted and not sent is refused: %+v", s.Second())
	}
}

// Two messages: the second one's loop begins at its own tail with level 1, and
// no packet leaves twice.
func TestSecondLoopOfTwoMessages(t *testing.T) {
	var s Sender
	s.Init(rc3(TCP, DesignLevels, Meet))
	s.Posted(0, 10)
	hp(t, &s, 2, 10)
	first := low(&s, 5) // 9 to 5
	s.Posted(10, 60)
	rest := low(&s, 100)
	if fmt.Sprint(first) != "[9/1 8/1 7/1 6/1 5/1]" || len(rest) != 53 || rest[0] != "59/1" || rest[40] != "19/2" || rest[49] != "10/2" || rest[50] != "4/1" || rest[52] != "2/1" {
		t.Errorf("%v, then %v", first, rest)
	}
}

// All of it arrived by the second loop: that ends the message and the timer.
func TestCompletionByTheSecondLoop(t *testing.T) {
	var s Sender
	s.Init(rc3(TCP, DesignLevels, Push))
	s.Posted(0, 10)
	hp(t, &s, 2, 10)
	low(&s, 10)
	if r := s.AckLow(1, 1, 10); r.NewPackets != 0 {
		t.Errorf("%+v", r)
	}
	if r := s.AckLow(2, 0, 10); r.NewPackets != 10 || r.NewBytes != 2000 || s.Cum() != 10 || s.Deadline() != frame.Never || s.BytesInFlight() != 0 {
		t.Errorf("%+v, cum %d, deadline %d", r, s.Cum(), s.Deadline())
	}
}

// The reply to a packet of the second loop keeps the cumulative acknowledgement
// of the last ordinary one, and reports the run around it.
func TestLowRepliesOfTheReceiver(t *testing.T) {
	var r Receiver
	r.Init(rc3(TCP, DesignLevels, Meet))
	if v := r.Data(0, 0, Middle); v.Cum != 1 {
		t.Fatalf("%+v", v)
	}
	for i, want := range [][3]uint64{{9, 9, 10}, {8, 8, 10}, {7, 7, 10}, {5, 5, 6}, {4, 4, 6}, {1, 1, 2}, {2, 1, 3}} {
		v := r.DataLow(0, want[0], Middle)
		first, end := r.Run(want[0])
		if !v.Deliver || v.Reply != AckReply || v.Cum != 1 || first != want[1] || end != want[2] {
			t.Errorf("%d: packet %d: %+v, run from %d to %d", i, want[0], v, first, end)
		}
	}
	if r.Expected() != 3 {
		t.Errorf("packet %d is expected, want 3", r.Expected())
	}
	if v := r.DataLow(0, 8, Middle); v.Deliver || !v.Duplicate || v.Reply != AckReply || v.Cum != 1 {
		t.Errorf("a duplicate: %+v", v)
	}
	if v := r.Data(0, 3, Middle); v.Cum != 6 || v.InOrder != 3 {
		t.Errorf("the ordinary loop: %+v", v)
	}
	if v := r.DataLow(0, 8, Middle); v.Cum != 6 {
		t.Errorf("behind it: %+v", v)
	}
}

// Under loss and reordering of each loop every packet is delivered once, leaves
// by the second loop at most once, and the message ends.
func TestSecondLoopUnderLoss(t *testing.T) {
	for _, kind := range []*Kind{TCP, NewReno, IRN, IRNNoSACK} {
		for seed := range uint64(30) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			cfg := rc3(kind, []uint64{4, 40}, Crossing(seed%3))
			if kind.Capped {
				cfg.Cap, cfg.N = 16, 3
			}
			total := uint64(1 + rnd.IntN(400))
			lossHP, lossLow := rnd.Float64()*0.3, rnd.Float64()
			var s Sender
			var r Receiver
			s.Init(cfg)
			r.Init(cfg)
			s.Posted(0, total)
			delivered, byLow := make([]int, total), make([]int, total)
			type event struct {
				at   frame.Time
				data bool
				low  bool
				seq  uint64
				ack  Ack
				to   uint64
			}
			var fly []event
			now := frame.Time(0)
			kindOf := func(seq uint64) PacketKind {
				if seq == total-1 {
					return LastCQE
				}
				return Middle
			}
			for step := 0; s.Cum() < total; step++ {
				if step > 200_000 {
					t.Fatalf("%v, seed %d: stuck at %d of %d", kind, seed, s.Cum(), total)
				}
				if seq, rtx, ok := s.Peek(now, total); ok && s.BytesInFlight() < 20_000 {
					s.Sent(now, seq, 1000, rtx)
					if rnd.Float64() >= lossHP {
						fly = append(fly, event{at: now + frame.Time(10_000+rnd.IntN(4000)), data: true, seq: seq})
					}
				} else if seq, level, ok := s.PeekLow(); ok {
					s.SentLow(seq, level)
					byLow[seq]++
					if rnd.Float64() >= lossLow {
						fly = append(fly, event{at: now + frame.Time(10_000+rnd.IntN(4000)), data: true, low: true, seq: seq})
					}
				}
				now += 1000
				if s.Deadline() <= now {
					s.Timeout(now)
				}
				for i := 0; i < len(fly); {
					e := fly[i]
					if e.at > now {
						i++
						continue
					}
					fly = append(fly[:i], fly[i+1:]...)
					switch {
					case e.data:
						var v Verdict
						if e.low {
							v = r.DataLow(now, e.seq, kindOf(e.seq))
						} else {
							v = r.Data(now, e.seq, kindOf(e.seq))
						}
						if v.Deliver {
							delivered[e.seq]++
						}
						if v.Reply != None && rnd.Float64() >= lossHP {
							first, end := r.Run(e.seq)
							fly = append(fly, event{at: now + 10_000, low: e.low, seq: first, to: end, ack: Ack{NAK: v.Reply == NakReply, Cum: v.Cum, Sack: v.Sack}})
						}
					case e.low:
						s.AckLow(now, e.seq, e.to)
					default:
						s.Ack(now, e.ack)
					}
				}
			}
			if s.BytesInFlight() != 0 || s.Deadline() != frame.Never || s.Stats().BadAcks != 0 {
				t.Fatalf("%v, seed %d: %d bytes in flight, deadline %d, %d bad acknowledgements", kind, seed, s.BytesInFlight(), s.Deadline(), s.Stats().BadAcks)
			}
			for q := range delivered {
				if delivered[q] != 1 || byLow[q] > 1 {
					t.Fatalf("%v, seed %d: packet %d was delivered %d times and left by the second loop %d times", kind, seed, q, delivered[q], byLow[q])
				}
			}
		}
	}
}

func TestRecursiveIsChecked(t *testing.T) {
	for _, bad := range []*Config{rc3(GoBackN, DesignLevels, Meet), rc3(TCP, nil, Meet), rc3(TCP, []uint64{4, 3}, Meet), rc3(TCP, []uint64{0, 3}, Meet), rc3(TCP, make([]uint64, 16), Meet)} {
		if bad.Validate() == nil {
			t.Errorf("%+v passes", bad.Recursive)
		}
	}
	if err := rc3(NewReno, OneLevel, Push).Validate(); err != nil {
		t.Error(err)
	}
}

// After a timeout nothing that the ordinary loop sent is in the network any more, also what
// need not be sent again, as it arrived by the second loop: counted as in flight it would
// keep the window of one packet full, and each hole would wait for a timeout of its own.
func TestTimeoutEmptiesTheFlight(t *testing.T) {
	var s Sender
	s.Init(rc3(TCP, []uint64{40, 440}, Push))
	s.Posted(0, 20)
	hp(t, &s, 10, 20) // all lost
	low(&s, 20)
	for q := uint64(1); q < 20; q++ {
		if q%3 != 0 { // 0, 3, 6, ... are lost on both ways
			s.AckLow(us, q, q+1)
		}
	}
	if !s.Timeout(s.Deadline()) {
		t.Fatal("no timeout")
	}
	if n := s.BytesInFlight(); n != 0 {
		t.Errorf("%d bytes are in flight after a timeout, and nothing was sent since", n)
	}
	if seqs, want := fmt.Sprint(hp(t, &s, 4, 20)), "[0 3 6 9]"; seqs != want {
		t.Errorf("sends %s again, want %s", seqs, want)
	}
}
