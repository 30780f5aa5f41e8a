package bump

import (
	"gswitch/cc"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/transport"
	"gswitch/wire"
)

// channel is one end of a channel.
type channel struct {
	key    key
	state  channelState
	active bool // we opened it
	peer   int
	id     uint64
	qpn    uint32
	remote uint32
	psn    uint32
	mac    uint64 // of the next hop
	packet int    // bytes that a packet may have
	rule   Rule
	last   frame.Time // a packet went in or came out
	opened frame.Time
	tries  int
	due    frame.Time
	cum    uint64     // packets acknowledged when it was last looked at
	moved  frame.Time // when that last changed, or nothing was under way

	drops, marks uint64
}

type channelState uint8

const (
	unused channelState = iota
	opening
	opened
	ending // drained; packets pass untouched until it is closed
)

func (s channelState) String() string {
	return [...]string{"unused", "opening", "open", "closing"}[s&3]
}

const (
	openAgain  = 20 * frame.Millisecond // doubles with each try
	openTries  = 6
	closeAgain = 250 * frame.Millisecond
	closeTries = 4
	look       = 100 * frame.Millisecond
	// A channel on which nothing is acknowledged for so long, or for eight
	// retransmission timeouts, is closed: its packets pass untouched then,
	// and the peer is asked anew.
	stuck = 3 * frame.Second
	// The end that did not open a channel closes it after so many idle times:
	// the opener is gone.
	orphaned = 3
)

// channelOf returns the channel of a queue pair, -1 if there is none.
func (b *Bump) channelOf(qpn uint32) int {
	id := int(b.byQP[qpn&uint32(len(b.byQP)-1)]) - 1
	if id < 0 || b.channels[id].qpn != qpn {
		return -1
	}
	return id
}

// openChannel asks a peer for a channel. It returns -1 if there is no room.
func (b *Bump) openChannel(now frame.Time, k key, peer int, mac wire.MAC, rule *Rule) int {
	c := channel{key: k, state: opening, active: true, peer: peer, id: b.draws.Next(), psn: uint32(b.draws.Next()) & 0xffffff,
		mac: mac.Uint64(), packet: b.cfg.packet(!k.v6, rule.Telemetry), rule: *rule}
	id := b.addChannel(now, &c, b.cfg.Transport)
	if id >= 0 {
		b.askToOpen(now, id)
	}
	return id
}

// addChannel opens the queue pair of c and enters it.
func (b *Bump) addChannel(now frame.Time, c *channel, t transport.Config) int {
	cfg := hostnic.QPConfig{RemoteAddr: c.key.remote(), RemoteMAC: wire.MACFromUint64(c.mac), Class: c.rule.Class, Transport: t, CC: c.rule.New, CCName: c.rule.CC,
		INT: c.rule.Telemetry, INTProfile: b.cfg.INT, InitialPSN: c.psn,
		Frames: &hostnic.FramesConfig{Addr: c.key.local(), MAC: wire.MACFromUint64(b.mac), PKey: partition}}
	qpn, err := b.nic.OpenQP(now, &cfg)
	if err != nil {
		b.count.NoRoom++
		return -1
	}
	c.qpn, c.last, c.opened, c.moved, c.due = qpn, now, now, now, frame.Never
	id := len(b.channels)
	if n := len(b.free); n > 0 {
		id = int(b.free[n-1])
		b.free = b.free[:n-1]
	} else {
		b.channels = append(b.channels, channel{})
	}
	b.channels[id] = *c
	b.byKey.put(c.key, id)
	b.byQP[qpn&uint32(len(b.byQP)-1)] = int32(id + 1)
	b.peers[c.peer].channels++
	if !c.key.host {
		b.tuples++
	}
	b.count.Opened++
	b.scanAt = min(b.scanAt, now+look)
	b.wakeBy(b.scanAt)
	return id
}

// dropChannel ends a channel at this end. What it held is dropped: a packet of
// which it is not known whether it arrived must not arrive twice.
func (b *Bump) dropChannel(now frame.Time, id int) {
	c := &b.channels[id]
	_ = b.nic.CloseQP(now, c.qpn) // it is open, and nothing else closes it
	b.byKey.remove(&c.key)
	b.byQP[c.qpn&uint32(len(b.byQP)-1)] = 0
	b.peers[c.peer].channels--
	if !c.key.host {
		b.tuples--
	}
	*c = channel{}
	b.free = append(b.free, int32(id))
	b.count.Closed++
}

// dropPeer ends all channels with a peer.
func (b *Bump) dropPeer(now frame.Time, i int) {
	for id := 0; b.peers[i].channels > 0 && id < len(b.channels); id++ {
		if c := &b.channels[id]; c.state != unused && c.peer == i {
			b.count.Lost++
			b.dropChannel(now, id)
		}
	}
}

