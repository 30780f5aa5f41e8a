package collect

import (
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/mirror"
)

// What traced packets show is counted by link, with the bytes and in four classes of delays,
// and by the filters of counters: of packets that were dropped, too.
func TestCountersByLinkAndFilter(t *testing.T) {
	n := lineOf(t, "l3")
	for name, filter := range map[string]string{"web": "tcp.dstport == 80", "s2": "switch == s2", "dropped": "drop"} {
		if err := n.Count(name, filter); err != nil {
			t.Fatal(err)
		}
	}
	for name, filter := range map[string]string{"web": "tcp", "a b": "tcp", "bad": "tcp.dstport ==", "nowhere": "switch == s9"} {
		if err := n.Count(name, filter); err == nil {
			t.Errorf("a counter %q of %q is taken", name, filter)
		}
	}
	a := NewAnalysis(n)
	at := func(name string) netip.Addr {
		i, _ := n.plan.Topology.Lookup(name)
		return n.plan.Nodes[i].Loopback[0]
	}
	s1, s2 := at("s1"), at("s2")
	pass := func(port uint16, bytes uint16, took frame.Time) *mirror.Trace {
		return &mirror.Trace{Key: mirror.Key{Proto: 6, DstPort: port}, Hops: []mirror.Hop{
			{Switch: s1, At: frame.Second, TTL: 64, Bytes: bytes}, {Switch: s2, At: frame.Second + took, TTL: 63, Bytes: bytes}}}
	}
	for _, x := range []*mirror.Trace{
		pass(80, 1500, 99*frame.Microsecond), pass(80, 40, 100*frame.Microsecond), pass(443, 100, 999*frame.Microsecond), pass(443, 60, frame.Millisecond),
		{Key: mirror.Key{Proto: 6, DstPort: 80}, Dropped: []mirror.Hop{{Switch: s1, TTL: 64, Bytes: 700, Reason: frame.NoRoute}}},
		{Key: mirror.Key{Proto: 6, DstPort: 80}, Hops: []mirror.Hop{{Switch: s2, TTL: 64, Bytes: 9}, {Switch: s1, TTL: 62, Bytes: 9}}}, // another hop is missing
		pass(443, 1, -frame.Microsecond), // clocks are apart
		{Key: mirror.Key{Proto: 6, DstPort: 443}, Hops: []mirror.Hop{{Switch: s1, TTL: 64, Opens: true}, {Switch: s2, TTL: 63, Opens: true}}},
		{Key: mirror.Key{Proto: 6, DstPort: 443}, Hops: []mirror.Hop{{Switch: s1, TTL: 64, Bytes: 1}, {Switch: s2, TTL: 63, Bytes: 1}}}, // without stamps
		{Key: mirror.Key{Proto: 6, DstPort: 443}, Hops: []mirror.Hop{{Switch: s1, TTL: 64, Bytes: 1}, {Switch: s1, TTL: 63, Bytes: 1}}}, // there is no such link
	} {
		a.count(x)
	}
	for s, want := range map[Stat]uint64{
		{tracedLinks, "s1>s2"}: 7, {tracedFlows, "s1>s2"}: 1, {tracedBytes, "s1>s2"}: 1702, {tracedLinks, "s2>s1"}: 0, {tracedLinks, "s1>s1"}: 0,
		{tracedDelays, "s1>s2 100us"}: 2, {tracedDelays, "s1>s2 500us"}: 1, {tracedDelays, "s1>s2 1ms"}: 1, {tracedDelays, "s1>s2 more"}: 1,
		{countedPackets, "web"}: 4, {countedBytes, "web"}: 2249, {countedPackets, "s2"}: 8, {countedPackets, "dropped"}: 1, {countedBytes, "dropped"}: 700,
	} {
		if got := a.stats[s]; got != want {
			t.Errorf("%v: %d, want %d", s, got, want)
		}
	}
	if v := families[tracedDelays].labels("s1>s2 100us"); len(v) != 2 || v[0] != "s1>s2" || v[1] != "100us" {
		t.Errorf("labels %q", v)
	}
}
