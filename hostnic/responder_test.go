package hostnic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// desk is a requester and a responder without frames between them: the test
// hands over packets in any order.
type desk struct {
	t   testing.TB
	req requester
	rsp responder
	rx  transport.Receiver
	cfg transport.Config
	mem Memory
	ram []byte
	key uint32
}

func newDesk(t testing.TB, mode *transport.Kind, shared *SharedReceive) *desk {
	d := &desk{t: t, cfg: transport.Config{Recovery: mode, Cap: 64}, ram: make([]byte, 1<<16)}
	var err error
	d.key, err = d.mem.Register(memBase, d.ram, RemoteWrite|RemoteRead|RemoteAtomic)
	must(t, err)
	d.key, err = d.mem.grant(d.key, 0)
	must(t, err)
	d.req.reset(1000, 16)
	d.rsp.reset(1000, mode == transport.GoBackN || mode == transport.IRNGoBackN, &d.mem, 0, shared)
	d.rx.Init(&d.cfg)
	return d
}

// post returns the packets of an operation.
func (d *desk) post(w WorkRequest) (v []packet) {
	d.t.Helper()
	if w.RKey == 0 {
		w.RKey = d.key
	}
	must(d.t, d.req.post(0, &w))
	k := d.req.issue()
	if k == nil {
		d.t.Fatalf("%v was not issued", w.Verb)
	}
	for q := k.first; q < k.first+k.packets; q++ {
		v = append(v, d.req.packet(d.req.issued-1, q))
	}
	return v
}

// give hands a packet to the responder, through its bytes on the wire, and
// says what came of it.
func (d *desk) give(p packet) string {
	d.t.Helper()
	var b [64]byte
	n := p.encode(b[:], d.rsp.inOrder, 1000, 0)
	if n != headersLen(p.op, d.rsp.inOrder) {
		d.t.Fatalf("opcode %#x: %d bytes of headers, want %d", p.op, n, headersLen(p.op, d.rsp.inOrder))
	}
	var got packet
	if k, why := got.decode(b[:n], p.op, d.rsp.inOrder, 1000); k != n || why != frame.Keep {
		d.t.Fatalf("opcode %#x: %d bytes decoded of %d: %v", p.op, k, n, why)
	}
	got.seq, got.size, got.payload = p.seq, p.size, p.payload
	v, syndrome, drop := d.rsp.request(0, &d.rx, &got)
	s := ""
	switch {
	case drop:
		s = "drop"
	case syndrome != 0:
		s = fmt.Sprintf("NAK(%d) %#x", d.rx.Expected(), syndrome)
	case v.Reply == transport.NakReply:
		s = fmt.Sprintf("NACK(%d,%d)", v.Cum, v.Sack)
	case v.Reply == transport.AckReply:
		s = fmt.Sprintf("ACK(%d)", v.Cum)
	}
	for _, c := range d.rsp.done {
		s += fmt.Sprintf(" recv:%d", c.id)
	}
	d.rsp.done = d.rsp.done[:0]
	return s
}

func (d *desk) want(p packet, want string) {
	d.t.Helper()
	if got := d.give(p); got != want {
		d.t.Errorf("packet %d: %s, want %s", p.seq, got, want)
	}
}

// Send A is lost, Send B arrives: its bytes lie in the second buffer, and no
// completion comes before that of A.
func TestSendIsPlacedByItsNumber(t *testing.T) {
	d := newDesk(t, transport.IRN, nil)
	one, two := make([]byte, 2000), make([]byte, 2000)
	d.rsp.rq.push(RecvRequest{ID: 1, Local: one})
	d.rsp.rq.push(RecvRequest{ID: 2, Local: two})
	a := d.post(WorkRequest{Verb: Send, Local: pattern(1500, 1)})
	b := d.post(WorkRequest{Verb: Send, Local: pattern(1700, 2)})
	d.want(b[1], "NACK(0,3)")
	d.want(b[0], "NACK(0,2)")
	if !bytes.Equal(two[:1700], pattern(1700, 2)) || !bytes.Equal(one, make([]byte, 2000)) {
		t.Error("the second Send does not lie in the second buffer")
	}
	d.want(a[1], "NACK(0,1)")
	d.want(a[0], "ACK(4) recv:1 recv:2")
	if !bytes.Equal(one[:1500], pattern(1500, 1)) {
		t.Error("the first Send does not lie in the first buffer")
	}
}

