package cc

import "testing"

// ackRound acknowledges a window frame by frame, while the sender keeps its
// window full.
func ackRound(a Algorithm, ack uint64) uint64 {
	w := uint64(a.Window()) / 1000 * 1000
	for end := ack + w; ack < end; {
		ack += 1000
		a.OnAck(&Feedback{Ack: ack, SndNxt: ack + uint64(a.Window()), Newly: 1000})
	}
	return ack
}

func TestNewRenoDoublesUntilALossThenGrowsByOneFrame(t *testing.T) {
	a := build(t, &tenGig, "newreno")
	if a.Window() != 10_000 || a.Rate() != 10e9 {
		t.Fatalf("starts with W %.0f R %.0f", a.Window(), a.Rate())
	}
	at := ackRound(a, 0)
	if a.Window() != 20_000 {
		t.Errorf("W %.0f after a round trip of slow start", a.Window())
	}
	at = ackRound(a, at)
	a.OnLoss(0, LossNAK)
	if a.Window() != 20_000 {
		t.Errorf("W %.0f after a loss at 40,000", a.Window())
	}
	at = ackRound(a, at)
	if w := a.Window(); w < 20_950 || w > 21_000 {
		t.Errorf("W %.0f after a round trip of congestion avoidance", w)
	}
	if a.OnLoss(0, LossTimeout); a.Window() != 1000 {
		t.Errorf("W %.0f after a timeout", a.Window())
	}
	for range 3 {
		at = ackRound(a, at)
	}
	if a.Window() != 8000 {
		t.Errorf("W %.0f three round trips after a timeout", a.Window())
	}
}

func TestAIMDStartsWithABDP(t *testing.T) {
	a := build(t, &tenGig, "aimd")
	if a.Window() != 25_000 {
		t.Fatalf("starts with W %.0f", a.Window())
	}
	a.OnLoss(0, LossNAK)
	if a.Window() != 12_500 {
		t.Errorf("W %.0f after a loss", a.Window())
	}
	if ackRound(a, 0); a.Window() < 13_400 || a.Window() > 13_500 {
		t.Errorf("W %.0f a round trip later", a.Window())
	}
	a.OnLoss(0, LossTimeout)
	for at, i := uint64(0), 0; i < 4; i++ {
		at = ackRound(a, at)
	}
	if a.Window() > 4800 {
		t.Errorf("W %.0f: slow start after a timeout", a.Window())
	}
}

func TestAIMDOptions(t *testing.T) {
	a := build(t, &tenGig, "aimd", "pace", "true", "initial", "12500B")
	if a.Rate() != 5e9 {
		t.Errorf("paced at %.0f, want W/T", a.Rate())
	}
	// A flow that does not fill its window does not get a larger one.
	for i := range uint64(100) {
		a.OnAck(&Feedback{Ack: (i + 1) * 1000, SndNxt: (i + 1) * 1000, Newly: 1000})
	}
	if a.Window() != 12_500 {
		t.Errorf("an application-limited flow has W %.0f", a.Window())
	}
	a = build(t, &tenGig, "aimd", "ecn", "true")
	a.OnAck(&Feedback{Ack: 1000, SndNxt: 26_000, Newly: 1000, CE: true})
	a.OnAck(&Feedback{Ack: 2000, SndNxt: 26_000, Newly: 1000, CE: true})
	if a.Window() < 12_500 || a.Window() > 12_600 {
		t.Errorf("W %.0f after marks within one window", a.Window())
	}
	a = build(t, &tenGig, "newreno", "max", "15kB")
	for at, i := uint64(0), 0; i < 20; i++ {
		at = ackRound(a, at)
	}
	if a.Window() != 15_000 {
		t.Errorf("W %.0f, want the largest", a.Window())
	}
}

func TestNoneKeepsItsWindow(t *testing.T) {
	for _, c := range []struct {
		option, value string
		w, r          float64
	}{{"window", "bdp", 25_000, 10e9}, {"window", "none", 0, 10e9}, {"bytes", "8kB", 8000, 10e9}, {"rate", "4Gbps", 25_000, 4e9}, {"rate", "40Gbps", 25_000, 10e9}} {
		a := build(t, &tenGig, "none", c.option, c.value)
		a.OnAck(&Feedback{Newly: 1, CE: true})
		a.OnLoss(0, LossTimeout)
		a.OnCNP(0)
		if a.Window() != c.w || a.Rate() != c.r {
			t.Errorf("%s=%s: W %.0f R %.0f", c.option, c.value, a.Window(), a.Rate())
		}
	}
}
