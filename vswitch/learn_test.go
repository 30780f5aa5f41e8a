package vswitch

import (
	"fmt"
	"net/netip"
	"testing"

	"gswitch/wire"
)

func via(prefix string, hops ...string) Route {
	r := Route{Prefix: netip.MustParsePrefix(prefix)}
	for _, h := range hops {
		r.NextHops = append(r.NextHops, NextHop{Via: netip.MustParseAddr(h), Weight: 1})
	}
	return r
}

// reaches sends a packet from port 0 and reports whether it leaves by port 1.
func (r *rig) reaches(dst string) bool {
	r.in(0, udp(selfMAC, hostMAC(1), dst, "10.0.0.9"))
	r.out(0)
	return len(r.out(1)) == 1
}

func learnRig(t *testing.T) *rig {
	cfg := routerConfig()
	cfg.Neighbors = []StaticNeighbor{{Addr: netip.MustParseAddr("10.0.1.2"), MAC: hostMAC(2)}}
	cfg.Routes = []Route{{Prefix: netip.MustParsePrefix("20.0.0.0/8"), Refuse: Blackhole}}
	return newRig(t, cfg)
}

func (r *rig) do(c Change) {
	r.t.Helper()
	if err := r.sw.Do(c); err != nil {
		r.t.Fatal(err)
	}
	r.runAll()
}

func TestLearnsRoutes(t *testing.T) {
	r := learnRig(t)
	c := &LearnRoutes{Set: []Route{via("30.0.0.0/8", "10.0.1.2"), via("20.0.0.0/8", "10.0.1.2"), via("10.0.1.0/24", "10.0.1.2"), via("40.0.0.0/8", "172.16.0.1")}}
	r.do(c)
	if c.Unused != 1 {
		t.Errorf("%d routes lead nowhere, want 1", c.Unused)
	}
	if !r.reaches("30.1.1.1") || r.reaches("20.1.1.1") || r.reaches("40.1.1.1") {
		t.Error("a learned route does not lead, or hides a configured one")
	}
	next := *r.sw.Program().Config
	next.Routes = nil
	r.do(Apply{Config: &next})
	if !r.reaches("30.1.1.1") || !r.reaches("20.1.1.1") {
		t.Error("learned routes did not outlive a new configuration, or stay hidden by one that is gone")
	}
	r.do(SetRoute{Route{Prefix: netip.MustParsePrefix("30.0.0.0/8"), Refuse: Blackhole}})
	if r.reaches("30.1.1.1") {
		t.Error("a configured route does not hide the learned one")
	}
	r.do(DeleteRoute{netip.MustParsePrefix("30.0.0.0/8")})
	if !r.reaches("30.1.1.1") {
		t.Error("a learned route did not come back")
	}
	if err := r.sw.Do(DeleteRoute{netip.MustParsePrefix("30.0.0.0/8")}); err == nil {
		t.Error("a learned route was deleted as a configured one")
	}
	r.do(&LearnRoutes{Delete: []netip.Prefix{netip.MustParsePrefix("30.0.0.0/8"), netip.MustParsePrefix("10.0.1.0/24"), netip.MustParsePrefix("99.0.0.0/8")}})
	if r.reaches("30.1.1.1") || !r.reaches("20.1.1.1") || !r.reaches("10.0.1.2") {
		t.Error("a withdrawn route still leads, or one that was not withdrawn is gone")
	}
	r.do(&LearnRoutes{Reset: true, Set: []Route{via("50.0.0.0/8", "10.0.1.2")}})
	if r.reaches("20.1.1.1") || !r.reaches("50.1.1.1") {
		t.Error("a reset left what was there, or lost what came with it")
	}
	// A next hop whose network is gone leads nowhere, whatever it did before.
	r.do(&LearnRoutes{Set: []Route{via("50.0.0.0/8", "172.16.0.1")}})
	if r.reaches("50.1.1.1") {
		t.Error("a route still leads by what it was")
	}
}

func TestLearnedRoutesAreBounded(t *testing.T) {
	r := learnRig(t)
	if err := r.sw.Do(&LearnRoutes{Set: make([]Route, MaxLearned+1)}); err == nil {
		t.Error("more routes than there may be")
	}
}

// learns fails the test unless the switch has learned n routes, before and after a
// rebuild of its program enters them again.
func (r *rig) learns(n int, what string) {
	r.t.Helper()
	if got, _ := r.sw.LearnedUse(); got != n {
		r.t.Errorf("%s: %d routes are learned, want %d", what, got, n)
	}
	r.do(Apply{Config: r.sw.Program().Config})
	if got, _ := r.sw.LearnedUse(); got != n {
		r.t.Errorf("%s: %d routes are learned after Apply, want %d", what, got, n)
	}
}

