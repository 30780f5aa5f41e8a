package config

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"regexp"
	"strconv"

	"gswitch/cc"
	"gswitch/dataplane"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	intpoint "gswitch/int/point"
	"gswitch/scheduler"
	"gswitch/section"
	"gswitch/transport"
	"gswitch/units"
	"gswitch/wire"
)

// Host is one host on one interface.
type Host struct {
	Name string `yaml:"name" doc:"Name of the host, unique in the document. The interface names it if left out."`

	Interface string       `yaml:"interface" need:"yes" doc:"Network interface that the host takes over."`
	NetNS     string       `yaml:"netns" doc:"Network namespace of the interface, a name under /run/netns or a path. The daemon's own if left out."`
	Mode      string       `yaml:"mode" enum:"auto,zerocopy,native,generic" default:"auto" doc:"AF_XDP mode. auto takes the first that works, in this order."`
	MAC       *MAC         `yaml:"mac" doc:"Address of the host. That of the interface if left out."`
	Address   netip.Prefix `yaml:"address" need:"yes" doc:"IP address with the length of the link's prefix, such as 10.0.0.1/24 or fd00::1/64."`
	Gateway   netip.Addr   `yaml:"gateway" doc:"Next hop of addresses that are not on the link. None if left out."`

	Rate     units.Rate      `yaml:"rate" default:"10Gbps" doc:"Speed of the emulated link, at which the host paces what it sends."`
	Overhead string          `yaml:"overhead" enum:"ethernet,none" default:"ethernet" doc:"ethernet: preamble, checksum and gap take their 24 bytes of time on the link. none: they do not."`
	Burst    *units.Duration `yaml:"burst" default:"50us" doc:"How far the link may catch up when the worker was late. 0s: never."`
	Payload  int             `yaml:"payload" range:"64,3800" default:"1000" doc:"Bytes of payload in a full frame, the same at both ends."`

	BaseRTT         BaseRTT           `yaml:"base_rtt" default:"1ms" doc:"T of congestion control: slightly above the round trip of the idle network, which ghost calibrate measures. auto: it is measured to the first peers that are sent to, and 1ms until then."`
	Congestion      string            `yaml:"congestion" default:"hpcc" doc:"Congestion control of transfers that choose none: hpcc, dcqcn, timely, dctcp, none ..."`
	Options         map[string]string `yaml:"congestion_options" doc:"Options of this congestion control, by name. gfabric cc says which there are."`
	Telemetry       HostTelemetry     `yaml:"telemetry" doc:"In-band telemetry that data frames ask for."`
	Recovery        string            `yaml:"recovery" enum:"go-back-n,irn,irn-go-back-n,irn-no-sack,tcp,newreno" registered:"recovery" default:"go-back-n" doc:"Loss recovery of transfers that choose none."`
	RecoveryOptions RecoveryOptions   `yaml:"recovery_options" doc:"Options of this loss recovery: see gfabric recovery show."`
	FastRetransmit  *bool             `yaml:"fast_retransmit" doc:"Use recovery_options: the next version has this key no more."`
	Timeout         units.Duration    `yaml:"timeout" doc:"Retransmission timeout. 20 times base_rtt, but not below 20 ms, if left out."`
	Policy          string            `yaml:"policy" doc:"A policy (docs/POLICIES.md) that says which queue pair of a class sends next, by its next packet: arrival is when its message was posted, processing how many packets of that are left. They take turns if left out."`
	Class           int               `yaml:"class" range:"0,7" default:"0" doc:"Traffic class of data that chooses none. Its DSCP is 8 times the class."`
	PFC             HostPFC           `yaml:"pfc" doc:"Priority flow control (IEEE 802.1Qbb)."`
	MarkAbove       units.Size        `yaml:"mark_above" doc:"Data frames leave with a congestion mark while more of their class and those above waits for the host's own link (DeTail). No marks if left out."`
	PaceJitter      float64           `yaml:"pace_jitter" range:"0,0.5" doc:"Each paced gap is longer or shorter by up to this share of it, at random, so that flows of the same rate do not keep step (RoCC)."`
	CNP             bool              `yaml:"cnp" doc:"true: congestion marks are reported by RoCEv2 notification packets (DCQCN). false: by a bit of acknowledgements."`

	Serve  bool       `yaml:"serve" doc:"true: other hosts may open queue pairs here."`
	Region units.Size `yaml:"region" default:"16MiB" doc:"Memory for RDMA Write and Read of other hosts."`
	Worker *int       `yaml:"worker" range:"0,63" doc:"The worker that drives the host, counted from 0. Hosts are dealt out in turn if left out."`

	Features section.Extra[hostFeatures] // of the host, as they registered themselves
}

