package transport

import (
	"testing"

	"gswitch/frame"
)

func newReno() *Config {
	return &Config{Recovery: NewReno, RTOLow: 200 * us, RTOHigh: frame.Millisecond}
}

// RFC 6582 section 3.2: the third duplicate begins fast retransmit, a partial
// acknowledgement sends the next hole, each duplicate takes a packet out of the
// flight, and a full acknowledgement puts all back.
func TestNewRenoFastRecovery(t *testing.T) {
	x := newScript(t, newReno(), 10) // 0 and 3 are lost
	x.want("start", "0 1 2 3 4 5 6 7 8 9")
	x.nack(0, 0, "")
	x.nack(0, 0, "")
	if x.s.BytesInFlight() != 10000 {
		t.Errorf("%d bytes in flight after two duplicates, want 10000", x.s.BytesInFlight())
	}
	r := x.s.Ack(0, Ack{NAK: true})
	if !r.EnteredRecovery || x.s.BytesInFlight() != 7000 {
		t.Errorf("%+v, %d bytes in flight, want 7000", r, x.s.BytesInFlight())
	}
	if x.s.AddsToFlight(true) {
		t.Error("the first retransmission must not wait for the window")
	}
	x.want("third", "r0")
	for range 5 { // of 4, 5, 6, 7 and 8
		x.nack(0, 0, "")
	}
	if x.s.BytesInFlight() != 2000 {
		t.Errorf("%d bytes in flight after eight duplicates, want 2000", x.s.BytesInFlight())
	}
	x.nack(0, 0, "") // of 9
	if r := x.ack(3, "r3"); r.EnteredRecovery || !x.s.InRecovery() {
		t.Error("a partial acknowledgement is part of the recovery")
	}
	if x.s.BytesInFlight() != 0 { // 7 packets less an inflation of 9 - 3 + 1
		t.Errorf("%d bytes in flight after the partial acknowledgement, want 0", x.s.BytesInFlight())
	}
	x.ack(10, "")
	x.done(2)
}

// A retransmission that is lost again waits for the timer, which goes back.
func TestNewRenoGoesBack(t *testing.T) {
	x := newScript(t, newReno(), 6)
	x.want("start", "0 1 2 3 4 5")
	for i := range 5 {
		x.nack(0, 0, map[bool]string{true: "r0"}[i == 2])
	}
	x.timeout(frame.Millisecond, true, "r0 r1 r2 r3 r4 r5")
	if r := x.ack(6, ""); r.RTT != 0 {
		t.Error("a retransmitted packet gave a sample")
	}
	x.done(7)
}

// After a timeout duplicates report the copies and begin no recovery, and what
// the receiver kept is jumped over.
func TestNewRenoAfterTimeout(t *testing.T) {
	x := newScript(t, newReno(), 6)
	x.want("start", "0 1 2 3 4 5")
	x.now = frame.Millisecond
	if !x.s.Timeout(x.now) || x.s.BytesInFlight() != 0 {
		t.Fatalf("%d bytes in flight after a timeout", x.s.BytesInFlight())
	}
	x.s.Sent(x.now, 0, 1000, true)
	if r := x.s.Ack(x.now, Ack{Cum: 3}); r.NewPackets != 3 { // 1 and 2 had been kept
		t.Fatalf("%+v", r)
	}
	x.want("jump", "r3 r4 r5")
	for range 4 {
		if r := x.nack(3, 3, ""); r.EnteredRecovery {
			t.Error("duplicates after a timeout began a recovery")
		}
	}
	x.ack(6, "")
	x.done(4)
}

// Without fast retransmit packets out of order are shown by nothing but the step
// that follows.
func TestNoFastRetransmit(t *testing.T) {
	cfg := newReno()
	cfg.NoFastRetransmit = true
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	x := newScript(t, cfg, 50)
	x.fill()
	for range 40 {
		if r := x.nack(0, 0, ""); r != (AckResult{}) {
			t.Fatalf("a duplicate acknowledgement gave %+v", r)
		}
	}
	if x.s.BytesInFlight() != 50000 {
		t.Errorf("%d bytes in flight, want all 50000", x.s.BytesInFlight())
	}
	x.ack(50, "")
	x.done(0)
	for _, bad := range []Config{{Recovery: TCP, NoFastRetransmit: true, RTOHigh: 1}, {Recovery: NewReno, NoFastRetransmit: true}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
