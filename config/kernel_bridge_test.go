package config_test

import (
	"fmt"
	"slices"
	"testing"

	"gswitch/config"
	"gswitch/frame"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// What the kernel's selftests of forwarding (tools/testing/selftests/net/forwarding) check of its bridge and router,
// checked of a switch by the document that asks for the same. docs/FORWARDING.md has the list.

// bench is a switch on a table, made by what stands under a switch in a document.
type bench struct {
	*st.Rig
	*testing.T
	ports int
}

func newBench(t *testing.T, section string) *bench {
	t.Helper()
	b := &bench{T: t}
	c := b.parse(section)
	b.Rig = st.New(t, c.Resolved().Switches[0].VSwitch(nil))
	return b
}

func (b *bench) parse(section string) *config.Config {
	b.Helper()
	doc, err := config.Parse("switch", []byte("version: 1\nswitches:\n  - name: s\n    mac: "+st.SelfMAC.String()+"\n"+section))
	if err != nil {
		b.Fatal(err)
	}
	b.ports = len(doc.Switches[0].Ports)
	return doc
}

func (b *bench) apply(section string) {
	b.Helper()
	b.Rig.Apply(b.parse(section).Resolved().Switches[0].VSwitch(nil))
}

// sends has a frame arrive, and returns what leaves by each port.
func (b *bench) sends(from int, f []byte) map[int][][]byte {
	b.In(uint16(from), f)
	out := map[int][][]byte{}
	for p := range b.ports {
		if v := b.Out(uint16(p)); len(v) > 0 {
			out[p] = v
		}
	}
	return out
}

// goes holds that a frame leaves once by each of some ports, and by no other.
func (b *bench) goes(what string, from int, f []byte, to ...int) {
	b.Helper()
	out := b.sends(from, f)
	for p := range b.ports {
		if n := len(out[p]); (n == 1) != slices.Contains(to, p) || n > 1 {
			b.Errorf("%s: port %d sends %d frames, and those that should are %v; drops %v", what, p, n, to, b.Drops())
		}
	}
}

// one is the frame that leaves by a port, and nothing does by others.
func (b *bench) one(what string, from int, f []byte, to int) []byte {
	b.Helper()
	out := b.sends(from, f)
	if len(out) != 1 || len(out[to]) != 1 {
		b.Fatalf("%s: ports send %v, want one frame by %d; drops %v", what, out, to, b.Drops())
	}
	return out[to][0]
}

// dropped holds that a frame goes nowhere, for a reason.
func (b *bench) dropped(what string, from int, f []byte, why frame.Reason) {
	b.Helper()
	before := b.Counts(uint16(from)).Drops[why]
	if out := b.sends(from, f); len(out) != 0 || b.Counts(uint16(from)).Drops[why] != before+1 {
		b.Errorf("%s: ports send %v, drops %v, want one for %v", what, out, b.Drops(), why)
	}
}

var everybody = wire.BroadcastMAC

// station is a frame from a station to another one, perhaps with a tag.
func station(dst, src wire.MAC, vlan int) []byte {
	layers := []wt.Layer{wt.Eth(dst, src)}
	if vlan >= 0 {
		layers = append(layers, wt.VLAN(uint16(vlan), 0))
	}
	return wt.Frame(append(layers, wt.IPv4("192.0.2.1", "192.0.2.2"), wt.UDP(1, 2), wt.Zeros(40))...)
}

func mac(n int) wire.MAC { return st.HostMAC(n) }

// group is a multicast address of IPv4 without members (RFC 1112 section 6.4).
var group = wire.MAC{0x01, 0x00, 0x5e, 0x01, 0x02, 0x03}

// bridge_vlan_unaware: learning, ageing and flooding.
func TestKernelBridge(t *testing.T) {
	const three = "    ports: [{interface: a%s}, {interface: b%s}, {interface: c%s}]\n"
	b := newBench(t, fmt.Sprintf(three, "", "", "")+"    fdb: {ageing: 20s}\n")
	b.goes("unknown", 0, station(mac(2), mac(1), -1), 1, 2)
	b.goes("learned", 1, station(mac(1), mac(2), -1), 0)
	b.goes("both learned", 0, station(mac(2), mac(1), -1), 1)
	b.goes("not back where it came from", 0, station(mac(1), mac(3), -1))
	for range 1000 { // it is gone through in small steps
		b.Advance(50 * frame.Millisecond)
	}
	b.goes("aged", 0, station(mac(2), mac(1), -1), 1, 2)

	b = newBench(t, fmt.Sprintf(three, ", learn: false", "", ""))
	b.goes("from a port that does not learn", 0, station(everybody, mac(1), -1), 1, 2)
	b.goes("is not learned", 1, station(mac(1), mac(2), -1), 0, 2)

	b = newBench(t, fmt.Sprintf(three, "", ", flood: {unknown: false}", ", flood: {multicast: false}"))
	b.goes("unknown, not flooded to one", 0, station(mac(9), mac(1), -1), 2)
	b.goes("multicast, not flooded to another", 0, station(group, mac(1), -1), 1)
	b.goes("broadcast, flooded to all", 0, station(everybody, mac(1), -1), 1, 2)
	b.apply(fmt.Sprintf(three, "", "", ""))
	b.goes("unknown, flooded again", 0, station(mac(9), mac(1), -1), 1, 2)
	b.goes("multicast, flooded again", 0, station(group, mac(1), -1), 1, 2)
	b.goes("what was learned stays", 1, station(mac(1), mac(2), -1), 0)
}

// bridge_vlan_aware: VLANs that come and go, what has no VLAN, the same address in two.
func TestKernelBridgeVLANs(t *testing.T) {
	with := func(b string) string {
		return "    ports:\n      - {interface: a, vlan: {trunk: [10, 20], native: 1}}\n      - {interface: b, vlan: {" + b + "}}\n      - {interface: c, vlan: {access: 20}}\n"
	}
	b := newBench(t, with("trunk: [10, 20], native: 1"))
	b.goes("VLAN 10", 0, station(everybody, mac(1), 10), 1)
	b.goes("VLAN 20", 0, station(everybody, mac(1), 20), 1, 2)
	b.goes("untagged", 0, station(everybody, mac(1), -1), 1)
	b.goes("priority tag", 0, station(everybody, mac(1), 0), 1)
	b.dropped("VLAN that is not allowed", 0, station(everybody, mac(1), 30), frame.VLANIngress)
	if f := b.sends(0, station(everybody, mac(1), 20)); len(f[2]) != 1 || wire.Ethernet(f[2][0]).EtherType() != wire.EtherTypeIPv4 {
		t.Error("a frame leaves an access port with its tag")
	}
	b.goes("untagged here, tagged there", 2, station(mac(9), mac(3), -1), 0, 1)
	b.goes("learned in VLAN 10", 1, station(mac(1), mac(2), 10), 0)
	b.goes("the same address in VLAN 20", 2, station(mac(2), mac(3), -1), 0, 1)
	b.apply(with("trunk: [20], native: 1"))
	b.goes("VLAN 10 is deleted", 0, station(everybody, mac(1), 10))
	b.goes("VLAN 20 stays", 0, station(everybody, mac(1), 20), 1, 2)
	b.apply(with("trunk: [10, 20], native: 1"))
	b.goes("VLAN 10 is added again", 0, station(everybody, mac(1), 10), 1)
	b.apply(with("trunk: [10, 20]"))
	b.dropped("untagged without a native VLAN", 1, station(everybody, mac(2), -1), frame.VLANIngress)
}

// bridge_port_isolation, bridge_sticky_fdb and bridge_fdb_learning_limit.
func TestKernelBridgePorts(t *testing.T) {
	b := newBench(t, "    ports: [{interface: a, isolated: true}, {interface: b, isolated: true}, {interface: c}]\n")
	b.goes("flooded from an isolated port", 0, station(everybody, mac(1), -1), 2)
	b.goes("flooded from another port", 2, station(everybody, mac(3), -1), 0, 1)
	b.goes("known, between isolated ports", 1, station(mac(1), mac(2), -1))
	b.goes("known, to another port", 1, station(mac(3), mac(2), -1), 2)

	b = newBench(t, "    ports: [{interface: a}, {interface: b}, {interface: c}]\n    fdb: {static: [{mac: \""+mac(1).String()+"\", port: a}]}\n")
	b.goes("its address is seen elsewhere", 1, station(everybody, mac(1), -1), 0, 2)
	b.goes("and stays", 2, station(mac(1), mac(3), -1), 0)

	b = newBench(t, "    ports: [{interface: a}, {interface: b}, {interface: c}]\n    fdb: {per_port: 1}\n")
	b.goes("the first", 0, station(everybody, mac(1), -1), 1, 2)
	b.goes("one more than may be learned", 0, station(everybody, mac(2), -1), 1, 2)
	b.goes("the first is known", 1, station(mac(1), mac(3), -1), 0)
	b.goes("the other is not", 1, station(mac(2), mac(3), -1), 0, 2)
	b.goes("another port has room of its own", 2, station(mac(3), mac(4), -1), 1)
}