// An atomic waits for the Write before it and is executed once, however often
// it arrives. A read sees what was written before.
func TestAtomicsAndReadsWaitForTheirTurn(t *testing.T) {
	d := newDesk(t, transport.IRN, nil)
	binary.LittleEndian.PutUint64(d.ram, 1)
	w := d.post(WorkRequest{Verb: Write, Local: pattern(8, 5), RemoteVA: memBase + 8})
	a := d.post(WorkRequest{Verb: FetchAdd, RemoteVA: memBase, Operand: 10})
	r := d.post(WorkRequest{Verb: Read, Bytes: 16, RemoteVA: memBase})
	d.want(a[0], "NACK(0,1)")
	d.want(r[0], "NACK(0,2)")
	d.want(a[0], "NACK(0,1)")
	if d.rsp.executed != 0 || d.rsp.rNext != 0 {
		t.Fatal("an atomic or a read was executed before the Write that precedes it")
	}
	d.want(w[0], "ACK(3)")
	d.want(a[0], "ACK(3)")
	d.want(r[0], "ACK(3)")
	if got := binary.LittleEndian.Uint64(d.ram); got != 11 || d.rsp.executed != 1 {
		t.Errorf("the word is %d after %d executions, want 11 after one", got, d.rsp.executed)
	}
	// The response is kept, and the same, until it is acknowledged.
	for range 2 {
		if p := d.rsp.packet(0); p.op != wire.RCAtomicAcknowledge || p.operand != 1 {
			t.Errorf("%+v", p)
		}
	}
	if p := d.rsp.packet(1); p.op != wire.RCReadResponseOnly || !bytes.Equal(p.payload[8:], pattern(8, 5)) || p.payload[0] != 11 {
		t.Errorf("the read gives %v", p.payload)
	}
	d.rsp.acknowledged(1)
	d.rsp.acknowledged(2)
	if d.rsp.rN != 0 {
		t.Error("acknowledged responses are kept")
	}
}

// A Send without a buffer: the one in order gets a NAK that the receiver is not
// ready, the one out of order is dropped without a word and succeeds later.
func TestReceiverNotReady(t *testing.T) {
	d := newDesk(t, transport.IRN, nil)
	a := d.post(WorkRequest{Verb: Send, Local: pattern(10, 1)})
	b := d.post(WorkRequest{Verb: Send, Local: pattern(10, 2)})
	c := d.post(WorkRequest{Verb: WriteImmediate, Local: pattern(10, 3), RemoteVA: memBase})
	d.want(b[0], "drop")
	d.want(c[0], "drop")
	d.want(a[0], "NAK(0) 0x20")
	if d.rx.MSN() != 0 || d.rx.Expected() != 0 || d.ram[1] != 0 {
		t.Error("a refused packet left a trace")
	}
	for id := range uint64(3) {
		d.rsp.rq.push(RecvRequest{ID: id, Local: make([]byte, 10)})
	}
	d.want(b[0], "NACK(0,1)")
	d.want(a[0], "ACK(2) recv:0 recv:1")
	d.want(c[0], "ACK(3) recv:2")
}

