package mirror

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"

	"gswitch/frame"
	"gswitch/wire"
)

// Key names a packet on all its way: the innermost headers, which no hop changes.
type Key struct {
	Src, Dst         [4]byte
	SrcPort, DstPort uint16
	ID               uint16 // identification, or what distinguishes packets that have none
	Proto            uint8
}

// Hop is a packet at one switch.
type Hop struct {
	Switch   netip.Addr // outer source of the copy
	At       frame.Time
	TTL      uint8 // of the outermost IP header
	InnerTTL uint8
	Depth    uint8    // IP headers before the innermost
	Bytes    uint16   // of the outermost IP packet
	From     wire.MAC // source station: of the hop before
	DSCP     uint8
	ECN      uint8
	OuterDst [4]byte
	// Reason is why the switch dropped the packet, 0 if the copy is not about that.
	Reason frame.Reason
	Port   uint16 // that the packet came by, where the copy says it
	// Cut says that the copy ends within telemetry (INT) and that nothing else in it distinguishes
	// the packet: it is in a trace of its own.
	Cut   bool
	Opens bool // a SYN of TCP without ACK: a connection begins
	// Then is the destination of the header within the outermost one, with Depth.
	Then [4]byte
	// Probe and Number are series and number of a probe, 0 of other packets.
	Probe, Number uint32
}

// same reports whether two copies are of one pass of a packet through one switch:
// what the network doubled, or another packet that has the identification again.
func (h *Hop) same(o *Hop) bool {
	return h.Switch == o.Switch && h.TTL == o.TTL && h.InnerTTL == o.InnerTTL && h.Depth == o.Depth
}

// Trace is the path of a packet.
type Trace struct {
	Key  Key
	Hops []Hop // in order, once Finish was called
	Last frame.Time

	Loop []netip.Addr // switches that it came to again
	// Lost says that the last hop is none that could hand it to its destination.
	Lost bool
	// Missing counts hops of which the network lost the copy, by the station that
	// the next hop saw where exactly one is missing.
	Missing map[wire.MAC]int
	Gaps    int // all of them
	// Dropped is what switches reported as dropped: a copy with a reason.
	Dropped []Hop
	Debug   bool
	// Probe and Number are those of a guided probe; 0: it is none.
	Probe, Number uint32

	began          frame.Time
	newer, earlier *Trace // by Last, among those that are open
}

// Network is what is known of the network that traces are judged by.
type Network interface {
	// Last reports whether packets to an address may leave the network at a switch.
	Last(s netip.Addr, dst [4]byte) bool
	// Station reports whether a MAC address is a switch's.
	Station(m wire.MAC) bool
}

// Copied is a copy without what it was wrapped into.
type Copied struct {
	Switch   netip.Addr // outer source
	Session  uint16
	Engine   uint8  // which of the switch's workers made it, where the format says so
	Sequence uint32 // with Numbered
	Numbered bool
	Info     Info // what the format carries of it; At is 0 without time stamp
	Original []byte
}

