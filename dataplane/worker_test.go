package dataplane

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/frame"
	"gswitch/histogram"
)

// Stats say how many chunks a worker asked for that were not there.
func TestMissingChunks(t *testing.T) {
	e := mustEngine(t, Config{})
	w := e.Worker(0)
	w.Do(func(frame.Time) {
		pool := w.pool
		pool.FailAt([]frame.Misses{{First: pool.Asked() + 2, N: 2}})
		for range 4 {
			if r := pool.Alloc(); r != frame.Nil {
				pool.FreeChunk(r)
			}
		}
	})
	if missing := e.Stats().Workers[0].NoChunk; missing != 2 {
		t.Errorf("%d chunks were not there, it was 2", missing)
	}
}

// Do runs on the worker in every poll mode, before the start, while it sleeps
// and from many goroutines at once; after the end it says so.
func TestDo(t *testing.T) {
	for _, poll := range []PollMode{Adaptive, Spin, Sleep} {
		t.Run(poll.String(), func(t *testing.T) {
			e := mustEngine(t, Config{Workers: []WorkerConfig{{Poll: poll}}})
			w := e.Worker(0)
			n := 0 // touched on the worker only
			w.Do(func(frame.Time) { n++ })
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			if err := e.Start(); err == nil {
				t.Error("started twice")
			}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					last := frame.Time(0)
					for range 100 {
						w.Do(func(now frame.Time) {
							n++
							if now < last {
								t.Errorf("time went from %v back to %v", last, now)
							}
							last = now
						})
					}
				})
			}
			wg.Wait()
			if err := e.Stop(); err != nil {
				t.Error(err)
			}
			if n != 801 {
				t.Errorf("%d calls ran, want 801", n)
			}
			if err := w.Do(func(frame.Time) { t.Error("ran after the end") }); !errors.Is(err, ErrStopped) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// Stop leaves no goroutine and no thread behind.
func TestStopEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		e, err := New(Config{Chunks: 1024, Workers: []WorkerConfig{{Poll: Spin}, {Poll: Sleep}}})
		if err != nil {
			t.Fatal(err)
		}
		chain(t, e, [4]int{0, 1, 0, 1}, 1<<62)
		var buf bytes.Buffer
		if _, err := e.Capture(&buf, CaptureSpec{}); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	}
	for runtime.NumGoroutine() > before {
		pause() // those that Stop has asked to end are on their way
	}
}

// A node that keeps a frame is found out.
func TestStopFindsLostFrames(t *testing.T) {
	e, err := New(Config{Chunks: 1024})
	if err != nil {
		t.Fatal(err)
	}
	e.Worker(0).Pool().Alloc()
	if err := e.Stop(); err == nil || !strings.Contains(err.Error(), "1 of 1024 frames") {
		t.Errorf("got %v", err)
	}
}

// loop is tester - bridge - tester on one worker that does not run: the test
// steps it.
func loop(t testing.TB, spec PortSpec) (w *Worker, left, right *tester, b *bridge) {
	e := mustEngine(t, Config{})
	w = e.Worker(0)
	left = &tester{pool: w.Pool(), size: 60}
	right = &tester{pool: w.Pool()}
	b = newBridge(w)
	b.stepped = true
	mustNode(t, e, 0, left)
	mustNode(t, e, 0, b)
	mustNode(t, e, 0, right)
	join := func(name string, x frame.Node, nx uint16, y frame.Node, ny uint16) {
		s := spec
		s.Kind, s.Wire = Wire, name
		mustPort(t, e, 0, x, nx, s)
		s.Name = name + "'"
		mustPort(t, e, 0, y, ny, s)
	}
	join("l", left, 0, b, 0)
	join("r", b, 1, right, 0)
	return w, left, right, b
}

func TestLoopAllocatesNothing(t *testing.T) {
	for _, spec := range []PortSpec{{}, {Delay: 10}} {
		w, left, right, _ := loop(t, spec)
		left.toSend = 1 << 62
		now := frame.Time(0)
		if n := testing.AllocsPerRun(1000, func() {
			now += 1000
			w.account(now)
			w.moved = w.step(now)
			w.idle(now)
		}); n != 0 {
			t.Errorf("delay %d: %v allocations per loop", spec.Delay, n)
		}
		if right.received < 1000 {
			t.Errorf("delay %d: only %d frames went through", spec.Delay, right.received)
		}
	}
}

