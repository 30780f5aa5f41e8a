// Package point lets frames escape from paused queues of a switch (package
// escape): it moves the frames and the tokens. Importing it registers the
// feature.
package point

import (
	"encoding/binary"
	"net/netip"

	"gswitch/escape"
	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/vswitch"
	"gswitch/wire"
)

// ports is what a worker keeps for its ports.
type ports struct {
	node   *vswitch.Node
	arena  *frame.Arena
	ports  []*egressState // nil where frames never might escape
	places []place        // by frame

	on       bool
	asks     bool
	params   escape.Config
	queue    uint8
	lossless uint8 // classes
	period   frame.Time
	due      frame.Time // of the next round
	hasher   wire.Hasher
	partners []bool      // ports whose neighbours take part
	flow     wire.FlowID // that same looks for
	open     uint8       // classes that the egress port at hand may send
	// Method values, made once.
	same   func(frame.Ref) bool
	may    func(in uint16, class uint8) bool
	waited func(in uint16, class uint8) bool
	asker
}

// place is what is known of a frame here, beside its Meta.
type place struct {
	// hops is how many switches have a place for a frame that escaped from the
	// neighbour's queue, from its mark, until it is queued.
	hops uint8
	held held
}

// held is the place at its egress port that a frame has.
type held uint8

const (
	noPlace held = iota
	taken
	parked
)

// egressState is where frames escape by an egress port. It stays when it is turned off,
// until the port goes: frames that have a place may still wait.
type egressState struct {
	*escape.Egress
	on       bool
	params   escape.Config
	from     uint8                                    // queues of lossless classes
	patience frame.Time                               // from a pause until nothing is under way any more
	fifo     [scheduler.NumQueues]*scheduler.FlowFIFO // of those queues
	unmarked uint64
	asking   // see ask.go
}

func newPorts(n *vswitch.Node) vswitch.Instance {
	p := &ports{node: n, arena: n.Arena(), places: make([]place, n.Arena().Chunks())}
	p.same, p.may, p.waited, p.one = p.isWanted, p.mayEscape, p.isWaited, p.askFor
	return vswitch.Instance{State: p, Adopt: p.adopt, Queues: p.queues, Port: p.port, Dismiss: p.dismiss, Routed: p.rerouted, Listens: p.listens,
		Arrives: p.unmark, Claims: p.claim, Queued: p.note, Released: p.released, Control: p.control, Paused: p.paused, Pauses: p.pauses, Advance: p.advance, Read: p.read}
}

// adopt brings the worker in line with the configuration.
func (p *ports) adopt(frame.Time) {
	cfg := p.node.Config()
	c, on := Of(cfg)
	p.due = frame.Never
	if on || p.on {
		p.due = 0 // pauses may be on, and tokens out
		p.node.Arm(0)
	}
	p.on, p.asks, p.period, p.params, p.queue = on, on && !c.params().Printed, c.period(), c.params(), c.Queue
	p.lossless = 0
	for class := range 8 {
		if cfg.Lossless(class) {
			p.lossless |= 1 << class
		}
	}
	p.partners = make([]bool, len(cfg.Ports))
	for i := range cfg.Ports {
		p.partners[i] = on && cfg.Ports[i].Name != "" && takesPart(&cfg.Ports[i])
	}
	p.hasher = cfg.Hasher()
}

// partner reports whether the neighbour at a port takes part.
func (p *ports) partner(port uint16) bool { return int(port) < len(p.partners) && p.partners[port] }

// at returns that of a port, nil if there is none.
func (p *ports) at(port uint16) *egressState {
	if int(port) < len(p.ports) {
		return p.ports[port]
	}
	return nil
}

