package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"gswitch/cc"
	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/bump"
	intpoint "gswitch/int/point"
	"gswitch/section"
	"gswitch/transport"
	"gswitch/units"
	"gswitch/wholefile"
	"gswitch/wire"
)

// Transparent is the document of bumps in the wire: hosts that keep their
// kernel's stack, whose packets travel in channels.
type Transparent struct {
	Version int         `yaml:"version" need:"yes" range:"1,1" doc:"Version of this format: 1."`
	Workers []Worker    `yaml:"workers" doc:"Threads that drive the bumps. One adaptive worker, not pinned, if left out."`
	Memory  BumpMemory  `yaml:"memory" doc:"The packet memory that all bumps share."`
	Control HostControl `yaml:"control" doc:"Where the API, the command line and Prometheus reach the daemon."`
	Bumps   []Bump      `yaml:"transparent" need:"yes" id:"name" doc:"The hosts, each between an inner and an outer interface."`
}

// BumpMemory is the arena of frames of bumps.
type BumpMemory struct {
	Frames int `yaml:"frames" range:"4096,16777216" doc:"Number of chunks. Computed from the bumps and the queues of their interfaces if left out."`
}

// Bump is a host with its kernel's stack, between two interfaces.
type Bump struct {
	Name       string `yaml:"name" doc:"Name of the host, unique in the document. The inner interface names it if left out."`
	Inner      string `yaml:"inner" need:"yes" doc:"Interface that leads to the host's kernel, such as one end of a veth pair."`
	Outer      string `yaml:"outer" need:"yes" doc:"Interface that leads to the network."`
	NetNS      string `yaml:"netns" doc:"Network namespace of the interfaces, a name under /run/netns or a path. The daemon's own if left out."`
	InnerNetNS string `yaml:"inner_netns" doc:"Network namespace of the inner interface, where it is another one."`
	Mode       string `yaml:"mode" enum:"auto,zerocopy,native,generic" default:"auto" doc:"AF_XDP mode. auto takes the first that works, in this order."`
	MAC        *MAC   `yaml:"mac" doc:"Address of the host. Learned from its frames if left out."`
	MTU        int    `yaml:"mtu" range:"576,3500" doc:"Bytes of an IP packet that the network carries. That of the outer interface if left out."`

	Rate units.Rate `yaml:"rate" default:"10Gbps" doc:"Speed of the emulated link, at which the host paces what it sends."`
	Framing
	Burst *units.Duration `yaml:"burst" doc:"How far the link may catch up when the worker was late. 0s: never. A quarter of base_rtt if left out."`

	BaseRTT    units.Duration    `yaml:"base_rtt" default:"1ms" doc:"T of congestion control: slightly above the round trip of the idle network."`
	Congestion string            `yaml:"congestion" default:"hpcc" doc:"Congestion control of channels: hpcc, dcqcn, timely, dctcp, none ..."`
	Options    map[string]string `yaml:"congestion_options" doc:"Options of this congestion control, by name. gfabric cc says which there are."`
	Telemetry  HostTelemetry     `yaml:"telemetry" doc:"In-band telemetry that frames of channels ask for."`
	Recovery   string            `yaml:"recovery" registered:"transparent recovery" default:"irn" doc:"Loss recovery of channels."`
	Timeout    units.Duration    `yaml:"timeout" doc:"Retransmission timeout. 20 times base_rtt, but not below 20 ms, if left out."`
	Class      int               `yaml:"class" range:"0,7" default:"0" doc:"Traffic class of what no rule gives another. Its DSCP is 8 times the class."`
	PFC        HostPFC           `yaml:"pfc" doc:"Priority flow control (IEEE 802.1Qbb)."`
	Notifying

	Flows    string         `yaml:"flows" enum:"tuple,host,pass" default:"tuple" doc:"What shares a channel: packets of one five-tuple, or all between two hosts. pass: none has one."`
	Rules    []BumpRule     `yaml:"rules" doc:"Other settings for some packets. The first rule that matches counts."`
	Channels int            `yaml:"channels" range:"1,16384" default:"512" doc:"Most channels for five-tuples, and again for hosts. Tuples beyond share their host's channel, and beyond that pass untouched."`
	Queue    units.Size     `yaml:"queue" range:"16384,268435456" doc:"Bytes that may wait in a channel; what comes beyond is dropped, as by a device queue. Two bandwidth-delay products (rate and base_rtt), but at least 128 KiB, if left out."`
	Mark     units.Size     `yaml:"mark" range:"1024,268435456" doc:"Bytes waiting in a channel above which packets that allow it get ECN's congestion mark. Half of queue if left out."`
	Idle     units.Duration `yaml:"idle" default:"5s" doc:"A channel without packets for so long is closed."`

	Worker *int `yaml:"worker" range:"0,63" doc:"The worker that drives the host, counted from 0. Hosts are dealt out in turn if left out."`
}

