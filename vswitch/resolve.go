package vswitch

import (
	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/wire"
)

// forward takes a frame that routing could not send because its next hop has no MAC yet:
// it waits here while requests for the neighbour are sent.
func (l *local) forward(now frame.Time, r frame.Ref, m *frame.Meta) {
	n := l.n
	m.Flags &^= frame.ToLocal | frame.Routed
	hop, ok := n.hopOf(n.arena.Bytes(r), m)
	if !ok {
		n.drop(r, frame.NoRoute)
		return
	}
	if mac := n.neighbors.lookup(hop.iface, hop.key); mac != 0 {
		n.sendRouted(r, m, &n.prog.ifaces[hop.iface], mac)
		return
	}
	nb := l.table[hop]
	if nb == nil {
		if l.unresolved >= MaxUnresolved || l.share(m.InPort).unresolved >= UnresolvedPerPort || l.full(m.InPort) {
			n.count.NeighborFull++
			l.elsewhere(r, m, frame.NeighborQueue)
			return
		}
		nb = l.entry(hop, m.InPort)
		l.solicit(now, nb)
	}
	switch {
	case nb.state == neighborFailed:
		if l.elsewhere(r, m, frame.Keep) {
			return
		}
		n.icmpUnreachable(now, r, m, unreachHost)
		n.drop(r, frame.NeighborFailed)
	case nb.pending.Len() >= neighborPending || l.pending >= max(n.chunks.limit/8, 1):
		l.elsewhere(r, m, frame.NeighborQueue)
	default:
		l.pending++
		nb.pending.Push(n.arena, r)
	}
}

// elsewhere sends a frame to another next hop of its route that is resolved. If there is
// none it returns false and drops the frame, unless why is Keep.
func (l *local) elsewhere(r frame.Ref, m *frame.Meta, why frame.Reason) bool {
	n := l.n
	if iface, mac := n.hopThatAnswers(n.arena.Bytes(r), m); mac != 0 {
		n.sendRouted(r, m, &n.prog.ifaces[iface], mac)
		return true
	}
	if why != frame.Keep {
		n.drop(r, why)
	}
	return false
}

// next takes a frame that waits for a neighbour, or returns frame.Nil.
func (l *local) next(nb *neighbor) frame.Ref {
	r := nb.pending.Pop(l.n.arena)
	if r != frame.Nil {
		l.pending--
	}
	return r
}

// entry returns the neighbour with the given id. If needed it creates the neighbour and
// charges it to a port.
func (l *local) entry(id nextHop, port uint16) *neighbor {
	nb := l.table[id]
	if nb == nil {
		nb = &neighbor{iface: id.iface, key: id.key, port: port, before: l.last}
		nb.pending.Init()
		l.table[id] = nb
		if l.last == nil {
			l.first = nb
		} else {
			l.last.after = nb
		}
		l.last = nb
		l.unresolved++
		l.count(nb, 1)
	}
	return nb
}

// solicit sends a request for a neighbour and arms its timer.
func (l *local) solicit(now frame.Time, nb *neighbor) {
	nb.tries++
	l.arm(&l.retries, nb, now+neighborRetry)
	l.request(nb)
}

// learn records a neighbour's MAC. create makes an entry for a neighbour that was not
// asked for, since it is about to send to us. The entry is charged to the port at which
// its message arrived.
func (l *local) learn(now frame.Time, id nextHop, mac uint64, create bool, port uint16) {
	nb := l.table[id]
	if nb == nil && (!create || !l.n.prog.onLink(id.iface, id.key)) || nb != nil && nb.state == neighborStatic || mac == l.n.selfMAC {
		return
	}
	if nb == nil && l.full(port) || nb != nil && nb.port != port && l.share(port).entries >= NeighborsPerPort {
		l.n.count.NeighborFull++
		return
	}
	if nb == nil {
		nb = l.entry(id, port)
	}
	l.charge(nb, port)
	l.become(nb, neighborReachable)
	nb.mac, nb.tries = mac, 0
	l.arm(&l.confirms, nb, now+neighborConfirm)
	l.n.neighbors.set(id.iface, id.key, mac)
	l.release(nb)
}

// release sends what waited for a neighbour.
func (l *local) release(nb *neighbor) {
	n := l.n
	for r := l.next(nb); r != frame.Nil; r = l.next(nb) {
		n.sendRouted(r, n.arena.Meta(r), &n.prog.ifaces[nb.iface], nb.mac)
	}
}

// remove takes a neighbour out of the table and drops what waited for it.
func (l *local) remove(nb *neighbor, why frame.Reason) {
	for r := l.next(nb); r != frame.Nil; r = l.next(nb) {
		l.n.drop(r, why)
	}
	l.disarm(nb)
	if !nb.state.resolved() {
		l.unresolved--
	}
	l.count(nb, -1)
	l.n.neighbors.remove(nb.iface, nb.key)
	delete(l.table, nextHop{nb.iface, nb.key})
	if nb.before == nil {
		l.first = nb.after
	} else {
		nb.before.after = nb.after
	}
	if nb.after == nil {
		l.last = nb.before
	} else {
		nb.after.before = nb.before
	}
}

