package collect

import (
	"hash/fnv"
	"sync/atomic"
	"time"

	"gswitch/fabric"
	"gswitch/mirror"
	"gswitch/telemetry"
	"gswitch/telemetry/lossradar"
)

// Network is what is known about the network that reports come from.
type Network struct {
	plan *fabric.Plan // nil: nothing is known
	// TraceIdle is the time without a copy of a packet after which its trace is judged;
	// 0: mirror.IdleTime. It must be equal in collectors that share the work.
	TraceIdle time.Duration

	counters atomic.Pointer[counters]
}

// NewNetwork returns a network with a topology, which may be nil.
func NewNetwork(t *fabric.Topology) (*Network, error) {
	if t == nil {
		return &Network{}, nil
	}
	p, err := fabric.NewPlan(t)
	return &Network{plan: p}, err
}

// end is a port of a switch, and the link that starts there.
type end struct {
	link int // index in the topology
	peer fabric.End
	node int
}

// end finds a port of a switch by its name or its number in the order of the topology's
// links.
func (n *Network) end(name string, port int) (e end, ok bool) {
	if n.plan == nil {
		return e, false
	}
	t := n.plan.Topology
	node, ok := t.Lookup(name)
	if !ok || port >= len(t.Nodes[node].Links) {
		return e, false
	}
	return end{link: t.Nodes[node].Links[port], peer: t.Peer(node, port), node: node}, true
}

// laneOf returns the lane of a report.
func (n *Network) laneOf(h *telemetry.Hello, r *telemetry.Report) int {
	f := fnv.New32a()
	switch r.Kind {
	case Mirrored:
		return laneOfCopy(r.Body)
	case lossKind:
		// Both ends of a link, and both directions.
		if m, err := lossradar.ParseMeter(r.Body); err == nil {
			if e, ok := n.end(nodeName(h, r.Node), int(m.Port)); ok {
				return e.link % Lanes
			}
		}
		f.Write([]byte(h.Name))
	default:
		f.Write([]byte(r.Kind)) // all switches together
	}
	return int(f.Sum32() % Lanes)
}

// laneOfCopy assigns copies to lanes by the packet that was copied.
func laneOfCopy(body []byte) int {
	f := fnv.New32a()
	c, ok := mirror.Unwrap(body[min(8, len(body)):])
	if !ok {
		return 0
	}
	if k, _, ok := c.Hop(); ok {
		f.Write(k.Src[:])
		f.Write(k.Dst[:])
		f.Write([]byte{byte(k.SrcPort >> 8), byte(k.SrcPort), byte(k.DstPort >> 8), byte(k.DstPort), k.Proto, byte(k.ID >> 8), byte(k.ID)})
	} else {
		// Copies of anything but IPv4, such as pauses, stay in the order of their port.
		a := c.Switch.As4()
		f.Write(append(a[:], byte(c.Info.Port>>8), byte(c.Info.Port)))
	}
	return int(f.Sum32() % Lanes)
}

func nodeName(h *telemetry.Hello, id uint16) string {
	for i := range h.Nodes {
		if h.Nodes[i].ID == id {
			return h.Nodes[i].Name
		}
	}
	return ""
}

// rate returns the rate of a link between two switches in bit/s.
func (n *Network) rate(name string) float64 {
	t := n.plan.Topology
	for i := range t.Links {
		l := &t.Links[i]
		a, b := t.Nodes[l.A.Node].Name, t.Nodes[l.B.Node].Name
		if (a+">"+b == name || b+">"+a == name) && l.Rate > 0 {
			return float64(l.Rate)
		}
	}
	return 10e9
}