// A change that was prepared, but never carried out, teaches and withdraws nothing.
func TestPreparedRoutesAreNotLearned(t *testing.T) {
	r := learnRig(t)
	prefix := netip.MustParsePrefix
	r.do(&LearnRoutes{Set: []Route{via("30.0.0.0/8", "10.0.1.2"), via("40.0.0.0/8", "10.0.1.2")}})
	r.learns(2, "carried out")
	for _, c := range []*LearnRoutes{
		{Set: []Route{via("50.0.0.0/8", "10.0.1.2")}},
		{Delete: []netip.Prefix{prefix("30.0.0.0/8")}},
		{Reset: true},
		{Set: []Route{{Prefix: prefix("40.0.0.0/8"), Refuse: Blackhole}}},
	} {
		if _, err := r.sw.Prepare(c); err != nil {
			t.Fatal(err)
		}
		r.learns(2, "never carried out")
		if !r.reaches("30.1.1.1") || !r.reaches("40.1.1.1") || r.reaches("50.1.1.1") {
			t.Errorf("%+v was never carried out, and a new program has it", c)
		}
	}
	command, err := r.sw.Prepare(&LearnRoutes{
		Set:    []Route{via("30.0.0.0/8", "10.0.1.2"), via("50.0.0.0/8", "10.0.1.2"), via("50.1.2.3/8", "10.0.1.2")},
		Delete: []netip.Prefix{prefix("30.0.0.0/8"), prefix("40.1.0.0/8"), prefix("40.0.0.0/8"), prefix("99.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := r.sw.LearnedUse(); n != 2 {
		t.Errorf("%d routes are learned before the command, want 2", n)
	}
	command.Do(0)
	r.learns(2, "30/8 again, 50/8 for 40/8")
	if !r.reaches("30.1.1.1") || r.reaches("40.1.1.1") || !r.reaches("50.1.1.1") {
		t.Error("the command did not do what was prepared")
	}
	r.do(&LearnRoutes{Reset: true, Set: []Route{via("50.0.0.0/8", "10.0.1.2")}})
	r.learns(1, "reset")
}

// A peer that announces and withdraws ever new prefixes reaches a limit; those
// that are known go on.
func TestEverNewPrefixesAreBounded(t *testing.T) {
	r := learnRig(t)
	r.do(&LearnRoutes{Set: []Route{via("30.0.0.0/8", "10.0.1.2")}})
	r.sw.ids.routes.most = r.sw.ids.routes.len() + 100
	refused := 0
	for i := range 200 {
		prefix := fmt.Sprintf("60.0.%d.0/24", i)
		c := &LearnRoutes{Set: []Route{via(prefix, "10.0.1.2")}}
		r.do(c)
		refused += c.Refused
		r.do(&LearnRoutes{Delete: []netip.Prefix{netip.MustParsePrefix(prefix)}})
	}
	if refused != 100 || r.sw.ids.routes.len() != r.sw.ids.routes.most {
		t.Errorf("%d prefixes are refused, and %d have numbers, of %d that may", refused, r.sw.ids.routes.len(), r.sw.ids.routes.most)
	}
	again := &LearnRoutes{Set: []Route{via("60.0.7.0/24", "10.0.1.2"), via("61.0.0.0/24", "10.0.1.2")}}
	r.do(again)
	if again.Refused != 1 || !r.reaches("60.0.7.1") || r.reaches("61.0.0.1") || !r.reaches("30.1.1.1") {
		t.Errorf("%d refused: what is known does not lead, or what is new does", again.Refused)
	}
}

// Two workers see the same routes, and a record of the change is the change.
func TestLearnedByAllWorkers(t *testing.T) {
	cfg := routerConfig()
	cfg.Ports[1].Worker = 1
	cfg.Neighbors = []StaticNeighbor{{Addr: netip.MustParseAddr("10.0.1.2"), MAC: hostMAC(2)}}
	r := newRigOf(t, cfg, 2, 4096)
	c, err := DecodeChange((&LearnRoutes{Set: []Route{via("30.0.0.0/8", "10.0.1.2")}}).Encode(nil))
	if err != nil {
		t.Fatal(err)
	}
	r.do(c)
	r.inOn(1, 0, udp(selfMAC, hostMAC(1), "30.1.1.1", "10.0.0.9"))
	if got := r.one(1); wire.Ethernet(got).Dst() != hostMAC(2) {
		t.Errorf("%x", got)
	}
}

// BenchmarkLearnRoutes is the rate at which routes of a daemon come in force, in
// batches as the netlink reader makes them.
func BenchmarkLearnRoutes(b *testing.B) {
	const batch = 16384
	var all []Route
	for i := range 100_000 {
		r := Route{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(20 + i>>16), byte(i >> 8), byte(i), 0}), 24)}
		r.NextHops = []NextHop{{Via: netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", i%2, 2+i%50)), Weight: 1}}
		all = append(all, r)
	}
	for b.Loop() {
		r := newRig(b, routerConfig())
		for i := 0; i < len(all); i += batch {
			if err := r.sw.Do(&LearnRoutes{Set: all[i:min(i+batch, len(all))]}); err != nil {
				b.Fatal(err)
			}
		}
		if n := r.sw.Program().routing.table.Len(); n < len(all) {
			b.Fatalf("%d routes", n)
		}
	}
	b.ReportMetric(float64(len(all))*float64(b.N)/b.Elapsed().Seconds(), "routes/s")
}