// portLost removes the neighbours behind a port that lost its link, since others may be
// there when it comes back. It must be called before the port's addresses leave the
// forwarding database. A neighbour in a VLAN that the database does not know may have
// been behind it.
func (l *local) portLost(port uint16) {
	prog := l.n.prog
	for nb, next := l.first, (*neighbor)(nil); nb != nil; nb = next {
		next = nb.after
		if nb.state == neighborStatic || int(nb.iface) >= len(prog.ifaces) {
			continue
		}
		f := &prog.ifaces[nb.iface]
		if f.port == frame.NoPort {
			at, known := l.n.fdb.Lookup(pipeline.MACKey(f.vid, nb.mac))
			if known && at != port || !prog.vlans[f.vid].members.has(port) {
				continue
			}
		} else if f.port != port {
			continue
		}
		l.remove(nb, frame.NeighborFailed)
	}
}

// become changes the state of a neighbour.
func (l *local) become(nb *neighbor, s neighborState) {
	if nb.state.resolved() && !s.resolved() {
		l.unresolved++
	}
	if !nb.state.resolved() && s.resolved() {
		l.unresolved--
	}
	l.count(nb, -1)
	nb.state = s
	l.count(nb, 1)
}

// advance runs the neighbours' timers, at most a vector of them: a table that expires at
// once does not stop the worker. The rest is due immediately.
func (l *local) advance(now frame.Time) {
	if now < l.due {
		return
	}
	for range vector {
		nb := l.retries.head
		if nb == nil || nb.due > now {
			nb = l.confirms.head
		}
		if nb == nil || nb.due > now {
			break
		}
		l.expire(now, nb)
	}
	l.due = min(l.retries.due(), l.confirms.due())
}

func (l *local) expire(now frame.Time, nb *neighbor) {
	switch {
	case nb.state == neighborFailed:
		l.remove(nb, frame.NeighborFailed)
	case nb.tries < neighborTries:
		if nb.state == neighborReachable {
			l.become(nb, neighborProbing)
		}
		l.solicit(now, nb)
	default:
		l.n.neighbors.remove(nb.iface, nb.key)
		for r := l.next(nb); r != frame.Nil; r = l.next(nb) {
			m := l.n.arena.Meta(r)
			if !l.elsewhere(r, m, frame.Keep) {
				l.n.icmpUnreachable(now, r, m, unreachHost)
				l.n.drop(r, frame.NeighborFailed)
			}
		}
		l.become(nb, neighborFailed)
		nb.tries = 0
		l.arm(&l.retries, nb, now+neighborHold)
	}
}

// request sends a request for a neighbour, to itself if it is only confirmed. An interface without an address of the
// family sends none.
func (l *local) request(nb *neighbor) {
	n := l.n
	f := &n.prog.ifaces[nb.iface]
	known := wire.MACFromUint64(nb.mac) // zero if it is not
	if !nb.key.is4() {
		s := wire.NDFrame{Src: f.sourceFor(nb.key).as16()}
		s.Solicit(nb.key.as16(), known)
		l.sendND(f.port, f.vid, &s)
	} else if f.v4.IsValid() {
		var b [wire.ARPFrameLen]byte
		dst := wire.EncodeARPRequest(&b, wire.MACFromUint64(n.selfMAC), f.sourceFor(nb.key).as4(), nb.key.as4(), known)
		n.send(b[:], f.port, f.vid, dst)
	}
}

// sendND sends a frame of neighbour discovery.
func (l *local) sendND(port, vid uint16, f *wire.NDFrame) {
	f.DSCP, f.Self = networkControl, wire.MACFromUint64(l.n.selfMAC)
	var b [wire.NDFrameLen]byte
	f.Encode(&b)
	l.n.send(b[:], port, vid, f.DstMAC)
}

// send emits a frame of our own by a port, or into a VLAN where port is
// frame.NoPort.
func (n *Node) send(b []byte, port, vid uint16, dst wire.MAC) {
	n.count.Made++
	r := n.pool.New(b)
	if r == frame.Nil {
		n.own.drops[frame.ArenaExhausted]++
		return
	}
	n.vec.one[0] = r
	n.parser.Parse(n.arena, n.vec.one[:])
	m := n.arena.Meta(r)
	m.Arrival, m.VID = n.now, vid
	m.Class = n.prog.class.DSCP[networkControl]
	if port != frame.NoPort {
		m.OutPort = port
		n.emit(r)
		return
	}
	if out, ok := n.behind(vid, dst.Uint64()); ok && !dst.IsMulticast() {
		m.OutPort = out
		n.emit(r)
		return
	}
	n.flood(n.now, frame.NoPort, &floodAnywhere, r, m)
}
