package dataplane

import (
	"runtime"
	"sync/atomic"
	"testing"

	"gswitch/frame"
)

// gate is a node that stands in the midst of a loop until it is opened.
type gate struct {
	tester
	entered, open chan struct{}
	closed        bool
}

func (g *gate) Advance(frame.Time) {
	if g.closed {
		g.closed = false
		close(g.entered)
		<-g.open
	}
}

// What is to be done between two loops is not done in the midst of the last.
func TestDoWhileHalting(t *testing.T) {
	e := mustEngine(t, Config{})
	w := e.Worker(0)
	g := &gate{entered: make(chan struct{}), open: make(chan struct{}), closed: true}
	mustNode(t, e, 0, g)
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	<-g.entered
	halted, done := make(chan struct{}), make(chan error)
	go func() { e.Halt(); close(halted) }()
	for !w.mail.pending.Load() {
		runtime.Gosched()
	}
	var ran atomic.Bool
	go func() { done <- w.Do(func(frame.Time) { ran.Store(true) }) }()
	for range 1000 {
		runtime.Gosched()
	}
	if ran.Load() {
		t.Error("it ran while the worker was in its loop")
	}
	close(g.open)
	if err := <-done; err != nil || !ran.Load() {
		t.Errorf("%v, ran %v", err, ran.Load())
	}
	<-halted
}
