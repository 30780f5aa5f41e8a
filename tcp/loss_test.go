package tcp

import (
	"testing"

	"gswitch/frame"
)

// sender is a connection that has a handshake behind it and n bytes to send to the test.
func sender(t *testing.T, cfg Config, syn Options, n int) *vector {
	t.Helper()
	cfg.Stamps = false
	v := listen(t, cfg, syn)
	v.now = 10 * ms
	v.open(60_000, Options{})
	v.c.WriteLen(n)
	return v
}

var thousand = Options{MSS: 1000, SACKPermitted: true}

// drain takes all that the connection sends now.
func (v *vector) drain() (out []Segment) {
	var s Segment
	for v.c.Next(v.now, &s) {
		out = append(out, s)
	}
	return out
}

// ack acknowledges up to an offset from the first byte.
func (v *vector) ack(off int, window uint16, o Options) {
	v.c.Receive(v.now, &Segment{Flags: ACK, Seq: v.mine, Ack: v.c.wire(uint64(1 + off)), Window: window, Options: o})
}

// at is a segment's offset from the first byte.
func (v *vector) at(s *Segment) int { return int(s.Seq - v.c.wire(1)) }

// fire runs the timer that is due next.
func (v *vector) fire() {
	v.t.Helper()
	if v.c.Due() == frame.Never {
		v.t.Fatal("no timer runs")
	}
	v.now = v.c.Due()
	v.c.Advance(v.now)
}

// RFC 2018 section 8: what was selectively acknowledged may be thrown away, so after a timeout
// all is sent again that is not acknowledged.
func TestReneging(t *testing.T) {
	for _, rack := range []bool{false, true} {
		cfg := Default()
		cfg.RACK, cfg.TailProbe = rack, rack
		v := sender(t, cfg, thousand, 5000)
		if n := len(v.drain()); n != 5 {
			t.Fatalf("%d segments", n)
		}
		v.now += 10 * ms
		v.ack(0, 60_000, Options{SACKs: 1, SACK: [4][2]uint32{{v.c.wire(1001), v.c.wire(5001)}}})
		if s := v.drain(); len(s) != 1 || v.at(&s[0]) != 0 {
			t.Fatalf("the first is sent again: %+v", s)
		}
		// The peer throws away the last four and takes the first.
		v.now += 10 * ms
		v.ack(1000, 60_000, Options{})
		got := 1000
		for range 100 {
			sent := v.drain()
			if len(sent) == 0 && got < 5000 {
				v.fire()
				continue
			}
			for i := range sent {
				if v.at(&sent[i]) == got {
					got += sent[i].Len
				}
			}
			v.now += 10 * ms
			v.ack(got, 60_000, Options{})
		}
		if got != 5000 || v.c.Unacked() != 0 || v.c.Stats.Timeouts != 1 || v.c.InFlight() != 0 {
			t.Errorf("RACK %v: %d of 5000 bytes after %d timeouts, %d under way, state %v", rack, got, v.c.Stats.Timeouts, v.c.InFlight(), v.c.State())
		}
	}
}

