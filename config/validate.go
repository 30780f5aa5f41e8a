package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gswitch/units"

	"go.yaml.in/yaml/v3"
)

// validate checks what single values cannot show: names that must be unique
// or must exist, and values that contradict each other.
func (d *decoder) validate(c *Config) {
	d.unique(reflect.ValueOf(c).Elem(), "")
	d.needVersion(c)
	cpus := map[int]int{}
	for i, w := range c.Workers {
		if w.CPU == nil {
			continue
		}
		path := fmt.Sprintf("workers[%d].cpu", i)
		if first, twice := cpus[*w.CPU]; twice {
			d.failAt(path, "worker %d is pinned to CPU %d already", first, *w.CPU)
		}
		cpus[*w.CPU] = i
	}
	c.Control.problems(d.failAt)
	ids := map[int]string{}
	for i := range c.Switches {
		s, path := &c.Switches[i], fmt.Sprintf("switches[%d]", i)
		d.validateSwitch(c, s, path)
		id := s.ID
		if id == 0 {
			id = i + 1
		}
		if other, twice := ids[id]; twice {
			d.failAt(path+".id", "switch %s has ID %d already", other, id)
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

func (d *decoder) needVersion(c *Config) {
	if c.Version == 0 && len(d.at) == 0 {
		d.failAt("version", "is missing; write 1")
	}
}

// failAt reports a problem with the key of path, at the place of that key or,
// if it was left out, of the nearest thing around it. What was
// refused already is not reported again.
func (d *decoder) failAt(path, format string, args ...any) {
	var n *yaml.Node
	for p := path; p != ""; p = p[:max(0, strings.LastIndexAny(p, ".["))] {
		if d.bad[p] {
			return
		}
		if n == nil {
			n = d.at[p]
		}
	}
	if n == nil {
		n = d.at[""]
	}
	d.fail(n, path, format, args...)
}

// unique checks the lists whose elements are told apart by a key.
func (d *decoder) unique(v reflect.Value, path string) {
	t := v.Type()
	switch {
	case isText(t):
	case t.Kind() == reflect.Pointer && !v.IsNil():
		d.unique(v.Elem(), path)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			sub := join(path, t.Field(i).Tag.Get("yaml"))
			if key := t.Field(i).Tag.Get("id"); key != "" {
				d.uniqueIn(v.Field(i), sub, key)
			}
			d.unique(v.Field(i), sub)
		}
	case t.Kind() == reflect.Slice:
		for i := range v.Len() {
			if e := v.Index(i); hasLists(e) {
				d.unique(e, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	case t.Kind() == reflect.Map:
		for _, k := range v.MapKeys() {
			d.unique(v.MapIndex(k), join(path, fmt.Sprint(k.Interface())))
		}
	}
}

// hasLists reports whether there is anything in an element to look through.
func hasLists(e reflect.Value) bool {
	if e.Kind() != reflect.Struct || isText(e.Type()) {
		return false
	}
	for i := range e.NumField() {
		switch f := e.Field(i); f.Kind() {
		case reflect.Slice, reflect.Map, reflect.Pointer:
			if !f.IsNil() {
				return true
			}
		case reflect.Struct:
			if hasLists(f) {
				return true
			}
		}
	}
	return false
}

func (d *decoder) uniqueIn(list reflect.Value, path, key string) {
	seen := make(map[any]int, list.Len())
	for i := range list.Len() {
		e := list.Index(i)
		id, none := any(nil), true
		if p, ok := e.Addr().Interface().(*Port); ok {
			id, none = p.name(), p.name() == ""
		} else {
			f := e.FieldByIndex(fieldOf(e.Type(), key).Index)
			// Zero is a name of numbers only; other names are missing then,
			// and were missed already.
			id, none = f.Interface(), f.IsZero() && f.Kind() != reflect.Int
		}
		if none {
			continue
		}
		if first, twice := seen[id]; twice {
			d.failAt(fmt.Sprintf("%s[%d].%s", path, i, key), "%v is taken by %s[%d]", id, path, first)
			continue
		}
		seen[id] = i
	}
}

// identity is what tells an element from the others of its list.
func identity(e reflect.Value, key string) string {
	if p, ok := e.Addr().Interface().(*Port); ok {
		return p.name()
	}
	f := e.FieldByIndex(fieldOf(e.Type(), key).Index)
	if f.Kind() == reflect.String {
		return f.String()
	}
	if p, ok := f.Interface().(netip.Prefix); ok && !p.IsValid() {
		return ""
	}
	if a, ok := f.Interface().(netip.Addr); ok && !a.IsValid() {
		return ""
	}
	return fmt.Sprint(f.Interface())
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,62}$`)

func (d *decoder) name(path, name string) {
	if name != "" && !namePattern.MatchString(name) {
		d.failAt(path, "%q is not a name; use up to 63 letters, digits and . _ : @ / -, beginning with a letter or digit", name)
	}
}

func (d *decoder) validateSwitch(c *Config, s *Switch, path string) {
	d.name(path+".name", s.Name)
	if s.Name == "" {
		d.failAt(path+".name", "is missing")
	} else if strings.Contains(s.Name, "/") {
		d.failAt(path+".name", "%q must not contain a slash: the control socket is named after it", s.Name)
	}
	if s.MAC != nil && (s.MAC.Multicast() || *s.MAC == MAC{}) {
		d.failAt(path+".mac", "%s is not the address of one station", s.MAC)
	}
	if len(s.Ports) == 0 {
		d.failAt(path+".ports", "a switch needs at least one port")
	}
	if len(s.Ports) > maxPorts {
		d.failAt(path+".ports", "%d ports; a switch has at most %d", len(s.Ports), maxPorts)
	}
	for i := range s.Ports {
		d.validatePort(c, s, &s.Ports[i], fmt.Sprintf("%s.ports[%d]", path, i))
	}
	eight(d, path+".classes.pcp", s.Classes.PCP)
	eight(d, path+".classes.queue", s.Classes.Queue)
	for _, name := range keys(s.QoS) {
		q := s.QoS[name]
		d.name(path+".qos."+name, name)
		d.oneTeller(&q, path+".qos."+name)
		if q.PushOut != nil {
			d.validatePushOut(s, name, path+".qos."+name+".push_out")
		}
		if q.QCN != nil {
			d.validateQCN(s, q.QCN, path+".qos."+name+".qcn")
		}
		for i := range q.Queues {
			d.validateQueue(&q.Queues[i], fmt.Sprintf("%s.qos.%s.queues[%d]", path, name, i))
		}
	}
	for _, name := range keys(s.QoS) {
		d.validateRoCC(s, name, path+".qos."+name+".rocc")
	}
	d.validatePFC(s, path)
	d.validateCrossbar(s, path)
	d.validateEscape(c, s, path)
	d.validatePaths(s, path)
	d.validateTelemetry(s, path)
	for name, rules := range s.ACLs {
		d.name(path+".acls."+name, name)
		d.validateRules(s, rules, path+".acls."+name)
	}
	for i := range s.FDB.Static {
		e, sub := &s.FDB.Static[i], fmt.Sprintf("%s.fdb.static[%d]", path, i)
		if e.MAC.Multicast() {
			d.failAt(sub+".mac", "%s is a group address; static entries are for single stations", e.MAC)
		}
		d.havePort(s, sub+".port", e.Port)
		for j := range i {
			if f := &s.FDB.Static[j]; f.MAC == e.MAC && max(f.VLAN, 1) == max(e.VLAN, 1) && !d.bad[sub+".mac"] {
				d.failAt(sub, "%s in VLAN %d is set in fdb.static[%d] already", e.MAC, max(e.VLAN, 1), j)
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

func eight(d *decoder, path string, list []int) {
	if list != nil && len(list) != 8 {
		d.failAt(path, "wants eight numbers, has %d", len(list))
	}
}

func (d *decoder) validateQueue(q *Queue, path string) {
	if q.Strict && q.Weight != 0 {
		d.failAt(path+".weight", "contradicts strict: a strict queue has no weight")
	}
	if q.PI != nil {
		d.validatePI(q, path)
	}
	if q.ECN != nil && q.ECN.KMin > q.ECN.KMax && !d.bad[path+".ecn.kmin"] && !d.bad[path+".ecn.kmax"] {
		d.failAt(path+".ecn.kmin", "%s is more than kmax, %s", q.ECN.KMin, q.ECN.KMax)
	}
	if q.ECN != nil && q.ECN.KMax >= 1<<32 {
		d.failAt(path+".ecn.kmax", "%s is more than 4 GiB", q.ECN.KMax)
	}
}

func (d *decoder) validatePFC(s *Switch, path string) {
	for i, c := range s.PFC.Classes {
		if slices.Contains(s.PFC.Classes[:i], c) {
			d.failAt(fmt.Sprintf("%s.pfc.classes[%d]", path, i), "class %d is named twice", c)
		}
	}
	if s.PFC.Pause && len(s.PFC.Classes) > 0 {
		d.failAt(path+".pfc.pause", "contradicts classes: 802.3x pause stops the whole link, PFC stops classes")
	}
	l := &s.Buffer.Lossless
	for key, size := range map[string]units.Size{"xoff": l.XOFF, "reserve": l.Reserve, "hysteresis": l.Hysteresis, "headroom": units.Size(l.Headroom)} {
		if size >= 1<<32 {
			d.failAt(path+".buffer.lossless."+key, "%s is more than 4 GiB", size)
		}
	}
	for key, size := range map[string]units.Size{"reserve": s.Buffer.Reserve, "limit": s.Buffer.Limit} {
		if size >= 1<<32 {
			d.failAt(path+".buffer."+key, "%s is more than 4 GiB", size)
		}
	}
	if l.XOFF != 0 && l.Hysteresis > l.XOFF {
		d.failAt(path+".buffer.lossless.hysteresis", "%s is more than xoff, %s: the class would never be resumed", l.Hysteresis, l.XOFF)
	}
	if s.Buffer.Size != 0 && s.Buffer.Reserve*8*units.Size(len(s.Ports)) > s.Buffer.Size {
		d.failAt(path+".buffer.reserve", "%s for eight queues of %d ports is more than the buffer, %s", s.Buffer.Reserve, len(s.Ports), s.Buffer.Size)
	}
}

func (d *decoder) validateRules(s *Switch, rules []Rule, path string) {
	last := 0
	for i := range rules {
		r, sub := &rules[i], fmt.Sprintf("%s[%d]", path, i)
		if r.Seq != 0 && r.Seq <= last {
			d.failAt(sub+".seq", "%d does not come after %d, the rule before", r.Seq, last)
		}
		if last = max(last, r.Seq); r.Seq == 0 {
			last += 10
		}
		m := &r.Match
		if m.Src.IsValid() && m.Dst.IsValid() && m.Src.Addr().Is4() != m.Dst.Addr().Is4() {
			d.failAt(sub+".match.dst", "%s and src, %s, are not of one IP version", m.Dst, m.Src)
		}
		if ports := m.SrcPort != (PortRange{}) || m.DstPort != (PortRange{}); ports && m.Protocol != protocols["tcp"] && m.Protocol != protocols["udp"] && m.TCPFlags.Mask == 0 && !d.bad[sub+".match.protocol"] {
			d.failAt(sub+".match", "ports need protocol: tcp or udp")
		}
		if m.TCPFlags.Mask != 0 && m.Protocol != 0 && m.Protocol != protocols["tcp"] {
			d.failAt(sub+".match.tcp_flags", "contradicts protocol: %s", m.Protocol)
		}
		if r.Action == "drop" {
			for key, set := range map[string]bool{"set_class": r.SetClass != nil, "set_dscp": r.SetDSCP != nil, "set_pcp": r.SetPCP != nil, "police": r.Police != nil, "redirect": r.Redirect != ""} {
				if set {
					d.failAt(sub+"."+key, "contradicts action: drop")
				}
			}
		}
		if r.Police != nil && r.Police.Burst >= 1<<32 {
			d.failAt(sub+".police.burst", "%s is more than 4 GiB", r.Police.Burst)
		}
		d.havePort(s, sub+".redirect", r.Redirect)
		sessions := make([]string, len(s.Mirrors))
		for j := range s.Mirrors {
			sessions[j] = s.Mirrors[j].Name
		}
		d.exists(sub+".mirror", "mirror session", r.Mirror, sessions)
	}
}

func (d *decoder) havePort(s *Switch, path, name string) {
	names := make([]string, len(s.Ports))
	for i := range s.Ports {
		names[i] = s.Ports[i].name()
	}
	d.exists(path, "port", name, names)
}

func (d *decoder) exists(path, what, name string, names []string) {
	if name == "" || slices.Contains(names, name) {
		return
	}
	if near := units.Nearest(name, names); near != "" {
		d.failAt(path, "there is no %s %q; did you mean %q?", what, name, near)
		return
	}
	d.failAt(path, "there is no %s %q", what, name)
}

func keys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}
