package bump

import (
	"net/netip"

	"gswitch/frame"
	"gswitch/hostnic"
)

// Frames counts frames and their bytes.
type Frames struct{ Frames, Bytes uint64 }

func (f *Frames) add(m *frame.Meta) {
	f.Frames++
	f.Bytes += uint64(m.Wire)
}

// Counts is what a bump counted since it was made. What the outer side sent,
// and what was dropped there, counts its NIC.
type Counts struct {
	FromKernel, ToKernel, FromFabric Frames

	Carried   uint64 // packets put into channels
	Delivered uint64 // packets that came by channels
	PassedOut uint64 // frames of the kernel that went untouched
	PassedIn  uint64 // frames of the fabric that went untouched
	Drops     [frame.NumReasons]uint64

	Clamped   uint64 // SYNs whose segment size was lowered
	TooBigs   uint64 // ICMP errors about packets that do not fit
	Marked    uint64 // packets marked CE for the length of their channel's queue
	Overflows uint64 // packets whose tuple found no channel of its own

	Opened, Closed uint64 // channels
	Lost           uint64 // of these, closed with a peer that is another now, or gone
	Refused        uint64 // openings that the peer refused or did not answer
	NoRoom         uint64 // openings for which there was no queue pair
	Asked          uint64 // Hellos
	Refusals       uint64 // ICMP errors of hosts without a bump, used up
	ResetsSent     uint64
	Stale          uint64 // datagrams of an earlier incarnation, or about what is no more
	BadDatagrams   uint64
}

// Counts returns the counters.
func (b *Bump) Counts() *Counts { return &b.count }

// Channel is what a channel shows.
type Channel struct {
	Local, Remote         netip.Addr
	LocalPort, RemotePort uint16
	Proto                 uint8
	Host                  bool // all packets between the two addresses
	State                 string
	Active                bool // opened by this end
	CC                    string
	Opened                frame.Time
	Queue                 uint64 // bytes that were not sent yet
	Packet                int    // bytes that a packet may have
	Drops, Marks          uint64
	QP                    hostnic.QPView
}

// Channels appends the channels.
func (b *Bump) Channels(out []Channel) []Channel {
	for i := range b.channels {
		c := &b.channels[i]
		if c.state == unused {
			continue
		}
		v := Channel{Local: c.key.local(), Remote: c.key.remote(), LocalPort: uint16(c.key.ports >> 16), RemotePort: uint16(c.key.ports), Proto: c.key.proto,
			Host: c.key.host, State: c.state.String(), Active: c.active, CC: c.rule.CC, Opened: c.opened, Packet: c.packet, Drops: c.drops, Marks: c.marks}
		v.Queue, _ = b.nic.Backlog(c.qpn)
		v.QP, _ = b.nic.QP(c.qpn) // it is open
		out = append(out, v)
	}
	return out
}

// Peer is what is known of another host.
type Peer struct {
	Addr     netip.Addr
	State    string // asked, known, absent
	Channels int
}

// Peers appends the hosts that packets were sent to.
func (b *Bump) Peers(out []Peer) []Peer {
	for i := range b.peers {
		p := &b.peers[i]
		out = append(out, Peer{p.key.remote(), p.state.String(), p.channels})
	}
	return out
}

// Open returns how many channels there are, for tuples and for hosts.
func (b *Bump) Open() (tuples, hosts int) {
	return b.tuples, len(b.channels) - len(b.free) - b.tuples
}

// Station returns the host's link address, 0 while it has sent nothing.
func (b *Bump) Station() uint64 { return b.mac }
