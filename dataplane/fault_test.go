package dataplane

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gswitch/fault"
	"gswitch/frame"
)

// listener takes numbered frames and remembers which came when. What it sends
// carries departures of a link that each frame occupies for span.
type listener struct {
	tester
	span    frame.Time
	next    frame.Time // when its link is free again
	numbers []uint64
	at      []frame.Time
	stood   int // calls, of whatever kind
}

func (l *listener) Receive(now frame.Time, port uint16, v []frame.Ref) {
	l.stood++
	for _, r := range v {
		l.numbers = append(l.numbers, number(l.pool.Bytes(r)))
		l.at = append(l.at, now)
	}
	l.tester.Receive(now, port, v)
}

func (l *listener) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	l.stood++
	if l.span == 0 {
		return l.tester.Transmit(now, port, out)
	}
	n := 0
	for n < len(out) && l.next <= now && l.tester.Transmit(now, port, out[n:n+1]) == 1 {
		m := l.pool.Meta(out[n])
		m.Depart, m.Span = max(l.next, 1), uint32(l.span)
		l.next += l.span
		n++
	}
	return n
}

func (l *listener) Advance(frame.Time) { l.stood++ }

// faultyWire is two nodes on a wire, on one worker that the test steps.
type faultyWire struct {
	e           *Engine
	w           *Worker
	left, right *listener
	port, far   *Port
	now         frame.Time
}

func newFaultyWire(t testing.TB, spec PortSpec) *faultyWire {
	e := mustEngine(t, Config{})
	x := &faultyWire{e: e, w: e.Worker(0)}
	x.left = &listener{tester: tester{pool: x.w.Pool(), size: 60}}
	x.right = &listener{tester: tester{pool: x.w.Pool(), size: 60}}
	mustNode(t, e, 0, x.left)
	mustNode(t, e, 0, x.right)
	spec.Kind, spec.Wire, spec.Name = Wire, "x", "left"
	x.port = mustPort(t, e, 0, x.left, 0, spec)
	spec.Name = "right"
	x.far = mustPort(t, e, 0, x.right, 0, spec)
	return x
}

func (x *faultyWire) fault(t testing.TB, c fault.Config, seed uint64) {
	t.Helper()
	if err := x.e.SetFault(x.port, &c, seed); err != nil {
		t.Fatal(err)
	}
}

func (x *faultyWire) run(steps int, by frame.Time) {
	for range steps {
		x.now += by
		x.w.step(x.now)
		x.w.noteWakes(x.now)
	}
}

// balanced checks that every frame is accounted for.
func (x *faultyWire) balanced(t testing.TB) PortStats {
	t.Helper()
	for _, s := range x.e.Stats().Ports {
		if s.TxFrames+s.Faults.Duplicated != s.TxTaken+s.TxWaiting+s.TxDropped+s.Faults.LostFrames() {
			t.Errorf("port %s does not add up: %+v", s.Name, s.PortCounters)
		}
	}
	s := x.e.Stats().Ports[0]
	return s
}

// What a seed decides is what happens, frame by frame, as the model says alone.
func TestFaultsAreThoseOfTheSeed(t *testing.T) {
	c := fault.Config{Loss: 0.05, Corrupt: 0.02, Burst: fault.Bursts(0.03, 4), Duplicate: 0.04}
	for seed := range uint64(3) {
		x := newFaultyWire(t, PortSpec{})
		x.fault(t, c, seed)
		const n = 20_000
		x.left.toSend = n
		x.run(1000, frame.Microsecond)
		m := fault.NewModel(seed)
		m.Set(c)
		var want []uint64
		var lost [fault.NumLosses]uint64
		for k := range uint64(n) {
			switch v := m.Judge(nil, nil); {
			case v.Loss != fault.LossNone:
				lost[v.Loss]++
			case v.Duplicate:
				want = append(want, k, k)
			default:
				want = append(want, k)
			}
		}
		if !slices.Equal(x.right.numbers, want) {
			t.Errorf("seed %d: %d frames arrived, the model says %d", seed, len(x.right.numbers), len(want))
		}
		s := x.balanced(t)
		if s.Faults.Lost != lost || s.TxWaiting != 0 || !s.Faulty || s.Faults.Uncopied != 0 {
			t.Errorf("seed %d: counted %+v, the model says %v", seed, s.Faults, lost)
		}
		// Four standard deviations of what is drawn for each frame alone.
		for why, p := range map[fault.Loss]float64{fault.LossRandom: c.Loss, fault.LossFCS: c.Corrupt} {
			if d := math.Abs(float64(s.Faults.Lost[why]) - n*p); d > 4*math.Sqrt(n*p)+n*p*0.06 {
				t.Errorf("seed %d: %d of %d lost by %v", seed, s.Faults.Lost[why], n, why)
			}
		}
	}
}

