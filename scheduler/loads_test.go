package scheduler

import (
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

func (l *Loads) below(q, t int, port uint16) bool {
	return l.Below[q][t][port/64]>>(port%64)&1 != 0
}

var tiers = []uint64{16 << 10, 64 << 10}

// A threshold is reached by as many bytes as it says, and a queue is burdened
// by what waits in those above it, not by what waits below.
func TestDrainThresholds(t *testing.T) {
	l := NewLoads(nil)
	d := NewDrain(l, 70, tiers, true, true)
	d.Add(3, 16383)
	if !l.below(3, 0, 70) {
		t.Error("16383 bytes are not below 16 KiB")
	}
	d.Add(3, 1)
	if l.below(3, 0, 70) || !l.below(3, 1, 70) {
		t.Error("16384 bytes are below 16 KiB, or not below 64 KiB")
	}
	if l.below(0, 0, 70) || !l.below(4, 0, 70) {
		t.Error("queue 0 does not feel what waits in queue 3, or queue 4 does")
	}
	if !l.below(3, 0, 71) {
		t.Error("another port is burdened")
	}
	d.Add(7, 1<<20) // over both at once
	if l.below(7, 0, 70) || l.below(7, 1, 70) || l.below(0, 1, 70) {
		t.Error("a megabyte is below a threshold")
	}
	d.Remove(7, 1<<20)
	if l.below(3, 0, 70) || !l.below(3, 1, 70) || !l.below(7, 0, 70) {
		t.Error("the levels are not those of before")
	}
	d.Remove(3, 1)
	if !l.below(3, 0, 70) || d.Bytes(0) != 16383 || l.Bytes[0][70] != 16383 || d.Bytes(4) != 0 {
		t.Errorf("16383 bytes wait, and %d, %d are counted", d.Bytes(0), l.Bytes[0][70])
	}
}

// Class 7 with 1 KB before it and 100 KB behind it is favoured, class 0 is not.
func TestDrainIgnoresLowerClasses(t *testing.T) {
	l := NewLoads(nil)
	d := NewDrain(l, 0, tiers, true, false)
	d.Add(7, 1000)
	d.Add(0, 100_000)
	if !l.below(7, 0, 0) || l.below(0, 0, 0) || l.below(0, 1, 0) {
		t.Error("class 7 does not stand above class 0")
	}
}

// Whatever comes, leaves, is flushed, taken from the middle: the account of a
// watched port is that of its queues, the bits are those of the account, and
// what another worker is shown is the same.
func TestDrainProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := frame.MustArena(256, 256, 64)
		pool := frame.NewDepot(a).NewPool(a)
		cfg := PortConfig{Rate: 1e9}
		cfg.Queues[2].Discipline = NewFlowFIFO(16)
		p := NewPort(a, cfg, 1)
		shown := NewShownLoads()
		l := NewLoads(shown)
		limits := []uint64{3000, 9000, 20_000}[:rapid.IntRange(0, 3).Draw(t, "limits")]
		port := rapid.Uint16Range(0, 255).Draw(t, "port")
		watch := rapid.IntRange(0, 30).Draw(t, "watch")
		now := frame.Time(0)
		var out [8]frame.Ref
		free := func(n int) {
			for _, r := range out[:n] {
				pool.Free(r)
			}
		}
		for step := range 80 {
			now += frame.Time(rapid.IntRange(0, 20_000).Draw(t, "wait"))
			if step == watch {
				p.Watch(NewDrain(l, port, limits, true, true))
			}
			switch q := rapid.IntRange(0, 7).Draw(t, "queue"); rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				free(p.FlushQueue(now, q, out[:2]))
			case 1:
				if r := p.ExtractFirst(now, 2, 5, func(frame.Ref) bool { return true }); r != frame.Nil {
					pool.Free(r)
				}
			case 2, 3:
				free(p.Dequeue(now, out[:]))
			default:
				r := pool.Alloc()
				m := a.Reset(r)
				m.Queue, m.Wire, m.Len, m.Hash = uint8(q), uint32(rapid.IntRange(60, 4000).Draw(t, "wire")), 60, 5
				p.Enqueue(now, r)
			}
			if step < watch {
				continue
			}
			for q := range NumQueues {
				want := p.DrainBytes(q)
				if got := p.drain.Bytes(q); got != want || l.Bytes[q][port] != want || shown.Bytes(uint8(q), port) != want {
					t.Fatalf("step %d: queue %d counts %d bytes (%d, %d shown), and %d wait", step, q, got, l.Bytes[q][port], shown.Bytes(uint8(q), port), want)
				}
				sets := l.Below[q]
				for i := range sets {
					sets[i] = [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
				}
				shown.Cut(uint8(q), sets[:], 4)
				if sets != l.Below[q] {
					t.Fatal("other workers are shown something else")
				}
				for i := range MaxTiers {
					if got := l.below(q, i, port); got != (i >= len(limits) || want < limits[i]) {
						t.Fatalf("step %d: queue %d with %d bytes is below threshold %d of %v: %v", step, q, want, i, limits, got)
					}
				}
			}
		}
	})
}

// What a worker showed of ports that it has no more is forgotten.
func TestShownLoadsAreForgotten(t *testing.T) {
	shown := NewShownLoads()
	NewDrain(NewLoads(shown), 3, tiers, true, true).Add(0, 20_000)
	sets := [][4]uint64{{8}}
	if shown.Cut(0, sets, 1); sets[0][0] != 0 {
		t.Fatal("a busy port is shown as idle")
	}
	NewLoads(shown)
	sets[0][0] = 8
	if shown.Cut(0, sets, 1); sets[0][0] != 8 || shown.Bytes(0, 3) != 0 {
		t.Error("a port of before is shown as busy")
	}
}

func TestDrainDoesNotAllocate(t *testing.T) {
	d := NewDrain(NewLoads(NewShownLoads()), 3, tiers, true, true)
	if n := testing.AllocsPerRun(100, func() { d.Add(7, 20_000); d.Remove(7, 20_000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDrain(b *testing.B) {
	for name, queue := range map[string]int{"lowest": 0, "highest": 7} {
		b.Run(name, func(b *testing.B) {
			d := NewDrain(NewLoads(nil), 3, tiers, true, false)
			for range b.N {
				d.Add(queue, 1500)
				d.Remove(queue, 1500)
			}
		})
	}
}

// What is announced counts where that is read, also what was announced
// before the first read.
func TestExpectedCounts(t *testing.T) {
	a := frame.MustArena(16, 256, 64)
	p := NewPort(a, PortConfig{}, 1)
	p.Expect(2, 10_000)
	early := NewDrain(NewLoads(nil), 1, tiers, true, false)
	early.CountExpected()
	p.Watch(early)
	p.Expect(5, 6384)
	if early.Bytes(2) != 16_384 || early.Bytes(5) != 6384 || early.loads.below(1, 0, 1) {
		t.Errorf("%d, %d bytes are counted", early.Bytes(2), early.Bytes(5))
	}
	p.Expected(2, 10_000)
	plain := NewDrain(NewLoads(nil), 1, tiers, true, false)
	p.Watch(plain)
	p.Expect(0, 1000)
	p.Expected(5, 6384)
	if early.Bytes(0) != 6384 || plain.Bytes(0) != 0 {
		t.Errorf("%d, %d bytes are counted", early.Bytes(0), plain.Bytes(0))
	}
}
