package transport

import (
	"fmt"
	"strings"
	"testing"

	"gswitch/frame"
)

const us = frame.Microsecond

// irn is the paper's default case by its text, but for the cap.
func irn(cap uint32) *Config {
	return &Config{Recovery: IRN, Cap: cap, RTOLow: 100 * us, RTOHigh: 320 * us, N: 3, TextRules: true, RestartOnProgress: true}
}

// authors is the same as the authors' code has it.
func authors(cap uint32) *Config {
	c := irn(cap)
	c.TextRules, c.RestartOnProgress = false, false
	return c
}

// script drives a sender with a message of total packets and writes down what
// it sends after each event: "3" a new packet, "r3" a retransmission.
type script struct {
	t     *testing.T
	s     Sender
	total uint64
	now   frame.Time
	psn   uint32 // initial PSN: what goes to the sender has crossed 24 bits
}

func newScript(t *testing.T, cfg *Config, total uint64) *script {
	x := &script{t: t, total: total}
	x.s.Init(cfg)
	return x
}

func (x *script) fill() string {
	var out []string
	for {
		seq, rtx, ok := x.s.Peek(x.now, x.total)
		if !ok {
			return strings.Join(out, " ")
		}
		x.s.Sent(x.now, seq, 1000, rtx)
		out = append(out, fmt.Sprintf("%s%d", map[bool]string{true: "r"}[rtx], seq))
	}
}

// wire takes a sequence number through the 24 bits of a PSN.
func (x *script) wire(seq uint64) uint64 {
	psn := (uint32(seq) + x.psn) & 0xffffff
	return Unwrap(x.s.Cum(), psn-x.psn)
}

func (x *script) want(event, want string) {
	x.t.Helper()
	if got := x.fill(); got != want {
		x.t.Errorf("%s: sends %q, want %q", event, got, want)
	}
}

func (x *script) ack(c uint64, want string) AckResult {
	x.t.Helper()
	r := x.s.Ack(x.now, Ack{Cum: x.wire(c)})
	x.want(fmt.Sprintf("ACK(%d)", c), want)
	return *r
}

func (x *script) nack(c, sack uint64, want string) AckResult {
	x.t.Helper()
	r := x.s.Ack(x.now, Ack{NAK: true, Cum: x.wire(c), Sack: x.wire(sack)})
	x.want(fmt.Sprintf("NACK(%d,%d)", c, sack), want)
	return *r
}

// timeout lets the time run to the next deadline, which must be at.
func (x *script) timeout(at frame.Time, entered bool, want string) {
	x.t.Helper()
	if d := x.s.Deadline(); d != at {
		x.t.Errorf("the deadline is %v, want %v", d.Duration(), at.Duration())
	}
	x.now = at
	if got := x.s.Timeout(at); got != entered {
		x.t.Errorf("at %v: timeout %v, want %v", at.Duration(), got, entered)
	}
	x.want("timeout", want)
}

func (x *script) done(retransmissions uint64) {
	x.t.Helper()
	s := &x.s
	if s.Cum() != x.total || s.Next() != x.total || s.InRecovery() || s.BytesInFlight() != 0 || s.Deadline() != frame.Never {
		x.t.Errorf("not done: cum %d, next %d, recovery %v, %d bytes in flight, deadline %d", s.Cum(), s.Next(), s.InRecovery(), s.BytesInFlight(), s.Deadline())
	}
	if s.Retransmissions() != retransmissions {
		x.t.Errorf("%d retransmissions, want %d", s.Retransmissions(), retransmissions)
	}
}

// Packets 2 and 5 of ten are lost: two retransmissions, each once.
func TestTwoLosses(t *testing.T) {
	for _, psn := range []uint32{0, 1<<24 - 5} { // the second wraps within the message
		x := newScript(t, irn(8), 10)
		x.psn = psn
		x.want("start", "0 1 2 3 4 5 6 7")
		x.ack(1, "8")
		x.ack(2, "9")
		if r := x.nack(2, 3, "r2"); !r.EnteredRecovery {
			t.Error("the first NACK did not begin a recovery")
		}
		if x.s.recSeq != 9 {
			t.Errorf("recSeq %d, want 9", x.s.recSeq)
		}
		if r := x.nack(2, 4, ""); r.EnteredRecovery {
			t.Error("the second NACK began another recovery")
		}
		x.nack(2, 6, "r5")
		x.nack(2, 7, "")
		x.nack(2, 8, "")
		x.nack(2, 9, "")
		x.ack(5, "")
		if !x.s.InRecovery() {
			t.Error("the recovery ended before its last packet was acknowledged")
		}
		x.ack(10, "")
		x.done(2)
	}
}

