package gfabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"gswitch/control"
	runner "gswitch/fabric/run"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/vswitch"
)

// A what-if and the least set of inputs are of one node. Of the record of a whole run a
// switch is chosen: what reached it, and when, stays what the others sent.

// take takes the switch of --node out of the record of a whole run.
func (f *replayFlags) take(ctx context.Context, name string) error {
	file, in, err := f.open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	switch {
	case in.Header.Kind != runner.RecordKind:
		if f.node != "" && f.node != in.Header.Name {
			return usagef("%s is of %s, not of --node %s", name, in.Header.Name, f.node)
		}
		return nil
	case f.node == "":
		return usagef("%s is of a whole run, in which senders would have done something else: choose with --node the switch that is replayed with what reached it; gfabric run --set runs all of it with other settings", name)
	case f.whatIf != "":
		return usagef("%s is of a run of a scenario: name what is to be another with --set, as gfabric run has it", name)
	}
	if err := ofSwitches(f.set); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := runner.Extract(ctx, in, f.node, &b); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f.taken = b.Bytes()
	return f.same(ctx, name)
}

// same makes sure that a switch that was taken out of a run does the same by itself.
func (f *replayFlags) same(ctx context.Context, name string) error {
	_, in, err := f.open(name)
	if err != nil {
		return err
	}
	p, err := f.player(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	l, err := newLookout(&replayFlags{}, nil, io.Discard)
	if err != nil {
		return err
	}
	err = newReplayed(l, p).play(ctx, frame.Never)
	if apart := new(replay.Diverged); errors.As(err, &apart) {
		return fmt.Errorf("%s: %s cannot be replayed without the rest of the run, with which it has more in common than frames: %w", name, f.node, err)
	} else if !replay.Ended(err) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// notOfSwitches are the sections of a scenario that say nothing of switches.
var notOfSwitches = []string{"hosts", "workload", "topology", "faults", "measure", "duration", "until", "expect", "variants", "sweep", "seeds", "name", "version"}

func ofSwitches(set []string) error {
	for _, s := range set {
		key, _, _ := strings.Cut(s, "=")
		if at := strings.IndexAny(key, ".["); at >= 0 {
			key = key[:at]
		}
		if slices.Contains(notOfSwitches, key) {
			return usagef("--set %s: a switch is replayed with what reached it, so that nothing but its own settings can be others; gfabric run --set runs all of it with this one", s)
		}
	}
	return nil
}

// runSwitch is a switch of a run that is replayed by itself.
type runSwitch struct {
	frame.Stepper
	Switch *vswitch.Switch
	names  map[uint16]string
	ports  []string
	rated  []uint16
}

// newRunSwitch makes the switch of a record anew, with other settings of the scenario.
func newRunSwitch(h *replay.Header, set []string, pool *frame.Pool) (*runSwitch, error) {
	n, node, err := runner.NewSwitch(h, set, pool)
	if err != nil {
		return nil, err
	}
	return runSwitchOf(n, node, h.Name), nil
}

func runSwitchOf(n *vnet.Network, node frame.Stepper, name string) *runSwitch {
	k, _ := n.SwitchByName(name)
	s := &runSwitch{Stepper: node, Switch: n.Switches[k], names: map[uint16]string{}, ports: n.Topology.PortNames(n.Topology.Switches()[k])}
	for port, name := range s.ports {
		s.names[uint16(port)] = name
		s.rated = append(s.rated, uint16(port))
	}
	return s
}

// Do implements replay.Machine.
func (s *runSwitch) Do(frame.Time, []byte) error {
	return errors.New("the switches of a run are given no commands")
}

// TapDrops and TakeDrops are the switch's.
func (s *runSwitch) TapDrops(buf []frame.Ref) { s.Switch.Nodes[0].TapDrops(buf) }
func (s *runSwitch) TakeDrops() []frame.Ref   { return s.Switch.Nodes[0].TakeDrops() }

// Ports implements replayable.
func (s *runSwitch) Ports() map[uint16]string { return s.names }

// Handler implements replayable.
func (s *runSwitch) Handler(h *replay.Header, at frame.Time) (http.Handler, error) {
	return control.Shown(s.Switch, h.Name, s.ports, h, at)
}

// Rated implements fixable: all ports of a run have the rates of their links.
func (s *runSwitch) Rated() []uint16 { return s.rated }
