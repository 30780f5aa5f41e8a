package verbs

import (
	"fmt"
	"testing"

	"gswitch/dataplane"
	"gswitch/frame"
)

// Posting, polling and waiting allocate nothing, at any end and on the workers.
func TestAllocations(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates too")
	}
	d := newDuo(t, nil)
	l, _ := d.listen(1<<16, ListenConfig{})
	a, b := d.connect(l, QPConfig{})
	data, buf, word := make([]byte, 3000), make([]byte, 3000), make([]byte, 8)
	var out [8]Completion
	collect := func(q *QueuePair, n int) {
		for n > 0 {
			if err := q.CQ().Wait(d.ctx); err != nil {
				t.Fatal(err)
			}
			n -= q.Poll(out[:])
		}
	}
	round := func() {
		for _, err := range [...]error{b.PostRecv(1, buf), a.Send(2, data), a.Write(3, data, a.Remote(), 0), a.Read(4, data, a.Remote(), 0), a.FetchAdd(5, word, a.Remote(), 8, 1)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		collect(a, 4)
		collect(b, 1)
	}
	for range 500 { // until all rings have their length
		round()
	}
	if n := testing.AllocsPerRun(300, round); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A request through the ring, against Worker.Do: what it takes to bring one, or
// many, to a worker and to get its completion. Nothing is sent: the connection has
// ended, and requests are flushed.
func BenchmarkHandOver(b *testing.B) {
	open := func(b *testing.B) (*duo, *QueuePair) {
		d := newDuo(b, nil)
		l, _ := d.listen(1000, ListenConfig{})
		q, far := d.connect(l, QPConfig{})
		d.must(far.Close())
		<-q.Done()
		return d, q
	}
	for _, batch := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("ring/%d", batch), func(b *testing.B) {
			_, q := open(b)
			wr := make([]WorkRequest, batch)
			out := make([]Completion, batch)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if _, err := q.PostSend(wr); err != nil {
					b.Fatal(err)
				}
				for left := batch; left > 0; {
					left -= q.Poll(out)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/request")
		})
	}
	b.Run("do", func(b *testing.B) {
		d, _ := open(b)
		w := d.host[0].worker
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			if err := w.Do(func(frame.Time) {}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/request")
	})
}

// The post alone, as the program sees it, where the worker is awake.
func BenchmarkPost(b *testing.B) {
	d := newDuo(b, nil)
	l, _ := d.listen(1000, ListenConfig{})
	q, far := d.connect(l, QPConfig{SendDepth: 1 << 14})
	d.must(far.Close())
	<-q.Done()
	out := make([]Completion, 1<<14)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := q.Send(uint64(i), nil); err != nil {
			b.StopTimer()
			for q.Poll(out) > 0 {
			}
			b.StartTimer()
		}
	}
}

// One operation at a time.
func BenchmarkLatency(b *testing.B) {
	for _, mode := range []dataplane.PollMode{dataplane.Adaptive} {
		for name, wait := range map[string]bool{"poll": false, "wait": true} {
			b.Run(fmt.Sprintf("%v/%s", mode, name), func(b *testing.B) {
				d := newDuo(b, nil)
				latency(b, d, wait)
			})
		}
	}
}

func latency(b *testing.B, d *duo, wait bool) {
	l, _ := d.listen(1000, ListenConfig{})
	q, _ := d.connect(l, QPConfig{})
	data := make([]byte, 8)
	var out [1]Completion
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		d.must(q.Write(uint64(i), data, q.Remote(), 0))
		for q.Poll(out[:]) == 0 {
			if wait {
				d.must(q.CQ().Wait(d.ctx))
			}
		}
	}
}

// Many operations under way.
func BenchmarkThroughput(b *testing.B) {
	for _, size := range []int{64, 4096, 65536} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			d := newDuo(b, func(_ int, c *Config) { c.Rate = 400e9 })
			throughput(b, d, size)
		})
	}
}

func throughput(b *testing.B, d *duo, size int) {
	l, _ := d.listen(size, ListenConfig{})
	q, _ := d.connect(l, QPConfig{SendDepth: 64})
	wr := make([]WorkRequest, 64)
	data := make([]byte, size)
	for i := range wr {
		wr[i] = WorkRequest{Verb: Write, Local: data, RKey: q.Remote().RKey}
	}
	out := make([]Completion, 64)
	free := 64
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	for left, under := b.N, 0; left+under > 0; {
		n, err := q.PostSend(wr[:min(free, left)])
		d.must(err)
		left, under, free = left-n, under+n, free-n
		d.must(q.CQ().Wait(d.ctx))
		n = q.Poll(out)
		for i := range n {
			if out[i].Status != Success {
				b.Fatal(out[i].Err())
			}
		}
		under, free = under-n, free+n
	}
}
