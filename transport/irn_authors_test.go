package transport

import "testing"

// Packets 7 to 9 of ten are lost. By the authors' rules the timeout that finds
// the first finds them all; by the text each costs one.
func TestLostTailCostsOneTimeout(t *testing.T) {
	x := newScript(t, authors(110), 10)
	x.want("start", "0 1 2 3 4 5 6 7 8 9")
	x.ack(7, "")
	x.timeout(100*us, true, "r7")
	x.ack(8, "r8")
	x.ack(9, "r9")
	x.ack(10, "")
	x.done(3)

	x = newScript(t, irn(110), 10)
	x.fill()
	x.ack(7, "")
	x.timeout(100*us, true, "r7")
	x.ack(8, "")
	x.timeout(200*us, true, "r8")
	x.ack(9, "")
	x.timeout(300*us, true, "r9")
	x.ack(10, "")
	x.done(3)
}

// Packets 1 and 12 are lost, and 21, which was sent between the two
// retransmissions. The authors' recovery ends behind what was sent before the
// second, and the step to 21 sends that again; the text's ends at 21, and the
// NACK that follows begins another.
func TestRecoveryEndsBehindItsLastRetransmission(t *testing.T) {
	for _, text := range []bool{false, true} {
		cfg := authors(20)
		cfg.TextRules = text
		x := newScript(t, cfg, 30)
		x.want("start", "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19")
		x.ack(1, "20")
		x.nack(1, 2, "r1")
		x.nack(1, 3, "")
		if text {
			x.ack(5, "21 22 23 24")
		} else {
			x.ack(5, "r5 21 22 23 24") // a step within the recovery
		}
		x.nack(5, 13, map[bool]string{false: "r6 r7 r8 r9 r10 r11 r12", true: "r5 r6 r7 r8 r9 r10 r11 r12"}[text])
		if want := map[bool]uint64{false: 24, true: 20}[text]; x.s.recSeq != want {
			t.Errorf("text %v: the recovery ends behind %d, want %d", text, x.s.recSeq, want)
		}
		if text {
			x.ack(21, "25 26 27 28 29")
		} else {
			x.ack(21, "r21 25 26 27 28 29")
		}
		if x.s.InRecovery() == text {
			t.Errorf("text %v: in recovery %v", text, x.s.InRecovery())
		}
		if r := x.nack(21, 22, map[bool]string{true: "r21"}[text]); r.EnteredRecovery != text {
			t.Errorf("text %v: another recovery %v", text, r.EnteredRecovery)
		}
		x.ack(30, "")
		if x.s.InRecovery() || x.s.Cum() != 30 {
			t.Errorf("text %v: not over", text)
		}
	}
}

// An acknowledgement with nothing new keeps the timer from firing, unless
// only progress counts.
func TestEveryAcknowledgementRestartsTheTimer(t *testing.T) {
	for _, progress := range []bool{false, true} {
		cfg := authors(110)
		cfg.RestartOnProgress = progress
		x := newScript(t, cfg, 10)
		x.want("start", "0 1 2 3 4 5 6 7 8 9")
		x.now = 50 * us
		x.nack(0, 1, "r0")
		at := 150 * us
		if progress {
			at = 100 * us
		}
		if d := x.s.Deadline(); d != at {
			t.Errorf("only progress %v: the deadline is %v, want %v", progress, d.Duration(), at.Duration())
		}
		// One that is of nothing outstanding starts none.
		x.ack(10, "")
		x.s.Ack(x.now, Ack{Cum: 10})
		x.done(1)
	}
}
