package hostnic

import (
	"testing"

	"gswitch/frame"
)

// The wheel gives out what a plain list would, at the instants at which it is
// due, whatever is armed, moved and removed in between.
func TestWheelAgainstList(t *testing.T) {
	for seed := uint64(0); seed < 40; seed++ {
		rng := frame.NewRand(seed)
		const n = 50
		var w wheel
		due := make([]frame.Time, n)
		for i := range due {
			w.grow()
			due[i] = frame.Never
		}
		spans := []uint32{1, 64, 100, 5000, 300_000, 1 << 31}
		now := frame.Time(rng.Uint32n(1 << 30))
		for range 4000 {
			i := rng.Uint32n(n)
			switch rng.Uint32n(4) {
			case 0, 1:
				due[i] = now + frame.Time(rng.Uint32n(spans[rng.Uint32n(6)]))
				w.arm(i, due[i])
			case 2:
				due[i] = frame.Never
				if rng.Uint32n(2) == 0 {
					w.remove(i)
				} else {
					w.arm(i, frame.Never)
				}
			case 3:
				now += frame.Time(rng.Uint32n(spans[rng.Uint32n(6)]))
				for {
					i, ok := w.pop(now)
					if !ok {
						break
					}
					if due[i] > now {
						t.Fatalf("seed %d: timer %d came out at %d, due at %d", seed, i, now, due[i])
					}
					due[i] = frame.Never
				}
				for i, at := range due {
					if at <= now {
						t.Fatalf("seed %d: timer %d due at %d is still in the wheel at %d", seed, i, at, now)
					}
				}
			}
			least := frame.Never
			for i, at := range due {
				least = min(least, at)
				if w.armed(uint32(i)) != at {
					t.Fatalf("seed %d: timer %d is armed for %d, not %d", seed, i, w.armed(uint32(i)), at)
				}
			}
			if next := w.next(); next > least || least == frame.Never && next != frame.Never {
				t.Fatalf("seed %d: next is %d, the earliest %d", seed, next, least)
			}
		}
	}
}

// Without removals next is exact.
func TestWheelNextIsExact(t *testing.T) {
	var w wheel
	rng := frame.NewRand(3)
	for range 1000 {
		w.grow()
	}
	due := map[frame.Time]int{}
	for i := range uint32(1000) {
		at := frame.Time(rng.Uint32n(1_000_000))
		due[at]++
		w.arm(i, at)
	}
	steps := 0
	for now := w.next(); now != frame.Never; now = w.next() {
		for _, ok := w.pop(now); ok; _, ok = w.pop(now) {
			due[now]--
		}
		if left, known := due[now]; !known || left != 0 {
			t.Fatalf("at %d: %d timers left, or none was due", now, left)
		}
		delete(due, now)
		steps++
	}
	if len(due) != 0 {
		t.Fatalf("%d instants never came", len(due))
	}
}

// The ready set serves like a list that is gone through round and round.
func TestReadySetAgainstList(t *testing.T) {
	for _, n := range []int{1, 5, 64, 65, 5000, 300_000} {
		rng := frame.NewRand(uint64(n))
		s := readySet{burst: noNode}
		s.grow(n)
		in := make([]bool, n)
		count, last := 0, 0
		for range 3000 {
			i := int(rng.Uint32n(uint32(n)))
			if rng.Uint32n(2) == 0 && !in[i] {
				s.set(uint32(i))
				in[i] = true
				count++
			} else if in[i] {
				s.clear(uint32(i))
				in[i] = false
				count--
			}
			if s.empty() != (count == 0) {
				t.Fatalf("%d queue pairs, %d ready: empty is %v", n, count, s.empty())
			}
			if count == 0 || n > 10_000 && rng.Uint32n(100) != 0 {
				continue
			}
			want := (last + 1) % n
			for !in[want] {
				want = (want + 1) % n
			}
			if got := s.next(); int(got) != want {
				t.Fatalf("%d queue pairs: %d is next after %d, not %d", n, want, last, got)
			}
			last = want
			s.last = uint32(want)
		}
	}
}

func BenchmarkWheel(b *testing.B) {
	for _, n := range []uint32{1, 100, 10_000} {
		b.Run("timers="+itoa(n), func(b *testing.B) {
			var w wheel
			rng := frame.NewRand(1)
			for i := range n {
				w.grow()
				w.arm(i, frame.Time(rng.Uint32n(100*n)))
			}
			for b.Loop() {
				now := w.next()
				i, _ := w.pop(now)
				w.arm(i, now+frame.Time(rng.Uint32n(200*n)))
			}
		})
	}
}
