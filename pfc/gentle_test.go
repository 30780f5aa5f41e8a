package pfc_test

import (
	"testing"

	"gswitch/buffer"
	"gswitch/frame"
)

// fillUp runs models of Gentle Flow Control whose egress ports have any rate
// but never stop, and returns the most that a group held beyond Bm, and how
// many runs lost frames.
func fillUp(t *testing.T, runs uint64, span func(safe uint64) uint64) (beyond uint64, lossy int, deep float64) {
	for seed := range runs {
		m := newModelOf(t, seed, nil, 15, span)
		m.run(frame.Millisecond / 2)
		if m.lost() != 0 {
			lossy++
		}
		var s buffer.Snapshot
		m.buf.Snapshot(&s, false)
		cfg := m.buf.Config()
		for p := range m.links {
			for _, c := range []int{3, 4} {
				of := cfg.Ports[p].Groups[c].Span
				peak := s.Ports[p].Groups[c].HeadroomPeak
				if peak > of {
					beyond = max(beyond, peak-of)
				}
				deep = max(deep, float64(peak)/float64(of))
			}
		}
		m.sending = false
		for _, out := range m.outs { // what is still slowed would take for ever
			for c := range 8 {
				out.Slow(c, 0)
			}
		}
		for j := range m.outs {
			m.kickOut(j)
		}
		m.run(100 * frame.Second)
		if m.buf.Snapshot(&s, false); s.Held != 0 || m.pool.Available() != m.pool.Chunks() {
			t.Fatalf("seed %d: %d bytes held, %d of %d chunks free at the end", seed, s.Held, m.pool.Available(), m.pool.Chunks())
		}
		for i, l := range m.links {
			if m.buf.Stages(uint16(i)) != 0 || l.asks.XOFFSent() != 0 || l.far.Stage(3) != 0 || l.far.Stage(4) != 0 {
				t.Fatalf("seed %d: port %d stays slowed", seed, i)
			}
		}
	}
	return beyond, lossy, deep
}

// TestGentleIsLossless: with B1 = Bm - 2*C*tau nothing is ever lost, and what is
// held beyond Bm are a few frames, as long as the gaps between the last stages:
// the paper computes with fluids.
func TestGentleIsLossless(t *testing.T) {
	beyond, lossy, deep := fillUp(t, 60, nil)
	t.Logf("at most %d bytes beyond Bm; up to %.2f of Bm-B1 in use; %d of 60 runs lossy", beyond, deep, lossy)
	if lossy != 0 {
		t.Errorf("%d of 60 runs lose lossless frames", lossy)
	}
	if beyond > 3*mtu {
		t.Errorf("%d bytes beyond Bm, more than three frames", beyond)
	}
	if deep < 0.9 {
		t.Errorf("only %.2f of the stages in use: the test does not stress them", deep)
	}
}

// TestGentleSpanCounts: with an eighth of that span stages come too late.
func TestGentleSpanCounts(t *testing.T) {
	beyond, lossy, _ := fillUp(t, 30, func(safe uint64) uint64 { return safe / 8 })
	t.Logf("with an eighth of the span at most %d bytes beyond Bm; %d of 30 runs lossy", beyond, lossy)
	if beyond <= 3*mtu {
		t.Errorf("at most %d bytes beyond Bm with an eighth of the span", beyond)
	}
}
