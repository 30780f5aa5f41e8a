package verbs

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"gswitch/cc"
	"gswitch/dataplane"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	inband "gswitch/int"
	"gswitch/scheduler"
	"gswitch/transport"
	"gswitch/wire"
)

// Config describes a host. Interface and Address must be said; what else is
// zero has the default that ghost has.
type Config struct {
	Interface string       // that the host takes over
	NetNS     string       // its network namespace: a name under /run/netns, or a path; empty: the process's own
	Address   netip.Prefix // of the host, with the length of the link's prefix
	Gateway   netip.Addr   // next hop of addresses that are not on the link; not valid: none

	Rate    uint64        // bit/s at which the host sends at most; 0 = 10 Gb/s
	Burst   time.Duration // how far that may catch up when the worker was late; 0 = 50 us
	Payload int           // bytes of payload in a full frame, the same at both ends; 0 = 1000
	BaseRTT time.Duration // T of congestion control; 0 = 1 ms

	Congestion string            // of connections that are dialed; "" = hpcc. cc.Names lists them
	Options    map[string]string // of this congestion control
	Telemetry  string            // none, hpcc, hpcc-grow or int-md; "" = hpcc
	Links      []uint64          // bit/s: the slowest and the fastest link of the network, which units of telemetry follow from
	Recovery   *transport.Kind   // of connections that are dialed; nil: go-back-N
	Timeout    time.Duration     // before what is not acknowledged is sent again; 0 = 20 BaseRTT, at least 20 ms
	Class      uint8             // of traffic, 0 to 7; its DSCP is 8 times that
	PFCClasses uint8             // one bit for each class in which pauses are honoured

	Poll   dataplane.PollMode // when the worker sleeps
	Pin    bool               // the worker runs on CPU only
	CPU    int
	Chunks int          // frames of the packet memory; 0: computed from the interface's queues
	Logger *slog.Logger // of what becomes of the interface; nil: not logged
}

const (
	defaultRate    = 10e9
	defaultBurst   = 50 * time.Microsecond
	defaultPayload = 1000
	defaultBaseRTT = time.Millisecond
	maxPayload     = 3800
	// largestPayload is the most that fits into a small chunk with all headers
	// and the telemetry of the longest path.
	largestPayload = 1400
)

// complete fills in what was left out, and refuses what cannot be meant.
func (c Config) complete() (Config, error) {
	c.Rate = cmp.Or(c.Rate, defaultRate)
	c.Burst = cmp.Or(c.Burst, defaultBurst)
	c.Payload = cmp.Or(c.Payload, defaultPayload)
	c.BaseRTT = cmp.Or(c.BaseRTT, defaultBaseRTT)
	c.Congestion = cmp.Or(c.Congestion, "hpcc")
	c.Telemetry = cmp.Or(c.Telemetry, inband.HPCC.String())
	c.Timeout = cmp.Or(c.Timeout, max(20*c.BaseRTT, 20*time.Millisecond))
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	addr := c.Address.Addr()
	_, known := modes[c.Telemetry]
	switch {
	case c.Interface == "":
		return c, fmt.Errorf("verbs: Interface is empty: name a network interface")
	case !c.Address.IsValid() || addr.IsMulticast() || addr.IsUnspecified() || addr.IsLoopback():
		return c, fmt.Errorf("verbs: Address %v is not that of a host with the length of its link's prefix, such as 10.0.0.1/24", c.Address)
	case c.Payload < 64 || c.Payload > maxPayload:
		return c, fmt.Errorf("verbs: Payload %d is not within 64 and %d", c.Payload, maxPayload)
	case c.BaseRTT < 0 || c.BaseRTT > time.Second || c.Timeout < 0 || c.Timeout > 20*time.Second || c.Burst < 0 || c.Burst > time.Second:
		return c, fmt.Errorf("verbs: BaseRTT %v and Burst %v must be at most 1s, Timeout %v at most 20s, and none negative", c.BaseRTT, c.Burst, c.Timeout)
	case c.Class > 7:
		return c, fmt.Errorf("verbs: Class %d is not within 0 and 7", c.Class)
	case !known:
		return c, fmt.Errorf("verbs: Telemetry %q: must be %s", c.Telemetry, inband.RoCEWords())
	}
	if _, err := cc.Factory(c.Congestion, c.Options); err != nil {
		return c, fmt.Errorf("verbs: Congestion: %w", err)
	}
	if in, _ := cc.Lookup(c.Congestion); in.Needs == feature.Telemetry && !strings.HasPrefix(c.Telemetry, inband.HPCC.String()) {
		return c, fmt.Errorf("verbs: %s needs telemetry with the rate of links, hpcc or hpcc-grow, not %s", c.Congestion, c.Telemetry)
	}
	return c, nil
}

// modes of telemetry by their names.
var modes = map[string]inband.Mode{}

func init() {
	for _, name := range inband.RoCENames() {
		modes[name], _ = inband.ParseMode(name)
	}
}

// agent returns what the host's NIC and connection manager are made from.
func (c *Config) agent(mac wire.MAC) *agent.Config {
	nic := hostnic.Config{
		Name: c.Interface, MAC: mac, Addr: c.Address.Addr(), Rate: c.Rate, Overhead: scheduler.EthernetOverhead, Burst: frame.Time(c.Burst),
		Payload: c.Payload, BaseRTT: frame.Time(c.BaseRTT), AckClass: -1, AckPauseClass: -1, PFC: c.PFCClasses != 0, PFCClasses: c.PFCClasses,
		Stack: &hostnic.StackConfig{Bits: c.Address.Bits(), Gateway: c.Gateway, Port: agent.Port, Class: c.Class},
		// Another one at each start: peers must not take this process for the
		// one before, nor others guess its numbers.
		Seed: rand.Uint64(), RandomNumbers: true,
	}
	for class := range nic.DSCP {
		nic.DSCP[class] = uint8(8 * class)
	}
	// As ghost has them (config.Host.Transport): IRN's low timeout for at most 3
	// packets in flight (IRN section 4.1).
	high := frame.Time(c.Timeout)
	return &agent.Config{NIC: nic, INT: c.units(), Algorithm: c.algorithm, Sessions: maxQueuePairs,
		Transport: transport.Config{RTOHigh: high, RTOLow: min(high, max(4*frame.Time(c.BaseRTT), frame.Millisecond)), N: 3}}
}

// algorithm makes the congestion control of a name: Options are of the one
// that the configuration names.
func (c *Config) algorithm(name string) (func(*cc.Env) cc.Algorithm, error) {
	if name == c.Congestion {
		return cc.Factory(name, c.Options)
	}
	return cc.Factory(name, nil)
}

// cap returns the packets that IRN lets be in flight: the bandwidth-delay
// product (IRN section 3.2).
func (c *Config) cap() uint32 {
	return uint32(max(1, float64(c.Rate)/8*c.BaseRTT.Seconds()/float64(c.Payload)))
}

// headers returns the most bytes that an IP packet has besides its payload,
// before switches add to its telemetry.
func (c *Config) headers() int {
	n := wire.UDPLen + wire.BTHLen + wire.RETHLen + wire.ICRCLen + wire.IPv4Len
	if c.Address.Addr().Is6() {
		n += wire.IPv6Len - wire.IPv4Len
	}
	if c.Telemetry != inband.None.String() {
		n += wire.HPCCLen
	}
	return n
}

// units returns those of HPCC's telemetry, nil for the default ones.
func (c *Config) units() *inband.Profile {
	if len(c.Links) == 0 {
		return nil
	}
	p := inband.ProfileFor(c.Links...)
	return &p
}
