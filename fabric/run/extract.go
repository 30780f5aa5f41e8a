package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"gswitch/fabric/live"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	records "gswitch/replay"
)

// SwitchKind is what headers of records say that Extract wrote: of one switch of a run,
// which follows from the document of the whole run.
const SwitchKind = "switch of a run"

// Extract makes the run of a record happen again, and writes a record of one of its
// switches to w: of what reached it from the others, and when. NewSwitch makes the switch
// of such a record anew.
func Extract(ctx context.Context, in *records.Reader, name string, w io.Writer) error {
	feed := records.NewFeed(8)
	h := in.Header
	h.Kind, h.Name = SwitchKind, name
	out, err := records.NewWriter(w, &h)
	if err != nil {
		return err
	}
	drain := func() error {
		for s := feed.Next(); s != nil; s = feed.Next() {
			if err := out.Write(s); err != nil {
				return err
			}
			feed.Return(s)
		}
		return nil
	}
	var rec *records.Recorder
	x := Replay{Built: func(n *vnet.Network, p *records.NetworkPlayer) (err error) {
		k, ok := n.SwitchByName(name)
		if !ok {
			return NoSwitch(n, name)
		}
		p.Stepped = func(frame.Time, int) error { return drain() }
		rec, err = p.Record(n.EngineNode(n.Topology.Switches()[k]), feed)
		return err
	}}
	if err := x.Again(ctx, in); err != nil {
		return err
	}
	rec.End(x.Player.Now())
	if err := drain(); err != nil {
		return err
	}
	why := rec.Lost()
	if x.Cut != nil {
		why = x.Cut.Error()
	}
	if why == "" {
		return nil
	}
	return out.Lost(why)
}

// NoSwitch is the error of a name that no switch of a run has.
func NoSwitch(n *vnet.Network, name string) error {
	var names []string
	for _, node := range n.Topology.Switches() {
		names = append(names, n.Topology.Nodes[node].Name)
	}
	return fmt.Errorf("the run has no switch %q, it has %s", name, strings.Join(names, ", "))
}

// NewSwitch makes the network of a record that Extract wrote, with other settings
// (path=value of the scenario), and returns it with the switch of the record, which is
// stepped alone and allocates from pool.
func NewSwitch(h *records.Header, set []string, pool *frame.Pool) (*vnet.Network, frame.Stepper, error) {
	s, err := scenarioOf(h, set)
	if err != nil {
		return nil, nil, err
	}
	var n *vnet.Network
	var nodes []frame.Stepper
	at := &host{o: &Options{Version: h.Build, On: Netns}, again: live.Idle(pool, &nodes), built: func(made *vnet.Network) { n = made }}
	if _, err := one(context.Background(), s, &s.Runs[0], at, new(progress)); !errors.Is(err, live.ErrStopAt) {
		return nil, nil, err
	}
	k, ok := n.SwitchByName(h.Name)
	if !ok {
		return nil, nil, NoSwitch(n, h.Name)
	}
	return n, nodes[n.EngineNode(n.Topology.Switches()[k])], nil
}
