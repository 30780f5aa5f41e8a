package hostnic

import (
	"testing"

	"gswitch/frame"
	"gswitch/transport"
)

// verbsLoop posts one of each operation and lets it complete, again and again.
type verbsLoop struct {
	*verbsPair
	box, sink []byte
	out       [16]Completion
	air       [16]frame.Ref
}

func newVerbsLoop(t testing.TB, mode *transport.Kind) *verbsLoop {
	return &verbsLoop{verbsPair: newVerbsPair(t, mode, nil), box: make([]byte, 4000), sink: make([]byte, 8000)}
}

func (l *verbsLoop) round() int {
	must(l.t, l.b.PostRecv(l.now, l.qb, RecvRequest{Local: l.box}))
	must(l.t, l.b.PostRecv(l.now, l.qb, RecvRequest{}))
	for v := range numVerbs {
		w := WorkRequest{Verb: v, Local: l.sink, RemoteVA: memBase, RKey: l.key}
		switch v {
		case Send:
			w.Local = l.box
		case SendImmediate:
			continue
		case FetchAdd, CompareSwap:
			w.Local = l.sink[:8]
		}
		must(l.t, l.a.Post(l.now, l.qa, &w))
	}
	for range 80 { // a frame each 100 ns; the rig's own loop would allocate
		l.now += 100
		for _, p := range [2][2]*NIC{{l.a, l.b}, {l.b, l.a}} {
			p[0].Advance(l.now)
			p[1].Receive(l.now, 0, l.air[:p[0].Transmit(l.now, 0, l.air[:])])
		}
	}
	l.b.TakeCompletions(l.out[:])
	return l.a.TakeCompletions(l.out[:])
}

func TestOperationsAllocateNothing(t *testing.T) {
	for _, mode := range verbsModes {
		l := newVerbsLoop(t, mode)
		for range 50 {
			l.round()
		}
		if n := testing.AllocsPerRun(20, func() {
			if k := l.round(); k != 6 {
				t.Fatalf("%d of 6 operations complete", k)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations for six operations", mode, n)
		}
	}
}

// The requester's and the responder's share of a Write, per packet.
func BenchmarkVerbsWritePacket(b *testing.B) {
	d := newDesk(b, transport.IRN, nil)
	data := make([]byte, 64_000)
	var hdr [64]byte
	var p packet
	for i := 0; i < b.N; {
		must(b, d.req.post(0, &WorkRequest{Verb: Write, Local: data, RemoteVA: memBase, RKey: d.key}))
		w := d.req.issue()
		for q := w.first; q < w.first+w.packets; q++ {
			out := d.req.packet(d.req.issued-1, q)
			n := out.encode(hdr[:], false, 1000, 0)
			p.decode(hdr[:n], out.op, false, 1000)
			p.seq, p.size, p.payload = q, out.size, out.payload
			d.rsp.request(0, &d.rx, &p)
			i++
		}
		d.req.acknowledged(d.rx.Expected())
		if d.req.complete() == nil {
			b.Fatal("not complete")
		}
	}
}
