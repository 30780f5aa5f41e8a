package hostnic

import (
	"bytes"
	"testing"

	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// A hostile requester sends packets of any kind in any order: nothing panics,
// no byte outside of its region and its buffers changes, and what is kept for
// it stays bounded.
func FuzzHostileRequests(f *testing.F) {
	seed := func(mode int, ops ...WorkRequest) {
		d := newDesk(f, verbsModes[mode], nil)
		var in []byte
		for _, w := range ops {
			for _, p := range d.post(w) {
				var b [64]byte
				n := p.encode(b[:], d.rsp.inOrder, 1000, 0)
				in = append(in, p.op, byte(p.seq), byte(p.size>>2), byte(n))
				in = append(in, b[:n]...)
			}
		}
		f.Add(uint8(mode), in)
	}
	for mode := range verbsModes {
		seed(mode, WorkRequest{Verb: Send, Local: make([]byte, 2500)}, WorkRequest{Verb: Write, Local: make([]byte, 2500), RemoteVA: memBase})
		seed(mode, WorkRequest{Verb: Read, Bytes: 9000, RemoteVA: memBase}, WorkRequest{Verb: FetchAdd, RemoteVA: memBase, Operand: 1})
		seed(mode, WorkRequest{Verb: WriteImmediate, Local: make([]byte, 10), RemoteVA: memBase}, WorkRequest{Verb: SendImmediate}, WorkRequest{Verb: CompareSwap, RemoteVA: memBase})
	}
	f.Fuzz(func(t *testing.T, mode uint8, in []byte) {
		d := newDesk(t, verbsModes[int(mode)%len(verbsModes)], nil)
		secret := make([]byte, 3000)
		must(t, d.mem.Deregister(d.key))
		var err error
		d.key, err = d.mem.Register(memBase, secret[1000:2000], RemoteWrite|RemoteAtomic|RemoteRead)
		must(t, err)
		d.key, err = d.mem.grant(d.key, 0)
		must(t, err)
		box := make([]byte, 3000)
		d.rsp.rq.push(RecvRequest{Local: box[1000:2000:2000]})
		payload := bytes.Repeat([]byte{0xee}, 1020)
		var p packet
		for len(in) >= 4 {
			op, seq, size := in[0], uint32(in[1]), uint32(in[2])<<2
			head := in[4:min(len(in), 4+int(in[3]&63))]
			in = in[4+len(head):]
			if _, why := p.decode(head, op, d.rsp.inOrder, 1000); why != frame.Keep {
				continue
			}
			p.seq = transport.Unwrap(d.rx.Expected(), seq+uint32(d.rx.Expected())&^0xff)
			p.size = min(size, 1000)
			p.payload = payload[:p.size]
			if operationOf(op).family >= readResponse {
				if d.req.checkResponse(&p) {
					t.Fatal("a response was taken although nothing was asked for")
				}
				continue
			}
			before := d.rx.Expected()
			if _, syndrome, _ := d.rsp.request(0, &d.rx, &p); syndrome != 0 && d.rx.Expected() != before {
				t.Fatal("a refused packet was counted")
			}
			for d.rsp.rN > 8 { // answered, some time
				d.rsp.packet(d.rsp.response(0).first)
				d.rsp.acknowledged(d.rsp.response(0).end)
			}
			if len(d.rsp.waiting) > 64 || d.rsp.rN > maxResponses || len(d.rsp.done) > 1 {
				t.Fatalf("%d packets wait, %d responses, %d receives", len(d.rsp.waiting), d.rsp.rN, len(d.rsp.done))
			}
		}
		zero := make([]byte, 1000)
		for _, b := range [][]byte{secret[:1000], secret[2000:], box[:1000], box[2000:]} {
			if !bytes.Equal(b, zero) {
				t.Fatal("memory outside of the region changed")
			}
		}
	})
}

// Frames of an RDMA queue pair that were changed on the way, with a good
// ICRC, end as a counted drop, a refusal or an answer.
func TestTamperedFrames(t *testing.T) {
	for _, mode := range verbsModes {
		x := newVerbsPair(t, mode, func(c *VerbsConfig) { c.Retries, c.RNRRetries = 20, 20 })
		rng := frame.NewRand(11)
		x.lose = func(m *frame.Meta, b []byte) bool {
			if rng.Uint32n(4) == 0 {
				i := bthAt + int(rng.Uint32n(uint32(min(len(b)-bthAt-wire.ICRCLen, 48))))
				b[i] ^= 1 << rng.Uint32n(8)
				wire.PutICRC(b, wire.EthernetLen, bthAt)
			}
			return false
		}
		for i := range 200 {
			v := Verb(i % int(numVerbs))
			w := WorkRequest{Verb: v, Local: make([]byte, 3000), RemoteVA: memBase}
			if v >= FetchAdd {
				w.Local = w.Local[:8]
			}
			x.post(w)
			x.recv(uint64(i), make([]byte, 3000))
		}
		x.run(frame.Second)
		// Whatever happened to the connection, each operation ends once.
		seen := map[uint64]int{}
		for _, c := range take(x.a) {
			seen[c.ID]++
		}
		x.lose = nil
		must(t, x.a.CloseQP(x.now, x.qa))
		must(t, x.b.CloseQP(x.now, x.qb))
		for _, c := range take(x.a) {
			seen[c.ID]++
		}
		for i := range uint64(200) {
			if seen[i] != 1 {
				t.Errorf("%v: operation %d ended %d times", mode, i, seen[i])
			}
		}
		x.run(x.now + frame.Millisecond)
		x.drained()
	}
}
