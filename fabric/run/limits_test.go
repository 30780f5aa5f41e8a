package run

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

const crowd = `version: 1
topology: {generate: star(3), classes: {host: {rate: 10Gbps, delay: 1us}}}
workload:
  - {group: few, kind: incast, from: [h1], to: [h2], size: 10KB}
  - {group: many, kind: periodic, from: [h2], to: [h3], size: 10KB, count: 66000, every: 1ns}
duration: 1ms
`

// A workload that opens more connections than a NIC has room for gets an error that names
// of its entries does, and what helps.
func TestTooManyFlowsAtOnce(t *testing.T) {
	s := load(t, crowd, scenario.Options{})
	_, err := one(context.Background(), s, &s.Runs[0], &host{o: &Options{}}, &progress{})
	want := "workload[1] (many) from h2 to h3, after 65536 flows"
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "leave more time between them, or set persistent") {
		t.Fatalf("%v, want %q", err, want)
	}
}

// patience is a context that is cancelled when it was looked at often enough.
type patience struct {
	context.Context
	left atomic.Int64
}

func (p *patience) Err() error {
	if p.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Messages by the hundred thousand at one instant do not put off an
// interruption until they are posted, nor does what they set off.
func TestInterruptWhilePosting(t *testing.T) {
	text := strings.Replace(crowd, "count: 66000, every: 1ns", "count: 66000, every: 1ns, persistent: true", 1)
	for _, after := range []int64{3, 1000, 40_000} {
		s := load(t, text, scenario.Options{})
		p := &patience{Context: context.Background()}
		p.left.Store(after)
		if _, err := one(p, s, &s.Runs[0], &host{o: &Options{}}, &progress{}); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v", err)
		}
		if over := -p.left.Load(); over > 3 {
			t.Errorf("interrupted after %d looks, the run went on for %d", after, over)
		}
	}
}

// Frames that are lost for want of chunks are distinguished from what a real
// network would lose.
func TestExhaustedArenaIsCounted(t *testing.T) {
	s := load(t, crowd, scenario.Options{})
	for chunks, want := range map[int]bool{64: true, 1 << 14: false} {
		n, err := vnet.Build(&vnet.Config{Topology: s.Runs[0].Topology, Payload: 1000, Chunks: chunks})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if err := n.StartFlow(0, &vnet.Flow{Src: 0, Dst: 1, Bytes: 100_000}); err != nil {
				t.Fatal(err)
			}
			if err := n.StartFlow(0, &vnet.Flow{Src: 2, Dst: 1, Bytes: 100_000}); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.Engine.Run(100 * frame.Microsecond); err != nil {
			t.Fatal(err)
		}
		out := &results.Run{Values: map[string]float64{}}
		counters(n, out)
		if v := out.Values; (v["arena_exhausted_total"] > 0) != want || v["drops_total"] < v["arena_exhausted_total"] {
			t.Errorf("%d chunks: %v", chunks, v)
		}
	}
}

// The largest fabric of the scenarios, 464 hosts of which incasts of 60 pause
// each other, has chunks for all that its switches' buffers hold.
func TestChunksForFullBuffers(t *testing.T) {
	s, err := scenario.Load("../../scenarios/hpcc/fig2.2-timers.yaml", scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var spec *vnet.EngineSpec
	if _, err := network(&s.Runs[0], func(v *vnet.EngineSpec) (vnet.Engine, error) {
		spec = v
		small := *v
		small.Chunks = mirrorFrames
		return vnet.Virtual(&small)
	}); err != nil {
		t.Fatal(err)
	}
	held := len(spec.Plan.Topology.Switches()) * int(s.Runs[0].Doc.Switch.Buffer.Size) / spec.Frame
	if held < 1<<19 || spec.Chunks < held {
		t.Errorf("%d chunks, and %d full frames fill the buffers", spec.Chunks, held)
	}
}