// Unwrap takes the headers of a mirror session off a frame, which begins with its
// Ethernet header. ok is false for what is no copy.
func Unwrap(b []byte) (c Copied, ok bool) {
	if len(b) < wire.EthernetLen+wire.IPv4Len+wire.GRELen || wire.Ethernet(b).EtherType() != wire.EtherTypeIPv4 {
		return c, false
	}
	ip := wire.IPv4(b[wire.EthernetLen:])
	n := ip.HeaderLen()
	if ip.Version() != 4 || n < wire.IPv4Len || ip.Proto() != wire.ProtoGRE || len(b) < wire.EthernetLen+n+wire.GRELen {
		return c, false
	}
	c.Switch = netip.AddrFrom4([4]byte(b[wire.EthernetLen+12:]))
	g := wire.GRE(b[wire.EthernetLen+n:])
	at := g.HeaderLen()
	if len(g) < at {
		return c, false
	}
	if c.Numbered = g.Flags()&wire.GRESequence != 0; c.Numbered {
		c.Sequence = binary.BigEndian.Uint32(g[at-4:])
	}
	switch {
	case g.Protocol() == GREProtoERSPAN3:
		var f wire.ERSPAN3Fields
		n, why := f.Decode(g[at:])
		if why != frame.Keep {
			return c, false
		}
		c.Session, c.Engine = f.SessionID, f.HardwareID
		c.Info = Info{VLAN: f.VLAN, Class: f.COS, Egress: f.Egress, Reason: frame.Reason(f.SGT)}
		if f.HasPlatform && f.Platform>>58 == 5 && f.Granularity == 2 {
			c.Info.At = frame.Time(uint32(f.Platform))*frame.Second + frame.Time(f.Timestamp)
			c.Info.Port = uint16(f.Platform >> 32)
		}
		at += n
	case g.Protocol() == GREProtoERSPAN2 && c.Numbered:
		var f wire.ERSPAN2Fields
		n, why := f.Decode(g[at:])
		if why != frame.Keep {
			return c, false
		}
		c.Session, c.Info = f.SessionID, Info{VLAN: f.VLAN, Class: f.COS, Port: uint16(f.Index)}
		at += n
	case g.Protocol() != GREProtoERSPAN2:
		return c, false
	}
	if at > len(g) {
		return c, false
	}
	c.Original = g[at:]
	return c, true
}

// Parse reads a copy that came in a frame of a mirror session. ok is false for what
// is no copy, or of an original that is not IPv4.
func Parse(b []byte) (k Key, h Hop, ok bool) {
	c, ok := Unwrap(b)
	if !ok {
		return k, h, false
	}
	return c.Hop()
}

// Hop returns what a copy says of a packet's way, of an IPv4 packet.
func (c *Copied) Hop() (Key, Hop, bool) {
	return original(c.Original, Key{}, Hop{Switch: c.Switch, At: c.Info.At, Port: c.Info.Port, Reason: c.Info.Reason})
}

// mostHeaders is how many IP headers of a packet are looked through.
const mostHeaders = 4

func original(b []byte, k Key, h Hop) (Key, Hop, bool) {
	if len(b) < wire.EthernetLen || wire.Ethernet(b).EtherType() != wire.EtherTypeIPv4 {
		return k, h, false
	}
	h.From = wire.Ethernet(b).Src()
	b = b[wire.EthernetLen:]
	for depth := range mostHeaders {
		ip := wire.IPv4(b)
		if len(b) < wire.IPv4Len || ip.Version() != 4 || ip.HeaderLen() < wire.IPv4Len || len(b) < ip.HeaderLen() {
			return k, h, false
		}
		if depth == 0 {
			h.TTL, h.DSCP, h.ECN, h.OuterDst, h.Bytes = ip.TTL(), ip.DSCP(), ip.ECN(), [4]byte(b[16:20]), ip.TotalLen()
		}
		if depth == 1 {
			h.Then = [4]byte(b[16:20])
		}
		h.InnerTTL, h.Depth = ip.TTL(), uint8(depth)
		if ip.Proto() == wire.ProtoIPv4 {
			b = b[ip.HeaderLen():]
			continue
		}
		k = Key{Src: [4]byte(b[12:16]), Dst: [4]byte(b[16:20]), ID: ip.ID(), Proto: ip.Proto()}
		t := b[ip.HeaderLen():]
		if p := ip.Proto(); len(t) >= 4 && (p == wire.ProtoTCP || p == wire.ProtoUDP) && ip.FlagsOffset()&(wire.IPv4OffsetMask|wire.IPv4MoreFragments) == 0 {
			k.SrcPort, k.DstPort = wire.UDP(t).SrcPort(), wire.UDP(t).DstPort()
			if p == wire.ProtoUDP {
				// Some hops saw the packet before telemetry was put in.
				switch n, dst, why := wire.TelemetryLen(t, wire.UDPLen, len(t), k.DstPort); {
				case n > 0:
					k.DstPort = dst
				case why == frame.ParseShortINT && int(ip.TotalLen()) > len(b):
					k.DstPort, h.Cut = beforeTelemetry(t, k.DstPort), k.ID == 0
				}
			}
			h.Opens = p == wire.ProtoTCP && len(t) > 13 && t[13]&(wire.TCPSyn|wire.TCPAck) == wire.TCPSyn
			h.Probe, h.Number, _ = ProbeOf(p, t)
		}
		if k.ID == 0 {
			k.ID = identity(ip, b, ip.HeaderLen())
		}
		return k, h, true
	}
	return k, h, false
}

