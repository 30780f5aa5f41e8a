package gfabric

import (
	"bufio"
	"fmt"
	"net/netip"
	"time"

	"gswitch/capture"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/wholefile"
	"gswitch/wire"
)

// replayed is a replay, and what is looked at on the way.
type replayed struct {
	flags   *replayFlags
	p       *replay.Player
	sw      replayable
	out     *bufio.Writer
	from    frame.Time
	until   *condition // nil: none
	stopped bool

	parser *wire.Parser
	flow   netip.AddrPort  // of --trace; port 0: any
	file   *wholefile.File // of --pcap
	pcap   *capture.Writer
	ifaces map[uint16]uint32
}

// watch arranges for what is to be looked at.
func (r *replayed) watch() (err error) {
	f := r.flags
	if f.trace != "" {
		if r.flow, err = netip.ParseAddrPort(f.trace); err != nil {
			a, err := netip.ParseAddr(f.trace)
			if err != nil {
				return usagef("--trace %s: give an address, or ADDRESS:PORT", f.trace)
			}
			r.flow = netip.AddrPortFrom(a, 0)
		}
		r.parser = wire.NewParser(wire.NewHasher(0, false))
	}
	if f.pcap != "" {
		if r.file, err = wholefile.Create(f.pcap, 0o600); err != nil {
			return err
		}
		r.pcap, r.ifaces = capture.NewWriter(r.file), map[uint16]uint32{}
		if err := r.pcap.Section("replayed by gfabric " + version); err != nil {
			return err
		}
	}
	if f.trace != "" || f.pcap != "" {
		r.p.Seen = r.came
	}
	if f.trace != "" || f.pcap != "" || r.until != nil && r.until.drop {
		r.p.Dropped = r.dropped
	}
	return nil
}

func (r *replayed) close() error {
	if r.pcap == nil {
		return nil
	}
	return r.file.Close(r.pcap.Flush())
}

func (r *replayed) came(now frame.Time, port uint16, v []frame.Ref) {
	for _, ref := range v {
		if now < r.from {
			return
		}
		r.save(now, port, ref, capture.DirIn)
		if r.traced(ref) {
			r.line(now, port, ref, "in", "")
		}
	}
}

func (r *replayed) left(e replay.Event) {
	for _, ref := range e.Frames {
		if e.At < r.from {
			return
		}
		m := r.p.Arena.Meta(ref)
		r.save(e.At, e.Port, ref, capture.DirOut)
		if queue, arrival, bytes := m.Queue, m.Arrival, m.QBytes; r.traced(ref) {
			r.line(e.At, e.Port, ref, "out", fmt.Sprintf("queue %d, waited %v, %d B behind it", queue, (e.At-arrival).Duration().Round(10*time.Nanosecond), bytes))
		}
	}
}

func (r *replayed) dropped(now frame.Time, v []frame.Ref) {
	for _, ref := range v {
		m := r.p.Arena.Meta(ref)
		why, port := m.Reason, m.InPort
		r.stopped = r.stopped || r.until != nil && r.until.drop && (r.until.reason == frame.Keep || why == r.until.reason)
		if now < r.from {
			continue
		}
		r.save(now, port, ref, capture.DirDrop)
		if r.traced(ref) {
			r.line(now, port, ref, "drop", why.String())
		}
	}
}

// traced parses a frame, and reports whether it is of the flow that is traced.
// Whoever gets the frame next parses it again, or frees it.
func (r *replayed) traced(ref frame.Ref) bool {
	if r.parser == nil {
		return false
	}
	r.parser.Parse(r.p.Arena, []frame.Ref{ref})
	src, dst := r.ends(ref)
	for _, a := range []netip.AddrPort{src, dst} {
		if a.Addr() == r.flow.Addr() && (r.flow.Port() == 0 || a.Port() == r.flow.Port()) {
			return true
		}
	}
	return false
}

// ends returns the outer addresses and the ports of a frame that was parsed.
func (r *replayed) ends(ref frame.Ref) (src, dst netip.AddrPort) {
	m, b := r.p.Arena.Meta(ref), r.p.Arena.Bytes(ref)
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

// line tells what happened to a frame.
func (r *replayed) line(now frame.Time, port uint16, ref frame.Ref, what, more string) {
	m, b := r.p.Arena.Meta(ref), r.p.Arena.Bytes(ref)
	src, dst := r.ends(ref)
	id := ""
	if m.Flags&frame.HasIPv4 != 0 {
		id = fmt.Sprintf(" id %d", wire.IPv4(b[m.L3:]).ID())
	}
	fmt.Fprintf(r.out, "%14v %-4s %-8s %v > %v%s, %d B", (now - r.p.Header.Start).Duration(), what, r.port(port), src, dst, id, m.Wire)
	if more != "" {
		fmt.Fprintf(r.out, "; %s", more)
	}
	fmt.Fprintln(r.out)
}

// port names a port; what the switch makes itself came by none.
func (r *replayed) port(n uint16) string {
	if name := r.sw.Ports()[n]; name != "" {
		return name
	}
	return "-"
}

// save writes the headers of a frame to the capture.
func (r *replayed) save(now frame.Time, port uint16, ref frame.Ref, dir capture.Dir) {
	if r.pcap == nil {
		return
	}
	iface, known := r.ifaces[port]
	if !known {
		var err error
		if iface, err = r.pcap.Interface(r.port(port), "", capture.MaxSnapLen); err != nil {
			return // the file tells when it is closed
		}
		r.ifaces[port] = iface
	}
	m, b := r.p.Arena.Meta(ref), r.p.Arena.Bytes(ref)
	_ = r.pcap.Packet(capture.Record{Time: r.p.Header.Epoch + int64(now), Iface: iface, Wire: m.Wire, Dir: dir, Reason: m.Reason}, b[:replay.Kept(b)]) // so does Flush
}
