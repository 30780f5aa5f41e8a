package vswitch

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"gswitch/escape"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/wire"
)

// EscapeConfig lets frames of lossless classes out of paused queues, on tokens
// of neighbours whose way on is open (package escape).
type EscapeConfig struct {
	On bool
	// Queue of every port is theirs: strict, of no class, above the queues of
	// the lossless classes. A frame that has a place in it does not count
	// against the threshold at which the port it came by asks for pause.
	Queue         uint8
	escape.Config // its zero value: escape.Default
	// Period is the time from one round of tokens to the next; 0 = 2 us. The
	// paper takes twice the delay of a link, so that about one frame per round
	// comes back.
	Period frame.Time
}

const defaultEscapePeriod = 2 * frame.Microsecond

func (c *EscapeConfig) params() escape.Config {
	if c.Config == (escape.Config{Printed: c.Printed}) {
		d := escape.Default()
		d.Printed = c.Printed
		return d
	}
	return c.Config
}

func (c *EscapeConfig) period() frame.Time {
	if c.Period == 0 {
		return defaultEscapePeriod
	}
	return c.Period
}

// validateEscape reports what stands against letting frames escape.
func (cfg *Config) validateEscape() error {
	e := &cfg.Escape
	if !e.On {
		return nil
	}
	params := e.params()
	switch {
	case cfg.PFC.Mode != pfc.PFC || cfg.PFC.Classes == 0:
		return fmt.Errorf("escape: there is nothing to escape from without priority flow control and a lossless class")
	case e.Queue >= scheduler.NumQueues:
		return fmt.Errorf("escape: there is no queue %d", e.Queue)
	case e.Period < 0:
		return fmt.Errorf("escape: the period %v is negative", e.Period.Duration())
	}
	for class, q := range cfg.Class.Queue {
		if q == e.Queue {
			return fmt.Errorf("escape: queue %d is that of class %d; give that class another one", q, class)
		}
		if q > e.Queue && cfg.lossless(class) {
			return fmt.Errorf("escape: queue %d of lossless class %d is above queue %d, in which frames escape", q, class, e.Queue)
		}
	}
	worker := -1
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if p.Name == "" {
			continue
		}
		if worker < 0 {
			worker = p.Worker
		}
		switch {
		case p.Worker != worker:
			return fmt.Errorf("escape: port %s belongs to another worker than the ports before it; give all to one", p.Name)
		case p.Scheduler.Queues[e.Queue].Weight != 0:
			return fmt.Errorf("escape: queue %d of port %s is not strict", e.Queue, p.Name)
		}
		for class, q := range cfg.Class.Queue {
			if cfg.lossless(class) && p.Scheduler.Queues[q].Order != nil {
				return fmt.Errorf("escape: queue %d of port %s has an order of its own, from which no flow can be taken", q, p.Name)
			}
		}
	}
	return params.Validate()
}

// escapeReserve is what frames that have a place at a port may take, parked or
// not.
func (cfg *Config) escapeReserve(p *PortConfig) uint64 {
	return 2 * uint64(cfg.Escape.params().Slots) * uint64(p.mtu()+wire.EthernetLen+2*wire.VLANLen)
}

// exit is where frames escape by an egress port, on the worker that owns it.
// It stays when it is turned off, until the port goes: frames that have a
// place may still wait.
type exit struct {
	*escape.Egress
	on       bool
	params   escape.Config
	queue    uint8
	from     uint8                                    // queues of lossless classes
	patience frame.Time                               // from a pause until nothing is under way any more
	fifo     [scheduler.NumQueues]*scheduler.FlowFIFO // of those queues
	unmarked uint64
	asking   // see escape_ask.go
}

// escaping is what a worker keeps for all its ports.
type escaping struct {
	on     bool
	asks   bool
	period frame.Time
	due    frame.Time // of the next round
	hasher wire.Hasher
	ports  portSet     // whose neighbours take part
	flow   wire.FlowID // that same looks for
	open   uint8       // classes that the egress port at hand may send
	// Method values, made once.
	same   func(frame.Ref) bool
	may    func(in uint16, class uint8) bool
	waited func(in uint16, class uint8) bool
	asker
}