// queues brings an own port in line with the configuration, and gives its
// queues the order from which flows can be taken.
func (p *ports) queues(port uint16, c *vswitch.PortConfig, sc *scheduler.PortConfig) {
	for len(p.ports) <= int(port) {
		p.ports = append(p.ports, nil)
	}
	x := p.ports[port]
	if !p.on {
		if x != nil {
			x.on = false
		}
		return
	}
	if x == nil || x.params != p.params && x.Taken()+x.Parked() == 0 {
		next := &egressState{Egress: escape.NewEgress(p.params), params: p.params}
		if x != nil {
			next.fifo = x.fifo
		}
		x, p.ports[port] = next, next
	}
	cfg := p.node.Config()
	x.on, x.from = true, 0
	for class, q := range cfg.Class.Queue {
		if !cfg.Lossless(class) {
			continue
		}
		x.from |= 1 << q
		if x.fifo[q] == nil {
			x.fifo[q] = scheduler.NewFlowFIFO(p.params.Flows)
		}
		sc.Queues[q].Discipline = x.fifo[q]
	}
	// A pause frame waits for the frame that is being sent, goes over the link,
	// and lets the neighbour finish its own, which comes over the link.
	link := c.Link(&cfg.Buffer)
	bits := 2 * 8 * uint64(link.MaxFrame+link.Overhead)
	x.patience = 2*link.Delay + link.Response + frame.Time(bits*1e9/max(link.Rate, 1)) + 1
}

// port says what frames pass at an own port.
func (p *ports) port(_ frame.Time, port uint16, _ *vswitch.PortConfig) (s vswitch.Stages) {
	x := p.at(port)
	if x == nil {
		return 0
	}
	if s = vswitch.AtReleased; x.on {
		s |= vswitch.AtClaims | vswitch.AtQueued | vswitch.AtPauses | vswitch.AtControl
		if p.asks {
			s |= vswitch.AtPaused
		}
	}
	return s
}

func (p *ports) dismiss(port uint16) {
	if int(port) < len(p.ports) {
		p.ports[port] = nil
	}
}

// flowOf is the five-tuple of a frame that HasIPv4 and its bytes.
func flowOf(b []byte, m *frame.Meta) wire.FlowID {
	return wire.FlowID{Addrs: binary.BigEndian.Uint64(b[m.L3+12:]), Ports: uint32(m.SrcPort)<<16 | uint32(m.DstPort), Proto: m.ProtoIn}
}

// isPlain says whether a frame belongs to a flow that a token can name.
func isPlain(m *frame.Meta) bool {
	return m.Flags&(frame.HasIPv4|frame.HasTunnel|frame.IsFragment|frame.IsMulticast|frame.IsClone) == frame.HasIPv4
}

func (p *ports) listens(port uint16, _ *vswitch.PortConfig) bool { return p.partner(port) }

// unmark takes the marks off frames that escaped from the neighbour's queue, of
// which the parser saw no more than the mark.
func (p *ports) unmark(_ frame.Time, _ uint16, v []frame.Ref) []frame.Ref {
	for i, r := range v {
		m := p.arena.Meta(r)
		if m.EtherType != wire.EtherTypeTokenMark {
			continue
		}
		if hops, _, ok := wire.PopTokenMark(p.arena, r); ok {
			p.node.Parse(v[i : i+1])
			if hops != 0 {
				p.places[r].hops = hops
				m.Flags |= frame.Claimed
			}
		}
	}
	return v
}

// note takes note of the flows that leave by each port, for tokens.
func (p *ports) note(v []vswitch.Queued) {
	for i := range v {
		r := v[i].Ref
		m := p.arena.Meta(r)
		if m.Flags&frame.Claimed != 0 || !isPlain(m) || p.lossless>>(m.Class&7)&1 == 0 || m.Queue == p.queue || m.InPort == m.OutPort || !p.partner(m.InPort) {
			continue
		}
		if x := p.at(m.OutPort); x != nil {
			x.Note(m.Hash, flowOf(p.arena.Bytes(r), m), m.InPort, m.Class)
		}
	}
}

// claim queues a frame that escaped from the neighbour's queue where it has a
// place. It returns false for one that has none and is to be queued like any
// other.
func (p *ports) claim(r frame.Ref) bool {
	m := p.arena.Meta(r)
	x := p.ports[m.OutPort]
	if !isPlain(m) || p.lossless>>(m.Class&7)&1 == 0 || p.node.Draining(m.OutPort)>>m.Queue&1 != 0 {
		return false
	}
	flow := flowOf(p.arena.Bytes(r), m)
	if !x.Arrive(p.node.Now(), m.Hash, flow) {
		// The token was another port's, by which the flow left then, or was taken
		// for lost.
		p.retire(m.OutPort, m.Hash, flow)
		if !x.Borrow() {
			return false
		}
	}
	return p.enter(x, r, m, flow)
}

