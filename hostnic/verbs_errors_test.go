package hostnic

import (
	"bytes"
	"encoding/binary"
	"testing"

	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// bthAt is where the BTH stands in these frames: Ethernet, IPv4, UDP.
const bthAt = wire.EthernetLen + wire.IPv4Len + wire.UDPLen

// Without a receive request the sender is asked to wait, goes back and goes
// on once there is one.
func TestNotReadyGoesBack(t *testing.T) {
	for _, mode := range verbsModes {
		x := newVerbsPair(t, mode, func(c *VerbsConfig) { c.RNRTimer = 15 * frame.Microsecond })
		rnrs := 0
		x.seen = func(from int, m *frame.Meta, b []byte) {
			if from == 1 && b[bthAt] == wire.RCAcknowledge && b[bthAt+wire.BTHLen] == 0x22 { // code 2: 20 us
				rnrs++
			}
		}
		box := make([]byte, 3000)
		x.post(WorkRequest{Verb: Send, Local: pattern(3000, 1)})
		x.post(WorkRequest{Verb: Write, Local: pattern(3000, 2), RemoteVA: memBase})
		x.run(100 * frame.Microsecond)
		if x.a.Completed() != 0 {
			t.Fatalf("%v: %s", mode, words(take(x.a)))
		}
		if rnrs < 3 || rnrs > 5 {
			t.Errorf("%v: an RNR NAK %d times in 100 us, want one each 20 us and a round trip", mode, rnrs)
		}
		x.recv(5, box)
		x.run(frame.Millisecond)
		if got := words(take(x.a)); got != "send:0 write:1" {
			t.Errorf("%v: %s", mode, got)
		}
		if got := words(take(x.b)); got != "recv:5" || !bytes.Equal(box, pattern(3000, 1)) || !bytes.Equal(x.mem[:3000], pattern(3000, 2)) {
			t.Errorf("%v: %s, or other bytes", mode, got)
		}
		x.drained()
	}
}

func TestNotReadyTooOften(t *testing.T) {
	x := newVerbsPair(t, transport.IRN, func(c *VerbsConfig) { c.RNRRetries = 3 })
	x.post(WorkRequest{Verb: Write, Local: pattern(10, 1), RemoteVA: memBase})
	x.post(WorkRequest{Verb: Send, Local: pattern(10, 1)})
	x.run(frame.Second)
	if got := words(take(x.a)); got != "write:0 send:1!4" {
		t.Error(got)
	}
	x.drained()
}

// A refused access ends the connection: what came before is done, the culprit
// is reported, the rest is flushed, and what is posted later as well.
func TestRefusedAccess(t *testing.T) {
	for _, mode := range verbsModes {
		x := newVerbsPair(t, mode, nil)
		x.post(WorkRequest{Verb: Write, Local: pattern(5000, 1), RemoteVA: memBase})
		x.post(WorkRequest{Verb: Write, Local: pattern(5000, 2), RemoteVA: memBase + 1<<20 - 4999})
		// This one may be placed before the refusal, or not.
		x.post(WorkRequest{Verb: Write, Local: pattern(10, 3), RemoteVA: memBase + 10_000})
		must(t, x.a.PostRecv(0, x.qa, RecvRequest{ID: 9}))
		x.run(10 * frame.Millisecond)
		if got := words(take(x.a)); got != "write:0 write:1!2 write:2!1 recv:9!1" {
			t.Errorf("%v: %s", mode, got)
		}
		if !bytes.Equal(x.mem[:5000], pattern(5000, 1)) || !bytes.Equal(x.mem[1<<20-5000:], make([]byte, 5000)) {
			t.Errorf("%v: the memory is not what it should be", mode)
		}
		x.post(WorkRequest{Verb: Write})
		must(t, x.a.PostRecv(0, x.qa, RecvRequest{ID: 10}))
		if got := words(take(x.a)); got != "write:3!1 recv:10!1" {
			t.Errorf("%v: posted to a broken connection: %s", mode, got)
		}
		must(t, x.a.CloseQP(x.now, x.qa))
		must(t, x.b.CloseQP(x.now, x.qb))
		x.drained()
	}
	x := newVerbsPair(t, transport.IRN, nil)
	x.post(WorkRequest{Verb: FetchAdd, RemoteVA: memBase + 1})
	x.run(frame.Millisecond)
	if got := words(take(x.a)); got != "atomic:0!3" {
		t.Error(got)
	}
}

// Requests to a dead peer end with an error.
func TestRetriesEnd(t *testing.T) {
	x := newVerbsPair(t, transport.IRN, func(c *VerbsConfig) { c.Retries = 7 })
	x.lose = func(*frame.Meta, []byte) bool { return true }
	x.post(WorkRequest{Verb: Write, Local: pattern(10, 1), RemoteVA: memBase})
	x.post(WorkRequest{Verb: Write, Local: pattern(10, 1), RemoteVA: memBase})
	x.run(frame.Second)
	c := take(x.a)
	if got := words(c); got != "write:0!5 write:1!1" {
		t.Fatal(got)
	}
	if c[0].Retransmitted != 0 && x.a.Counts().Timeouts != 8 {
		t.Errorf("%d timeouts, want 8", x.a.Counts().Timeouts)
	}
	x.drained()
}

// The answer to an atomic is lost: the responder's own timer repeats it.
func TestLostResponseIsRepeatedByItsSource(t *testing.T) {
	x := newVerbsPair(t, transport.IRN, nil)
	lost, requests := 0, 0
	x.lose = func(m *frame.Meta, b []byte) bool {
		switch b[bthAt] {
		case wire.RCFetchAdd:
			requests++
		case wire.RCAtomicAcknowledge:
			lost++
			return lost <= 2
		}
		return false
	}
	was := make([]byte, 8)
	x.post(WorkRequest{Verb: FetchAdd, Local: was, RemoteVA: memBase, Operand: 5})
	x.run(frame.Millisecond)
	if got := words(take(x.a)); got != "atomic:0" || lost != 3 || requests != 1 {
		t.Errorf("%s, %d answers, %d requests", got, lost, requests)
	}
	if binary.LittleEndian.Uint64(was) != 0 || x.mem[0] != 5 {
		t.Errorf("saw %v, left %d", was, x.mem[0])
	}
	x.drained()
}

// A Read of 200 packets and a Write of 200 at once: each sequence space has
// its own cap.
func TestSequenceSpacesHaveTheirOwnCap(t *testing.T) {
	x := newVerbsPair(t, transport.IRN, nil)
	x.delay = 20 * frame.Microsecond // 1200 packets long
	copy(x.mem[500_000:], pattern(200_000, 3))
	got := make([]byte, 200_000)
	var most [2]uint32
	both := false
	x.seen = func(int, *frame.Meta, []byte) {
		req, rsp := x.a.qps[0].tx.InFlight(), x.b.qps[1].tx.InFlight()
		most[0], most[1] = max(most[0], req), max(most[1], rsp)
		both = both || req == 60 && rsp == 60
	}
	x.post(WorkRequest{Verb: Read, Local: got, RemoteVA: memBase + 500_000})
	x.post(WorkRequest{Verb: Write, Local: pattern(200_000, 4), RemoteVA: memBase})
	x.run(10 * frame.Millisecond)
	if most != [2]uint32{60, 60} || !both {
		t.Errorf("in flight at most %v requests and responses, want the cap of 60 each, at once (%v)", most, both)
	}
	if s := words(take(x.a)); s != "read:0 write:1" || !bytes.Equal(got, pattern(200_000, 3)) || !bytes.Equal(x.mem[:200_000], pattern(200_000, 4)) {
		t.Errorf("%s, or other bytes", s)
	}
	x.drained()
}

// Closing completes everything once, and the next queue pair starts afresh.
func TestCloseFlushesAndRecycles(t *testing.T) {
	x := newVerbsPair(t, transport.IRN, nil)
	open := func() {
		x.qa, x.qb = x.connect(func(c *QPConfig) { c.Transport, c.Verbs = verbsTransport(transport.IRN), &VerbsConfig{} })
	}
	for round := range 5 {
		x.next = 0
		x.recv(1, make([]byte, 10))
		x.recv(2, make([]byte, 10))
		x.post(WorkRequest{Verb: Send, Local: pattern(10, 1)})
		x.run(x.now + 50*frame.Microsecond)
		x.post(WorkRequest{Verb: Read, Local: make([]byte, 100_000), RemoteVA: memBase})
		x.post(WorkRequest{Verb: Write, Local: make([]byte, 100_000), RemoteVA: memBase})
		x.run(x.now + 4*frame.Microsecond)
		must(t, x.a.CloseQP(x.now, x.qa))
		must(t, x.b.CloseQP(x.now, x.qb))
		x.run(x.now + frame.Millisecond)
		if got := words(take(x.a)); got != "send:0 read:1!1 write:2!1" {
			t.Errorf("round %d: %s", round, got)
		}
		if got := words(take(x.b)); got != "recv:1 recv:2!1" {
			t.Errorf("round %d: %s", round, got)
		}
		if x.a.Counts().QPsOpen != 0 || x.b.Counts().QPsOpen != 0 || len(x.a.qps) != 2 {
			t.Errorf("round %d: %d and %d open, %d made", round, x.a.Counts().QPsOpen, x.b.Counts().QPsOpen, len(x.a.qps))
		}
		x.drained()
		open()
		x.grant()
	}
}

func TestVerbsAreChecked(t *testing.T) {
	x := newVerbsPair(t, transport.GoBackN, nil)
	plain, _ := x.connect(nil)
	for name, err := range map[string]error{
		"post on the message service":  x.a.Post(0, plain, &WorkRequest{}),
		"recv on the message service":  x.a.PostRecv(0, plain, RecvRequest{}),
		"message on an RDMA pair":      x.a.SendMessage(0, x.qa, 1, 1),
		"post on the responses' pair":  x.a.Post(0, x.a.qps[1].qpn, &WorkRequest{}),
		"unknown verb":                 x.a.Post(0, x.qa, &WorkRequest{Verb: numVerbs}),
		"too long":                     x.a.Post(0, x.qa, &WorkRequest{Verb: Write, Bytes: 1<<31 + 1}),
		"atomic into too small memory": x.a.Post(0, x.qa, &WorkRequest{Verb: FetchAdd, Local: make([]byte, 4)}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	qps := 0
	x.a.QPs(func(uint32) bool { qps++; return true })
	if qps != 2 {
		t.Errorf("%d queue pairs are shown, want 2", qps)
	}
	cfg := QPConfig{RemoteAddr: x.b.cfg.Addr, RemoteMAC: x.b.cfg.MAC, Verbs: &VerbsConfig{MaxReads: maxMaxReads + 1}}
	if _, err := x.a.OpenQP(0, &cfg); err == nil {
		t.Error("too many reads were allowed")
	}
	cfg.Verbs = &VerbsConfig{SRQ: &SharedReceive{}}
	q, err := x.a.OpenQP(0, &cfg)
	must(t, err)
	if x.a.PostRecv(0, q, RecvRequest{}) == nil {
		t.Error("a receive request was posted around the shared queue")
	}
}

// In virtual time no bytes exist, and all the rest is the same.
func TestVirtualOperations(t *testing.T) {
	p := newPair(t, nil)
	rng := frame.NewRand(3)
	p.lose = func(*frame.Meta, []byte) bool { return rng.Uint32n(100) < 3 }
	qa, qb := p.connect(func(c *QPConfig) { c.Transport, c.Verbs = verbsTransport(transport.IRN), &VerbsConfig{} })
	key, err := p.b.Memory().RegisterVirtual(memBase, 1<<30, RemoteWrite|RemoteRead|RemoteAtomic)
	must(t, err)
	key, err = p.b.Grant(key, qb)
	must(t, err)
	for i := range uint64(70) {
		v := Verb(i % uint64(numVerbs))
		must(t, p.a.Post(0, qa, &WorkRequest{ID: i, Verb: v, Bytes: 1234 * i, RemoteVA: memBase, RKey: key}))
		must(t, p.b.PostRecv(0, qb, RecvRequest{Bytes: 1 << 20}))
	}
	p.run(frame.Second)
	tx, rx := take(p.a), take(p.b)
	if len(tx) != 70 || len(rx) != 30 {
		t.Fatalf("%d operations and %d receives complete", len(tx), len(rx))
	}
	for i, c := range tx {
		if want := 1234 * uint64(i); c.ID != uint64(i) || c.Op != AtomicDone && c.Bytes != want {
			t.Errorf("%+v", c)
		}
	}
	p.drained()
}

// A NAK that comes late, or for what was never sent, changes nothing.
func TestStaleRefusals(t *testing.T) {
	x := newVerbsPair(t, transport.IRN, nil)
	var nak []byte
	x.seen = func(from int, m *frame.Meta, b []byte) {
		if from == 1 && b[bthAt+wire.BTHLen]&0x60 == wire.AETHRNRNak {
			nak = bytes.Clone(b)
		}
	}
	x.post(WorkRequest{Verb: Send, Local: pattern(10, 1)})
	x.run(5 * frame.Microsecond)
	x.recv(1, make([]byte, 10))
	x.run(100 * frame.Microsecond)
	if got := words(take(x.a)); got != "send:0" || nak == nil {
		t.Fatal(got)
	}
	again := x.a.Counts().Retransmissions
	x.post(WorkRequest{Verb: Write, Local: pattern(50_000, 1), RemoteVA: memBase})
	x.run(x.now + 3*frame.Microsecond)
	for i, psn := range []uint32{0, 500} { // of the Send; far ahead
		wire.BTH(nak[bthAt:]).SetPSN(0xfffff0 + psn)
		wire.PutICRC(nak, wire.EthernetLen, bthAt)
		x.a.Receive(x.now, 0, []frame.Ref{x.pool.New(nak)})
		if got := x.a.Counts().Drops[frame.QPSequence]; got != uint64(i+1) {
			t.Errorf("%d dropped, want %d", got, i+1)
		}
	}
	x.run(x.now + frame.Millisecond)
	if got := words(take(x.a)); got != "write:1" || x.a.Counts().Retransmissions != again {
		t.Errorf("%s, %d retransmissions", got, x.a.Counts().Retransmissions-again)
	}
	x.drained()
}

// The requester's notifications of congestion slow the responses down.
func TestResponsesFollowCongestionControl(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.CNP.Frames = true })
	qa, qb := p.connect(func(c *QPConfig) {
		c.Transport, c.Verbs = verbsTransport(transport.IRN), &VerbsConfig{}
		c.CC, c.CCName = factory(t, "dcqcn", nil), "dcqcn"
	})
	p.lose = func(m *frame.Meta, b []byte) bool {
		if op := b[bthAt]; op >= wire.RCReadResponseFirst && op <= wire.RCReadResponseOnly {
			b[15] |= wire.CE
			wire.IPv4(b[14:34]).UpdateChecksum()
		}
		return false
	}
	key, err := p.b.Memory().RegisterVirtual(memBase, 1<<30, RemoteRead)
	must(t, err)
	key, err = p.b.Grant(key, qb)
	must(t, err)
	must(t, p.a.Post(0, qa, &WorkRequest{Verb: Read, Bytes: 2_000_000, RemoteVA: memBase, RKey: key}))
	p.run(frame.Millisecond)
	q, _ := p.b.lookup(qb)
	if r := q.verbs.resp.lanes[inTurn].pace.rate; r > 20e9 {
		t.Errorf("marked responses leave at %.0f Gbit/s after a millisecond", r/1e9)
	}
	p.run(frame.Second)
	if got := words(take(p.a)); got != "read:0" {
		t.Error(got)
	}
	p.drained()
}
