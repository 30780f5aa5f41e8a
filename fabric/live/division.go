package live

import (
	"fmt"

	"golang.org/x/sys/unix"

	"gswitch/fabric"
)

// Division says which nodes of a network have a process of their own.
type Division uint8

const (
	Together Division = iota // none: one process has all
	Hosts                    // every host; one process has all switches
	Each                     // every host and every switch
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

// Process is one of several that have a network between them.
type Process struct {
	Name    string
	Nodes   []int // of the topology
	Workers int
	CPUs    []int // of the workers; empty: not pinned
}

// Divide gives every node of a topology a process, those with switches first,
// and every worker a processor. workers is how many threads a process with
// several switches has, 0 = as many as allowed suggest, which are the processors
// to run on; pin are those that the user wants, in the order of the workers.
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

// switchWorkers is how many threads step the switches where hosts have threads
// of their own: one for each four switches, and for no more than half of the
// processors.
func switchWorkers(cpus, switches int) int {
	return max(1, min(cpus/2, (switches+3)/4))
}

// pinAll gives workers processors. The first one is left to the rest of the
// machine. Where there is one for each worker, each has its own; where there are
// fewer, switches, of which each serves several hosts, have one each as long as
// hosts have as many, and the hosts share the rest in turn. Where there are too few for
// that the kernel decides who runs where: a worker that waits for another one's
// processor while a third is free would be late for nothing.
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

// Processors are those on which this process may run, in order.
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
