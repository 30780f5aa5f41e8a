package hostnic

import (
	"testing"

	"gswitch/frame"
	"gswitch/notice"
	"gswitch/rocc"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// With NoticeDelay a notice changes the rate that much after its arrival, not
// before, also where the queue pair is closed meanwhile, and what waits is
// bounded.
func TestNoticesTakeEffectLater(t *testing.T) {
	const delay = 15 * frame.Microsecond
	p := newPair(t, func(_ int, c *Config) { c.NoticeDelay = delay })
	qa, qb := p.connect(func(c *QPConfig) { c.CC, c.SrcPort = factory(t, "rocc", nil), 50000 })
	quote := wt.Frame(wt.Eth(testMAC(2), testMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(50000, 4791), wt.BTH(wire.RCSendMiddle, qb, 9))[14 : 14+20+8+12]
	notify := func() {
		n := rocc.Notice{Port: 1, Switch: 2, Fair: 100, Unit: 10_000_000, Sequence: 1}
		msg := make([]byte, rocc.NoticeLen+len(quote))
		n.Encode(msg, notice.Type4, quote)
		v := [1]frame.Ref{p.pool.New(wt.Frame(wt.Eth(testMAC(1), testMAC(9)), wt.IPv4("192.0.0.8", "10.0.0.1"), wt.ICMP(msg[0], msg[1], wire.ICMP(msg).Rest()), wt.Payload(msg[8:])))}
		p.a.Receive(p.now, 0, v[:])
	}
	rate := func() float64 { v, _ := p.a.QP(qa); return v.Rate }
	p.run(1000)
	notify()
	if at := p.a.TimerWake(p.now); at != 1000+delay {
		t.Errorf("the NIC wakes at %d, want %d", at, 1000+delay)
	}
	p.run(1000 + delay - 1)
	if rate() != 100e9 || p.a.Counts().Notices != 0 {
		t.Errorf("too early: rate %v, %d notices", rate(), p.a.Counts().Notices)
	}
	p.run(1000 + delay)
	if rate() != 1e9 || p.a.Counts().Notices != 1 {
		t.Errorf("after the delay: rate %v, %d notices", rate(), p.a.Counts().Notices)
	}
	notify()
	must(t, p.a.CloseQP(p.now, qa))
	p.run(p.now + delay)
	if c := p.a.Counts(); c.NoticesUnknown != 1 {
		t.Errorf("of a closed queue pair: %d unknown", c.NoticesUnknown)
	}
	p.drained()
	for range p.a.maxReplies + 10 {
		notify()
	}
	if d := p.a.Counts().Drops[frame.QueueTail]; d != 10 {
		t.Errorf("%d were dropped of 10 too many", d)
	}
	p.run(p.now + delay)
	p.drained()
}
