package agent

import (
	"testing"

	"gswitch/frame"
	"gswitch/hostnic"
)

// send sends a datagram of the connection manager from one end to the other. A
// Request carries the cookie that the other end requires.
func (p *pair) send(from int, m message) {
	p.t.Helper()
	if m.kind == request {
		m.bytes = p.a[1-from].cookie(p.now, p.a[from].cfg.NIC.Addr, m.id)
	}
	p.sendRaw(from, m)
}

// sendRaw sends a datagram as it is.
func (p *pair) sendRaw(from int, m message) {
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
	p.send(0, message{kind: request, service: Memory, id: 9, qpn: 0x123456, payload: uint32(p.a[1].cfg.NIC.Payload), size: 8 * checkAtOnce, cc: "none"})
	p.pass(4 * tick)
	s := p.a[1].find(p.a[0].cfg.NIC.Addr, 9)
	if s == nil {
		t.Fatal("no session was opened")
	}
	p.send(0, message{kind: closing, id: 9, size: 8 * checkAtOnce})
	p.run(frame.Second, func() bool { return s.checked > 0 })
	if s.checked == 0 || s.Closed {
		t.Fatalf("%d bytes are compared, closed is %v", s.checked, s.Closed)
	}
	p.send(0, message{kind: closing, id: 9, size: 1})
	p.run(frame.Second, func() bool { return s.Closed })
	if s.Bytes != 8*checkAtOnce || s.Corrupt != 0 {
		t.Errorf("%d bytes compared, %d pieces wrong", s.Bytes, s.Corrupt)
	}
	p.idle()
}

// Requests without end take no more than the sessions that there may be, and
// those that nothing follows give their places back soon. Sessions that have
// ended take no place.
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
		p.send(0, message{kind: request, id: id, qpn: 0x123456, payload: uint32(p.a[1].cfg.NIC.Payload), cc: "none"})
		p.pass(20 * tick)
	}
	// One peer takes no more than it leaves to others.
	if n, _ := p.a[1].Counts(); n > most || p.a[1].NIC().Counts().QPsOpen != most/2 {
		t.Errorf("%d sessions, %d queue pairs; %d are allowed", n, p.a[1].NIC().Counts().QPsOpen, most/2)
	}
	p.pass(sessionUnused + 2*sessionLook)
	tr := transfer(p, 100, 1)
	if p.finish(tr); tr.Err != nil {
		t.Errorf("after the flood: %v", tr.Err)
	}
	p.idle()
}

// Answers that were not asked for, and requests with any number in each field,
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
		m := message{kind: kind(1 + rng.Uint64()%6), service: Service(rng.Uint64() % 3), recovery: uint8(rng.Uint64() % 8), telemetry: uint8(rng.Uint64() % 6), class: uint8(rng.Uint64() % 8),
			reason: reason(rng.Uint64()), id: rng.Uint64(), qpn: uint32(rng.Uint64()) & 0xffffff, psn: uint32(rng.Uint64()) & 0xffffff, payload: uint32(p.a[0].cfg.NIC.Payload),
			cap: uint32(rng.Uint64()) >> (rng.Uint64() % 32), size: rng.Uint64() >> (rng.Uint64() % 64), cc: []string{"none", "hpcc", "dcqcn", "timely", "nonesuch"}[rng.Uint64()%5]}
		if i%4 == 0 && m.kind != reject && m.kind != closed && m.kind != challenge {
			m.id = tr.id // Accept again, Request and Close of the other end's number
		}
		p.send(1, m)
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

// A sender that uses the address of another host gets nothing sent there that is larger
// than what it sends, opens no session and no queue pair, and reads no memory:
// it sees neither cookies nor keys.
func TestNothingIsReflected(t *testing.T) {
	p := newPair(t, nil)
	p.serve(8 << 20)
	p.finish(transfer(p, 100, 1)) // so that they know each other
	p.pass(sessionAfter + 2*frame.Second)
	before := p.a[1].NIC().Counts()
	var in, out, largest int
	p.lose = func(from int, b []byte) bool {
		if from == 0 {
			in += len(b)
			return false
		}
		out, largest = out+len(b), max(largest, len(b))
		return true // the one who asks does not see the answer
	}
	rng := frame.NewRand(9)
	for id := range uint64(200) {
		m := message{kind: request, service: Service(id % 3), id: id, qpn: 0x400 + uint32(id), payload: uint32(p.a[1].cfg.NIC.Payload), size: 8 << 20, cc: "none"}
		if id%2 == 1 {
			m.bytes = rng.Uint64()
		}
		p.sendRaw(0, m)
		p.pass(20 * tick)
	}
	p.pass(10 * frame.Second)
	if n, _ := p.a[1].Counts(); n != 0 || p.a[1].NIC().Counts().QPsOpen != before.QPsOpen {
		t.Errorf("%d sessions and %d queue pairs of hosts that proved nothing", n, p.a[1].NIC().Counts().QPsOpen-before.QPsOpen)
	}
	if in == 0 || out > in || largest > 88+14+20+8 {
		t.Errorf("%d bytes came, %d bytes went to the one who did not ask, up to %d in a frame", in, out, largest)
	}
	p.lose = nil
	p.idle()
}

