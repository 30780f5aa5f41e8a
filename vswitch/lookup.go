package vswitch

import (
	"net/netip"

	"gswitch/frame"
	"gswitch/pipeline"
)

// Flow is what the switch hashes of an IPv4 packet to choose among equal
// paths.
type Flow struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	Proto            uint8
}

// EgressPort returns the port by which a routed packet of an IPv4 flow would leave,
// were all links up: what the program in force and its hash decide, like
// "ip route get". It is false where no route leads to a port, where it depends
// on more than the flow, or where one of the two addresses is not IPv4.
func (sw *Switch) EgressPort(f Flow) (port uint16, ok bool) {
	p := sw.program.Load()
	if !f.Src.Is4() || !f.Dst.Is4() {
		return 0, false
	}
	src, dst := keyOf(f.Src), keyOf(f.Dst)
	id := p.routing.table.Lookup4(uint32(dst.lo))
	if id == pipeline.NoEntry {
		return 0, false
	}
	hop := nextHop{noIface, dst}
	switch e := p.routing.entries[id]; e.kind {
	case routeConnected:
		hop.iface = e.iface
	case routeGroup:
		g := p.routing.groups[e.group]
		if !g.Chooser().ByFlow() {
			return 0, false
		}
		h := p.Config.Hasher()
		sum := h.IPv4(src.lo<<32|dst.lo&0xffffffff, uint32(f.SrcPort)<<16|uint32(f.DstPort), f.Proto)
		hop = p.routing.hops[g.Select(sum)]
	}
	if hop.iface == noIface {
		return 0, false
	}
	i := &p.ifaces[hop.iface]
	if i.port != frame.NoPort {
		return i.port, true
	}
	mac := sw.neighbors.lookup(hop.iface, hop.key)
	if mac == 0 {
		return 0, false
	}
	return sw.fdb.Lookup(pipeline.MACKey(i.vid, mac))
}