// HostTelemetry is the telemetry that a host asks for.
type HostTelemetry struct {
	Format string       `yaml:"format" enum:"none,hpcc,hpcc-grow,int-md" default:"hpcc" doc:"Format of the header in data frames."`
	Links  []units.Rate `yaml:"links" doc:"As in the switches' telemetry: slowest and fastest link of the whole network, or all rates."`
}

// HostPFC is flow control of a host.
type HostPFC struct {
	Classes     []int          `yaml:"classes" range:"0,7" doc:"Classes in which pauses are followed. None if left out."`
	QuenchAfter units.Duration `yaml:"quench_after" default:"10ms" doc:"A class that the neighbour pauses for longer counts as quenched. 0s: none does."`
}

// hostName is part of a file's name.
var hostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// validate checks a host whose keys stand below prefix, which is empty or ends
// with a dot.
func (h *Host) validate(s *section.Section, prefix string) {
	fail := func(key, format string, args ...any) { s.Fail(prefix+key, format, args...) }
	if h.Name != "" && !hostName.MatchString(h.Name) {
		fail("name", "%q is no name; letters, digits, dot, dash and underscore are possible", h.Name)
	}
	if _, err := (&Policy{Text: h.Policy}).First(); err != nil {
		fail("policy", "%v", err)
	}
	if h.Interface == "" {
		fail("interface", "is empty; name a network interface")
	}
	addr := h.Address.Addr()
	switch {
	case addr.IsMulticast() || addr.IsUnspecified() || addr.IsLoopback():
		fail("address", "%v is not the address of a host", addr)
	case h.Gateway.IsValid() && !h.Address.Contains(h.Gateway):
		fail("gateway", "%v is not on the link %v", h.Gateway, h.Address.Masked())
	case h.Gateway == addr:
		fail("gateway", "%v is the host's own address", addr)
	}
	if h.MAC != nil && (h.MAC.Multicast() || *h.MAC == MAC{}) {
		fail("mac", "%v is not the address of a station", *h.MAC)
	}
	for _, d := range []struct {
		key string
		v   units.Duration
		max frame.Time
	}{{"base_rtt", units.Duration(h.T()), frame.Second}, {"timeout", h.Timeout, 20 * frame.Second}, {"burst", *h.Burst, frame.Second},
		{"pfc.quench_after", h.PFC.QuenchAfter, 3600 * frame.Second}} {
		if d.v < 0 || frame.Time(d.v) > d.max {
			fail(d.key, "%v is not between 0s and %v", d.v, units.Duration(d.max))
		}
	}
	if h.MarkAbove > maxMark {
		fail("mark_above", "%v is more than %v, which no host lets wait", h.MarkAbove, maxMark)
	}
	if h.FastRetransmit != nil && h.RecoveryOptions.Given()["fast_retransmit"] != "" {
		fail("fast_retransmit", "stands under recovery_options, too; leave this one out")
	}
	if h.FastRetransmit != nil && !*h.FastRetransmit && h.Recovery != transport.NewReno.String() {
		fail("fast_retransmit", "false is for recovery: newreno, and this is %s", h.Recovery)
	} else if _, err := h.recovery(); err != nil {
		fail("recovery_options", "%v", err)
	}
	in, known := cc.Lookup(h.Congestion)
	if !known {
		fail("congestion", "%v", cc.UnknownError{Name: h.Congestion})
	} else if err := NeedsTelemetry(in.Name, h.Telemetry.Format); err != nil {
		fail("telemetry.format", "%v", err)
	}
	if known {
		if _, err := cc.Factory(h.Congestion, h.Options); err != nil {
			fail("congestion_options", "%v", err)
		}
	}
	c := h.nic(wire.MAC{}, 0)
	h.options(&c, func(name string, err error) { fail(name, "%v", err) })
	for i, r := range h.Telemetry.Links {
		if r == 0 {
			fail(fmt.Sprintf("telemetry.links[%d]", i), "a link without a rate has no units; write the rate of the device, such as 100Gbps")
		}
	}
}

const maxMark units.Size = 1 << 30

// NeedsTelemetry refuses a congestion control that reads telemetry without a
// format that carries the rate of links.
func NeedsTelemetry(algorithm, format string) error {
	in, _ := cc.Lookup(algorithm)
	if in.Needs != feature.Telemetry || format == inband.HPCC.String() || format == inband.HPCCGrow.String() {
		return nil
	}
	return fmt.Errorf("%s needs telemetry with the rate of links, hpcc or hpcc-grow, not %s", algorithm, format)
}

