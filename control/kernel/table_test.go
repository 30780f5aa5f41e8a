package kernel

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/vswitch"
)

// route is one of the kernel by a hop at link 5, unless hops say otherwise.
func route(prefix string, metric int, hops ...*netlink.NexthopInfo) *netlink.Route {
	_, dst, err := net.ParseCIDR(prefix)
	if err != nil {
		panic(err)
	}
	r := &netlink.Route{Dst: dst, Priority: metric, Table: unix.RT_TABLE_MAIN, Type: unix.RTN_UNICAST, Protocol: unix.RTPROT_BIRD, MultiPath: hops}
	if len(hops) == 1 {
		r.MultiPath, r.LinkIndex, r.Gw, r.Via, r.Flags = nil, hops[0].LinkIndex, hops[0].Gw, hops[0].Via, hops[0].Flags
	}
	return r
}

func by(link int, gw string) *netlink.NexthopInfo {
	return &netlink.NexthopInfo{LinkIndex: link, Gw: net.ParseIP(gw)}
}

// took writes what Take returns.
func took(t *Table) string {
	c := t.Take()
	if c == nil {
		return ""
	}
	s := ""
	if c.Reset {
		s = "reset "
	}
	for _, r := range c.Set {
		s += fmt.Sprint("+", r.Prefix)
		for _, h := range r.NextHops {
			s += fmt.Sprintf(" %v*%d", h.Via, h.Weight)
		}
		if r.Refuse != vswitch.Accept {
			s += " " + r.Refuse.String()
		}
		s += "; "
	}
	for _, p := range c.Delete {
		s += fmt.Sprintf("-%v; ", p)
	}
	return s
}

func TestTable(t *testing.T) {
	x := NewTable()
	x.Ports(map[int]string{5: "p1", 6: "p2"})
	want := func(what, want string) {
		t.Helper()
		if got := took(x); got != want {
			t.Errorf("%s: the switch gets %q, want %q", what, got, want)
		}
	}
	want("nothing", "reset ")
	want("nothing again", "")
	x.Set(route("20.0.0.0/8", 100, by(5, "10.0.0.2")))
	x.Set(route("fd00::/16", 100, by(5, "fe80::2")))
	want("two routes", "+20.0.0.0/8 10.0.0.2*1; +fd00::/16 fe80::2%p1*1; ")
	x.Set(route("20.0.0.0/8", 100, by(5, "10.0.0.2")))
	want("the same again", "")
	x.Set(route("20.0.0.0/8", 50, by(6, "10.0.1.2")))
	want("a smaller metric", "+20.0.0.0/8 10.0.1.2*1; ")
	x.Delete(route("20.0.0.0/8", 50, by(6, "10.0.1.2")))
	want("and its end", "+20.0.0.0/8 10.0.0.2*1; ")
	x.Set(route("20.0.0.0/8", 10, by(9, "192.0.2.1")))
	want("a better way by another interface of the kernel", "-20.0.0.0/8; ")
	x.Delete(route("20.0.0.0/8", 10, by(9, "192.0.2.1")))
	want("and its end", "+20.0.0.0/8 10.0.0.2*1; ")
	x.Set(route("20.0.0.0/8", 10, by(5, "")))
	want("a better way, without a next hop", "-20.0.0.0/8; ")
	gone := by(5, "")
	gone.Flags = unix.RTNH_F_DEAD
	x.Set(route("20.0.0.0/8", 10, gone))
	want("that way is dead", "+20.0.0.0/8 10.0.0.2*1; ")
	x.Set(route("20.0.0.0/8", 100, by(5, "")))
	want("a route by a next hop is replaced by one without", "-20.0.0.0/8; ")
	two := by(6, "10.0.1.2")
	two.Hops = 2
	x.Set(route("20.0.0.0/8", 100, by(5, "10.0.0.2"), two))
	want("two next hops", "+20.0.0.0/8 10.0.0.2*1 10.0.1.2*3; ")
	dead := by(5, "10.0.0.2")
	dead.Flags = unix.RTNH_F_DEAD
	x.Set(route("20.0.0.0/8", 100, dead, two))
	want("one of them dead", "+20.0.0.0/8 10.0.1.2*3; ")
	x.Delete(route("20.0.0.0/8", 100, two))
	want("all gone", "-20.0.0.0/8; ")
	x.Set(route("fd00::/16", 100, by(5, "fe80::2"), by(6, "fe80::3")))
	want("two next hops", "+fd00::/16 fe80::2%p1*1 fe80::3%p2*1; ")
	x.Delete(route("fd00::/16", 100, by(5, "fe80::2")))
	want("one of two next hops of IPv6 goes", "+fd00::/16 fe80::3%p2*1; ")
	v := by(5, "")
	v.Gw, v.Via = nil, &netlink.Via{AddrFamily: unix.AF_INET6, Addr: net.ParseIP("fe80::9")}
	x.Set(route("30.0.0.0/8", 0, v))
	want("IPv4 by IPv6", "+30.0.0.0/8 fe80::9%p1*1; ")
	hole := route("40.0.0.0/8", 0)
	hole.Type = unix.RTN_BLACKHOLE
	x.Set(hole)
	want("a black hole", "+40.0.0.0/8 blackhole; ")
	x.Begin()
	x.Set(route("50.0.0.0/8", 0, by(5, "10.0.0.2")))
	x.Set(hole)
	x.End()
	want("a list of what there is", "+50.0.0.0/8 10.0.0.2*1; -30.0.0.0/8; -fd00::/16; ")
	if x.Ports(map[int]string{5: "p1", 6: "p2"}) || !x.Ports(map[int]string{6: "p2"}) {
		t.Error("a change of ports was missed, or found where there is none")
	}
	want("the twin is gone", "+40.0.0.0/8 blackhole; -50.0.0.0/8; ")
}

