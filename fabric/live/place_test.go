package live

import (
	"slices"
	"testing"

	"gswitch/fabric"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

func engine(t *testing.T, expr string, c Config) *Engine {
	t.Helper()
	s := fabric.Spec{Name: "place", Generate: expr, Classes: map[string]fabric.Class{
		fabric.ClassHost: {Rate: 100_000_000_000}, fabric.ClassFabric: {Rate: 400_000_000_000}}}
	topo, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := fabric.NewPlan(topo)
	if err != nil {
		t.Fatal(err)
	}
	return &Engine{cfg: c, spec: &vnet.EngineSpec{Plan: plan, Frame: 1076, Overhead: 24, BaseRTT: 13 * frame.Microsecond}}
}

// Hosts share the first worker, switches the others in equal groups; one
// worker has all, and time that stands.
func TestPlace(t *testing.T) {
	for _, k := range []struct {
		workers  int
		names    []string
		switches []int // nodes of each worker that are switches
	}{
		{1, []string{"nodes"}, []int{6}},
		{2, []string{"hosts", "switches-1"}, []int{0, 6}},
		{4, []string{"hosts", "switches-1", "switches-2", "switches-3"}, []int{0, 2, 2, 2}},
		{50, []string{"hosts", "switches-1", "switches-2", "switches-3", "switches-4", "switches-5", "switches-6"}, []int{0, 1, 1, 1, 1, 1, 1}},
	} {
		e := engine(t, "leaf-spine(2,4,2)", Config{Workers: k.workers, CPUs: []int{3, 5}})
		var names []string
		for i, w := range e.layOut() {
			names = append(names, w.Name)
			if !w.Pin || w.CPU != []int{3, 5}[i%2] {
				t.Errorf("%d workers: worker %d is on CPU %d", k.workers, i, w.CPU)
			}
			if stands := w.Step > 0; stands != (k.workers == 1) {
				t.Errorf("%d workers: a step of %d ns", k.workers, w.Step)
			}
		}
		switches := make([]int, len(names))
		for node, w := range e.place {
			if e.spec.Plan.Topology.Nodes[node].Kind == fabric.Switch {
				switches[w]++
			} else if w != 0 {
				t.Errorf("%d workers: a host is on worker %d", k.workers, w)
			}
		}
		if !slices.Equal(names, k.names) || !slices.Equal(switches, k.switches) {
			t.Errorf("%d workers: %v with %v switches", k.workers, names, switches)
		}
	}
	for _, k := range []struct{ cpus, nodes, switches, want int }{{1, 500, 100, 1}, {2, 500, 100, 1}, {8, 9, 1, 1}, {8, 100, 20, 6}, {64, 400, 80, 21}, {4, 400, 80, 3}} {
		if got := defaultWorkers(k.cpus, k.nodes, k.switches); got != k.want {
			t.Errorf("%d workers for %d switches on %d processors, want %d", got, k.switches, k.cpus, k.want)
		}
	}
	// 1100 bytes at 100 Gb/s take 88 ns.
	if got := engine(t, "star(2)", Config{}).step(); got != 22 {
		t.Errorf("a step of %d ns, want a quarter of a frame of 88 ns", got)
	}
}