// adoptEscaping brings the worker in line with the configuration.
func (n *Node) adoptEscaping(cfg *Config) {
	x := &n.escaping
	x.due = frame.Never
	if cfg.Escape.On || x.on {
		x.due = 0 // pauses may be on, and tokens out
	}
	x.on, x.asks, x.period = cfg.Escape.On, cfg.Escape.On && !cfg.Escape.params().Printed, cfg.Escape.period()
	x.ports = portSet{}
	for i := range n.prog.ports {
		if n.prog.ports[i].escape {
			x.ports.add(uint16(i))
		}
	}
	x.hasher = wire.NewHasher(cfg.Seed, cfg.SymmetricHash)
	if x.same == nil {
		x.same, x.may, x.waited, x.one = n.isWanted, n.mayEscape, n.isWaited, n.askFor
	}
}

// adoptEscape brings an own port in line with the configuration, and gives its
// queues the order from which flows can be taken.
func (n *Node) adoptEscape(i uint16, c *PortConfig, sc *scheduler.PortConfig) {
	cfg := n.prog.Config
	ps := &n.ports[i]
	if !cfg.Escape.On {
		if ps.exit != nil {
			ps.exit.on = false
		}
		return
	}
	params := cfg.Escape.params()
	if ps.exit == nil || ps.exit.params != params && ps.exit.Taken()+ps.exit.Parked() == 0 {
		x := &exit{Egress: escape.NewEgress(params), params: params}
		if ps.exit != nil {
			x.fifo = ps.exit.fifo
		}
		ps.exit = x
	}
	x := ps.exit
	x.on, x.queue, x.from = true, cfg.Escape.Queue, 0
	for class, q := range cfg.Class.Queue {
		if !cfg.lossless(class) {
			continue
		}
		x.from |= 1 << q
		if x.fifo[q] == nil {
			x.fifo[q] = scheduler.NewFlowFIFO(params.Flows)
		}
		sc.Queues[q].Discipline = x.fifo[q]
	}
	// A pause frame waits for the frame that is being sent, goes over the link,
	// and lets the neighbour finish its own, which comes over the link.
	link := c.link(&cfg.Buffer)
	bits := 2 * 8 * uint64(link.MaxFrame+link.Overhead)
	x.patience = 2*link.Delay + link.Response + frame.Time(bits*1e9/max(link.Rate, 1)) + 1
}

// flowOf is the five-tuple of a frame that HasIPv4 and its bytes.
func flowOf(b []byte, m *frame.Meta) wire.FlowID {
	return wire.FlowID{Addrs: binary.BigEndian.Uint64(b[m.L3+12:]), Ports: uint32(m.SrcPort)<<16 | uint32(m.DstPort), Proto: m.ProtoIn}
}

// plainFlow are the flags that tell whether a frame belongs to a flow that a
// token can name.
const plainFlow = frame.HasIPv4 | frame.HasTunnel | frame.IsFragment | frame.IsMulticast | frame.IsClone

// unmark takes the marks off frames that escaped from the neighbour's queue, of
// which the parser saw no more than the mark.
func (n *Node) unmark(v []frame.Ref) {
	for i, r := range v {
		m := n.arena.Meta(r)
		if m.EtherType != wire.EtherTypeEscape {
			continue
		}
		if hops, _, ok := wire.PopEscape(n.arena, r); ok {
			m.Hops = hops
			n.parser.Parse(n.arena, v[i:i+1])
		}
	}
}

// settle is enqueue for a frame that escaped from the neighbour's queue. It
// returns true if the frame has a place and was queued.
func (n *Node) settle(ps *portState, r frame.Ref, m *frame.Meta) bool {
	x, flow := ps.exit, flowOf(n.arena.Bytes(r), m)
	if !x.on || ps.dropping>>m.Queue&1 != 0 {
		return false
	}
	if !x.Arrive(n.now, m.Hash, flow) {
		// The token was another port's, by which the flow left then, or was given
		// up for lost.
		n.retire(m.OutPort, m.Hash, flow)
		if !x.Borrow() {
			return false
		}
	}
	return n.enqueueEscaped(ps, r, m, flow)
}

// retire lets no port but the one by which a flow leaves make tokens for it.
func (n *Node) retire(but uint16, hash uint32, flow wire.FlowID) {
	for i := range n.ports {
		if x := n.ports[i].exit; x != nil && i != int(but) {
			x.Retire(hash, flow)
		}
	}
}

// rerouted brings what is known of flows in line with the routes: a flow that
// leaves by another port now, of which all frames may be waiting at the
// neighbour, gets its tokens there.
func (n *Node) rerouted() {
	for i := range n.ports {
		x := n.ports[i].exit
		if x == nil {
			continue
		}
		x.Each(func(hash uint32, key wire.FlowID, in uint16, class uint8) {
			port, ok := n.sw.EgressPort(flowFields(key))
			if !ok || int(port) == i {
				return
			}
			x.Retire(hash, key)
			if to := n.ports[port].exit; to != nil && port != in {
				to.Note(hash, key, in, class)
			}
		})
	}
}

