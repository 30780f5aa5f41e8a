package live

import (
	"fmt"

	"gswitch/dataplane"
	"gswitch/fabric"
	"gswitch/frame"
)

// layOut assigns each node to a worker: hosts to the first, switches to the others in
// groups of neighbours, or all to one. Nodes of other processes have no worker, and are
// entered as on the first.
func (e *Engine) layOut() []dataplane.WorkerConfig {
	t := e.spec.Plan.Topology
	e.place = make([]int, len(t.Nodes))
	var switches []int
	hosts := 0 // number of workers with hosts
	for i := range t.Nodes {
		switch {
		case !e.owns(i):
		case t.Nodes[i].Kind == fabric.Switch:
			switches = append(switches, i)
		default:
			hosts = 1
		}
	}
	n := e.cfg.Workers
	if n == 0 {
		n = defaultWorkers(processors(), len(t.Nodes), len(switches))
	}
	n = max(1, min(n, hosts+len(switches)))
	for i, s := range switches {
		if n > hosts {
			e.place[s] = hosts + i*(n-hosts)/len(switches)
		}
	}
	workers := make([]dataplane.WorkerConfig, n)
	for i := range workers {
		w := &workers[i]
		if n == 1 && e.cfg.Part == nil {
			w.Step = e.step()
		}
		w.Name = e.workerName(i, n)
		w.Poll, w.First = e.cfg.Poll, true
		if len(e.cfg.CPUs) > 0 {
			w.Pin, w.CPU = true, e.cfg.CPUs[i%len(e.cfg.CPUs)]
		}
	}
	return workers
}

func (e *Engine) workerName(i, n int) string {
	p := e.cfg.Part
	switch {
	case p != nil && n == 1:
		return p.Name
	case p != nil:
		return fmt.Sprintf("%s-%d", p.Name, i+1)
	case n == 1:
		return "nodes"
	case i == 0:
		return "hosts"
	}
	return fmt.Sprintf("switches-%d", i)
}

// step returns how far time may advance at once if a single worker steps all nodes: a
// quarter of the time of a full frame, which is the resolution of all measurements.
func (e *Engine) step() frame.Time { return max(1, frame.Time(span(frameTime(e.spec)))/4) }

// defaultWorkers returns one worker for networks that it can serve: the nodes then do not
// notice when it is late (dataplane.WorkerConfig.Step), and no frame waits for another
// thread to wake up. On two processors with other load, two spinning workers made the
// flows of a 2:1 incast take up to twice as long, while one worker gave the times of
// virtual time. Larger networks get a worker per four switches, and one processor is left
// for the kernel and the rest of the process.
func defaultWorkers(cpus, nodes, switches int) int {
	if cpus <= 2 || nodes <= manyNodes {
		return 1
	}
	return min(cpus-1, 1+(switches+3)/4)
}

// manyNodes is the number of nodes from which the loop of a single worker, some
// microseconds per port that has something to send, takes longer than a frame at the
// usual dilation of 1000.
const manyNodes = 32

// processors returns the number of processors on which this process may run.
func processors() int { return len(Processors()) }
