package gcollect

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gswitch/collect"
	"gswitch/config"
	"gswitch/telemetry/lossradar"
	"gswitch/wire"
)

const listed = `version: 1
switches:
  - name: s2
    acls:
      in:
        - {seq: 10, match: {src: 10.0.0.0/24, protocol: udp, dst_port: 5000-5003}, action: permit}
        - {seq: 20, name: telnet, match: {dst: 10.0.2.0/24, protocol: tcp, dst_port: 23}, action: drop}
        - {seq: 30, match: {dscp: 46}, action: permit}
        - {seq: 40, match: {src: 10.0.0.0/16, dst: 10.0.1.0/24}, action: permit}
        - {seq: 50, match: {dst: 10.0.0.0/16}, action: drop}
      other: [{seq: 10, action: permit}]
    ports:
      - {name: s1, interface: a, acl: in}
      - {name: s3, interface: b, acl: other}
`

// The rule of a document in which one bit would drop what was lost is named, and none
// for losses of a link whose list it is not.
func TestSuspects(t *testing.T) {
	doc, err := config.Parse("switch.yaml", []byte(listed))
	if err != nil {
		t.Fatal(err)
	}
	of := func(dst string, port uint16, proto uint8) lossradar.Tuple {
		return tuple(netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr(dst), 1000, port, proto)
	}
	for _, c := range []struct {
		what, link string
		lost       []lossradar.Tuple
		want       []suspect
	}{
		{"a bit of telnet's network is not looked at", "s1>s2", []lossradar.Tuple{of("11.0.2.5", 23, wire.ProtoTCP), of("11.0.2.9", 23, wire.ProtoTCP)},
			[]suspect{{Link: "s1>s2", Switch: "s2", List: "in", Seq: 20, Rule: "telnet", Wrong: "match", Flows: 2}, {Link: "s1>s2", Switch: "s2", List: "in", Seq: 50, Wrong: "match", Flows: 2}}},
		{"what 50 denies is no loss to explain", "s1>s2", []lossradar.Tuple{of("10.0.2.5", 23, wire.ProtoTCP^1), of("11.0.2.5", 23, wire.ProtoTCP)},
			[]suspect{{Link: "s1>s2", Switch: "s2", List: "in", Seq: 20, Rule: "telnet", Wrong: "match", Flows: 1}, {Link: "s1>s2", Switch: "s2", List: "in", Seq: 50, Wrong: "match", Flows: 1}}},
		{"a link with another list", "s3>s2", []lossradar.Tuple{of("11.0.2.5", 23, wire.ProtoTCP)}, []suspect{{Link: "s3>s2", Switch: "s2", List: "other", Seq: 10, Wrong: "action", Flows: 1}}},
		{"a link to somebody else", "s2>s1", []lossradar.Tuple{of("11.0.2.5", 23, wire.ProtoTCP)}, nil},
	} {
		got, left := suspects(doc, map[string][]lossradar.Tuple{c.link: c.lost})
		for i := range got {
			if got[i].Seq != 20 {
				got[i].Rule = ""
			}
		}
		if !slices.Equal(got, c.want) || c.link == "s1>s2" && left != 1 {
			t.Errorf("%s: %+v, %d left out; want %+v", c.what, got, left, c.want)
		}
	}
	var out bytes.Buffer
	printSuspects(&out, []suspect{{Link: "s1>s2", List: "in", Seq: 20, Rule: "telnet", Wrong: "match", Flows: 2}}, 1, 1)
	if s := out.String(); !strings.Contains(s, "telnet") || !strings.Contains(s, "a bit of its match") || !strings.Contains(s, "1 rule looked") {
		t.Error(s)
	}
}

// A range of ports is the same as blocks of them.
func TestBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		p := config.PortRange{Lo: uint16(r.Uint32()), Hi: uint16(r.Uint32())}
		if p.Lo > p.Hi {
			p.Lo, p.Hi = p.Hi, p.Lo
		}
		v := blocks(p)
		for _, port := range []uint16{p.Lo - 1, p.Lo, p.Lo + 1, p.Hi - 1, p.Hi, p.Hi + 1, uint16(r.Uint32())} {
			in := slices.ContainsFunc(v, func(b block) bool { return port&b.mask == b.first })
			if want := p == (config.PortRange{}) || p.Lo <= port && port <= p.Hi; in != want {
				t.Fatalf("%+v as %+v: %d is in it: %t", p, v, port, in)
			}
		}
		if len(v) > 30 {
			t.Errorf("%+v is %d blocks", p, len(v))
		}
	}
}

// Only losses of IPv4 packets and of one cause count.
func TestLossesOfRules(t *testing.T) {
	a := netip.MustParseAddr("10.0.0.1")
	for want, e := range map[bool]collect.Event{true: {What: "blackhole", Src: a, Dst: a}, false: {What: "random", Src: a, Dst: a}} {
		if _, ok := tupleOf(&e, "blackhole"); ok != want {
			t.Errorf("%+v: %t", e, ok)
		}
	}
	if _, ok := tupleOf(&collect.Event{What: "blackhole", Src: netip.IPv6Loopback(), Dst: netip.IPv6Loopback()}, "blackhole"); ok {
		t.Error("IPv6")
	}
}
