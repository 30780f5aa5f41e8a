package vswitch

import (
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

func rule(set func(*pipeline.Match), prio int, a pipeline.Action) ACLRule {
	r := ACLRule{Priority: prio, Action: a}
	if set != nil {
		set(&r.Match)
	}
	return r
}

// aclConfig is a bridge of three ports whose port 0 has a list.
func aclConfig(rules ...ACLRule) *Config {
	cfg := baseConfig(3)
	cfg.ACLs = []ACL{{Name: "in", Rules: rules, Default: pipeline.Action{Ops: pipeline.OpPermit}}}
	cfg.Ports[0].ACL = "in"
	cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 1}}
	return cfg
}

func to(ip string) func(*pipeline.Match) {
	return func(m *pipeline.Match) { m.MatchDstIP(netip.MustParsePrefix(ip)) }
}

func TestACLPriorityAndCount(t *testing.T) {
	r := newRig(t, aclConfig(
		rule(to("10.0.0.0/24"), 1, pipeline.Action{Ops: pipeline.OpDrop}),
		rule(to("10.0.0.2/32"), 2, pipeline.Action{Ops: pipeline.OpPermit | pipeline.OpCount}),
	))
	f := l2(2, 1)
	r.in(0, f, f)
	if got := len(r.out(1)); got != 2 {
		t.Errorf("%d frames passed, want 2", got)
	}
	r.in(0, udp(hostMAC(2), hostMAC(1), "10.0.0.3", "10.0.0.1"))
	r.wantDrop(0, frame.ACLDrop)
	var got []Traffic
	for _, rl := range []int{0, 1} {
		got = append(got, r.sw.Nodes[0].RuleCounts(nil)[r.sw.Program().acls[0].count[rl]])
	}
	if got[0].Frames != 1 || got[1].Frames != 2 || got[1].Bytes != uint64(2*len(f)) {
		t.Errorf("entries counted %v", got)
	}
}

func TestACLRewritesRedirectsMirrors(t *testing.T) {
	cfg := aclConfig(
		rule(to("10.0.0.2/32"), 1, pipeline.Action{Ops: pipeline.OpSetDSCP | pipeline.OpSetClass | pipeline.OpMirror, DSCP: 46, Class: 5}),
		rule(to("10.0.0.3/32"), 1, pipeline.Action{Ops: pipeline.OpRedirect, Port: 2}),
	)
	cfg.Mirrors = []Mirror{{Name: "m", Port: 2, Truncate: 50}}
	r := newRig(t, cfg)
	f := l2(2, 1)
	r.in(0, f)
	b := r.one(1)
	if h := wire.IPv4(b[14:]); h.DSCP() != 46 || !h.ChecksumOK() {
		t.Errorf("DSCP %d, checksum right: %v", h.DSCP(), h.ChecksumOK())
	}
	if st := r.sw.Nodes[0].Scheduler(1).Stats(r.now, 5, false); st.DequeuedFrames != 1 {
		t.Error("the frame did not pass queue 5")
	}
	if m := r.one(2); string(m) != string(f[:50]) {
		t.Errorf("mirror copy is %x, want the first 50 bytes as received", m)
	}
	r.in(0, udp(hostMAC(2), hostMAC(1), "10.0.0.3", "10.0.0.1"))
	r.one(2)
	r.none(1)
}

func TestACLPolices(t *testing.T) {
	cfg := aclConfig(ACLRule{Match: pipeline.Match{}, Action: pipeline.Action{Ops: pipeline.OpPermit}, Police: &Police{Rate: 8_000_000, Burst: 10_000}})
	r := newRig(t, cfg)
	passed := 0
	f := wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1, 2), wt.Zeros(958)) // 1000 bytes
	for range 1000 {
		r.advance(frame.Millisecond) // one frame's worth
		r.in(0, f, f)
		passed += len(r.out(1))
	}
	if passed < 1005 || passed > 1015 {
		t.Errorf("%d frames of 1000 bytes passed in a second at 1 MB/s and 10 kB burst", passed)
	}
}

// A reload keeps counters of rules that stay, learned addresses and queued
// frames; a bad one changes nothing.
func TestApplyKeepsState(t *testing.T) {
	named := func(n string, r ACLRule) ACLRule { r.Name = n; return r }
	a := named("a", rule(to("10.0.0.2/32"), 2, pipeline.Action{Ops: pipeline.OpPermit | pipeline.OpCount}))
	b := named("b", rule(to("10.9.0.0/16"), 1, pipeline.Action{Ops: pipeline.OpDrop}))
	cfg := aclConfig(a)
	r := newRig(t, cfg)
	r.in(2, l2(9, 7)) // learn 7 on port 2
	r.out(0)
	r.out(1)
	r.in(0, l2(2, 1)) // stays queued
	next := *cfg
	next.ACLs = []ACL{{Name: "in", Rules: []ACLRule{b, a}, Default: pipeline.Action{Ops: pipeline.OpPermit}}}
	if err := r.sw.Apply(&next); err != nil {
		t.Fatal(err)
	}
	r.runAll()
	r.in(0, l2(2, 1))
	if got := len(r.out(1)); got != 2 {
		t.Errorf("%d frames came out, want the one queued before and the one after", got)
	}
	r.in(0, l2(7, 1))
	r.one(2)
	p := r.sw.Program()
	if got := r.sw.Nodes[0].RuleCounts(nil)[p.acls[0].count[1]].Frames; got != 3 {
		t.Errorf("rule a counted %d frames over the reload, want 3", got)
	}
	bad := next
	bad.Ports = append([]PortConfig(nil), next.Ports...)
	bad.Ports[1].ACL = "nowhere"
	if err := r.sw.Apply(&bad); err == nil {
		t.Error("a port with an unknown access list was accepted")
	}
	if r.sw.Program() != p {
		t.Error("a refused configuration changed the program")
	}
}
