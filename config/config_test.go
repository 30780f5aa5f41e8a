package config

import (
	"encoding"
	"encoding/json"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gswitch/section"
	"gswitch/units"

	"github.com/google/go-cmp/cmp"
)

const small = `version: 1
switches:
  - name: s1
    ports:
      - interface: eth1
      - {name: up, interface: eth2, rate: 25Gbps}
`

func TestExample(t *testing.T) {
	c, err := Load("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.yaml", c.YAML())
	if err != nil {
		t.Fatalf("the example, written back, is refused: %v\n%s", err, c.YAML())
	}
	if d := cmp.Diff(c.YAML(), again.YAML()); d != "" {
		t.Errorf("the example changes when it is written back:\n%s", d)
	}
	if d := Diff(c, again); len(d) != 0 {
		t.Errorf("differences to itself: %v", d)
	}
	// Every key that the document has is in the example, or it would go
	// stale unnoticed.
	text, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	walkKeys(reflect.TypeFor[Config](), func(key string) {
		if !regexp.MustCompile(`\b` + key + ":").Match(text) {
			missing[key] = true
		}
	})
	if len(missing) > 0 {
		t.Errorf("keys that the example does not show: %v", missing)
	}
}

// isText reports whether a document writes a type as one value.
func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// twin is a document whose port p1 is routed, and what follows it.
func twin(ports string) string {
	return "version: 1\nswitches:\n  - name: s1\n    ports:\n      [{name: p1, interface: eth0,\n       address: [10.0.0.1/24]},\n       " + ports + "]\n"
}

func walkKeys(t reflect.Type, f func(string)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		walkKeys(t.Elem(), f)
	case reflect.Struct:
		if isText(t) {
			return
		}
		for _, k := range section.Fields(t) {
			f(k.Key)
			walkKeys(k.Type, f)
		}
	}
}