// BumpRule gives some packets other settings. What is left out matches all, or
// is that of the host.
type BumpRule struct {
	Prefix     netip.Prefix      `yaml:"prefix" doc:"Addresses of the other host."`
	Protocol   string            `yaml:"protocol" enum:"any,tcp,udp,icmp,icmpv6" default:"any" doc:"Protocol."`
	Ports      string            `yaml:"ports" doc:"A port or a range, such as 8000-8010: either port of a packet."`
	Flows      string            `yaml:"flows" enum:"tuple,host,pass" default:"tuple" doc:"What shares a channel. pass: the packets pass untouched."`
	Congestion string            `yaml:"congestion" doc:"Congestion control. The host's if left out."`
	Options    map[string]string `yaml:"congestion_options" doc:"Options of this congestion control, by name."`
	Telemetry  string            `yaml:"telemetry" registered:"RoCE telemetry, or none said" doc:"Format of telemetry. The host's if left out."`
	Class      *int              `yaml:"class" range:"0,7" doc:"Traffic class. The host's if left out."`
}

var bumpProtocols = map[string]uint8{"any": 0, "tcp": wire.ProtoTCP, "udp": wire.ProtoUDP, "icmp": wire.ProtoICMP, "icmpv6": wire.ProtoICMPv6}

var bumpFlows = map[string]bump.Flows{"tuple": bump.PerTuple, "host": bump.PerHost, "pass": bump.Pass}

// LoadTransparent reads and checks the document in a file.
func LoadTransparent(path string) (*Transparent, error) {
	data, err := wholefile.Read(path, section.MaxDocument)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	return ParseTransparent(path, data)
}