// dropAll ends all channels: the host has another address.
func (b *Bump) dropAll(now frame.Time) {
	for i := range b.peers {
		b.dropPeer(now, i)
	}
}

func (b *Bump) endsOf(c *channel) ends {
	return ends{c.key.local(), c.key.remote(), wire.MACFromUint64(c.mac)}
}

func (b *Bump) askToOpen(now frame.Time, id int) {
	c := &b.channels[id]
	t := &b.cfg.Transport
	b.send(now, b.endsOf(c), &message{kind: open, to: b.peers[c.peer].incarnation, id: c.id, qpn: c.qpn, port: b.nic.SourcePort(c.qpn), psn: c.psn, proto: c.key.proto, host: c.key.host,
		lport: uint16(c.key.ports >> 16), rport: uint16(c.key.ports), packet: uint32(c.packet), cap: t.Cap, recovery: t.Kind().Code,
		telemetry: uint8(c.rule.Telemetry), class: c.rule.Class, cc: c.rule.CC})
	c.due = now + openAgain<<c.tries
	c.tries++
	b.wakeBy(c.due)
}

// asksToOpen answers an Open.
func (b *Bump) asksToOpen(now frame.Time, i int, k *key, at ends, m *message) {
	k.ports, k.proto, k.host = uint32(m.rport)<<16|uint32(m.lport), m.proto, m.host
	if m.host && (m.proto != 0 || k.ports != 0) {
		b.count.BadDatagrams++
		return
	}
	id := b.byKey.find(k)
	if id >= 0 {
		switch c := &b.channels[id]; {
		case !c.active && c.id == m.id: // our answer was lost
		case c.active && c.state == opening && at.local.Less(at.remote):
			return // ours stays: the other end closes its own
		default:
			b.dropChannel(now, id)
			id = -1
		}
	}
	if id < 0 {
		var why uint8
		if id, why = b.takeChannel(now, i, k, at, m); why != 0 {
			b.send(now, at, &message{kind: refuse, to: m.from, id: m.id, peer: m.qpn, reason: why})
			return
		}
	}
	c := &b.channels[id]
	b.send(now, at, &message{kind: accept, to: m.from, id: m.id, peer: m.qpn, qpn: c.qpn, port: b.nic.SourcePort(c.qpn), packet: uint32(c.packet)})
}

// takeChannel makes the passive end of a channel.
func (b *Bump) takeChannel(now frame.Time, i int, k *key, at ends, m *message) (int, uint8) {
	ours, recovery := b.rule(k), transport.ByCode(m.recovery)
	switch {
	case ours.Flows == Pass:
		return -1, passes
	case m.telemetry > uint8(inband.INTMD) || recovery == nil || !recovery.Transparent:
		return -1, unknownFormat
	case k.host && len(b.channels)-len(b.free)-b.tuples >= b.cfg.Channels, !k.host && b.tuples >= b.cfg.Channels:
		return -1, noRoom
	}
	rule := Rule{Flows: PerTuple, Class: m.class, CC: m.cc, Telemetry: inband.Mode(m.telemetry)}
	if rule.New = b.control(m.cc); rule.New == nil {
		return -1, unknownFormat
	}
	packet := min(int(m.packet), b.cfg.packet(!k.v6, rule.Telemetry))
	if packet < leastPacket {
		return -1, unknownFormat
	}
	c := channel{key: *k, state: opened, peer: i, id: m.id, remote: m.qpn, psn: m.psn, mac: at.mac.Uint64(), packet: packet, rule: rule}
	t := b.cfg.Transport
	t.Recovery, t.Own, t.Cap = recovery, recovery.Defaults().Own, m.cap
	if t.Validate() != nil {
		return -1, unknownFormat
	}
	id := b.addChannel(now, &c, t)
	if id < 0 {
		return -1, noRoom
	}
	_ = b.nic.ConnectQP(now, b.channels[id].qpn, m.qpn) // it was just opened
	b.nic.SetRemotePort(b.channels[id].qpn, m.port)
	return id, 0
}

// leastPacket is what any channel must take: the least MTU of IPv4 hosts
// (RFC 1122 section 3.3.2) less a channel's headers.
const leastPacket = 400

// control returns the congestion control of a name: with the options that a
// rule of ours gives it, else with those that channels have by default; nil if there is none.
func (b *Bump) control(name string) func(*cc.Env) cc.Algorithm {
	if b.cfg.Default.CC == name {
		return b.cfg.Default.New
	}
	for i := range b.cfg.Rules {
		if r := &b.cfg.Rules[i]; r.CC == name && r.New != nil {
			return r.New
		}
	}
	f, err := Control(name, nil)
	if err != nil {
		return nil
	}
	return f
}

// mine returns the channel that a datagram of a peer is about, -1 if there is
// none.
func (b *Bump) mine(i int, m *message) int {
	id := b.channelOf(m.peer)
	if id < 0 || b.channels[id].peer != i || b.channels[id].id != m.id {
		b.count.Stale++
		return -1
	}
	return id
}