func TestRefusals(t *testing.T) {
	port := func(s string) string {
		return "version: 1\nswitches:\n  - name: s1\n    ports:\n      - {interface: eth1, " + s + "}\n"
	}
	sw := func(s string) string { return small + "    " + strings.ReplaceAll(s, "\n", "\n    ") + "\n" }
	for _, tc := range []struct{ name, doc, want string }{
		{"empty", "", "x.yaml:1:1: the document is empty; the shortest has version, switches and ports"},
		{"not yaml", "version: 1\n\t- x", "x.yaml:2:1: a tab indents this line; YAML takes spaces only"},
		{"scalar", "hello", `x.yaml:1:1: wants keys and values, not "hello"`},
		{"two documents", small + "---\nversion: 1\n", "x.yaml:7:1: a second document follows; one file holds one document"},
		{"no version", strings.Replace(small, "version: 1\n", "", 1), "x.yaml:1:1: version: is missing"},
		{"wrong version", strings.Replace(small, "version: 1", "version: 2", 1), "x.yaml:1:10: version: 2 is not between 1 and 1"},
		{"no switches", "version: 1\n", "x.yaml:1:1: switches: is missing"},
		{"unknown key, near", port("interfce: eth2"), `x.yaml:5:27: switches[0].ports[0].interfce: unknown key; did you mean "interface"?`},
		{"unknown key, top", small + "colour: red\n", "x.yaml:7:1: colour: unknown key; known here are version, workers, memory, control, metrics, export, switches"},
		{"merge key", small + "<<: {version: 1}\n", "x.yaml:7:1: <<: merge keys are not part of this format; write the keys out"},
		{"twice", small + "version: 1\n", "x.yaml:7:1: version: appears twice; it is first set in line 1"},
		{"bad unit", port("rate: 10Gps"), `x.yaml:5:33: switches[0].ports[0].rate: "10Gps" is not a rate: unknown unit "Gps", did you mean "Gbps"?; write 10Gbps, 100Mbit or unlimited`},
		{"no unit", port("rate: 10"), `x.yaml:5:33: switches[0].ports[0].rate: "10" is not a rate: the unit is missing; write 10Gbps, 100Mbit or unlimited`},
		{"zero rate", port("rate: 0bps"), `x.yaml:5:33: switches[0].ports[0].rate: "0bps" is not a rate: nothing would ever leave; write unlimited for a link without emulated speed`},
		{"rate too large", port("rate: 101Tbps"), `x.yaml:5:33: switches[0].ports[0].rate: "101Tbps" is not a rate: it is too large; write 10Gbps, 100Mbit or unlimited`},
		{"too fine", port("delay: 1.5ns"), `x.yaml:5:34: switches[0].ports[0].delay: "1.5ns" is not a duration: it is finer than one ns; write 1us, 200ms or 5s`},
		{"no value", port("rate: "), `x.yaml:5:33: switches[0].ports[0].rate: wants a single value, not nothing`},
		{"list for scalar", port("rate: [1Gbps]"), `x.yaml:5:33: switches[0].ports[0].rate: wants a single value, not a list`},
		{"scalar for list", port("address: 10.0.0.1/24"), `x.yaml:5:36: switches[0].ports[0].address: wants a list, not "10.0.0.1/24"`},
		{"bad prefix", port("address: [10.0.0.1]"), `x.yaml:5:37: switches[0].ports[0].address[0]: "10.0.0.1" is not an address with prefix length; write 10.0.0.0/24 or fd00::/64`},
		{"enum", port("mode: nativ"), `x.yaml:5:33: switches[0].ports[0].mode: "nativ" is not one of auto, zerocopy, native, generic; did you mean "native"?`},
		{"range", port("mtu: 10"), `x.yaml:5:32: switches[0].ports[0].mtu: 10 is not between 68 and 9216`},
		{"number", port("mtu: big"), `x.yaml:5:32: switches[0].ports[0].mtu: "big" is not a whole number`},
		{"bool", port("enabled: yes"), `x.yaml:5:36: switches[0].ports[0].enabled: "yes" is neither true nor false`},
		{"port of nothing", "version: 1\nswitches:\n  - name: s1\n    ports:\n      - name: p1\n", "x.yaml:5:9: switches[0].ports[0]: needs one of interface, wire, pcap, tap"},
		{"port of two things", port("wire: w"), "x.yaml:5:9: switches[0].ports[0]: has more than one of interface, wire, pcap, tap\nx.yaml:5:33: switches[0].ports[0].wire: wire w has one end only; exactly two ports must name it"},
		{"twin of nobody", twin("{tap: {of: p9}}"), `x.yaml:7:19: switches[0].ports[1].tap.of: there is no port "p9"`},
		{"twin of a bridged port", twin("{tap: {of: p1}}, {name: p2, interface: eth1}, {tap: {of: p2}}"), `x.yaml:7:65: switches[0].ports[3].tap.of: port p2 has no address: only a routed port has a twin in the kernel`},
		{"two twins", twin("{tap: {of: p1}}, {name: p1b, tap: {of: p1}}"), `x.yaml:7:47: switches[0].ports[2].tap.of: port p1 has a twin already, p1-tap`},
		{"twin with an address", twin("{tap: {of: p1}, address: [10.0.9.1/24]}"), `x.yaml:7:33: switches[0].ports[1].address: is not for the twin of a port: write it at port p1`},
		{"twins apart", twin("{tap: {of: p1}, netns: a}, {name: p2, interface: eth1, address: [10.0.1.1/24]}, {tap: {of: p2}, netns: b}"), `x.yaml:7:111: switches[0].ports[3].netns: is not that of p1-tap: all twins of a switch are in one namespace, whose routes it takes over`},
		{"name of a twin", twin("{tap: {of: p1, name: a-name-of-17-byte}}"), `x.yaml:7:29: switches[0].ports[1].tap.name: "a-name-of-17-byte" cannot be the name of an interface: at most 15 bytes, no slash, no space`},
		{"access and trunk", port("vlan: {access: 1, trunk: [2]}"), "x.yaml:5:33: switches[0].ports[0].vlan: access contradicts trunk and native: a port is one or the other"},
		{"trunk twice", port("vlan: {trunk: [10-20, 15]}"), "x.yaml:5:49: switches[0].ports[0].vlan.trunk[1]: VLAN 15 is named twice"},
		{"trunk backwards", port("vlan: {trunk: 20-10}"), `x.yaml:5:41: switches[0].ports[0].vlan.trunk[0]: "20-10" is not a VLAN of 1 to 4094, nor a range of them; write 10 or 10-20`},
		{"trunk of no VLAN", port("vlan: {trunk: [4095]}"), `x.yaml:5:42: switches[0].ports[0].vlan.trunk[0]: "4095" is not a VLAN of 1 to 4094, nor a range of them; write 10 or 10-20`},
		{"tab", "version: 1\nswitches:\n\t- name: s1\n", "x.yaml:3:1: a tab indents this line; YAML takes spaces only"},
		{"tab after spaces", small + "    \trouter: true\n", "x.yaml:7:5: a tab indents this line; YAML takes spaces only"},
		{"buffer smaller than a frame", sw("buffer: {size: 1500B}"), "x.yaml:7:20: switches[0].buffer.size: holds no frame: ports of this switch take frames of 1518 bytes"},
		{"routed and bridged", port("address: [10.0.0.1/24], vlan: {access: 1}"), "x.yaml:5:57: switches[0].ports[0].vlan: cannot stand beside address, with which a port routes, and is in no VLAN; give the address to the VLAN, or take one of the two out"},
		{"no such worker", port("workers: [1]"), "x.yaml:5:37: switches[0].ports[0].workers[0]: there is no worker 1; the document has 1, counted from 0"},
		{"no such profile", port("qos: gold"), `x.yaml:5:32: switches[0].ports[0].qos: there is no queue profile "gold"`},
		{"duplicate port", small + "      - {name: up, interface: eth3}\n", "x.yaml:7:16: switches[0].ports[2].name: up is taken by switches[0].ports[1]"},
		{"duplicate by interface", small + "      - {interface: eth1}\n", "x.yaml:7:9: switches[0].ports[2].name: eth1 is taken by switches[0].ports[0]\nx.yaml:7:21: switches[0].ports[2].interface: eth1 is taken by switches[0].ports[0]"},
		{"duplicate switch", small + "  - {name: s1, ports: [{interface: eth9}]}\n", "x.yaml:7:12: switches[1].name: s1 is taken by switches[0]"},
		{"pinned twice", "workers: [{cpu: 1}, {cpu: 1}]\n" + small, "x.yaml:1:27: workers[1].cpu: worker 0 is pinned to CPU 1 already"},
		{"class map", sw("classes: {pcp: [1, 2]}"), "x.yaml:7:20: switches[0].classes.pcp: wants eight numbers, has 2"},
		{"class of dscp", sw("classes: {dscp: {64: 1, 3: 9}}"), "x.yaml:7:22: switches[0].classes.dscp.64: 64 is not between 0 and 63\nx.yaml:7:32: switches[0].classes.dscp.3: 9 is not between 0 and 7"},
		{"ecn", sw("qos: {q: {queues: [{queue: 1, ecn: {kmin: 2KB, kmax: 1KB}}]}}"), "x.yaml:7:47: switches[0].qos.q.queues[0].ecn.kmin: 2kB is more than kmax, 1kB"},
		{"ecn without kmax", sw("qos: {q: {queues: [{queue: 1, ecn: {kmin: 2KB}}]}}"), "x.yaml:7:40: switches[0].qos.q.queues[0].ecn.kmax: is missing"},
		{"burst without a rate", sw("qos: {q: {queues: [{queue: 1, burst: 3KB}]}}"), "x.yaml:7:42: switches[0].qos.q.queues[0].burst: is ahead of no max_rate; write that, too"},
		{"burst that no time can say", sw("qos: {q: {queues: [{queue: 1, max_rate: 1bps, burst: 3GB}]}}"), "x.yaml:7:58: switches[0].qos.q.queues[0].burst: 3GB is not between 0B and 1GiB"},
		{"strict with weight", sw("qos: {q: {queues: [{queue: 1, strict: true, weight: 3}]}}"), "x.yaml:7:57: switches[0].qos.q.queues[0].weight: contradicts strict: a strict queue has no weight"},
		{"route elsewhere", sw("routes: [{prefix: 10.0.0.0/8, via: 192.0.2.1}]"), "x.yaml:7:40: switches[0].routes[0].via: 192.0.2.1 is on no network of this switch: no port and no VLAN has an address there"},
		{"route with host bits", sw("routes: [{prefix: 10.1.0.0/8, blackhole: true}]"), "x.yaml:7:23: switches[0].routes[0].prefix: 10.1.0.0/8 has bits beyond its length; write 10.0.0.0/8"},
		{"route to nothing", sw("routes: [{prefix: 10.0.0.0/8}]"), "x.yaml:7:14: switches[0].routes[0]: needs exactly one of via, next_hops, blackhole, unreachable, prohibit"},
		{"two answers", sw("routes: [{prefix: 10.0.0.0/8, unreachable: true, prohibit: true}]"), "x.yaml:7:14: switches[0].routes[0]: needs exactly one of via, next_hops, blackhole, unreachable, prohibit"},
		{"IPv6 by IPv4", sw("routes: [{prefix: 'fd01::/16', via: 10.0.0.1}]"), "x.yaml:7:41: switches[0].routes[0].via: 10.0.0.1 is no next hop of fd01::/16: an IPv6 route leads to an IPv6 address"},
		{"link-local behind any port", sw("routes: [{prefix: 10.0.0.0/8, via: 'fe80::1'}]"), "x.yaml:7:40: switches[0].routes[0].via: fe80::1 may be behind any port; write fe80::1%PORT"},
		{"link-local behind no port", sw("routes: [{prefix: 10.0.0.0/8, via: 'fe80::1%nowhere'}]"), "x.yaml:7:40: switches[0].routes[0].via: behind the % of fe80::1%nowhere stands no port with an address, or before it no link-local address"},
		{"label of both directions", sw("hash_fields: [src, dst, label]\nhash: symmetric"), "x.yaml:7:18: switches[0].hash_fields: each direction of a flow has a flow label of its own; leave label out, or write hash: five-tuple"},
		{"one end of both directions", sw("hash_fields: [src]\nhash: symmetric"), "x.yaml:7:18: switches[0].hash_fields: with hash: symmetric, src and dst go together, and src_port and dst_port"},
		{"hash of nothing known", sw("hash_fields: [src, colour]"), `x.yaml:7:24: switches[0].hash_fields[1]: "colour" is not one of src, dst, src_port, dst_port, protocol, label`},
		{"rule order", sw("acls: {a: [{seq: 20, action: drop}, {seq: 10, action: drop}]}"), "x.yaml:7:47: switches[0].acls.a[1].seq: 10 does not come after 20, the rule before"},
		{"ports without protocol", sw("acls: {a: [{match: {dst_port: 80}, action: drop}]}"), "x.yaml:7:24: switches[0].acls.a[0].match: ports need protocol: tcp or udp"},
		{"mixed versions", sw("acls: {a: [{match: {src: 10.0.0.0/8, dst: 'fd00::/64'}}]}"), "x.yaml:7:47: switches[0].acls.a[0].match.dst: fd00::/64 and src, 10.0.0.0/8, are not of one IP version"},
		{"redirect", sw("acls: {a: [{redirect: upp}]}"), `x.yaml:7:27: switches[0].acls.a[0].redirect: there is no port "upp"; did you mean "up"?`},
		{"more static addresses than there is room for", sw("fdb: {max: 1, static: [{mac: 02:00:00:00:00:01, port: up}, {mac: 02:00:00:00:00:02, port: up}]}"), "x.yaml:7:27: switches[0].fdb.static: 2 entries, of which fdb.max lets the database have 1: raise it"},
		{"group address", sw("fdb: {static: [{mac: 01:00:5e:00:00:01, port: up}]}"), "x.yaml:7:26: switches[0].fdb.static[0].mac: 01:00:5e:00:00:01 is a group address; static entries are for single stations"},
		{"sink without telemetry", port("telemetry: {sink: true}"), "x.yaml:5:38: switches[0].ports[0].telemetry: the switch's telemetry is off; write telemetry: {int: true} beside ports"},
		{"source ports of no source", port("telemetry: {source_ports: [4791]}"), "x.yaml:5:53: switches[0].ports[0].telemetry.source_ports: the port is no source; write source: int-md"},
		{"hpcc for any port", strings.Replace(port("telemetry: {source: hpcc, source_ports: [53]}"), "    ports:", "    telemetry: {int: true}\n    ports:", 1),
			"x.yaml:6:67: switches[0].ports[0].telemetry.source_ports: hpcc is for RoCEv2 (port 4791) only; write source: int-md"},
		{"link without a rate", sw("telemetry: {int: true, links: [unlimited]}"), "x.yaml:7:36: switches[0].telemetry.links[0]: a link without a rate has no units; write the rate of the device, such as 100Gbps"},
		{"pause and pfc", sw("pfc: {pause: true, classes: [3]}"), "x.yaml:7:18: switches[0].pfc.pause: cannot stand beside classes, which stop classes, and this stops the whole link; take one of the two out"},
		{"listen", "control: {listen: '9479'}\n" + small, `x.yaml:1:19: control.listen: "9479" is not host:port; write 127.0.0.1:9479`},
		{"alias cycle", "version: 1\nswitches: &a [*a]\n", "x.yaml:2:11: switches[0]: wants keys and values, not a list"},
		{"all at once", "version: 1\nswitches:\n  - name: s1\n    ports:\n      - {interface: eth1, rate: 1, mut: 9000}\n      - {interface: eth1, delay: 1}\n",
			"x.yaml:5:33: switches[0].ports[0].rate: \"1\" is not a rate: the unit is missing; write 10Gbps, 100Mbit or unlimited\n" +
				"x.yaml:5:36: switches[0].ports[0].mut: unknown key; did you mean \"mtu\"?\n" +
				"x.yaml:6:9: switches[0].ports[1].name: eth1 is taken by switches[0].ports[0]\n" +
				"x.yaml:6:21: switches[0].ports[1].interface: eth1 is taken by switches[0].ports[0]\n" +
				"x.yaml:6:34: switches[0].ports[1].delay: \"1\" is not a duration: the unit is missing; write 1us, 200ms or 5s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(tc.doc))
			if err == nil {
				t.Fatalf("accepted:\n%s", tc.doc)
			}
			if d := cmp.Diff(tc.want, err.Error()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]units.Rate{"25Gbps": 25e9, "100Mbit": 100e6, "2.5Gbps": 25e8, "1 Gbit/s": 1e9, "640kbps": 640e3, "unlimited": 0} {
		var r units.Rate
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%s is %d, %v; want %d", text, r, err, want)
		}
	}
	for text, want := range map[string]units.Size{"32MB": 32e6, "32MiB": 32 << 20, "64KiB": 65536, "1500B": 1500, "1.5KiB": 1536, "0B": 0} {
		var s units.Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%s is %d, %v; want %d", text, s, err, want)
		}
	}
	for text, want := range map[string]units.Duration{"1us": 1000, "1.5us": 1500, "200ms": 200e6, "300s": 300e9, "5min": 300e9, "0s": 0} {
		var d units.Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d != want {
			t.Errorf("%s is %d, %v; want %d", text, d, err, want)
		}
	}
	for _, text := range []string{"", "Gbps", "-1Gbps", "1e9bps", "1..2Gbps", ".5Gbps", "5.Gbps", "99999999999999999999Gbps", "1GiB", "0.1bps"} {
		var r units.Rate
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("rate %q is taken for %d", text, r)
		}
	}
}

