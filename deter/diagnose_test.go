package deter

import (
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/tcp"
)

// old is a stack of the time of the paper (Linux 4.4): no loss detection by time.
func old() tcp.Config {
	c := config()
	c.RACK, c.TailProbe, c.MinRTO, c.QuickACKs = false, false, 16*ms, 1
	return c
}

// diagnosed runs messages over a connection, one after the other, and says of each
// what went wrong.
func diagnosed(t *testing.T, cfg tcp.Config, fate func(from, k int) fate, sizes ...int) []Interval {
	t.Helper()
	w := newWires(t, cfg, false)
	w.fate = fate
	w.run(ms) // the handshake
	for _, n := range sizes {
		w.post(n)
		w.run(w.now + 5*frame.Second)
	}
	logs := w.logs()
	w.replayed(t, logs)
	d, err := Diagnose(logs, DefaultRules)
	if err != nil {
		t.Fatal(err)
	}
	return d.Intervals
}

func want(t *testing.T, v *Interval, c Cause, why string) Finding {
	t.Helper()
	for _, f := range v.Findings {
		if f.Cause == c && strings.Contains(f.Why, why) {
			return f
		}
	}
	t.Errorf("no %s with %q: %+v", c, why, v.Findings)
	return Finding{}
}

// data loses the k-th packets with data of the sender, from 0 on. Its first two
// packets are SYN and ACK.
func data(lost ...int) func(from, k int) fate {
	return func(from, k int) (f fate) {
		for _, l := range lost {
			f.lose = f.lose || from == 0 && k == l+2
		}
		return f
	}
}

// Nothing is found where nothing went wrong.
func TestNothingToFind(t *testing.T) {
	linux44 := old()
	linux44.MinRTO = 200 * ms
	for _, cfg := range []tcp.Config{config(), linux44} {
		v := diagnosed(t, cfg, nil, 1, 1000, 10_000, 100_000, 5_000_000)
		if len(v) != 5 {
			t.Fatalf("%d messages", len(v))
		}
		for i := range v {
			if len(v[i].Findings) != 0 || v[i].Open {
				t.Errorf("message %d: %+v", i, v[i])
			}
		}
	}
}

// The fifth of seven packets is lost, so that two duplicate acknowledgements
// come, and the timer.
func TestTooFewDuplicates(t *testing.T) {
	cfg := old()
	cfg.QuickACKs = 1000
	v := diagnosed(t, cfg, data(4), 7*1448)
	f := want(t, &v[0], RTO, "not enough duplicate acknowledgements: 2 of 3")
	if len(v[0].Findings) != 1 || f.Lasted < 15*ms || f.Lasted > 40*ms {
		t.Errorf("%+v", v[0].Findings)
	}
}

// A window that grows with each packet makes updates of duplicates.
func TestWindowUpdate(t *testing.T) {
	cfg := old()
	cfg.SACK, cfg.SlowWindow, cfg.ReceiveBuffer, cfg.MaxReceive = false, true, 10<<20, 10<<20
	v := diagnosed(t, cfg, data(1), 9*1448)
	want(t, &v[0], RTO, "window update")
	cfg.SlowWindow = false
	v = diagnosed(t, cfg, data(1), 9*1448)
	want(t, &v[0], FastRecovery, "3 duplicate")
}

// The last packet is lost; the retransmission is lost, too; its acknowledgement is.
func TestTail(t *testing.T) {
	v := diagnosed(t, old(), data(7), 8*1448)
	want(t, &v[0], TailDrop, "nothing behind it arrived")
	v = diagnosed(t, old(), data(7, 8), 8*1448)
	want(t, &v[0], TailDrop, "sent 2 times")
	v = diagnosed(t, old(), func(from, k int) fate { return fate{lose: from == 1 && k >= 3 && k < 5} }, 7*1448)
	want(t, &v[0], ACKDrop, "had arrived")
}

