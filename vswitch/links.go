package vswitch

import "gswitch/frame"

// SetLink implements frame.Node.
func (n *Node) SetLink(now frame.Time, port uint16, up bool) {
	n.now = now
	if port >= MaxPorts {
		return
	}
	word, bit := &n.sw.carrier[port/64], uint64(1)<<(port%64)
	if up {
		word.Or(bit)
	} else {
		word.And(^bit)
	}
	links := n.sw.links.Add(1)
	n.adoptLinks(now, links)
	n.others.handed |= n.others.bits &^ n.others.bit // the others may sleep
	n.flowControl(now)                               // what was queued there made room
	n.freeDropped()
	if n.stages.sendsN > 0 {
		n.sendAll(now)
	}
}

// adoptLinks takes note of links that came or went on other workers.
func (n *Node) adoptLinks(now frame.Time, links uint32) {
	n.links = links
	for i := range n.ports {
		n.judgeLink(now, uint16(i))
	}
}

// judgeLink lets a port forward if it is enabled and has a link.
func (n *Node) judgeLink(now frame.Time, i uint16) {
	up := int(i) < len(n.prog.ports) && n.prog.ports[i].name != "" && n.prog.ports[i].enabled &&
		(n.sw.carrier[i/64].Load()&^n.sw.disabled[i/64].Load())>>(i%64)&1 != 0
	switch {
	case up == n.linkUp.has(i):
	case up:
		n.memo.newEpoch()
		n.linkUp.add(i)
		if n.ports[i].pfc != nil {
			n.sendFlowControl(now, i) // the neighbour has forgotten what was requested before the link went down
		}
	default:
		n.memo.newEpoch()
		n.linkUp.remove(i)
		n.flushPort(now, i)
		n.linkLost(now, i)
		if n.local != nil {
			n.local.portLost(i)
		}
		n.fdb.FlushPort(i, false)
	}
}

// linkLost clears the pauses of a port without a link.
func (n *Node) linkLost(now frame.Time, port uint16) {
	if p := n.ports[port].pfc; p != nil {
		p.Reset(now)
		n.applyPauses(now, port)
	}
}
