package hostnic

import "testing"

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
