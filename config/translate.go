package config

import (
	"net"
	"slices"

	"gswitch/bpf"
	"gswitch/dataplane"
	"gswitch/dataplane/xsk"
	"gswitch/frame"
	intpoint "gswitch/int/point"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/policy"
	"gswitch/scheduler"
	"gswitch/section"
	_ "gswitch/systems" // what configurations can have
	"gswitch/vswitch"
	"gswitch/wire"
)

// Engine returns what the engine of a resolved document is made from.
func (c *Config) Engine() dataplane.Config {
	out := dataplane.Config{Chunks: c.Memory.Frames, ChunkSize: c.Memory.Chunk, HugePages: c.Memory.HugePages == "auto"}
	for _, w := range c.Workers {
		// The decoder let only the modes of the enum pass.
		poll, err := dataplane.ParsePollMode(w.Poll)
		if err != nil {
			panic("config: " + err.Error())
		}
		wc := dataplane.WorkerConfig{Poll: poll}
		if w.CPU != nil {
			wc.Pin, wc.CPU = true, *w.CPU
		}
		out.Workers = append(out.Workers, wc)
	}
	return out
}

var modes = map[string]xsk.Mode{"auto": xsk.Auto, "zerocopy": xsk.ZeroCopy, "native": xsk.Native, "generic": xsk.Generic}

// Transmit rings deeper than this hide queues from a port with an emulated
// rate.
const ratedDepth = 64

// Spec returns what the engine opens for a resolved port. Its Queues are left
// to the caller, who knows the interface.
func (p *Port) Spec() dataplane.PortSpec {
	s := dataplane.PortSpec{Name: p.Name, Interface: p.Interface, NetNS: p.NetNS, Mode: modes[p.Mode], BusyPoll: p.BusyPoll, Wire: p.Wire, Delay: frame.Time(p.Delay)}
	if p.Rate != 0 {
		s.Rated = true
		// What a wire holds has left its link, and a worker takes it once a loop: a shallow
		// wire would carry less than the ports before it receive, however fast the link.
		if p.Wire == "" {
			s.TxDepth = ratedDepth
		}
	}
	switch {
	case p.Wire != "":
		s.Kind = dataplane.Wire
	case p.Pcap != nil:
		s.Kind = dataplane.Pcap
		s.In, s.Out, s.MaxSpeed = p.Pcap.Read, p.Pcap.Write, p.Pcap.Fast
	case p.Tap != nil:
		s.Kind, s.Interface = dataplane.Tap, p.Tap.Name
	}
	if f := p.Filter; f != nil {
		s.Filter = bpf.Filter{Invert: f.Invert}
		for _, v := range f.EtherTypes {
			s.Filter.EtherTypes = append(s.Filter.EtherTypes, uint16(v))
		}
		for _, v := range f.MACs {
			s.Filter.MACs = append(s.Filter.MACs, net.HardwareAddr(v[:]))
		}
		for _, v := range f.Protocols {
			s.Filter.Protocols = append(s.Filter.Protocols, uint8(v))
		}
		for _, v := range f.Ports {
			s.Filter.Ports = append(s.Filter.Ports, uint16(v))
		}
	}
	return s
}

// Twin returns the interface that a resolved port makes in the kernel, or nil.
// numbers gives each port its number.
func (s *Switch) Twin(p *Port, numbers map[string]int) *dataplane.TapSpec {
	if p.Tap == nil {
		return nil
	}
	of := &s.Ports[slices.IndexFunc(s.Ports, func(o Port) bool { return o.Name == p.Tap.Of })]
	return &dataplane.TapSpec{MAC: net.HardwareAddr(s.MAC[:]), MTU: of.MTU, Addresses: of.Addresses, Follows: uint16(numbers[of.Name])}
}