func BenchmarkLoop(b *testing.B) {
	w, left, right, _ := loop(b, PortSpec{})
	left.toSend = 1 << 62
	now := frame.Time(0)
	for b.Loop() {
		now += 1000
		w.account(now)
		w.moved = w.step(now)
		w.idle(now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(right.received), "ns/frame")
}

// The delay line delivers each frame at its departure plus the delay, in
// order, to the nanosecond of the steps.
func TestDelayLine(t *testing.T) {
	w, left, right, _ := loop(t, PortSpec{Delay: 5 * frame.Microsecond})
	right.arrived = make([]frame.Time, 0, 16)
	now := frame.Time(1000)
	for i := range 16 {
		left.toSend = uint64(i + 1)
		for range 40 {
			w.step(now)
			now += frame.Microsecond
		}
	}
	if right.received != 16 || right.disorder != 0 {
		t.Fatalf("%d frames, %d out of order", right.received, right.disorder)
	}
	// Two cables of 5 us; each hands over on the step after.
	for i, at := range right.arrived {
		if d := at - (1000 + frame.Time(i)*40*frame.Microsecond); d < 10*frame.Microsecond || d > 13*frame.Microsecond {
			t.Errorf("frame %d took %v", i, d.Duration())
		}
	}
}

func TestDelayLineAnchorsAtDeparture(t *testing.T) {
	d := newDelayLine(100, 3)
	for _, c := range []struct{ depart, now, want frame.Time }{{50, 80, 150}, {0, 80, 180}, {90, 80, 190}, {200, 200, 300}} {
		m := frame.Meta{Depart: c.depart}
		d.send(1, departure(&m, c.now))
		if got := d.at[(d.tail-1)&d.mask]; got != c.want {
			t.Errorf("departure %d, now %d: arrives at %d, want %d", c.depart, c.now, got, c.want)
		}
	}
	if m := (frame.Meta{Depart: 50, Span: 70}); departure(&m, 80) != 120 {
		t.Error("the last bit leaves a frame's time after the first")
	}
	if d.room() != 0 || d.first() != 150 {
		t.Errorf("room %d, first at %d", d.room(), d.first())
	}
	var out [4]frame.Ref
	var late histogram.Histogram
	if n := d.arrived(149, out[:], &late); n != 0 || late.Total() != 0 {
		t.Errorf("%d frames too early", n)
	}
	if n := d.arrived(190, out[:], &late); n != 3 {
		t.Errorf("%d frames, want 3", n)
	}
	if late.Total() != 3 || late.Max != 40 || late.Sum != 50 {
		t.Errorf("%d frames were late, by %d ns in all and %d at most; want 3, 50 and 40", late.Total(), late.Sum, late.Max)
	}
}

// A port may get a link rate, and lose it, while frames flow.
func TestSetRated(t *testing.T) {
	e := mustEngine(t, Config{})
	left := &tester{pool: e.Worker(0).Pool(), size: 60}
	right := &tester{pool: e.Worker(0).Pool()}
	mustNode(t, e, 0, left)
	mustNode(t, e, 0, right)
	p := mustPort(t, e, 0, left, 0, PortSpec{Kind: Wire, Wire: "x"})
	mustPort(t, e, 0, right, 0, PortSpec{Kind: Wire, Wire: "x"})
	now := frame.Time(0)
	for i, c := range []struct {
		rated       bool
		depth, want int
	}{{false, 0, 256}, {true, 64, 64}, {false, 0, 256}, {true, 64, 64}} {
		if err := e.SetRated(p, c.rated, c.depth); err != nil {
			t.Fatal(err)
		}
		if got := state(e, 0).TxDepth; got != c.want || p.line.depth != c.want || c.rated && p.line.delay == nil {
			t.Errorf("change %d: depth %d and %d, want %d; delay line %v", i, got, p.line.depth, c.want, p.line.delay != nil)
		}
		left.toSend += 100
		for range 20 {
			now += frame.Microsecond
			e.Worker(0).step(now)
		}
		if want := uint64(100 * (i + 1)); right.received != want || right.disorder != 0 {
			t.Errorf("change %d: %d frames arrived, %d out of order, want %d and 0", i, right.received, right.disorder, want)
		}
	}
}

// What a port on a wire may send in a loop crosses it in a loop, with a link rate too: else
// a chain of nodes on one worker carries less than its first port receives.
func TestWireCarriesALoop(t *testing.T) {
	for _, rated := range []bool{false, true} {
		e := mustEngine(t, Config{Workers: []WorkerConfig{{}}})
		left, right := &tester{pool: e.Worker(0).Pool(), size: 60, toSend: 10 * txVectors * vector}, &tester{pool: e.Worker(0).Pool()}
		mustNode(t, e, 0, left)
		mustNode(t, e, 0, right)
		mustPort(t, e, 0, left, 0, PortSpec{Kind: Wire, Wire: "x", Rated: rated, DelayFrames: 4096})
		mustPort(t, e, 0, right, 0, PortSpec{Kind: Wire, Wire: "x", Rated: rated, DelayFrames: 4096})
		for now := range frame.Time(11) {
			e.Worker(0).step(now)
		}
		if right.received != 10*txVectors*vector || right.disorder != 0 {
			t.Errorf("rated %v: %d frames arrived in 11 loops, %d out of order, want %d and 0", rated, right.received, right.disorder, 10*txVectors*vector)
		}
	}
}

// A node with a full port is not asked: its queue grows, the ring does not.
func TestFullPortQueuesInTheNode(t *testing.T) {
	e := mustEngine(t, Config{Workers: []WorkerConfig{{}, {}}})
	left := &tester{pool: e.Worker(0).Pool(), size: 60, toSend: 500}
	right := &tester{pool: e.Worker(1).Pool()}
	mustNode(t, e, 0, left)
	mustNode(t, e, 1, right)
	mustPort(t, e, 0, left, 0, PortSpec{Kind: Wire, Wire: "x", TxDepth: 100})
	mustPort(t, e, 1, right, 0, PortSpec{Kind: Wire, Wire: "x"})
	for now := range frame.Time(20) {
		e.Worker(0).step(now) // the far worker stands still
	}
	if left.sent != 100 {
		t.Errorf("%d frames were taken from the node, want the depth of 100", left.sent)
	}
	for now := range frame.Time(20) {
		e.Worker(1).step(now)
		e.Worker(0).step(now + 20)
	}
	if right.received != 500 || right.disorder != 0 {
		t.Errorf("%d frames arrived, %d out of order, want 500 and 0", right.received, right.disorder)
	}
}

// A timer is served in every poll mode, and its lateness is recorded.
func TestTimersAndLateness(t *testing.T) {
	for _, poll := range []PollMode{Adaptive, Spin, Sleep} {
		t.Run(poll.String(), func(t *testing.T) {
			e := mustEngine(t, Config{Workers: []WorkerConfig{{Poll: poll}}})
			b := newBridge(e.Worker(0))
			b.timer, b.period = 0, 300*frame.Microsecond
			mustNode(t, e, 0, b)
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			await(t, e.Worker(0), func() bool { return b.fired >= 50 })
			s := e.Stats().Workers[0]
			if s.Lateness.Total() < 40 {
				t.Errorf("%d instants recorded, want about 50", s.Lateness.Total())
			}
			t.Logf("%s: late by p50 %d ns, p99 %d ns, at most %d ns; %d sleeps", poll, s.Lateness.Quantile(0.5), s.Lateness.Quantile(0.99), s.Lateness.Max, s.Sleeps)
		})
	}
}

// thread returns the kernel's id of the worker's thread.
func thread(w *Worker) (tid int) {
	w.Do(func(frame.Time) { tid = unix.Gettid() })
	return tid
}

func TestWorkerThread(t *testing.T) {
	e := mustEngine(t, Config{Workers: []WorkerConfig{{Name: "gsw-test", Pin: true, CPU: allowedCPU(t), Poll: Sleep}}})
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	tid := thread(e.Worker(0))
	comm, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(tid) + "/comm")
	if err != nil || strings.TrimSpace(string(comm)) != "gsw-test" {
		t.Errorf("the thread is named %q, %v", comm, err)
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &set); err != nil || set.Count() != 1 || !set.IsSet(allowedCPU(t)) {
		t.Errorf("the thread may run on %d CPUs, %v", set.Count(), err)
	}
	if _, err := New(Config{Workers: []WorkerConfig{{Pin: true, CPU: 900}}}); err == nil {
		t.Error("a CPU that is not there was accepted")
	}
}

