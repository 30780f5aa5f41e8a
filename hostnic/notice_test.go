package hostnic

import (
	"gswitch/notice"
	roccpoint "gswitch/rocc/point"
	"math"
	"testing"

	"gswitch/cc"
	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/qcn"
	"gswitch/rocc"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// Senders, a switch that works out their fair rate, and its queue: each gets
// its share of the link, and the queue stands at its reference (RoCC, goals
// of section 3.1).
func TestFairRateAndQueueSettle(t *testing.T) {
	for _, senders := range []int{2, 10} {
		params := rocc.For(40e9)
		s := newStar(t, senders+1, func(i int, c *Config) { c.Rate = 40e9 }, func(c *vswitch.Config) {
			for i := range c.Ports {
				c.Ports[i].Scheduler.Rate = 40e9
			}
			c.Ports[0].Options = vswitch.Options{roccpoint.Name: roccpoint.Config{Queues: 1 << 3, Params: params}}
		})
		s.incast("rocc", nil, 1<<30, nil)
		s.run(8 * frame.Millisecond) // from a synchronised start at line rate
		var sum, square, n float64
		before := make([]uint64, len(s.nics))
		for i := range before {
			before[i] = s.nics[i].Counts().TxBytes
		}
		const span = 2 * frame.Millisecond
		for end := s.now + span; s.now < end; n++ {
			s.run(s.now + 5*frame.Microsecond)
			_, q := s.sw.Nodes[0].Scheduler(0).QueueLen(3)
			sum, square = sum+float64(q), square+float64(q)*float64(q)
		}
		mean := sum / n
		if math.Abs(mean-float64(params.QRef)) > 0.1*float64(params.QRef) {
			t.Errorf("%d senders: the queue is %.0f bytes in the mean, want %d", senders, mean, params.QRef)
		}
		fair := 40e9 / float64(senders)
		for i := 1; i < len(s.nics); i++ {
			c := s.nics[i].Counts()
			rate := float64(c.TxBytes-before[i]) * 8 / span.Seconds()
			if math.Abs(rate-fair) > 0.05*fair {
				t.Errorf("%d senders: number %d sends %.2f Gb/s, its share is %.2f", senders, i, rate/1e9, fair/1e9)
			}
			if c.Notices == 0 || c.NoticesUnknown != 0 {
				t.Errorf("number %d took %d notices, %d were unknown", i, c.Notices, c.NoticesUnknown)
			}
		}
		t.Logf("%d senders: queue %.1f +- %.1f kB", senders, mean/1e3, math.Sqrt(square/n-mean*mean)/1e3)
	}
}

// Links of 40 and of 1 Gb/s with all rates divided and all times multiplied by
// 40 behave alike: in each period the same queue and the same rate, but for what
// whole nanoseconds do: at the instant of an update a frame of each sender may
// be there or not, and the rate is what follows from that.
func TestSimilarLinksBehaveAlike(t *testing.T) {
	const senders, payload, onLink = 3, 1012, 1070 // 214 and 8560 ns
	type step struct{ queue, fair float64 }
	run := func(s frame.Time, periods int) (v []step) {
		rate := 40_000_000_000 / uint64(s)
		params := rocc.For(rate)
		rig := newScaledStar(t, senders+1, s, func(_ int, c *Config) { c.Rate, c.Payload = rate, payload }, func(c *vswitch.Config) {
			for i := range c.Ports {
				c.Ports[i].Scheduler.Rate = rate
			}
			c.Ports[0].Options = vswitch.Options{roccpoint.Name: roccpoint.Config{Queues: 1 << 3, Params: params}}
		})
		recovery := (400 * s * frame.Microsecond).Duration().String()
		rig.incast("rocc", map[string]string{"recovery": recovery}, 1<<30, func(c *QPConfig) { c.Transport.RTOHigh = 0 })
		for range periods {
			rig.run(rig.now + params.Period)
			p := roccpoint.Views(rig.sw.Nodes[0], nil)[0]
			v = append(v, step{float64(p.QueueBytes), float64(p.Fair) * float64(s) / 10e6})
		}
		return v
	}
	fast, slow := run(1, 300), run(40, 300)
	same, queues, rates := 0, 0.0, 0.0
	for i := range fast {
		if fast[i] == slow[i] {
			same++
		}
		queues, rates = max(queues, math.Abs(fast[i].queue-slow[i].queue)), max(rates, math.Abs(fast[i].fair-slow[i].fair))
	}
	t.Logf("%d of %d periods are the same; queues differ by %.0f bytes at most, rates by %.0f units", same, len(fast), queues, rates)
	// The rate moves by b for 600 bytes of growth, by a for each that stays.
	if p := rocc.For(40e9); queues > senders*onLink || rates > (p.Alpha+p.Beta)*senders*onLink/float64(p.QueueUnit) {
		t.Error("they part")
	}
	if last := fast[len(fast)-1]; last.queue < 100_000 || last.queue > 200_000 {
		t.Errorf("at the end %+v: the test tests nothing", last)
	}
}

// Where the point that a flow follows is gone, the flow finds the line rate again
// by itself: doublings of its rate, and one time of recovery more until the
// first (section 3.3.3).
func TestPointIsGone(t *testing.T) {
	var cfg vswitch.Config
	s := newStar(t, 11, func(i int, c *Config) { c.Rate = 40e9 }, func(c *vswitch.Config) {
		for i := range c.Ports {
			c.Ports[i].Scheduler.Rate = 40e9
		}
		c.Ports[0].Options = vswitch.Options{roccpoint.Name: roccpoint.Config{Queues: 1 << 3, Params: rocc.For(40e9)}}
		cfg = *c
	})
	s.incast("rocc", nil, 1<<30, nil)
	s.run(8 * frame.Millisecond)
	rate := func() float64 {
		v, _ := s.nics[1].QP(s.nics[1].qps[0].qpn)
		return v.Rate
	}
	before := rate()
	if before < 3e9 || before > 5e9 {
		t.Fatalf("the flow has %.2f Gb/s of its share, 4", before/1e9)
	}
	cfg.Ports = append([]vswitch.PortConfig(nil), cfg.Ports...)
	cfg.Ports[0].Options = vswitch.Options{roccpoint.Name: roccpoint.Config{}}
	must(t, s.sw.Apply(&cfg))
	for _, n := range s.nics[2:] {
		must(t, n.CloseQP(s.now, n.qps[0].qpn))
	}
	const recovery = 400 * frame.Microsecond
	began := s.now
	for rate() < 40e9 {
		s.run(s.now + 10*frame.Microsecond)
		if s.now > began+frame.Second {
			t.Fatalf("it has %.2f Gb/s after a second", rate()/1e9)
		}
	}
	most := frame.Time(math.Ceil(math.Log2(40e9/before))+1) * recovery
	if took := s.now - began; took > most || took < 3*recovery-100*frame.Microsecond {
		t.Errorf("from %.2f to 40 Gb/s in %v, want at most %v", before/1e9, took.Duration(), most.Duration())
	}
}

// A notice counts only if it is whole and quotes a frame of an open queue pair
// that reacts.
func TestForgedNotices(t *testing.T) {
	p := newPair(t, nil)
	qa, qb := p.connect(func(c *QPConfig) { c.CC, c.SrcPort = factory(t, "rocc", nil), 50000 })
	none, other := p.connect(func(c *QPConfig) { c.SrcPort = 50001 })
	quote := func(src, dst string, sport, port uint16, remote uint32) []byte {
		return wt.Frame(wt.Eth(testMAC(2), testMAC(1)), wt.IPv4(src, dst), wt.UDP(sport, port), wt.BTH(wire.RCSendMiddle, remote, 9))[14 : 14+20+8+12]
	}
	good := quote("10.0.0.1", "10.0.0.2", 50000, 4791, qb)
	build := func(typ uint8, q []byte, break_ func(msg []byte)) []byte {
		n := rocc.Notice{Port: 1, Switch: 2, Fair: 100, Unit: 10_000_000, Sequence: 1}
		msg := make([]byte, rocc.NoticeLen+len(q))
		n.Encode(msg, typ, q)
		if break_ != nil {
			break_(msg)
		}
		b := wt.Frame(wt.Eth(testMAC(1), testMAC(9)), wt.IPv4("192.0.0.8", "10.0.0.1"), wt.ICMP(msg[0], msg[1], wire.ICMP(msg).Rest()), wt.Payload(msg[8:]))
		return b
	}
	for _, v := range []struct {
		name           string
		b              []byte
		taken, unknown uint64
	}{
		{"good", build(notice.Type4, good, nil), 1, 0},
		{"another type", build(8, good, nil), 0, 0},
		{"another use of the type", build(notice.Type4, good, func(m []byte) { m[4] = 0x70 }), 0, 0},
		{"not from us", build(notice.Type4, quote("10.0.0.3", "10.0.0.2", 50000, 4791, qb), nil), 0, 1},
		{"not to the peer", build(notice.Type4, quote("10.0.0.1", "10.0.0.3", 50000, 4791, qb), nil), 0, 1},
		{"not RoCEv2", build(notice.Type4, quote("10.0.0.1", "10.0.0.2", 50000, 53, qb), nil), 0, 1},
		{"no such flow", build(notice.Type4, quote("10.0.0.1", "10.0.0.2", 50002, 4791, qb), nil), 0, 1},
		{"one that does not react", build(notice.Type4, quote("10.0.0.1", "10.0.0.2", 50001, 4791, other), nil), 0, 1},
		{"cut", build(notice.Type4, good[:30], nil), 0, 1},
		{"options", build(notice.Type4, append([]byte{0x46}, good[1:]...), nil), 0, 1},
		{"damaged", func() []byte { b := build(notice.Type4, good, nil); b[len(b)-1] ^= 1; return b }(), 0, 1},
	} {
		before := *p.a.Counts()
		v1 := [1]frame.Ref{p.pool.New(v.b)}
		p.a.Receive(p.now, 0, v1[:])
		c := p.a.Counts()
		if c.Notices-before.Notices != v.taken || c.NoticesUnknown-before.NoticesUnknown != v.unknown {
			t.Errorf("%s: %d taken, %d unknown; want %d and %d", v.name, c.Notices-before.Notices, c.NoticesUnknown-before.NoticesUnknown, v.taken, v.unknown)
		}
	}
	if v, _ := p.a.QP(qa); v.Rate != 1e9 {
		t.Errorf("the rate is %v", v.Rate)
	}
	if v, _ := p.a.QP(none); v.Rate != 0 && v.Rate != 100e9 {
		t.Errorf("a queue pair without control has the rate %v", v.Rate)
	}
	must(t, p.a.CloseQP(p.now, qa))
	v1 := [1]frame.Ref{p.pool.New(build(notice.Type4, good, nil))}
	before := p.a.Counts().NoticesUnknown
	p.a.Receive(p.now, 0, v1[:])
	if p.a.Counts().NoticesUnknown != before+1 {
		t.Error("a closed queue pair reacts")
	}
	p.drained()
}

// watchedCC is a congestion control with another one around it.
type watchedCC struct{ cc.Algorithm }

func (w watchedCC) Unwrap() cc.Algorithm { return w.Algorithm }

// Queue pairs that share addresses and ports are one flow to a switch, of which
// it quotes one frame: all of them are notified.
func TestNoticesReachAllOfAFlow(t *testing.T) {
	p := newPair(t, nil)
	reacts := func(port uint16) func(c *QPConfig) {
		return func(c *QPConfig) { c.CC, c.SrcPort = factory(t, "rocc", nil), port }
	}
	a, ra := p.connect(reacts(50001))
	b, _ := p.connect(reacts(50001))
	c, _ := p.connect(reacts(50001 ^ 0x0101)) // of the same bucket
	quote := wt.Frame(wt.Eth(testMAC(2), testMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(50001, 4791), wt.BTH(wire.RCSendMiddle, ra, 9))[14 : 14+20+8+12]
	n := rocc.Notice{Port: 1, Switch: 2, Fair: 100, Unit: 10_000_000, Sequence: 1}
	msg := make([]byte, rocc.NoticeLen+len(quote))
	n.Encode(msg, notice.Type4, quote)
	v := [1]frame.Ref{p.pool.New(wt.Frame(wt.Eth(testMAC(1), testMAC(9)), wt.IPv4("192.0.0.8", "10.0.0.1"), wt.ICMP(msg[0], msg[1], wire.ICMP(msg).Rest()), wt.Payload(msg[8:])))}
	p.a.Receive(p.now, 0, v[:])
	for qp, want := range map[uint32]float64{a: 1e9, b: 1e9, c: 100e9} {
		if got, _ := p.a.QP(qp); got.Rate != want {
			t.Errorf("queue pair %#x has the rate %v, want %v", qp, got.Rate, want)
		}
	}
}

// Telemetry stands between UDP and the number of the queue pair, beyond what a
// notice quotes: the ports say whose frame it was.
func TestNoticesOfFramesWithTelemetry(t *testing.T) {
	// The algorithm of each is wrapped by a watcher: its signals still reach the switches.
	watch := func(env *cc.Env) cc.Algorithm { return watchedCC{factory(t, "rocc", nil)(env)} }
	for _, mode := range []inband.Mode{inband.HPCC, inband.INTMD} {
		p := newPair(t, nil)
		a, _ := p.connect(func(c *QPConfig) { c.CC, c.INT, c.SrcPort = factory(t, "rocc", nil), mode, 50001 })
		b, _ := p.connect(func(c *QPConfig) { c.CC, c.INT, c.SrcPort = watch, mode, 50002 })
		plain, _ := p.connect(func(c *QPConfig) { c.CC, c.SrcPort = factory(t, "rocc", nil), 50002 })
		var quote []byte
		p.seen = func(from int, m *frame.Meta, b []byte) {
			if from == 0 {
				quote = append(quote[:0], b[14:14+20+8+12]...)
			}
		}
		must(t, p.a.SendMessage(p.now, b, 100, 0))
		p.run(p.now + 100*frame.Microsecond)
		n := rocc.Notice{Port: 1, Switch: 2, Fair: 100, Unit: 10_000_000, Sequence: 1}
		msg := make([]byte, rocc.NoticeLen+len(quote))
		n.Encode(msg, notice.Type4, quote)
		v := [1]frame.Ref{p.pool.New(wt.Frame(wt.Eth(testMAC(1), testMAC(9)), wt.IPv4("192.0.0.8", "10.0.0.1"), wt.ICMP(msg[0], msg[1], wire.ICMP(msg).Rest()), wt.Payload(msg[8:])))}
		p.a.Receive(p.now, 0, v[:])
		for qp, want := range map[uint32]float64{a: 100e9, b: 1e9, plain: 100e9} {
			if got, _ := p.a.QP(qp); got.Rate != want {
				t.Errorf("%v: queue pair %#x has the rate %v, want %v", mode, qp, got.Rate, want)
			}
		}
	}
}

func FuzzNoticeFrame(f *testing.F) {
	q := wt.Frame(wt.Eth(testMAC(2), testMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(50000, 4791), wt.BTH(wire.RCSendMiddle, 1<<8, 9))
	n := rocc.Notice{Port: 1, Switch: 2, Fair: 100, Unit: 10_000_000, Sequence: 1}
	msg := make([]byte, 128)
	f.Add(append([]byte(nil), msg[:n.Encode(msg, notice.Type4, q[14:54])]...))
	f.Add([]byte{253, 0})
	reading := rocc.Reading{Port: 1, Switch: 2, Queue: 1000, Sequence: 1, Params: rocc.For(40e9)}
	f.Add(append([]byte(nil), msg[:reading.Encode(msg, notice.Type4, q[14:54])]...))
	feedback := qcn.Message{Feedback: 9}
	f.Add(append([]byte(nil), msg[:feedback.Encode(msg, notice.Type4, q[14:54])]...))
	f.Fuzz(func(t *testing.T, msg []byte) {
		if len(msg) < 8 || len(msg) > 150 {
			return
		}
		p := newPair(t, nil)
		p.connect(func(c *QPConfig) { c.CC, c.SrcPort = factory(t, "rocc", nil), 50000 })
		b := wt.Frame(wt.Eth(testMAC(1), testMAC(9)), wt.IPv4("192.0.0.8", "10.0.0.1"), wt.ICMP(msg[0], msg[1], wire.ICMP(msg).Rest()), wt.Payload(msg[8:]))
		v := [1]frame.Ref{p.pool.New(b)}
		p.a.Receive(p.now, 0, v[:])
		p.drained()
	})
}
