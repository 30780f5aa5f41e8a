package live

import (
	"fmt"

	"golang.org/x/sys/unix"

	"gswitch/fabric"
)

// Division says which nodes of a network have their own process.
type Division uint8

const (
	Together Division = iota // none: one process steps all
	Hosts                    // every host has one; one process steps all switches
	Each                     // every host and every switch has one
)

var divisions = [...]string{Together: "one", Hosts: "hosts", Each: "each"}

// String returns "one", "hosts" or "each".
func (d Division) String() string {
	if int(d) < len(divisions) {
		return divisions[d]
	}
	return "unknown"
}

// ParseDivision is the inverse of Division.String.
func ParseDivision(s string) (Division, error) {
	for i, name := range divisions {
		if s == name {
			return Division(i), nil
		}
	}
	return 0, fmt.Errorf("%q does not say which nodes have a process of their own: one (none, all nodes are in one), hosts (each host; all switches are in one) or each (each host and each switch)", s)
}

// Process is one of several processes that share a network.
type Process struct {
	Name    string
	Nodes   []int // numbers in the topology
	Workers int
	CPUs    []int // of the workers; empty: not pinned
}

// Divide assigns a process to every node of a topology, processes of switches first, and
// a processor to every worker. workers is the number of threads of a process with several
// switches; 0 derives it from allowed, the processors that may be used. pin lists the
// processors that the user asked for, in the order of the workers.
func Divide(t *fabric.Topology, d Division, workers int, allowed, pin []int) []Process {
	var v []Process
	add := func(workers int, nodes ...int) {
		v = append(v, Process{Name: t.Nodes[nodes[0]].Name, Nodes: nodes, Workers: workers})
	}
	switches := t.Switches()
	if d == Each {
		for _, s := range switches {
			add(1, s)
		}
	} else {
		if workers == 0 {
			workers = switchWorkers(len(allowed), len(switches))
		}
		add(max(1, min(workers, len(switches))), switches...)
		v[0].Name = "switches"
	}
	for _, h := range t.Hosts() {
		add(1, h)
	}
	pinAll(v, len(v)-len(t.Hosts()), allowed, pin)
	return v
}

// switchWorkers returns the number of threads for switches if hosts have threads of their
// own: one per four switches, but at most half of the processors.
func switchWorkers(cpus, switches int) int {
	return max(1, min(cpus/2, (switches+3)/4))
}

// pinAll assigns processors to workers. The first processor is left to the rest of the
// machine. If there is one for each worker, each gets its own. If there are fewer, each
// switch worker gets its own, since it serves several hosts, as long as at least as many
// remain for hosts, and the hosts share the rest in turn. If there are too few even for
// that, nothing is pinned and the kernel schedules: otherwise a worker could wait for a
// busy processor while another one is idle.
func pinAll(v []Process, withSwitches int, allowed, pin []int) {
	next := 0
	give := func(p *Process, from []int) {
		for range p.Workers {
			p.CPUs = append(p.CPUs, from[next%len(from)])
			next++
		}
	}
	if len(pin) > 0 {
		for i := range v {
			give(&v[i], pin)
		}
		return
	}
	if len(allowed) < 3 {
		return
	}
	all, ofSwitches := 0, 0
	for i := range v {
		all += v[i].Workers
		if i < withSwitches {
			ofSwitches += v[i].Workers
		}
	}
	free := allowed[1:]
	if all > len(free) && 2*ofSwitches > len(free) {
		return
	}
	for i := range v {
		if i == withSwitches {
			next, free = 0, free[ofSwitches:]
		}
		give(&v[i], free)
	}
}

// Processors returns the processors on which this process may run, in order.
func Processors() (v []int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return []int{0}
	}
	for c := 0; len(v) < set.Count(); c++ {
		if set.IsSet(c) {
			v = append(v, c)
		}
	}
	return v
}
