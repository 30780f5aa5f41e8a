package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gswitch/fabric"
)

// cpus are the processors 0 to n-1.
func cpus(n int) (v []int) {
	for i := range n {
		v = append(v, i)
	}
	return v
}

// Where there are processors enough each worker has its own, and none the first;
// where there are some, switches have their own and hosts share the others; on
// two the kernel decides.
func TestDivide(t *testing.T) {
	star := engine(t, "star(8)", Config{}).spec.Plan.Topology           // one switch
	leaf := engine(t, "leaf-spine(4,8,4)", Config{}).spec.Plan.Topology // 12 switches, 32 hosts
	const none = "switches[] hosts[]"
	for _, k := range []struct {
		topology *fabric.Topology
		how      Division
		cpus     int
		workers  int
		pin      []int
		want     string
	}{
		{star, Hosts, 2, 0, nil, none},
		{star, Each, 2, 0, nil, none},
		{star, Hosts, 8, 0, nil, "switches[1] hosts[2 3 4 5 6 7 2 3]"},
		{star, Hosts, 10, 0, nil, "switches[1] hosts[2 3 4 5 6 7 8 9]"},
		{star, Hosts, 64, 0, nil, "switches[1] hosts[2 3 4 5 6 7 8 9]"},
		{star, Hosts, 64, 0, []int{5, 9}, "switches[5] hosts[9 5 9 5 9 5 9 5]"},
		{leaf, Hosts, 2, 0, nil, none},
		{leaf, Hosts, 8, 0, nil, "switches[1 2 3] hosts[4 5 6 7 4 5 6 7 4 5 6 7 4 5 6 7 4 5 6 7 4 5 6 7 4 5 6 7 4 5 6 7]"},
		{leaf, Hosts, 64, 0, nil, "switches[1 2 3] hosts" + fmt.Sprint(cpus(36)[4:])},
		{leaf, Hosts, 64, 50, nil, "switches" + fmt.Sprint(cpus(13)[1:]) + " hosts" + fmt.Sprint(cpus(45)[13:])},
		{leaf, Each, 8, 0, nil, none},
		{leaf, Each, 64, 0, nil, "switches" + fmt.Sprint(cpus(13)[1:]) + " hosts" + fmt.Sprint(cpus(45)[13:])},
	} {
		v := Divide(k.topology, k.how, k.workers, cpus(k.cpus), k.pin)
		if got := pinned(k.topology, v); got != k.want {
			t.Errorf("%v on %d processors: %s, want %s", k.how, k.cpus, got, k.want)
		}
		var nodes, used []int
		for _, p := range v {
			nodes = append(nodes, p.Nodes...)
			used = append(used, p.CPUs...)
			if len(p.CPUs) != 0 && len(p.CPUs) != p.Workers {
				t.Errorf("%s has %d workers on %v", p.Name, p.Workers, p.CPUs)
			}
			if k.how == Each && len(p.Nodes) != 1 {
				t.Errorf("%s has %v", p.Name, p.Nodes)
			}
		}
		if k.pin == nil && slices.Contains(used, 0) {
			t.Errorf("%v on %d processors: %v leaves nothing to the rest of the machine", k.how, k.cpus, used)
		}
		slices.Sort(nodes)
		if !slices.Equal(nodes, cpus(len(k.topology.Nodes))) {
			t.Errorf("%v: processes have the nodes %v", k.how, nodes)
		}
	}
}

// pinned shows the processors of switches and hosts.
func pinned(t *fabric.Topology, v []Process) string {
	var switches, hosts []int
	for _, p := range v {
		if t.Nodes[p.Nodes[0]].Kind == fabric.Switch {
			switches = append(switches, p.CPUs...)
		} else {
			hosts = append(hosts, p.CPUs...)
		}
	}
	return fmt.Sprintf("switches%v hosts%v", switches, hosts)
}

func TestParseDivision(t *testing.T) {
	for _, d := range []Division{Together, Hosts, Each} {
		if got, err := ParseDivision(d.String()); err != nil || got != d {
			t.Errorf("%v: %v, %v", d, got, err)
		}
	}
	if _, err := ParseDivision("all"); err == nil || !strings.Contains(err.Error(), "one (none") {
		t.Error(err)
	}
}

// A process lays out its own nodes only, and no time stands there.
func TestPlacePart(t *testing.T) {
	e := engine(t, "leaf-spine(2,4,2)", Config{Workers: 3})
	topo := e.spec.Plan.Topology
	for _, k := range []struct {
		process int
		want    []string
	}{{0, []string{"switches-1", "switches-2", "switches-3"}}, {1, []string{"h1"}}} {
		p := Divide(topo, Hosts, 3, cpus(2), nil)[k.process]
		part := &Part{Name: p.Name, Own: make([]bool, len(topo.Nodes))}
		for _, n := range p.Nodes {
			part.Own[n] = true
		}
		e.cfg.Part = part
		var names []string
		for _, w := range e.layOut() {
			names = append(names, w.Name)
			if w.Step != 0 {
				t.Errorf("the clock of %s may stand", w.Name)
			}
		}
		if !slices.Equal(names, k.want) {
			t.Errorf("%v, want %v", names, k.want)
		}
		each := make([]int, len(names))
		for _, n := range p.Nodes {
			each[e.place[n]]++
		}
		if slices.Max(each)-slices.Min(each) > 1 {
			t.Errorf("workers have %v nodes", each)
		}
	}
}
