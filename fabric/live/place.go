package live

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gswitch/gswitch/dataplane"
	"github.com/gswitch/gswitch/frame"
)

// layOut says on which worker each node is: hosts on the first, switches on
// the others in groups of neighbours, or all on one.
func (e *Engine) layOut() []dataplane.WorkerConfig {
	t := e.spec.Plan.Topology
	e.place = make([]int, len(t.Nodes))
	switches := t.Switches()
	n := e.cfg.Workers
	if n == 0 {
		n = defaultWorkers(processors(), len(switches))
	}
	n = min(n, 1+len(switches))
	for i, s := range switches {
		if n > 1 {
			e.place[s] = 1 + i*(n-1)/len(switches)
		}
	}
	workers := make([]dataplane.WorkerConfig, n)
	for i := range workers {
		w := &workers[i]
		if n == 1 {
			w.Step = e.step()
		}
		switch {
		case n == 1:
			w.Name = "nodes"
		case i == 0:
			w.Name = "hosts"
		default:
			w.Name = fmt.Sprintf("switches-%d", i)
		}
		w.Poll, w.First = e.cfg.Poll, true
		if len(e.cfg.CPUs) > 0 {
			w.Pin, w.CPU = true, e.cfg.CPUs[i%len(e.cfg.CPUs)]
		}
	}
	return workers
}

// step is how far time may go on at once where a single worker has all nodes:
// a quarter of what a full frame takes, the grain of everything that is
// measured.
func (e *Engine) step() frame.Time { return max(1, frame.Time(span(e.frameTime()))/4) }

// defaultWorkers leaves a processor to the kernel and the rest of the process
// where there are several. A worker for each four switches is enough: what
// limits them is the kernel's transmit path, not the nodes.
func defaultWorkers(cpus, switches int) int {
	if cpus <= 2 {
		return 1
	}
	return min(cpus-1, 1+(switches+3)/4)
}

// processors is on how many this process may run.
func processors() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 1
	}
	return set.Count()
}
