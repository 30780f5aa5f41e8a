package mirror

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// filtered are the packets that filters are tried on: one of TCP that arrives, one of
// UDP that a switch drops, and one that is tunnelled and loops.
func filtered() map[string]*Trace {
	sw := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 10, 0, n}) }
	return map[string]*Trace{
		"tcp": {Key: Key{Src: [4]byte{10, 0, 1, 2}, Dst: [4]byte{10, 0, 2, 3}, SrcPort: 4000, DstPort: 80, ID: 7, Proto: 6},
			Hops: []Hop{{Switch: sw(1), At: 1000, TTL: 64, From: wire.MAC{2, 0, 0, 0, 0, 1}}, {Switch: sw(2), At: 251_000, TTL: 63, DSCP: 1}}, Debug: true},
		"udp": {Key: Key{Src: [4]byte{10, 0, 1, 2}, Dst: [4]byte{10, 0, 3, 3}, SrcPort: 80, DstPort: 53, Proto: 17},
			Dropped: []Hop{{Switch: sw(1), TTL: 64, Reason: frame.NoRoute}}},
		"loop": {Key: Key{Src: [4]byte{10, 0, 2, 3}, Dst: [4]byte{10, 0, 1, 2}, SrcPort: 80, DstPort: 4000, Proto: 6}, Lost: true, Gaps: 2, Loop: []netip.Addr{sw(3)},
			Hops: []Hop{{Switch: sw(3), TTL: 60, Depth: 1, OuterDst: [4]byte{10, 9, 0, 1}, Port: 4}, {Switch: sw(3), TTL: 58, Depth: 1, OuterDst: [4]byte{10, 9, 0, 1}}}},
	}
}

// named are the switches that the tests' filters know.
func named(name string) []netip.Addr {
	if name == "leaf-1" {
		return []netip.Addr{netip.MustParseAddr("10.10.0.1"), netip.MustParseAddr("10.1.1.1")}
	}
	return nil
}

func TestFilter(t *testing.T) {
	for text, want := range map[string]string{
		"ip.dst == 10.0.0.0/16":                   "loop tcp udp",
		"ip.dst == 10.0.2.0/24":                   "tcp",
		"ip.src != 10.0.1.2":                      "loop",
		"ip.proto == 6 && ip.dst == 10.0.2.3":     "tcp",
		"ip.proto == udp":                         "udp",
		"tcp":                                     "loop tcp",
		"tcp.dstport == 80":                       "tcp",
		"tcp.port == 80":                          "loop tcp",
		"tcp.srcport == 80 || udp.srcport == 80":  "loop udp",
		"tcp.port != 80":                          "udp",
		"udp.dstport < 54 and udp.port >= 80":     "udp",
		"switch == 10.10.0.1":                     "tcp udp",
		"switch == leaf-1 && switch == 10.10.0.2": "tcp",
		"switch != leaf-1":                        "loop",
		"loop":                                    "loop",
		"!loop":                                   "tcp udp",
		"not (loop or drop)":                      "tcp",
		"drop && reason == no-route":              "udp",
		"lost && missing >= 2 && hops == 2":       "loop",
		"delay > 200us":                           "tcp",
		"delay >= 250us && delay <= 250us && delay == 250us": "tcp",
		"ip.ttl == 63 && ip.ttl == 64":                       "tcp",
		"ip.id == 0x7":                                       "tcp",
		"ip.dscp == 1":                                       "tcp",
		"debug":                                              "tcp",
		"tunnel.dst == 10.9.0.0/24":                          "loop",
		"tunnel.dst != 10.9.0.0/24":                          "tcp udp",
		"eth.src == 02:00:00:00:00:01":                       "tcp",
		"port == 4":                                          "loop",
		// && binds before ||.
		"udp || tcp && loop": "loop udp",
		"(udp||tcp)&&loop":   "loop",
	} {
		f, err := ParseFilter(text, named)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, name := range []string{"loop", "tcp", "udp"} {
			if f.Match(filtered()[name]) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s chooses %v, want %s", text, got, want)
		}
	}
}

func TestFilterErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "something is missing: the fields are",
		"ip.dts == 10.0.0.1":             "ip.dts: the fields are",
		"ip.dst":                         "ip.dst is to be compared",
		"ip.dst < 10.0.0.1":              "is equal or not",
		"ip.dst == 10.0.0":               "neither an address nor a network",
		"ip.dst == fd00::1":              "neither an address nor a network",
		"ip.dst == leaf-1":               "neither an address nor a network",
		"switch == leaf-2":               `there is no switch "leaf-2"`,
		"switch ==":                      "neither an address",
		"tcp.port == http":               "no number",
		"ip.proto == sctp":               "no number nor one of icmp, tcp, udp",
		"ip.ttl == 99999999999":          "no number",
		"delay > fast":                   "no time, such as 100us",
		"eth.src == 02:00":               "no station",
		"(tcp":                           "a ) is missing",
		"tcp udp":                        `"udp" is not expected`,
		"tcp &&":                         "something is missing",
		"tcp & udp":                      `"&" is not expected`,
		strings.Repeat("!", 100) + "tcp": "nested more than 64 deep",
		strings.Repeat("(", 1e6):         "nested more than 64 deep",
	} {
		_, err := ParseFilter(text, named)
		var e *FilterError
		if !errors.As(err, &e) || !strings.Contains(e.Why, want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
	_, err := ParseFilter("tcp && ip.dts == 1", named)
	if e := err.(*FilterError); e.Pos != 7 {
		t.Errorf("wrong at %d", e.Pos)
	}
}

// Whatever is written, it is read or refused, and what is read chooses a packet or its
// opposite does.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"ip.dst == 10.0.0.0/16 && !(tcp.port == 80 || delay > 1ms)", "switch != leaf-1 and not loop", "eth.src == 02:00:00:00:00:01", "reason == no-route", "((", "ip.ttl>=0x40"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseFilter(text, named)
		if err != nil {
			var e *FilterError
			if !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(text) {
				t.Fatalf("%v", err)
			}
			return
		}
		b, err := ParseFilter("!("+text+")", named)
		if err != nil {
			if strings.Contains(err.Error(), "deep") {
				return
			}
			t.Fatalf("%q is read, and its opposite is not: %v", text, err)
		}
		for name, tr := range filtered() {
			if a.Match(tr) == b.Match(tr) {
				t.Errorf("%q and its opposite choose alike: %s", text, name)
			}
		}
	})
}
