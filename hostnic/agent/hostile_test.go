package agent

import (
	"testing"

	"gswitch/frame"
)

// tell sends a datagram of the connection manager from one end to the other.
func (p *pair) tell(from int, m message) {
	p.t.Helper()
	var b [messageLen]byte
	m.encode(&b)
	if err := p.a[from].NIC().SendDatagram(p.now, p.a[1-from].cfg.NIC.Addr, Port, b[:]); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) pass(d frame.Time) { p.run(d, func() bool { return false }) }

// A Close that comes again with another length, while what was written is
// being compared, changes nothing.
func TestCloseTwice(t *testing.T) {
	p := newPair(t, nil)
	p.serve(8 * checkAtOnce)
	p.finish(transfer(p, 100, 1)) // so that they know each other
	p.tell(0, message{kind: request, service: Memory, id: 9, qpn: 0x123456, payload: uint32(p.a[1].cfg.NIC.Payload), size: 8 * checkAtOnce, cc: "none"})
	p.pass(4 * tick)
	s := p.a[1].find(p.a[0].cfg.NIC.Addr, 9)
	if s == nil {
		t.Fatal("no session was opened")
	}
	p.tell(0, message{kind: closing, id: 9, size: 8 * checkAtOnce})
	p.run(frame.Second, func() bool { return s.checked > 0 })
	if s.checked == 0 || s.Closed {
		t.Fatalf("%d bytes are compared, closed is %v", s.checked, s.Closed)
	}
	p.tell(0, message{kind: closing, id: 9, size: 1})
	p.run(frame.Second, func() bool { return s.Closed })
	if s.Bytes != 8*checkAtOnce || s.Corrupt != 0 {
		t.Errorf("%d bytes compared, %d pieces wrong", s.Bytes, s.Corrupt)
	}
	p.idle()
}

// Requests without end take no more than the sessions that there may be, and
// those that nothing follows give their places back soon. Sessions that have
// ended are in nobody's way.
func TestFloodOfRequests(t *testing.T) {
	const most = 8
	p := newPair(t, func(_ int, c *Config) { c.Sessions = most })
	p.serve(0)
	for range 3 * most {
		tr := transfer(p, 100, 1)
		if p.finish(tr); tr.Err != nil {
			t.Fatalf("one after another: %v", tr.Err)
		}
	}
	for id := range uint64(10 * most) {
		p.tell(0, message{kind: request, id: id, qpn: 0x123456, payload: uint32(p.a[1].cfg.NIC.Payload), cc: "none"})
		p.pass(20 * tick)
	}
	if n, _ := p.a[1].Counts(); n != most || p.a[1].NIC().Counts().QPsOpen != most {
		t.Errorf("%d sessions, %d queue pairs; %d are allowed", n, p.a[1].NIC().Counts().QPsOpen, most)
	}
	p.pass(sessionUnused + 2*sessionLook)
	tr := transfer(p, 100, 1)
	if p.finish(tr); tr.Err != nil {
		t.Errorf("after the flood: %v", tr.Err)
	}
	p.idle()
}

// Answers that nobody asked for, and requests with any number in each field,
// neither end a transfer nor change it.
func TestForgedAnswers(t *testing.T) {
	p := newPair(t, nil)
	p.serve(1 << 20)
	if err := p.a[0].Serve(&Region{Data: make([]byte, 1<<20)}); err != nil {
		t.Fatal(err)
	}
	tr := transfer(p, 50_000, 20)
	if err := p.a[0].Start(p.now, tr); err != nil {
		t.Fatal(err)
	}
	p.run(frame.Second, func() bool { return len(tr.Samples) > 0 })
	rng := frame.NewRand(3)
	for i := range 500 {
		m := message{kind: kind(1 + rng.Uint64()%5), service: Service(rng.Uint64() % 3), recovery: uint8(rng.Uint64() % 8), telemetry: uint8(rng.Uint64() % 6), class: uint8(rng.Uint64() % 8),
			reason: reason(rng.Uint64()), id: rng.Uint64(), qpn: uint32(rng.Uint64()) & 0xffffff, psn: uint32(rng.Uint64()) & 0xffffff, payload: uint32(p.a[0].cfg.NIC.Payload),
			cap: uint32(rng.Uint64()) >> (rng.Uint64() % 32), size: rng.Uint64() >> (rng.Uint64() % 64), cc: []string{"none", "hpcc", "dcqcn", "timely", "nonesuch"}[rng.Uint64()%5]}
		if i%4 == 0 && m.kind != reject && m.kind != closed {
			m.id = tr.id // Accept again, Request and Close of the other end's number
		}
		p.tell(1, m)
		p.pass(tick)
	}
	p.run(100*frame.Second, func() bool { return tr.State == Ended })
	if tr.Err != nil || tr.Received != (Received{Bytes: 1_000_000, Messages: 20}) {
		t.Errorf("%v: received %+v", tr.Err, tr.Received)
	}
	if n, _ := p.a[0].Counts(); n == 0 || n > p.a[0].cfg.Sessions {
		t.Errorf("%d sessions", n)
	}
	p.pass(sessionUnused + sessionAfter)
	p.idle()
}