// WorkersUsed returns the workers that the ports of a resolved switch are
// spread over, in ascending order: the switch has one node on each.
func (s *Switch) WorkersUsed() []int {
	var used []int
	for i := range s.Ports {
		used = append(used, s.Ports[i].Workers...)
	}
	slices.Sort(used)
	return slices.Compact(used)
}

// VSwitch returns what the switch node of a resolved switch is made from.
// numbers gives each port its number; nil numbers them in their order. The
// workers of its ports are indexes in WorkersUsed.
func (s *Switch) VSwitch(numbers map[string]int) *vswitch.Config {
	if numbers == nil {
		numbers = map[string]int{}
		for i := range s.Ports {
			numbers[s.Ports[i].Name] = i
		}
	}
	out := &vswitch.Config{
		Name: s.Name, ID: uint16(s.ID), MAC: wire.MAC(*s.MAC), Seed: s.Seed, SymmetricHash: s.Hash == "symmetric", HashFields: s.hashFields(), NoRedirects: !*s.Redirects, Strict: s.Strict, ICMPRate: uint32(s.ICMPRate), ShareOwn: true, Sharing: s.sharing,
		Loopbacks: s.Loopback, Class: s.Classes.maps(), Buffer: s.Buffer.config(), PFC: s.PFC.config(),
		FDB: vswitch.FDBConfig{Size: s.FDB.Max, Ageing: frame.Time(*s.FDB.Ageing)},
	}
	if n := s.FDB.PerPort; n != nil {
		if out.FDB.PerPort = *n; *n == 0 {
			out.FDB.PerPort = s.FDB.Max
		}
	}
	if out.FDB.Ageing == 0 {
		out.FDB.Ageing = frame.Never
	}
	// Telemetry is not among the sections of features (switchFeatures): its key is not the
	// feature's name, and it has sections in ports as well, where features have none.
	if s.Telemetry.INT {
		out.Options = out.Options.With(intpoint.Name, s.Telemetry.Config())
	}
	if s.Paths != nil {
		out.Paths = s.Paths.Config()
	}
	used := s.WorkersUsed()
	out.Workers = used
	for i := range s.Ports {
		p := &s.Ports[i]
		n := numbers[p.Name]
		for len(out.Ports) <= n {
			out.Ports = append(out.Ports, vswitch.PortConfig{})
		}
		out.Ports[n] = p.config(s.QoS[p.QoS])
		if p.Telemetry != nil {
			out.Ports[n].Options = out.Ports[n].Options.With(intpoint.Name, p.Telemetry.Config())
		}
		out.Ports[n].Worker = slices.Index(used, p.Workers[0])
		if p.Tap != nil {
			of := slices.IndexFunc(s.Ports, func(o Port) bool { return o.Name == p.Tap.Of })
			out.Ports[n].MTU = s.Ports[of].MTU
			out.Ports[n].Twin = &vswitch.Twin{Of: uint16(numbers[p.Tap.Of]), Limit: uint32(p.Tap.Limit)}
		}
	}
	s.serving(func(i int, q *Queue, number int) {
		if c := &out.Ports[numbers[s.Ports[i].Name]].Scheduler.Queues[q.Queue]; q.Policy.Ports() > 1 {
			c.Order = policy.Order{Text: q.Policy.Text, Port: number}
		}
	})
	out.VLANs = s.vlans()
	out.Options = s.wholeOptions(out, func(key string, err error) { panic("config: " + key + ": " + err.Error()) }) // validated
	for i, m := range s.Mirrors {
		out.Mirrors = append(out.Mirrors, vswitch.Mirror{Name: s.Mirrors[i].Name, Port: uint16(numbers[m.Port]), Truncate: m.Snap})
	}
	for _, name := range keys(s.ACLs) {
		acl := vswitch.ACL{Name: name, Default: pipeline.Action{Ops: pipeline.OpPermit}}
		for i := range s.ACLs[name] {
			acl.Rules = append(acl.Rules, s.rule(&s.ACLs[name][i], numbers))
		}
		out.ACLs = append(out.ACLs, acl)
	}
	for _, e := range s.FDB.Static {
		out.FDB.Static = append(out.FDB.Static, vswitch.StaticMAC{VLAN: uint16(e.VLAN), MAC: wire.MAC(e.MAC), Port: uint16(numbers[e.Port])})
	}
	for i := range s.Routes {
		out.Routes = append(out.Routes, s.Routes[i].VSwitch())
	}
	for _, n := range s.Neighbors {
		out.Neighbors = append(out.Neighbors, vswitch.StaticNeighbor{Addr: n.Address, MAC: wire.MAC(n.MAC)})
	}
	return out
}

