package agent

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/options"
	"gswitch/transport"
	"gswitch/wire"
)

// tick is how often the engine of these tests steps its nodes: it is as late
// as a worker may be.
const tick = 5 * frame.Microsecond

// pair is two agents on one link.
type pair struct {
	t    testing.TB
	now  frame.Time
	pool *frame.Pool
	a    [2]*Agent
	fly  [2][]frame.Ref
	// lose, if set, decides which frames vanish; it may change them.
	lose func(from int, b []byte) bool
}

func newPair(t testing.TB, change func(i int, c *Config)) *pair {
	p := &pair{t: t, pool: frame.NewPool(frame.MustArena(2048, 2048, 32))}
	for i := range p.a {
		c := Config{
			NIC: hostnic.Config{
				Name: "h", MAC: wire.MAC{2, 0, 0, 0, 0, byte(i + 1)}, Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}),
				Rate: 1e9, Burst: 50 * frame.Microsecond, BaseRTT: 100 * frame.Microsecond, AckClass: -1, AckPauseClass: -1, Seed: uint64(i + 1),
				RandomNumbers: true,
				Stack:         &hostnic.StackConfig{Bits: 24, Port: Port},
			},
			Transport: transport.Config{RTOHigh: 5 * frame.Millisecond},
		}
		if change != nil {
			change(i, &c)
		}
		var err error
		if p.a[i], err = New(&c, p.pool); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// run steps both until done says so, or for the given time.
func (p *pair) run(most frame.Time, done func() bool) {
	var out [64]frame.Ref
	for end := p.now + most; p.now < end && !done(); p.next(end) {
		for i, a := range p.a {
			if v := p.fly[i]; len(v) > 0 {
				p.fly[i] = nil
				a.Receive(p.now, 0, v)
			}
			a.Advance(p.now)
			for _, r := range out[:a.Transmit(p.now, 0, out[:])] {
				if p.lose != nil && p.lose(i, p.pool.Bytes(r)) {
					p.pool.Free(r)
					continue
				}
				p.fly[1-i] = append(p.fly[1-i], r)
			}
		}
	}
}

// next goes on by a tick, or to where there is something to do.
func (p *pair) next(end frame.Time) {
	p.now += tick
	if len(p.fly[0])+len(p.fly[1]) == 0 {
		p.now = min(end, max(p.now, min(p.a[0].Wake(p.now), p.a[1].Wake(p.now))))
	}
}

