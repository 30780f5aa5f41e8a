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
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/replay"
	"gswitch/vswitch"
)

// A what-if and the least set of inputs are of one node. Of the record of a whole run one is
// chosen: what reached it, and when, stays what the others sent, and a host sends the messages
// that it was given.

// take takes the node of --node out of the record of a whole run.
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
		return usagef("%s is of a whole run, in which senders would have done something else: choose with --node the switch or host that is replayed with what reached it; gfabric run --set runs all of it with other settings", name)
	case f.whatIf != "":
		return usagef("%s is of a run of a scenario: name what is to be another with --set, as gfabric run has it", name)
	}
	var b bytes.Buffer
	if err := runner.Extract(ctx, in, f.node, &b); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f.taken = b.Bytes()
	if _, in, err = f.open(name); err != nil {
		return err
	}
	if err := settable(in.Header.Kind, f.set); err != nil {
		return err
	}
	return f.same(ctx, name)
}

// same makes sure that a node that was taken out of a run does the same by itself.
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

// notOfNodes are the sections of a scenario that say nothing of what a node is, and notOf those,
// and keys of hosts, that say nothing of a switch, or are of what came to a host, too.
var (
	notOfNodes = []string{"workload", "topology", "link", "clock", "faults", "probes", "controller", "queue_replay", "measure", "duration", "until", "expect", "deviates", "variants", "sweep",
		"seeds", "scale", "short", "name", "title", "paper", "version"}
	notOf = map[string][]string{runner.SwitchKind: {"hosts"}, runner.HostKind: {"switch", "hosts.payload"}}
)

// settable refuses settings that are not those of a node of a run.
func settable(kind string, set []string) error {
	for _, s := range set {
		key, _, _ := strings.Cut(s, "=")
		section := key
		if at := strings.IndexAny(key, ".["); at >= 0 {
			section = key[:at]
		}
		if slices.Contains(notOfNodes, section) || slices.Contains(notOf[kind], section) || slices.Contains(notOf[kind], key) {
			return usagef("--set %s: a %s is replayed with what reached it, so that nothing but its own settings can be others; gfabric run --set runs all of it with this one", s, kind)
		}
	}
	return nil
}

// runNode is a node of a run that is replayed by itself.
type runNode struct {
	*runner.Lone
	ports []string
	names map[uint16]string
	rated []uint16
}

// newRunNode makes the node of a record anew, with other settings of the scenario.
func newRunNode(h *replay.Header, set []string, pool *frame.Pool) (fixable, error) {
	l, err := runner.NewLone(h, set, pool)
	if err != nil {
		return nil, err
	}
	x := runNode{Lone: l, ports: l.Network.Topology.PortNames(l.Node), names: map[uint16]string{}}
	for port, name := range x.ports {
		x.names[uint16(port)] = name
		x.rated = append(x.rated, uint16(port))
	}
	if k := l.Network.HostAt(l.Node); k >= 0 {
		return &runHost{x, l.Network.Hosts[k]}, nil
	}
	return &runSwitch{x, l.Network.Switches[l.Network.SwitchAt(l.Node)]}, nil
}

// Refusals are the commands that failed with other settings, and why the first did.
func (x *runNode) Refusals() (int, error) { return x.Refused, x.FirstRefused }

// Ports implements replayable.
func (x *runNode) Ports() map[uint16]string { return x.names }

// Rated implements fixable: all ports of a run have the rates of their links.
func (x *runNode) Rated() []uint16 { return x.rated }

// runSwitch is a switch of a run.
type runSwitch struct {
	runNode
	Switch *vswitch.Switch
}

// TapDrops and TakeDrops are the switch's.
func (s *runSwitch) TapDrops(buf []frame.Ref) { s.Switch.Nodes[0].TapDrops(buf) }
func (s *runSwitch) TakeDrops() []frame.Ref   { return s.Switch.Nodes[0].TakeDrops() }

// Handler implements replayable.
func (s *runSwitch) Handler(h *replay.Header, at frame.Time) (http.Handler, error) {
	return control.Shown(s.Switch, h.Name, s.ports, h, at)
}

// runHost is a host of a run.
type runHost struct {
	runNode
	nic *hostnic.NIC
}

// NIC is the host's.
func (x *runHost) NIC() *hostnic.NIC { return x.nic }

// Verdicts are those on the payload that the host is sent, which records do not hold.
func (x *runHost) Verdicts() *frame.Verdicts { return x.nic.Verdicts() }

// TapDrops and TakeDrops are the host's.
func (x *runHost) TapDrops(buf []frame.Ref) { x.nic.TapDrops(buf) }
func (x *runHost) TakeDrops() []frame.Ref   { return x.nic.TakeDrops() }

// Handler implements replayable.
func (x *runHost) Handler(h *replay.Header, at frame.Time) (http.Handler, error) {
	s := hostOfRun(x.Network, x.Network.HostAt(x.Node), h)
	s.Now = at
	return s.Handler(), nil
}
