package verbs

import (
	"runtime"
	"sync"
	"testing"

	"gswitch/frame"
)

// A full queue has room for a completion as soon as Poll gave one room to post
// again, and not before it is done with the place.
func TestFullQueue(t *testing.T) {
	const posts = 200_000
	c := &CompletionQueue{ring: make([]Completion, 1), bell: make(chan struct{}, 1)}
	q := &QueuePair{cq: c}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range uint64(posts) {
			for q.sends.Load() != 0 {
				runtime.Gosched()
			}
			q.sends.Add(1)
			c.push(&Completion{WRID: i, QP: q})
		}
	})
	var out [1]Completion
	for i := uint64(0); i < posts; {
		if c.Poll(out[:]) == 0 {
			runtime.Gosched()
			continue
		}
		if out[0].WRID != i || out[0].QP != q {
			t.Fatalf("completion %d: %+v", i, out[0])
		}
		i++
	}
	wg.Wait()
}

// A call to dial or to close while the host is being closed returns an error.
func TestCloseAmidDials(t *testing.T) {
	for range 20 {
		d := newDuo(t, nil)
		d.listen(0, ListenConfig{})
		var begun, wg sync.WaitGroup
		for range 4 {
			begun.Add(1)
			wg.Go(func() {
				begun.Done()
				for {
					q, err := d.host[0].Dial(d.ctx, d.host[1].Addr(), QPConfig{})
					if err == ErrClosed {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					if err := q.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		begun.Wait()
		d.must(d.host[0].Close())
		wg.Wait()
	}
}

// Close returns to all its callers when the NIC is done with the memory, also
// if another goroutine closes already.
func TestClosesAtOnce(t *testing.T) {
	d := newDuo(t, nil)
	l, _ := d.listen(0, ListenConfig{})
	a, _ := d.connect(l, QPConfig{})
	busy, free, first := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_ = d.host[0].worker.Do(func(frame.Time) { close(busy); <-free })
	}()
	<-busy // the NIC gets to nothing
	go func() { first <- a.Close() }()
	for open := true; open; runtime.Gosched() {
		a.mu.Lock()
		open = !a.shutDown
		a.mu.Unlock()
	}
	second := make(chan error, 1)
	go func() { second <- a.Close() }()
	for range 1000 {
		runtime.Gosched()
	}
	select {
	case <-second:
		t.Error("closed while the NIC still has the queue pair")
	default:
	}
	close(free)
	d.must(<-first)
	if !t.Failed() {
		d.must(<-second)
	}
	<-a.Done()
}
