package tcp

import (
	"fmt"
	"strings"
	"testing"

	"gswitch/frame"
)

// RFC 8985 section 3.4: P1, P2 and P3 are lost, the probe finds it, P1 is lost again; all is
// repaired in five round trips without a timeout. The instants are those of the figure with a
// round trip of 20 ms; time shows the second loss of P1 as soon as what was sent behind it
// has arrived.
func TestRACKExample(t *testing.T) {
	cfg := Default()
	cfg.MSS, cfg.Control = 1012, "reno" // 1000 bytes beside the stamps
	p := newPair(t, 1, cfg, cfg)
	p.delay = 10 * ms
	var got []string
	copies := [4]int{}
	p.fate = func(from, _ int, s *Segment) (f fate) {
		if from != 0 || s.Len == 0 {
			return f
		}
		i := (s.Seq - p.iss - 1) / 1000
		copies[i]++
		f.lose = copies[i] == 1 && i > 0 || copies[i] == 2 && i == 1
		got = append(got, fmt.Sprintf("%d:P%d", p.now/ms, i))
		return f
	}
	p.run(20 * ms)
	p.ends[0].Write(make([]byte, 4000))
	p.run(5 * frame.Second)
	if want := "20:P0 20:P1 20:P2 20:P3 80:P3 100:P1 100:P2 120:P1"; strings.Join(got, " ") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, " "), want)
	}
	c := p.ends[0]
	if c.Unacked() != 0 || c.Stats.Timeouts != 0 || c.Stats.TailProbes != 1 || c.Stats.Recoveries != 1 {
		t.Errorf("%d bytes are not acknowledged, %+v", c.Unacked(), c.Stats)
	}
}

// underway is a connection with segments of 1000 bytes under way, one a millisecond from 100 ms
// on, whose least round trip is 20 ms and the smoothed one 24.
func underway(t *testing.T, n int) *Conn {
	t.Helper()
	c, err := newConn(Default(), 1)
	if err != nil {
		t.Fatal(err)
	}
	c.state, c.sack, c.mss, c.nxt = Established, true, 1000, 1
	c.una = 1
	c.rtt = rtt{smoothed: 24 * ms, least: 20 * ms, any: true}
	for i := range n {
		c.tx++
		at := 100*ms + frame.Time(i)*ms
		c.sent = append(c.sent, sent{off: c.nxt, n: 1000, at: at, first: at, tx: c.tx})
		c.nxt += 1000
		c.pipe += 1000
	}
	return c
}

// sackOf reports segments from one to another as arrived.
func sackOf(c *Conn, now frame.Time, from, to int) {
	o := Options{SACKs: 1, SACK: [4][2]uint32{{c.wire(uint64(1 + 1000*from)), c.wire(uint64(1 + 1000*to + 1000))}}}
	c.selective(now, &o)
}

// RFC 8985 section 6.2, step 2: the acknowledgement of a copy that came sooner than the least
// round trip is for an earlier one, and says nothing about the last.
func TestRACKTakesTheLastSent(t *testing.T) {
	for _, c := range []struct {
		name string
		trip frame.Time
		tx   uint64
	}{
		{"sooner than the least round trip", 19 * ms, 0},
		{"the least round trip", 20 * ms, 5},
	} {
		conn := underway(t, 4)
		conn.tx++
		s := &conn.sent[3]
		s.retries, s.at, s.tx = 1, 200*ms, conn.tx
		sackOf(conn, 200*ms+c.trip, 3, 3)
		if conn.rack.tx != c.tx {
			t.Errorf("%s: the last delivered is number %d, want %d", c.name, conn.rack.tx, c.tx)
		}
	}
	c := underway(t, 4)
	sackOf(c, 125*ms, 2, 2)
	sackOf(c, 126*ms, 1, 1)
	if c.rack.tx != 3 || c.rack.rtt != 23*ms {
		t.Errorf("number %d in %v, want the one sent last, 3, in 23 ms", c.rack.tx, c.rack.rtt.Duration())
	}
}

// RFC 8985 section 6.2, step 3: what arrives behind what was sent after it was reordered, unless
// it was sent again.
func TestRACKReordering(t *testing.T) {
	for _, again := range []bool{false, true} {
		c := underway(t, 4)
		sackOf(c, 122*ms, 2, 2)
		if c.rack.reordered {
			t.Error("a hole is no reordering")
		}
		if again {
			c.tx++
			c.sent[1].retries, c.sent[1].at, c.sent[1].tx = 1, 130*ms, c.tx
		}
		sackOf(c, 160*ms, 1, 1)
		if c.rack.reordered == again {
			t.Errorf("sent again: %v, reordered: %v", again, c.rack.reordered)
		}
	}
}

