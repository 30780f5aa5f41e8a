package gfabric

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"time"

	"gswitch/capture"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/wholefile"
	"gswitch/wire"
)

// lookout is what is looked at while nodes are replayed: --trace, --pcap and --until, of
// one node or of all nodes of a network.
type lookout struct {
	flags *replayFlags
	out   *bufio.Writer
	until *condition // nil: none

	parser *wire.Parser    // nil without --trace
	flow   netip.AddrPort  // of --trace; port 0: any
	lines  int             // of --trace
	file   *wholefile.File // of --pcap
	pcap   *capture.Writer
	ifaces map[string]uint32
	wide   int // of the column of ports
}

// newLookout arranges for what is to be looked at, which goes to w.
func newLookout(f *replayFlags, until *condition, w io.Writer) (*lookout, error) {
	l := &lookout{flags: f, until: until, out: bufio.NewWriter(w), wide: 8}
	if f.trace != "" {
		var err error
		if l.flow, err = netip.ParseAddrPort(f.trace); err != nil {
			a, err := netip.ParseAddr(f.trace)
			if err != nil {
				return nil, usagef("--trace %s: give an address, or ADDRESS:PORT", f.trace)
			}
			l.flow = netip.AddrPortFrom(a, 0)
		}
		l.parser = wire.NewParser(wire.NewHasher(0, false))
	}
	if f.pcap != "" {
		var err error
		if l.file, err = wholefile.Create(f.pcap, 0o600); err != nil {
			return nil, err
		}
		l.pcap, l.ifaces = capture.NewWriter(l.file), map[string]uint32{}
		if err := l.pcap.Section("replayed by gfabric " + version); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// frames reports whether single frames are looked at.
func (l *lookout) frames() bool { return l.parser != nil || l.pcap != nil }

// drops reports whether frames that are dropped are.
func (l *lookout) drops() bool { return l.frames() || l.until != nil && l.until.drop }

func (l *lookout) close() error {
	err := l.out.Flush()
	if l.pcap == nil {
		return err
	}
	if closed := l.file.Close(l.pcap.Flush()); closed != nil {
		return closed
	}
	return err
}

// untraced says so where --trace found no frame.
func (l *lookout) untraced(w io.Writer) {
	if l.parser == nil || l.lines > 0 {
		return
	}
	when := ""
	if l.flags.from > 0 || l.flags.at >= 0 || l.flags.to >= 0 {
		when = ", in that time"
	}
	fmt.Fprintf(w, "--trace %s: no frame from or to it came, left or was dropped%s\n", l.flags.trace, when)
}

// sight is a node that is looked at.
type sight struct {
	*lookout
	name  string // "" of the only one
	arena *frame.Arena
	ports map[uint16]string
	zero  frame.Time // of the node's clock, since when instants are counted
	epoch int64      // wall clock at instant zero of the node's clock

	stopped bool // what --until names came
}

// before reports whether an instant comes before --from.
func (s *sight) before(now frame.Time) bool { return now-s.zero < frame.Time(s.flags.from) }

func (s *sight) came(now frame.Time, port uint16, v []frame.Ref) {
	if s.before(now) {
		return
	}
	for _, ref := range v {
		s.save(now, port, ref, capture.DirIn)
		if s.traced(ref) {
			s.line(now, ref, life{What: "in", Port: s.port(port)})
		}
	}
}

func (s *sight) left(now frame.Time, port uint16, v []frame.Ref) {
	if s.before(now) {
		return
	}
	for _, ref := range v {
		m := s.arena.Meta(ref)
		s.save(now, port, ref, capture.DirOut)
		if queue, waited, bytes := int(m.Queue), now-m.Arrival, m.QBytes; s.traced(ref) {
			s.line(now, ref, life{What: "out", Port: s.port(port), Queue: &queue, waited: waited, Behind: bytes})
		}
	}
}

func (s *sight) dropped(now frame.Time, v []frame.Ref) {
	for _, ref := range v {
		m := s.arena.Meta(ref)
		why, port := m.Reason, m.InPort
		s.stopped = s.stopped || s.until != nil && s.until.drop && (s.until.reason == frame.Keep || why == s.until.reason)
		if s.before(now) {
			continue
		}
		s.save(now, port, ref, capture.DirDrop)
		if s.traced(ref) {
			s.line(now, ref, life{What: "drop", Port: s.port(port), Reason: why.String()})
		}
	}
}

// traced parses a frame, and reports whether it is of the flow that is traced.
// Whoever gets the frame next parses it again, or frees it.
func (s *sight) traced(ref frame.Ref) bool {
	if s.parser == nil {
		return false
	}
	s.parser.Parse(s.arena, []frame.Ref{ref})
	src, dst := addressesOf(s.arena, ref)
	for _, a := range []netip.AddrPort{src, dst} {
		if a.Addr() == s.flow.Addr() && (s.flow.Port() == 0 || a.Port() == s.flow.Port()) {
			return true
		}
	}
	return false
}

// addressesOf returns the outer addresses and the ports of a frame that was parsed.
func addressesOf(arena *frame.Arena, ref frame.Ref) (src, dst netip.AddrPort) {
	m, b := arena.Meta(ref), arena.Bytes(ref)
	switch {
	case m.Flags&frame.HasIPv4 != 0:
		ip := wire.IPv4(b[m.L3:])
		return netip.AddrPortFrom(netip.AddrFrom4(ip.Src()), m.SrcPort), netip.AddrPortFrom(netip.AddrFrom4(ip.Dst()), m.DstPort)
	case m.Flags&frame.HasIPv6 != 0:
		ip := wire.IPv6(b[m.L3:])
		return netip.AddrPortFrom(netip.AddrFrom16(ip.Src()), m.SrcPort), netip.AddrPortFrom(netip.AddrFrom16(ip.Dst()), m.DstPort)
	}
	return src, dst
}

// life is what happens to a frame at a node.
type life struct {
	At     float64 `json:"at_seconds"`
	What   string  `json:"what"` // in, out, drop
	Node   string  `json:"node,omitempty"`
	Port   string  `json:"port"`
	From   string  `json:"from"`
	To     string  `json:"to"`
	ID     *uint16 `json:"id,omitempty"` // identification of IPv4
	Bytes  uint32  `json:"bytes"`
	Queue  *int    `json:"queue,omitempty"` // of what left
	Waited float64 `json:"waited_seconds,omitempty"`
	Behind uint32  `json:"bytes_behind,omitempty"` // in its queue when it left
	Reason string  `json:"reason,omitempty"`       // of a drop

	waited frame.Time
}

// line says what happened to a frame that was parsed.
func (s *sight) line(now frame.Time, ref frame.Ref, l life) {
	s.lines++
	m, b := s.arena.Meta(ref), s.arena.Bytes(ref)
	src, dst := addressesOf(s.arena, ref)
	l.Node, l.From, l.To, l.Bytes = s.name, src.String(), dst.String(), m.Wire
	if m.Flags&frame.HasIPv4 != 0 {
		id := wire.IPv4(b[m.L3:]).ID()
		l.ID = &id
	}
	if s.flags.json {
		l.At, l.Waited = (now - s.zero).Duration().Seconds(), l.waited.Duration().Seconds()
		text, _ := json.Marshal(&l) // strings and numbers
		fmt.Fprintf(s.out, "%s\n", text)
		return
	}
	fmt.Fprintf(s.out, "%14v %-4s %-*s %v > %v", (now - s.zero).Duration(), l.What, s.wide, s.at(l.Port), src, dst)
	if l.ID != nil {
		fmt.Fprintf(s.out, " id %d", *l.ID)
	}
	fmt.Fprintf(s.out, ", %d B", m.Wire)
	switch {
	case l.Queue != nil:
		fmt.Fprintf(s.out, "; queue %d, waited %v, %d B behind it", *l.Queue, l.waited.Duration().Round(10*time.Nanosecond), l.Behind)
	case l.Reason != "":
		fmt.Fprintf(s.out, "; %s", l.Reason)
	}
	fmt.Fprintln(s.out)
}

// port names a port; what the switch makes itself came by none.
func (s *sight) port(n uint16) string {
	if name := s.ports[n]; name != "" {
		return name
	}
	return "-"
}

// at names a port among those of all nodes.
func (s *sight) at(port string) string {
	if s.name == "" {
		return port
	}
	return s.name + ":" + port
}

// save writes the headers of a frame to the capture.
func (s *sight) save(now frame.Time, port uint16, ref frame.Ref, dir capture.Dir) {
	if s.pcap == nil {
		return
	}
	name := s.at(s.port(port))
	iface, known := s.ifaces[name]
	if !known {
		var err error
		if iface, err = s.pcap.Interface(name, "", capture.MaxSnapLen); err != nil {
			return // the file says when it is closed
		}
		s.ifaces[name] = iface
	}
	m, b := s.arena.Meta(ref), s.arena.Bytes(ref)
	_ = s.pcap.Packet(capture.Record{Time: s.epoch + int64(now), Iface: iface, Wire: m.Wire, Dir: dir, Reason: m.Reason}, b[:replay.Kept(b)]) // so does Flush
}

// replayed is the replay of a node's record, and what is looked at on the way.
type replayed struct {
	sight
	p  *replay.Player
	sw replayable

	reached frame.Time // at which a replay ended before the next call
}

// now is the instant at which a node is as it is: that of the last call, or a later one at which
// the replay ended.
func (r *replayed) now() frame.Time { return max(r.p.Now(), r.reached) }

// newReplayed looks at the replay of a node.
func newReplayed(l *lookout, p *replay.Player) *replayed {
	r := &replayed{p: p, sw: p.Node.(replayable)}
	r.sight = sight{lookout: l, arena: p.Arena, ports: r.sw.Ports(), zero: p.Header.Start, epoch: p.Header.Epoch}
	if l.frames() {
		p.Seen = r.came
	}
	if l.drops() {
		p.Dropped = r.dropped
	}
	return r
}

// holds reports whether what --until names is there, behind a call.
func (r *replayed) holds() bool {
	if c := r.until; c != nil && !c.drop {
		r.stopped = c.holds(c.in(r.sw, r.ports))
	}
	return r.stopped
}
