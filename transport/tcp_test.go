package transport

import (
	"testing"

	"gswitch/frame"
)

func tcp() *Config {
	return &Config{Recovery: TCP, RTOLow: 200 * us, RTOHigh: frame.Millisecond}
}

// The third packet above a gap begins fast retransmit; what is SACKed or lost
// leaves the pipe.
func TestTCPFastRetransmit(t *testing.T) {
	x := newScript(t, tcp(), 10)
	x.want("start", "0 1 2 3 4 5 6 7 8 9")
	x.nack(0, 1, "")
	x.nack(0, 2, "")
	if x.s.BytesInFlight() != 8000 {
		t.Errorf("%d bytes in the pipe after two SACKs, want 8000", x.s.BytesInFlight())
	}
	r := x.s.Ack(0, Ack{NAK: true, Cum: 0, Sack: 4})
	if !r.EnteredRecovery || x.s.BytesInFlight() != 6000 {
		t.Errorf("%+v, %d bytes in the pipe, want 6000", r, x.s.BytesInFlight())
	}
	if x.s.AddsToFlight(true) {
		t.Error("the first retransmission must not wait for the window")
	}
	x.want("third", "r0")
	if x.s.BytesInFlight() != 7000 || !x.s.AddsToFlight(true) {
		t.Errorf("%d bytes in the pipe, want 7000", x.s.BytesInFlight())
	}
	x.nack(0, 5, "")
	x.nack(0, 6, "r3") // three above 3
	x.ack(10, "")
	x.done(2)
}

// RFC 6298: SRTT + 4 RTTVAR of the first sample, the least, the doubling.
func TestTCPTimeout(t *testing.T) {
	x := newScript(t, tcp(), 12)
	x.total = 2
	x.want("start", "0 1")
	if x.s.Deadline() != frame.Millisecond {
		t.Errorf("the first timeout is %v", x.s.Deadline().Duration())
	}
	x.now = 100 * us
	x.ack(1, "") // SRTT 100, RTTVAR 50: 300
	if x.s.Deadline() != 400*us {
		t.Errorf("after a sample of 100us the deadline is %v, want 400us", x.s.Deadline().Duration())
	}
	x.timeout(400*us, true, "r1")
	x.timeout(1000*us, true, "r1") // 600
	x.timeout(2200*us, true, "r1") // 1200
	if x.s.Retries() != 3 {
		t.Errorf("%d timeouts in a row", x.s.Retries())
	}
	r := x.ack(2, "")
	if r.RTT != 0 {
		t.Error("a retransmitted packet gave a sample")
	}
	x.total = 3
	x.want("more", "2")
	if d := x.s.Deadline() - x.now; d != 300*us {
		t.Errorf("progress leaves a timeout of %v, want 300us", d.Duration())
	}
	x.now += 100 * us
	x.ack(3, "")
	for i := range 60 { // a constant round trip lets the variance fade to the least timeout
		x.total++
		x.fill()
		x.now += 100 * us
		x.ack(uint64(4+i), "")
	}
	x.total++
	x.fill()
	if d := x.s.Deadline() - x.now; d != 200*us {
		t.Errorf("the timeout is %v, want the least, 200us", d.Duration())
	}
}

// A timeout loses everything that is not SACKed.
func TestTCPTimeoutSendsAllHoles(t *testing.T) {
	x := newScript(t, tcp(), 6)
	x.want("start", "0 1 2 3 4 5")
	x.nack(0, 3, "")
	x.now = frame.Millisecond
	if !x.s.Timeout(x.now) || x.s.BytesInFlight() != 0 {
		t.Errorf("%d bytes in the pipe, want 0", x.s.BytesInFlight())
	}
	x.want("timeout", "r0 r1 r2 r4 r5")
	if x.s.BytesInFlight() != 5000 {
		t.Errorf("%d bytes in the pipe, want 5000", x.s.BytesInFlight())
	}
	x.ack(6, "")
	x.done(5)
}

// IRN with an estimated timeout, an ablation: no low one, and back-off.
func TestDynamicRTO(t *testing.T) {
	cfg := irn(8)
	cfg.DynamicRTO = true
	x := newScript(t, cfg, 2)
	x.want("start", "0 1")
	x.now = 24 * us
	x.ack(1, "")
	x.timeout(124*us, true, "r1") // 24 + 4 * 12 is below the least
	x.timeout(324*us, true, "r1")
	x.ack(2, "")
	x.done(2)
}

// Samples: from the packet that caused the answer, never of one sent twice,
// and not over a gap, whose far side arrived earlier.
func TestRoundTripSamples(t *testing.T) {
	x := newScript(t, irn(8), 20)
	for i := range 5 {
		x.now = frame.Time(i) * us
		x.s.Sent(x.now, uint64(i), 100+uint32(i), false)
	}
	x.now = 10 * us
	for _, c := range []struct {
		a    Ack
		rtt  frame.Time
		size uint32
		new  uint32
	}{
		{Ack{Cum: 1}, 10 * us, 100, 1},
		{Ack{Cum: 1}, 0, 0, 0},
		{Ack{NAK: true, Cum: 1, Sack: 2}, 8 * us, 102, 0},
		{Ack{NAK: true, Cum: 1, Sack: 2}, 0, 0, 0},
		{Ack{NAK: true, Cum: 1, Sack: 3}, 7 * us, 103, 0},
		{Ack{Cum: 4}, 0, 0, 3},
		{Ack{Cum: 5}, 6 * us, 104, 1},
	} {
		r := x.s.Ack(x.now, c.a)
		if r.RTT != c.rtt || r.RTTBytes != c.size || r.NewPackets != c.new {
			t.Errorf("%+v: %+v, want %v of %d bytes, %d new", c.a, r, c.rtt.Duration(), c.size, c.new)
		}
	}
}

func TestNoSampleOfWhatArrivedEarlier(t *testing.T) {
	cfg := irn(8)
	cfg.NackThreshold = 3
	x := newScript(t, cfg, 8)
	x.fill()
	x.now = 10 * us
	x.nack(0, 1, "") // 0 is only late
	x.now = 20 * us
	if r := x.ack(2, ""); r.RTT != 0 {
		t.Errorf("a packet that was SACKed before gave a sample of %v", r.RTT.Duration())
	}
	cfg = irn(8)
	cfg.Recovery = IRNNoSACK
	x = newScript(t, cfg, 8)
	x.fill()
	x.now = 10 * us
	x.nack(0, 0, "r0")
	x.now = 20 * us
	if r := x.ack(2, "r2"); r.RTT != 0 {
		t.Errorf("the far side of a repaired gap gave a sample of %v", r.RTT.Duration())
	}
}
