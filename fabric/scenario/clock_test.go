package scenario

import "testing"

// Oscillators are within what the document says, on both sides of the truth, another one for
// each node and seed, and the same ones each time.
func TestOscillators(t *testing.T) {
	var doc Document
	doc.Clock.Oscillator = 100
	fast, slow := 0, 0
	seen := map[int64]bool{}
	for seed := range uint64(3) {
		a, b := Run{Doc: &doc, Seed: seed}, Run{Doc: &doc, Seed: seed}
		for node := range 400 {
			drift, step := a.Oscillator(node)
			if d, s := b.Oscillator(node); d != drift || s != step {
				t.Fatalf("seed %d, node %d: %d and %d", seed, node, drift, d)
			}
			if drift < -100_000 || drift > 100_000 || step < 0 {
				t.Errorf("seed %d, node %d: %d parts in 10^9, ahead by %d", seed, node, drift, step)
			}
			if seen[drift] = true; drift > 50_000 {
				fast++
			} else if drift < -50_000 {
				slow++
			}
		}
	}
	if fast < 200 || slow < 200 || len(seen) < 1100 {
		t.Errorf("of 1200 %d are fast and %d slow, %d different ones", fast, slow, len(seen))
	}
	doc.Clock.Oscillator = 0
	if drift, step := (&Run{Doc: &doc, Seed: 1}).Oscillator(3); drift != 0 || step != 0 {
		t.Errorf("%d parts in 10^9, ahead by %d, where all oscillators are right", drift, step)
	}
}
