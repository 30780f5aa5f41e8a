package hostnic

import (
	"gswitch/notice"
	"testing"

	"gswitch/frame"
	"gswitch/qcn"
	"gswitch/qcn/point"
	"gswitch/rocc"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// Each kind of message is for those that listen to it: readings for RoCC,
// quantized feedback for QCN.
func TestNoticesOfEachKind(t *testing.T) {
	p := newPair(t, nil)
	const fairPort, quantizedPort = 50000, 50001
	fair, fairPeer := p.connect(func(c *QPConfig) { c.CC, c.SrcPort = factory(t, "rocc", nil), fairPort })
	quantized, quantizedPeer := p.connect(func(c *QPConfig) { c.CC, c.SrcPort = factory(t, "qcn", nil), quantizedPort })
	params := rocc.For(100e9)
	reading := rocc.Reading{Port: 1, Switch: 2, Queue: 700_000, Before: 10_000, Sequence: 1, Params: params}
	feedback := qcn.Message{Feedback: 63, Point: 7}
	want := rocc.NewController(&params)
	want.Update(10_000)
	want.Update(700_000)
	encode := func(port uint16, remote uint32, of func(msg, quote []byte) int) []byte {
		q := wt.Frame(wt.Eth(testMAC(2), testMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(port, 4791), wt.BTH(wire.RCSendMiddle, remote, 9))[14:54]
		msg := make([]byte, 128)
		msg = msg[:of(msg, q)]
		return wt.Frame(wt.Eth(testMAC(1), testMAC(9)), wt.IPv4("192.0.0.8", "10.0.0.1"), wt.ICMP(msg[0], msg[1], wire.ICMP(msg).Rest()), wt.Payload(msg[8:]))
	}
	asReading := func(msg, q []byte) int { return reading.Encode(msg, notice.Type4, q) }
	asFeedback := func(msg, q []byte) int { return feedback.Encode(msg, notice.Type4, q) }
	for _, v := range []struct {
		name           string
		b              []byte
		taken, unknown uint64
	}{
		{"a reading for RoCC", encode(fairPort, fairPeer, asReading), 1, 0},
		{"a reading for QCN", encode(quantizedPort, quantizedPeer, asReading), 0, 1},
		{"feedback for QCN", encode(quantizedPort, quantizedPeer, asFeedback), 1, 0},
		{"feedback for RoCC", encode(fairPort, fairPeer, asFeedback), 0, 1},
	} {
		before := *p.a.Counts()
		v1 := [1]frame.Ref{p.pool.New(v.b)}
		p.a.Receive(p.now, 0, v1[:])
		c := p.a.Counts()
		if c.Notices-before.Notices != v.taken || c.NoticesUnknown-before.NoticesUnknown != v.unknown {
			t.Errorf("%s: %d taken, %d unknown; want %d and %d", v.name, c.Notices-before.Notices, c.NoticesUnknown-before.NoticesUnknown, v.taken, v.unknown)
		}
	}
	if v, _ := p.a.QP(fair); v.Rate != float64(want.Rate()) {
		t.Errorf("the rate by the reading is %v", v.Rate)
	}
	if v, _ := p.a.QP(quantized); v.Rate != 100e9*(1-63.0/128) {
		t.Errorf("the rate by feedback is %v", v.Rate)
	}
	p.drained()
}

// Senders that react to quantized feedback keep the queue about its set point and
// the link busy (IEEE 802.1Qau, clause 30).
func TestQuantizedFeedbackSettles(t *testing.T) {
	s := newStar(t, 5, func(i int, c *Config) { c.Rate = 10e9 }, func(c *vswitch.Config) {
		for i := range c.Ports {
			c.Ports[i].Scheduler.Rate = 10e9
		}
		c.Ports[0].Options = vswitch.Options{point.Name: point.Config{Queues: 1 << 3, Params: qcn.Default()}}
	})
	s.incast("qcn", nil, 1<<30, nil)
	s.run(20 * frame.Millisecond)
	var sum, n, sent float64
	for i := 1; i < len(s.nics); i++ {
		sent -= float64(s.nics[i].Counts().TxBytes)
	}
	const span = 10 * frame.Millisecond
	for end := s.now + span; s.now < end; n++ {
		s.run(s.now + 10*frame.Microsecond)
		_, q := s.sw.Nodes[0].Scheduler(0).QueueLen(3)
		sum += float64(q)
	}
	for i := 1; i < len(s.nics); i++ {
		c := s.nics[i].Counts()
		sent += float64(c.TxBytes)
		if c.Notices == 0 || c.NoticesUnknown != 0 {
			t.Errorf("number %d took %d messages, %d were unknown", i, c.Notices, c.NoticesUnknown)
		}
	}
	if mean := sum / n; mean < 13_000 || mean > 52_000 {
		t.Errorf("the queue is %.0f bytes in the mean, the set point is 26000", mean)
	}
	if rate := sent * 8 / span.Seconds(); rate < 9.5e9 {
		t.Errorf("all together send %.2f Gb/s", rate/1e9)
	}
}