// transfer is messages with the pattern, without congestion control.
func transfer(p *pair, size, count int) *Transfer {
	none, err := cc.Factory("none", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	t := &Transfer{To: p.a[1].cfg.NIC.Addr, Size: uint64(size), Count: count, Depth: 2, Data: make([]byte, size), CC: "none", New: none}
	Fill(t.Data)
	return t
}

// finish starts a transfer and waits for its end, and for that of the session.
func (p *pair) finish(t *Transfer) {
	p.t.Helper()
	if err := p.a[0].Start(p.now, t); err != nil {
		p.t.Fatal(err)
	}
	p.run(100*frame.Second, func() bool { return t.State == Ended })
	if t.State != Ended {
		p.t.Fatalf("it is %v after %v", t.State, p.now.Duration())
	}
}

// idle sees that nothing is left: no chunk, no queue pair, no session.
func (p *pair) idle() {
	p.t.Helper()
	p.run(sessionAfter+2*frame.Second, func() bool { return false })
	if n := p.pool.Available(); n != 2048 {
		p.t.Errorf("%d chunks are lost", 2048-n)
	}
	for i, a := range p.a {
		if s, t := a.Counts(); s != 0 || t != 0 || a.NIC().Counts().QPsOpen != 0 {
			p.t.Errorf("host %d: %d sessions, %d transfers, %d queue pairs are left", i, s, t, a.NIC().Counts().QPsOpen)
		}
	}
}

func (p *pair) serve(size int) {
	r := &Region{Data: make([]byte, size)}
	Fill(r.Data)
	if err := p.a[1].Serve(r); err != nil {
		p.t.Fatal(err)
	}
}

func TestMessages(t *testing.T) {
	p := newPair(t, nil)
	p.serve(0)
	tr := transfer(p, 100_001, 10)
	p.finish(tr)
	if tr.Err != nil || len(tr.Samples) != 10 || tr.Received != (Received{Bytes: 1_000_010, Messages: 10}) {
		t.Errorf("%v: %d samples, received %+v", tr.Err, len(tr.Samples), tr.Received)
	}
	if tr.Watch.MinRTT <= 0 || tr.Watch.RTT.Total() == 0 {
		t.Errorf("no round trip was seen: %+v", tr.Watch.MinRTT)
	}
	p.idle()
}

// A tenth of all frames is lost, those of the connection manager too, and
// everything ends as it should.
func TestLosses(t *testing.T) {
	for _, mode := range []*transport.Kind{transport.GoBackN, transport.IRN, transport.TCP, transport.NewReno} {
		p := newPair(t, func(_ int, c *Config) { c.Transport.RTOLow, c.Transport.N = frame.Millisecond, 3 })
		p.serve(0)
		rng := frame.NewRand(7)
		p.lose = func(int, []byte) bool { return rng.Uint64()%10 == 0 }
		tr := transfer(p, 50_000, 5)
		tr.Recovery, tr.Cap = mode, 100
		p.finish(tr)
		if tr.Err != nil || tr.Received != (Received{Bytes: 250_000, Messages: 5}) || tr.Rtx == 0 {
			t.Errorf("%v: %v: received %+v, %d frames sent again", mode, tr.Err, tr.Received, tr.Rtx)
		}
		p.idle()
	}
}

// Without fast retransmit only the timeout repairs, of NewReno; other modes go
// on as they are.
func TestNoFastRetransmit(t *testing.T) {
	for _, c := range []struct {
		mode  *transport.Kind
		off   bool
		waits bool
	}{{transport.NewReno, false, false}, {transport.NewReno, true, true}, {transport.TCP, true, false}, {transport.GoBackN, true, false}} {
		p := newPair(t, func(_ int, conf *Config) {
			conf.Transport.RTOLow, conf.Transport.RTOHigh, conf.Transport.N = 50*frame.Millisecond, 50*frame.Millisecond, 3
			if c.off {
				conf.Transport.Recovery, conf.Transport.NoFastRetransmit = transport.NewReno, true
			}
		})
		p.serve(0)
		frames := 0
		p.lose = func(_ int, b []byte) bool { // one data frame
			if len(b) > 1000 {
				frames++
			}
			return len(b) > 1000 && frames == 20
		}
		tr := transfer(p, 200_000, 1)
		tr.Recovery, tr.Cap = c.mode, 100
		p.finish(tr)
		if tr.Err != nil || tr.Received.Bytes != 200_000 || tr.Rtx == 0 || len(tr.Samples) != 1 {
			t.Errorf("%v: %v: received %+v, %d frames sent again", c.mode, tr.Err, tr.Received, tr.Rtx)
			continue
		}
		if waited := tr.Samples[0].End-tr.Samples[0].Start > 50*frame.Millisecond; waited != c.waits {
			t.Errorf("%v, fast retransmit off %v: complete after %v", c.mode, c.off, tr.Samples[0].End-tr.Samples[0].Start)
		}
		p.idle()
	}
}

// Write and Read go to memory and from it; what is not as it should be shows.
func TestMemory(t *testing.T) {
	p := newPair(t, nil)
	p.serve(1 << 20)
	for _, verb := range []hostnic.Verb{hostnic.Write, hostnic.Read} {
		tr := transfer(p, 600_000, 3)
		tr.Service, tr.Verb = Memory, verb
		if verb == hostnic.Read {
			clear(tr.Data)
		}
		p.finish(tr)
		if tr.Err != nil || len(tr.Samples) != 3 || !Matches(tr.Data, 0) {
			t.Errorf("%v: %v, %d samples", verb, tr.Err, len(tr.Samples))
		}
		if verb == hostnic.Write && tr.Received != (Received{Bytes: 600_000}) {
			t.Errorf("%v: received %+v", verb, tr.Received)
		}
	}
	tr := transfer(p, 600_000, 1)
	tr.Service, tr.Verb = Memory, hostnic.Write
	tr.Data[333_333] ^= 1
	p.finish(tr)
	if tr.Received.Corrupt == 0 {
		t.Error("a wrong byte in memory was not noticed")
	}
	p.idle()
}

// A byte that is changed before it is sent is noticed at the other end; one
// that is changed on the way is not even delivered.
func TestCorruption(t *testing.T) {
	p := newPair(t, nil)
	p.serve(0)
	tr := transfer(p, 5_000, 3)
	tr.Data[2_500] ^= 1
	p.finish(tr)
	if tr.Received != (Received{Bytes: 15_000, Messages: 3, Corrupt: 3}) {
		t.Errorf("received %+v", tr.Received)
	}
	n := 0
	p.lose = func(from int, b []byte) bool {
		if len(b) > 1000 {
			if n++; n == 3 {
				b[500] ^= 4
			}
		}
		return false
	}
	tr = transfer(p, 5_000, 3)
	p.finish(tr)
	if tr.Err != nil || tr.Received != (Received{Bytes: 15_000, Messages: 3}) || p.a[1].NIC().Counts().Drops[frame.BadICRC] != 1 {
		t.Errorf("%v: received %+v, dropped %d", tr.Err, tr.Received, p.a[1].NIC().Counts().Drops[frame.BadICRC])
	}
	p.idle()
}

func TestRefused(t *testing.T) {
	for want, c := range map[string]struct {
		serve  int
		change func(i int, c *Config)
		adjust func(t *Transfer)
	}{
		"does not serve":  {serve: -1},
		"another payload": {change: func(i int, c *Config) { c.NIC.Payload = 1000 + i }},
		"memory":          {serve: 10, adjust: func(t *Transfer) { t.Service, t.Verb = Memory, hostnic.Read }},
		"does not know this congestion control: choose": {adjust: func(t *Transfer) { t.CC = "nonesuch" }},
		"does not know this telemetry: choose":          {adjust: func(t *Transfer) { t.INT = inband.INTMD + 1 }},
		"no queue pair":                                 {change: func(i int, c *Config) { c.Sessions = -1 }},
		"does not answer A":                             {adjust: func(t *Transfer) { t.To = netip.MustParseAddr("10.0.0.9") }},
	} {
		p := newPair(t, c.change)
		if c.serve >= 0 {
			p.serve(c.serve)
		}
		tr := transfer(p, 100, 1)
		if c.adjust != nil {
			c.adjust(tr)
		}
		p.finish(tr)
		if tr.Err == nil || !strings.Contains(tr.Err.Error(), want) {
			t.Errorf("%s: error is %v", want, tr.Err)
		}
		if _, n := p.a[0].Counts(); n != 0 {
			p.run(tick*2, func() bool { return false })
		}
		p.idle()
	}
}

// What an end of another version asks for and this one does not know is named.
func TestUnknownRecovery(t *testing.T) {
	p := newPair(t, nil)
	p.serve(0)
	m := message{payload: uint32(p.a[1].cfg.NIC.Payload), recovery: 200}
	if _, r := p.a[1].openSession(p.now, &hostnic.Datagram{}, &m); !strings.HasPrefix(r.String(), "it does not know this loss recovery: ") {
		t.Error(r)
	}
}

// A probe is answered without being served.
func TestProbe(t *testing.T) {
	p := newPair(t, nil)
	tr := transfer(p, 64, 3)
	tr.Service, tr.Trace, tr.Depth, tr.Interval = Probe, true, 1, 10*frame.Millisecond
	p.finish(tr)
	if tr.Err != nil || len(tr.Paths) != 3 || tr.Samples[2].Start-tr.Samples[0].Start < 20*frame.Millisecond {
		t.Errorf("%v: %+v", tr.Err, tr.Samples)
	}
	p.idle()
}

// An end that goes away is noticed by the other, whichever it is.
func TestPeerOfATransferGone(t *testing.T) {
	for gone := range 2 {
		p := newPair(t, nil)
		p.serve(0)
		tr := transfer(p, 10_000_000, 5)
		if err := p.a[0].Start(p.now, tr); err != nil {
			t.Fatal(err)
		}
		p.run(frame.Second, func() bool { return len(tr.Samples) == 1 })
		p.lose = func(from int, _ []byte) bool { return true }
		if gone == 0 {
			p.a[0].Abort(p.now, tr)
		}
		p.run(sessionIdle+20*frame.Second, func() bool { return false })
		if tr.State != Ended || tr.Err == nil {
			t.Errorf("%d gone: the transfer is %v, %v", gone, tr.State, tr.Err)
		}
		p.idle()
	}
}

// Moving messages allocates nothing.
func TestAllocations(t *testing.T) {
	p := newPair(t, nil)
	p.serve(0)
	tr := transfer(p, 1000, 1_000_000)
	if err := p.a[0].Start(p.now, tr); err != nil {
		t.Fatal(err)
	}
	p.run(20*frame.Millisecond, func() bool { return false })
	before := len(tr.Samples)
	if n := testing.AllocsPerRun(100, func() { p.run(10*tick, func() bool { return false }) }); n > 2*10 { // the test's own slices
		t.Errorf("%v allocations", n)
	}
	if len(tr.Samples) == before {
		t.Error("nothing moved")
	}
}

func FuzzMessage(f *testing.F) {
	var b [messageLen]byte
	for _, m := range []message{
		{kind: request, service: Memory, recovery: 1, telemetry: 3, class: 3, id: 1 << 60, qpn: 0x123456, psn: 0xffffff, payload: 1000, cap: 9, size: 1 << 20, cc: "hpcc"},
		{kind: accept, id: 1, qpn: 5, rkey: 0x100, size: 1 << 20}, {kind: reject, id: 2, reason: noRoom}, {kind: closing, id: 3},
		{kind: closed, id: 4, bytes: 10, messages: 1, corrupt: 2, cc: "sixteen-letters-"},
	} {
		m.encode(&b)
		f.Add(bytes.Clone(b[:]))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var m message
		if m.decode(in) != nil {
			return
		}
		var out [messageLen]byte
		if m.encode(&out); !bytes.Equal(in, out[:]) {
			t.Errorf("% x\nreads as %+v\nand writes % x", in, m, out)
		}
	})
}

