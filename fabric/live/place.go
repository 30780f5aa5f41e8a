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
		n = defaultWorkers(processors(), len(t.Nodes), len(switches))
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

// defaultWorkers is one for networks that it can serve: the nodes do not notice
// then when it comes late (dataplane.WorkerConfig.Step), and no frame waits for
// another thread to wake up. On two processors with other work, two workers that
// spin made the flows of a 2:1 incast take up to twice as long, where one gave
// the times of virtual time. Beyond that a worker for each four switches,
// and a processor for the kernel and the rest of the process.
func defaultWorkers(cpus, nodes, switches int) int {
	if cpus <= 2 || nodes <= manyNodes {
		return 1
	}
	return min(cpus-1, 1+(switches+3)/4)
}

// manyNodes is from when on the loop of a single worker, some microseconds for
// each port that has something to send, takes longer than a frame at the usual
// dilation of 1000.
const manyNodes = 32

// processors is on how many this process may run.
func processors() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 1
	}
	return set.Count()
}