// A peer that kept what it had says so again after a timeout: that is neither reordering nor a
// round trip, and none of it is sent again.
func TestReportedAgain(t *testing.T) {
	cfg := Default()
	cfg.MaxReordering = 300
	v := sender(t, cfg, thousand, 10_000)
	v.drain()
	v.now += 10 * ms
	kept := Options{SACKs: 1, SACK: [4][2]uint32{{v.c.wire(1001), v.c.wire(10_001)}}}
	v.ack(0, 60_000, kept)
	v.drain() // lost again
	for v.c.Stats.Timeouts == 0 {
		v.fire()
	}
	if s := v.drain(); len(s) != 1 || v.at(&s[0]) != 0 {
		t.Fatalf("the first is sent again: %+v", s)
	}
	v.now += 10 * ms
	trip := v.c.RTT()
	v.ack(500, 60_000, kept) // as from a peer that takes a part of it
	if s := v.drain(); len(s) > 1 || v.c.Reordering() != 3 || v.c.rack.reordered {
		t.Errorf("%d segments are sent, the threshold of duplicates is %d", len(s), v.c.Reordering())
	}
	v.now += 10 * ms
	if v.ack(10_000, 60_000, Options{}); v.c.Unacked() != 0 || v.c.InFlight() != 0 || v.c.RTT() != trip {
		t.Errorf("%d bytes not acknowledged, %d under way, a round trip of %v (it was %v)", v.c.Unacked(), v.c.InFlight(), v.c.RTT().Duration(), trip.Duration())
	}
	if v.c.lostSegs != 0 || v.c.sackedSegs != 0 {
		t.Errorf("%d lost and %d acknowledged selectively of none", v.c.lostSegs, v.c.sackedSegs)
	}
}

// RFC 5681 section 3.1: the window is one segment after each timeout, and the threshold is taken
// down once for what is lost again and again.
func TestTimeoutInRecovery(t *testing.T) {
	for _, control := range []string{"reno", "cubic", "dctcp"} {
		cfg := Default()
		cfg.Control, cfg.ECN, cfg.RACK, cfg.TailProbe, cfg.InitialWindow = control, control == "dctcp", false, false, 40
		v := sender(t, cfg, thousand, 40_000)
		if n := len(v.drain()); n != 40 {
			t.Fatalf("%s: %d segments", control, n)
		}
		v.fire()
		if w := v.c.Window(); w != 1000 {
			t.Errorf("%s: a window of %d after a timeout", control, w)
		}
		threshold := v.c.cc.Threshold()
		for range 3 {
			off := 0
			for _, s := range v.drain() {
				off = v.at(&s) + s.Len
			}
			v.now += 10 * ms
			v.ack(off, 60_000, Options{})
		}
		if v.c.Window() < 4000 {
			t.Fatalf("%s: a window of %d after three round trips", control, v.c.Window())
		}
		v.drain() // all lost
		v.fire()
		if w, th := v.c.Window(), v.c.cc.Threshold(); v.c.Stats.Timeouts != 2 || w != 1000 || th != threshold {
			t.Errorf("%s: a window of %d and a threshold of %d after timeout %d, want 1000 and %d", control, w, th, v.c.Stats.Timeouts, threshold)
		}
		if n := len(v.drain()); n != 1 {
			t.Errorf("%s: %d segments are sent after the second timeout", control, n)
		}
	}
}

// RFC 3168 section 6.1.5: no router may mark what is sent again, but for DCTCP, whose packets all
// may be.
func TestECTOfRetransmissions(t *testing.T) {
	for _, control := range []string{"reno", "cubic", "dctcp"} {
		cfg := Default()
		cfg.Stamps, cfg.ECN, cfg.Control = false, true, control
		c, err := Accept(0, cfg, 1, &Segment{Flags: SYN | ECE | CWR, Seq: vectorISS, Window: 60_000, Options: thousand})
		if err != nil {
			t.Fatal(err)
		}
		v := &vector{t: t, c: c, mine: vectorISS + 1}
		v.drain()
		v.now = 10 * ms
		v.open(60_000, Options{})
		c.WriteLen(2000)
		for _, s := range v.drain() {
			if !s.ECT {
				t.Errorf("%s: no ECT at first", control)
			}
		}
		for c.Stats.TailProbes == 0 || c.Stats.Timeouts == 0 {
			before := c.Stats.Retransmitted
			v.fire()
			for _, s := range v.drain() {
				if s.ECT != (control == "dctcp") {
					t.Errorf("%s: ECT %v of what is sent again", control, s.ECT)
				}
			}
			if c.Stats.Retransmitted == before {
				t.Fatalf("%s: nothing was sent again", control)
			}
		}
	}
}
