package policy

import "testing"

// A port with one queue counts no turns, unless the policy reads them.
func TestTurnsOfOneQueue(t *testing.T) {
	if p := compile(t, tailText); p.turns || len(p.served) > 0 {
		t.Error("turns of one queue are counted, which nothing reads")
	}
	v := newVector(t, `worn(q) = (q.schedState > 1, drop(1)).(q.currSize > q.size, drop(1)); q = Queue(3 pkts); q.congestion = worn;`)
	for _, name := range []string{"a", "b"} {
		if out := v.come(name, Packet{}); out != "" {
			t.Fatalf("%s drops %q", name, out)
		}
		v.take()
	}
	if out := v.come("c", Packet{}); out != "c" {
		t.Errorf("after two turns %q is dropped, want c", out)
	}
}
