package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/policy"
	"gswitch/scheduler"
	"gswitch/scheduler/orders"
	"gswitch/vswitch"
)

// The example goes all the way into a switch node.
func TestTranslateExample(t *testing.T) {
	c, err := Load("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c = c.Resolved()
	for i := range c.Switches {
		s := &c.Switches[i]
		pools := make([]*frame.Pool, len(s.WorkersUsed()))
		arena := frame.MustArena(c.Memory.Frames, c.Memory.Chunk, frame.DefaultHeadroom)
		depot := frame.NewDepot(arena)
		for i := range pools {
			pools[i] = depot.NewPool(arena)
		}
		if _, err := vswitch.New(s.VSwitch(nil), pools); err != nil {
			t.Errorf("switch %s: %v", s.Name, err)
		}
	}

	v := c.Switches[0].VSwitch(map[string]int{"h1": 0, "h2": 2, "up1": 1, "up2": 3, "tap": 5, "up2-tap": 6})
	p := v.Ports[0]
	want := scheduler.PortConfig{Rate: 10_000_000_000, Overhead: 24, Burst: 50 * frame.Microsecond}
	want.PushOut = scheduler.PushOut{Port: 2_000_000, Queue: 1_000_000}
	want.Queues[0].Weight = 30
	want.Queues[0].Order = orders.FQ{Quantum: 1514, Flows: 1024, CoDel: orders.CoDel{Target: 5 * frame.Millisecond, Interval: 100 * frame.Millisecond, ECN: true}}
	want.Queues[1].Order, want.Queues[1].Rank = orders.PACKS{Queues: 8, Depth: 10, Window: 20, Sample: 1, K: 100}, scheduler.RankDSCP
	want.Queues[2].Inversions, want.Queues[2].Rank = true, scheduler.RankDSCP
	want.Queues[2].Admission = orders.CoDel{Target: 5 * frame.Millisecond, Interval: 100 * frame.Millisecond, ECN: true}
	want.Queues[4].Order, want.Queues[4].Admission = orders.Calendar{Rate: 100_000_000, Flows: 1024}, orders.RED{Min: 50_000, Max: 150_000, PMax: 0.1, Weight: 9}
	want.Queues[5].ECN = scheduler.ECN{PI: scheduler.PI{Ref: 150_000, A: 4e-7, B: 3.9e-7, Max: 0.1, Period: 40 * frame.Microsecond}}
	want.Queues[3] = scheduler.QueueConfig{Weight: 60, ECN: scheduler.ECN{KMin: 100_000, KMax: 400_000, PMax: 0.2}}
	want.Queues[5].Weight = 10
	want.Queues[6].MaxRate, want.Queues[6].Burst = 1_000_000_000, 16_000
	want.Queues[6].Order = policy.Order{Text: "q = Queue(64KB); q.admPrio = value; q.procPrio = value;"}
	want.Queues[6].Admission = policy.Shadow{Text: "q = Queue(128KB);"}
	if d := cmp.Diff(want, p.Scheduler); d != "" {
		t.Error(d)
	}
	if p.Name != "h1" || p.PVID != 10 || p.VLANMode != vswitch.VLANAccess || p.Trust != vswitch.TrustDSCP || !p.Isolated || p.Storm.Broadcast != 10_000_000 || p.CableDelay != frame.Microsecond {
		t.Errorf("port: %+v", p)
	}
	if v.Ports[2].Worker != 1 || v.Ports[4].Name != "" || v.Ports[5].Enabled {
		t.Errorf("numbers: %+v", v.Ports)
	}
	if twin := v.Ports[6]; twin.Twin == nil || *twin.Twin != (vswitch.Twin{Of: 3, Limit: 10_000}) || v.Ports[3].Twin != nil {
		t.Errorf("twin: %+v", twin)
	}
	if v.PFC.Mode != pfc.PFC || v.PFC.Classes != 1<<3 || v.Class.DSCP[26] != 3 || v.Buffer.Size != 32_000_000 || v.Buffer.XONOffset != 4096 {
		t.Errorf("pfc %+v, buffer %+v", v.PFC, v.Buffer)
	}
	if s := c.Switches[0].Ports[2].Spec(); s.BusyPoll != 64 || s.Interface != "ens1f0np0" {
		t.Errorf("up1: %+v", s)
	}
	rules := v.ACLs[0].Rules
	if a := rules[3].Action; !a.Has(pipeline.OpRedirect|pipeline.OpSetDSCP) || a.Port != 1 || a.DSCP != 46 {
		t.Errorf("rule 40: %v", a)
	}
	if rules[0].Priority <= rules[1].Priority || !rules[2].Action.Has(pipeline.OpDrop) || rules[1].Police.Burst != 65536 {
		t.Errorf("rules: %+v", rules)
	}
	if text := rules[2].Text; text != "{match: {dst: 10.99.0.0/16}, action: drop}" {
		t.Errorf("text of rule 30: %s", text)
	}

	e := c.Engine()
	if e.Chunks != 65536 || len(e.Workers) != 2 || !e.Workers[0].Pin || e.Workers[0].CPU != 1 || e.Workers[1].Poll != dataplane.Sleep {
		t.Errorf("engine: %+v", e)
	}
	up := c.Switches[0].Ports[2].Spec()
	if up.Interface != "ens1f0np0" || up.Mode.String() != "zero-copy" || len(up.Filter.Ports) != 1 || up.TxDepth == 0 {
		t.Errorf("port up1: %+v", up)
	}
}

// A link rate makes the ring of an interface shallow, since frames there wait below the
// switch's queues. A wire stays as deep as without: what it holds has left its link.
func TestDepthBelowRates(t *testing.T) {
	for ports, want := range map[string]int{
		"{name: p, interface: p}": 0, "{name: p, interface: p, rate: 10Gbps}": ratedDepth,
		"{name: p, wire: w}, {name: q, wire: w}": 0, "{name: p, wire: w, rate: 10Gbps}, {name: q, wire: w}": 0,
	} {
		c, err := Parse("x.yaml", []byte("version: 1\nswitches: [{name: s, ports: ["+ports+"]}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		p := &c.Resolved().Switches[0].Ports[0]
		if s := p.Spec(); s.TxDepth != want || s.Rated != (p.Rate != 0) {
			t.Errorf("%s: depth %d, rated %v, want %d", ports, s.TxDepth, s.Rated, want)
		}
	}
}

// On real frames chunks are counted beside bytes.
func TestChunksAreCounted(t *testing.T) {
	c, err := Parse("x.yaml", []byte("version: 1\nswitches: [{name: s1, ports: [{interface: eth1}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !c.Resolved().Switches[0].VSwitch(nil).Buffer.Chunks {
		t.Error("a switch of a document counts bytes alone")
	}
}

func TestPerPort(t *testing.T) {
	for text, want := range map[string]int{"": 0, ", per_port: 10": 10, ", per_port: 0": 500} {
		c, err := Parse("x.yaml", []byte("version: 1\nswitches:\n  - name: s\n    ports: [{name: p, interface: p}]\n    fdb: {max: 500"+text+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Resolved().Switches[0].VSwitch(nil).FDB; got.Size != 500 || got.PerPort != want {
			t.Errorf("%q: %d of %d", text, got.PerPort, got.Size)
		}
	}
}
