package clocksync

import (
	"strings"
	"testing"

	"gswitch/frame"
)

const us = frame.Microsecond

// device returns a device at some depth that has just received from its parent.
func device(t *testing.T, base, backup frame.Time, timeout2 frame.Time) *Device {
	t.Helper()
	d := NewDevice(7)
	c := Config{Accept: 0, Backup: 1, EpsBase: base, EpsBackup: backup, Interval: DefaultInterval, Timeout1: DefaultTimeout1, Timeout2: timeout2}
	if err := d.Configure(0, c); err != nil {
		t.Fatal(err)
	}
	d.Delay(0).Fix(0)
	d.Delay(1).Fix(0)
	if !d.Sync(0, 0, 0, Message{Root: 1}) {
		t.Fatal("the first message was not taken")
	}
	return d
}

func at(t *testing.T, d *Device, now, want frame.Time) {
	t.Helper()
	if got := d.Uncertainty(now); got != want {
		t.Errorf("at %v: an uncertainty of %d ns, want %d", now.Duration(), got, want)
	}
}

func TestFourStamps(t *testing.T) {
	if delay, offset := Offset(1000, 1730, 2000, 2400); delay != 565 || offset != -165 {
		t.Errorf("a delay of %d, an offset of %d", delay, offset)
	}
}

// Equation 3.1 at depths 5 and 3.
func TestUncertainty(t *testing.T) {
	d := device(t, 25, 30, 0)
	at(t, d, 0, 25)
	at(t, d, 45*us, 34)
	at(t, d, 90*us, 43)
	d = device(t, 15, 30, 0)
	at(t, d, 0, 15)
	at(t, d, 45*us, 24)
	at(t, d, 90*us, 33)
	if NewDevice(1).Uncertainty(5) != Forever {
		t.Error("a clock that was never set is certain")
	}
}

// A link fails just after a message, at a node of depth 3 whose second way has 6
// hops: the numbers of figures 3.19 and 3.21.
func TestLinkFails(t *testing.T) {
	d := device(t, 15, 30, 0)
	at(t, d, 185*us-1, 52)
	if d.Due() != 185*us || d.Advance(185*us) {
		t.Error("a timeout makes somebody send")
	}
	at(t, d, 185*us, 67)
	if d.State() != Holdover || d.Parent() != 1 || d.Counts.FlipTimeout != 1 {
		t.Errorf("%v, accepts port %d", d.State(), d.Parent())
	}
	if d.Sync(200*us, 200*us, 0, Message{Time: 200 * us, Root: 1, Sequence: 2}) {
		t.Error("the first parent is accepted again without the controller")
	}
	at(t, d, 270*us, 84)
	if !d.Sync(270*us, 270*us, 1, Message{Time: 270*us + 84, Root: 1, Sequence: 3}) {
		t.Error("the second parent is not accepted")
	}
	at(t, d, 270*us, 30)
	at(t, d, 360*us, 48)
	if d.State() != Backup {
		t.Errorf("state %v", d.State())
	}
	// The controller's new plan.
	if err := d.Configure(400*us, Config{Epoch: 1, Accept: 2, Backup: 1, EpsBase: 15, EpsBackup: 30, Interval: DefaultInterval, Timeout1: DefaultTimeout1}); err != nil {
		t.Fatal(err)
	}
	at(t, d, 400*us, 56)
	d.Delay(2).Fix(0)
	if !d.Sync(450*us, 450*us, 2, Message{Epoch: 1, Time: 450*us + 84, Root: 1}) || d.State() != Primary {
		t.Error("the new parent is not accepted")
	}
	at(t, d, 450*us, 15)
}

// The root fails: the backup root waits for both timeouts and takes over.
func TestRootFails(t *testing.T) {
	d := device(t, 5, 30, DefaultTimeout2)
	d.Advance(185 * us)
	if d.Due() != 365*us {
		t.Fatalf("elects itself at %v", d.Due().Duration())
	}
	at(t, d, 365*us-1, 103)
	if !d.Advance(365*us) || d.State() != Root || d.Counts.Elected != 1 {
		t.Fatalf("state %v", d.State())
	}
	at(t, d, 365*us, 0)
	if m := d.Out(365*us + 10); m.Root != 7 || m.Depth != 0 || m.Time != d.At(365*us+10) {
		t.Errorf("%+v", m)
	}
	// It accepts no parent any more, or the loop would last.
	for port := range 2 {
		if d.Sync(400*us, 400*us, port, Message{Time: 400 * us, Root: 1}) || d.Sync(401*us, 401*us, port, Message{Time: 400 * us, Root: 7}) {
			t.Error("a root that takes a message")
		}
	}
	if d.Due() != 455*us || !d.Advance(455*us) || d.Advance(455*us) {
		t.Errorf("sends at %v", d.Due().Duration())
	}
	// It receives the root by its second parent in time: no election.
	d = device(t, 5, 30, DefaultTimeout2)
	d.Advance(185 * us)
	if !d.Sync(270*us, 270*us, 1, Message{Time: 270 * us, Root: 1}) || d.Advance(365*us) || d.State() != Backup {
		t.Errorf("state %v", d.State())
	}
}

