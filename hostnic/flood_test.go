package hostnic

import (
	"testing"

	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// A packet names a receive request that the packets before it cannot have used
// up: it takes none of those that others share.
func TestForgedReceiveNumbers(t *testing.T) {
	srq := &SharedReceive{}
	for id := range uint64(200) {
		srq.Post(RecvRequest{ID: id, Bytes: 100})
	}
	d := newDesk(t, transport.IRN, srq)
	var p []packet
	for range 100 {
		p = append(p, d.post(WorkRequest{Verb: Send, Bytes: 10})[0])
	}
	far, write := p[3], d.post(WorkRequest{Verb: WriteImmediate, RemoteVA: memBase})[0]
	far.sn = 4
	d.want(far, "drop")
	write.seq, write.sn = 2, 199
	d.want(write, "drop")
	first := p[0]
	first.sn = 1
	d.want(first, "NAK(0) 0x61")
	d.want(p[99], "") // further ahead than the cap
	if srq.Len() != 200 || d.rsp.wrong != 3 {
		t.Fatalf("%d of 200 are left, %d packets were wrong, want 3", srq.Len(), d.rsp.wrong)
	}
	d.want(p[3], "NACK(0,3)")
	if srq.Len() != 196 {
		t.Errorf("%d are left, want 196", srq.Len())
	}
	again := p[4] // a second end for the same request
	again.sn = 3
	d.want(again, "NACK(0,4)")
	for i := range 3 {
		d.give(p[i])
	}
	if d.rx.Expected() != 5 || d.rsp.wrong != 3 || srq.Len() != 195 {
		t.Errorf("%d packets in order, %d wrong, %d left", d.rx.Expected(), d.rsp.wrong, srq.Len())
	}
}

// A neighbour pauses the class of acknowledgements while data goes on arriving:
// they take no more than their part of the chunks, and what is lost of them
// does no lasting harm.
func TestPausedRepliesAreBounded(t *testing.T) {
	g := newRig(t, 256, 256)
	p := newPairOn(t, g, func(_ int, c *Config) { c.PFC, c.PFCClasses, c.AckClass = true, 1<<5, 5 })
	qa, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 1_000_000, 0))
	p.b.flow.Receive(0, 1<<5, [8]uint16{5: 0xffff})
	p.b.updatePaused(0)
	p.run(200 * frame.Microsecond)
	if c := p.b.Counts(); p.b.replies.fifo[5].Len() != 64 || c.Drops[frame.QueueTail] != 1000-64 || c.Delivered != 1000 {
		t.Fatalf("%d replies wait of 256 chunks, %d were dropped of %d", p.b.replies.fifo[5].Len(), c.Drops[frame.QueueTail], c.Delivered)
	}
	p.run(10 * frame.Millisecond)
	if v := take(p.a); len(v) != 1 || v[0].Status != StatusOK {
		t.Fatalf("the message is not acknowledged: %+v", v)
	}
	p.drained()
}

// A neighbour that pauses all classes leaves half of the chunks all the same, and each
// class has some of the other half.
func TestPausedRepliesOfAllClassesAreBounded(t *testing.T) {
	g := newRig(t, 1024, 256)
	p := newPairOn(t, g, func(_ int, c *Config) { c.PFC, c.PFCClasses = true, 0xff })
	p.b.flow.Receive(0, 0xff, [8]uint16{0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff})
	p.b.updatePaused(0)
	waiting := 0
	for class := range uint8(8) {
		for range 1000 {
			r := p.pool.New(make([]byte, wire.MinFrame))
			if r == frame.Nil {
				t.Fatalf("replies took all chunks: %d wait", waiting)
			}
			p.b.queueReply(0, r, class)
		}
		n := p.b.replies.fifo[class].Len()
		if waiting += n; n == 0 {
			t.Errorf("nothing of class %d waits", class)
		}
	}
	if waiting != p.b.replies.frames || waiting > 512 || waiting < 500 {
		t.Errorf("%d replies wait of 1024 chunks", waiting)
	}
	p.b.flush(&p.b.replies)
	p.drained()
}