// SN 0 in order, then SN 4: four more are dequeued, and the last is used.
func TestSharedReceiveQueue(t *testing.T) {
	srq := &SharedReceive{}
	var boxes [][]byte
	for id := range uint64(6) {
		boxes = append(boxes, make([]byte, 10))
		srq.Post(RecvRequest{ID: id, Local: boxes[id]})
	}
	d := newDesk(t, transport.IRN, srq)
	var p []packet
	for i := range 5 {
		p = append(p, d.post(WorkRequest{Verb: Send, Local: pattern(10, byte(i))})[0])
	}
	d.want(p[0], "ACK(1) recv:0")
	if srq.Len() != 5 {
		t.Fatalf("%d are left, want 5", srq.Len())
	}
	d.want(p[4], "NACK(1,4)")
	if srq.Len() != 1 || !bytes.Equal(boxes[4], pattern(10, 4)) {
		t.Errorf("%d are left, want 1; the last one holds %v", srq.Len(), boxes[4])
	}
	other := newDesk(t, transport.IRN, srq) // takes the one that is left
	q := other.post(WorkRequest{Verb: WriteImmediate, Local: pattern(10, 9), RemoteVA: memBase})
	other.want(q[0], "ACK(1) recv:5")
	d.want(p[2], "NACK(1,2)")
	d.want(p[3], "NACK(1,3)")
	d.want(p[1], "ACK(5) recv:1 recv:2 recv:3 recv:4")
	more := d.post(WorkRequest{Verb: Send, Local: pattern(10, 1)})
	d.want(more[0], "NAK(5) 0x20")
	if srq.Len() != 0 {
		t.Error("the shared queue is not empty")
	}
}

// What is refused, and how (IBTA 9.7.5.2.8): in order with a NAK, out of order
// without a word.
func TestRefusals(t *testing.T) {
	const access, invalid = "NAK(0) 0x62", "NAK(0) 0x61"
	d := newDesk(t, transport.IRN, nil)
	own, err := d.mem.Register(1<<20, make([]byte, 100), RemoteRead)
	must(t, err)
	readOnly, err := d.mem.grant(own, 0)
	must(t, err)
	another, err := d.mem.grant(d.mem.lookup(d.key).of, 1)
	must(t, err)
	gone, err := d.mem.Register(1<<20, make([]byte, 100), RemoteRead|RemoteWrite)
	must(t, err)
	must(t, d.mem.Deregister(gone))
	ten := make([]byte, 10)
	for name, c := range map[string]struct {
		w    WorkRequest
		want string
	}{
		"write beyond the region":     {WorkRequest{Verb: Write, Local: ten, RemoteVA: memBase + 1<<16 - 9}, access},
		"write before the region":     {WorkRequest{Verb: Write, Local: ten, RemoteVA: memBase - 1}, access},
		"address that overflows":      {WorkRequest{Verb: Write, Local: ten, RemoteVA: ^uint64(0) - 3}, access},
		"write to read-only":          {WorkRequest{Verb: Write, Local: ten, RemoteVA: 1 << 20, RKey: readOnly}, access},
		"write with an old key":       {WorkRequest{Verb: Write, Local: ten, RemoteVA: 1 << 20, RKey: gone}, access},
		"write with no key of ours":   {WorkRequest{Verb: Write, Local: ten, RemoteVA: 1 << 20, RKey: 1 << 31}, access},
		"key of another queue pair":   {WorkRequest{Verb: Write, Local: ten, RemoteVA: memBase, RKey: another}, access},
		"read by another's key":       {WorkRequest{Verb: Read, Bytes: 10, RemoteVA: memBase, RKey: another}, access},
		"atomic by another's key":     {WorkRequest{Verb: FetchAdd, RemoteVA: memBase, RKey: another}, access},
		"key of no queue pair":        {WorkRequest{Verb: Read, Bytes: 10, RemoteVA: 1 << 20, RKey: own}, access},
		"read beyond the region":      {WorkRequest{Verb: Read, Bytes: 101, RemoteVA: 1 << 20, RKey: readOnly}, access},
		"atomic on read-only":         {WorkRequest{Verb: FetchAdd, RemoteVA: 1 << 20, RKey: readOnly}, access},
		"atomic that is not aligned":  {WorkRequest{Verb: CompareSwap, RemoteVA: memBase + 4}, invalid},
		"write with immediate, no wr": {WorkRequest{Verb: WriteImmediate, Local: ten, RemoteVA: memBase}, "NAK(0) 0x20"},
	} {
		d.req.reset(1000, 16)
		if got := d.give(d.post(c.w)[0]); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		d.post(WorkRequest{Verb: Write})
		if got := d.give(d.post(c.w)[0]); got != "drop" {
			t.Errorf("%s, early: %s, want drop", name, got)
		}
	}
}

