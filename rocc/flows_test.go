package rocc

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whatever comes and goes, the table holds exactly the flows that have a
// packet in the queue and those that have not been notified since their last one
// left, and each is notified once in a round. Some packets stand in order, so that
// their places say when they leave, and others are held.
func TestFlowsAreThoseInTheQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		max := 8
		f := NewFlows(max)
		type state struct {
			index  uint32
			frames int
		}
		type packet struct {
			flow uint64
			held bool
		}
		model := map[uint64]*state{}
		var queue []packet // head first
		full, left := uint64(0), uint64(0)
		hash := func(flow uint64) uint32 { return uint32(flow%3) * 16 } // few, so that they collide
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1, 2:
				p := packet{flow: rapid.Uint64Range(0, 11).Draw(t, "flow"), held: rapid.IntRange(0, 3).Draw(t, "held") == 0}
				s := model[p.flow]
				place := left + uint64(len(queue)) + 1
				if !p.held && f.Renew(hash(p.flow), Key{Ports: p.flow}, place) {
					if s == nil {
						t.Fatalf("flow %d is renewed and not there", p.flow)
					}
					s.frames++
					queue = append(queue, p)
					continue
				}
				if p.held {
					place = 0
				}
				i, fresh, ok := f.Enter(hash(p.flow), Key{Ports: p.flow}, place)
				if ok && p.held {
					f.Hold(i)
				}
				switch {
				case ok != (s != nil || len(model) < max):
					t.Fatalf("%d flows, and one more is taken: %v", len(model), ok)
				case !ok:
					full++
					continue
				case (fresh != nil) != (s == nil):
					t.Fatalf("flow %d is new: %v", p.flow, fresh != nil)
				case s == nil:
					s = &state{index: i}
					model[p.flow] = s
					fresh.MAC = p.flow
				case s.index != i:
					t.Fatalf("flow %d moved from %d to %d", p.flow, s.index, i)
				}
				s.frames++
				queue = append(queue, p)
			case 3, 4:
				if len(queue) > 0 {
					s := model[queue[0].flow]
					if queue[0].held {
						f.Leave(s.index)
					}
					s.frames--
					queue = queue[1:]
					left++
				}
			case 5: // an update
				notified := map[uint64]bool{}
				for range f.Len() {
					e := f.Next(left)
					if notified[e.MAC] || model[e.MAC] == nil {
						t.Fatalf("flow %d is notified twice, or unknown", e.MAC)
					}
					notified[e.MAC] = true
				}
				if len(notified) != len(model) {
					t.Fatalf("%d of %d flows were notified", len(notified), len(model))
				}
				for name, s := range model {
					if s.frames == 0 {
						delete(model, name)
					}
				}
			case 6: // those that are there stay
				max = rapid.IntRange(1, 40).Draw(t, "max")
				f.Resize(max)
			}
			if f.Len() != len(model) || f.Full != full {
				t.Fatalf("%d flows, want %d; %d refused, want %d", f.Len(), len(model), f.Full, full)
			}
		}
	})
}

// Where only some are notified in a period, all have their turn.
func TestFlowsTakeTurns(t *testing.T) {
	f := NewFlows(100)
	for i := range uint64(10) {
		_, e, _ := f.Enter(uint32(i), Key{Ports: i}, 1)
		e.MAC = i
	}
	var notified []uint64
	for range 20 {
		notified = append(notified, f.Next(0).MAC)
	}
	slices.Sort(notified)
	for i, m := range notified {
		if m != uint64(i/2) {
			t.Fatalf("notified are %v", notified)
		}
	}
}

func TestFlowsAllocateNothing(t *testing.T) {
	f := NewFlows(64)
	if n := testing.AllocsPerRun(100, func() {
		for i := range uint32(64) {
			n, _, _ := f.Enter(i*7, Key{Ports: uint64(i)}, 0)
			f.Hold(n)
			f.Leave(n)
		}
		for range f.Len() {
			f.Next(0)
		}
	}); n != 0 || f.Len() != 0 {
		t.Errorf("%v allocations, %d flows left", n, f.Len())
	}
}
