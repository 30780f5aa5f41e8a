package hostnic

import (
	"fmt"
	"net/netip"

	"gswitch/frame"
	"gswitch/wire"
)

// neighbor is a station on the link for which we sent a request, or that sent one.
type neighbor struct {
	addr  netip.Addr
	mac   wire.MAC
	known bool       // mac is
	ours  bool       // requested here; otherwise it sent a request, and nothing here has needed it
	tries uint8      // requests since the last answer
	due   frame.Time // next request, or when the entry is given up
}

// Times of neighbours: a request each second while there is no answer, three in all (RFC
// 4861 10: RETRANS_TIMER, MAX_MULTICAST_SOLICIT). Known neighbours are confirmed after
// half a minute (REACHABLE_TIME). One that did not answer is removed after the same time,
// and may be requested again.
const (
	neighborRetry   = frame.Second
	neighborTries   = 3
	neighborConfirm = 30 * frame.Second
	maxNeighbors    = 1024
	// maxUnsolicited bounds the neighbours that only sent requests, so that stations,
	// real or forged, do not keep the host from resolving those that it needs.
	maxUnsolicited = maxNeighbors / 2
)

// Neighbors returns how many neighbours are known or asked for, and how many
// there may be.
func (n *NIC) Neighbors() (known, most int) {
	if n.stack == nil {
		return 0, maxNeighbors
	}
	return len(n.stack.neighbors), maxNeighbors
}

func (s *stack) find(a netip.Addr) *neighbor {
	for i := range s.neighbors {
		if s.neighbors[i].addr == a {
			return &s.neighbors[i]
		}
	}
	return nil
}

// Resolve returns the MAC address of the next hop to an address. ok is false while it is
// being resolved: call again later. It returns an error if the address is unreachable or
// does not answer.
func (n *NIC) Resolve(now frame.Time, to netip.Addr) (mac wire.MAC, ok bool, err error) {
	hop, err := n.NextHop(to)
	if err != nil {
		return mac, false, err
	}
	s := n.stack
	nb := s.find(hop)
	switch {
	case nb == nil && len(s.neighbors) >= maxNeighbors:
		return mac, false, fmt.Errorf("more than %d neighbours are known", maxNeighbors)
	case nb == nil:
		s.neighbors = append(s.neighbors, neighbor{addr: hop, ours: true})
		n.askNeighbor(now, &s.neighbors[len(s.neighbors)-1])
		return mac, false, nil
	}
	if !nb.ours {
		nb.ours = true
		s.unsolicited--
	}
	switch {
	case nb.known:
		return nb.mac, true, nil
	case nb.tries > neighborTries:
		what := "ARP"
		if !n.addr.v4 {
			what = "neighbour discovery"
		}
		return mac, false, fmt.Errorf("%v does not answer %s", hop, what)
	}
	return mac, false, nil
}

// learn records the MAC address of a neighbour. create makes an entry for one that was
// not requested, since it is about to send to us.
func (n *NIC) learn(now frame.Time, a netip.Addr, mac wire.MAC, create bool) {
	s := n.stack
	if mac.IsZero() || mac.IsMulticast() || a == n.cfg.Addr || !s.prefix.Contains(a) {
		return
	}
	nb := s.find(a)
	if nb == nil {
		if !create {
			return
		}
		if s.unsolicited >= maxUnsolicited || len(s.neighbors) >= maxNeighbors {
			s.count.UnsolicitedRefused++
			return
		}
		s.unsolicited++
		s.neighbors = append(s.neighbors, neighbor{addr: a})
		nb = &s.neighbors[len(s.neighbors)-1]
	}
	nb.mac, nb.known, nb.tries, nb.due = mac, true, 0, now+neighborConfirm
	s.due = min(s.due, nb.due)
}

// advance repeats requests, confirms and removes neighbours.
func (s *stack) advance(now frame.Time, n *NIC) {
	if now < s.due {
		return
	}
	s.due = frame.Never
	for i := 0; i < len(s.neighbors); {
		nb := &s.neighbors[i]
		if nb.due <= now {
			if nb.tries > neighborTries {
				if !nb.ours {
					s.unsolicited--
				}
				last := len(s.neighbors) - 1
				s.neighbors[i] = s.neighbors[last]
				s.neighbors = s.neighbors[:last]
				continue
			}
			n.askNeighbor(now, nb)
		}
		s.due = min(s.due, nb.due)
		i++
	}
}

