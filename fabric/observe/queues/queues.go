// Package queues replays the queues of switches from the times at which hosts sent
// packets (queue_replay; DETER: Li, dissertation, section 6.5).
package queues

import (
	"context"
	"slices"

	"gswitch/deter"
	"gswitch/fabric/measure"
	"gswitch/fabric/observe"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/vswitch"
)

var values = []measure.Key{
	{Name: "queue_replay_difference_mean_bytes", Of: measure.OfRun, Doc: "By how much the bytes of each flow that a packet finds in a queue differ in the replay of the queues from the run, of all flows together, with queue_replay."},
	{Name: "queue_replay_difference_p99_bytes", Of: measure.OfRun, Doc: "The 99th percentile of it."},
	{Name: "queue_replay_drop_error_share", Of: measure.OfRun, Doc: "Share of the packets that are dropped in the run or in the replay of which the replay, in which switches drop only what hosts tagged, has it wrong."},
	{Name: "queue_replay_untagged_drop_error_share", Of: measure.OfRun, Doc: "The same of a replay in which switches drop as in the run."},
	{Name: "queue_replay_false_drops_total", Of: measure.OfRun, Doc: "Packets that only the replay drops."},
	{Name: "queue_replay_false_accepts_total", Of: measure.OfRun, Doc: "Packets that only the run dropped."},
	{Name: "queue_replay_wrong_place_share", Of: measure.OfRun, Doc: "Share of the dropped packets that the replay drops at another queue."},
	{Name: "queue_replay_drops_total", Of: measure.OfRun, Doc: "Packets of hosts that switches dropped in the run."},
	{Name: "queue_replay_packets_total", Of: measure.OfRun, Doc: "Packets that the recorded hosts sent."},
	{Name: "queue_replay_samples_share", Of: measure.OfRun, Doc: "Times that were kept, of all of these packets."},
	{Name: "queue_replay_builders_found_total", Of: measure.OfRun, Doc: "1 if the replay names the flow that had the most bytes in the longest queue of the run, 0 if another."},
	{Name: "queue_replay_builder_share", Of: measure.OfRun, Doc: "Share of that queue that was this flow's."},
}

func init() {
	observe.Register(&observe.System{
		Name:    "queue_replay",
		On:      func(d *scenario.Document) bool { return d.QueueReplay.Enabled },
		Divided: "queue_replay: the times of all packets are put together in one process: run it with --processes one",
		Values:  values,
		New: func(ctx context.Context, r *observe.Run) (*observe.Observer, error) {
			if err := possible(r); err != nil {
				return nil, err
			}
			b := &book{r: r.Run, dir: r.Dir, flows: map[string]uint32{}, dropped: map[uint32]bool{}}
			var as vnet.Config
			var run *watch
			return &observe.Observer{
				Network: func(c *vnet.Config) {
					as = *c
					run = &watch{book: b}
					c.Wrap, c.Cores = run.wrap, 1
				},
				Finish: func(n *vnet.Network, out *results.Run) error {
					return b.finish(ctx, as, run, n.Engine.Now(), out)
				},
			}, nil
		},
	})
}

// watch is what is seen of a network: of a run, or of a replay of its queues.
type watch struct {
	book    *book
	number  []uint32 // of the packet in a chunk
	queues  [][]deter.Queue
	sources [][]departure // of a replay: what each host sends
	tags    bool          // of a replay: switches drop only tagged packets
	nodes   []*observed   // by switch
}

// noPacket is the number of a chunk that holds no packet of a host.
const noPacket = ^uint32(0)

// wrap puts an observer around a node, or a source in the place of a host.
func (w *watch) wrap(n *vnet.Network, node int, s frame.Stepper) frame.Stepper {
	pool := n.Engine.Pool(node)
	for len(w.number) < pool.Chunks() {
		w.number = append(w.number, noPacket)
	}
	if sw, ok := s.(*vswitch.Node); ok {
		sw.TapDrops(make([]frame.Ref, 0, 64))
		o := &observed{Node: sw, w: w, pool: pool, queues: make([]deter.Queue, len(n.Topology.Nodes[node].Links))}
		w.nodes, w.queues = append(w.nodes, o), append(w.queues, o.queues)
		return o
	}
	host := slices.Index(n.Topology.Hosts(), node)
	if w.sources != nil {
		return &source{w: w, pool: pool, list: w.sources[host]}
	}
	return &sender{Stepper: s, w: w, pool: pool, host: int32(host)}
}

// sender is a host whose packets are noted.
type sender struct {
	frame.Stepper
	w    *watch
	pool *frame.Pool
	host int32
}