// ParseTelemetry returns the format of a name.
func ParseTelemetry(name string) (inband.Mode, error) {
	if m, ok := inband.ParseMode(name); ok && m != inband.INTMDUDP { // which RoCE has no use for
		return m, nil
	}
	return 0, fmt.Errorf("telemetry %q: must be none, hpcc, hpcc-grow or int-md", name)
}

// largestPayload is the most that fits into a small chunk with all headers and
// the telemetry of the longest path.
const largestPayload = 1400

// Spec returns what the engine opens. Its Queues are left to the caller, who
// knows the interface.
func (h *Host) Spec() dataplane.PortSpec {
	p := Port{Name: h.Name + "/" + h.Interface, Interface: h.Interface, NetNS: h.NetNS, Mode: h.Mode, Rate: h.Rate}
	s := p.Spec()
	s.Timing = h.Timing()
	return s
}

// NIC returns what the NIC of the host is made from. mac is that of the
// interface.
func (h *Host) NIC(mac wire.MAC, port uint16) hostnic.Config {
	c := h.nic(mac, port)
	c.Options = h.options(&c, func(string, error) {}) // which validate reported
	c.First, _ = (&Policy{Text: h.Policy}).First()
	return c
}

// nic is NIC without features.
func (h *Host) nic(mac wire.MAC, port uint16) hostnic.Config {
	seed := fnv.New64a()
	fmt.Fprint(seed, h.Name, h.Address)
	c := hostnic.Config{
		Name: h.Name, MAC: mac, Addr: h.Address.Addr(), Rate: uint64(h.Rate), Burst: frame.Time(*h.Burst), Payload: h.Payload, BaseRTT: h.T(),
		AckClass: -1, AckPauseClass: -1, CNP: hostnic.CNPConfig{Frames: h.CNP}, Seed: seed.Sum64(),
		MarkAbove: uint32(h.MarkAbove), PaceJitter: h.PaceJitter,
		Stack: &hostnic.StackConfig{Bits: h.Address.Bits(), Gateway: h.Gateway, Port: port, Class: uint8(h.Class)},
	}
	if h.MAC != nil {
		c.MAC = wire.MAC(*h.MAC)
	}
	if h.Overhead == "ethernet" {
		c.Overhead = scheduler.EthernetOverhead
	}
	for class := range c.DSCP {
		c.DSCP[class] = uint8(8 * class)
	}
	for _, class := range h.PFC.Classes {
		c.PFC, c.PFCClasses, c.QuenchAfter = true, c.PFCClasses|1<<class, frame.Time(h.PFC.QuenchAfter)
	}
	return c
}

// OptionsOf returns the options of a congestion control: those of the document
// are of the one that it names.
func (h *Host) OptionsOf(algorithm string) map[string]string {
	if algorithm != h.Congestion {
		return nil
	}
	return h.Options
}

// T returns the constant of congestion control: 1 ms as long as it is to be
// measured and was not.
func (h *Host) T() frame.Time {
	if h.BaseRTT == AutoRTT {
		return frame.Millisecond
	}
	return frame.Time(h.BaseRTT)
}

func init() {
	section.Words("recovery", transport.Names)
	section.Words("transparent recovery", transport.TransparentNames)
}

// Transport returns loss recovery of transfers that choose none.
func (h *Host) Transport() transport.Config {
	c, _ := h.recovery() // validate reported what is wrong
	c.RTOHigh = frame.Time(h.Timeout)
	c.RTOLow = min(c.RTOHigh, max(4*h.T(), frame.Millisecond))
	return c
}

// recovery returns the scheme with its options.
func (h *Host) recovery() (transport.Config, error) {
	kind, err := transport.Lookup(h.Recovery)
	if err != nil {
		return transport.Config{}, err
	}
	given := h.RecoveryOptions.Given()
	if h.FastRetransmit != nil && kind == transport.NewReno {
		given["fast_retransmit"] = strconv.FormatBool(*h.FastRetransmit)
	}
	return kind.Configure(given)
}

// Cap returns the packets that IRN lets be in flight: the bandwidth-delay
// product (IRN section 3.2).
func (h *Host) Cap() uint32 {
	return uint32(max(1, uint64(h.Rate)/8*uint64(h.T())/1e9/uint64(h.Payload)))
}

// Units returns the units of HPCC's telemetry.
func (h *Host) Units() *inband.Profile {
	if len(h.Telemetry.Links) == 0 {
		return nil
	}
	t := intpoint.Section{Links: h.Telemetry.Links}
	return t.Config().Profile
}