// What a packet says must fit what its message is.
func TestMalformedRequests(t *testing.T) {
	for name, c := range map[string]func(d *desk) packet{
		"a Send longer than the buffer": func(d *desk) packet { return d.post(WorkRequest{Verb: Send, Local: make([]byte, 101)})[0] },
		"a middle packet that is short": func(d *desk) packet {
			p := d.post(WorkRequest{Verb: Write, Local: make([]byte, 2500), RemoteVA: memBase})[0]
			p.size, p.payload = 999, p.payload[:999]
			return p
		},
		"a last packet that is not the last": func(d *desk) packet {
			p := d.post(WorkRequest{Verb: Write, Local: make([]byte, 2500), RemoteVA: memBase})[0]
			p.op = wire.RCWriteOnly
			return p
		},
		"a middle packet that is the last": func(d *desk) packet {
			p := d.post(WorkRequest{Verb: Write, Local: make([]byte, 1000), RemoteVA: memBase})[0]
			p.op = wire.RCWriteFirst
			return p
		},
		"more than was announced": func(d *desk) packet {
			p := d.post(WorkRequest{Verb: Write, Local: make([]byte, 100), RemoteVA: memBase})[0]
			p.reth.Length = 50
			return p
		},
		"a read with a payload": func(d *desk) packet {
			p := d.post(WorkRequest{Verb: Read, Bytes: 8, RemoteVA: memBase})[0]
			p.size, p.payload = 1, []byte{1}
			return p
		},
		"a read that is too long": func(d *desk) packet {
			p := d.post(WorkRequest{Verb: Read, Bytes: 8, RemoteVA: memBase})[0]
			p.reth.Length = maxOperation + 1
			return p
		},
	} {
		for _, mode := range []*transport.Kind{transport.IRN, transport.GoBackN} {
			d := newDesk(t, mode, nil)
			d.rsp.rq.push(RecvRequest{Local: make([]byte, 100)})
			if got := d.give(c(d)); got != "NAK(0) 0x61" {
				t.Errorf("%s, %v: %s, want an invalid request", name, mode, got)
			}
		}
	}
	// In order, a message must begin with its first packet and go on with its
	// own (IBTA 9.7.4.1.2).
	d := newDesk(t, transport.GoBackN, nil)
	w := d.post(WorkRequest{Verb: Write, Local: make([]byte, 3000), RemoteVA: memBase})
	first, middle := w[0], w[1]
	middle.seq = 0
	d.want(middle, "NAK(0) 0x61")
	d.want(first, "ACK(1)")
	first.seq = 1
	d.want(first, "NAK(1) 0x61")
	d.want(packet{op: wire.RCSendMiddle, seq: 1, size: 1000, payload: make([]byte, 1000)}, "NAK(1) 0x61")
	d.want(w[1], "ACK(2)")
	d.want(w[2], "ACK(3)")
	// A receive request that was used up cannot be meant again.
	d = newDesk(t, transport.IRN, nil)
	d.rsp.rq.push(RecvRequest{Local: make([]byte, 100)})
	s := d.post(WorkRequest{Verb: Send, Local: make([]byte, 5)})[0]
	d.want(s, "ACK(1) recv:0")
	s.seq = 1
	d.want(s, "NAK(1) 0x61")
}

func TestMemoryKeys(t *testing.T) {
	var m Memory
	a, err := m.Register(100, make([]byte, 50), RemoteWrite)
	must(t, err)
	must(t, m.Deregister(a))
	if m.Deregister(a) == nil {
		t.Error("a region was deregistered twice")
	}
	b, err := m.Register(100, make([]byte, 50), RemoteWrite)
	must(t, err)
	b, err = m.grant(b, 0)
	must(t, err)
	if a == b || m.reach(0, a, 100, 1, RemoteWrite) != nil {
		t.Error("the key of an old region opens a new one")
	}
	if m.reach(0, b, 100, 50, RemoteWrite) == nil || m.reach(0, b, 100, 51, RemoteWrite) != nil || m.reach(0, b, 149, 1, RemoteWrite) == nil || m.reach(0, b, 150, 1, RemoteWrite) != nil {
		t.Error("the bounds are wrong")
	}
	if _, err := m.Register(^uint64(0)-10, make([]byte, 50), 0); err == nil {
		t.Error("a region beyond the end of the address space was taken")
	}
	v, err := m.RegisterVirtual(0, 1<<40, RemoteRead)
	must(t, err)
	v, err = m.grant(v, 0)
	must(t, err)
	if g := m.reach(0, v, 1<<39, 1<<30, RemoteRead); g == nil || g.slice(1<<39, 1<<30) != nil {
		t.Error("a virtual region has bytes, or is not there")
	}
}