// One lost message is nothing; after two the device turns, once.
func TestLostMessages(t *testing.T) {
	d := device(t, 15, 30, 0)
	d.Advance(179 * us)
	if !d.Sync(180*us, 180*us, 0, Message{Time: 180 * us, Root: 1}) || d.Counts.FlipTimeout != 0 {
		t.Error("one lost message made it turn")
	}
	for now := 180 * us; now < 2000*us; now += us {
		d.Advance(now)
	}
	if d.Counts.FlipTimeout != 1 || d.State() != Holdover {
		t.Errorf("turned %d times, %v", d.Counts.FlipTimeout, d.State())
	}
	at(t, d, 2000*us, 30+(2000-180)*us*200/1_000_000) // the bound grows and stays right
}

// Only a valid message of the accepted port ends the timeout.
func TestTimeout(t *testing.T) {
	d := device(t, 15, 30, 0)
	d.Sync(90*us, 90*us, 1, Message{Time: 90 * us, Root: 1})      // the second parent
	d.Sync(91*us, 91*us, 0, Message{Time: 91*us + 5000, Root: 1}) // cannot be
	d.Sync(92*us, 92*us, 0, Message{Time: 92 * us, Root: 99})     // another root
	d.Sync(93*us, 93*us, 250, Message{Time: 93 * us, Root: 1})    // a port that is not connected
	d.Delay(0).Response(1, 100*us, 0, 5)                          // not asked for
	if d.Advance(184*us) || d.Counts.FlipTimeout != 0 {
		t.Fatal("turned early")
	}
	d.Advance(185 * us)
	if d.Counts != (Counts{Valid: 1, Sent: 1, Ignored: 2, Invalid: 1, OtherRoot: 1, SecondRoot: 1, FlipTimeout: 1}) {
		t.Errorf("%+v", d.Counts)
	}
}

// Messages that cannot be: twice from the first parent, turn; twice from the second
// as well, the own clock is broken. A single damaged one is nothing.
func TestBrokenClocks(t *testing.T) {
	wrong := func(d *Device, now frame.Time, port int) {
		d.Sync(now, now, port, Message{Time: now + 10*us, Root: 1})
	}
	d := device(t, 15, 30, 0)
	wrong(d, 90*us, 0)
	if d.Parent() != 0 || !d.Sync(180*us, 180*us, 0, Message{Time: 180 * us, Root: 1}) {
		t.Fatal("one damaged message made it turn")
	}
	wrong(d, 270*us, 0)
	wrong(d, 271*us, 0)
	if d.Parent() != 1 || d.Counts.FlipInvalid != 1 {
		t.Fatalf("accepts port %d", d.Parent())
	}
	wrong(d, 300*us, 1)
	wrong(d, 400*us, 1)
	if d.State() != Evicted || d.Uncertainty(400*us) != Forever || d.Due() != frame.Never {
		t.Errorf("%v, uncertainty %d", d.State(), d.Uncertainty(400*us))
	}
	if _, known := d.Lead(); known {
		t.Error("an evicted clock is read")
	}
	// A host with one link cannot know who is broken.
	leaf := NewDevice(9)
	if err := leaf.Configure(0, Config{Accept: 0, Backup: NoPort, Interval: 90 * us, Timeout1: 185 * us, EpsBase: 20, EpsBackup: 60}); err != nil {
		t.Fatal(err)
	}
	leaf.Delay(0).Fix(0)
	leaf.Sync(0, 0, 0, Message{Root: 1})
	leaf.Advance(185 * us)
	at(t, leaf, 185*us, 97)
	for i := range frame.Time(5) {
		wrong(leaf, (200+i)*us, 0)
	}
	if leaf.State() != Holdover || leaf.Parent() != 0 || !leaf.Sync(270*us, 270*us, 0, Message{Time: 270 * us, Root: 2}) {
		t.Errorf("%v", leaf.State())
	}
	at(t, leaf, 270*us, 60)
}

// An old root that comes back with an old plan moves no device.
func TestEpochs(t *testing.T) {
	d := device(t, 15, 30, 0)
	if !d.Sync(90*us, 90*us, 0, Message{Time: 90 * us, Root: 1, Epoch: 3}) {
		t.Fatal("a later plan's message was not taken while the controller is on its way")
	}
	if d.Sync(180*us, 180*us, 0, Message{Time: 180 * us, Root: 1, Epoch: 2}) || d.Counts.OtherRoot != 1 {
		t.Error("an earlier plan's message was taken")
	}
	if e, root, depth := d.Place(); e != 3 || root != 1 || depth != 1 {
		t.Errorf("epoch %d, root %d, depth %d", e, root, depth)
	}
	if d.Out(0).Epoch != 3 {
		t.Error("the epoch is not passed on")
	}
}