// RFC 8985 section 6.2, step 4: the window for reordering. Without DSACK its multiplier is 1.
func TestRACKWindow(t *testing.T) {
	for _, c := range []struct {
		reordered, recovering bool
		sacked                int
		least, smoothed, want frame.Time
	}{
		{false, false, 0, 20 * ms, 24 * ms, 5 * ms},
		{false, false, 2, 20 * ms, 24 * ms, 5 * ms},
		{false, false, 3, 20 * ms, 24 * ms, 0},
		{false, true, 0, 20 * ms, 24 * ms, 0},
		{true, false, 3, 20 * ms, 24 * ms, 5 * ms},
		{true, true, 3, 20 * ms, 24 * ms, 5 * ms},
		{true, true, 3, 20 * ms, 4 * ms, 4 * ms}, // no more than the smoothed round trip
	} {
		conn := underway(t, 1)
		conn.rack.reordered, conn.recovering, conn.sackedSegs = c.reordered, c.recovering, c.sacked
		conn.rtt.least, conn.rtt.smoothed = c.least, c.smoothed
		if got := conn.reorderWindow(); got != c.want {
			t.Errorf("%+v: %v", c, got.Duration())
		}
	}
}

// RFC 8985 section 6.2, step 5: a segment is lost when one that was sent after it has arrived,
// and the round trip of that and the window for reordering are over since it was sent; till then
// a timer waits for the first that will be.
func TestRACKLosses(t *testing.T) {
	c := underway(t, 6)
	sackOf(c, 123*ms, 3, 3) // sent at 103: 20 ms
	lost := func() (out string) {
		for i := range c.sent {
			if c.sent[i].lost {
				out += fmt.Sprint(i)
			}
		}
		return out
	}
	for _, x := range []struct {
		at   frame.Time
		lost string
		next frame.Time
	}{
		{123 * ms, "", 125 * ms},
		{125*ms - 1, "", 125 * ms},
		{125 * ms, "0", 126 * ms},
		{126 * ms, "01", 127 * ms},
		{200 * ms, "012", frame.Never}, // 4 and 5 were sent after the one that arrived
	} {
		before := lost()
		found := c.findLosses(x.at)
		if lost() != x.lost || found != (before != x.lost) || c.reorderAt != x.next {
			t.Errorf("at %v: %q are lost (found %v), the next at %v; want %q and %v", x.at.Duration(), lost(), found, c.reorderAt.Duration(), x.lost, x.next.Duration())
		}
	}
	if c.pipe != 2000 {
		t.Errorf("%d bytes are under way, want those of two segments", c.pipe)
	}
}

// RFC 8985 section 7.2: the probe comes after two round trips, with the time for which a lone
// segment's acknowledgement is held back, never behind the timeout; and none without SACK, in
// recovery or with a hole.
func TestTailProbeTime(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		change func(*Conn)
		want   frame.Time
		kind   timerKind
	}{
		{"several segments", 2, func(*Conn) {}, 48 * ms, timerTailProbe},
		{"one segment", 1, func(*Conn) {}, 88 * ms, timerTailProbe},
		{"before the first round trip", 2, func(c *Conn) { c.rtt.any = false }, 200 * ms, timerRTO},
		{"timeout before", 2, func(c *Conn) { c.rto = 40 * ms }, 40 * ms, timerRTO},
		{"without SACK", 2, func(c *Conn) { c.sack = false }, 200 * ms, timerRTO},
		{"in recovery", 2, func(c *Conn) { c.recovering = true }, 200 * ms, timerRTO},
		{"with a hole", 2, func(c *Conn) { c.sackedSegs = 1 }, 200 * ms, timerRTO},
		{"after a timeout", 2, func(c *Conn) { c.tries = 1 }, 200 * ms, timerRTO},
		{"after a probe of the same", 2, func(c *Conn) { c.probed = c.nxt }, 200 * ms, timerRTO},
	} {
		conn := underway(t, c.n)
		conn.rto = 200 * ms
		c.change(conn)
		if conn.rearm(150 * ms); conn.timer != 150*ms+c.want || conn.timerKind != c.kind {
			t.Errorf("%s: timer %d in %v, want %d in %v", c.name, conn.timerKind, (conn.timer - 150*ms).Duration(), c.kind, c.want.Duration())
		}
	}
}

// RFC 8985 section 7.3: the probe is new data where there is some that the peer takes, and the
// last segment otherwise.
func TestTailProbeIsNewData(t *testing.T) {
	for _, more := range []int{0, 500} {
		cfg := Default()
		cfg.MSS, cfg.InitialWindow = 1012, 2
		p := newPair(t, 1, cfg, cfg)
		p.delay = 10 * ms
		lose := true
		var last uint32
		p.fate = func(from, _ int, s *Segment) (f fate) {
			if from == 0 && s.Len > 0 {
				f.lose = lose
				last = s.Seq - p.iss - 1
			}
			return f
		}
		p.run(20 * ms)
		p.ends[0].Write(make([]byte, 2000))
		p.run(30 * ms)
		p.ends[0].Write(make([]byte, more))
		lose = false
		p.run(61 * ms)
		if st := p.ends[0].Stats; st.TailProbes != 1 || more == 0 && (last != 1000 || st.Retransmitted != 1) || more > 0 && (last != 2000 || st.Retransmitted != 0) {
			t.Errorf("%d bytes more: the probe begins at %d, %+v", more, last, st)
		}
		p.run(5 * frame.Second)
		if p.ends[0].Unacked() != 0 || p.ends[0].Stats.Timeouts != 0 {
			t.Errorf("%d bytes more: %d are not acknowledged, %+v", more, p.ends[0].Unacked(), p.ends[0].Stats)
		}
	}
}
