package hostnic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/transport"
)

// verbsModes are the transports that RDMA operations are tested over.
var verbsModes = []*transport.Kind{transport.GoBackN, transport.IRN, transport.IRNGoBackN, transport.IRNNoSACK, transport.TCP}

func verbsTransport(m *transport.Kind) transport.Config {
	return transport.Config{Recovery: m, RTOHigh: 50 * frame.Microsecond, RTOLow: 20 * frame.Microsecond, N: 3, Cap: 60, NakInterval: 20 * frame.Microsecond}
}

// verbsPair is two NICs with real frames and a connection for RDMA
// operations, and memory of b that a may reach.
type verbsPair struct {
	*pair
	qa, qb uint32
	mem    []byte
	region uint32 // the key of mem at host b
	key    uint32 // by which host a reaches it
	next   uint64 // id of the next operation
}

const memBase = 0x7f0000000000

func newVerbsPair(t testing.TB, mode *transport.Kind, change func(c *VerbsConfig)) *verbsPair {
	g := newRig(t, 4096, 2048)
	x := &verbsPair{pair: newPairOn(t, g, func(_ int, c *Config) { c.Virtual = false }), mem: make([]byte, 1<<20)}
	x.qa, x.qb = x.connect(func(c *QPConfig) {
		c.Transport = verbsTransport(mode)
		c.InitialPSN = 0xfffff0 // wraps
		c.Verbs = &VerbsConfig{}
		if change != nil {
			change(c.Verbs)
		}
	})
	var err error
	x.region, err = x.b.Memory().Register(memBase, x.mem, RemoteWrite|RemoteRead|RemoteAtomic)
	must(t, err)
	x.grant()
	return x
}

// grant opens the memory of host b to the remote end of its queue pair.
func (x *verbsPair) grant() {
	x.t.Helper()
	var err error
	x.key, err = x.b.Grant(x.region, x.qb)
	must(x.t, err)
}

func (x *verbsPair) post(w WorkRequest) {
	x.t.Helper()
	if w.RKey == 0 && w.Verb >= Write {
		w.RKey = x.key
	}
	w.ID = x.next
	x.next++
	must(x.t, x.a.Post(x.now, x.qa, &w))
}

func (x *verbsPair) recv(id uint64, buf []byte) {
	x.t.Helper()
	must(x.t, x.b.PostRecv(x.now, x.qb, RecvRequest{ID: id, Local: buf}))
}

// words writes completions in short.
func words(v []Completion) (s string) {
	for i, c := range v {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%v:%d", c.Op, c.ID)
		if c.HasImm {
			s += fmt.Sprintf("#%d", c.Imm)
		}
		if c.Status != StatusOK {
			s += fmt.Sprintf("!%d", c.Status)
		}
	}
	return s
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7+i>>8) + seed
	}
	return b
}

// Each operation once over a good cable: bytes, values, completions.
func TestOperations(t *testing.T) {
	for _, mode := range verbsModes {
		t.Run(mode.String(), func(t *testing.T) {
			x := newVerbsPair(t, mode, nil)
			send, write, imm := pattern(2500, 1), pattern(5000, 2), pattern(999, 3)
			box := [][]byte{make([]byte, 3000), make([]byte, 10), make([]byte, 0)}
			for i, b := range box {
				x.recv(uint64(100+i), b)
			}
			copy(x.mem[20000:], pattern(4321, 4))
			binary.LittleEndian.PutUint64(x.mem[8:], 40)
			read, was, swap, no := make([]byte, 4321), make([]byte, 8), make([]byte, 8), make([]byte, 8)
			x.post(WorkRequest{Verb: Send, Local: send})
			x.post(WorkRequest{Verb: Write, Local: write, RemoteVA: memBase + 1000})
			x.post(WorkRequest{Verb: Read, Local: read, RemoteVA: memBase + 20000})
			x.post(WorkRequest{Verb: SendImmediate, Local: []byte{9}, Imm: 77})
			x.post(WorkRequest{Verb: FetchAdd, Local: was, RemoteVA: memBase + 8, Operand: 2})
			x.post(WorkRequest{Verb: CompareSwap, Local: swap, RemoteVA: memBase + 8, Compare: 42, Operand: 99})
			x.post(WorkRequest{Verb: CompareSwap, Local: no, RemoteVA: memBase + 8, Compare: 42, Operand: 98})
			x.post(WorkRequest{Verb: WriteImmediate, Local: imm, RemoteVA: memBase + 9000, Imm: 78})
			x.post(WorkRequest{Verb: Write, RemoteVA: memBase})            // no bytes
			x.post(WorkRequest{Verb: Read, Local: nil, RemoteVA: memBase}) // no bytes
			x.run(frame.Millisecond)
			if got, want := words(take(x.a)), "send:0 write:1 read:2 send:3 atomic:4 atomic:5 atomic:6 write:7 write:8 read:9"; got != want {
				t.Errorf("requester: %s, want %s", got, want)
			}
			rx := take(x.b)
			if got, want := words(rx), "recv:100 recv:101#77 recv:102#78"; got != want {
				t.Errorf("responder: %s, want %s", got, want)
			} else if rx[0].Bytes != 2500 || rx[1].Bytes != 1 || rx[2].Bytes != 999 || !rx[2].Write {
				t.Errorf("%+v", rx)
			}
			for what, c := range map[string][2][]byte{
				"send":            {box[0][:2500], send},
				"send immediate":  {box[1][:1], {9}},
				"write":           {x.mem[1000:6000], write},
				"write immediate": {x.mem[9000:9999], imm},
				"read":            {read, pattern(4321, 4)},
			} {
				if !bytes.Equal(c[0], c[1]) {
					t.Errorf("%s: other bytes arrived than were sent", what)
				}
			}
			le := binary.LittleEndian.Uint64
			if le(was) != 40 || le(swap) != 42 || le(no) != 99 || le(x.mem[8:]) != 99 {
				t.Errorf("atomics saw %d, %d, %d and left %d, want 40, 42, 99 and 99", le(was), le(swap), le(no), le(x.mem[8:]))
			}
			if x.a.Counts().Retransmissions+x.b.Counts().Retransmissions != 0 {
				t.Error("retransmissions without loss")
			}
			x.drained()
		})
	}
}

