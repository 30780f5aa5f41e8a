package hostnic

import (
	"errors"
	"slices"
	"testing"
)

// A queue pair has the number that is asked for, if its place is free, and the places before
// it are for others.
func TestNumberOfAQueuePair(t *testing.T) {
	p := newPair(t, nil)
	open := func(number uint32) (uint32, error) {
		c := QPConfig{RemoteAddr: p.b.cfg.Addr, RemoteMAC: p.b.cfg.MAC, Class: 3, Number: number}
		return p.a.OpenQP(0, &c)
	}
	first, err := open(0)
	must(t, err)
	at, _ := p.a.numbers.parts(first)
	size := uint32(1) << p.a.numbers.bits
	want := first + 7*size + 3 // the third place behind it, at its eighth use
	for _, wrong := range []uint32{first, first + size, at + 1} {
		if qpn, err := open(wrong); err == nil {
			t.Errorf("%#x was opened for %#x", qpn, wrong)
		}
	}
	if qpn, err := open(want); err != nil || qpn != want {
		t.Fatalf("%#x: %#x, %v", want, qpn, err)
	}
	if _, why := p.a.lookup(want); why != 0 {
		t.Errorf("%#x is not there: %v", want, why)
	}
	seen := map[uint32]bool{at: true, at + 3: true}
	for range 3 { // the two between, and one behind
		qpn, err := open(0)
		must(t, err)
		i, _ := p.a.numbers.parts(qpn)
		if seen[i] || i > at+4 {
			t.Errorf("%#x is at place %d", qpn, i)
		}
		seen[i] = true
	}
	must(t, p.a.CloseQP(0, want))
	if qpn, err := open(want - 2*size); err != nil || qpn != want-2*size { // an earlier use, again
		t.Errorf("%#x: %#x, %v", want-2*size, qpn, err)
	}
}

// The number that the next queue pair will have is known before, also while places are used
// again in an order that nobody can guess.
func TestNextNumber(t *testing.T) {
	for _, random := range []bool{false, true} {
		p := newPair(t, func(_ int, c *Config) { c.RandomNumbers, c.MaxQPs = random, 2 })
		var open []uint32
		for i := range 3000 { // more than a place has generations
			if len(open) == 2 {
				if _, err := p.a.NextQP(); !errors.Is(err, ErrQPs) {
					t.Fatalf("the third of two: %v", err)
				}
				must(t, p.a.CloseQP(0, open[i%2]))
				open = slices.Delete(open, i%2, i%2+1)
			}
			next, err := p.a.NextQP()
			must(t, err)
			c := QPConfig{RemoteAddr: p.b.cfg.Addr, RemoteMAC: p.b.cfg.MAC, Class: 3}
			if i%3 == 0 {
				c.Number = next
			}
			is, err := p.a.OpenQP(0, &c)
			if must(t, err); is != next {
				t.Fatalf("queue pair %d: %#x, not %#x", i, is, next)
			}
			open = append(open, is)
		}
	}
}