// ownNice is the nice value that the tests were started with, read before any
// worker changes that of a thread.
var ownNice = func() int32 {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return 0
	}
	return attr.Nice
}()

// A worker goes before ordinary threads if it is asked to, without a real-time
// policy; else it has the priority that the process was started with.
func TestWorkerFirst(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("raising a priority needs root")
	}
	for first, nice := range map[bool]int32{true: firstNice, false: ownNice} {
		e := mustEngine(t, Config{Workers: []WorkerConfig{{First: first}}})
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		attr, err := unix.SchedGetAttr(thread(e.Worker(0)), 0)
		if err != nil || attr.Policy != unix.SCHED_NORMAL || attr.Nice != nice {
			t.Errorf("first %v: policy %d, nice value %d, %v; want %d", first, attr.Policy, attr.Nice, err, nice)
		}
	}
}

func allowedCPU(t *testing.T) int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for i := range 1024 {
		if set.IsSet(i) {
			return i
		}
	}
	t.Fatal("no CPU is allowed")
	return 0
}

// threadTime returns the CPU time that a thread has used.
func threadTime(t *testing.T, tid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(tid) + "/schedstat")
	if err != nil {
		t.Fatal(err)
	}
	ns, err := strconv.ParseInt(strings.Fields(string(b))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ns)
}

