package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gswitch/pfc"
	"gswitch/units"
	"gswitch/vswitch"
)

// validate checks what single values cannot show: names that must be unique
// or must exist, and values that contradict each other.
func (d decoder) validate(c *Config) {
	d.Unique(c)
	d.needVersion(c)
	cpus := map[int]int{}
	for i, w := range c.Workers {
		if w.CPU == nil {
			continue
		}
		path := fmt.Sprintf("workers[%d].cpu", i)
		if first, twice := cpus[*w.CPU]; twice {
			d.Fail(path, "worker %d is pinned to CPU %d already", first, *w.CPU)
		}
		cpus[*w.CPU] = i
	}
	c.Control.problems(d.Fail)
	c.Export.problems(d.Fail)
	ids := map[int]string{}
	for i := range c.Switches {
		s, path := &c.Switches[i], fmt.Sprintf("switches[%d]", i)
		d.validateSwitch(c, s, path)
		id := s.ID
		if id == 0 {
			id = i + 1
		}
		if other, twice := ids[id]; twice {
			d.Fail(path+".id", "switch %s has ID %d already", other, id)
		}
		ids[id] = s.Name
	}
	d.validateLinks(c)
	d.validateBuffers(c)
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n < 1<<16
}

func (d decoder) needVersion(c *Config) {
	if c.Version == 0 && !d.Written() {
		d.Fail("version", "is missing; write 1")
	}
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,62}$`)

func (d decoder) name(path, name string) {
	if name != "" && !namePattern.MatchString(name) {
		d.Fail(path, "%q is not a name; use up to 63 letters, digits and . _ : @ / -, beginning with a letter or digit", name)
	}
}

// validateHash refuses what would distinguish the two directions of a flow where they
// are to hash alike.
func (d decoder) validateHash(s *Switch, path string) {
	if s.Hash != "symmetric" {
		return
	}
	has := func(field string) bool { return slices.Contains(s.HashFields, field) }
	switch {
	case has("label"):
		d.Fail(path+".hash_fields", "each direction of a flow has a flow label of its own; leave label out, or write hash: five-tuple")
	case has("src") != has("dst"), has("src_port") != has("dst_port"):
		d.Fail(path+".hash_fields", "with hash: symmetric, src and dst go together, and src_port and dst_port")
	}
}

func (d decoder) validateSwitch(c *Config, s *Switch, path string) {
	d.name(path+".name", s.Name)
	if s.Name == "" {
		d.Fail(path+".name", "is missing")
	} else if strings.Contains(s.Name, "/") {
		d.Fail(path+".name", "%q must not contain a slash: the control socket is named after it", s.Name)
	}
	if s.MAC != nil && (s.MAC.Multicast() || *s.MAC == MAC{}) {
		d.Fail(path+".mac", "%s is not the address of one station", s.MAC)
	}
	if len(s.Ports) == 0 {
		d.Fail(path+".ports", "a switch needs at least one port")
	}
	if len(s.Ports) > maxPorts {
		d.Fail(path+".ports", "%d ports; a switch has at most %d", len(s.Ports), maxPorts)
	}
	for i := range s.Ports {
		d.validatePort(c, s, &s.Ports[i], fmt.Sprintf("%s.ports[%d]", path, i))
	}
	d.validateHash(s, path)
	eight(d, path+".classes.pcp", s.Classes.PCP)
	eight(d, path+".classes.queue", s.Classes.Queue)
	for _, name := range keys(s.QoS) {
		q := s.QoS[name]
		d.name(path+".qos."+name, name)
		if q.PushOut != nil {
			d.validatePushOut(s, name, path+".qos."+name+".push_out")
		}
		d.validateFeatures(s, name, path+".qos."+name)
		for i := range q.Queues {
			at := fmt.Sprintf("%s.qos.%s.queues[%d]", path, name, i)
			d.validateQueue(&q.Queues[i], at)
			d.validateQueuePolicy(s, name, &q.Queues[i], len(c.Workers), at)
		}
	}
	d.validatePFC(s, path)
	d.validatePaths(s, path)
	d.validateTelemetry(s, path)
	d.validateWhole(s, len(c.Workers), path)
	for name, rules := range s.ACLs {
		d.name(path+".acls."+name, name)
		d.validateRules(s, rules, path+".acls."+name)
	}
	if n := len(s.FDB.Static); n > s.FDB.Max && s.FDB.Max > 0 {
		d.Fail(path+".fdb.static", "%d entries, of which fdb.max lets the database have %d: raise it", n, s.FDB.Max)
	}
	for i := range s.FDB.Static {
		e, sub := &s.FDB.Static[i], fmt.Sprintf("%s.fdb.static[%d]", path, i)
		if e.MAC.Multicast() {
			d.Fail(sub+".mac", "%s is a group address; static entries are for single stations", e.MAC)
		}
		d.havePort(s, sub+".port", e.Port)
		for j := range i {
			if f := &s.FDB.Static[j]; f.MAC == e.MAC && max(f.VLAN, 1) == max(e.VLAN, 1) && !d.Refused(sub+".mac") {
				d.Fail(sub, "%s in VLAN %d is set in fdb.static[%d] already", e.MAC, max(e.VLAN, 1), j)
				break
			}
		}
	}
	for i := range s.Mirrors {
		d.havePort(s, fmt.Sprintf("%s.mirrors[%d].port", path, i), s.Mirrors[i].Port)
	}
	for i := range s.Loopback {
		d.station(fmt.Sprintf("%s.loopback[%d]", path, i), s.Loopback[i])
	}
	d.validateAddresses(s, path)
	d.validateRoutes(s, path)
}

// maxPorts is what the switch node can hold.
const maxPorts = 256

func eight(d decoder, path string, list []int) {
	if list != nil && len(list) != 8 {
		d.Fail(path, "wants eight numbers, has %d", len(list))
	}
}

func (d decoder) validateQueue(q *Queue, path string) {
	if q.Strict && q.Weight != 0 {
		d.Fail(path+".weight", "contradicts strict: a strict queue has no weight")
	}
	if q.PI != nil {
		d.validatePI(q.PI, path+".pi")
	}
	if q.Burst != 0 && q.MaxRate == 0 {
		d.Fail(path+".burst", "is ahead of no max_rate; write that, too")
	}
	if q.ECN != nil {
		d.validateECN(q.ECN, path+".ecn")
	}
}

// pause is how long a pause of the quanta lasts at a port of a rate.
func (p *PFC) pause(rate units.Rate) units.Duration {
	return units.Duration(pfc.Span(uint16(cmp.Or(p.Quanta, 0xffff)), uint64(cmp.Or(rate, 10*units.Gbps))))
}

func (d decoder) validatePFC(s *Switch, path string) {
	for i, c := range s.PFC.Classes {
		if slices.Contains(s.PFC.Classes[:i], c) {
			d.Fail(fmt.Sprintf("%s.pfc.classes[%d]", path, i), "class %d is named twice", c)
		}
	}
	has := func(key string) bool {
		return key == "pause" && s.PFC.Pause || key == "classes" && len(s.PFC.Classes) > 0
	}
	if x := vswitch.Excluded(vswitch.OneSwitch, "pause", has); x != nil {
		d.Fail(path+".pfc.pause", "%s", x.Beside())
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if pause := s.PFC.pause(p.Rate); s.PFC.Response >= pause && d.OK() {
			d.Fail(path+".pfc.response", "%s is not less than a pause lasts at port %s, %s: write a shorter one, or larger quanta", s.PFC.Response, p.name(), pause)
			break
		}
		if p.Lossless != nil && p.Lossless.Headroom >= 1<<32 {
			d.Fail(fmt.Sprintf("%s.ports[%d].lossless.headroom", path, i), "%s is more than 4 GiB", p.Lossless.Headroom)
		}
	}
	l := &s.Buffer.Lossless
	if h := units.Size(l.Headroom); h >= 1<<32 {
		d.Fail(path+".buffer.lossless.headroom", "%s is more than 4 GiB", h)
	}
	if l.XOFF != 0 && l.Hysteresis > l.XOFF {
		d.Fail(path+".buffer.lossless.hysteresis", "%s is more than xoff, %s: the class would never be resumed", l.Hysteresis, l.XOFF)
	}
	if s.Buffer.Size != 0 && s.Buffer.Reserve*8*units.Size(len(s.Ports)) > s.Buffer.Size {
		d.Fail(path+".buffer.reserve", "%s for eight queues of %d ports is more than the buffer, %s", s.Buffer.Reserve, len(s.Ports), s.Buffer.Size)
	}
}

func (d decoder) validateRules(s *Switch, rules []Rule, path string) {
	last := 0
	for i := range rules {
		r, sub := &rules[i], fmt.Sprintf("%s[%d]", path, i)
		if r.Seq != 0 && r.Seq <= last {
			d.Fail(sub+".seq", "%d does not come after %d, the rule before", r.Seq, last)
		}
		if last = max(last, r.Seq); r.Seq == 0 {
			last += 10
		}
		m := &r.Match
		if m.Src.IsValid() && m.Dst.IsValid() && m.Src.Addr().Is4() != m.Dst.Addr().Is4() {
			d.Fail(sub+".match.dst", "%s and src, %s, are not of one IP version", m.Dst, m.Src)
		}
		if ports := m.SrcPort != (PortRange{}) || m.DstPort != (PortRange{}); ports && m.Protocol != protocols["tcp"] && m.Protocol != protocols["udp"] && m.TCPFlags.Mask == 0 && !d.Refused(sub+".match.protocol") {
			d.Fail(sub+".match", "ports need protocol: tcp or udp")
		}
		if m.TCPFlags.Mask != 0 && m.Protocol != 0 && m.Protocol != protocols["tcp"] {
			d.Fail(sub+".match.tcp_flags", "contradicts protocol: %s", m.Protocol)
		}
		if r.Action == "drop" {
			for key, set := range map[string]bool{"set_class": r.SetClass != nil, "set_dscp": r.SetDSCP != nil, "set_pcp": r.SetPCP != nil, "police": r.Police != nil, "redirect": r.Redirect != ""} {
				if set {
					d.Fail(sub+"."+key, "contradicts action: drop")
				}
			}
		}
		if r.Police != nil && r.Police.Burst >= 1<<32 {
			d.Fail(sub+".police.burst", "%s is more than 4 GiB", r.Police.Burst)
		}
		d.havePort(s, sub+".redirect", r.Redirect)
		sessions := make([]string, len(s.Mirrors))
		for j := range s.Mirrors {
			sessions[j] = s.Mirrors[j].Name
		}
		d.exists(sub+".mirror", "mirror session", r.Mirror, sessions)
	}
}

func (d decoder) havePort(s *Switch, path, name string) {
	names := make([]string, len(s.Ports))
	for i := range s.Ports {
		names[i] = s.Ports[i].name()
	}
	d.exists(path, "port", name, names)
}

func (d decoder) exists(path, what, name string, names []string) {
	if name == "" || slices.Contains(names, name) {
		return
	}
	if near := units.Nearest(name, names); near != "" {
		d.Fail(path, "there is no %s %q; did you mean %q?", what, name, near)
		return
	}
	d.Fail(path, "there is no %s %q", what, name)
}

func keys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}