// A frame that is held back comes exactly so much later; those behind it do
// not wait for it.
func TestHeldFramesAreOvertaken(t *testing.T) {
	x := newFaultyWire(t, PortSpec{Delay: 2 * frame.Microsecond})
	x.left.span = frame.Microsecond
	x.fault(t, fault.Config{Reorder: 0.1, ReorderBy: 30 * frame.Microsecond}, 1)
	x.left.toSend = 1000
	x.run(12_000, 100)
	if len(x.right.numbers) != 1000 {
		t.Fatalf("%d frames arrived", len(x.right.numbers))
	}
	held := uint64(0)
	for i, k := range x.right.numbers {
		// The last bit leaves at (k+1) us; the wire hands over on the step after.
		switch d := x.right.at[i] - frame.Time(k+3)*frame.Microsecond; {
		case d >= 0 && d <= 200:
		case d >= 30_000 && d <= 30_200:
			held++
		default:
			t.Fatalf("frame %d came %v after its time", k, d.Duration())
		}
	}
	if s := x.balanced(t); held != s.Faults.Held || held < 60 || held > 140 {
		t.Errorf("%d were held back, %d counted, of 1000", held, s.Faults.Held)
	}
}

func TestJitterInRealTimeKeepsOrder(t *testing.T) {
	x := newFaultyWire(t, PortSpec{})
	x.left.span = frame.Microsecond
	x.fault(t, fault.Config{Jitter: 5 * frame.Microsecond}, 1)
	x.left.toSend = 1000
	x.run(12_000, 100)
	if x.right.received != 1000 || x.right.disorder != 0 {
		t.Fatalf("%d frames arrived, %d out of order", x.right.received, x.right.disorder)
	}
	late := 0
	for k, at := range x.right.at {
		d := at - frame.Time(k+1)*frame.Microsecond
		if d < 0 || d > 5200 {
			t.Fatalf("frame %d came after %v", k, d.Duration())
		}
		if d > frame.Microsecond {
			late++
		}
	}
	if late < 700 { // with order kept, a frame waits for any before it
		t.Errorf("%d of 1000 were late", late)
	}
	x.balanced(t)
}

// A slow link makes its sender wait, and the frames wait inside the node.
func TestSlowLinkHoldsTheNodeBack(t *testing.T) {
	x := newFaultyWire(t, PortSpec{Rated: true})
	x.left.span = frame.Microsecond
	x.fault(t, fault.Config{Slow: 4}, 1)
	x.left.toSend = 1 << 40
	x.run(10_000, 100) // 1 ms
	if got := x.right.received; got < 245 || got > 250 {
		t.Errorf("%d frames in a millisecond, want 250", got)
	}
	if s := x.balanced(t); s.TxWaiting > 1 {
		t.Errorf("%d frames wait below the node", s.TxWaiting)
	}
	x.fault(t, fault.Config{}, 1)
	x.run(10_000, 100)
	if got := x.right.received; got < 1200 {
		t.Errorf("%d frames after the link was fast again", got)
	}
}