// The retransmission of the last packet is alone at the receiver, which holds its
// acknowledgement back for longer than the timer, which has doubled.
func TestHeldAcknowledgement(t *testing.T) {
	for _, c := range []struct {
		delayed frame.Time
		held    bool
	}{{40 * ms, true}, {ms, false}} {
		cfg := old()
		cfg.DelayedACK = c.delayed
		v := diagnosed(t, cfg, data(21), 22*1448)
		tail := want(t, &v[0], TailDrop, "")
		took := v[0].To - v[0].From
		if !c.held {
			if len(v[0].Findings) != 1 || took > 25*ms {
				t.Errorf("with acknowledgements after %v it took %v: %+v", c.delayed.Duration(), took.Duration(), v[0].Findings)
			}
			continue
		}
		f := want(t, &v[0], DelayedACK, "")
		second := want(t, &v[0], RTO, "not acknowledged yet")
		if gap := second.At + second.Lasted - (tail.At + tail.Lasted); gap < 31*ms || gap > 33*ms || f.Lasted < 30*ms {
			t.Errorf("%v between the two retransmissions, held for %v", gap.Duration(), f.Lasted.Duration())
		}
		if took < 45*ms {
			t.Errorf("it took %v", took.Duration())
		}
	}
}

// Reordering raises the threshold of duplicates, so that a loss with twenty behind it
// waits for the timer or the next request, and a bound on it prevents that.
func TestLateRecovery(t *testing.T) {
	for _, most := range []int{45, 0} {
		cfg := old()
		cfg.MaxReordering, cfg.InitialWindow, cfg.MinRTO = most, 80, 200*ms
		fate := func(from, k int) (f fate) {
			if from == 0 && k == 2 {
				f.late = 520 * us // behind some 42 others
			}
			f.lose = from == 0 && k == 2+60+30
			return f
		}
		w := newWires(t, cfg, false)
		w.fate, w.delay = fate, ms
		w.run(10 * ms)
		w.post(60 * 1448)
		w.run(1000 * ms)
		w.count[0] = 2 + 60 // whatever was sent again
		w.post(51 * 1448)   // twenty behind the loss
		w.run(w.now + 50*ms)
		w.post(40 * 1448) // the next request
		w.run(w.now + 5*frame.Second)
		d, err := Diagnose(w.logs(), DefaultRules)
		if err != nil {
			t.Fatal(err)
		}
		if most > 0 {
			want(t, &d.Intervals[1], LateRecovery, "raised it to")
			if w.stacks[0].Conn(w.ends[0]).Stats.Timeouts != 0 {
				t.Error("the next request did not save it")
			}
		} else {
			want(t, &d.Intervals[1], FastRecovery, "3 duplicate")
		}
	}
}

// An application that reads slowly closes the window.
func TestSlowReader(t *testing.T) {
	cfg := old()
	w := newSlow(t, cfg, 20_000_000)
	w.run(ms)
	w.post(2_000_000)
	w.run(20 * frame.Second)
	d, err := Diagnose(w.logs(), DefaultRules)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := d.Intervals[0].Main(); !ok || c != ZeroWindow {
		t.Errorf("%+v", d.Intervals[0].Findings)
	}
}

// A loss whose repair waits for a timeout leaves the window full of what came behind it:
// that the loss held data back, and not a slow reader.
func TestFullWindowBehindALoss(t *testing.T) {
	cfg := old()
	cfg.MinRTO, cfg.InitialWindow, cfg.ReceiveBuffer, cfg.MaxReceive = 200*ms, 80, 16*1448, 16*1448
	cfg.MaxReordering, cfg.DupThresh = 45, 45 // too few duplicates for a recovery
	v := diagnosed(t, cfg, data(2), 60*1448)
	want(t, &v[0], RTO, "not enough duplicate")
	for _, f := range v[0].Findings {
		if f.Cause == ZeroWindow {
			t.Errorf("%+v", f)
		}
	}
}

// Slow start and congestion are said of what is slow, if that is asked for.
func TestSlowWithoutFault(t *testing.T) {
	cfg := old()
	cfg.MinRTO = 200 * ms
	w := newWires(t, cfg, false)
	w.delay = 10 * ms
	w.run(100 * ms)
	w.post(500_000)
	w.run(20 * frame.Second)
	logs := w.logs()
	for _, slow := range []frame.Time{0, 50 * ms, 10 * frame.Second} {
		r := DefaultRules
		r.Slow = slow
		d, err := Diagnose(logs, r)
		if err != nil {
			t.Fatal(err)
		}
		c, ok := d.Intervals[0].Main()
		if ok != (slow == 50*ms) || ok && c != InSlowStart {
			t.Errorf("slow from %v on: %v %v", slow.Duration(), c, ok)
		}
	}
}
