package bump

import (
	"fmt"
	"net/netip"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/transport"
	"gswitch/wire"
)

// Ports of the node.
const (
	Outer uint16 = 0
	Inner uint16 = 1
)

// Flows says what shares a channel.
type Flows uint8

const (
	PerTuple Flows = iota // protocol, addresses and ports
	PerHost               // addresses
	Pass                  // no channel: the frames pass untouched
)

// String returns the name of f, as configurations write it.
func (f Flows) String() string {
	return [...]string{PerTuple: "tuple", PerHost: "host", Pass: "pass"}[f%3]
}

// Rule says what becomes of packets. Zero fields match all.
type Rule struct {
	Prefix    netip.Prefix // of the other host
	Proto     uint8
	PortLo    uint16 // either port of a packet
	PortHi    uint16
	Flows     Flows
	Class     uint8
	CC        string // at most 16 letters
	New       func(*cc.Env) cc.Algorithm
	Telemetry inband.Mode
}

// Config of a bump. The NIC gives rate, burst, classes, base round trip and
// seed; its address, MAC, payload, stack and queue pairs are set here.
type Config struct {
	NIC       hostnic.Config
	MAC       wire.MAC // of the host; zero: that of the first frame of the kernel
	MTU       int      // of the outer link: bytes of an IP packet
	Hops      int      // switches that lengthen telemetry, in formats that grow; 0 = 8
	INT       *inband.Profile
	Transport transport.Config // Mode and Cap included
	Default   Rule
	Rules     []Rule // the first that matches counts, else Default

	Channels int        // most open at once for tuples, and again for hosts; 0 = 512
	Queue    uint32     // bytes of a channel not yet sent; 0 = 2 bandwidth-delay products, at least 128 KiB
	Mark     uint32     // above it packets that are ECN-capable are marked; 0 = half of Queue
	Idle     frame.Time // a channel without packets for so long is closed; 0 = 5 s
}

const (
	defaultChannels = 512
	defaultHops     = 8
	defaultIdle     = 5 * frame.Second
	// A channel's queue holds two bandwidth-delay products: a loss-based sender
	// that halves its window then never leaves it empty (Appenzeller et al.,
	// SIGCOMM 2004, ask for one). And two bursts of the largest segment that a
	// kernel cuts into frames at once.
	leastQueue = 128 << 10
	// partition is the P_Key of channels: "gb", not a full member, so that no
	// host's own RoCEv2 has it.
	partition uint16 = 0x6762
)

// prepared checks c and fills in what was left out.
func (c Config) prepared() (Config, error) {
	switch {
	case c.MTU < 576 || c.MTU > 9000:
		return c, fmt.Errorf("bump %s: an MTU of %d bytes is not within 576 and 9000", c.NIC.Name, c.MTU)
	case c.Channels < 0 || c.Channels > 1<<14:
		return c, fmt.Errorf("bump %s: %d channels are not within 0 and %d", c.NIC.Name, c.Channels, 1<<14)
	case c.Hops < 0 || c.Hops > inband.MaxHops:
		return c, fmt.Errorf("bump %s: %d hops are not within 0 and %d", c.NIC.Name, c.Hops, inband.MaxHops)
	case c.NIC.Stack != nil || c.NIC.Virtual:
		return c, fmt.Errorf("bump %s: its NIC has no stack, and real frames", c.NIC.Name)
	case c.Idle < 0:
		return c, fmt.Errorf("bump %s: times must not be negative", c.NIC.Name)
	case c.Mark > c.Queue && c.Queue != 0:
		return c, fmt.Errorf("bump %s: marking above %d bytes, and the queue ends at %d", c.NIC.Name, c.Mark, c.Queue)
	}
	for _, r := range append([]Rule{c.Default}, c.Rules...) {
		if len(r.CC) > ccLen || r.Class > 7 || r.Flows > Pass || r.PortLo > r.PortHi {
			return c, fmt.Errorf("bump %s: rule %+v cannot be meant", c.NIC.Name, r)
		}
	}
	if c.Channels == 0 {
		c.Channels = defaultChannels
	}
	if c.Hops == 0 {
		c.Hops = defaultHops
	}
	if c.Idle == 0 {
		c.Idle = defaultIdle
	}
	if c.Queue == 0 {
		bdp := float64(c.NIC.Rate) / 8 * c.NIC.BaseRTT.Seconds()
		c.Queue = max(leastQueue, uint32(min(2*bdp, 64<<20)))
	}
	if c.Mark == 0 {
		c.Mark = c.Queue / 2
	}
	c.NIC.MaxQPs = 2 * c.Channels
	c.NIC.RandomNumbers = true
	c.NIC.Payload = c.packet(true, inband.None)
	if c.NIC.MAC.IsZero() {
		c.NIC.MAC = wire.MAC{2, 0, 0, 0, 0, 1} // stands in no frame: each channel has its own
	}
	if !c.NIC.Addr.IsValid() {
		c.NIC.Addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return c, nil
}

// packet returns the bytes that a packet in a channel may have, so that with
// all headers it fits the outer link.
func (c *Config) packet(v4 bool, mode inband.Mode) int {
	codec := inband.NewCodec(mode, c.INT)
	n := c.MTU - wire.IPv6Len - wire.UDPLen - codec.FullLen(c.Hops) - wire.BTHLen - wire.ICRCLen
	if v4 {
		n += wire.IPv6Len - wire.IPv4Len
	}
	return n &^ 3 // RDMA pads to whole words
}

// Packet returns the bytes that an IPv4 packet in a channel of no special rule
// may have.
func (c Config) Packet() int { return c.packet(true, c.Default.Telemetry) }