// A fault that is taken off leaves nothing behind, in whatever order.
func TestFaultGoesAway(t *testing.T) {
	for _, spec := range []PortSpec{{}, {Delay: 3 * frame.Microsecond}} {
		x := newFaultyWire(t, spec)
		x.left.toSend = 100
		x.fault(t, fault.Config{Reorder: 1, ReorderBy: 50 * frame.Microsecond}, 1)
		x.run(1, frame.Microsecond)
		if err := x.e.SetFault(x.port, nil, 0); err != nil {
			t.Fatal(err)
		}
		x.run(30, frame.Microsecond)
		if x.right.received != 0 || x.port.line.fault == nil || x.balanced(t).TxWaiting != 100 {
			t.Error("what was held back is not held any more")
		}
		x.run(40, frame.Microsecond)
		if x.right.received != 100 || x.port.line.fault != nil || (x.port.line.delay != nil) != (spec.Delay > 0) {
			t.Errorf("%d frames arrived; fault left: %v", x.right.received, x.port.line.fault != nil)
		}
		if s := x.balanced(t); s.Faulty || s.Faults.Held != 100 {
			t.Errorf("%+v", s)
		}
	}
}

// A link that is cut keeps its device: nothing gets through, both ways, and
// what was under way is lost.
func TestCutLink(t *testing.T) {
	x := newFaultyWire(t, PortSpec{Delay: 10 * frame.Microsecond})
	x.left.toSend, x.right.toSend = 50, 50
	x.run(5, frame.Microsecond)
	if err := x.e.SetLink(x.port, false); err != nil {
		t.Fatal(err)
	}
	if x.left.up || x.port.line.dev == nil {
		t.Error("the node was not notified, or the device went")
	}
	x.run(20, frame.Microsecond)
	s := x.balanced(t)
	if s.Faults.Lost[fault.LossLink] != 50 || s.Faults.RxLost != 50 || x.left.received+x.right.received != 0 || s.Up || s.State != "down: no carrier" {
		t.Errorf("%+v, %d and %d arrived", s, x.left.received, x.right.received)
	}
	x.left.toSend = 60 // this node sends although it was notified
	x.run(20, frame.Microsecond)
	if s := x.balanced(t); s.Faults.Lost[fault.LossLink] != 60 {
		t.Errorf("%d lost", s.Faults.Lost[fault.LossLink])
	}
	if err := x.e.SetLink(x.port, true); err != nil {
		t.Fatal(err)
	}
	x.left.toSend, x.right.toSend = 70, 60
	x.run(20, frame.Microsecond)
	if s := x.balanced(t); !x.left.up || !s.Up || x.left.received != 10 || x.right.received != 10 {
		t.Errorf("%d and %d arrived after the link was restored", x.left.received, x.right.received)
	}
	if x.port.line.fault != nil {
		t.Error("a restored link has a fault")
	}
}

func TestPausedNode(t *testing.T) {
	x := newFaultyWire(t, PortSpec{Delay: 10 * frame.Microsecond})
	x.left.toSend, x.right.toSend = 50, 50
	x.run(5, frame.Microsecond)
	if err := x.e.Pause(0, x.left, 100*frame.Microsecond); err != nil {
		t.Fatal(err)
	}
	if at := x.w.nextWake(x.now); at > 100*frame.Microsecond {
		t.Errorf("nobody wakes the node: %v", at)
	}
	stood := x.left.stood
	x.left.toSend = 60
	x.run(94, frame.Microsecond)
	if x.left.stood != stood || x.right.received != 50 {
		t.Errorf("a paused node was called %d times; %d of its frames went on", x.left.stood-stood, x.right.received)
	}
	x.run(30, frame.Microsecond)
	if x.left.received != 50 || x.right.received != 60 {
		t.Errorf("%d and %d arrived after the pause", x.left.received, x.right.received)
	}
	if late := x.w.stats.Lateness.Max; late > 1000 {
		t.Errorf("a pause counts as lateness: %d ns", late)
	}
	x.balanced(t)
	if x.e.Pause(0, &tester{}, 1) == nil || x.e.Pause(7, x.left, 1) == nil || x.e.SetFault(x.port, &fault.Config{Loss: 2}, 1) == nil {
		t.Error("what does not exist was paused, or a fault that cannot be was set")
	}
}

