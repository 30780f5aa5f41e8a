package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gswitch/units"
	"gswitch/vswitch"
)

// minRate is the slowest link: a full-size frame takes 12 ms.
const minRate = units.Mbps

func (d decoder) validatePort(c *Config, s *Switch, p *Port, path string) {
	d.name(path+".name", p.Name)
	if p.Rate != 0 && p.Rate < minRate {
		d.Fail(path+".rate", "%s is less than %s, the slowest link", p.Rate, minRate)
	}
	kinds := 0
	for _, has := range []bool{p.Interface != "", p.Wire != "", p.Pcap != nil, p.Tap != nil} {
		if has {
			kinds++
		}
	}
	switch {
	case kinds == 0 && !d.Refused(path+".interface") && !d.Refused(path+".wire") && !d.Refused(path+".pcap") && !d.Refused(path+".tap"):
		d.Fail(path, "needs one of interface, wire, pcap, tap")
	case kinds > 1:
		d.Fail(path, "has more than one of interface, wire, pcap, tap")
	case p.Pcap != nil && p.Pcap.Read == "" && p.Pcap.Write == "":
		d.Fail(path+".pcap", "needs read or write, or both")
	case p.Pcap != nil && p.Name == "":
		d.Fail(path+".name", "is missing; a port over capture files has no interface to be named after")
	}
	if len(p.Interface) > 15 || strings.ContainsAny(p.Interface, "/ \t\n") { // IFNAMSIZ of netdevice(7), with its final zero
		d.Fail(path+".interface", "%q cannot be the name of an interface: at most 15 bytes, no slash, no space", p.Interface)
	}
	if p.Tap != nil {
		d.validateTap(s, p, path)
	}
	if p.Interface == "" {
		for key, set := range map[string]bool{"netns": p.NetNS != "" && p.Tap == nil, "mode": p.Mode != "", "queues": p.Queues != 0, "busy_poll": p.BusyPoll != 0, "filter": p.Filter != nil} {
			if set {
				d.Fail(path+"."+key, "is for ports over an interface only")
			}
		}
	}
	for i, w := range p.Workers {
		sub := fmt.Sprintf("%s.workers[%d]", path, i)
		if n := max(1, len(c.Workers)); w < 0 || w >= n {
			d.Fail(sub, "there is no worker %d; the document has %d, counted from 0", w, n)
		} else if slices.Contains(p.Workers[:i], w) {
			d.Fail(sub, "worker %d is named twice", w)
		}
	}
	if p.VLAN != nil {
		d.validateVLAN(p, path)
	}
	d.validateFaults(p, path)
	has := func(key string) bool {
		return key == "address" && len(p.Addresses) > 0 || key == "vlan" && p.VLAN != nil || key == "isolated" && p.Isolated
	}
	for _, key := range []string{"vlan", "isolated"} {
		if x := vswitch.Excluded(vswitch.OnePort, key, has); x != nil {
			d.Fail(path+"."+key, "%s", x.Beside())
		}
	}
	if f := p.Filter; f != nil && len(f.EtherTypes)+len(f.MACs)+len(f.Protocols)+len(f.Ports) == 0 {
		d.Fail(path+".filter", "selects nothing; leave it out to take every frame")
	}
	d.exists(path+".acl", "access list", p.ACL, keys(s.ACLs))
	d.exists(path+".qos", "queue profile", p.QoS, keys(s.QoS))
}

// validateTap checks the twin of a routed port.
func (d decoder) validateTap(s *Switch, p *Port, path string) {
	if name := cmp.Or(p.Tap.Name, p.name()); len(name) > 15 || strings.ContainsAny(name, "/ \t\n") {
		d.Fail(path+".tap.name", "%q cannot be the name of an interface: at most 15 bytes, no slash, no space", name)
	}
	for key, set := range map[string]bool{"address": len(p.Addresses) > 0, "vlan": p.VLAN != nil, "acl": p.ACL != "", "isolated": p.Isolated,
		"storm_control": p.Storm != nil, "rate": p.Rate != 0, "delay": p.Delay != 0, "faults": p.Faults != nil} {
		if set {
			d.Fail(path+"."+key, "is not for the twin of a port: write it at port %s", p.Tap.Of)
		}
	}
	of := slices.IndexFunc(s.Ports, func(o Port) bool { return o.name() == p.Tap.Of && o.Tap == nil })
	switch {
	case d.Refused(path + ".tap.of"):
	case of < 0:
		d.Fail(path+".tap.of", "there is no port %q", p.Tap.Of)
	case len(s.Ports[of].Addresses) == 0:
		d.Fail(path+".tap.of", "port %s has no address: only a routed port has a twin in the kernel", p.Tap.Of)
	}
	for i := range s.Ports {
		switch o := &s.Ports[i]; {
		case o == p:
			return
		case o.Tap != nil && o.Tap.Of == p.Tap.Of:
			d.Fail(path+".tap.of", "port %s has a twin already, %s", p.Tap.Of, o.name())
		case o.Tap != nil && o.NetNS != p.NetNS:
			d.Fail(path+".netns", "is not that of %s: all twins of a switch are in one namespace, whose routes it takes over", o.name())
		}
	}
}

func (d decoder) validateVLAN(p *Port, path string) {
	v := p.VLAN
	switch {
	case v.Access != 0 && (v.Trunk != nil || v.Native != 0):
		d.Fail(path+".vlan", "access contradicts trunk and native: a port is one or the other")
	case v.Access == 0 && v.Trunk == nil && !d.Refused(path+".vlan.access") && !d.Refused(path+".vlan.trunk"):
		d.Fail(path+".vlan", "needs access or trunk")
	}
	for i, r := range v.Trunk {
		for _, other := range v.Trunk[:i] {
			if r.Lo != 0 && r.Lo <= other.Hi && other.Lo <= r.Hi {
				d.Fail(fmt.Sprintf("%s.vlan.trunk[%d]", path, i), "VLAN %d is named twice", max(r.Lo, other.Lo))
				break
			}
		}
	}
}

// validateLinks checks what ports of the whole document share: interfaces
// have one port, wires have two.
func (d decoder) validateLinks(c *Config) {
	interfaces, wires := map[[2]string]string{}, map[string][]string{}
	for i := range c.Switches {
		for j := range c.Switches[i].Ports {
			p, path := &c.Switches[i].Ports[j], fmt.Sprintf("switches[%d].ports[%d]", i, j)
			if p.Interface != "" {
				key := [2]string{p.NetNS, p.Interface}
				if other := interfaces[key]; other != "" {
					d.Fail(path+".interface", "%s is taken by %s", p.Interface, other)
				}
				interfaces[key] = path
			}
			if p.Wire != "" {
				wires[p.Wire] = append(wires[p.Wire], path)
			}
		}
	}
	for name, ends := range wires {
		switch {
		case len(ends) == 1:
			d.Fail(ends[0]+".wire", "wire %s has one end only; exactly two ports must name it", name)
		case len(ends) > 2:
			d.Fail(ends[2]+".wire", "wire %s has two ends already, %s and %s", name, ends[0], ends[1])
		}
	}
}