func TestGenerated(t *testing.T) {
	c := &Config{Version: 1, Switches: []Switch{{Name: "leaf1", Ports: []Port{
		{Interface: "l1h1", Rate: 10 * units.Gbps, Delay: 2 * units.Microsecond, Burst: new(units.Duration(0))},
		{Wire: "x"}}}, {Name: "spine", Ports: []Port{{Wire: "x"}}}}}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	want := `version: 1
switches:
  - name: leaf1
    ports:
      - interface: l1h1
        rate: 10Gbps
        burst: 0ns
        delay: 2us
      - wire: x
  - name: spine
    ports:
      - wire: x
`
	if d := cmp.Diff(want, string(c.YAML())); d != "" {
		t.Error(d)
	}
	again, err := Parse("", c.YAML())
	if err != nil {
		t.Fatal(err)
	}
	if d := Diff(c, again); len(d) != 0 {
		t.Error(d)
	}
}

func TestCheckNamesTheKey(t *testing.T) {
	c := &Config{Switches: []Switch{{Name: "s", Ports: []Port{{}}}}}
	want := "switches[0].ports[0]: needs one of interface, wire, pcap, tap\nversion: is missing; write 1"
	if err := c.Check(); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestResolved(t *testing.T) {
	c, err := Parse("", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	r := c.Resolved()
	s := r.Switches[0]
	if s.ID != 1 || s.Seed == 0 || s.MAC == nil || s.MAC.Multicast() || r.Control.Socket != "/run/gswitch/s1.sock" || len(r.Workers) != 1 || r.Workers[0].Poll != "adaptive" {
		t.Errorf("switch: %+v", s)
	}
	p := s.Ports[0]
	if p.Name != "eth1" || !*p.Enabled || *p.Burst != 50*units.Microsecond || p.MTU != 1500 || p.Mode != "auto" || p.Workers[0] != 0 {
		t.Errorf("port: %+v", p)
	}
	if c.Switches[0].ID != 0 || c.Switches[0].Ports[0].Enabled != nil {
		t.Error("Resolved changed its receiver")
	}
}

func TestDiff(t *testing.T) {
	a, err := Load("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := a.Clone()
	s := &b.Switches[0]
	s.Ports[0].Rate = 25 * units.Gbps
	s.Ports[0].ACL = ""
	s.Ports[0], s.Ports[1] = s.Ports[1], s.Ports[0] // order alone is no difference
	s.Routes = append(s.Routes[1:], Route{Prefix: s.Routes[0].Prefix, Blackhole: true})
	s.Routes = append(s.Routes, Route{Prefix: netip.PrefixFrom(s.Loopback[0], 32), Blackhole: true})
	s.ACLs["edge"] = append(s.ACLs["edge"][:3], s.ACLs["edge"][4:]...)
	s.Classes.DSCP[10] = 1
	*s.FDB.Ageing = 0
	b.Switches = slices.Delete(b.Switches, 1, 2)
	var got []string
	for _, c := range Diff(a, b) {
		got = append(got, c.String())
	}
	want := []string{
		"~ switches[leaf1].ports[h1].rate: 10Gbps -> 25Gbps",
		"- switches[leaf1].ports[h1].acl: edge",
		"+ switches[leaf1].classes.dscp.10: 1",
		"- switches[leaf1].acls.edge[40]: {seq: 40, match: {ethertype: 0x88f7}, action: permit, set_dscp: 46, redirect: up1}",
		"~ switches[leaf1].fdb.ageing: 300s -> 0ns",
		"- switches[leaf1].routes[0.0.0.0/0].via: 10.1.0.1",
		"~ switches[leaf1].routes[0.0.0.0/0].blackhole: false -> true",
		"+ switches[leaf1].routes[10.255.0.1/32]: {prefix: 10.255.0.1/32, blackhole: true}",
	}
	if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "- switches[spine2]: {name: spine2") {
		t.Errorf("removed switch: %v", got)
	}
	if d := cmp.Diff(want, got[:len(got)-1]); d != "" {
		t.Error(d)
	}
}

func TestSchemaTakesTheSameKeys(t *testing.T) {
	var s struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"version", "switches"}, s.Required); d != "" {
		t.Error(d)
	}
	text := string(Schema())
	walkKeys(reflect.TypeFor[Config](), func(key string) {
		if !strings.Contains(text, `"`+key+`"`) {
			t.Errorf("the schema does not know %q", key)
		}
	})
}

