package clocks

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gswitch/collect"
	"gswitch/control/api"
	"gswitch/fabric"
	"gswitch/fabric/clock"
	"gswitch/feature"
	"gswitch/natsserver"
)

// network is switches that carry out plans, with the rule of epochs, and note in
// which order.
type network struct {
	t   *fabric.Topology
	mu  sync.Mutex
	sw  []*fake // by node; nil: a host
	log []string
}

type fake struct {
	n      *network
	node   int
	clock  *api.Clock
	dead   bool
	refuse string // a stage that gets no answer
	send   map[string]bool
}

func newNetwork(t *testing.T, generate string) *network {
	t.Helper()
	top, err := fabric.Load(generate, fabric.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	n := &network{t: top, sw: make([]*fake, len(top.Nodes))}
	for _, i := range top.Switches() {
		c := &api.Clock{Switch: top.Nodes[i].Name, State: "unsynchronised", Controlled: true, Identity: uint64(i) + 1, Plan: &api.ClockPlan{}, Eps: -1}
		for _, name := range top.PortNames(i) {
			c.Ports = append(c.Ports, &api.ClockPort{Port: name, Up: true})
		}
		n.sw[i] = &fake{n: n, node: i, clock: c, send: map[string]bool{}}
	}
	return n
}

func (f *fake) ListClocks(ctx context.Context, _ *api.ListRequest) (*api.Clocks, error) {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	if f.dead || ctx.Err() != nil {
		return nil, fmt.Errorf("no answer")
	}
	return &api.Clocks{Clocks: []*api.Clock{f.copy()}}, nil
}

func (f *fake) copy() *api.Clock {
	c := api.Clock{Switch: f.clock.Switch, State: f.clock.State, Controlled: true, Identity: f.clock.Identity, Root: f.clock.Root, Promised: f.clock.Promised, Plan: f.clock.Plan, Turned: f.clock.Turned}
	for _, p := range f.clock.Ports {
		c.Ports = append(c.Ports, &api.ClockPort{Port: p.Port, Up: p.Up})
	}
	return &c
}

func (f *fake) PlanClock(_ context.Context, r *api.PlanClockRequest) (*api.Clock, error) {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	switch {
	case f.dead || r.Stage == f.refuse:
		return nil, fmt.Errorf("no answer")
	case r.Plan.Epoch < f.clock.Promised:
		return nil, fmt.Errorf("of a controller that was replaced")
	}
	f.n.log = append(f.n.log, fmt.Sprintf("%d %s %s", r.Plan.Epoch, r.Stage, f.clock.Switch))
	f.clock.Promised = r.Plan.Epoch
	switch r.Stage {
	case "widen":
		for _, p := range r.Plan.Send {
			f.send[p] = true
		}
	case "take":
		f.clock.Plan, f.clock.Turned, f.clock.State = r.Plan, false, "primary"
		if r.Plan.Root {
			f.clock.State, f.clock.Root = "root", f.clock.Identity
		}
	case "narrow":
		clear(f.send)
		for _, p := range r.Plan.Send {
			f.send[p] = true
		}
	}
	f.n.follow()
	return f.copy(), nil
}

// follow has all clocks follow the root that their parents lead to.
func (n *network) follow() {
	for range n.sw {
		for i, f := range n.sw {
			if f == nil || f.clock.State == "root" || f.clock.Plan.Parent == "" {
				continue
			}
			p := slices.Index(n.t.PortNames(i), f.clock.Plan.Parent)
			if up := n.sw[n.t.Peer(i, p).Node]; up != nil {
				f.clock.Root = up.clock.Root
			}
		}
	}
}

// unserved reports devices that accept a port by which none sends.
func (n *network) unserved() (names []string) {
	for i, f := range n.sw {
		if f == nil || f.dead || f.clock.Plan.Parent == "" {
			continue
		}
		p := slices.Index(n.t.PortNames(i), f.clock.Plan.Parent)
		e := n.t.Peer(i, p)
		if up := n.sw[e.Node]; !up.send[n.t.PortNames(e.Node)[e.Port]] {
			names = append(names, f.clock.Switch)
		}
	}
	return names
}

func (n *network) link(a, b string, up bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range [][2]string{{a, b}, {b, a}} {
		i, _ := n.t.Lookup(e[0])
		for _, p := range n.sw[i].clock.Ports {
			if p.Port == e[1] {
				p.Up = up
			}
		}
	}
}

// controller is one that steps when the test says so.
func (n *network) controller(t *testing.T, s *natsserver.Server, id string) *Controller {
	t.Helper()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	kv, err := Open(t.Context(), nc, 1)
	if err != nil {
		t.Fatal(err)
	}
	spec := &clock.Spec{Scheme: &clock.Schemes[0]}
	spec.Defaults(n.t)
	c := &Controller{Topology: n.t, Spec: spec, Daemons: make([]Switch, len(n.t.Nodes)), ID: id, KV: kv, Lease: time.Minute, Every: 10 * time.Millisecond,
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for i, f := range n.sw {
		if f != nil {
			c.Daemons[i] = f
		}
	}
	c.lease = NewLease(kv, leaderKey(n.t.Name), id, c.Lease)
	return c
}

func server(t *testing.T) *natsserver.Server {
	t.Helper()
	s, err := collect.NewServer(t.TempDir(), "127.0.0.1:0", 64<<20, false, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (c *Controller) lead(t *testing.T) {
	t.Helper()
	if err := c.lease.beat(t.Context()); err != nil || !c.lease.Held() {
		t.Fatalf("%s does not lead: %v", c.ID, err)
	}
}

func (c *Controller) must(t *testing.T) {
	t.Helper()
	if err := c.step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Plans follow what works, and only those get their part for whom something changes. Every stage
// is everywhere before the next begins, parents take a plan before their children, and
// no device ever listens where none sends.
func TestPlansFollowWhatWorks(t *testing.T) {
	n := newNetwork(t, "fat-tree(4)")
	c := n.controller(t, server(t), "a")
	c.lead(t)
	for i := range n.sw {
		if f := n.sw[i]; f != nil {
			c.Daemons[i] = watched{f, func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				if v := n.unserved(); v != nil {
					t.Errorf("behind %q nobody sends to %v", n.log[len(n.log)-1], v)
				}
			}}
		}
	}
	c.must(t)
	if c.record.Changed != 20 || c.record.Switches != 20 || c.record.Deputy == "" || c.record.Bare != "" {
		t.Errorf("%+v", c.record)
	}
	n.order(t, c)
	before := len(n.log)
	c.must(t)
	if len(n.log) != before {
		t.Errorf("given again: %v", n.log[before:])
	}
	parent := func(name string) string {
		i, _ := n.t.Lookup(name)
		return n.sw[i].clock.Plan.Parent
	}
	was := parent("agg1")
	n.link("agg1", was, false)
	n.log = nil
	c.must(t)
	if parent("agg1") == was || c.record.Changed >= 20 || c.record.Changed == 0 || c.record.Epoch != 2 || !c.record.Done {
		t.Errorf("agg1 follows %s; %+v", parent("agg1"), c.record)
	}
	n.order(t, c)
	// The root fails, and its deputy has become the root.
	root, _ := n.t.Lookup(c.record.Root)
	deputy, _ := n.t.Lookup(c.record.Deputy)
	n.sw[root].dead = true
	n.sw[deputy].clock.State, n.sw[deputy].clock.Root = "root", n.sw[deputy].clock.Identity
	n.follow()
	for range missed {
		_ = c.step(t.Context()) // until it counts as failed, it is tried
	}
	if got := c.record; got.Root != n.t.Nodes[deputy].Name || got.Switches != 19 || !slices.Equal(got.Failed, []string{n.t.Nodes[root].Name}) {
		t.Errorf("%+v", got)
	}
	// It comes back, without a memory, and follows.
	n.sw[root].dead = false
	n.sw[root].clock.State, n.sw[root].clock.Plan, n.sw[root].clock.Promised = "unsynchronised", &api.ClockPlan{}, 0
	c.must(t)
	if got := c.record; got.Root != n.t.Nodes[deputy].Name || got.Switches != 20 || got.Failed != nil || n.sw[root].clock.State != "primary" {
		t.Errorf("%+v, and the old root is %s", got, n.sw[root].clock.State)
	}
}

// watched calls behind every stage.
type watched struct {
	*fake
	behind func()
}

func (w watched) PlanClock(ctx context.Context, r *api.PlanClockRequest) (*api.Clock, error) {
	m, err := w.fake.PlanClock(ctx, r)
	w.behind()
	return m, err
}

// order checks the stages of the last plan.
func (n *network) order(t *testing.T, c *Controller) {
	t.Helper()
	at := map[string]int{}
	last := map[string]int{}
	first := map[string]int{}
	for k, line := range n.log {
		_, rest, _ := strings.Cut(line, " ")
		stage, _, _ := strings.Cut(rest, " ")
		at[rest], last[stage] = k, k
		if _, ok := first[stage]; !ok {
			first[stage] = k
		}
	}
	if first["take"] < last["widen"] || first["narrow"] < last["take"] || last["narrow"] == 0 {
		t.Errorf("stages stand one in the other: %v", n.log)
	}
	for i, f := range n.sw {
		if f == nil || f.clock.Plan.Parent == "" {
			continue
		}
		p := n.t.Peer(i, slices.Index(n.t.PortNames(i), f.clock.Plan.Parent)).Node
		own, ok := at["take "+f.clock.Switch]
		if up, its := at["take "+n.t.Nodes[p].Name]; ok && its && up > own {
			t.Errorf("%s takes the plan before its parent", f.clock.Switch)
		}
	}
}

// A leader stands still in the middle of a plan, another one leads behind its term, and then
// the first one goes on: no switch takes anything of it, at any stage, and it finds out.
func TestReplacedLeader(t *testing.T) {
	n := newNetwork(t, "fat-tree(4)")
	s := server(t)
	a, b := n.controller(t, s, "a"), n.controller(t, s, "b")
	a.lead(t)
	a.must(t)
	n.link("agg1", "core1", false)
	a.live.look(t.Context(), a.Daemons)
	w, err := a.live.plan(a.Spec)
	if err != nil {
		t.Fatal(err)
	}
	// a has the epoch, and stops before any switch has it. b sees nothing of it for the term.
	a.record.Epoch++
	if err := a.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.lease.beat(t.Context()); err != nil || b.lease.Held() {
		t.Fatalf("b leads beside a: %v", err)
	}
	b.lease.since = b.lease.since.Add(-2 * b.lease.term)
	b.lead(t)
	b.must(t)
	if b.record.Epoch <= a.record.Epoch || !b.record.Done {
		t.Fatalf("a had plan %d, b made %+v", a.record.Epoch, b.record)
	}
	before := len(n.log)
	var all []part
	for _, level := range w.levels {
		for _, p := range level {
			p.plan.Epoch = a.record.Epoch
			all = append(all, p)
		}
	}
	for _, stage := range []feature.ClockStage{feature.Widen, feature.Take, feature.Narrow} {
		if err := a.stage(t.Context(), stage, all); err == nil || !strings.Contains(err.Error(), "replaced") {
			t.Errorf("%s: %v", stage, err)
		}
	}
	if len(n.log) != before {
		t.Errorf("switches took %v", n.log[before:])
	}
	n.link("agg1", "core1", true)
	if err := a.step(t.Context()); err == nil || !strings.Contains(err.Error(), errReplaced.Error()) {
		t.Errorf("a plans on: %v", err)
	}
	if err := a.lease.beat(t.Context()); err != nil || a.lease.Held() {
		t.Errorf("a still leads: %v", err)
	}
	if v, err := States(t.Context(), a.KV); err != nil || len(v) != 1 || v[0].Leader != "b" || v[0].Plan.Epoch != b.record.Epoch {
		t.Errorf("%+v, %v", v, err)
	}
}

// A switch that does not answer in the middle of a plan leaves the others as they are; the
// next plan is made without it, and the one behind with it.
func TestNoAnswerInThePlan(t *testing.T) {
	for _, stage := range []string{"widen", "take", "narrow"} {
		n := newNetwork(t, "leaf-spine(3, 4, 1)")
		c := n.controller(t, server(t), "a")
		c.lead(t)
		spine, _ := n.t.Lookup("spine2")
		n.sw[spine].refuse = stage
		if err := c.step(t.Context()); err == nil || c.record.Done {
			t.Fatalf("%s: %v", stage, err)
		}
		if v := n.unserved(); stage != "take" && v != nil {
			t.Errorf("%s: nobody sends to %v", stage, v)
		}
		n.sw[spine].dead = true
		for range missed {
			_ = c.step(t.Context())
		}
		if c.record.Switches != 6 || !c.record.Done || n.unserved() != nil {
			t.Errorf("%s: %+v, %v", stage, c.record, n.unserved())
		}
		n.sw[spine].dead, n.sw[spine].refuse = false, ""
		c.must(t)
		if c.record.Switches != 7 || !c.record.Done || n.unserved() != nil {
			t.Errorf("%s: %+v, %v", stage, c.record, n.unserved())
		}
	}
}

// A chain has no second parents, and its plan says so. A link by which clocks timed out again and again
// is left out where that costs no device anything.
func TestBareAndTimedOut(t *testing.T) {
	n := newNetwork(t, "line(3)")
	c := n.controller(t, server(t), "a")
	c.lead(t)
	c.must(t)
	if c.record.Bare == "" || c.record.Switches != 3 || !c.record.Done {
		t.Errorf("%+v", c.record)
	}
	turn := func(n *network, name string) (parent string) {
		i, _ := n.t.Lookup(name)
		n.sw[i].clock.Turned = true
		return n.sw[i].clock.Plan.Parent
	}
	for range timeouts + 1 {
		turn(n, "s2")
		c.must(t)
	}
	if c.record.Switches != 3 {
		t.Errorf("the only link of a chain was left out: %+v", c.record)
	}
	n = newNetwork(t, "leaf-spine(3, 4, 1)")
	c = n.controller(t, server(t), "a")
	c.lead(t)
	c.must(t)
	name := "leaf3"
	if c.record.Root == name {
		name = "leaf4"
	}
	was := turn(n, name)
	for range timeouts - 1 {
		c.must(t)
		if now := turn(n, name); now != was {
			t.Fatalf("%s follows %s behind one timeout at %s", name, now, was)
		}
	}
	c.must(t)
	i, _ := n.t.Lookup(name)
	if now := n.sw[i].clock.Plan.Parent; now == was || now == "" {
		t.Errorf("%s follows %q still", name, now)
	}
}