func flowFields(f wire.FlowID) Flow {
	var src, dst [4]byte
	binary.BigEndian.PutUint32(src[:], uint32(f.Addrs>>32))
	binary.BigEndian.PutUint32(dst[:], uint32(f.Addrs))
	return Flow{Src: netip.AddrFrom4(src), Dst: netip.AddrFrom4(dst), SrcPort: uint16(f.Ports >> 16), DstPort: uint16(f.Ports), Proto: f.Proto}
}

// enqueueEscaped queues a frame that escaped from the neighbour's queue and has
// a place here. Where it was the token's origin the frame goes behind what
// waits in its own queue, older frames of its flow among it; elsewhere past
// the pause. If an older frame waits there nevertheless, that one goes on in
// its place.
func (n *Node) enqueueEscaped(ps *portState, r frame.Ref, m *frame.Meta, flow wire.FlowID) bool {
	x, queue, hops := ps.exit, m.Queue, m.Hops
	m.Queue, m.Hops = x.queue, 0
	if n.held >= n.maxHeld || n.buffer.Try(m) != frame.Keep {
		x.Leave(false) // as good as a place that was not kept
		m.Queue = queue
		return false
	}
	n.held++
	m.Flags |= frame.Slotted
	m.Queue = queue
	if hops == 1 {
		if x.Park() {
			m.Flags |= frame.Parked
		}
		n.join(n.now, ps, r, m)
		return true
	}
	n.escaping.flow = flow
	older := n.extract(ps, int(queue), m.Hash)
	if older != frame.Nil {
		o := n.arena.Meta(older)
		x.exchange(m, o)
		n.join(n.now, ps, r, m)
		r, m = older, o
	}
	n.letOut(ps, r, m, hops-1)
	return true
}

// exchange gives the place of a frame that is to wait to the older one that goes
// on in its stead, so that no place is kept from others by what waits. The one
// that waits gets what the other had: its place among the parked ones, or its
// charge where that is not less than its own. Else it is parked.
func (x *exit) exchange(m, older *frame.Meta) {
	switch {
	case older.Flags&frame.Parked != 0:
		older.Flags &^= frame.Parked
		m.Flags |= frame.Parked
	case older.Flags&frame.Slotted == 0 && older.InPort == m.InPort && older.Class == m.Class && older.Cost >= m.Cost:
		older.Cost, m.Cost = m.Cost, older.Cost
		older.Pool, m.Pool = m.Pool, older.Pool
		older.Flags ^= frame.Slotted
		m.Flags ^= frame.Slotted
	case x.Park():
		m.Flags |= frame.Parked
	}
}

// letOut marks a frame and sends it past the pause. It stays charged as it was.
func (n *Node) letOut(ps *portState, r frame.Ref, m *frame.Meta, hops uint8) {
	if !wire.PushEscape(n.arena, r, hops, m.Class) {
		// Without a mark it is one frame more in the neighbour's headroom.
		ps.exit.unmarked++
	}
	m.Queue = ps.exit.queue
	n.join(n.now, ps, r, m)
}

// extract takes the oldest frame of the flow that is looked for out of a queue
// of its class, frame.Nil if none waits there. It stays charged as it was.
func (n *Node) extract(ps *portState, queue int, hash uint32) frame.Ref {
	r := ps.sched.ExtractFirst(n.now, queue, hash, n.escaping.same)
	if r != frame.Nil {
		n.scratchOne[0] = r
		n.left(ps, n.scratchOne[:])
	}
	return r
}

// unslot gives back the place of a frame that leaves.
func (n *Node) unslot(m *frame.Meta) {
	if x := n.ports[m.OutPort].exit; x != nil {
		x.Leave(m.Flags&frame.Parked != 0)
	}
	m.Flags &^= frame.Slotted | frame.Parked
}