// beforeTelemetry is the port that a datagram had before telemetry was put in, where the copy
// ends within that.
func beforeTelemetry(t []byte, port uint16) uint16 {
	switch b := t[min(wire.UDPLen, len(t)):]; {
	case port != wire.INTPort:
		return wire.RoCEv2Port // HPCC's
	case len(b) >= wire.INTShimLen && b[0]>>4 == wire.INTTypeMD && b[0]>>2&3 == wire.INTNextPort:
		return binary.BigEndian.Uint16(b[2:])
	}
	return port
}

// Traces makes traces of copies. Memory is bounded: with all places taken, the trace
// that has waited longest is finished early, and so is one that grows too long or
// too old.
type Traces struct {
	// Idle is how long no copy of a packet must have come before its trace is whole:
	// longer than the slowest way. NewTraces sets the paper's IdleTime.
	Idle           frame.Time
	network        Network
	limit          int
	open           map[Key]*Trace
	oldest, newest *Trace // by Last
	out            []*Trace
	hops           int    // of those that are open
	Early          uint64 // traces that were finished before they were whole
}

// MostHops is how many hops all open traces have together.
const MostHops = 1 << 20

// Hops is how many they have now.
func (t *Traces) Hops() int { return t.hops }

// IdleTime is that of the paper (section 4.2.1).
const IdleTime = frame.Second

// What a trace is at most. A packet comes by 255 hops before its time to live ends,
// and each may be reported twice, in a tunnel and outside.
const (
	mostHops = 512
	// OldestTrace is for how long copies of one packet may come. Packets with one
	// identification for all would otherwise make one trace without end.
	OldestTrace = 10 * frame.Second
)

// NewTraces returns a collection of at most limit open traces.
func NewTraces(n Network, limit int) *Traces {
	return &Traces{network: n, Idle: IdleTime, limit: limit, open: map[Key]*Trace{}}
}

// Add takes a copy. At of the hop is when it came where the copy has no stamp.
func (t *Traces) Add(now frame.Time, k Key, h Hop) {
	if h.At == 0 {
		h.At = now
	}
	if t.hops >= MostHops {
		t.Early++
		t.finish(t.oldest)
	}
	tr := t.open[k]
	if tr != nil && (len(tr.Hops)+len(tr.Dropped) >= mostHops || now-tr.began >= OldestTrace) {
		t.Early++
		t.finish(tr)
		tr = nil
	}
	if h.Reason != frame.Keep {
		t.dropped(now, tr, k, h)
		return
	}
	if tr != nil && slices.ContainsFunc(tr.Hops, func(o Hop) bool { return h.same(&o) }) {
		t.finish(tr) // the identification is used again
		tr = nil
	}
	if tr == nil {
		tr = t.begin(now, k, &h)
	}
	tr.Hops = append(tr.Hops, h)
	t.hops++
	tr.Debug = tr.Debug || h.DSCP&DebugDSCP != 0
	t.touch(now, tr)
}

// begin opens a trace.
func (t *Traces) begin(now frame.Time, k Key, h *Hop) *Trace {
	if len(t.open) >= t.limit {
		t.Early++
		t.finish(t.oldest)
	}
	tr := &Trace{Key: k, began: now, Probe: h.Probe, Number: h.Number}
	t.open[k] = tr
	t.append(tr)
	return tr
}

// touch makes a trace the newest.
func (t *Traces) touch(now frame.Time, tr *Trace) {
	tr.Last = now
	if t.newest != tr {
		t.remove(tr)
		t.append(tr)
	}
}

func (t *Traces) append(tr *Trace) {
	if tr.earlier = t.newest; t.newest != nil {
		t.newest.newer = tr
	} else {
		t.oldest = tr
	}
	t.newest = tr
}