// Over a cable that loses, reorders and duplicates, the memory at the end is
// what the operations say, every one completes exactly once and in order, and
// no message is reported before its bytes are there.
func TestOperationsOverABadCable(t *testing.T) {
	for _, mode := range verbsModes {
		for seed := uint64(1); seed <= 6; seed++ {
			t.Run(fmt.Sprintf("%v/%d", mode, seed), func(t *testing.T) { badCable(t, mode, seed) })
		}
	}
}

func badCable(t *testing.T, mode *transport.Kind, seed uint64) {
	x := newVerbsPair(t, mode, nil)
	if seed%3 == 0 { // paced, with windows, telemetry in requests and responses
		must(t, x.a.CloseQP(0, x.qa))
		must(t, x.b.CloseQP(0, x.qb))
		x.qa, x.qb = x.connect(func(c *QPConfig) {
			c.Transport, c.Verbs = verbsTransport(mode), &VerbsConfig{MaxReads: 2}
			c.INT, c.CC, c.CCName = inband.HPCC, factory(t, "hpcc", nil), "hpcc"
		})
		x.grant()
	}
	rng := frame.NewRand(seed)
	x.lose = func(*frame.Meta, []byte) bool { return rng.Uint32n(100) < 4 }
	x.twice = func() bool { return rng.Uint32n(100) < 5 }
	if seed%2 == 0 {
		x.jitter = func() frame.Time { return frame.Time(rng.Uint32n(500)) }
	}
	const ops = 120
	want := make([]byte, len(x.mem)) // each operation has its own place
	var reads, boxes, sends [][]byte
	var atomics [][]byte
	var wantRecv []Completion
	at := uint64(64)
	for i := range ops {
		size := int([]uint32{0, 1, 999, 1000, 1001, 2000, rng.Uint32n(12000)}[rng.Uint32n(7)])
		data := pattern(size, byte(i))
		va := memBase + at
		switch v := Verb(rng.Uint32n(uint32(numVerbs))); v {
		case Send, SendImmediate:
			boxes, sends = append(boxes, make([]byte, size+int(rng.Uint32n(2)))), append(sends, data)
			x.recv(uint64(i), boxes[len(boxes)-1])
			wantRecv = append(wantRecv, Completion{ID: uint64(i), Bytes: uint64(size), HasImm: v == SendImmediate})
			x.post(WorkRequest{Verb: v, Local: data, Imm: uint32(i)})
		case Write, WriteImmediate:
			copy(want[at:], data)
			if v == WriteImmediate {
				x.recv(uint64(i), nil)
				wantRecv = append(wantRecv, Completion{ID: uint64(i), Bytes: uint64(size), HasImm: true, Write: true})
			}
			x.post(WorkRequest{Verb: v, Local: data, RemoteVA: va, Imm: uint32(i)})
		case Read:
			copy(x.mem[at:], data)
			copy(want[at:], data)
			reads = append(reads, make([]byte, size))
			x.post(WorkRequest{Verb: Read, Local: reads[len(reads)-1], RemoteVA: va})
			boxes, sends = append(boxes, reads[len(reads)-1]), append(sends, data)
		case FetchAdd, CompareSwap:
			was := make([]byte, 8)
			n := uint64(len(atomics))
			atomics = append(atomics, was)
			if v == FetchAdd {
				x.post(WorkRequest{Verb: v, Local: was, RemoteVA: memBase, Operand: 1})
			} else {
				x.post(WorkRequest{Verb: v, Local: was, RemoteVA: memBase, Compare: n, Operand: n + 1})
			}
		}
		at += uint64(size)
	}
	binary.LittleEndian.PutUint64(want, uint64(len(atomics)))
	x.run(frame.Second)

	tx, rx := take(x.a), take(x.b)
	if len(tx) != ops || len(rx) != len(wantRecv) {
		t.Fatalf("%d of %d operations and %d of %d receives completed", len(tx), ops, len(rx), len(wantRecv))
	}
	for i, c := range tx {
		if c.ID != uint64(i) || c.Status != StatusOK {
			t.Errorf("completion %d: %+v", i, c)
		}
	}
	for i, c := range rx {
		if w := wantRecv[i]; c.ID != w.ID || c.Bytes != w.Bytes || c.HasImm != w.HasImm || c.HasImm && c.Imm != uint32(w.ID) || c.Write != w.Write || c.Status != StatusOK {
			t.Errorf("receive %d: %+v, want %+v", i, c, w)
		}
	}
	if !bytes.Equal(x.mem, want) {
		t.Error("the memory written is not what was sent")
	}
	for i := range boxes {
		if !bytes.Equal(boxes[i][:len(sends[i])], sends[i]) {
			t.Errorf("buffer %d of %d bytes is not what was sent", i, len(sends[i]))
		}
	}
	for i, was := range atomics {
		if got := binary.LittleEndian.Uint64(was); got != uint64(i) {
			t.Errorf("atomic %d saw %d: each is executed once, in order", i, got)
		}
	}
	if x.a.Counts().Retransmissions == 0 || x.b.Counts().Retransmissions == 0 {
		t.Error("nothing was lost in one of the directions")
	}
	x.jitter, x.twice, x.lose = nil, nil, nil
	x.run(2 * frame.Second)
	x.drained()
}