// retire lets no port but the one by which a flow leaves make tokens for it.
func (p *ports) retire(but uint16, hash uint32, flow wire.FlowID) {
	for i, x := range p.ports {
		if x != nil && i != int(but) {
			x.Retire(hash, flow)
		}
	}
}

// rerouted brings what is known of flows in line with the routes: a flow that
// leaves by another port now, of which all frames may be waiting at the
// neighbour, gets its tokens there.
func (p *ports) rerouted() {
	if !p.on {
		return
	}
	for i, x := range p.ports {
		if x == nil {
			continue
		}
		x.Each(func(hash uint32, key wire.FlowID, in uint16, class uint8) {
			port, ok := p.node.EgressPort(flowFields(key))
			if !ok || int(port) == i {
				return
			}
			x.Retire(hash, key)
			if to := p.at(port); to != nil && port != in {
				to.Note(hash, key, in, class)
			}
		})
	}
}

func flowFields(f wire.FlowID) vswitch.Flow {
	var src, dst [4]byte
	binary.BigEndian.PutUint32(src[:], uint32(f.Addrs>>32))
	binary.BigEndian.PutUint32(dst[:], uint32(f.Addrs))
	return vswitch.Flow{Src: netip.AddrFrom4(src), Dst: netip.AddrFrom4(dst), SrcPort: uint16(f.Ports >> 16), DstPort: uint16(f.Ports), Proto: f.Proto}
}

// enter queues a frame that escaped from the neighbour's queue and has a place
// here. Where it was the token's origin the frame goes behind what waits in its
// own queue, older frames of its flow among it; elsewhere past the pause. If an
// older frame waits there nevertheless, that one goes on in its place. As printed
// it goes past all that waits everywhere.
func (p *ports) enter(x *egressState, r frame.Ref, m *frame.Meta, flow wire.FlowID) bool {
	at := &p.places[r]
	queue, hops := m.Queue, at.hops
	m.Queue = p.queue
	ok := p.node.Charge(m)
	m.Queue = queue
	if !ok {
		x.Leave(false) // as good as a place that was not kept
		return false
	}
	at.held = taken
	if p.params.Printed {
		if hops == 1 {
			m.Queue = p.queue
			p.node.Join(r)
		} else {
			p.sendMarked(x, r, m, hops-1)
		}
		return true
	}
	if hops == 1 {
		if x.Park() {
			at.held = parked
		}
		p.node.Join(r)
		return true
	}
	p.flow = flow
	older := p.node.Extract(m.OutPort, int(queue), m.Hash, p.same)
	if older != frame.Nil {
		p.exchange(x, r, older)
		p.node.Join(r)
		r, m = older, p.arena.Meta(older)
	}
	p.sendMarked(x, r, m, hops-1)
	return true
}

// exchange gives the place of a frame that is to wait to the older one that goes
// on in its stead, so that no place is kept from others by what waits. The one
// that waits gets what the other had: its place among the parked ones, or its
// charge where that is not less than its own. Else it is parked.
func (p *ports) exchange(x *egressState, r, older frame.Ref) {
	m, o := p.arena.Meta(r), p.arena.Meta(older)
	waits, goes := &p.places[r].held, &p.places[older].held
	switch {
	case *goes == parked:
		*goes, *waits = taken, parked
	case *goes == noPlace && o.InPort == m.InPort && o.Class == m.Class && o.Cost >= m.Cost:
		o.Cost, m.Cost = m.Cost, o.Cost
		o.Pool, m.Pool = m.Pool, o.Pool
		*goes, *waits = *waits, noPlace
	case x.Park():
		*waits = parked
	}
}

// sendMarked marks a frame and sends it past the pause. It stays charged as it was.
func (p *ports) sendMarked(x *egressState, r frame.Ref, m *frame.Meta, hops uint8) {
	if !wire.PushTokenMark(p.arena, r, hops, m.Class) {
		// Without a mark it is one frame more in the neighbour's headroom.
		x.unmarked++
	}
	m.Queue = p.queue
	p.node.Join(r)
}

// released gives back the places of frames that leave the switch by a port.
func (p *ports) released(port uint16, v []frame.Ref) {
	x := p.ports[port]
	if x.Taken()+x.Parked() == 0 {
		return // none of them has one
	}
	for _, r := range v {
		if at := &p.places[r]; at.held != noPlace {
			x.Leave(at.held == parked)
			at.held = noPlace
		}
	}
}