func (b *Bump) accepted(now frame.Time, i int, m *message) {
	id := b.mine(i, m)
	if id < 0 || b.channels[id].state != opening {
		return
	}
	c := &b.channels[id]
	if m.packet < leastPacket || b.nic.ConnectQP(now, c.qpn, m.qpn) != nil {
		b.dropChannel(now, id)
		return
	}
	b.nic.SetRemotePort(c.qpn, m.port)
	c.state, c.remote, c.packet, c.due, c.tries = opened, m.qpn, min(c.packet, int(m.packet)), frame.Never, 0
	c.opened, c.last, c.moved = now, now, now
}

func (b *Bump) refused(now frame.Time, i int, m *message) {
	if id := b.mine(i, m); id >= 0 && b.channels[id].state == opening {
		b.peers[i].refused = now + refusedFor
		b.count.Refused++
		b.dropChannel(now, id)
	}
}

// asksToClose answers a Close. A channel that is not known was closed long
// ago; one that has something to send stays.
func (b *Bump) asksToClose(now frame.Time, i int, at ends, m *message) {
	say := closed
	if id := b.channelOf(m.peer); id >= 0 && b.channels[id].peer == i && b.channels[id].id == m.id {
		if _, packets := b.nic.Backlog(m.peer); packets > 0 {
			say = busy
		} else {
			b.dropChannel(now, id)
		}
	}
	b.send(now, at, &message{kind: say, to: m.from, id: m.id, peer: m.qpn, qpn: m.peer})
}

func (b *Bump) closeAnswered(now frame.Time, i int, m *message) {
	id := b.mine(i, m)
	if id < 0 || b.channels[id].state != ending {
		return
	}
	if m.kind == closed {
		b.dropChannel(now, id)
		return
	}
	c := &b.channels[id]
	c.state, c.last, c.due, c.tries = opened, now, frame.Never, 0
}

// wasReset ends a channel whose other end is not there: the datagram names queue pair
// and port of a frame of it. The peer proved its incarnation before, so it is not one
// that has just started.
func (b *Bump) wasReset(now frame.Time, i int, m *message) {
	for id := range b.channels {
		if c := &b.channels[id]; c.state >= opened && c.peer == i && c.remote == m.peer && b.nic.SourcePort(c.qpn) == m.port {
			b.count.Lost++
			b.dropChannel(now, id)
			return
		}
	}
	b.count.Stale++
}

// advanceChannels repeats what was not answered, and looks after channels.
func (b *Bump) advanceChannels(now frame.Time) {
	scan := b.scanAt <= now
	if scan {
		b.scanAt = frame.Never
	}
	for id := range b.channels {
		c := &b.channels[id]
		if c.state == unused {
			continue
		}
		if c.due <= now {
			b.askAgainAbout(now, id)
		} else if scan && c.state == opened {
			b.lookAt(now, id)
		}
		if c.state != unused {
			b.wakeBy(c.due)
			b.scanAt = min(b.scanAt, now+look)
		}
	}
	b.wakeBy(b.scanAt)
}

func (b *Bump) askAgainAbout(now frame.Time, id int) {
	c := &b.channels[id]
	switch {
	case c.state == opening && c.tries < openTries:
		b.askToOpen(now, id)
	case c.state == opening:
		b.peers[c.peer].refused = now + refusedFor
		b.count.Refused++
		b.dropChannel(now, id)
	case c.tries < closeTries:
		b.askToClose(now, id)
	default: // the peer is gone
		b.dropChannel(now, id)
	}
}

func (b *Bump) askToClose(now frame.Time, id int) {
	c := &b.channels[id]
	b.send(now, b.endsOf(c), &message{kind: closing, to: b.peers[c.peer].incarnation, id: c.id, qpn: c.qpn, peer: c.remote})
	c.state, c.due = ending, now+closeAgain
	c.tries++
	b.wakeBy(c.due)
}

// lookAt closes a channel that is idle, and one that is stuck.
func (b *Bump) lookAt(now frame.Time, id int) {
	c := &b.channels[id]
	v, err := b.nic.QP(c.qpn)
	if err != nil {
		return
	}
	if v.Cum != c.cum || v.Messages == 0 {
		c.cum, c.moved = v.Cum, now
	}
	switch idle := now - c.last; {
	case now-c.moved >= max(stuck, 8*b.cfg.Transport.RTOHigh):
		i := c.peer
		b.dropPeer(now, i)
		p := &b.peers[i]
		p.state, p.tries = asked, 0
		b.sendHello(now, i)
	case v.Messages > 0:
	case c.active && idle >= b.cfg.Idle:
		b.askToClose(now, id)
	case !c.active && idle >= orphaned*b.cfg.Idle:
		b.dropChannel(now, id)
	}
}