func (t *Traces) remove(tr *Trace) {
	if tr.earlier != nil {
		tr.earlier.newer = tr.newer
	} else {
		t.oldest = tr.newer
	}
	if tr.newer != nil {
		tr.newer.earlier = tr.earlier
	} else {
		t.newest = tr.earlier
	}
	tr.newer, tr.earlier = nil, nil
}

// dropped takes what a switch reports of a packet that it dropped, which is no hop of
// its own.
func (t *Traces) dropped(now frame.Time, tr *Trace, k Key, h Hop) {
	if tr == nil {
		tr = t.begin(now, k, &h)
	}
	tr.Dropped = append(tr.Dropped, h)
	t.hops++
	t.touch(now, tr)
}

// Advance returns the traces that are whole by now.
func (t *Traces) Advance(now frame.Time) []*Trace {
	for t.oldest != nil && now-t.oldest.Last >= t.Idle {
		t.finish(t.oldest)
	}
	out := t.out
	t.out = nil
	return out
}

// Newest calls f with the traces that are not whole as they would be judged now, those
// that a copy came of last first, until it returns false.
func (t *Traces) Newest(f func(tr *Trace) bool) {
	for tr := t.newest; tr != nil; tr = tr.earlier {
		now := &Trace{Key: tr.Key, Hops: slices.Clone(tr.Hops), Last: tr.Last, Dropped: tr.Dropped, Debug: tr.Debug, Probe: tr.Probe, Number: tr.Number}
		now.judge(t.network)
		if !f(now) {
			return
		}
	}
}

func (t *Traces) finish(tr *Trace) {
	delete(t.open, tr.Key)
	t.remove(tr)
	t.hops -= len(tr.Hops) + len(tr.Dropped)
	tr.judge(t.network)
	t.out = append(t.out, tr)
}

// judge orders the hops and says what became of the packet.
func (tr *Trace) judge(n Network) {
	if len(tr.Hops) == 0 {
		return // only its end was reported
	}
	// The innermost time to live falls on all the way; inside a tunnel the outer one
	// does. Arrival says nothing: copies take different ways.
	slices.SortStableFunc(tr.Hops, func(a, b Hop) int {
		if tr.Probe != 0 { // its headers are taken off on its way
			return cmp.Or(cmp.Compare(b.Depth, a.Depth), cmp.Compare(b.TTL, a.TTL))
		}
		return cmp.Or(cmp.Compare(b.InnerTTL, a.InnerTTL), cmp.Compare(a.Depth, b.Depth), cmp.Compare(b.TTL, a.TTL))
	})
	tr.loop()
	for i := 1; i < len(tr.Hops); i++ {
		tr.gap(n, &tr.Hops[i-1], &tr.Hops[i])
	}
	if first := &tr.Hops[0]; n.Station(first.From) {
		tr.miss(first.From, 1)
	}
	if last := &tr.Hops[len(tr.Hops)-1]; tr.Loop == nil {
		tr.Lost = tr.Probe != 0 && last.Depth > 0 || !n.Last(last.Switch, last.OuterDst)
	}
}

// loop finds switches that saw the packet more than once in the same encapsulation
// with another time to live. To meet a switch before and behind a load balancer is
// no loop, nor is a probe that is sent there and back in a tunnel.
func (tr *Trace) loop() {
	for i, h := range tr.Hops {
		again := slices.ContainsFunc(tr.Hops[:i], func(o Hop) bool { return o.Switch == h.Switch && o.Depth == h.Depth })
		if again && !slices.Contains(tr.Loop, h.Switch) {
			tr.Loop = append(tr.Loop, h.Switch)
		}
	}
}

// gap counts hops between two that saw the packet in the same encapsulation.
func (tr *Trace) gap(n Network, a, b *Hop) {
	if a.Depth != b.Depth || a.TTL <= b.TTL {
		return
	}
	missing := int(a.TTL) - int(b.TTL) - 1
	if missing == 0 {
		return
	}
	who := wire.MAC{}
	if missing == 1 && n.Station(b.From) {
		who = b.From
	}
	tr.miss(who, missing)
}

func (tr *Trace) miss(who wire.MAC, n int) {
	if tr.Missing == nil {
		tr.Missing = map[wire.MAC]int{}
	}
	tr.Missing[who] += n
	tr.Gaps += n
}
