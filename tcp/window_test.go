package tcp

import (
	"testing"

	"gswitch/frame"
)

// closed is a sender whose peer has acknowledged all and names a window.
func closed(t *testing.T, cfg Config, window uint16) *vector {
	t.Helper()
	v := sender(t, cfg, thousand, 100_000)
	n := 1000 * len(v.drain())
	v.now += 10 * ms
	v.ack(n, window, Options{})
	v.silent("a small window")
	return v
}

// RFC 9293 section 3.8.6.2.1: a sender waits for more than a small window, but for no longer than
// a second, nor less than a tenth. That is no closed window.
func TestSmallWindow(t *testing.T) {
	for _, c := range []struct{ rto, want frame.Time }{{ms, 100 * ms}, {200 * ms, 200 * ms}, {5 * frame.Second, frame.Second}} {
		cfg := Default()
		cfg.MinRTO = c.rto
		v := closed(t, cfg, 500)
		for k := range 20 {
			from, una := v.now, v.c.nxt
			v.fire()
			if wait := v.now - from; wait != min(max(v.c.RTO(), 100*ms), frame.Second) || c.rto != 200*ms && wait != c.want {
				t.Fatalf("a least timeout of %v: %v until little is sent", c.rto.Duration(), wait.Duration())
			}
			s := v.next()
			if s.Len != 500 || s.Seq != v.c.wire(una) {
				t.Fatalf("%d: %d bytes from %d on", k, s.Len, s.Seq-v.c.wire(una))
			}
			v.silent("what there is room for")
			v.now += 10 * ms
			v.ack(int(v.c.nxt)-1, 500, Options{})
			v.silent("another small window")
		}
		if st := v.c.Stats; st.SmallWindows != 21 || st.ZeroWindows != 0 || st.Timeouts != 0 || st.Retransmitted != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// A window that opens a little while the sender asks is sent into after a second at most, however
// long it has asked; one that closes is asked for.
func TestSmallWindowAfterClosed(t *testing.T) {
	v := closed(t, Default(), 0)
	for range 6 {
		v.fire()
		if s := v.next(); s.Len != 0 {
			t.Fatalf("%d bytes into a closed window", s.Len)
		}
		v.ack(int(v.c.una)-1, 0, Options{})
	}
	from := v.now
	v.ack(int(v.c.una)-1, 400, Options{})
	v.silent("a small window")
	v.fire()
	if s := v.next(); s.Len != 400 || v.now-from > frame.Second {
		t.Errorf("%d bytes after %v", s.Len, (v.now - from).Duration())
	}
	v.now += 10 * ms
	v.ack(int(v.c.nxt)-1, 300, Options{})
	v.silent("a small window")
	v.ack(int(v.c.una)-1, 0, Options{})
	v.silent("a closed window")
	v.fire()
	if s := v.next(); s.Len != 0 || v.c.Stats.ZeroWindows != 2 || v.c.Stats.SmallWindows != 2 {
		t.Errorf("%d bytes into a closed window, %+v", s.Len, v.c.Stats)
	}
}

// Probes come ever more seldom (RFC 9293 section 3.8.6.1), and the timeout of data is none the longer.
func TestProbesBackOff(t *testing.T) {
	cfg := Default()
	cfg.TailProbe = false
	v := closed(t, cfg, 0)
	rto := v.c.RTO()
	want := rto
	for range 8 {
		from := v.now
		v.fire()
		if wait := v.now - from; wait != want {
			t.Fatalf("a probe after %v, want %v", wait.Duration(), want.Duration())
		}
		if s := v.next(); s.Len != 0 || s.Seq != v.c.wire(v.c.una-1) {
			t.Fatalf("probe %+v", s)
		}
		v.ack(int(v.c.una)-1, 0, Options{})
		v.silent("an answered probe")
		want = min(2*want, cfg.MaxRTO)
	}
	v.ack(int(v.c.una)-1, 60_000, Options{})
	if len(v.drain()) == 0 || v.c.RTO() != rto || v.c.Due() != v.now+rto {
		t.Errorf("after the window opened the timeout is %v and comes in %v, it was %v", v.c.RTO().Duration(), (v.c.Due() - v.now).Duration(), rto.Duration())
	}
}

// A connection to a peer that is gone behind a closed window ends after as many probes as retransmissions;
// one that answers is not.
func TestProbesWithoutAnswer(t *testing.T) {
	cfg := Default()
	cfg.Retries = 6
	v := closed(t, cfg, 0)
	for range 50 {
		v.fire()
		v.next()
		v.ack(int(v.c.una)-1, 0, Options{})
		v.silent("an answered probe")
	}
	if v.c.State() != Established {
		t.Fatalf("%v, %v: the peer answers", v.c.State(), v.c.Err())
	}
	probes := 0
	for v.c.State() != Closed {
		if v.fire(); len(v.drain()) > 0 {
			probes++
		}
		if probes > 100 {
			t.Fatal("nobody answers a hundred probes")
		}
	}
	if probes != cfg.Retries || v.c.Err() != ErrTimedOut {
		t.Errorf("%v after %d probes without an answer, want %d", v.c.Err(), probes, cfg.Retries)
	}
}

// RFC 5961 section 5: an acknowledgement older than any window is made up; what comes with it is
// not taken.
func TestOldAcknowledgement(t *testing.T) {
	for _, old := range []struct {
		back  int
		taken bool
	}{{0, true}, {60_000, true}, {60_001, false}, {1 << 30, false}} {
		v := sender(t, eager(), thousand, 0)
		for range 12 { // 120,000 bytes
			v.c.WriteLen(10_000)
			v.drain()
			v.now += 10 * ms
			v.ack(int(v.c.nxt)-1, 60_000, Options{})
			v.drain()
		}
		v.c.Receive(v.now, &Segment{Flags: ACK, Seq: v.mine, Ack: v.c.wire(v.c.una) - uint32(old.back), Window: 60_000, Len: 10, Data: make([]byte, 10)})
		if got := v.c.Readable() == 10; got != old.taken {
			t.Errorf("%d bytes of data with an acknowledgement %d bytes back", v.c.Readable(), old.back)
		}
		if s := v.next(); s.Flags != ACK || s.Ack != v.mine+uint32(v.c.Readable()) {
			t.Errorf("%d bytes back: %v, acknowledgement %d", old.back, s.Flags, s.Ack-v.mine)
		}
	}
}

// RFC 5961 section 7: of many segments that ask for a challenge within five seconds ten get one.
func TestChallenges(t *testing.T) {
	v := sender(t, Default(), thousand, 0)
	made := []Segment{
		{Flags: RST, Seq: v.mine + 10},
		{Flags: SYN, Seq: v.mine + 20},
		{Flags: ACK, Seq: v.mine, Ack: v.c.wire(1_000_000)},
	}
	for round := range 3 {
		sent := 0
		for i := range 30 {
			v.c.Receive(v.now, &made[i%len(made)])
			sent += len(v.drain())
		}
		if sent != 10 || v.c.Stats.Unchallenged != uint64(20*(1+round)) {
			t.Errorf("round %d: %d challenges, %d left out", round, sent, v.c.Stats.Unchallenged)
		}
		v.now += 5 * frame.Second
	}
	if v.c.State() != Established {
		t.Errorf("%v", v.c.State())
	}
}
