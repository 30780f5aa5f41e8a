package hostnic

import (
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/vswitch"
	"gswitch/wire"
)

func (p *pair) inject(b []byte) {
	r := p.pool.New(b)
	p.a.Receive(p.now, 0, []frame.Ref{r})
}

// pauseClass pauses classes at host a for ns.
func (p *pair) pauseClass(enable uint8, quanta uint16) {
	f := wire.PFCFields{Src: testMAC(9), Enable: enable}
	for c := range f.Quanta {
		f.Quanta[c] = quanta
	}
	b := make([]byte, wire.MinFrame)
	f.Encode(b)
	p.inject(b)
}

// A pause stops the class with the next frame, other classes go on, and the
// end of the pause, by XON or by itself, sets it free at once.
func TestPFCIsHonoured(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.PFC, c.PFCClasses = true, 1<<3|1<<4 })
	var sent [8][]frame.Time
	p.seen = func(from int, m *frame.Meta, _ []byte) {
		if from == 0 {
			sent[m.Class] = append(sent[m.Class], m.Depart)
		}
	}
	for _, class := range []uint8{3, 1} {
		qa, _ := p.connect(func(c *QPConfig) { c.Class, c.Transport.RTOHigh = class, 0 })
		must(t, p.a.SendMessage(0, qa, 1_000_000, 0))
	}
	p.run(1000)
	if len(sent[3]) != 12 || len(sent[1]) != 0 {
		t.Fatalf("before the pause: %d frames of class 3, %d of class 1", len(sent[3]), len(sent[1]))
	}
	p.pauseClass(1<<3, 1000) // 5120 ns
	p.run(6000)
	if len(sent[3]) != 12 || len(sent[1]) != 59 {
		t.Fatalf("paused: %d frames of class 3, %d of class 1", len(sent[3]), len(sent[1]))
	}
	p.run(6300) // by itself at 6120
	if len(sent[3]) < 14 || sent[3][12] < 6120 || sent[3][12] > 6120+85 {
		t.Fatalf("after the pause: %v", sent[3][12:])
	}
	n := len(sent[3])
	p.pauseClass(1<<3, 0xffff)
	p.run(8000)
	p.pauseClass(1<<3, 0)
	p.run(8200)
	if len(sent[3]) <= n || sent[3][n] < 8000 || sent[3][n] > 8000+85 {
		t.Fatalf("after XON: %v", sent[3][n:])
	}
	s := p.a.Flow(p.now)
	if s.RxXOFF[3] != 2 || s.RxXON[3] != 1 || s.PausedTime[3] != 5120+1700 || p.a.Paused() != 0 {
		t.Fatalf("%+v", s)
	}
	p.run(frame.Millisecond)
	p.drained()
}

// Pauses of classes without flow control are counted and ignored; 802.3x
// stops all.
func TestPauseOfTheLink(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.Pause = true })
	qa, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 100_000, 0))
	p.run(1000)
	b := make([]byte, wire.MinFrame)
	f := wire.PauseFields{Src: testMAC(9), Quanta: 1000}
	f.Encode(b)
	p.inject(b)
	before := p.a.Counts().TxFrames
	p.pauseClass(0xff, 0) // not the mode
	p.run(6000)
	if p.a.Counts().TxFrames != before || p.a.Flow(p.now).RxIgnored != 1 {
		t.Fatalf("%d frames sent while the link was paused", p.a.Counts().TxFrames-before)
	}
	p.run(frame.Millisecond)
	if len(take(p.a)) != 1 {
		t.Fatal("not sent after the pause")
	}
}

// Acknowledgements wait for the pause of their own class, or of the class
// that AckPauseClass names.
func TestAckClass(t *testing.T) {
	for _, c := range []struct {
		ack, pause, paused int
		held               bool
	}{{-1, -1, 3, true}, {6, -1, 3, false}, {6, -1, 6, true}, {6, 3, 3, true}, {6, 3, 6, false}} {
		p := newPair(t, func(_ int, n *Config) {
			n.PFC, n.PFCClasses, n.AckClass, n.AckPauseClass = true, 1<<3|1<<6, c.ack, c.pause
		})
		var class []uint8
		p.seen = func(from int, m *frame.Meta, b []byte) {
			if from == 0 && m.Wire < 100 {
				class = append(class, b[15]>>2/8)
			}
		}
		_, qb := p.connect(func(q *QPConfig) { q.Transport.RTOHigh = 0 })
		must(t, p.b.SendMessage(0, qb, 3000, 0))
		p.pauseClass(1<<c.paused, 0xffff)
		p.run(100 * frame.Microsecond)
		if (len(class) == 0) != c.held {
			t.Errorf("%+v: %d acknowledgements sent", c, len(class))
		}
		want := uint8(3)
		if c.ack >= 0 {
			want = uint8(c.ack)
		}
		for _, k := range class {
			if k != want {
				t.Errorf("%+v: an acknowledgement in class %d", c, k)
			}
		}
	}
}