// What belongs to the kernel itself, or to others, is left alone.
func TestTableLeavesOut(t *testing.T) {
	x := NewTable()
	x.Ports(map[int]string{5: "p1"})
	took(x)
	for what, change := range map[string]func(*netlink.Route){
		"another table":   func(r *netlink.Route) { r.Table = 100 },
		"the kernel's":    func(r *netlink.Route) { r.Protocol = unix.RTPROT_KERNEL },
		"a redirect":      func(r *netlink.Route) { r.Protocol = unix.RTPROT_REDIRECT },
		"of a router":     func(r *netlink.Route) { r.Protocol = unix.RTPROT_RA },
		"a local address": func(r *netlink.Route) { r.Type = unix.RTN_LOCAL },
		"no next hop":     func(r *netlink.Route) { r.Gw = nil },
		"another link":    func(r *netlink.Route) { r.LinkIndex = 1 },
	} {
		r := route("20.0.0.0/8", 0, by(5, "10.0.0.2"))
		change(r)
		x.Set(r)
		if got := took(x); got != "" {
			t.Errorf("%s: the switch gets %q", what, got)
		}
		x.Delete(r)
	}
	x.Set(&netlink.Route{Family: unix.AF_INET, LinkIndex: 5, Gw: net.ParseIP("10.0.0.2"), Table: unix.RT_TABLE_MAIN, Type: unix.RTN_UNICAST})
	if got := took(x); got != "+0.0.0.0/0 10.0.0.2*1; " {
		t.Errorf("a default route is %q", got)
	}
}

// BenchmarkTable is what it takes to read routes that a daemon sets.
func BenchmarkTable(b *testing.B) {
	var all []*netlink.Route
	for i := range 100_000 {
		all = append(all, route(netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(20 + i>>16), byte(i >> 8), byte(i), 0}), 24).String(), 32, by(5, "10.0.0.2")))
	}
	for b.Loop() {
		x := NewTable()
		x.Ports(map[int]string{5: "p1"})
		n := 0
		for part := range slices.Chunk(all, batch) {
			for _, r := range part {
				x.Set(r)
			}
			n += len(x.Take().Set)
		}
		if n != len(all) {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(len(all))*float64(b.N)/b.Elapsed().Seconds(), "routes/s")
}
