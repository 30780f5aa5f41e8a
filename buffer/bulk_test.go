package buffer

import (
	"fmt"
	"reflect"
	"testing"

	"gswitch/frame"
)

// Trains of frames that are charged and given back together leave the same
// accounts as frames one by one, and whatever AdmitAll takes Admit would have
// taken.
func TestBulkIsOneByOne(t *testing.T) {
	together := 0
	for seed := uint64(0); seed < 100; seed++ {
		rng := frame.NewRand(seed)
		chunks := Chunks{}
		if seed%2 == 1 {
			chunks = Chunks{Bytes: 256 << (seed % 4), All: 900, Lossy: 700}
		}
		cfg := randomConfig(&rng, chunks)
		if seed%4 < 2 { // else most trains meet a reserve
			for p := range cfg.Ports {
				for q := range cfg.Ports[p].Queues {
					cfg.Ports[p].Queues[q].Reserve = 0
				}
			}
		}
		// The same frames, of two arenas.
		type half struct {
			b    *Buffer
			pool *frame.Pool
			held []frame.Ref
		}
		var halves [2]half
		for i := range halves {
			halves[i] = half{mustNew(t, cfg), frame.NewPool(frame.MustArena(4096, 256, 64)), nil}
		}
		for range 300 {
			if rng.Uint32n(5) < 3 {
				m := *meta(uint16(rng.Uint32n(3)), uint8(rng.Uint32n(3)), uint16(rng.Uint32n(3)), uint8(rng.Uint32n(2)), 0)
				if rng.Uint32n(8) == 0 {
					m.InPort = frame.NoPort
				}
				if rng.Uint32n(8) == 0 {
					m.Flags = frame.IsClone
				}
				n, lengths := 1+int(rng.Uint32n(64)), rng.Uint64()
				for i := range halves {
					h := &halves[i]
					var v []frame.Ref
					length := frame.NewRand(lengths)
					for range n {
						r := h.pool.Alloc()
						if r == frame.Nil {
							break
						}
						f := h.pool.Reset(r)
						f.InPort, f.Class, f.OutPort, f.Queue, f.Flags, f.Wire = m.InPort, m.Class, m.OutPort, m.Queue, m.Flags, 60+length.Uint32n(1455)
						v = append(v, r)
					}
					if i == 1 && len(v) > 0 && h.b.AdmitAll(h.pool.Arena, v) {
						together++
						h.held = append(h.held, v...)
						continue
					}
					for _, r := range v {
						if h.pool.Meta(r).Cost != 0 {
							t.Fatalf("seed %d: AdmitAll took none, and a frame has a cost", seed)
						}
						if h.b.Admit(h.pool.Meta(r)) == frame.Keep {
							h.held = append(h.held, r)
						} else {
							h.pool.Free(r)
						}
					}
				}
			} else if k := min(len(halves[0].held), int(rng.Uint32n(64))); k > 0 {
				one, all := &halves[0], &halves[1]
				charged := 0
				for _, r := range one.held[:k] {
					if one.pool.Meta(r).Cost != 0 {
						charged++
					}
					one.b.Release(one.pool.Meta(r))
				}
				if got := all.b.ReleaseAll(all.pool.Arena, all.held[:k]); got != charged {
					t.Fatalf("seed %d: %d frames were charged, not %d", seed, charged, got)
				}
				for i := range halves {
					for _, r := range halves[i].held[:k] {
						halves[i].pool.Free(r)
					}
					halves[i].held = halves[i].held[k:]
				}
			}
			if len(halves[0].held) != len(halves[1].held) {
				t.Fatalf("seed %d: %d frames are held one by one, %d together", seed, len(halves[0].held), len(halves[1].held))
			}
			for i, r := range halves[0].held {
				one, all := halves[0].pool.Meta(r), halves[1].pool.Meta(halves[1].held[i])
				if one.Cost != all.Cost || one.Pool != all.Pool || one.Flags != all.Flags {
					t.Fatalf("seed %d: frame %d: %+v one by one, %+v together", seed, i, one, all)
				}
			}
			one, all := reflect.ValueOf(*halves[0].b), reflect.ValueOf(*halves[1].b)
			for i := range one.NumField() {
				name, a, b := one.Type().Field(i).Name, one.Field(i), all.Field(i)
				if name != "cfg" && fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
					t.Fatalf("seed %d: %s one by one\n%+v\ntogether\n%+v", seed, name, a, b)
				}
			}
		}
	}
	if together < 1000 {
		t.Errorf("only %d trains were admitted together", together)
	}
}