func TestEveryKeyIsDocumented(t *testing.T) {
	var walk func(t *testing.T, typ reflect.Type)
	walk = func(t *testing.T, typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || isText(typ) {
			return
		}
		for _, f := range section.Fields(typ) {
			if doc := f.Tag.Get("doc"); f.Key == "" || !strings.HasSuffix(doc, ".") {
				t.Errorf("%s: key %q, doc %q", typ, f.Key, doc)
			}
			walk(t, f.Type)
		}
	}
	walk(t, reflect.TypeFor[Config]())
	new(Config).Resolved()
}

func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte(small))
	f.Add([]byte("version: 1\nswitches: &a [*a]\n"))
	f.Add([]byte("a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n"))
	f.Add([]byte("version: 1\nswitches: [{name: s, ports: [{interface: e, rate: 1.}]}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f.yaml", data)
		if err != nil {
			if len(err.(section.Errors)) == 0 {
				t.Fatal("refused without a reason")
			}
			return
		}
		again, err := Parse("again.yaml", c.YAML())
		if err != nil {
			t.Fatalf("accepted, but not when written back: %v\n%s", err, c.YAML())
		}
		if d := Diff(c, again); len(d) != 0 {
			t.Fatalf("changed when written back: %v", d)
		}
		Diff(c, &Config{})
	})
}
