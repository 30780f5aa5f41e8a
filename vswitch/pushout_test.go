package vswitch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gswitch/frame"
	"gswitch/policy"
	"gswitch/scheduler"
	"gswitch/scheduler/orders"
	"gswitch/wire"
)

// byClass is how many frames of each class leave by a port until it is empty.
func (r *rig) byClass(port uint16) (n [8]int) {
	for range 400 {
		for _, b := range r.all(port) {
			if wire.Ethernet(b).EtherType() == wire.EtherTypeVLAN {
				n[wire.VLAN(b[14:]).TCI()>>13]++
			}
		}
	}
	return n
}

// A port that pushes out keeps what is worth most: frames of higher classes stay,
// those of the lowest go, whatever comes first, and lossless ones are not touched.
// What went is counted, and gave its bytes back.
func TestPushOut(t *testing.T) {
	cfg := losslessConfig(3)
	cfg.Buffer.XOFF = 100_000
	cfg.Ports[2].Scheduler.PushOut = scheduler.PushOut{Port: 20_000}
	cfg.Buffer.QueueLimit = 4000 // without meaning beside it
	r := newRig(t, cfg)
	for range 25 {
		for _, class := range []uint8{1, 2, 3} {
			r.in(0, tagged(2, 0, class, 1000))
		}
	}
	pushed := r.counts(0).Drops[frame.PushedOut]
	if d := r.drops(); len(d) != 1 || pushed == 0 {
		t.Fatalf("drops %v, want pushed-out alone", d)
	}
	if q := r.counts(2).QueueDrops; q != [8]uint64{} {
		t.Errorf("%v were refused by queues that took all, and gave some up", q)
	}
	n := r.byClass(2)
	if n[3] != 25 || n[1]+n[2]+int(pushed) != 50 {
		t.Errorf("%v frames by class left and %d were pushed out, of 25 each", n, pushed)
	}
	// 20 lossy ones fit besides the one that left at once, all of the higher class.
	if n[2] < 20 || n[1] > 2 {
		t.Errorf("%v frames by class left: the lower class took room of the higher", n)
	}
	node := r.sw.Nodes[0]
	if held := node.buffer.Held(0, 1) + node.buffer.Held(0, 2) + node.buffer.Held(0, 3); held != 0 || node.chunks.held != 0 {
		t.Errorf("%d bytes and %d frames are charged when nothing waits", held, node.chunks.held)
	}
	if s := node.Scheduler(2).Stats(r.now, 1, false); s.Evicted == 0 {
		t.Error("no frame of the lowest queue was pushed out")
	}
}

// Where the whole buffer is full before the port is, a frame of a higher class
// takes the room of lower ones, and one of the lowest is refused.
func TestPushOutOfAFullBuffer(t *testing.T) {
	cfg := rated(baseConfig(3), 1e9)
	cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 2}}
	cfg.Buffer.Size = 20_000
	cfg.Ports[2].Scheduler.PushOut = scheduler.PushOut{Port: 1 << 20}
	r := newRig(t, cfg)
	for range 30 {
		r.in(0, tagged(2, 0, 1, 1000))
	}
	refused := r.counts(0).Drops[frame.BufferFull]
	for range 10 {
		r.in(0, tagged(2, 0, 2, 1000))
	}
	d := r.counts(0).Drops
	if refused == 0 || d[frame.BufferFull] != refused || d[frame.PushedOut] != 10 {
		t.Errorf("%d frames of the lowest class and %d of the next are refused, %d pushed out; want some, 0, and 10", refused, d[frame.BufferFull]-refused, d[frame.PushedOut])
	}
	if n := r.byClass(2); n[2] != 10 || n[1]+10+int(refused) != 30 {
		t.Errorf("%v frames by class left, %d were refused", n, refused)
	}
	if node := r.sw.Nodes[0]; node.chunks.held != 0 || node.buffer.Held(0, 1)+node.buffer.Held(0, 2) != 0 {
		t.Error("frames are charged when nothing waits")
	}
}