// Transmit implements frame.Node.
func (s *sender) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	k := s.Stepper.Transmit(now, port, out)
	for _, r := range out[:k] {
		s.w.number[r] = s.w.book.send(s.host, s.pool.Meta(r), s.pool.Bytes(r))
	}
	return k
}

// observed is a switch whose queues are noted.
type observed struct {
	*vswitch.Node
	w      *watch
	pool   *frame.Pool
	queues []deter.Queue
	used   uint64 // bytes in all queues
	tagged bool   // the frame that it receives now is a packet that the run dropped
}

// Receive implements frame.Node: one frame after the other, so that it is known what each
// finds.
func (o *observed) Receive(now frame.Time, port uint16, v []frame.Ref) {
	b := o.w.book
	for i, r := range v {
		p, m := o.w.number[r], o.pool.Meta(r)
		o.tagged = p != noPacket && b.dropped[p]
		size := m.Wire
		o.Node.Receive(now, port, v[i:i+1])
		o.tagged = false
		to, gone := m.OutPort, false
		for _, d := range o.TakeDrops() {
			gone = gone || d == r
			o.pool.Free(d)
		}
		if p == noPacket || int(to) >= len(o.queues) {
			continue
		}
		o.queues[to].Arrive(now, p, gone)
		if !gone {
			o.used += uint64(size)
		} else if o.w.sources == nil {
			b.dropped[p] = true
		}
	}
}

// Transmit implements frame.Node.
func (o *observed) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	k := o.Node.Transmit(now, port, out)
	for _, r := range out[:k] {
		if o.w.number[r] != noPacket {
			o.queues[port].Left++
			o.used -= uint64(o.pool.Meta(r).Wire)
		}
	}
	return k
}

// tagRule is the admission of a queue in a replay with tags (scheduler.Admission): only
// tagged packets are dropped, where the queue is nearly full.
type tagRule struct {
	w      *watch
	sw     int
	margin uint64
}

// New implements scheduler.Admission.
func (t *tagRule) New(scheduler.Env) scheduler.Gate { return t }

// String implements scheduler.Admission.
func (t *tagRule) String() string { return "tagged" }

// Admits implements scheduler.Gate.
func (t *tagRule) Admits(_ frame.Time, _ *frame.Meta, _ int, bytes uint64) scheduler.Verdict {
	if o := t.w.nodes[t.sw]; o.tagged && bytes+t.margin > t.w.book.limit(o.used) {
		return scheduler.Drop
	}
	return scheduler.Pass
}

// source sends the packets of a host at their times, whatever comes back.
type source struct {
	w       *watch
	pool    *frame.Pool
	list    []departure
	free    frame.Time // when the link is
	touched bool       // reported by Touched: that there is something to send
}

// Receive implements frame.Node.
func (s *source) Receive(_ frame.Time, _ uint16, v []frame.Ref) {
	for _, r := range v {
		s.pool.Free(r)
	}
}

// Transmit implements frame.Node.
func (s *source) Transmit(now frame.Time, _ uint16, out []frame.Ref) (k int) {
	for k < len(out) && len(s.list) > 0 && max(s.list[0].at, s.free) <= now {
		d := &s.list[0]
		r := s.pool.Alloc()
		if r == frame.Nil {
			return k // there is one when something has left
		}
		m := s.pool.Reset(r)
		m.Len, m.Wire = uint16(len(d.head)), d.wire
		copy(s.pool.Bytes(r), d.head)
		m.Depart, m.Span = max(d.at, s.free), d.span
		s.free = m.Depart + frame.Time(d.span)
		s.w.number[r] = d.packet
		s.list = s.list[1:]
		out[k] = r
		k++
	}
	return k
}

// PortWake implements frame.Stepper.
func (s *source) PortWake(now frame.Time, _ uint16) frame.Time {
	if len(s.list) == 0 {
		return frame.Never
	}
	return max(now, s.list[0].at, s.free)
}

// TimerWake implements frame.Stepper.
func (s *source) TimerWake(frame.Time) frame.Time { return frame.Never }

// Wake implements frame.Node.
func (s *source) Wake(now frame.Time) frame.Time { return s.PortWake(now, 0) }

// Touched implements frame.Stepper.
func (s *source) Touched(out []uint16) int {
	if s.touched || len(out) == 0 {
		return 0
	}
	s.touched, out[0] = true, 0
	return 1
}

// Advance implements frame.Node.
func (s *source) Advance(frame.Time) {}

// SetLink implements frame.Node.
func (s *source) SetLink(frame.Time, uint16, bool) {}