func TestGoBackNSendsEverythingAgain(t *testing.T) {
	x := newScript(t, &Config{Recovery: GoBackN, RTOHigh: 320 * us}, 10)
	x.want("start", "0 1 2 3 4 5 6 7 8 9")
	x.ack(2, "")
	if r := x.nack(2, 0, "r2 r3 r4 r5 r6 r7 r8 r9"); !r.EnteredRecovery || r.RTT != 0 {
		t.Errorf("%+v", r)
	}
	x.ack(5, "")
	x.nack(5, 0, "r5 r6 r7 r8 r9") // 5 lost again
	x.nack(4, 0, "")               // overtaken
	x.ack(10, "")
	x.done(13)
}

// The retransmission of 2 is lost as well: only the timer notices.
func TestLostRetransmission(t *testing.T) {
	x := newScript(t, irn(8), 10)
	x.want("start", "0 1 2 3 4 5 6 7")
	x.ack(1, "8")
	x.ack(2, "9")
	x.nack(2, 3, "r2")
	x.nack(2, 4, "")
	x.nack(2, 6, "r5")
	for _, s := range []uint64{7, 8, 9, 5} {
		x.nack(2, s, "")
	}
	if x.s.InFlight() != 8 {
		t.Errorf("%d in flight: SACKed packets count", x.s.InFlight())
	}
	x.timeout(100*us, false, "")
	x.timeout(320*us, true, "r2")
	x.ack(10, "")
	x.done(3)
}

// The tail of three is lost. Nothing above is SACKed, so that the literal
// rule needs a timeout for each; partialAck needs one.
func TestTailLoss(t *testing.T) {
	x := newScript(t, irn(110), 10)
	x.want("start", "0 1 2 3 4 5 6 7 8 9")
	x.ack(7, "")
	x.timeout(100*us, true, "r7")
	x.ack(8, "")
	x.timeout(200*us, true, "r8")
	x.ack(9, "")
	x.timeout(300*us, true, "r9")
	x.ack(10, "")
	x.done(3)

	cfg := irn(110)
	cfg.PartialAck = true
	x = newScript(t, cfg, 10)
	x.want("start", "0 1 2 3 4 5 6 7 8 9")
	x.ack(7, "")
	x.timeout(100*us, true, "r7")
	x.ack(8, "r8")
	x.ack(9, "r9")
	x.ack(10, "")
	x.done(3)
}

// A partial acknowledgement does not repeat what this episode has repaired.
func TestPartialAckRepairsOnce(t *testing.T) {
	cfg := irn(110)
	cfg.PartialAck = true
	x := newScript(t, cfg, 10)
	x.fill()
	x.ack(2, "") // 2, 5 and 8 are lost, and the answers to all above but that to 6
	x.timeout(100*us, false, "")
	x.timeout(320*us, true, "r2")
	x.nack(2, 6, "r3 r4 r5")
	x.ack(5, "")
	x.ack(8, "r8")
	x.ack(10, "")
	x.done(5)
}

// All five are lost: 2 x RTO_high + 3 x RTO_low, without round trips.
func TestAllLost(t *testing.T) {
	x := newScript(t, irn(110), 5)
	x.want("start", "0 1 2 3 4")
	x.timeout(100*us, false, "")
	x.timeout(320*us, true, "r0")
	x.ack(1, "")
	x.timeout(420*us, false, "")
	x.timeout(640*us, true, "r1")
	x.ack(2, "")
	x.timeout(740*us, true, "r2")
	x.ack(3, "")
	x.timeout(840*us, true, "r3")
	x.ack(4, "")
	x.timeout(940*us, true, "r4")
	x.ack(5, "")
	x.done(5)

	x = newScript(t, irn(110), 1)
	x.want("start", "0")
	x.timeout(100*us, true, "r0")
	x.ack(1, "")
	x.done(1)
}

func TestTimerIsExtendedWhenItFires(t *testing.T) {
	x := newScript(t, irn(110), 4)
	x.want("start", "0 1 2 3")
	x.timeout(100*us, false, "")
	x.now = 250 * us
	x.ack(1, "")
	x.timeout(350*us, true, "r1")

	x = newScript(t, irn(110), 4)
	x.want("start", "0 1 2 3")
	x.timeout(100*us, false, "")
	x.timeout(320*us, true, "r0")
}

func TestNoTimerWithPFC(t *testing.T) {
	cfg := irn(4)
	cfg.RTOHigh, cfg.RTOLow = 0, 0
	x := newScript(t, cfg, 9)
	x.want("start", "0 1 2 3")
	if x.s.Deadline() != frame.Never || x.s.Timeout(frame.Second) {
		t.Error("a timer runs although it is switched off")
	}
}

// With cum stuck at c the last new packet is c + cap - 1, however many SACKs.
func TestCapCountsSACKedPackets(t *testing.T) {
	x := newScript(t, irn(8), 100)
	x.want("start", "0 1 2 3 4 5 6 7")
	x.nack(0, 1, "r0")
	for s := uint64(2); s < 8; s++ {
		x.nack(0, s, "")
	}
	x.ack(8, "8 9 10 11 12 13 14 15")
}

