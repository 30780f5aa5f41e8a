package run

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"gswitch/fabric"
	"gswitch/fabric/live"
	"gswitch/fabric/observe"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
)

// Engines for runs.
const (
	Sim   = "sim"   // virtual time
	Netns = "netns" // real frames over veth pairs between network namespaces
	Wire  = "wire"  // real time; frames are handed over within the process

	// Containers is real frames between nodes that are other processes on this machine,
	// over links that exist already.
	Containers = "containers"
)

// usualDilation turns 100 Gb/s into 100 Mb/s, which one processor can sustain for a
// handful of hosts.
const usualDilation = 1000

// host is the engine and settings of a scenario's runs; it keeps the wires between runs.
type host struct {
	o        *Options
	topology *fabric.Topology // of the wires
	wires    Wires

	// The next two are set for a run that is repeated from its record.
	again vnet.EngineMaker
	built func(*vnet.Network) // called when the network has been built
}

// real reports whether runs happen in real time.
func (h *host) real() bool { return h.o.On != "" && h.o.On != Sim }

// name returns the name of the engine in results.
func (h *host) name() string {
	if h.real() {
		return h.o.On
	}
	return Sim
}

// check reports, before the first run, what the engine does not support.
func (h *host) check(s *scenario.Scenario) error {
	switch h.o.On {
	case "", Sim:
		return nil
	case Netns:
		if h.o.Live.Wires == nil {
			return errors.New("runs on netns need a function that raises the wires (Live.Wires)")
		}
	case Containers:
		if h.o.Live.Wires == nil || h.o.Live.Division != live.Each {
			return errors.New("runs on containers need a function that knows the links (Live.Wires), and a process for each node (Live.Division)")
		}
	case Wire:
	default:
		return fmt.Errorf("there is no engine %q: runs are on %s, %s, %s or %s", h.o.On, Sim, Netns, Containers, Wire)
	}
	if err := h.checkDivision(s); err != nil {
		return err
	}
	if h.o.Record && h.o.Live.Division != live.Together {
		return errors.New("a run in several processes cannot be recorded: what they see of each other is not; run it with --processes one")
	}
	for i := range s.Runs {
		d := s.Runs[i].Doc
		for k := range d.Faults {
			if d.Faults[k].Kind == "storm" {
				return fmt.Errorf("%s: faults[%d]: a storm fault exists in virtual time only: run it with --on sim, or without this fault", s.File, k)
			}
		}
		for _, of := range observe.Of(d) {
			switch {
			case of.Virtual != "":
				return fmt.Errorf("%s: %s", s.File, of.Virtual)
			case of.OneWorker != "" && h.o.Live.Workers > 1:
				return fmt.Errorf("%s: %s", s.File, of.OneWorker)
			}
		}
		if d.Hosts.Sizes != (scenario.Sizes{}) {
			return fmt.Errorf("%s: hosts.sizes sets lengths of frames that their headers do not have, which is possible in virtual time only: run it with --on sim, or without hosts.sizes", s.File)
		}
	}
	return nil
}

// dilation returns how many real nanoseconds one nanosecond of the nodes takes.
func (h *host) dilation(d *scenario.Document) int64 {
	switch {
	case h.o.Live.Dilation != 0:
		return h.o.Live.Dilation
	case d.Scale != 0:
		return int64(d.Scale)
	}
	return usualDilation
}

// maker returns the engine of a run; nil for virtual time.
func (h *host) maker(ctx context.Context, r *scenario.Run, rec *live.Record) (vnet.EngineMaker, error) {
	switch {
	case !h.real():
		return nil, nil
	case h.again != nil:
		return h.again, nil
	}
	l := &h.o.Live
	c := live.Config{Dilation: h.dilation(r.Doc), Bound: l.Bound, Workers: l.Workers, Poll: l.Poll, CPUs: l.CPUs, Logger: l.Logger, Record: rec}
	for _, of := range observe.Of(r.Doc) {
		if of.OneWorker != "" {
			c.Workers = 1
		}
	}
	if h.o.On == Netns {
		if err := h.raise(ctx, r.Topology); err != nil {
			return nil, err
		}
		c.Wires = h.wires
	}
	return live.Maker(c), nil
}

// raise creates the wires of a topology unless they exist.
func (h *host) raise(ctx context.Context, t *fabric.Topology) error {
	if h.wires != nil && reflect.DeepEqual(h.topology, t) {
		return nil
	}
	if err := h.close(); err != nil {
		return err
	}
	plan, err := fabric.NewPlan(t)
	if err != nil {
		return err
	}
	if h.wires, err = h.o.Live.Wires(ctx, plan); err != nil {
		h.wires = nil
		return err
	}
	h.topology = t
	return nil
}

// close removes the wires.
func (h *host) close() error {
	if h.wires == nil {
		return nil
	}
	err := h.wires.Close()
	h.wires = nil
	return err
}

// print distinguishes the results of one engine from those of another.
func (h *host) print(program string, d *scenario.Document) string {
	if !h.real() {
		return program
	}
	text := fmt.Sprintf("%s on %s, dilation %d, workers %d, %v, bound %d", program, h.o.On, h.dilation(d), h.o.Live.Workers, h.o.Live.Poll, h.o.Live.Bound)
	if h.o.Live.Division != live.Together {
		text += fmt.Sprintf(", processes %v", h.o.Live.Division)
	}
	return text
}

// timing returns how well the engine of a run kept time, nil in virtual time.
func timing(n *vnet.Network) *results.Timing {
	if e, ok := n.Engine.(live.Timed); ok {
		return e.Timing()
	}
	return nil
}
