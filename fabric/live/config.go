package live

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gswitch/dataplane"
	"gswitch/fabric/results"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// Wires are the veth pairs of a topology.
type Wires interface {
	// End returns the network namespace (a name under /run/netns, or a path) and the
	// interface of a port.
	End(node, port int) (netns, iface string)
}

// Config describes an engine on real frames.
type Config struct {
	// Wires are the veth pairs of the topology. nil joins the ports in memory, within the
	// process: same nodes, same time, no kernel in between.
	Wires Wires

	// Dilation is how many real nanoseconds one nanosecond of the nodes takes. 0 = 1.
	Dilation int64

	// Bound is the largest lateness (99th percentile, in the nodes' time) of a valid run.
	// 0 = a quarter of T.
	Bound frame.Time

	// Workers is the number of threads that step nodes: one steps the hosts, the others
	// share the switches; 1 steps all. 0 chooses a number for this machine, see defaultWorkers.
	Workers int
	Poll    dataplane.PollMode
	// CPUs to pin the workers to, in the order of the workers. Empty: not pinned.
	CPUs []int

	// Record, if not nil, says where the run is recorded. If a run cannot be recorded, it
	// proceeds without a record and Recorded returns the reason, or it is rejected if
	// Must is set.
	Record *Record

	Logger *slog.Logger // nil: warnings and errors of slog.Default()

	// Part, if not nil, is the part of the network that this process steps. Other
	// processes, at the other ends of the wires, step the rest.
	Part *Part
}

// Part is the part of a network that one of several processes steps. All of them build
// the same network.
type Part struct {
	Name      string
	Own       []bool // by node of the topology
	Processes int    // number of processes

	// Begin is called when all ports of the process are up. It returns the instant at
	// which time starts, which is the same in all processes.
	Begin func() (time.Time, error)
}

func (c *Config) check() error {
	switch {
	case c.Dilation < 0 || c.Dilation > dataplane.MaxDilation:
		return fmt.Errorf("a dilation of %d is not from 1 to %d", c.Dilation, dataplane.MaxDilation)
	case c.Workers < 0 || c.Workers > 64:
		return fmt.Errorf("%d workers are not from 1 to 64", c.Workers)
	case c.Part != nil && c.Wires == nil:
		return errors.New("processes need wires between them: links in memory are within one")
	case c.Bound < 0:
		return fmt.Errorf("the bound of lateness %v is negative", c.Bound.Duration())
	}
	return nil
}

// Maker returns a maker of engines with configuration c, for vnet.Config.
func Maker(c Config) vnet.EngineMaker {
	return func(spec *vnet.EngineSpec) (vnet.Engine, error) {
		e, err := New(c, spec)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
}

// Timed is an engine that measures how well it kept time.
type Timed interface {
	// Timing is complete after Halt.
	Timing() *results.Timing
}
