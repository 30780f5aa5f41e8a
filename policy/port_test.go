package policy

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"gswitch/frame"
	"gswitch/scheduler"
)

// rig is a port whose queue 0 has a policy.
type rig struct {
	a    *frame.Arena
	pool *frame.Pool
	p    *scheduler.Port
	out  [64]frame.Ref
}

func queueConfig(text string) (c scheduler.PortConfig) {
	c.Rate, c.Overhead = 10e9, 24
	if text != "" {
		c.Queues[0].Order = Order{Text: text}
	}
	return c
}

func newRig(c scheduler.PortConfig) *rig {
	a := frame.MustArena(8192, 256, 32)
	return &rig{a: a, pool: frame.NewPool(a), p: scheduler.NewPort(a, c, 1)}
}

// put queues a frame and returns who goes for it.
func (g *rig) put(now frame.Time, set func(m *frame.Meta)) (gone []frame.Ref) {
	r := g.pool.Alloc()
	m := g.a.Reset(r)
	m.Wire = 1000
	set(m)
	g.p.Enqueue(now, r)
	for r := g.p.PushOut(now, 0); r != frame.Nil; r = g.p.PushOut(now, 0) {
		gone = append(gone, r)
	}
	return gone
}

// until lets everything leave that may before an instant, and calls left with it.
func (g *rig) until(now frame.Time, left func(r frame.Ref)) {
	for at := g.p.Wake(0); at < now; at = g.p.Wake(at) {
		for _, r := range g.out[:g.p.Dequeue(at, g.out[:])] {
			left(r)
		}
	}
}

const twoKeys = `classify value = p.dscp * 100 + p.class; q = Queue(100KB); q.admPrio = value; q.procPrio = shortest;`

// A policy in the place of another while frames wait, a hundred times under overload:
// all that came leaves or was given up by its own policy, packets of one value leave as
// they came, and the link rests for no longer than the worker was late.
func TestSwapLosesAndReordersNothing(t *testing.T) {
	texts := []string{`q = Queue(60KB);`, `q = Queue(60KB); q.admPrio = value; q.procPrio = value;`, twoKeys,
		`q[1..4] = Queue(20KB); out = Port(100%, q[1..4]); out.schedPrio = drr; out.queueSelect = class;`}
	for _, burst := range []frame.Time{0, 20 * frame.Microsecond} {
		c := queueConfig(texts[0])
		c.Burst = burst
		g := newRig(c)
		rng := frame.NewRand(3)
		now := frame.Time(0)
		came, left, dropped := 0, 0, 0
		began, rests := frame.Time(0), 0 // when the last frame began to leave
		last := map[uint8]uint16{}
		count := map[uint8]uint16{}
		take := func() {
			for n := g.p.Dequeue(now, g.out[:]); n > 0; n = g.p.Dequeue(now, g.out[:]) {
				for _, r := range g.out[:n] {
					m := g.a.Meta(r)
					if m.SrcPort <= last[m.DSCP] {
						t.Fatalf("burst %v: frame %d of value %d leaves behind %d", burst, m.SrcPort, m.DSCP, last[m.DSCP])
					}
					last[m.DSCP] = m.SrcPort
					// With a burst the port makes up for what its caller is late, at most 15
					// steps, but at a change, where it begins anew.
					if rest := m.Depart - began; burst != 0 && left > 0 && rest > 820 {
						if rests++; rest > 820+15*700 {
							t.Fatalf("the link rests for %v", rest)
						}
					}
					began = m.Depart
					left++
					g.pool.Free(r)
				}
			}
			for n := g.p.TakeShed(g.out[:]); n > 0; n = g.p.TakeShed(g.out[:]) {
				dropped += n
				for _, r := range g.out[:n] {
					g.pool.Free(r)
				}
			}
		}
		for step := range 20000 {
			now += 700 // a frame takes 819 ns
			v := uint8(rng.Uint32n(4))
			count[v]++
			came++
			for _, r := range g.put(now, func(m *frame.Meta) { m.DSCP, m.Class, m.SrcPort = v, v, count[v] }) {
				dropped++
				g.pool.Free(r)
			}
			if burst == 0 || step%16 == 0 { // late by less than the burst
				take()
			}
			if step%200 == 199 {
				c := queueConfig(texts[step/200%len(texts)])
				c.Burst = burst
				before, _ := g.p.QueueLen(0)
				g.p.Configure(now, c)
				if after, _ := g.p.QueueLen(0); after+g.shed(&dropped) != before {
					t.Fatalf("a swap changed what waits from %d to %d", before, after)
				}
				g.p.Configure(now, c) // an equal one is the same
			}
		}
		for range 1000 {
			now += 10_000
			take()
		}
		if waiting, _ := g.p.QueueLen(0); waiting != 0 || came != left+dropped || dropped < 2000 || left < 10000 {
			t.Errorf("burst %v: %d came, %d left, %d were dropped, %d wait", burst, came, left, dropped, waiting)
		}
		if rests > 100 {
			t.Errorf("the link rests %d times, at more than the changes", rests)
		}
		if g.pool.Available() != 8192 {
			t.Errorf("%d frames are lost", 8192-g.pool.Available())
		}
		if _, old := g.p.Serving(0); old != 0 {
			t.Errorf("%d frames of an earlier policy are still there", old)
		}
	}
}