// Whatever arrives at the port: no panic, no chunk lost, and requests that
// cannot be meant open nothing.
func FuzzDatagrams(f *testing.F) {
	var b [messageLen]byte
	m := message{kind: request, service: Memory, id: 9, qpn: 0x123456, payload: 1000, size: 100, cc: "none"}
	m.encode(&b)
	f.Add(b[:])
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > hostnic.MaxDatagram {
			return
		}
		p := newPair(t, nil)
		p.serve(1000)
		tr := transfer(p, 100, 1)
		p.finish(tr) // so that they know each other
		if err := p.a[0].NIC().SendDatagram(p.now, p.a[1].cfg.NIC.Addr, Port, in); err != nil {
			t.Fatal(err)
		}
		p.run(50*tick, func() bool { return false })
		p.a[1].Serve(nil)
		if n := p.pool.Available(); n != 2048 {
			t.Errorf("%d chunks are lost", 2048-n)
		}
	})
}

// configured counts how often the options of the scheme counted were read.
var configured int

var counted = func() *transport.Kind {
	k := *transport.GoBackN
	k.Name, k.Code, k.Params = "counted", transport.OwnCodes+1, nil
	k.Set = func(*transport.Config, *options.Values) { configured++ }
	return transport.Register(k)
}()

// The options of schemes are read when they are registered, not for each request of another
// host.
func TestOptionsAreReadOnce(t *testing.T) {
	p := newPair(t, nil)
	p.serve(0)
	for range 3 {
		tr := transfer(p, 1000, 1)
		tr.Recovery = counted
		if p.finish(tr); tr.Err != nil || tr.Received.Bytes != 1000 {
			t.Errorf("%v: received %+v", tr.Err, tr.Received)
		}
	}
	if configured != 1 {
		t.Errorf("they were read %d times", configured)
	}
	p.idle()
}
