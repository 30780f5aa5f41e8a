package hostnic

import (
	"testing"

	"gswitch/frame"
	"gswitch/notice"
	"gswitch/rocc"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// An attacker that does not see a flow's frames tries its source port, given those of
// others, and one number of its queue pair after the other: notices reach a
// sender only with both.
func TestNoticesOfWhoDoesNotSeeTheFlow(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.RandomNumbers, c.Seed = true, 77 })
	var ports []uint16
	var victim, remote uint32
	for range 20 {
		q, r := p.connect(func(c *QPConfig) { c.CC = factory(t, "rocc", nil) })
		ports = append(ports, p.a.qps[len(p.a.qps)-1].dataUDP().SrcPort())
		victim, remote = q, r
	}
	port := ports[len(ports)-1]
	forge := func(port uint16, qpn uint32) {
		quote := wt.Frame(wt.Eth(testMAC(2), testMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(port, 4791), wt.BTH(wire.RCSendMiddle, qpn, 9))[14 : 14+20+8+12]
		n := rocc.Notice{Port: 1, Switch: 2, Fair: 1, Unit: 1, Stretch: 15, Sequence: 1}
		msg := make([]byte, rocc.NoticeLen+len(quote))
		n.Encode(msg, notice.Type4, quote)
		v := [1]frame.Ref{p.pool.New(wt.Frame(wt.Eth(testMAC(1), testMAC(9)), wt.IPv4("192.0.0.8", "10.0.0.1"), wt.ICMP(msg[0], msg[1], wire.ICMP(msg).Rest()), wt.Payload(msg[8:])))}
		p.a.Receive(p.now, 0, v[:])
	}
	rate := func() float64 {
		v, err := p.a.QP(victim)
		must(t, err)
		return v.Rate
	}
	for guess := range uint32(1 << 10) {
		forge(port, remote^(guess+1))
	}
	// The port of a queue pair is not that of the one before, changed by the same
	// as others' were.
	for i := 1; i+1 < len(ports); i++ {
		forge(ports[len(ports)-2]+ports[i]-ports[i-1], remote)
	}
	if c := p.a.Counts(); rate() != 100e9 || c.Notices != 0 || c.NoticesUnknown != 1<<10+18 {
		t.Errorf("guessed notices leave %g bit/s; %d were taken, %d were not", rate(), c.Notices, c.NoticesUnknown)
	}
	// One that does see them slows it to a rate at which it goes on: a message that is under way
	// arrives, and none of its frames is sent again.
	must(t, p.a.SendMessage(0, victim, 3<<20, 1))
	p.run(20 * frame.Microsecond)
	if forge(port, remote); rate() != 100e9/10_000 || p.a.Completed() != 0 {
		t.Errorf("a forged notice leaves %g bit/s; %d messages have arrived before", rate(), p.a.Completed())
	}
	p.run(2 * frame.Second)
	if done := take(p.a); len(done) != 1 || done[0].Status != StatusOK || done[0].Bytes != 3<<20 || p.a.Counts().Retransmissions != 0 || rate() != 100e9 {
		t.Errorf("after a forged notice: %+v at %g bit/s, counts %+v", done, rate(), p.a.Counts())
	}
}