// token acts on a token from the neighbour at a port, and reports false if the
// port does not understand it.
func (n *Node) token(port uint16, c wire.MACControl) bool {
	ps := &n.ports[port]
	x := ps.exit
	if x == nil || !x.on || !n.prog.ports[port].escape {
		return false
	}
	var t wire.TokenFields
	if _, why := t.Decode(c); why != frame.Keep || t.Hops == 0 {
		return false
	}
	if t.Hops > escape.MaxHops {
		x.Drop()
		return true
	}
	hash := n.escaping.hasher.IPv4(t.Flow.Addrs, t.Flow.Ports, t.Flow.Proto)
	n.escaping.flow = t.Flow
	for q := range x.fifo {
		if x.from>>q&1 == 0 {
			continue
		}
		if r := n.extract(ps, q, hash); r != frame.Nil {
			x.Hit()
			n.letOut(ps, r, n.arena.Meta(r), uint8(t.Hops))
			return true
		}
	}
	if tok, ok := x.Pass(n.now, hash, t.Flow, t.Hops, n.escaping.waited); ok {
		n.sendToken(tok)
		n.escaping.due = min(n.escaping.due, x.Due())
	}
	return true
}

// isWanted reports whether a frame is of the flow that is looked for.
func (n *Node) isWanted(r frame.Ref) bool {
	m := n.arena.Meta(r)
	return m.Flags&plainFlow == frame.HasIPv4 && flowOf(n.arena.Bytes(r), m) == n.escaping.flow
}

// isWaited reports whether frames of a class that come by a port are held back
// by the neighbour there, and none is under way any more: only then does no
// frame overtake an older one where the token goes further than one hop.
func (n *Node) isWaited(in uint16, class uint8) bool {
	if int(in) >= len(n.prog.ports) || !n.prog.ports[in].escape || !n.linkUp.has(in) {
		return false
	}
	ps := &n.ports[in]
	if ps.pfc == nil || ps.exit == nil {
		return false
	}
	c := ps.pfc.Class(int(class))
	return c.Told && n.now-c.ToldSince >= ps.exit.patience
}

// mayEscape is isWaited for flows whose way on is open.
func (n *Node) mayEscape(in uint16, class uint8) bool {
	return n.escaping.open>>(class&7)&1 != 0 && n.isWaited(in, class)
}

// armEscape lets the worker make tokens, now that a neighbour is paused.
func (n *Node) armEscape(now frame.Time) {
	n.escaping.due = min(n.escaping.due, now-now%n.escaping.period+n.escaping.period)
}

// makeTokens is a round: for each open egress port, tokens for the flows that
// wait at neighbours which this switch has paused.
func (n *Node) makeTokens(now frame.Time) {
	x := &n.escaping
	x.due = frame.Never
	asked := false
	for i := range n.ports {
		if p := n.ports[i].pfc; p != nil && p.Told()&n.losslessClasses != 0 && i < len(n.prog.ports) && n.prog.ports[i].escape {
			asked = true
		}
	}
	for i := range n.ports {
		ps := &n.ports[i]
		if ps.exit == nil || ps.pfc == nil {
			continue
		}
		ps.exit.Reclaim(now)
		if asked && ps.exit.on && n.linkUp.has(uint16(i)) && ps.dropping == 0 {
			x.open = n.losslessClasses &^ ps.pfc.Paused(now)
			for tok, ok := ps.exit.Offer(now, x.may); ok; tok, ok = ps.exit.Offer(now, x.may) {
				n.sendToken(tok)
			}
		}
		x.due = min(x.due, ps.exit.Due())
		if x.asks && ps.exit.on {
			x.due = min(x.due, n.ask(now, uint16(i)))
		}
	}
	if asked && x.on {
		n.armEscape(now)
	}
}

// sendToken sends a token to the neighbour at its port. One that cannot be made
// is like one that is lost: its place is reclaimed.
func (n *Node) sendToken(t escape.Token) {
	if b, r := n.controlFrame(t.In); b != nil {
		f := wire.TokenFields{Src: n.prog.Config.MAC, Flow: t.Flow, Hops: t.Hops}
		f.Encode(b)
		n.sendControl(t.In, r)
	}
}

// controlFrame returns an empty MAC control frame to the neighbour at a port, or
// nil if there is no memory.
func (n *Node) controlFrame(port uint16) ([]byte, frame.Ref) {
	n.count.Made++
	r := n.pool.Alloc()
	if r == frame.Nil {
		n.countDrop(frame.NoPort, frame.ArenaExhausted)
		return nil, r
	}
	m := n.arena.Reset(r)
	m.Len, m.Wire = wire.MinFrame, wire.MinFrame
	m.InPort, m.OutPort, m.Arrival = port, port, n.now
	return n.arena.Bytes(r), r
}

func (n *Node) sendControl(port uint16, r frame.Ref) {
	n.ports[port].sched.EnqueueControl(r)
	n.busy.add(port)
	n.touched.add(port)
}