// recorded is a frame that was seen.
type recorded struct {
	bytes []byte
	wire  uint32
}

// arrive hands the frame to host b.
func (f recorded) arrive(p *pair) {
	v := [1]frame.Ref{p.pool.New(f.bytes)}
	p.pool.Meta(v[0]).Wire = f.wire
	p.b.Receive(p.now, 0, v[:])
}

// Negative acknowledgements, acknowledgements and congestion notifications for
// one queue pair, thousands of them: no memory grows, nothing leaks, and
// another queue pair gets no less of the link.
func TestReplyFlood(t *testing.T) {
	var alone frame.Time
	for _, flood := range []bool{false, true} {
		p := newPair(t, func(_ int, c *Config) { c.CNP.Frames = true })
		storm := map[string]recorded{}
		var qb uint32
		p.seen = func(from int, m *frame.Meta, b []byte) {
			bth := wire.EthernetLen + wire.IPv4Len + wire.UDPLen
			if from != 0 || wire.BTH(b[bth:]).DestQP() != qb {
				return
			}
			switch {
			case b[bth] == wire.RoCECongestionNotify:
				storm["cnp"] = recorded{append([]byte(nil), b...), m.Wire}
			case b[bth+wire.BTHLen]&0x60 == wire.AETHNak:
				storm["nak"] = recorded{append([]byte(nil), b...), m.Wire}
			default:
				storm["ack"] = recorded{append([]byte(nil), b...), m.Wire}
			}
		}
		k := 0
		p.lose = func(m *frame.Meta, b []byte) bool {
			if m.Wire < 200 {
				return false
			}
			if k++; k == 20 { // congestion
				b[15] |= 3
				wire.IPv4(b[14:]).UpdateChecksum()
			}
			return k == 10
		}
		_, qb = p.connect(func(c *QPConfig) {
			c.CC = factory(t, "dcqcn", nil)
			c.Transport = transport.Config{Recovery: transport.IRN, Cap: 100, RTOHigh: 100 * frame.Microsecond, NakEvery: true}
		})
		_, other := p.connect(nil)
		must(t, p.b.SendMessage(0, qb, 50_000_000, 0))
		p.run(20 * frame.Microsecond)
		if len(storm) != 3 {
			t.Fatalf("%d kinds of replies were seen, want 3", len(storm))
		}
		p.seen, p.lose = nil, nil
		must(t, p.b.SendMessage(p.now, other, 1_000_000, 1))
		start := p.now
		var end frame.Time
		one := func() {
			if flood {
				for range 10 {
					for _, kind := range []string{"nak", "ack", "cnp"} {
						storm[kind].arrive(p)
					}
				}
			}
			p.run(p.now + 500)
			for _, c := range take(p.b) {
				if c.ID == 1 {
					end = c.End
				}
			}
		}
		for range 600 {
			one()
		}
		if end == 0 {
			t.Fatalf("flood %v: the other queue pair has not sent its message in %d ns", flood, p.now-start)
		}
		if !flood {
			alone = end - start
			continue
		}
		if took := end - start; took > alone*101/100 {
			t.Errorf("the other queue pair took %d ns under the flood, %d without", took, alone)
		}
		c := p.b.Counts()
		if c.CNPsReceived < 6000 || c.NaksReceived < 6000 {
			t.Errorf("%d notifications, %d negative acknowledgements arrived", c.CNPsReceived, c.NaksReceived)
		}
		if n := testing.AllocsPerRun(100, func() {
			for range 30 {
				storm["nak"].arrive(p)
				storm["ack"].arrive(p)
				storm["cnp"].arrive(p)
			}
		}); n > 0 {
			t.Errorf("%v allocations for 90 frames", n)
		}
		if free := p.pool.Available(); free < p.pool.Chunks()-400 {
			t.Errorf("%d of %d chunks are free", free, p.pool.Chunks())
		}
	}
}