// The far side going away, and coming back, loses what was under way and
// keeps the fault.
func TestFaultOutlivesItsDevice(t *testing.T) {
	x := newFaultyWire(t, PortSpec{Delay: 10 * frame.Microsecond})
	x.fault(t, fault.Config{Reorder: 0.5, ReorderBy: 50 * frame.Microsecond}, 1)
	x.left.toSend = 50
	x.run(2, frame.Microsecond)
	if err := x.e.RemovePort(x.far); err != nil {
		t.Fatal(err)
	}
	if s := x.balanced(t); s.TxDropped != 50 || s.TxWaiting != 0 {
		t.Errorf("%+v", s.PortCounters)
	}
	x.far = mustPort(t, x.e, 0, x.right, 0, PortSpec{Kind: Wire, Wire: "x", Name: "right"})
	x.left.toSend = 1000
	x.run(200, frame.Microsecond)
	if s := x.balanced(t); x.right.received != 950 || s.Faults.Held < 400 || !s.Faulty {
		t.Errorf("%d arrived, %+v", x.right.received, s.Faults)
	}
}

func TestFaultsAllocateNothing(t *testing.T) {
	x := newFaultyWire(t, PortSpec{Delay: 100})
	tuple := fault.FiveTuple{Proto: 6}
	x.fault(t, fault.Config{Loss: 0.1, Burst: fault.Bursts(0.1, 3), Corrupt: 0.1, Flip: 0.1, Reorder: 0.1, ReorderBy: 5000, Jitter: 500,
		Duplicate: 0.1, Drop: []fault.Drop{{Match: tuple.Match(), Share: 0.5}}}, 1)
	x.left.toSend = 1 << 62
	x.right.numbers, x.right.at = make([]uint64, 0, 1<<20), make([]frame.Time, 0, 1<<20)
	if n := testing.AllocsPerRun(1000, func() {
		x.now += 1000
		x.w.step(x.now)
		x.w.idle(x.now)
	}); n != 0 {
		t.Errorf("%v allocations per loop", n)
	}
	if x.right.received < 10_000 {
		t.Errorf("only %d frames", x.right.received)
	}
	x.balanced(t)
}

// Held frames leave in the order of their instants, whatever they are.
func TestArrivalsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newArrivalQueue(64)
		var want []frame.Time
		for range rapid.IntRange(1, 300).Draw(t, "operations") {
			if q.room() > 0 && rapid.Bool().Draw(t, "push") {
				at := frame.Time(rapid.IntRange(0, 50).Draw(t, "at"))
				q.push(frame.Ref(at), at)
				want = append(want, at)
				slices.Sort(want)
			} else if q.len() > 0 {
				if at := q.first(); at != want[0] || q.pop() != frame.Ref(want[0]) {
					t.Fatalf("%d comes first, want %d", at, want[0])
				}
				want = want[1:]
			}
			if q.len() != len(want) {
				t.Fatalf("%d frames, want %d", q.len(), len(want))
			}
		}
	})
}

func BenchmarkFaultyLoop(b *testing.B) {
	x := newFaultyWire(b, PortSpec{})
	x.fault(b, fault.Config{Loss: 0.01}, 1)
	x.left.toSend = 1 << 62
	x.right.numbers, x.right.at = make([]uint64, 0, 1<<20), make([]frame.Time, 0, 1<<20)
	for b.Loop() {
		x.now += 1000
		x.w.step(x.now)
		x.right.numbers, x.right.at = x.right.numbers[:0], x.right.at[:0]
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(x.right.received), "ns/frame")
}
