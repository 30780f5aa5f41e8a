package verbs

import (
	"sync"
	"testing"
)

// A shared completion queue never has more entries promised than it has, also
// while queue pairs come and go whose completions were not polled yet.
func TestSharedQueue(t *testing.T) {
	d := newDuo(t, nil)
	l, _ := d.listen(0, ListenConfig{})
	cq, err := d.host[0].NewCompletionQueue(8)
	d.must(err)
	cfg := QPConfig{SendDepth: 2, RecvDepth: 2, CQ: cq}
	var out [8]Completion
	for range 5 {
		a, _ := d.connect(l, cfg)
		b, _ := d.connect(l, cfg)
		if _, err := d.host[0].Dial(d.ctx, d.host[1].Addr(), cfg); err == nil {
			t.Fatal("a third queue pair was promised room that is not there")
		}
		d.must(a.PostRecv(1, nil))
		d.must(a.PostRecv(2, nil))
		d.must(a.Close()) // its two completions keep their places
		if cq.reserved != 6 {
			t.Fatalf("%d entries are promised", cq.reserved)
		}
		if n := cq.Poll(out[:]); n != 2 || out[0].WRID != 1 || out[1].Status != WRFlushError || out[0].QP != a {
			t.Fatalf("%d completions: %+v", n, out[:n])
		}
		d.must(b.Close())
		if cq.reserved != 0 {
			t.Fatalf("%d entries are promised to nobody", cq.reserved)
		}
	}
}

// Several goroutines wait at one queue, and none sleeps through a completion.
func TestManyWaiters(t *testing.T) {
	const waiters, posts = 8, 400
	d := newDuo(t, nil)
	l, _ := d.listen(8, ListenConfig{})
	a, _ := d.connect(l, QPConfig{})
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[uint64]int{}
	all := make(chan struct{})
	for range waiters {
		wg.Go(func() {
			var out [3]Completion
			for a.CQ().Wait(d.ctx) == nil {
				n := a.Poll(out[:])
				mu.Lock()
				for _, c := range out[:n] {
					if seen[c.WRID]++; len(seen) == posts {
						close(all)
					}
				}
				mu.Unlock()
			}
		})
	}
	for i := uint64(0); i < posts; {
		if err := a.Write(i, make([]byte, 8), a.Remote(), 0); err == nil {
			i++
		} else if err != ErrQueueFull {
			t.Fatal(err)
		}
	}
	select {
	case <-all:
	case <-d.ctx.Done():
		t.Errorf("%d of %d completions were seen", len(seen), posts)
	}
	d.must(d.host[0].Close()) // ends the waits
	wg.Wait()
	for id, n := range seen {
		if n != 1 {
			t.Errorf("completion %d was seen %d times", id, n)
		}
	}
}