// A cookie is good for its address and number, and for a while.
func TestCookies(t *testing.T) {
	p := newPair(t, nil)
	a, from, other := p.a[0], p.a[1].cfg.NIC.Addr, p.a[0].cfg.NIC.Addr
	now := 10 * cookieLife
	m := message{id: 5, bytes: a.cookie(now, from, 5)}
	if !a.proved(now, from, &m) || !a.proved(now+cookieLife, from, &m) {
		t.Error("a cookie is refused")
	}
	if a.proved(now+2*cookieLife, from, &m) || a.proved(now-cookieLife, from, &m) || a.proved(now, other, &m) || p.a[1].proved(now, from, &m) {
		t.Error("a cookie is good for longer, for another address, or at another host")
	}
	m.id = 6
	if a.proved(now, from, &m) || a.proved(0, from, &message{}) {
		t.Error("a cookie is good for another number, or none is one")
	}
}

// A session's key for memory is good for its queue pair alone.
func TestKeysOfSessions(t *testing.T) {
	p := newPair(t, nil)
	p.serve(1 << 20)
	p.finish(transfer(p, 100, 1))
	var keys []uint32
	for id := range uint64(2) {
		p.send(0, message{kind: request, service: Memory, id: 50 + id, qpn: 0x500 + uint32(id), payload: uint32(p.a[1].cfg.NIC.Payload), size: 1 << 20, cc: "none"})
		p.pass(20 * tick)
		s := p.a[1].find(p.a[0].cfg.NIC.Addr, 50+id)
		if s == nil || s.answer.rkey != s.key || s.key == 0 {
			t.Fatalf("no session, or no key: %+v", s)
		}
		keys = append(keys, s.key)
	}
	if keys[0] == keys[1] {
		t.Error("two sessions have one key")
	}
	p.pass(sessionUnused + sessionAfter + 2*sessionLook)
	for _, k := range keys {
		if err := p.a[1].NIC().Memory().Deregister(k); err == nil {
			t.Error("a key outlives its session")
		}
	}
	p.idle()
}

// A peer that is asked for a queue pair, and so gets numbers, computes from them
// neither the seed of the one who asked nor what that sends to others.
func TestNumbersRevealNoSecrets(t *testing.T) {
	p := newPair(t, nil)
	p.serve(0)
	var seen []uint64
	p.lose = func(from int, b []byte) bool {
		var m message
		if from == 0 && b[12] == 8 && b[13] == 0 && b[23] == 17 && m.decode(b[42:min(len(b), 42+messageLen)]) == nil && m.kind == request {
			seen = append(seen, m.id)
		}
		return false
	}
	p.finish(transfer(p, 100, 1))
	victim, other, now := p.a[0], p.a[1].cfg.NIC.Addr, 10*cookieLife
	if len(seen) == 0 {
		t.Fatal("no request was seen")
	}
	for _, id := range seen {
		// The state of xorshift64* that gave such a number, and the seeds behind it
		// and the one before (frame.Rand).
		s := id * inverse(2685821657736338717)
		for range 2 {
			s = unshift(s, 27, false)
			s = unshift(s, 25, true)
			s = unshift(s, 12, false)
			z := unshift(s, 31, false) * inverse(0x94d049bb133111eb)
			z = unshift(z, 27, false) * inverse(0xbf58476d1ce4e5b9)
			seed := unshift(z, 30, false) - 0x9e3779b97f4a7c15
			forger := Agent{secret: hostnic.NewSecret("cookies of the connection manager", seed)}
			if seed == victim.cfg.NIC.Seed || forger.cookie(now, other, 7) == victim.cookie(now, other, 7) {
				t.Fatalf("the number %#x of a request reveals the seed %#x, and with it all cookies, keys and ports", id, seed)
			}
		}
	}
	p.lose = nil
	p.idle()
}

// inverse returns the number that takes a product with an odd x back.
func inverse(x uint64) uint64 {
	y := x
	for range 6 {
		y *= 2 - x*y
	}
	return y
}

// unshift takes back x ^= x << n, or >> n.
func unshift(x uint64, n int, left bool) uint64 {
	y := x
	for range 64 / n {
		if left {
			y = x ^ y<<n
		} else {
			y = x ^ y>>n
		}
	}
	return y
}

// Both ends know which port the other one's frames come from: those from another one
// are none of the queue pair, whatever their numbers.
func TestPortsAreExchanged(t *testing.T) {
	p := newPair(t, nil)
	p.serve(1 << 20)
	tr := transfer(p, 50_000, 20)
	if err := p.a[0].Start(p.now, tr); err != nil {
		t.Fatal(err)
	}
	p.run(frame.Second, func() bool { return len(tr.Samples) > 0 })
	// What comes from another port, of either end, is refused at the other one.
	for i, nic := range []*hostnic.NIC{p.a[0].NIC(), p.a[1].NIC()} {
		refused := nic.Counts().Drops[frame.QPPeer]
		p.lose = func(from int, b []byte) bool {
			if from == 1-i && b[23] == 17 && be.Uint16(b[36:]) == 4791 {
				be.PutUint16(b[34:], be.Uint16(b[34:])^1)
			}
			return false
		}
		p.pass(20 * frame.Millisecond)
		if got := nic.Counts().Drops[frame.QPPeer]; got == refused {
			t.Errorf("host %d takes frames from any port", i)
		}
	}
	p.lose = nil
	p.run(100*frame.Second, func() bool { return tr.State == Ended })
	if tr.Err != nil || tr.Received != (Received{Bytes: 1_000_000, Messages: 20}) {
		t.Errorf("%v: received %+v", tr.Err, tr.Received)
	}
	p.idle()
}
