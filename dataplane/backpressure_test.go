package dataplane

import (
	"testing"

	"gswitch/frame"
)

// fussy takes a number of vectors and no more.
type fussy struct {
	tester
	takes int
}

func (f *fussy) Full() bool { return f.takes == 0 }

func (f *fussy) Receive(now frame.Time, port uint16, v []frame.Ref) {
	f.takes--
	f.tester.Receive(now, port, v)
}

// What a node has no room for waits below it, and is neither lost nor counted
// as late; a worker with nothing else to do does not spin for it.
func TestBackpressure(t *testing.T) {
	e := mustEngine(t, Config{})
	w := e.Worker(0)
	from := &tester{pool: w.Pool(), size: 60}
	to := &fussy{tester: tester{pool: w.Pool()}, takes: 1}
	mustNode(t, e, 0, from)
	mustNode(t, e, 0, to)
	a := mustPort(t, e, 0, from, 0, PortSpec{Kind: Wire, Wire: "x", Name: "from"})
	b := mustPort(t, e, 0, to, 0, PortSpec{Kind: Wire, Wire: "x", Name: "to"})
	if err := e.Measure(a, b); err != nil {
		t.Fatal(err)
	}
	now := frame.Time(0)
	run := func(steps int) {
		for range steps {
			now += frame.Microsecond
			w.step(now)
			w.noteWakes(now)
		}
	}
	from.toSend = 200
	run(50)
	if to.received > MaxVector || to.received == 0 || to.takes != 0 {
		t.Fatalf("%d frames were taken of one vector", to.received)
	}
	if at := w.nextWake(now); at <= now {
		t.Error("frames for a node that is full keep the worker awake")
	}
	to.takes = 1000
	run(10)
	if s := e.Stats().Ports; to.received != 200 || s[1].RxDropped+s[0].TxDropped != 0 {
		t.Errorf("%d of 200 frames came: %+v", to.received, s)
	}
	if late := w.stats.Transit.Max; late > uint64(2*frame.Microsecond) {
		t.Errorf("what waited for the node counts as late: %d ns", late)
	}
}

// A function that is posted by a worker runs on another without waiting, and
// how late is counted.
func TestPost(t *testing.T) {
	e := mustEngine(t, Config{Workers: []WorkerConfig{{Poll: Sleep}, {Poll: Sleep}}})
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	var asked, ran frame.Time
	done := make(chan struct{})
	e.Worker(0).Do(func(now frame.Time) {
		asked = now
		if err := e.Worker(1).Post(now, func(at frame.Time) { ran = at; close(done) }); err != nil {
			t.Error(err)
		}
		// Its own mailbox is no trap either.
		if err := e.Worker(0).Post(now, func(frame.Time) {}); err != nil {
			t.Error(err)
		}
	})
	<-done
	if err := e.Worker(0).Do(func(frame.Time) {}); err != nil {
		t.Fatal(err)
	}
	for i, w := range e.Stats().Workers {
		if w.Lateness.Total() != 1 {
			t.Errorf("worker %d counted %d", i, w.Lateness.Total())
		}
		if i == 1 && (ran < asked || w.Lateness.Max != uint64(ran-asked)) {
			t.Errorf("asked for at %v, ran at %v, late by %d ns", asked, ran, w.Lateness.Max)
		}
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
	if e.Worker(0).Post(0, func(frame.Time) { t.Error("ran after the end") }) == nil {
		t.Error("posted after the end")
	}
}