func TestDelay(t *testing.T) {
	var d Delay
	if _, ok := d.Value(); ok {
		t.Error("a delay without a measurement")
	}
	for i, rtt := range []frame.Time{1000, 1002, 5000, 1004, 998} {
		now := frame.Time(i) * us * 100
		seq := d.Request(now)
		if d.Response(seq+1, now+rtt+300, 0, 300) || !d.Response(seq, now+rtt+300, 0, 300) || d.Response(seq, now+rtt+300, 0, 300) {
			t.Fatal("a response counts once, and for its own request")
		}
	}
	if v, ok := d.Value(); !ok || v != 501 {
		t.Errorf("%d, want the median", v)
	}
	if seq := d.Request(0); d.Response(seq, 10, 0, 20) {
		t.Error("a response that left before the request came")
	}
}

// A link that is another length than before is not known to be either, until it has
// come up anew and was measured.
func TestDelayThatMoves(t *testing.T) {
	var d Delay
	measure := func(n int, rtt frame.Time) {
		for range n {
			if !d.Response(d.Request(0), rtt+300, 0, 300) {
				t.Fatal("a response that does not count")
			}
		}
	}
	want := func(moved frame.Time) {
		t.Helper()
		if d.Moved() != moved {
			v, _ := d.Value()
			t.Errorf("%d ns, moved by %d, want %d", v, d.Moved(), moved)
		}
	}
	want(0)
	measure(7, 1000)
	measure(1, 9000)
	measure(8, 1004)
	want(0) // within what stamps explain
	measure(3, 100)
	want(0) // the median
	measure(100, 100)
	want(450)
	measure(8, 2000)
	want(500)
	d.Renew()
	measure(7, 100)
	want(450)
	measure(1, 100)
	want(0)
	measure(8, 1000)
	want(450)
	d.Fix(3)
	want(0)
}

// Messages less certain than the clock say that the root is there, and do not set it;
// nor do those that come sooner than any root sends.
func TestUncertainAndEarlyMessages(t *testing.T) {
	d := device(t, 15, 30, 0)
	if !d.Sync(90*us, 90*us, 0, Message{Time: 90*us + 5000, Root: 1, Late: 5000}) || d.At(90*us) != 90*us {
		t.Errorf("the clock was set to %d", d.At(90*us))
	}
	at(t, d, 90*us, 33)
	if m := d.Out(90 * us); m.Late != 18 {
		t.Errorf("it is said to be late by %d ns", m.Late)
	}
	if d.Advance(185*us) || d.Counts.FlipTimeout != 0 {
		t.Error("it was not accepted")
	}
	if d.Sync(180*us, 180*us, 0, Message{Time: 180*us + 5000, Root: 1}) || d.Counts.Invalid != 1 {
		t.Error("the parent set the clock by what it said of itself")
	}
	if !d.Sync(200*us, 200*us, 0, Message{Time: 200*us + 20, Root: 1}) || d.At(200*us) != 200*us+20 {
		t.Errorf("it was not set by a certain one: %d", d.At(200*us))
	}
	// Nor by later plans, each of which would be the first message of its own.
	for i := range frame.Time(44) {
		now := (201 + i) * us
		if d.Sync(now, now, 0, Message{Time: d.At(now) + 10, Root: 1, Epoch: uint32(i)}) {
			t.Fatalf("a message %d us behind another was taken", i+1)
		}
	}
	if !d.Sync(245*us, 245*us, 0, Message{Time: 245 * us, Root: 1}) || d.Counts.Early != 44 {
		t.Errorf("%+v", d.Counts)
	}
}

