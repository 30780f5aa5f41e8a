package scenario

import (
	"fmt"

	"gswitch/fabric"
	"gswitch/mirror"
	"gswitch/units"
)

// Probe is a series of guided probes (Everflow, section 4.3).
type Probe struct {
	Name     string         `yaml:"name" need:"yes" doc:"Name of the series, in the names of values: probe_NAME_lost_total."`
	From     string         `yaml:"from" need:"yes" doc:"The host that sends them, which switch.watch.probes must allow. Its stack does not see them."`
	Via      []string       `yaml:"via" need:"yes" doc:"The switches, three at most, that they come by one after the other, and where each is traced. At the first they are sent into the network; the last sends them on as it does any packet."`
	To       string         `yaml:"to" need:"yes" doc:"The host or switch at their end. The first of via: there and back."`
	Src      string         `yaml:"src" doc:"The host whose address is that of their source behind the last switch, for the way of its packets. That of from if left out."`
	Protocol string         `yaml:"protocol" enum:"udp,tcp" default:"udp" doc:"Of what is behind the tunnels."`
	SrcPort  int            `yaml:"src_port" range:"1,65535" default:"50000" doc:"Source port of that."`
	DstPort  int            `yaml:"dst_port" range:"1,65535" default:"33434" doc:"Destination port of that."`
	Start    units.Duration `yaml:"start" doc:"When the first is sent."`
	Every    units.Duration `yaml:"every" default:"100us" doc:"Time between two."`
	Count    int            `yaml:"count" range:"1,60000" default:"1000" doc:"How many."`
}

// probes checks probes.
func (v *validator) probes() {
	d := v.doc
	v.names("probes", len(d.Probes), func(i int) string { return d.Probes[i].Name })
	for i := range d.Probes {
		p := &d.Probes[i]
		key := func(s string) string { return fmt.Sprintf("probes[%d].%s", i, s) }
		host := func(k, name string) {
			if n, ok := v.t.Lookup(name); !ok || v.t.Nodes[n].Kind != fabric.Host {
				v.sec.Fail(key(k), "there is no host %q", name)
			}
		}
		host("from", p.From)
		if p.Src != "" {
			host("src", p.Src)
		}
		if _, ok := v.t.Lookup(p.To); !ok {
			v.sec.Fail(key("to"), "there is no node %q", p.To)
		}
		if n := len(p.Via); n == 0 || n > mirror.MostVia {
			v.sec.Fail(key("via"), "%d switches: one to %d are possible", n, mirror.MostVia)
		}
		for k, name := range p.Via {
			if n, ok := v.t.Lookup(name); !ok || v.t.Nodes[n].Kind != fabric.Switch {
				v.sec.Fail(key(fmt.Sprintf("via[%d]", k)), "there is no switch %q", name)
			}
		}
		if len(d.Measure.Traces) == 0 {
			v.sec.Fail(key("name"), "the copies of probes are not collected; name hosts by measure.traces")
		}
	}
}