// What a worker takes to put one policy in the place of another while frames wait:
// cpu-ns/op.
func BenchmarkSwap(b *testing.B) {
	for _, queued := range []int{64, 4096} {
		b.Run(fmt.Sprint(queued), func(b *testing.B) {
			g := newRig(queueConfig(`q = Queue(5000 pkts);`))
			for range queued {
				g.put(0, func(*frame.Meta) {})
			}
			next := [2]scheduler.PortConfig{queueConfig(twoKeys), queueConfig(`q = Queue(5000 pkts);`)}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			b.ResetTimer()
			began := processor()
			for i := range b.N {
				g.p.Configure(0, next[i&1])
			}
			b.ReportMetric(float64(processor()-began)/float64(b.N), "cpu-ns/op")
		})
	}
}

func (g *rig) shed(dropped *int) (n int) {
	for k := g.p.TakeShed(g.out[:]); k > 0; k = g.p.TakeShed(g.out[:]) {
		n += k
		*dropped += k
		for _, r := range g.out[:k] {
			g.pool.Free(r)
		}
	}
	return n
}

// A port of half a link sends at half its rate.
func TestPortShare(t *testing.T) {
	g := newRig(queueConfig(`q = Queue(1MB); out = Port(50%, q);`))
	for range 100 {
		g.put(0, func(*frame.Meta) {})
	}
	last, n := frame.Time(0), 0
	for now := frame.Time(0); n < 100 && now < frame.Millisecond; now += 100 {
		for _, r := range g.out[:g.p.Dequeue(now, g.out[:])] {
			last = g.a.Meta(r).Depart
			n++
		}
	}
	if n != 100 || last < 99*1600 || last > 99*1600+1000 { // 1000 bytes at 5 Gb/s
		t.Errorf("%d frames, the last at %v", n, last)
	}
}

