package live

import (
	"testing"

	"gswitch/frame"
	"gswitch/sim"
)

// watch notes the times that a node is given, and answers by them.
type watch struct {
	frame.Stepper
	now, up, stamp, wake frame.Time
	arena                *frame.Arena
	out                  frame.Ref
}

func (w *watch) Receive(now frame.Time, _ uint16, v []frame.Ref) {
	w.now, w.stamp = now, w.arena.Meta(v[0]).Stamp
}

func (w *watch) Advance(now frame.Time)                   { w.now = now }
func (w *watch) SetLink(now frame.Time, _ uint16, _ bool) { w.up = now }
func (w *watch) Wake(now frame.Time) frame.Time           { w.now = now; return w.wake }
func (w *watch) Transmit(now frame.Time, _ uint16, out []frame.Ref) int {
	w.now = now
	out[0] = w.out
	m := w.arena.Meta(w.out)
	m.Depart, m.Span = now+500, 2000
	return 1
}

// A node with an oscillator of its own gets its own time from everything, and what it
// says of time is the engine's to all others.
func TestTimed(t *testing.T) {
	arena := frame.MustArena(16, 2048, 128)
	r := frame.NewPool(arena).New(make([]byte, 64))
	for _, drift := range []int64{0, 100_000, -100_000, 5_000_000} {
		osc := sim.NewOscillator(1_000_000, 9_000_000, drift)
		w := &watch{arena: arena, out: r}
		n := &timed{w, osc, arena}
		const at = 2_000_000 // a million nanoseconds behind 9,000,000
		local := frame.Time(10_000_000 + drift/1000)
		arena.Meta(r).Stamp = at - 1000
		n.Receive(at, 0, []frame.Ref{r})
		if w.now != local || w.stamp != osc.Local(at-1000) {
			t.Errorf("drift %d: a frame came at %d, stamped %d; want %d", drift, w.now, w.stamp, local)
		}
		w.now = 0
		if n.Advance(at); w.now != local {
			t.Errorf("drift %d: advanced at %d, want %d", drift, w.now, local)
		}
		if n.SetLink(at, 0, true); w.up != local {
			t.Errorf("drift %d: the link is up at %d, want %d", drift, w.up, local)
		}
		var out [1]frame.Ref
		if n.Transmit(at, 0, out[:]) != 1 {
			t.Fatal("nothing was sent")
		}
		m := arena.Meta(r)
		if begin, end := osc.Engine(local+500), osc.Engine(local+2500); m.Depart != begin || m.Depart+frame.Time(m.Span) != end {
			t.Errorf("drift %d: it leaves at %d and takes %d, want %d to %d", drift, m.Depart, m.Span, begin, end)
		}
		w.wake = local + 777
		if got := n.Wake(at); osc.Local(got) < w.wake || osc.Local(got-1) >= w.wake {
			t.Errorf("drift %d: it is woken at %d, when its time is %d, want %d", drift, got, osc.Local(got), w.wake)
		}
		w.wake = frame.Never
		if n.Wake(at) != frame.Never {
			t.Errorf("drift %d: it is woken though it does not want to be", drift)
		}
	}
}