// A host that takes 20 of 100 Gb/s, or nothing for a while, pauses the switch,
// which pauses the senders: nothing is lost, and all goes on afterwards.
func TestSlowReceiverPausesTheNetwork(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		s := newStar(t, 3, func(i int, c *Config) {
			c.PFC, c.PFCClasses, c.CableDelay = true, 1<<3, 1000
			if i == 0 && !stuck {
				c.Receive = ReceiveConfig{Rate: 20e9, Buffer: 200_000}
			} else if i == 0 {
				c.Receive.Buffer = 200_000
			}
		}, func(c *vswitch.Config) {
			c.PFC.Mode, c.PFC.Classes, c.Buffer.XOFF = 1, 1<<3, 100_000
		})
		if stuck {
			s.nics[0].SetReceiver(0, 0, true)
		}
		s.incast("", nil, 2_000_000, func(q *QPConfig) { q.Transport.RTOHigh = 0 })
		s.run(400 * frame.Microsecond)
		from, by := s.nics[0].Flow(s.now), s.nics[1].Flow(s.now)
		if from.TxXOFF[3] == 0 || by.PausedTime[3] == 0 || s.nics[0].Held() == 0 {
			t.Fatalf("stuck %v: %d pauses sent, sender paused for %v, %d bytes held", stuck, from.TxXOFF[3], by.PausedTime[3].Duration(), s.nics[0].Held())
		}
		if stuck {
			if s.nics[0].Counts().Delivered != 0 {
				t.Fatal("a stuck host takes frames")
			}
			s.nics[0].SetReceiver(s.now, 0, false)
		}
		took := s.finish(2_000_000)
		lower := frame.Time(4_000_000 * 8 / 20)
		if !stuck && (took < lower || float64(took) > 1.15*float64(lower)) {
			t.Errorf("took %v, at 20 Gb/s %v", took.Duration(), lower.Duration())
		}
		for _, n := range s.nics {
			if d := n.Counts().Drops[frame.BufferFull]; d != 0 || n.Counts().Retransmissions != 0 {
				t.Errorf("stuck %v: %d frames did not fit, %d sent again", stuck, d, n.Counts().Retransmissions)
			}
		}
	}
}

// Without flow control what a slow host cannot hold is lost and counted, and
// sent again.
func TestSlowReceiverWithoutPause(t *testing.T) {
	p := newPair(t, func(i int, c *Config) {
		if i == 1 {
			c.Receive = ReceiveConfig{Rate: 10e9, Buffer: 20_000}
		}
	})
	qa, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 300_000, 0))
	p.run(100 * frame.Millisecond)
	if v := take(p.b); len(v) != 1 || v[0].Bytes != 300_000 || p.b.Counts().Drops[frame.BufferFull] == 0 {
		t.Fatalf("%+v, %d lost", v, p.b.Counts().Drops[frame.BufferFull])
	}
	p.drained()
}

// Classes share the link by priority and weight.
func TestClasses(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.Weights = [8]uint32{0, 3, 1, 0, 0, 0, 0, 0} })
	bytes := [8]uint64{}
	p.seen = func(from int, m *frame.Meta, _ []byte) {
		if from == 0 && m.Depart < 800_000 {
			bytes[m.Class] += uint64(m.Wire)
		}
	}
	for _, class := range []uint8{0, 1, 2, 5} {
		size := uint64(8_000_000)
		if class == 5 {
			size = 1_000_000
		}
		for range 2 { // the number of queue pairs does not matter
			qa, _ := p.connect(func(c *QPConfig) { c.Class, c.Transport.RTOHigh = class, 0 })
			must(t, p.a.SendMessage(0, qa, size, 0))
		}
	}
	p.run(800 * frame.Microsecond)
	if bytes[0] != 0 || bytes[5] < 2_000_000 {
		t.Fatalf("strict priority: %v", bytes)
	}
	if r := float64(bytes[1]) / float64(bytes[2]); r < 2.95 || r > 3.05 {
		t.Fatalf("weights 3 to 1 gave %.3f: %v", r, bytes)
	}
}

// A link that goes down loses what is under way and the replies that wait; the
// transport repairs it when it is up again.
func TestLinkDown(t *testing.T) {
	p := newPair(t, nil)
	qa, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 200_000, 0))
	p.run(3000)
	p.a.SetLink(p.now, 0, false)
	p.b.SetLink(p.now, 0, false)
	before := p.a.Counts().TxFrames
	p.run(10_000)
	if p.a.Counts().TxFrames != before || p.b.Counts().Drops[frame.PortDown] == 0 || p.a.PortWake(p.now, 0) != frame.Never {
		t.Fatal("a link that is down carries frames")
	}
	p.a.SetLink(p.now, 0, true)
	p.b.SetLink(p.now, 0, true)
	p.run(10 * frame.Millisecond)
	if v := take(p.b); len(v) != 1 || v[0].Bytes != 200_000 {
		t.Fatalf("%+v", v)
	}
	p.drained()
}

// The link is charged with what a frame occupies on an Ethernet wire.
func TestOverhead(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.Overhead = scheduler.EthernetOverhead })
	got := p.starts(1000)
	qa, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 3000, 0))
	p.run(frame.Millisecond)
	equal(t, "1082 bytes at 100 Gb/s", *got, []frame.Time{0, 86, 173})
}