// The shadow of the policy in force does what that does.
func TestShadowOfItself(t *testing.T) {
	for _, text := range []string{twoKeys, `q = Queue(20 pkts);`, `q[1..4] = Queue(10KB); b = Buffer(20KB, q); out = Port(100%, q); out.queueSelect = class; q.congestion = none;`} {
		c := queueConfig(text)
		c.Queues[0].Admission = Shadow{Text: text}
		g := newRig(c)
		rng := frame.NewRand(5)
		now, came := frame.Time(0), 0
		for range 5000 {
			now += 300 + frame.Time(rng.Uint32n(400))
			g.until(now, g.pool.Free)
			r := g.pool.Alloc()
			m := g.a.Reset(r)
			m.Wire, m.DSCP, m.Class = 60+rng.Uint32n(1400), uint8(rng.Uint32n(8)), uint8(rng.Uint32n(4))
			came++
			if !g.p.Admits(now, m) {
				t.Fatal("a shadow refuses a frame")
			}
			g.p.Enqueue(now, r)
			for r := g.p.PushOut(now, 0); r != frame.Nil; r = g.p.PushOut(now, 0) {
				g.pool.Free(r)
			}
		}
		d, _ := g.p.Serving(0)
		live, shadow := Held(d).Stats(), Watched(g.p.Admitting(0)).Stats()
		dropped := uint64(0)
		for i := range live {
			if live[i] != shadow[i] {
				t.Errorf("%s\nlive   %+v\nshadow %+v", text, live[i], shadow[i])
			}
			dropped += live[i].Refused + live[i].PushedOut
		}
		if dropped < 100 {
			t.Errorf("only %d of %d are dropped", dropped, came)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for _, text := range []string{`q = Queue(50 pkts);`, twoKeys, "x(a, b) = a.value * b.size > b.value * a.size; q = Queue(50 pkts); q.procPrio = x; q.admPrio = x;",
		`q[1..8] = Queue(10 pkts); b = Buffer(50 pkts, q); out = Port(100%, q); out.schedPrio = drr; q.congestion = dt(1); classify value = p.tos;`} {
		c := queueConfig(text)
		c.Queues[0].Admission = Shadow{Text: `q = Queue(20 pkts); q.admPrio = value;`}
		c.Burst = frame.Millisecond
		g := newRig(c)
		rng := frame.NewRand(1)
		now := frame.Time(0)
		step := func() {
			for range 64 {
				now += 700
				r := g.pool.Alloc()
				m := g.a.Reset(r)
				m.Wire, m.DSCP, m.Hash = 1000, uint8(rng.Uint32n(64)), rng.Uint32n(1000)
				g.p.Admits(now, m)
				g.p.Enqueue(now, r)
				for r := g.p.PushOut(now, 0); r != frame.Nil; r = g.p.PushOut(now, 0) {
					g.pool.Free(r)
				}
			}
			for _, r := range g.out[:g.p.Dequeue(now, g.out[:])] {
				g.pool.Free(r)
			}
			for _, r := range g.out[:g.p.TakeShed(g.out[:])] {
				g.pool.Free(r)
			}
		}
		for range 50 {
			step()
		}
		if n := testing.AllocsPerRun(50, step); n != 0 {
			t.Errorf("%s: %v allocations in 64 frames", text, n)
		}
	}
}

// What a frame costs through the port, in and out, with so many queued: cpu-ns/op.
func BenchmarkPort(b *testing.B) {
	for _, queued := range []int{64, 1024} {
		for name, text := range map[string]string{
			"none": "", "fifo": `q = Queue(4000 pkts);`, "levels": `q = Queue(4000 pkts); q.admPrio = value; q.procPrio = value;`,
			"one-key": `q = Queue(4000 pkts); q.procPrio = ranked;`, "two-keys": `q = Queue(4000 pkts); q.procPrio = ranked; q.admPrio = edf; classify slack = 0;`,
			"drr8":    `q[1..8] = Queue(4000 pkts); out = Port(100%, q[1..8]); out.schedPrio = drr;`,
			"compare": "x(a, b) = a.value * b.size > b.value * a.size; q = Queue(4000 pkts); q.procPrio = x;",
		} {
			b.Run(fmt.Sprintf("%s-%d", name, queued), func(b *testing.B) {
				text := text
				if name == "two-keys" {
					text = `x(a, b) = a.flow < b.flow; q = Queue(4000 pkts); q.procPrio = ranked; q.admPrio = x;`
				}
				c := queueConfig(text)
				c.Burst = frame.Millisecond
				g := newRig(c)
				rng := frame.NewRand(1)
				now := frame.Time(0)
				in := func(r frame.Ref) {
					m := g.a.Meta(r)
					m.Wire, m.Rank, m.Hash, m.DSCP = 1500, int64(rng.Uint32n(1<<20)), uint32(rng.Uint64()), uint8(rng.Uint32n(64))
					g.p.Enqueue(now, r)
					g.p.PushOut(now, 0)
				}
				for range queued {
					r := g.pool.Alloc()
					g.a.Reset(r)
					in(r)
				}
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				b.ResetTimer()
				began := processor()
				for i := 0; i < b.N; i += 64 {
					now += 64 * 1220
					for _, r := range g.out[:g.p.Dequeue(now, g.out[:])] {
						in(r)
					}
				}
				b.ReportMetric(float64(processor()-began)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// processor is how much of a processor this thread has had: what a busy machine does
// not change much.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(1, &u) != nil { // RUSAGE_THREAD
		return 0
	}
	return time.Duration(u.Utime.Nano())
}

// A text that no policy can be made of is refused by the port's configuration, and
// nothing panics.
func TestBadTextIsRefused(t *testing.T) {
	c := queueConfig("q = Queue(")
	if err := c.Validate(); err == nil {
		t.Error("an order of a text that is none is taken")
	}
	c = queueConfig("q = Queue(1KB);")
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Queues[0].Admission = Shadow{Text: "q = Queue(1KB)"}
	if err := c.Validate(); err == nil {
		t.Error("a shadow of a text that is none is taken")
	}
}

// A port that loses its link gives up all that waits there, what has only just
// come and pushes out others among it.
func TestFlushTakesWhatIsPushedOut(t *testing.T) {
	c := queueConfig(`q = Queue(2 pkts); q.admPrio = value;`)
	c.Burst = frame.Millisecond
	g := newRig(c)
	for i := range 10 {
		r := g.pool.Alloc()
		m := g.a.Reset(r)
		m.Wire, m.DSCP = 1000, uint8(i)
		g.p.Enqueue(frame.Time(i), r)
	}
	gone := 0
	for n := g.p.Flush(20, g.out[:]); n > 0; n = g.p.Flush(20, g.out[:]) {
		gone += n
		for _, r := range g.out[:n] {
			g.pool.Free(r)
		}
	}
	if waiting, _ := g.p.QueueLen(0); gone != 10 || waiting != 0 || g.pool.Available() != 8192 {
		t.Errorf("%d of 10 frames were given up, %d wait, %d chunks are free", gone, waiting, g.pool.Available())
	}
}
