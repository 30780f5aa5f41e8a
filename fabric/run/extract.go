package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"gswitch/fabric/vnet"
	"gswitch/frame"
	records "gswitch/replay"
)

// Kinds in the headers of records that Extract wrote: the record of one switch or host of
// a run. Its configuration follows from the document of the whole run.
const (
	SwitchKind = "switch of a run"
	HostKind   = "host of a run"
)

// Extract makes the run of a record happen again, and writes a record of one of its nodes to
// w: of what reached it from the others, and when, and of the
// commands that it was given. NewLone makes the node
// of such a record anew.
func Extract(ctx context.Context, in *records.Reader, name string, w io.Writer) error {
	var out *records.Writer
	feed := records.NewFeed(8, in.Header.Chunk)
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
	var failed error
	x := Replay{Built: func(n *vnet.Network, p *records.NetworkPlayer) error {
		at, err := nodeOf(n, name)
		if err != nil {
			return err
		}
		h := in.Header
		h.Kind, h.Name = SwitchKind, name
		if n.HostAt(at) >= 0 {
			h.Kind = HostKind
		}
		n.OnCommand(func(now frame.Time, of int, c frame.Command) {
			if of != at {
				c.Do(now)
				return
			}
			rec.Command(now, c)
			failed = cmp.Or(failed, drain()) // there may be more of one instant than the feed holds
		})
		if out, err = records.NewWriter(w, &h); err != nil {
			return err
		}
		p.Stepped = func(frame.Time, int) error { return drain() }
		rec, err = p.Record(n.EngineNode(at), feed)
		return err
	}}
	if err := cmp.Or(x.Again(ctx, in), failed); err != nil {
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

// nodeOf returns the node with a name.
func nodeOf(n *vnet.Network, name string) (int, error) {
	t := n.Topology
	at, ok := t.Lookup(name)
	if ok {
		return at, nil
	}
	list := func(nodes []int) string {
		var names []string
		for _, node := range nodes {
			names = append(names, t.Nodes[node].Name)
		}
		return strings.Join(names, ", ")
	}
	return 0, fmt.Errorf("the run has no switch or host %q, it has %s, and %s", name, list(t.Switches()), list(t.Hosts()))
}
