package hostnic

import (
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/notice"
	"gswitch/qcn"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// introduce gives both ends the UDP port that the other one's frames come from, as
// connection managers do.
func (p *pair) introduce(qa, qb uint32) {
	p.a.SetRemotePort(qa, p.b.SourcePort(qb))
	p.b.SetRemotePort(qb, p.a.SourcePort(qa))
}

// newForgedPair is two hosts on real frames whose numbers are those of daemons.
func newForgedPair(t *testing.T) *pair {
	return newPairOn(t, newRig(t, 4096, 2048), func(_ int, c *Config) {
		c.RandomNumbers, c.MaxQPs, c.Virtual, c.CNP.Frames, c.Rate = true, 1024, false, true, 10e9
	})
}

// cnp is a congestion notification to host a in the name of host b, with a good ICRC.
func cnp(from string, port uint16, qpn uint32) []byte {
	b := wt.Frame(wt.Eth(testMAC(1), testMAC(2)), wt.IPv4(from, "10.0.0.1"), wt.UDP(port, wire.RoCEv2Port), wt.BTH(wire.RoCECongestionNotify, qpn, 0), wt.Zeros(cnpLen+wire.ICRCLen))
	wire.PutICRC(b, wire.EthernetLen, bthAt)
	return b
}

func (p *pair) toA(b []byte) {
	r := p.pool.New(b)
	if p.a.cfg.Virtual { // the ICRC is not in memory
		p.pool.Meta(r).Wire += wire.ICRCLen
	}
	p.a.Receive(p.now, 0, []frame.Ref{r})
}

func (p *pair) viewA(qa uint32) QPView {
	p.t.Helper()
	v, err := p.a.QP(qa)
	must(p.t, err)
	return v
}

// An attacker that does not see a flow's frames, but has queue pairs of its own with both ends, tries
// numbers and ports after these. No congestion notification of it counts; each is a
// drop. One that does see the flow slows it to the least rate, at which it goes on, and from
// which it recovers when the notifications end.
func TestForgedCNPs(t *testing.T) {
	p := newForgedPair(t)
	var ports []uint16
	var numbers []uint32
	for range 20 {
		_, own := p.connect(nil)
		ports = append(ports, p.b.SourcePort(own))
	}
	for range 20 {
		own, _ := p.connect(nil)
		numbers = append(numbers, own)
		must(t, p.a.CloseQP(p.now, own)) // the victim has the same place in the table
	}
	qa, qb := p.connect(func(c *QPConfig) { c.CC = factory(t, "dcqcn", nil) })
	p.introduce(qa, qb)
	right, last := p.b.SourcePort(qb), numbers[len(numbers)-1]
	if place := uint32(1)<<p.a.numbers.bits - 1; last&place != qa&place {
		t.Fatalf("%#x is not where %#x was", qa, last)
	}
	must(t, p.a.SendMessage(0, qa, 1<<30, 1))
	p.run(100 * frame.Microsecond)
	before := p.a.Counts().Drops
	tried := 0
	for i := range uint32(1 << 10) {
		p.toA(cnp("10.0.0.2", right, (last+i<<p.a.numbers.bits)&0xffffff))
		tried++
	}
	for i := 1; i < len(ports); i++ {
		p.toA(cnp("10.0.0.2", ports[len(ports)-1]+ports[i]-ports[i-1], qa))
		tried++
	}
	p.toA(cnp("10.0.0.3", right, qa))
	dropped := uint64(0)
	for why, n := range p.a.Counts().Drops {
		dropped += n - before[why]
	}
	if v := p.viewA(qa); v.Rate != 10e9 || v.Stats.CNPs != 0 || p.a.Counts().CNPsReceived != 0 || dropped != uint64(tried+1) {
		t.Errorf("guesses leave %g bit/s, %d were taken, %d of %d dropped", v.Rate, v.Stats.CNPs, dropped, tried+1)
	}
	least := 10e9
	start := p.viewA(qa).Acked
	for range 5000 { // two milliseconds and a half
		p.toA(cnp("10.0.0.2", right, qa))
		p.run(p.now + 500)
		least = min(least, p.viewA(qa).Rate)
	}
	v := p.viewA(qa)
	if least != 100e6 || v.Stats.CNPs != 5000 {
		t.Errorf("%d notifications leave %g bit/s, the least rate is 100 Mb/s", v.Stats.CNPs, least)
	}
	if v.Acked < start+100e6/8/1000*2 {
		t.Errorf("the flow stands: %d bytes under the flood", v.Acked-start)
	}
	p.run(p.now + 20*frame.Millisecond)
	if v := p.viewA(qa); v.Rate < 5e9 {
		t.Errorf("%g bit/s 20 ms after the flood", v.Rate)
	}
}

// The same with messages of congestion points, by quantized feedback.
func TestForgedFeedback(t *testing.T) {
	p := newForgedPair(t)
	var ports []uint16
	for range 20 {
		own, _ := p.connect(nil)
		ports = append(ports, p.a.SourcePort(own))
	}
	qa, qb := p.connect(func(c *QPConfig) { c.CC = factory(t, "qcn", nil) })
	forge := func(port uint16, qpn uint32) {
		quote := wt.Frame(wt.Eth(testMAC(2), testMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(port, 4791), wt.BTH(wire.RCSendMiddle, qpn, 9))[14:54]
		m := qcn.Message{Feedback: 63, Point: 7}
		msg := make([]byte, 128)
		msg = msg[:m.Encode(msg, notice.Type4, quote)]
		p.toA(wt.Frame(wt.Eth(testMAC(1), testMAC(9)), wt.IPv4("192.0.0.8", "10.0.0.1"), wt.ICMP(msg[0], msg[1], wire.ICMP(msg).Rest()), wt.Payload(msg[8:])))
	}
	right := p.a.SourcePort(qa)
	must(t, p.a.SendMessage(0, qa, 1<<30, 1))
	p.run(100 * frame.Microsecond)
	tried := uint64(0)
	for i := range uint32(1 << 10) {
		forge(right, (qb+(i+1)<<p.a.numbers.bits)&0xffffff)
		tried++
	}
	for i := 1; i < len(ports); i++ {
		forge(ports[len(ports)-1]+ports[i]-ports[i-1], qb)
		tried++
	}
	if c := p.a.Counts(); p.viewA(qa).Rate != 10e9 || c.Notices != 0 || c.NoticesUnknown != tried {
		t.Errorf("guesses leave %g bit/s; %d were taken, %d of %d were not", p.viewA(qa).Rate, c.Notices, c.NoticesUnknown, tried)
	}
	start := p.viewA(qa).Acked
	for range 1000 {
		forge(right, qb)
		p.run(p.now + 5*frame.Microsecond)
	}
	if v := p.viewA(qa); v.Rate != 10e6 || v.Acked < start+10e6/8/1000*4 {
		t.Errorf("1000 messages leave %g bit/s, and %d bytes in 5 ms", v.Rate, v.Acked-start)
	}
	p.run(p.now + 200*frame.Millisecond)
	if v := p.viewA(qa); v.Rate < 50e6 {
		t.Errorf("%g bit/s 0.2 s after the flood", v.Rate)
	}
}

// An acknowledgement whose telemetry reports a full path throttles no queue pair unless it has
// its port and number, and else down to the least window.
func TestForgedEchoes(t *testing.T) {
	for _, mode := range []inband.Mode{inband.HPCC, inband.HPCCGrow} {
		s := newStar(t, 2, func(_ int, c *Config) { c.RandomNumbers, c.MaxQPs = true, 1024 }, nil)
		p := &pair{rig: s.rig, a: s.nics[0], b: s.nics[1]}
		qa, qb := p.connect(func(c *QPConfig) { c.CC, c.INT = factory(t, "hpcc", nil), mode })
		p.introduce(qa, qb)
		must(t, p.a.SendMessage(0, qa, 1<<30, 1))
		p.run(100 * frame.Microsecond)
		var real []byte
		p.seen = func(from int, _ *frame.Meta, b []byte) {
			if from == 2 && b[bthAt] == wire.RCAcknowledge { // as host b sends it
				real = append(real[:0], b...)
			}
		}
		p.run(110 * frame.Microsecond)
		// One that follows the last acknowledgement, and says that five megabytes wait.
		ack := func(port uint16, qpn uint32, later uint64) []byte {
			b := append([]byte(nil), real...)
			wire.UDP(b[wire.EthernetLen+wire.IPv4Len:]).SetSrcPort(port)
			be.PutUint32(b[bthAt+4:], qpn)
			hop := b[bthAt+wire.BTHLen+wire.AETHLen+wire.HPCCBase:]
			be.PutUint64(hop, (be.Uint64(hop)+later<<36)|0xffff)
			return b
		}
		right := p.b.SourcePort(qb)
		before, acks := p.viewA(qa), p.a.Counts().AcksReceived
		for i := range 1000 {
			p.toA(ack(right^uint16(i+1), qa, 300))
			p.toA(ack(right, (qa+uint32(i+1)<<p.a.numbers.bits)&0xffffff, 300))
		}
		if v := p.viewA(qa); v.Window != before.Window || v.Rate != before.Rate || p.a.Counts().AcksReceived != acks || p.a.Counts().Drops[frame.QPPeer] != 1000 {
			t.Errorf("%v: a window of %.0f of %.0f bytes; %d of 2000 were taken; drops %v", mode, v.Window, before.Window, p.a.Counts().AcksReceived-acks, p.a.Counts().Drops)
		}
		least := before.Window
		for range 1000 {
			for i := range uint64(4) { // of two that follow each other the shorter queue counts
				p.toA(ack(right, qa, 100*(i+1)))
			}
			p.run(p.now + frame.Microsecond)
			least = min(least, p.viewA(qa).Window)
		}
		v := p.viewA(qa)
		t.Logf("%v: windows of %.0f, %.0f and %.0f bytes, %d bytes sent", mode, before.Window, least, v.Window, v.Acked-before.Acked)
		if least >= before.Window/2 || v.Acked < before.Acked+10_000 {
			t.Errorf("%v: the least window is %.0f of %.0f bytes, %d bytes were sent in a millisecond of forged telemetry", mode, least, before.Window, v.Acked-before.Acked)
		}
		p.run(p.now + 2*frame.Millisecond)
		if v := p.viewA(qa); v.Window < before.Window/2 {
			t.Errorf("%v: a window of %.0f of %.0f bytes afterwards", mode, v.Window, before.Window)
		}
	}
}

// Numbers of queue pairs, and which port their frames come from, reveal nothing of the
// next ones. All numbers of a place come once before one comes again, so that late
// frames find no queue pair.
func TestNumbersAreNotGuessed(t *testing.T) {
	var first [2][]uint32
	var from [2]map[uint32]uint16 // the ports of numbers
	for i := range first {
		from[i] = map[uint32]uint16{}
		p := newPair(t, func(_ int, c *Config) { c.RandomNumbers, c.MaxQPs, c.Seed = true, 1<<16, uint64(i) })
		seen, next, ports := map[uint32]bool{}, 0, map[uint16]bool{}
		before := uint32(0)
		for range 1<<8 - 2 { // generations of 8 bits, without the first and the last
			q, err := p.a.OpenQP(0, &QPConfig{RemoteAddr: p.b.cfg.Addr, RemoteMAC: p.b.cfg.MAC})
			must(t, err)
			if q == before+1<<16 {
				next++
			}
			if g := q >> 16; seen[q] || g == 0 || g == 0xff || q&0xffff != 0 {
				t.Fatalf("number %#x", q)
			}
			seen[q], before, ports[p.a.SourcePort(q)] = true, q, true
			from[i][q] = p.a.SourcePort(q)
			first[i] = append(first[i], q)
			must(t, p.a.CloseQP(0, q))
		}
		if next > 8 {
			t.Errorf("%d of 254 numbers are those that follow", next)
		}
		if len(ports) < 240 {
			t.Errorf("254 queue pairs have %d ports", len(ports))
		}
	}
	same := 0
	for i := range first[0] {
		if first[0][i] == first[1][i] {
			same++
		}
	}
	if same > 8 {
		t.Errorf("%d of 254 numbers are those of another start", same)
	}
	same = 0
	for q, port := range from[0] {
		if from[1][q] == port {
			same++
		}
	}
	if same > 8 {
		t.Errorf("%d of 254 numbers have the port that they have at another start", same)
	}
}