// VSwitch returns the route as the switch node takes it.
func (r *Route) VSwitch() vswitch.Route {
	out := vswitch.Route{Prefix: r.Prefix, Refuse: r.refusal()}
	if r.Via.IsValid() {
		out.NextHops = []vswitch.NextHop{{Via: r.Via, Weight: 1}}
	}
	if kind, err := pipeline.ParseChooser(r.Choose); err == nil {
		out.Choose = &kind
	}
	for _, h := range r.NextHops {
		out.NextHops = append(out.NextHops, vswitch.NextHop{Via: h.Via, Weight: uint32(max(h.Weight, 1))})
	}
	return out
}

// link is the emulated link of a port whose defaults are filled in.
func (p *Port) link() scheduler.PortConfig {
	out := scheduler.PortConfig{Rate: uint64(p.Rate), Burst: frame.Time(*p.Burst)}
	out.Overhead = p.Framing.Bytes()
	return out
}

func (s *Switch) hashFields() (f wire.HashFields) {
	for _, name := range s.HashFields {
		f |= map[string]wire.HashFields{"src": wire.HashSrc, "dst": wire.HashDst, "src_port": wire.HashSrcPort,
			"dst_port": wire.HashDstPort, "protocol": wire.HashProto, "label": wire.HashLabel}[name]
	}
	return f
}

func (r *Route) refusal() vswitch.Refusal {
	switch {
	case r.Blackhole:
		return vswitch.Blackhole
	case r.Unreachable:
		return vswitch.Unreachable
	case r.Prohibit:
		return vswitch.Prohibit
	}
	return vswitch.Accept
}

func (p *Port) config(q QoS) vswitch.PortConfig {
	out := vswitch.PortConfig{
		Name: p.Name, Enabled: *p.Enabled, MTU: p.MTU, MinFrame: p.MinFrame, CableDelay: frame.Time(p.Delay),
		DefaultClass: uint8(p.Class), Isolated: p.Isolated, Addresses: p.Addresses, ACL: p.ACL, LearnDisabled: !*p.Learn,
		Scheduler: p.link(), Edge: p.Faces == "host",
	}
	switch p.Trust {
	case "dscp":
		out.Trust = vswitch.TrustDSCP
	case "none":
		out.Trust = vswitch.TrustNone
	}
	if v := p.VLAN; v != nil && v.Access != 0 {
		out.VLANMode, out.PVID = vswitch.VLANAccess, uint16(v.Access)
	} else if v != nil {
		out.VLANMode, out.PVID = vswitch.VLANTrunk, uint16(v.Native)
		for _, r := range v.Trunk {
			for id := r.Lo; id <= r.Hi; id++ {
				out.Allowed = append(out.Allowed, id)
			}
		}
	}
	if l := p.Lossless; l != nil {
		out.LosslessAlpha, out.Headroom = l.Alpha, uint32(l.Headroom)
	}
	if p.Watchdog != nil {
		dog := p.Watchdog.config()
		out.Watchdog = &dog
	}
	if st := p.Storm; st != nil {
		out.Storm = vswitch.StormControl{Broadcast: uint64(st.Broadcast), Multicast: uint64(st.Multicast), UnknownUnicast: uint64(st.Unknown)}
	}
	if f := p.Flood; f != nil {
		out.NoFlood = vswitch.Flooded{Broadcast: !*f.Broadcast, Multicast: !*f.Multicast, UnknownUnicast: !*f.Unknown}
	}
	for _, c := range q.Queues {
		out.Scheduler.Queues[c.Queue] = c.Config()
	}
	if q.PushOut != nil {
		out.Scheduler.PushOut = q.PushOut.Config()
	}
	options, err := q.options(uint64(p.Rate))
	if err != nil {
		panic("config: " + err.Error()) // validated
	}
	out.Options = options
	return out
}