// askNeighbor sends a request, or gives the neighbour up.
func (n *NIC) askNeighbor(now frame.Time, nb *neighbor) {
	nb.due = now + neighborRetry
	if nb.tries++; nb.tries > neighborTries {
		nb.known, nb.due = false, now+neighborConfirm
	} else {
		n.stack.count.Asked++
		n.solicit(now, nb)
	}
	n.stack.due = min(n.stack.due, nb.due)
}

// solicit sends a request for a neighbour, to itself if it is only confirmed.
func (n *NIC) solicit(now frame.Time, nb *neighbor) {
	var known wire.MAC
	if nb.known {
		known = nb.mac
	}
	if n.addr.v4 {
		var b [wire.ARPFrameLen]byte
		wire.EncodeARPRequest(&b, n.cfg.MAC, n.cfg.Addr.As4(), nb.addr.As4(), known)
		n.sendLocal(now, b[:])
		return
	}
	f := n.discoveryFrame()
	f.Solicit(nb.addr.As16(), known)
	n.sendND(now, &f)
}

// discoveryFrame is a frame of neighbour discovery that the host sends.
func (n *NIC) discoveryFrame() wire.NDFrame {
	return wire.NDFrame{DSCP: n.cfg.DSCP[n.stack.cfg.Class], Src: n.cfg.Addr.As16(), Self: n.cfg.MAC}
}

func (n *NIC) sendND(now frame.Time, f *wire.NDFrame) {
	var b [wire.NDFrameLen]byte
	f.Encode(&b)
	n.sendLocal(now, b[:])
}

// arp answers requests for our address and learns from what is meant for us
// (RFC 826, packet reception).
func (n *NIC) arp(now frame.Time, r frame.Ref, m *frame.Meta, b []byte) {
	a := wire.ARP(b[m.L3:])
	sip, tip, peer := a.SenderIP(), a.TargetIP(), a.SenderMAC()
	ours := n.addr.v4 && n.addr.is(tip[:])
	if peer.IsZero() || peer.IsMulticast() {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	if n.addr.v4 && sip != [4]byte{} { // else a probe (RFC 5227 2.1.1)
		n.learn(now, netip.AddrFrom4(sip), peer, ours)
	}
	if a.Op() != wire.ARPRequest || !ours {
		n.pool.Free(r)
		return
	}
	a.Answer(n.cfg.MAC)
	copy(b[0:6], peer[:])
	copy(b[6:12], n.cfg.MAC[:])
	n.stack.count.ARPAnswered++
	n.queueLocal(now, r)
}

// discovery takes in a neighbour solicitation or advertisement (RFC 4861
// 7.2.3 to 7.2.5) whose checksum is right.
func (n *NIC) discovery(now frame.Time, r frame.Ref, b []byte, ip wire.IPv6, msg []byte) {
	var nd wire.NDFields
	if _, bad := nd.Decode(msg); bad != frame.Keep || ip.HopLimit() != 255 {
		n.drop(r, frame.LocalUnhandled)
		return
	}
	if nd.Type == wire.ICMPv6NeighborAdvertisement {
		if mac, ok := nd.Options.LinkLayer(wire.NDTargetLinkLayer); ok {
			n.learn(now, netip.AddrFrom16(nd.Target), mac, false)
		}
		n.pool.Free(r)
		return
	}
	ours := n.addr.is(nd.Target[:])
	source := ip.SrcAddr()
	if mac, ok := nd.Options.LinkLayer(wire.NDSourceLinkLayer); ok && !source.IsUnspecified() {
		n.learn(now, source, mac, ours)
	}
	if ours {
		n.stack.count.NDAnswered++
		f := n.discoveryFrame()
		f.Advertise(nd.Target, ip.Src(), wire.Ethernet(b).Src(), 0)
		n.sendND(now, &f)
	}
	n.pool.Free(r)
}