// ParseTransparent decodes and checks a document, and fills in what was left
// out. file is the name that errors carry. The error, if any, is of type
// Errors.
func ParseTransparent(file string, data []byte) (*Transparent, error) {
	c := new(Transparent)
	s := section.Parse(file, data, c)
	if s.Err() == nil {
		c.complete(s)
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Transparent) complete(s *section.Section) {
	for i := range c.Bumps {
		if key := fmt.Sprintf("transparent[%d].rate", i); s.Has(key) && c.Bumps[i].Rate == 0 {
			s.Fail(key, "a host paces: give the rate of its link, such as 10Gbps")
		}
	}
	if len(c.Workers) == 0 {
		c.Workers = make([]Worker, 1)
	}
	section.Fill(c)
	if len(c.Bumps) == 0 {
		s.Fail("transparent", "is empty; name a host with its inner and its outer interface")
		return
	}
	names, interfaces := map[string]int{}, map[[2]string]int{}
	for i := range c.Bumps {
		b, at := &c.Bumps[i], fmt.Sprintf("transparent[%d].", i)
		b.validate(s, at)
		b.Name = cmp.Or(b.Name, b.Inner)
		b.InnerNetNS = cmp.Or(b.InnerNetNS, b.NetNS)
		if b.Burst == nil {
			// Worker and kernel share processors here: a worker that is late by
			// less changes nothing that congestion control with this T can see.
			quarter := b.BaseRTT / 4
			b.Burst = &quarter
		}
		if b.Timeout == 0 {
			b.Timeout = max(20*b.BaseRTT, units.Duration(20*frame.Millisecond))
		}
		if b.Worker == nil {
			w := i % len(c.Workers)
			b.Worker = &w
		} else if *b.Worker >= len(c.Workers) {
			s.Fail(at+"worker", "there is no worker %d: workers lists %d, counted from 0", *b.Worker, len(c.Workers))
		}
		if first, twice := names[b.Name]; twice {
			s.Fail(at+"name", "%q is the name of transparent[%d] too; give each host a name of its own", b.Name, first)
		}
		names[b.Name] = i
		for _, port := range []struct{ key, netns, name string }{{"inner", b.InnerNetNS, b.Inner}, {"outer", b.NetNS, b.Outer}} {
			k := [2]string{port.netns, port.name}
			if _, twice := interfaces[k]; twice && port.name != "" {
				s.Fail(at+port.key, "%s is an interface of another host, or the host's other one; each needs its own", port.name)
			}
			interfaces[k] = i
		}
	}
	control := Control(c.Control)
	control.problems(s.Fail)
	if c.Control.Socket == "" {
		c.Control.Socket = HostSocketDir + "/" + c.Bumps[0].Name + ".sock"
	}
}

func (b *Bump) validate(s *section.Section, prefix string) {
	fail := func(key, format string, args ...any) { s.Fail(prefix+key, format, args...) }
	if b.Name != "" && !hostName.MatchString(b.Name) {
		fail("name", "%q is no name; letters, digits, dot, dash and underscore are possible", b.Name)
	}
	if b.Inner == "" {
		fail("inner", "is empty; name the interface towards the host's kernel")
	}
	if b.Outer == "" {
		fail("outer", "is empty; name the interface towards the network")
	}
	if b.MAC != nil && (b.MAC.Multicast() || *b.MAC == MAC{}) {
		fail("mac", "%v is not the address of a station", *b.MAC)
	}
	for _, d := range []struct {
		key    string
		v      units.Duration
		lo, hi frame.Time
	}{{"base_rtt", b.BaseRTT, 1, frame.Second}, {"timeout", b.Timeout, 0, 20 * frame.Second}, {"burst", b.burst(), 0, frame.Second},
		{"idle", b.Idle, 100 * frame.Millisecond, 3600 * frame.Second}} {
		if frame.Time(d.v) < d.lo || frame.Time(d.v) > d.hi {
			fail(d.key, "%v is not between %v and %v", d.v, units.Duration(d.lo), units.Duration(d.hi))
		}
	}
	if b.Queue != 0 && b.Mark > b.Queue {
		fail("mark", "%v is above queue, %v", b.Mark, b.Queue)
	}
	checkCongestion(s, prefix+"congestion", prefix+"congestion_options", prefix+"telemetry.format", b.Congestion, b.Telemetry.Format, b.Options)
	for i, r := range b.Telemetry.Links {
		if r == 0 {
			fail(fmt.Sprintf("telemetry.links[%d]", i), "a link without a rate has no units; write the rate of the device, such as 100Gbps")
		}
	}
	for i := range b.Rules {
		r, at := &b.Rules[i], fmt.Sprintf("%srules[%d].", prefix, i)
		if _, _, err := r.ports(); err != nil {
			s.Fail(at+"ports", "%v", err)
		}
		name, options := b.congestionOf(r)
		checkCongestion(s, at+"congestion", at+"congestion_options", at+"telemetry", name, cmp.Or(r.Telemetry, b.Telemetry.Format), options)
	}
}

func (b *Bump) burst() units.Duration {
	if b.Burst == nil {
		return 0
	}
	return *b.Burst
}

func checkCongestion(s *section.Section, key, optionsKey, telemetryKey, name, format string, options map[string]string) {
	in, ok := cc.Lookup(name)
	if !ok {
		s.Fail(key, "%v", cc.UnknownError{Name: name})
		return
	}
	if err := NeedsTelemetry(in.Name, format); err != nil {
		s.Fail(telemetryKey, "%v", err)
	}
	if _, err := cc.Factory(name, options); err != nil {
		s.Fail(optionsKey, "%v", err)
	}
}

// congestionOf returns the congestion control of a rule with its options.
func (b *Bump) congestionOf(r *BumpRule) (string, map[string]string) {
	if r.Congestion == "" || r.Congestion == b.Congestion && r.Options == nil {
		return b.Congestion, b.Options
	}
	return r.Congestion, r.Options
}

// ports reads a port or a range.
func (r *BumpRule) ports() (lo, hi uint16, err error) {
	if r.Ports == "" {
		return 0, 0, nil
	}
	first, last, ranged := strings.Cut(r.Ports, "-")
	if !ranged {
		last = first
	}
	a, errA := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	z, errZ := strconv.ParseUint(strings.TrimSpace(last), 10, 16)
	if errA != nil || errZ != nil || a == 0 || a > z {
		return 0, 0, fmt.Errorf("%q is no port and no range of ports; write 80 or 8000-8010", r.Ports)
	}
	return uint16(a), uint16(z), nil
}

// YAML writes the document, with the defaults that were filled in.
func (c *Transparent) YAML() []byte { return section.YAML(c) }

// Engine returns what the engine of the bumps is made from. mtu is the largest
// of their outer interfaces.
func (c *Transparent) Engine(mtu int) dataplane.Config {
	all := Config{Workers: c.Workers, Memory: Memory{Chunk: 2048, Frames: c.Memory.Frames, HugePages: "off"}}
	if mtu > smallMTU {
		all.Memory.Chunk = 4096
	}
	return all.Engine()
}

// smallMTU is the largest that fits into a small chunk behind its headroom.
const smallMTU = 1700

// Specs returns the ports. Their Queues are left to the caller, who knows the
// interfaces.
func (b *Bump) Specs() (outer, inner dataplane.PortSpec) {
	o := Port{Name: b.Name + "/" + b.Outer, Interface: b.Outer, NetNS: b.NetNS, Mode: b.Mode, Rate: b.Rate}
	i := Port{Name: b.Name + "/" + b.Inner, Interface: b.Inner, NetNS: b.InnerNetNS, Mode: b.Mode}
	outer, inner = o.Spec(), i.Spec()
	inner.Completes = true
	return outer, inner
}

// Node returns what the node is made from, checked before. mtu is that of the
// outer interface.
func (b *Bump) Node(mtu int, seed uint64) (*bump.Config, error) {
	high := frame.Time(b.Timeout)
	kind, err := transport.Lookup(b.Recovery)
	if err != nil {
		return nil, err
	}
	c := &bump.Config{
		NIC: hostnic.Config{Name: b.Name, Rate: uint64(b.Rate), Burst: frame.Time(b.burst()), BaseRTT: frame.Time(b.BaseRTT),
			AckClass: -1, AckPauseClass: -1, CNP: hostnic.CNPConfig{Frames: b.CNP}, Seed: seed},
		MTU:       cmp.Or(b.MTU, mtu),
		Transport: transport.Config{Recovery: kind, Own: kind.Defaults().Own, Cap: b.cap(), RTOHigh: high, RTOLow: min(high, max(4*frame.Time(b.BaseRTT), frame.Millisecond)), N: 3},
		Channels:  b.Channels, Queue: uint32(b.Queue), Mark: uint32(b.Mark), Idle: frame.Time(b.Idle),
	}
	if b.MAC != nil {
		c.MAC = wire.MAC(*b.MAC)
	}
	c.NIC.Overhead = b.Framing.Bytes()
	for class := range c.NIC.DSCP {
		c.NIC.DSCP[class] = uint8(8 * class)
	}
	for _, class := range b.PFC.Classes {
		c.NIC.PFC, c.NIC.PFCClasses, c.NIC.QuenchAfter = true, c.NIC.PFCClasses|1<<class, frame.Time(*b.PFC.QuenchAfter)
	}
	if len(b.Telemetry.Links) > 0 {
		t := intpoint.Section{Links: b.Telemetry.Links}
		c.INT = t.Config().Profile
	}
	if c.Default, err = b.rule(&BumpRule{Flows: b.Flows, Protocol: "any"}); err != nil {
		return nil, err
	}
	for i := range b.Rules {
		r, err := b.rule(&b.Rules[i])
		if err != nil {
			return nil, err
		}
		c.Rules = append(c.Rules, r)
	}
	return c, nil
}

func (b *Bump) rule(r *BumpRule) (bump.Rule, error) {
	name, options := b.congestionOf(r)
	out := bump.Rule{Prefix: r.Prefix, Proto: bumpProtocols[r.Protocol], Flows: bumpFlows[r.Flows], Class: uint8(b.Class), CC: name}
	if r.Class != nil {
		out.Class = uint8(*r.Class)
	}
	var err error
	if out.PortLo, out.PortHi, err = r.ports(); err != nil {
		return out, err
	}
	if out.Telemetry, err = ParseTelemetry(cmp.Or(r.Telemetry, b.Telemetry.Format)); err != nil {
		return out, err
	}
	out.New, err = bump.Control(name, options)
	return out, err
}

// Bounds of the packets that IRN lets be in flight in a channel. The window
// bounds bytes; most packets of requests are much shorter than full ones, so
// the cap must not be the bandwidth-delay product in full packets.
const (
	leastCap   = 128
	mostCap    = 4096
	shortFrame = 300 // bytes
)

func (b *Bump) cap() uint32 {
	bdp := float64(b.Rate) / 8 * frame.Time(b.BaseRTT).Seconds()
	return uint32(min(max(bdp/shortFrame, leastCap), mostCap))
}