// Config returns what the scheduler of a port takes of a resolved section.
func (q *Queue) Config() scheduler.QueueConfig {
	c := Serve(QueuePolicy(q.Order, q.Rank, q.Admission, q.Inversions), q.Policy, q.Shadow)
	c.Weight, c.MaxRate, c.Burst = uint32(q.Weight), uint64(q.MaxRate), uint32(q.Burst)
	if q.ECN != nil {
		c.ECN = q.ECN.Law()
	}
	if q.PI != nil {
		c.ECN = scheduler.ECN{PI: q.PI.Law()}
	}
	return c
}

// vlans are those that are listed and those that a port uses.
func (s *Switch) vlans() []vswitch.VLANConfig {
	var out []vswitch.VLANConfig
	for _, v := range s.VLANs {
		out = append(out, vswitch.VLANConfig{ID: uint16(v.ID), Name: v.Name, Addresses: v.Addresses})
	}
	add := func(id int) {
		if id != 0 && !slices.ContainsFunc(out, func(v vswitch.VLANConfig) bool { return int(v.ID) == id }) {
			out = append(out, vswitch.VLANConfig{ID: uint16(id)})
		}
	}
	for i := range s.Ports {
		if v := s.Ports[i].VLAN; v != nil {
			add(v.Access)
			add(v.Native)
			for _, r := range v.Trunk {
				for id := r.Lo; id <= r.Hi; id++ {
					add(int(id))
				}
			}
		}
	}
	return out
}

func (c *Classes) maps() vswitch.ClassMaps {
	m := vswitch.DefaultClassMaps()
	for i := range m.PCP {
		m.PCP[i], m.Queue[i] = uint8(c.PCP[i]), uint8(c.Queue[i])
	}
	for dscp, class := range c.DSCP {
		m.DSCP[dscp] = uint8(class)
	}
	return m
}

func (b *Buffer) config() vswitch.BufferConfig {
	l := &b.Lossless
	floods := b.Floods
	if floods == 1 {
		floods = 0
	}
	return vswitch.BufferConfig{
		Size: uint64(b.Size), Alpha: b.Alpha, QueueReserve: uint32(b.Reserve), QueueLimit: uint32(b.Limit), IngressLimit: uint32(b.Ingress),
		LosslessAlpha: l.Alpha, XOFF: uint32(l.XOFF), XONOffset: uint32(l.Hysteresis), Headroom: uint32(l.Headroom), GroupReserve: uint32(l.Reserve),
		Response: frame.Time(l.Response), AllowLoss: l.AllowLoss,
		Chunks: true, FloodShare: floods,
	}
}

var watchdogActions = map[string]pfc.Action{"drop": pfc.Drop, "forward": pfc.Forward, "alert": pfc.Alert}

func (p *PFC) config() vswitch.PFCConfig {
	out := vswitch.PFCConfig{Quanta: uint16(p.Quanta), ErrDisable: frame.Time(p.ErrDisable), Response: frame.Time(p.Response)}
	for _, c := range p.Classes {
		out.Classes |= 1 << c
	}
	switch {
	case p.Pause:
		out.Mode, out.Classes = pfc.Pause, 0xff
	case out.Classes != 0:
		out.Mode = pfc.PFC
	}
	if p.Watchdog != nil {
		out.Watchdog = p.Watchdog.config()
	}
	if out.Mode != pfc.Off {
		out.Log = vswitch.PauseLog{Keep: *p.Log, Look: pauseLook}
	}
	return out
}