// The memory of a requester is bounded whatever a responder answers, and
// nothing that was not asked for is placed.
func TestResponsesThatWereNotAskedFor(t *testing.T) {
	var r requester
	r.reset(1000, 2)
	sink := make([]byte, 2500)
	must(t, r.post(0, &WorkRequest{Verb: Read, Local: sink}))
	must(t, r.post(0, &WorkRequest{Verb: FetchAdd}))
	must(t, r.post(0, &WorkRequest{Verb: Read, Bytes: 5}))
	must(t, r.post(0, &WorkRequest{Verb: Write, Bytes: 5}))
	for i, want := range []bool{true, true, false, false} {
		if got := r.issue() != nil; got != want {
			t.Errorf("operation %d issued: %v; two reads at most", i, got)
		}
	}
	for _, c := range []struct {
		p    packet
		want bool
	}{
		{packet{op: wire.RCReadResponseFirst, seq: 0, size: 1000}, true},
		{packet{op: wire.RCReadResponseFirst, seq: 0, size: 999}, false},
		{packet{op: wire.RCReadResponseMiddle, seq: 0, size: 1000}, false},
		{packet{op: wire.RCReadResponseMiddle, seq: 1, size: 1000}, true},
		{packet{op: wire.RCReadResponseLast, seq: 2, size: 500}, true},
		{packet{op: wire.RCReadResponseLast, seq: 2, size: 501}, false},
		{packet{op: wire.RCAtomicAcknowledge, seq: 2}, false},
		{packet{op: wire.RCAtomicAcknowledge, seq: 3}, true},
		{packet{op: wire.RCAtomicAcknowledge, seq: 3, size: 1}, false},
		{packet{op: wire.RCReadResponseOnly, seq: 3, size: 8}, false},
		{packet{op: wire.RCReadResponseOnly, seq: 4, size: 5}, false}, // not issued
	} {
		if got := r.checkResponse(&c.p); got != c.want {
			t.Errorf("%+v: %v", c.p, got)
		}
	}
	r.acknowledged(2)
	r.answered(3)
	if w := r.complete(); w == nil || w.Verb != Read {
		t.Error("the first read is not complete")
	}
	if r.complete() != nil {
		t.Error("an atomic without an answer is complete")
	}
	if w := r.issue(); w == nil || w.Bytes != 5 {
		t.Error("the next read does not follow")
	}
	if !r.checkResponse(&packet{op: wire.RCReadResponseOnly, seq: 4, size: 5}) {
		t.Error("the answer to the next read is refused")
	}
	// A fence waits for both.
	must(t, r.post(0, &WorkRequest{Verb: Write, Fence: true}))
	if w := r.issue(); w == nil || w.Verb != Write || w.Fence {
		t.Error("the Write does not follow")
	}
	if r.issue() != nil {
		t.Error("the fence did not hold")
	}
	r.answered(5)
	if r.issue() == nil {
		t.Error("the fence holds although all reads are answered")
	}
}

// Responses that are never acknowledged are kept up to a bound; then the
// requester must wait.
func TestResponsesAreBounded(t *testing.T) {
	d := newDesk(t, transport.IRN, nil)
	p := d.post(WorkRequest{Verb: Read, Bytes: 5, RemoteVA: memBase})[0]
	for i := range uint64(maxResponses) {
		p.seq, p.sn = i, uint32(i)
		d.want(p, fmt.Sprintf("ACK(%d)", i+1))
	}
	p.seq++
	d.want(p, fmt.Sprintf("NAK(%d) 0x20", p.seq))
	d.rsp.acknowledged(1)
	d.want(p, fmt.Sprintf("ACK(%d)", p.seq+1))
}