// A parked worker takes less than 2 % of a core. What is measured is the
// thread's own CPU time, which other load does not lengthen.
func TestParkedWorkerIsCheap(t *testing.T) {
	for _, poll := range []PollMode{Adaptive, Sleep} {
		e := mustEngine(t, Config{Workers: []WorkerConfig{{Poll: poll}}})
		b := newBridge(e.Worker(0))
		b.timer, b.period = 0, 100*frame.Millisecond
		mustNode(t, e, 0, b)
		mustPort(t, e, 0, b, 0, PortSpec{Kind: Null})
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		tid := thread(e.Worker(0))
		await(t, e.Worker(0), func() bool { return b.fired >= 1 })
		begin, used := time.Now(), threadTime(t, tid)
		time.Sleep(time.Second)
		share := float64(threadTime(t, tid)-used) / float64(time.Since(begin))
		if share > 0.02 {
			t.Errorf("%s: %.2f %% of a core while parked", poll, 100*share)
		}
		t.Logf("%s: %.3f %% of a core while parked", poll, 100*share)
	}
}

// copyMode is a device of which a kick sends all, some or nothing at once.
type copyMode struct {
	null
	kicked func(queued int) (left int)
	queued int
	most   int
}

func (d *copyMode) room(depth int) int { return depth - d.queued }
func (d *copyMode) transmit(now frame.Time, p *frame.Pool, v []frame.Ref) int {
	d.queued += len(v)
	d.most = max(d.most, d.queued)
	return d.null.transmit(now, p, v)
}
func (d *copyMode) kick() bool {
	d.queued = d.kicked(d.queued)
	return d.queued > 0
}

// A port whose ring is kept shallow sends as much in a loop as any other, as
// long as the kernel takes what is in it.
func TestShallowRing(t *testing.T) {
	all := func(int) int { return 0 }
	for _, c := range []struct {
		name   string
		spec   PortSpec
		kicked func(int) int
		sent   uint64
	}{
		{"shallow", PortSpec{TxDepth: 16}, all, txVectors * vector},
		{"with a link rate", PortSpec{TxDepth: 16, Rated: true, DelayFrames: 1024}, all, txVectors * vector},
		{"of odd depth", PortSpec{TxDepth: 100}, all, 200},
		{"deep", PortSpec{TxDepth: 1024}, all, txVectors * vector},
		{"the kernel takes nothing", PortSpec{TxDepth: 16}, func(n int) int { return n }, 16},
		{"the kernel takes half", PortSpec{TxDepth: 16}, func(n int) int { return n / 2 }, 248}, // a full ring more would be too much
	} {
		w, left, _, _ := loop(t, c.spec)
		left.toSend = 1 << 62
		d := &copyMode{kicked: c.kicked}
		w.ports[0].dev = d
		w.step(1000)
		if got := w.ports[0].stats.TxTaken; got != c.sent {
			t.Errorf("%s: %d frames left in a loop, want %d", c.name, got, c.sent)
		}
		if d.most > c.spec.TxDepth {
			t.Errorf("%s: %d frames waited below the node, more than %d", c.name, d.most, c.spec.TxDepth)
		}
	}
}

// A port that was full when its node came to stand still sends nothing, and
// does not keep its worker.
func TestFullPortOfNodeThatStandsStill(t *testing.T) {
	w, left, _, _ := loop(t, PortSpec{TxDepth: 16})
	left.toSend = 1 << 62
	takes := false
	d := &copyMode{kicked: func(n int) int {
		if takes {
			return 0
		}
		return n
	}}
	w.ports[0].dev = d
	w.step(1000)
	if !w.ports[0].blocked {
		t.Fatal("the port is not full")
	}
	takes = true
	w.pause(left, 1_000_000)
	sent := w.ports[0].stats.TxTaken
	w.step(2000)
	w.step(3000)
	if got := w.ports[0].stats.TxTaken; got != sent {
		t.Errorf("%d frames left a node that stands still", got-sent)
	}
	w.step(1_000_000)
	if got := w.ports[0].stats.TxTaken; got == sent {
		t.Error("nothing leaves when the node goes on")
	}
}
