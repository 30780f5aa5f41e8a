package hostnic

import (
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// A peer that means ill changes anything behind the IP header and seals it with
// a good ICRC: no panic, every frame is accounted for, no chunk is lost, and a
// queue pair that is opened afterwards works.
func TestSealedHostileFrames(t *testing.T) {
	v := newVictim(t, false)
	bths := make([]int, len(v.frames))
	parser := wire.NewParser(wire.NewHasher(1, false))
	for i, b := range v.frames {
		r := v.pool.New(b)
		parser.Parse(v.pool.Arena, []frame.Ref{r})
		bths[i] = wire.BTHOffset(v.pool.Meta(r), b)
		v.pool.Free(r)
	}
	rng := frame.NewRand(9)
	const n = 60_000
	whole := 0
	for range n {
		k := rng.Uint32n(uint32(len(v.frames)))
		b := append([]byte(nil), v.frames[k]...)
		first := 42 // UDP's payload
		if rng.Uint32n(2) == 0 && bths[k] != 0 {
			first = bths[k]
		}
		for range 1 + rng.Uint32n(4) {
			span := min(len(b), first+48) - first
			if span <= 0 {
				continue
			}
			at := first + int(rng.Uint32n(uint32(span)))
			switch rng.Uint32n(3) {
			case 0:
				b[at] ^= 1 << rng.Uint32n(8)
			case 1:
				b[at] = byte(rng.Uint64())
			case 2:
				b[at] = []byte{0, 1, 0x7f, 0x80, 0xff}[rng.Uint32n(5)]
			}
		}
		if bths[k] != 0 {
			wire.PutICRC(b, wire.EthernetLen, bths[k])
			whole++
		}
		v.b.Receive(v.now, 0, []frame.Ref{v.pool.New(b)})
		v.run(v.now + 100) // the link keeps up with what comes back
	}
	c := v.b.Counts()
	if got := total(v.b, v.now); got != c.RxFrames {
		t.Errorf("%d frames received, %d accounted for", c.RxFrames, got)
	}
	if bad := c.Drops[frame.BadICRC]; bad > n/2 {
		t.Errorf("%d of %d frames had a bad ICRC: the others were to be tested", bad, whole)
	}
	for _, q := range v.b.qps {
		if q.open {
			must(t, v.b.CloseQP(v.now, q.qpn))
		}
	}
	for _, q := range v.a.qps {
		if q.open {
			must(t, v.a.CloseQP(v.now, q.qpn))
		}
	}
	v.run(v.now + frame.Millisecond)
	take(v.a)
	take(v.b)
	qa, _ := v.connect(nil)
	must(t, v.a.SendMessage(v.now, qa, 50_000, 7))
	v.run(v.now + 5*frame.Millisecond)
	if d := take(v.b); len(d) != 1 || d[0].Bytes != 50_000 {
		t.Errorf("afterwards %+v arrived", d)
	}
	v.drained()
}
