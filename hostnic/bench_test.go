package hostnic

import (
	"fmt"
	"reflect"
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/transport"
)

// loop is two NICs back to back and nothing else: frames go over by hand, as
// an engine does it, in virtual time.
type loop struct {
	*pair
	qps  []uint32
	next frame.Time
	out  [4]frame.Ref
	port [1]uint16
}

func newLoop(t testing.TB, qps int, change func(i int, c *Config), turn func(c *QPConfig)) *loop {
	l := &loop{pair: newPair(t, change)}
	for range qps {
		qa, _ := l.connect(turn)
		must(t, l.a.SendMessage(0, qa, 1<<40, 0))
		l.qps = append(l.qps, qa)
	}
	return l
}

// frame moves one data frame over and its acknowledgement back.
func (l *loop) frame() {
	now := max(l.next, l.a.PortWake(l.next, 0))
	if due := l.a.TimerWake(now); due <= now {
		l.a.Advance(now)
	}
	k := l.a.Transmit(now, 0, l.out[:1])
	for k == 0 { // pacing asked for the exact instant, or for a later one
		now = l.a.PortWake(now, 0)
		k = l.a.Transmit(now, 0, l.out[:1])
	}
	m := l.pool.Meta(l.out[0])
	at := m.Depart + frame.Time(m.Span)
	l.b.Receive(at, 0, l.out[:1])
	if l.b.Touched(l.port[:]) == 1 {
		at = max(at, l.b.PortWake(at, 0))
		k = l.b.Transmit(at, 0, l.out[:1])
		l.a.Receive(at, 0, l.out[:k])
		l.a.Touched(l.port[:])
	}
	l.next = at
}

func (l *loop) warm(n int) {
	for range n {
		l.frame()
	}
}

var loops = []struct {
	name   string
	cc     string
	telem  inband.Mode
	kind   *transport.Kind
	change func(i int, c *Config)
}{
	{name: "none"},
	{name: "irn", kind: transport.IRN},
	{name: "hpcc", cc: "hpcc", telem: inband.HPCC},
	{name: "dcqcn", cc: "dcqcn"},
	{name: "timely", cc: "timely"},
}

func loopOf(t testing.TB, i, qps int) *loop {
	c := &loops[i]
	f := func(q *QPConfig) {
		q.INT = c.telem
		q.Transport = transport.Config{Recovery: c.kind, RTOLow: 4 * frame.Millisecond, RTOHigh: 20 * frame.Millisecond, N: 3}
		if c.cc != "" {
			q.CC = factory(t, c.cc, nil)
		}
	}
	return newLoop(t, qps, c.change, f)
}

// BenchmarkNIC is the cost of a data frame at both ends: sent, received,
// acknowledged, and the acknowledgement taken in.
func BenchmarkNIC(b *testing.B) {
	for i := range loops {
		for _, qps := range []int{1, 100, 10_000} {
			b.Run(fmt.Sprintf("%s/qps=%d", loops[i].name, qps), func(b *testing.B) {
				l := loopOf(b, i, qps)
				l.warm(2*qps + 1000)
				b.ReportAllocs()
				for b.Loop() {
					l.frame()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/frame+ack")
			})
		}
	}
}

// A frame and its acknowledgement allocate nothing at either end.
func TestFramesDoNotAllocate(t *testing.T) {
	for i := range loops {
		l := loopOf(t, i, 10)
		l.warm(5000)
		if n := testing.AllocsPerRun(2000, l.frame); n != 0 {
			t.Errorf("%s: %v allocations per frame", loops[i].name, n)
		}
	}
}

// A queue pair has its cache lines to itself.
func TestQueuePairsShareNoLine(t *testing.T) {
	if size := reflect.TypeFor[queuePair]().Size(); size%64 != 0 {
		t.Errorf("a queue pair has %d bytes, %d more than whole lines", size, size%64)
	}
}
