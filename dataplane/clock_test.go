package dataplane

import (
	"testing"
	"time"

	"gswitch/frame"
)

// The nodes' clock runs slower by the dilation, stands before Release, and
// never goes back.
func TestClock(t *testing.T) {
	var c clock
	if err := c.init(&Config{Dilation: 1000, Held: true}); err != nil {
		t.Fatal(err)
	}
	if at := c.slow(5 * time.Second); at != 0 || c.now() != 0 {
		t.Errorf("time is %d while it is held", at)
	}
	c.held.Store(int64(2 * time.Second))
	for _, k := range []struct {
		real time.Duration
		want frame.Time
	}{{2 * time.Second, 0}, {2*time.Second + 999, 0}, {2*time.Second + 1000, 1}, {3*time.Second - 1, 999_999}, {3 * time.Second, frame.Millisecond}} {
		if got := c.slow(k.real); got != k.want {
			t.Errorf("after %v it is %d, want %d", k.real, got, k.want)
		}
	}
	for _, k := range []struct {
		node frame.Time
		real int64
	}{{0, 0}, {1, 1000}, {frame.Second, 1000e9}, {frame.Never, int64(frame.Never)}, {frame.Never / 2, int64(frame.Never)}} {
		if got := c.real(k.node); got != k.real {
			t.Errorf("%d of the nodes takes %d, want %d", k.node, got, k.real)
		}
	}
	if got := c.local(999); got != 0 {
		t.Errorf("999 ns are %d to the nodes", got)
	}
}

// Spans of real time stay what they are, however slow the nodes' clock is.
func TestPace(t *testing.T) {
	for _, k := range []struct {
		dilation int64
		want     pace
	}{
		{0, pace{idle: 100 * frame.Microsecond, margin: 50 * frame.Microsecond, retry: 50 * frame.Microsecond, max: frame.Second}},
		{1000, pace{idle: 100, margin: 50, retry: 50, max: frame.Millisecond}},
		{MaxDilation, pace{idle: 0, margin: 0, retry: 1, max: frame.Microsecond}},
	} {
		e := mustEngine(t, Config{Dilation: k.dilation})
		p := e.Worker(0).pace
		if p.clock = nil; p != k.want {
			t.Errorf("dilation %d: %+v, want %+v", k.dilation, p, k.want)
		}
		if d := e.Dilation(); d != max(1, k.dilation) {
			t.Errorf("dilation %d is reported as %d", k.dilation, d)
		}
	}
	for _, bad := range []int64{-1, MaxDilation + 1} {
		if _, err := New(Config{Chunks: 64, Dilation: bad}); err == nil {
			t.Errorf("a dilation of %d is accepted", bad)
		}
	}
}

// A worker with a step sees everything that is due in its place, however late
// it is: the clock stands meanwhile.
func TestStep(t *testing.T) {
	e := mustEngine(t, Config{Dilation: 1000, Workers: []WorkerConfig{{Step: 20}}})
	w, c := e.Worker(0), &e.clock
	// As if so much real time had passed, and no more.
	pass := func(d time.Duration) { c.start = c.start.Add(-d) }
	w.last = w.now()
	before := w.stats.Stopped
	pass(5 * time.Millisecond) // 5000 ns of the node, with something to do
	now := w.now()
	if now != w.last+20 || w.stats.Stopped < before+4980 || w.stats.StoppedMax < 4980 {
		t.Errorf("from %d time went to %d, stood %d", w.last, now, w.stats.Stopped-before)
	}
	if at := e.Now(); at < now || at > now+frame.Time(time.Second/1000) {
		t.Errorf("the engine's time is %d, the worker's %d", at, now)
	}
	// Nothing is due for a while: time goes there at once, and not beyond.
	w.last, w.due = now, now+3000
	stood := w.stats.Stopped
	pass(4 * time.Millisecond)
	if got := w.now(); got != w.due || w.stats.Stopped <= stood {
		t.Errorf("time went to %d, next is due at %d", got, w.due)
	}
	if _, err := New(Config{Chunks: 64, Workers: []WorkerConfig{{Step: 20}, {}}}); err == nil {
		t.Error("a step beside another worker is accepted")
	}
}

// alarm is a node with a timer that is due every so often.
type alarm struct {
	every, next frame.Time
	rang        int
}

func (a *alarm) Receive(frame.Time, uint16, []frame.Ref)      {}
func (a *alarm) Transmit(frame.Time, uint16, []frame.Ref) int { return 0 }
func (a *alarm) SetLink(frame.Time, uint16, bool)             {}
func (a *alarm) Wake(frame.Time) frame.Time                   { return a.next }
func (a *alarm) Advance(now frame.Time) {
	if now >= a.next {
		a.next += a.every
		a.rang++
	}
}

// A worker of a dilated engine calls a node when its time has come: never
// more often than the slowed clock allows, and in time of the nodes.
func TestDilatedWakeups(t *testing.T) {
	for _, poll := range []PollMode{Adaptive, Spin, Sleep} {
		t.Run(poll.String(), func(t *testing.T) {
			e := mustEngine(t, Config{Dilation: 10_000, Held: true, Workers: []WorkerConfig{{Poll: poll}}})
			a := &alarm{every: 200, next: 200} // 2 ms of real time
			mustNode(t, e, 0, a)
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			e.Worker(0).Do(func(now frame.Time) {
				if now != 0 || a.rang != 0 {
					t.Errorf("time went on to %d while it was held", now)
				}
			})
			began := time.Now()
			e.Release()
			rang, at := 0, frame.Time(0)
			for rang < 10 {
				pause()
				e.Worker(0).Do(func(now frame.Time) { rang, at = a.rang, now })
			}
			took := time.Since(began)
			if at < 2000 || at > frame.Time(took/10_000)+1 {
				t.Errorf("%d rings by %d ns of the node, %v of real time", rang, at, took)
			}
			s := e.Stats().Workers[0]
			if s.Lateness.Total() == 0 || s.Lateness.Max > uint64(s.Running) {
				t.Errorf("lateness: %d, at most %d ns", s.Lateness.Total(), s.Lateness.Max)
			}
			if s.Running > frame.Time(time.Since(began)/10_000)+1 {
				t.Errorf("the worker ran for %v of the nodes' time", s.Running.Duration())
			}
		})
	}
}

// Halt leaves everything as it was, to be read and then stopped.
func TestHalt(t *testing.T) {
	e := mustEngine(t, Config{Workers: []WorkerConfig{{Poll: Spin}, {Poll: Sleep}}})
	a := &alarm{every: frame.Millisecond}
	mustNode(t, e, 0, a)
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	for rang := 0; rang < 3; {
		e.Worker(0).Do(func(frame.Time) { rang = a.rang })
	}
	e.Halt()
	e.Halt()
	loops := e.Stats().Workers[0].Loops
	rang := a.rang
	pause()
	if e.Stats().Workers[0].Loops != loops || a.rang != rang {
		t.Error("a worker runs on")
	}
	ran := false
	if err := e.Worker(1).Do(func(frame.Time) { ran = true }); err != nil || !ran {
		t.Errorf("between Halt and Stop: %v", err)
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
}
