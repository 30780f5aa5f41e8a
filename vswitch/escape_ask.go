package vswitch

import (
	"math/bits"

	"gswitch/escape"
	"gswitch/frame"
	"gswitch/wire"
)

// As it is printed, Escape makes tokens for flows of which a switch has sent a
// frame. A circle in which no frame has come as far as the switch by which its
// flow leaves the circle stays closed for good. So a switch that is paused for
// longer than tokens may stay out tells the neighbour which flows wait; a switch
// whose own way on is paused, too, tells the next one. The first whose port is
// open makes tokens then, and those between know where to pass them on.

// asksAtOnce is how many flows of a queue a port asks for at a time, all Reclaim.
// With 100 us and four paused queues of a switch that is 0.5 Mpps, or 43 Mb/s on
// a link.
const asksAtOnce = 8

// asking is what a port keeps of its requests.
type asking struct {
	askAt  frame.Time
	askRow [8]int // where in the order of flows of a queue to go on
}

// asker is the request that is being made.
type asker struct {
	askBy   uint16
	askLeft int
	one     func(frame.Ref) bool // askFor, made once
}

// ask sends requests by a port that is paused, when they are due, and returns
// when they are the next time.
func (n *Node) ask(now frame.Time, port uint16) frame.Time {
	ps := &n.ports[port]
	x := ps.exit
	paused := ps.pfc.Paused(now) & n.losslessClasses
	if paused == 0 || !n.prog.ports[port].escape || !n.linkUp.has(port) {
		return frame.Never
	}
	due, queues := frame.Never, uint8(0)
	for ; paused != 0; paused &= paused - 1 {
		class := bits.TrailingZeros8(paused)
		if at := ps.pfc.Class(class).PausedSince + x.params.Reclaim; at > now {
			due = min(due, at)
		} else {
			queues |= 1 << n.prog.class.Queue[class]
		}
	}
	if queues == 0 {
		return due
	}
	if now >= x.askAt {
		x.askAt = now + x.params.Reclaim
		for ; queues != 0; queues &= queues - 1 {
			q := bits.TrailingZeros8(queues)
			n.escaping.askBy, n.escaping.askLeft = port, asksAtOnce
			x.askRow[q] = x.fifo[q].EachFlow(n.arena, x.askRow[q], n.escaping.one)
		}
	}
	return min(due, x.askAt)
}

// askFor sends a request for a frame that waits, and returns false if it is one
// too many.
func (n *Node) askFor(r frame.Ref) bool {
	m := n.arena.Meta(r)
	if m.Flags&plainFlow != frame.HasIPv4 {
		return true
	}
	if n.escaping.askLeft--; n.escaping.askLeft < 0 {
		return false
	}
	n.sendRequest(n.escaping.askBy, wire.RequestFields{Flow: flowOf(n.arena.Bytes(r), m), Hops: 1, Class: m.Class})
	return true
}

// requested acts on a request from the neighbour at a port, and reports false if
// the port does not understand it.
func (n *Node) requested(port uint16, c wire.MACControl) bool {
	x := n.ports[port].exit
	if x == nil || !x.on || !n.prog.ports[port].escape {
		return false
	}
	var f wire.RequestFields
	if _, why := f.Decode(c); why != frame.Keep || f.Hops == 0 || f.Class > 7 || !n.prog.Config.lossless(int(f.Class)) {
		return false
	}
	out, ok := n.sw.EgressPort(flowFields(f.Flow))
	if !ok || out == port || !n.linkUp.has(out) || n.ports[out].exit == nil || n.ports[out].pfc == nil {
		x.Refuse() // no route, as for what is bridged; back where it came from; or not a port to send by
		return true
	}
	to := &n.ports[out]
	hash := n.escaping.hasher.IPv4(f.Flow.Addrs, f.Flow.Ports, f.Flow.Proto)
	to.exit.Request(hash, f.Flow, port, f.Class)
	if to.pfc.Paused(n.now)>>f.Class&1 != 0 && n.prog.ports[out].escape && n.escaping.asks && f.Hops < escape.MaxHops {
		f.Hops++
		n.sendRequest(out, f)
	}
	return true
}

func (n *Node) sendRequest(port uint16, f wire.RequestFields) {
	if b, r := n.controlFrame(port); b != nil {
		f.Src = n.prog.Config.MAC
		f.Encode(b)
		n.ports[port].exit.Ask()
		n.sendControl(port, r)
	}
}