func TestConfigErrors(t *testing.T) {
	good := Config{Accept: 1, Backup: 2, Interval: 90 * us, Timeout1: 185 * us}
	for want, change := range map[string]func(*Config){
		"":                     func(*Config) {},
		"the root accepts":     func(c *Config) { c.Root = true },
		"more than two":        func(c *Config) { c.Timeout1 = 180 * us },
		"more than four":       func(c *Config) { c.Timeout2 = 175 * us },
		"interval":             func(c *Config) { c.Interval = 0 },
		"there are 256":        func(c *Config) { c.Backup = 256 },
		"negative uncertainty": func(c *Config) { c.EpsBase = -1 },
	} {
		c := good
		change(&c)
		err := NewDevice(1).Configure(0, c)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// With messages by a timer of one's own a lost message is a gap, and a new plan does not put the
// timer back.
func TestByTimer(t *testing.T) {
	c := Config{Accept: 0, Backup: NoPort, EpsBase: 5, Interval: 100 * us, Free: true}
	d := NewDevice(7)
	d.Delay(0).Fix(0)
	if err := d.Configure(0, c); err != nil {
		t.Fatal(err)
	}
	d.Sync(0, 0, 0, Message{Root: 1})
	if d.Due() != 0 || !d.Advance(0) || d.Due() != 100*us {
		t.Fatalf("it sends next at %v", d.Due().Duration())
	}
	d.Sync(100*us, 100*us, 0, Message{Time: 100 * us, Root: 1})
	d.Advance(100 * us)
	c.Epoch = 1
	if err := d.Configure(150*us, c); err != nil || d.Due() != 200*us {
		t.Errorf("%v, it sends next at %v", err, d.Due().Duration())
	}
	d.Sync(280*us, 280*us, 0, Message{Time: 280 * us, Root: 1, Epoch: 1}) // of another parent
	if d.Counts.Gaps != 0 {
		t.Error("a gap, though nothing was lost")
	}
	d.Sync(480*us, 480*us, 0, Message{Time: 480 * us, Root: 1, Epoch: 1})
	d.cfg.Recovery = frame.Millisecond
	d.Sync(800*us, 800*us, 0, Message{Time: 800 * us, Root: 1, Epoch: 1})
	if d.Counts.Gaps != 1 || d.Counts.Impacted != 200*us {
		t.Errorf("%d gaps of %v", d.Counts.Gaps, d.Counts.Impacted.Duration())
	}
}

// The link to the root fails, and the backup root turns to its second parent. Later the root
// fails: it still takes over, behind both timeouts, and not sooner.
func TestTakeoverBehindATurn(t *testing.T) {
	d := device(t, 5, 30, DefaultTimeout2)
	d.Advance(185 * us)
	last := 270 * us
	for ; last < 1000*us; last += 90 * us {
		if d.Advance(last) || !d.Sync(last, last, 1, Message{Time: last, Root: 1}) {
			t.Fatalf("%+v", d.Counts)
		}
	}
	last -= 90 * us
	d.Advance(last + 185*us)
	if d.State() != Holdover || d.Due() != last+365*us || d.Advance(d.Due()-1) {
		t.Fatalf("%v, due at %v", d.State(), d.Due().Duration())
	}
	if d.Advance(last + 365*us); d.State() != Root || d.Counts.Elected != 1 {
		t.Errorf("%v, %+v", d.State(), d.Counts)
	}
}

// The second parent of the backup root has stopped sending, and the first one, which is the root,
// is back: it follows that one, and there is no second root. It never again follows one that
// has sent impossible values.
func TestTheRootIsBack(t *testing.T) {
	d := device(t, 5, 30, DefaultTimeout2)
	d.Advance(185 * us)
	d.Sync(270*us, 270*us, 1, Message{Time: 270 * us, Root: 1})
	for port, now := 0, 455*us; now < 5000*us; port, now = 1-port, now+315*us { // each in turn
		d.Advance(now)
		if d.State() != Holdover || d.Parent() != port || !d.Sync(now+130*us, now+130*us, port, Message{Time: now + 130*us, Root: 1}) || d.State() != Backup {
			t.Fatalf("at %v: %v, accepts port %d, %+v", now.Duration(), d.State(), d.Parent(), d.Counts)
		}
		at(t, d, now+130*us, 30)
	}
	if d.Counts.Elected != 0 {
		t.Errorf("%+v", d.Counts)
	}
	d = device(t, 5, 30, DefaultTimeout2)
	for i := range frame.Time(2) {
		d.Sync(90*us+i, 90*us+i, 0, Message{Time: 200 * us, Root: 1})
	}
	d.Sync(180*us, 180*us, 1, Message{Time: 180 * us, Root: 1})
	d.Advance(365 * us)
	if d.Parent() != 1 || d.State() != Holdover {
		t.Errorf("%v, accepts port %d", d.State(), d.Parent())
	}
	if d.Advance(545 * us); d.State() != Root {
		t.Errorf("%v", d.State())
	}
	// One that is back with what cannot be is left again: this clock is not the broken one.
	d = device(t, 5, 30, DefaultTimeout2)
	d.Advance(185 * us)
	d.Sync(270*us, 270*us, 1, Message{Time: 270 * us, Root: 1})
	d.Advance(455 * us)
	for i := range frame.Time(2) {
		d.Sync(460*us+i, 460*us+i, 0, Message{Time: 600 * us, Root: 1})
	}
	if d.Parent() != 1 || d.State() != Holdover || d.Counts.Evicted != 0 {
		t.Errorf("%v, accepts port %d, %+v", d.State(), d.Parent(), d.Counts)
	}
	if d.Advance(461*us + DefaultTimeout2); d.State() != Root {
		t.Errorf("%v", d.State())
	}
}
