package hostnic

import (
	"fmt"
	"testing"

	"gswitch/frame"
)

// lateRun steps two NICs at instants that have nothing to do with what is due,
// as a worker does that is kept from its processor: begin moves the time on to
// the next loop. Each loop receives, runs timers and sends, in this order,
// both NICs in turn, and frames arrive where their emulated link brings them.
func (p *pair) lateRun(until frame.Time, begin func()) {
	var out [64]frame.Ref
	for p.now < until {
		begin()
		p.deliver()
		for id, n := range p.nodes {
			n.step.Advance(p.now)
			for {
				k := n.step.Transmit(p.now, 0, out[:])
				for _, r := range out[:k] {
					p.depart(id, n.peer[0], r)
				}
				if k < len(out) {
					break
				}
			}
		}
	}
}

// A paced flow that a late worker held up makes up for it, whatever else
// happens in the loop that comes late: it sends as much as its pace allows as long as
// the worker is not later than Burst, and no frame departs before its pace.
func TestLatePaceCatchesUp(t *testing.T) {
	const given, burst = 25e9, 20 * frame.Microsecond
	const gap, small = 338, 13 // ns of 1058 bytes at this rate, of 158 at that of the link
	for _, c := range []struct {
		ackEvery uint32
		beside   bool // small messages that wait for nothing
		slack    frame.Time
	}{{1, false, 1}, {8, false, 1}, {8, true, 1 + small}} {
		for _, most := range []uint32{1000, 5000, 15_000} {
			t.Run(fmt.Sprintf("%dns late, ack every %d, beside others %v", most, c.ackEvery, c.beside), func(t *testing.T) {
				p := newPair(t, func(_ int, cfg *Config) { cfg.Burst = burst })
				v := p.starts(1000)
				qa, _ := p.connect(func(q *QPConfig) {
					q.CC, q.Transport.AckEvery, q.Transport.RTOHigh = newFixed(given).make, c.ackEvery, 0
				})
				qs, _ := p.connect(nil)
				must(t, p.a.SendMessage(0, qa, 1_000_000_000, 0))
				rng := frame.NewRand(uint64(most))
				p.lateRun(10*frame.Millisecond, func() {
					p.now += 1 + frame.Time(rng.Uint32n(most))
					if c.beside {
						must(t, p.a.SendMessage(p.now, qs, 100, 0))
					}
				})
				bytes, span := float64(len(*v)-1)*1058*8, float64((*v)[len(*v)-1]-(*v)[0])
				if kept := bytes / span / given * 1e9; kept < gap/float64(gap+c.slack) || kept > 1.0001 {
					t.Errorf("%.4f of the pace is sent", kept)
				}
				for i := range (*v)[1:] {
					if d := (*v)[i+1] - (*v)[i]; d < gap || d > gap+c.slack {
						t.Fatalf("frames %d and %d depart %d ns apart, want %d", i, i+1, d, gap)
					}
				}
			})
		}
	}
}

// What catches up is only what was held up: beside a late flow no message
// departs before it was posted, no reply before what it answers arrived, and
// nothing of a class before its pause was over.
func TestLatePaceLendsNothing(t *testing.T) {
	const burst = 20 * frame.Microsecond
	p := newPair(t, func(_ int, c *Config) {
		c.Burst, c.AckClass, c.PFC, c.PFCClasses = burst, 7, true, 1<<3|1<<4
	})
	open := func(class uint8, rate float64) uint32 {
		qa, _ := p.connect(func(c *QPConfig) {
			c.CC, c.Class, c.Transport.RTOHigh = newFixed(rate).make, class, 0
		})
		return qa
	}
	late, other, now3, now4 := open(3, 10e9), open(4, 7e9), open(3, 100e9), open(4, 100e9)
	for _, qpn := range []uint32{late, other} {
		must(t, p.a.SendMessage(0, qpn, 1_000_000_000, 0))
	}
	posted := map[uint32]frame.Time{}
	resumed := [8]frame.Time{}
	last := map[uint32]frame.Time{}
	frames := map[uint32]int{}
	p.seen = func(from int, m *frame.Meta, b []byte) {
		if from != 0 || m.Wire < 1000 {
			if m.Class == 7 && m.Depart < m.Arrival {
				t.Fatalf("a reply departs at %d, and was made at %d", m.Depart, m.Arrival)
			}
			return
		}
		qpn := be.Uint32(b[42+4:]) & 0xffffff // of the receiver, which has the same
		frames[qpn]++
		switch {
		case m.Depart > p.now || m.Depart < p.now-burst:
			t.Fatalf("queue pair %d: a frame departs at %d in the loop of %d", qpn, m.Depart, p.now)
		case m.Depart < posted[qpn]:
			t.Fatalf("queue pair %d: a frame departs at %d, posted at %d", qpn, m.Depart, posted[qpn])
		case m.Depart < resumed[m.Class]:
			t.Fatalf("queue pair %d: a frame departs at %d, paused until %d", qpn, m.Depart, resumed[m.Class])
		case qpn == late && last[qpn] != 0 && m.Depart-last[qpn] < 846:
			t.Fatalf("frames of %d ns depart %d ns apart", 846, m.Depart-last[qpn])
		}
		last[qpn] = m.Depart
	}
	rng := frame.NewRand(7)
	paused := [8]bool{}
	p.lateRun(5*frame.Millisecond, func() {
		p.now += 1 + frame.Time(rng.Uint32n(12_000))
		switch k := rng.Uint32n(12); {
		case k < 2: // a queue pair that is idle now waits from now on
			qpn := []uint32{now3, now4}[k]
			if p.a.qps[qpn&255].lanes[inTurn].state == idle {
				posted[qpn] = p.now
			}
			must(t, p.a.SendMessage(p.now, qpn, 4000, 0))
		case k < 4:
			class, quanta := uint8(3+k-2), uint16(0)
			if paused[class] = !paused[class]; paused[class] {
				quanta = 0xffff
			} else {
				resumed[class] = p.now
			}
			p.pauseClass(1<<class, quanta)
		case k < 5:
			must(t, p.b.SendMessage(p.now, late, 4000, 0))
		}
	})
	for _, qpn := range []uint32{late, other, now3, now4} {
		if frames[qpn] < 20 {
			t.Errorf("queue pair %d sent %d frames: the test tests nothing", qpn, frames[qpn])
		}
	}
}

// Replies that the pause of another class held back depart when that is over.
func TestLateRepliesWaitForTheirPause(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) {
		c.Burst, c.AckClass, c.AckPauseClass, c.PFC, c.PFCClasses = 20*frame.Microsecond, 7, 3, true, 1<<3
	})
	_, qb := p.connect(func(c *QPConfig) { c.Transport.RTOHigh, c.Transport.AckEvery = 0, 1 })
	resumed, held := frame.Time(0), 0
	p.seen = func(from int, m *frame.Meta, _ []byte) {
		if from == 0 && m.Class == 7 && resumed != 0 {
			held++
			if m.Depart < resumed {
				t.Fatalf("a reply departs at %d, paused until %d", m.Depart, resumed)
			}
		}
	}
	must(t, p.b.SendMessage(0, qb, 20_000, 0))
	p.lateRun(100*frame.Microsecond, func() {
		switch p.now += 2000; p.now {
		case 2000:
			p.pauseClass(1<<3, 0xffff)
		case 30_000:
			resumed = p.now
			p.pauseClass(1<<3, 0)
		}
	})
	if held < 10 {
		t.Fatalf("%d replies were held back: the test tests nothing", held)
	}
}