func TestStaleNACKChangesNothing(t *testing.T) {
	x := newScript(t, irn(8), 30)
	x.fill()
	x.ack(8, "8 9 10 11 12 13 14 15")
	x.ack(10, "16 17")
	before := x.s
	x.nack(2, 7, "")
	if x.s.Stats().StaleNaks != 1 {
		t.Error("the stale NACK was not counted")
	}
	before.stats, before.result = x.s.stats, x.s.result
	if fmt.Sprint(before) != fmt.Sprint(x.s) {
		t.Errorf("a stale NACK changed\n%v to\n%v", before, x.s)
	}
}

// Three packets above a gap must have arrived before it is a loss.
func TestNackThreshold(t *testing.T) {
	cfg := irn(16)
	cfg.NackThreshold = 3
	x := newScript(t, cfg, 12)
	x.want("start", "0 1 2 3 4 5 6 7 8 9 10 11")
	x.nack(0, 1, "")
	x.nack(0, 3, "")
	x.nack(0, 3, "") // the same one does not count twice
	if r := x.nack(0, 4, "r0"); !r.EnteredRecovery {
		t.Error("no recovery at the third")
	}
	x.nack(0, 5, "r2") // now three above 2 too
	x.ack(12, "")
	x.done(2)
}

// Without SACKs each cumulative step within the recovery shows the next hole.
func TestNoSACK(t *testing.T) {
	cfg := irn(16)
	cfg.Recovery = IRNNoSACK
	x := newScript(t, cfg, 10)
	x.want("start", "0 1 2 3 4 5 6 7 8 9")
	x.ack(2, "")
	x.nack(2, 2, "r2") // 2 and 5 lost
	x.nack(2, 2, "")
	x.nack(1, 1, "")
	x.ack(5, "r5")
	x.nack(2, 2, "")
	x.ack(10, "")
	x.done(2)
}

func TestIRNGoBackNKeepsTheCap(t *testing.T) {
	cfg := irn(4)
	cfg.Recovery = IRNGoBackN
	x := newScript(t, cfg, 10)
	x.want("start", "0 1 2 3")
	x.ack(1, "4")
	x.nack(1, 1, "r1 r2 r3 r4")
	x.timeout(100*us, false, "")
	x.timeout(320*us, true, "r1 r2 r3 r4")
	x.ack(5, "5 6 7 8")
}

// Each retransmission waits for the fetch, and new data fills the gap.
func TestRetransmitDelay(t *testing.T) {
	cfg := irn(8)
	cfg.RetransmitDelay = 2 * us
	x := newScript(t, cfg, 12)
	x.want("start", "0 1 2 3 4 5 6 7")
	x.ack(2, "8 9")
	x.nack(2, 3, "")
	x.now = 1 * us
	x.nack(2, 6, "")
	x.timeout(2*us, false, "r2")
	x.timeout(3*us, false, "r4 r5")
	x.want("later", "")
	x.now = 4 * us
	x.ack(5, "10 11")

	cfg = &Config{Recovery: GoBackN, RetransmitDelay: 2 * us}
	x = newScript(t, cfg, 3)
	x.want("start", "0 1 2")
	x.nack(1, 1, "")
	x.timeout(2*us, false, "r1 r2")
}

// A receiver that is not ready: whatever the recovery, all goes again, not before the
// time that it asked for, and what is reported of the first copies begins no
// recovery.
func TestRewind(t *testing.T) {
	for _, kind := range Kinds() {
		cfg := irn(8)
		cfg.Recovery, cfg.RTOLow = kind, 0
		x := newScript(t, cfg, 9)
		x.want("start", "0 1 2 3 4 5 6 7")
		x.ack(1, "8")
		x.s.Rewind(x.now, 20*us)
		x.want("held", "")
		if x.s.BytesInFlight() != 0 || x.s.InFlight() != 0 {
			t.Errorf("%v: %d bytes in flight", kind, x.s.BytesInFlight())
		}
		for s := uint64(2); kind.Keeps && s < 6; s++ {
			x.nack(1, s, "")
		}
		const all = "r1 r2 r3 r4 r5 r6 r7 r8"
		x.timeout(20*us, false, all)
		x.timeout(340*us, true, map[*Kind]string{GoBackN: all, IRN: "r1", IRNGoBackN: all, IRNNoSACK: "r1", TCP: "r1 r6 r7 r8", NewReno: all}[kind])
		x.s.Rewind(x.now, x.now)
		x.want("again", all)
		x.ack(9, "")
		x.s.Rewind(x.now, 10*frame.Second) // nothing is outstanding
		if x.s.Deadline() != frame.Never || x.s.BytesInFlight() != 0 {
			t.Errorf("%v: an idle sender was rewound", kind)
		}
	}
}
