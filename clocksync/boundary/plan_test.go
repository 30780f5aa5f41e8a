package boundary

import (
	"slices"
	"strings"
	"testing"

	"gswitch/clocksync"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
)

// controlled is a switch with a clock that waits for a controller.
func controlled(t *testing.T) *st.Rig {
	t.Helper()
	cfg := st.Star()
	times := clocksync.Times{Domain: clocksync.DefaultDomain, Interval: 10e6, Uncertainty: clocksync.Uncertainty{Hop: 20e3, Drift: 200}, Late: 1}
	o, err := (&Section{Controlled: true, Times: times, Hops: 1}).Options(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Options = cfg.Options.With(Name, o)
	return st.New(t, cfg)
}

// plan has the switch carry out a stage, as a daemon does.
func plan(t *testing.T, r *st.Rig, p feature.ClockPlan) error {
	t.Helper()
	c := &feature.TakePlan{ClockPlan: p}
	if err := r.Switch.DoAt(r.Now, &vswitch.CallFeature{Feature: Name, Call: c}); err != nil {
		t.Fatal(err)
	}
	return c.Refused
}

// syncs are the ports by which messages leave.
func syncs(t *testing.T, r *st.Rig) (ports []uint16) {
	t.Helper()
	for p := range uint16(3) {
		if slices.ContainsFunc(messages(t, r, p), func(f clocksync.Packet) bool { return f.Type == wire.PTPSync }) {
			ports = append(ports, p)
		}
	}
	return ports
}

// A controlled clock does nothing of itself. It takes a plan stage by stage: it sends by the
// ports of both plans before it follows the new one, and by those of the new one alone last.
func TestPlanIsTaken(t *testing.T) {
	r := controlled(t)
	c := Of(r.Switch.Nodes[0])
	r.Advance(50 * frame.Millisecond)
	if v := syncs(t, r); v != nil || c.State() != clocksync.Unsynced || c.Counts.FlipTimeout != 0 {
		t.Fatalf("%v by itself, messages by %v", c.State(), v)
	}
	step := func(p feature.ClockPlan, want ...uint16) {
		t.Helper()
		if err := plan(t, r, p); err != nil {
			t.Fatal(err)
		}
		syncs(t, r)
		r.Advance(10 * frame.Millisecond)
		if v := syncs(t, r); !slices.Equal(v, want) {
			t.Errorf("%s of plan %d: messages by %v, not %v", p.Stage, p.Epoch, v, want)
		}
	}
	first := feature.ClockPlan{Epoch: 3, Root: true, Parent: -1, Second: -1, Send: []int{0, 1}}
	first.Stage = feature.Widen
	step(first)
	first.Stage = feature.Take
	step(first, 0, 1)
	first.Stage = feature.Narrow
	step(first, 0, 1)
	if v := c.View(int64(r.Now)); v.State != "root" || v.Plan.Epoch != 3 || !v.Awaits {
		t.Errorf("%+v", v)
	}
	second := first
	second.Epoch, second.Send = 4, []int{1, 2}
	second.Stage = feature.Widen
	step(second, 0, 1, 2)
	second.Stage = feature.Take
	step(second, 0, 1, 2)
	second.Stage = feature.Narrow
	step(second, 1, 2)
}

// A controller that was replaced changes nothing, at whichever stage, and neither does one that leaves
// a stage out.
func TestPlansOfWhoWasReplaced(t *testing.T) {
	r := controlled(t)
	c := Of(r.Switch.Nodes[0])
	at := func(epoch uint32, s feature.ClockStage) feature.ClockPlan {
		return feature.ClockPlan{Epoch: epoch, Stage: s, Parent: int(epoch % 2), Second: 2, Hops: 1, MostHops: 3}
	}
	refused := func(p feature.ClockPlan, why string) {
		t.Helper()
		before := c.View(0)
		if err := plan(t, r, p); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s of plan %d: %v", p.Stage, p.Epoch, err)
		}
		if v := c.View(0); v.Plan.Epoch != before.Plan.Epoch || v.Parent != before.Parent || v.Promised != before.Promised {
			t.Errorf("%s of plan %d was refused, and changed %+v to %+v", p.Stage, p.Epoch, before, v)
		}
	}
	refused(at(1, feature.Take), "has not begun")
	refused(at(0, feature.Widen), "epoch of 1")
	for _, s := range []feature.ClockStage{feature.Widen, feature.Take} {
		if err := plan(t, r, at(4, s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := plan(t, r, at(7, feature.Widen)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []feature.ClockStage{feature.Widen, feature.Take, feature.Narrow} {
		refused(at(6, s), "was replaced")
	}
	refused(at(4, feature.Narrow), "was replaced")
	refused(at(7, feature.Narrow), "was not taken")
	bad := at(7, feature.Take)
	bad.Send = []int{200}
	refused(bad, "no port 200")
	if err := plan(t, r, at(7, feature.Take)); err != nil || c.Parent() != 1 {
		t.Errorf("port %d, %v", c.Parent(), err)
	}

	// A clock that has its place from its document is not that of a plan.
	r = st.New(t, config())
	c = Of(r.Switch.Nodes[0])
	refused(at(9, feature.Widen), "controlled: true")
}

// A clock is as uncertain as the hops that its message made, if these are more than its plan
// says: its parent may follow another one.
func TestHopsBeyondThePlan(t *testing.T) {
	r := controlled(t)
	c := Of(r.Switch.Nodes[0])
	r.Advance(1)
	asked := messages(t, r, 0)
	r.Advance(1000)
	r.In(0, encode(&clocksync.Packet{PTPFields: wire.PTPFields{Type: wire.PTPPdelayResp, Sequence: asked[0].Sequence, RequestClock: asked[0].Clock, RequestPort: 1}}))
	p := feature.ClockPlan{Epoch: 1, Parent: 0, Second: -1, Hops: 1, MostHops: 1}
	for _, p.Stage = range []feature.ClockStage{feature.Widen, feature.Take} {
		if err := plan(t, r, p); err != nil {
			t.Fatal(err)
		}
	}
	own := c.requested.Hop
	for _, depth := range []uint8{4, 0} {
		r.Advance(10 * frame.Millisecond)
		r.In(0, encode(&clocksync.Packet{PTPFields: wire.PTPFields{Type: wire.PTPSync, Clock: 77, Time: wire.PTPTime{Seconds: uint64(r.Now / frame.Second), Nanoseconds: uint32(r.Now % frame.Second)}}, HasSundial: true, Sundial: clocksync.Fields{Epoch: 1, Root: 77, Depth: depth}}))
		if eps := c.Uncertainty(r.Now); eps < frame.Time(depth+1)*own || eps > frame.Time(depth+1)*own+5000 {
			t.Errorf("%d hops away: %v", depth+1, eps)
		}
	}
}
