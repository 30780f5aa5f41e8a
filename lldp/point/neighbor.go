package point

import (
	"slices"

	"gswitch/frame"
	"gswitch/lldp"
	"gswitch/wire"
)

// neighbor is a neighbour of a port: a chassis with one of its ports (IEEE 802.1AB
// clause 8.2.1, MSAP identifier).
type neighbor struct {
	key     string
	expires frame.Time
	labels  []string // what counters show of it
}

// linkLocal takes frames of the protocol to the nearest bridge; others stay what they
// are. Their number is bounded, since each costs memory.
func (a *agent) linkLocal(now frame.Time, at uint16, r frame.Ref) bool {
	b := a.node.Arena().Bytes(r)
	if e := wire.Ethernet(b); len(b) < wire.EthernetLen || e.EtherType() != wire.EtherTypeLLDP || e.Dst() != lldp.Group {
		return false
	}
	p := &a.ports[at]
	if p.room == 0 {
		p.count.received[overRate]++
		return true
	}
	p.room--
	p.count.received[p.receive(now, b)]++
	return true
}

// receive takes in the frame of a neighbour, and returns what became of it.
func (p *port) receive(now frame.Time, b []byte) outcome {
	var u lldp.Unit
	if !u.Decode(b) {
		return malformed
	}
	key := append([]byte{u.Chassis.Kind, byte(len(u.Chassis.Value))}, u.Chassis.Value...)
	key = append(append(key, u.Port.Kind), u.Port.Value...)
	i := slices.IndexFunc(p.neighbors, func(n neighbor) bool { return n.key == string(key) })
	switch {
	case u.TTL == 0:
		if i >= 0 {
			p.neighbors = slices.Delete(p.neighbors, i, i+1)
		}
		return left
	case i >= 0:
		p.neighbors[i].take(now, &u)
		return refreshed
	}
	p.age(now)
	if len(p.neighbors) == maxNeighbors {
		return tooMany
	}
	n := neighbor{key: string(key)}
	n.take(now, &u)
	p.neighbors = append(p.neighbors, n)
	p.fast, p.due = fastFrames, min(p.due, now) // it is to know soon who is here
	return found
}

// take keeps what a neighbour advertises.
func (n *neighbor) take(now frame.Time, u *lldp.Unit) {
	n.expires = now + frame.Time(u.TTL)*frame.Second
	n.labels = []string{lldp.Text(u.Name), lldp.PortText(u.Port), lldp.Text(u.PortDescription), lldp.ChassisText(u.Chassis),
		lldp.AddressText(u.Management), u.Enabled.String(), lldp.Text(u.Description)}
}

// age removes neighbours whose TTL has run out.
func (p *port) age(now frame.Time) {
	before := len(p.neighbors)
	p.neighbors = slices.DeleteFunc(p.neighbors, func(n neighbor) bool { return n.expires <= now })
	p.count.forgotten[withTime] += uint64(before - len(p.neighbors))
}
