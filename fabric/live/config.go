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
	// End returns the network namespace (a name under /run/netns, or a path)
	// and the interface of a port.
	End(node, port int) (netns, iface string)
}

// Config describes an engine on real frames.
type Config struct {
	// Wires of the topology; nil joins the ports in memory, within the process:
	// same nodes, same time, no kernel in between.
	Wires Wires

	// Dilation is how many real nanoseconds the nodes take for one. 0 = 1.
	Dilation int64

	// Bound is how late (99th percentile, time of the nodes) a run may be and
	// still be valid. 0 = a quarter of T.
	Bound frame.Time

	// Workers is how many threads step nodes: one has the hosts, the others
	// share the switches; 1 has all. 0 takes what the machine has: see Place.
	Workers int
	Poll    dataplane.PollMode
	// CPUs to pin the workers to, in their order. Empty: not pinned.
	CPUs []int

	// Record, where not nil, says where the run is recorded to. A run that cannot be
	// recorded is not, and Recorded says why, or it is refused with Must.
	Record *Record

	Logger *slog.Logger // nil: warnings and errors of slog.Default()

	// Part, where not nil, is what this process has of the network: the rest is
	// with other processes, at the other ends of the wires.
	Part *Part
}

// Part is what one of several processes has of a network. All of them make the
// same network and step nodes of their own.
type Part struct {
	Name      string
	Own       []bool // by node of the topology
	Processes int    // how many there are

	// Begin is called when all ports of the process are up, and returns when time
	// is to begin, the same instant everywhere.
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

// Maker returns what makes an engine by c, for vnet.Config.
func Maker(c Config) vnet.EngineMaker {
	return func(spec *vnet.EngineSpec) (vnet.Engine, error) {
		e, err := New(c, spec)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
}

// Timed is an engine that says how well it kept time.
type Timed interface {
	// Timing is complete after Halt.
	Timing() *results.Timing
}
