package vswitch

import (
	"bytes"
	"net/netip"
	"testing"

	"gswitch/command/commandtest"
	"gswitch/frame"
	"gswitch/pipeline"
	wt "gswitch/wire/wiretest"
)

func someChanges() []Change {
	kind := pipeline.ChooseFlowlet
	return []Change{
		SetRoute{Route{Prefix: netip.MustParsePrefix("10.9.0.0/16"), NextHops: []NextHop{{Via: netip.MustParseAddr("10.0.1.2"), Weight: 3}, {Via: netip.MustParseAddr("fd00::2")}}, Choose: &kind}},
		SetRoute{Route{Prefix: netip.MustParsePrefix("fd00::/8"), Refuse: Blackhole}},
		SetRoute{Route{Prefix: netip.MustParsePrefix("10.1.0.0/16"), NextHops: []NextHop{{Via: netip.MustParseAddr("fe80::1%p1"), Weight: 1}}}},
		SetRoute{Route{Prefix: netip.MustParsePrefix("10.2.0.0/16"), Refuse: Prohibit}},
		DeleteRoute{netip.MustParsePrefix("0.0.0.0/0")},
		&LearnRoutes{Reset: true, Set: []Route{{Prefix: netip.MustParsePrefix("10.3.0.0/16"), NextHops: []NextHop{{Via: netip.MustParseAddr("10.0.1.2"), Weight: 1}}}}, Delete: []netip.Prefix{netip.MustParsePrefix("fd00::/8")}},
		&FlushFDB{},
		TakeReports{},
		TakeReports{System: "flows"},
		Apply{Document: []byte("version: 1\n")},
	}
}

func TestChangesAreEncoded(t *testing.T) {
	commandtest.Encoded(t, someChanges(), DecodeChange)
	// The form outlives the version: records that were made keep their meaning.
	if got := someChanges()[0].Encode(nil); !bytes.Equal(got, []byte{1, 4, 10, 9, 0, 0, 16, 2, byte(pipeline.ChooseFlowlet), 2, 4, 10, 0, 1, 2, 3, 16, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0}) {
		t.Errorf("a route is encoded as %d", got)
	}
}

func FuzzDecodeChange(f *testing.F) { commandtest.Fuzz(f, someChanges(), DecodeChange) }

// A command changes nothing before it is carried out, and carries out what was
// encoded: on a second switch the decoded changes do the same.
func TestCommandsAreCarriedOut(t *testing.T) {
	r, twin := newRig(t, routerConfig()), newRig(t, routerConfig())
	to := func(x *rig) int {
		x.in(0, udp(selfMAC, hostMAC(1), "10.9.1.1", "10.0.0.9", wt.TTL(9)))
		return len(x.out(1)) // a question for the next hop's address
	}
	route := SetRoute{Route{Prefix: netip.MustParsePrefix("10.9.0.0/16"), NextHops: []NextHop{{Via: netip.MustParseAddr("10.0.1.77")}}}}
	cmd, err := r.sw.Prepare(route)
	if err != nil {
		t.Fatal(err)
	}
	if to(r) != 0 {
		t.Error("the route is in force before the command was carried out")
	}
	cmd.Do(r.now)
	back, err := DecodeChange(cmd.Encode(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := twin.sw.Do(back); err != nil {
		t.Fatal(err)
	}
	r.runAll()
	twin.runAll()
	if to(r) != 1 || to(twin) != 1 {
		t.Error("the route is not in force after the command was carried out")
	}
	for _, bad := range []Change{DeleteRoute{netip.MustParsePrefix("1.0.0.0/8")}, Apply{Config: &Config{Name: "s", Ports: []PortConfig{{Name: "a", Worker: 5}}}}} {
		before := r.sw.Program()
		if _, err := r.sw.Prepare(bad); err == nil || r.sw.Program() != before {
			t.Errorf("%T was not refused, or changed something: %v", bad, err)
		}
	}
	r.sw.FDB().Learn(r.now, 5, 1)
	flush := &FlushFDB{}
	if cmd, err = r.sw.Prepare(flush); err != nil || r.sw.FDB().Len() != 1 {
		t.Fatalf("%d addresses before the flush, %v", r.sw.FDB().Len(), err)
	}
	if cmd.Do(r.now); flush.Removed != 1 || r.sw.FDB().Len() != 0 {
		t.Errorf("%d removed, %d left", flush.Removed, r.sw.FDB().Len())
	}
	var _ frame.Command = cmd
}