// pauseLook is how many frames of an egress queue a worker looks at when a
// pause begins: some microseconds' work.
const pauseLook = 256

func (w *Watchdog) config() pfc.Watchdog {
	if w.Action == "off" {
		return pfc.Watchdog{}
	}
	return pfc.Watchdog{Detect: frame.Time(w.Detect), Restore: frame.Time(w.Restore), Action: watchdogActions[w.Action]}
}

// rule translates a rule. Earlier rules have the higher priority.
func (s *Switch) rule(r *Rule, numbers map[string]int) vswitch.ACLRule {
	out := vswitch.ACLRule{Name: r.Name, Text: r.String(), Priority: -r.Seq, Action: pipeline.Action{Ops: pipeline.OpCount}}
	a := &out.Action
	if r.Action == "drop" {
		a.Ops |= pipeline.OpDrop
	} else {
		a.Ops |= pipeline.OpPermit
	}
	if r.SetClass != nil {
		a.Ops, a.Class = a.Ops|pipeline.OpSetClass, uint8(*r.SetClass)
	}
	if r.SetDSCP != nil {
		a.Ops, a.DSCP = a.Ops|pipeline.OpSetDSCP, uint8(*r.SetDSCP)
	}
	if r.SetPCP != nil {
		a.Ops, a.PCP = a.Ops|pipeline.OpSetPCP, uint8(*r.SetPCP)
	}
	if r.Police != nil {
		a.Ops |= pipeline.OpPolice
		out.Police = &vswitch.Police{Rate: int64(r.Police.Rate), Burst: int64(r.Police.Burst)}
	}
	if r.Mirror != "" {
		a.Ops |= pipeline.OpMirror
		a.Session = uint16(slices.IndexFunc(s.Mirrors, func(m Mirror) bool { return m.Name == r.Mirror }))
	}
	if r.Redirect != "" {
		a.Ops, a.Port = a.Ops|pipeline.OpRedirect, uint16(numbers[r.Redirect])
	}
	r.Match.fill(&out.Match)
	return out
}

// String writes the rule as it stands in a document, in one line.
func (r *Rule) String() string {
	c := *r
	c.Seq, c.Name = 0, ""
	return section.Brief(&c)
}

func (m *Match) fill(out *pipeline.Match) {
	const all = 1<<48 - 1
	if m.SrcMAC != nil {
		out.MatchSrcMAC(wire.MAC(*m.SrcMAC).Uint64(), all)
	}
	if m.DstMAC != nil {
		out.MatchDstMAC(wire.MAC(*m.DstMAC).Uint64(), all)
	}
	if m.EtherType != 0 {
		out.MatchEtherType(uint16(m.EtherType))
	}
	if m.VLAN != 0 {
		out.MatchVLAN(uint16(m.VLAN))
	}
	if m.Class != nil {
		out.MatchClass(uint8(*m.Class))
	}
	if m.Src.IsValid() {
		out.MatchSrcIP(m.Src.Masked())
	}
	if m.Dst.IsValid() {
		out.MatchDstIP(m.Dst.Masked())
	}
	if m.DSCP != nil {
		out.MatchDSCP(uint8(*m.DSCP))
	}
	if m.Protocol != 0 {
		out.MatchProto(uint8(m.Protocol))
	}
	if m.TCPFlags.Mask != 0 {
		out.MatchTCPFlags(m.TCPFlags.Value, m.TCPFlags.Mask)
	}
	if m.Fragment != nil {
		out.MatchFragment(*m.Fragment)
	}
	if m.SrcPort != (PortRange{}) {
		out.MatchSrcPort(m.SrcPort.Lo, m.SrcPort.Hi)
	}
	if m.DstPort != (PortRange{}) {
		out.MatchDstPort(m.DstPort.Lo, m.DstPort.Hi)
	}
}