// An order of a queue is that of a running port from when it is configured on,
// and drops that an admission makes at the head free what the frames held.
func TestOrderOfAQueue(t *testing.T) {
	cfg := losslessConfig(3)
	r := newRig(t, cfg)
	sizes := func() (v []int) {
		for _, b := range r.all(2) {
			v = append(v, len(b))
		}
		return v
	}
	next := *cfg
	next.Ports = append([]PortConfig(nil), cfg.Ports...)
	next.Ports[2].Scheduler.Queues[1].Order, next.Ports[2].Scheduler.Queues[1].Rank = orders.VOQ{}, scheduler.RankSize
	r.in(0, tagged(2, 0, 1, 300), tagged(2, 0, 1, 200))
	if err := r.sw.Apply(&next); err != nil {
		t.Fatal(err)
	}
	r.advance(0)
	r.in(0, tagged(2, 0, 1, 150), tagged(2, 0, 1, 140))
	r.in(1, tagged(2, 1, 1, 130))
	if v := sizes(); len(v) != 5 || v[0] != 300 || v[1] != 200 || v[2] != 150 || v[3] != 130 || v[4] != 140 {
		t.Errorf("frames of %v bytes left, want 300 200 150 130 140", v)
	}
}

// What cannot be meant is refused, with the port and queue.
func TestQueuePolicyRefused(t *testing.T) {
	for want, f := range map[string]func(*Config){
		"port b: queue 3: admission cannot stand beside a lossless class": func(c *Config) { c.Ports[1].Scheduler.Queues[3].Admission = refuseAll{} },
		"port b: queue 2: an order beside": func(c *Config) {
			q := &c.Ports[1].Scheduler.Queues[2]
			q.Order, q.Discipline = orders.VOQ{}, scheduler.NewFlowFIFO(1)
		},
	} {
		cfg := losslessConfig(2)
		f(cfg)
		if err := newErr(t, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func newErr(t *testing.T, cfg *Config) error {
	t.Helper()
	_, err := New(cfg, []*frame.Pool{frame.NewPool(frame.MustArena(1024, 2048, 64))})
	return err
}

// refuseAll lets no frame in, or out once it is shedding.
type refuseAll struct{ shed bool }

func (refuseAll) String() string                     { return "none" }
func (o refuseAll) New(scheduler.Env) scheduler.Gate { return refusing(o) }

type refusing struct{ shed bool }

func (o refusing) Admits(frame.Time, *frame.Meta, int, uint64) scheduler.Verdict {
	if o.shed {
		return scheduler.Pass
	}
	return scheduler.Drop
}

func (o refusing) Sheds(_ frame.Time, _ *frame.Meta, left uint64) scheduler.Verdict {
	if o.shed && left > 0 {
		return scheduler.Drop
	}
	return scheduler.Pass
}

// What an admission refuses never waits; what it drops at the head has left its
// queue, whose last frame goes on.
func TestAdmissionOfAQueue(t *testing.T) {
	cfg := losslessConfig(3)
	cfg.Ports[2].Scheduler.Queues[1].Admission = refuseAll{}
	cfg.Ports[2].Scheduler.Queues[2].Admission = refuseAll{shed: true}
	r := newRig(t, cfg)
	for range 4 {
		r.in(0, tagged(2, 0, 1, 200), tagged(2, 0, 2, 200))
	}
	n := r.byClass(2)
	d := r.counts(0).Drops
	if d[frame.QueueRefused] != 4 || n[1] != 0 {
		t.Errorf("%d refused and %d left, want 4 and 0", d[frame.QueueRefused], n[1])
	}
	if d[frame.QueueShed] != 3 || n[2] != 1 {
		t.Errorf("%d shed and %d left, want 3 and 1", d[frame.QueueShed], n[2])
	}
	if node := r.sw.Nodes[0]; node.chunks.held != 0 || node.buffer.Held(0, 2) != 0 {
		t.Error("frames that were shed are charged still")
	}
	r.in(0, tagged(2, 0, 3, 200), tagged(2, 0, 3, 200))
	r.sw.Nodes[0].SetLink(r.now, 2, false)
	if r.counts(0).Drops[frame.QueueFlush] == 0 || r.counts(2).QueueDrops != [8]uint64{1: 4} {
		t.Errorf("%d flushed; queues refused %v, want 4 of queue 1", r.counts(0).Drops[frame.QueueFlush], r.counts(2).QueueDrops)
	}
}

// Two ports share the buffer of a policy: what comes to one pushes out what waits at the
// other, whose bytes are given back, and who waits there still leaves.
func TestPolicyOverPorts(t *testing.T) {
	const text = `q[1..2] = Queue(10 pkts); b = Buffer(10 pkts, q[1..2]); p1 = Port(100%, q[1]); p2 = Port(100%, q[2]);`
	cfg := rated(baseConfig(4), 1e6)
	for i := range 2 {
		cfg.FDB.Static = append(cfg.FDB.Static, StaticMAC{VLAN: 1, MAC: hostMAC(2 + i), Port: uint16(2 + i)})
		cfg.Ports[2+i].Scheduler.Queues[0].Order = policy.Order{Text: text, Port: i}
	}
	r := newRig(t, cfg)
	for range 12 {
		r.in(0, tagged(2, 0, 0, 1000))
	}
	if n := r.counts(0).Drops[frame.PushedOut]; n != 2 {
		t.Errorf("%d are pushed out by frames of their own port, want 2", n)
	}
	for range 3 {
		r.in(1, tagged(3, 1, 0, 1000))
	}
	node := r.sw.Nodes[0]
	one, _ := node.Scheduler(2).QueueLen(0)
	two, _ := node.Scheduler(3).QueueLen(0)
	if n := r.counts(0).Drops[frame.PushedOut]; n != 5 || one != 7 || two != 3 || node.chunks.held != 10 {
		t.Errorf("%d are pushed out, %d and %d wait, %d are held; want 5, 7, 3 and 10", n, one, two, node.chunks.held)
	}
	if n := node.Scheduler(2).Stats(r.now, 0, false).Evicted; n != 5 {
		t.Errorf("the port that gave up 5 frames counts %d", n)
	}
	// The second port has another policy before its frames leave, and both have none then.
	next := *cfg
	next.Ports = slices.Clone(cfg.Ports)
	next.Ports[3].Scheduler.Queues[0].Order = policy.Order{Text: "q = Queue(100 pkts);"}
	r.apply(&next)
	r.in(0, tagged(2, 0, 0, 1000)) // pushes out one of its own: the buffer is full still
	a, b := 0, 0
	for range 20 {
		r.advance(10 * frame.Millisecond) // a frame takes 8
		a += len(r.out(2))
		b += len(r.out(3))
	}
	if n := r.counts(0).Drops[frame.PushedOut]; n != 6 || a != 7 || b != 3 || node.chunks.held != 0 {
		t.Errorf("%d are pushed out, %d and %d leave, and %d are held still; want 6, 7, 3 and 0", n, a, b, node.chunks.held)
	}
}

// proved counts how often it is checked.
type proved struct {
	orders.Ranked
	checks *int
}

func (p proved) Check() error {
	*p.checks++
	return nil
}

// What the ports of a switch have alike is proved once, and what differs by itself.
func TestSameQueuesAreProvedOnce(t *testing.T) {
	var first, other int
	cfg := baseConfig(32)
	for i := range cfg.Ports {
		cfg.Ports[i].Scheduler.Queues[0].Order = proved{checks: &first}
		if i >= 30 {
			cfg.Ports[i].Scheduler.Queues[0].Order = proved{checks: &other}
		}
	}
	if err := cfg.validateQueues(); err != nil || first != 1 || other != 1 {
		t.Errorf("%v; checked %d and %d times, want once", err, first, other)
	}
}

// What a worker does to take over another policy at so many ports of one text, with a
// packet waiting at each.
func BenchmarkPolicySwap(b *testing.B) {
	for _, n := range []int{1, 8, 32} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var cfg [2]*Config
			for k, text := range []string{`q = Queue(500 pkts); q.procPrio = ranked;`, `x(a, b) = a.flow < b.flow; q = Queue(500 pkts); q.procPrio = ranked; q.admPrio = x;`} {
				cfg[k] = rated(baseConfig(n), 1e9)
				for i := range cfg[k].Ports {
					cfg[k].Ports[i].Scheduler.Queues[0].Order = policy.Order{Text: text}
				}
			}
			r := newRig(b, cfg[0])
			node := r.sw.Nodes[0]
			var took []float64
			for i := 0; b.Loop(); i++ {
				if err := r.sw.Apply(cfg[(i+1)&1]); err != nil {
					b.Fatal(err)
				}
				r.now += frame.Millisecond
				began := time.Now()
				node.Advance(r.now)
				took = append(took, float64(time.Since(began).Nanoseconds())/1e3)
			}
			slices.Sort(took)
			b.ReportMetric(took[0], "least-us")
			b.ReportMetric(took[len(took)/2], "median-us")
		})
	}
}
