package gswitch

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control/api"
	"gswitch/table"
	"gswitch/units"
	"gswitch/vswitch"
)

// showClock is the verb that shows clocks: which they follow, by what stamps, and what they
// count.
func (a *app) showClock(f *vswitch.Feature) *cobra.Command {
	ask := func(client api.ControlClient, ctx context.Context, r *api.ListRequest) (*api.Clocks, error) {
		r.Feature = f.Name
		return clocks(ctx, client, r)
	}
	return aliased(list(a, f.Name+" [PORT]", strings.TrimSuffix(f.Doc, ".")+": which one it follows, what stamps it has, what it counts", ask, func(w io.Writer, m *api.Clocks) {
		printClocks(w, m)
		for _, c := range m.Counters {
			c.Port = "all" // a switch has one clock, and counts it at its first port
		}
		printCounters(w, f, &api.Counters{Counters: m.Counters}, false)
	}), f.Aliases...)
}

// clocks asks for clocks and what they count. Of a port there is only what stamps it has: a
// clock is of all ports.
func clocks(ctx context.Context, client api.ControlClient, r *api.ListRequest) (*api.Clocks, error) {
	counters, err := client.ListCounters(ctx, r) // it knows whether there is such a port
	if err == nil && r.Port != "" {
		counters, err = client.ListCounters(ctx, &api.ListRequest{Switch: r.Switch, Feature: r.Feature})
	}
	if err != nil {
		return nil, err
	}
	m, err := client.ListClocks(ctx, &api.ListRequest{Switch: r.Switch})
	if err != nil {
		return nil, err
	}
	m.Counters = counters.Counters
	for _, c := range m.Clocks {
		c.Ports = slices.DeleteFunc(c.Ports, func(p *api.ClockPort) bool { return r.Port != "" && p.Port != r.Port })
	}
	return m, nil
}

func printClocks(w io.Writer, m *api.Clocks) {
	if len(m.Clocks) == 0 {
		return
	}
	t := table.New("SWITCH", "STATE", ">UNCERTAINTY", ">HOPS", ">A HOP", "PARENT", "SECOND", "ROOT", ">PLAN")
	ports := table.New("PORT", "STAMPS OF WHAT ARRIVES")
	for _, c := range m.Clocks {
		eps, epoch, hop := "-", "-", "measured"
		if c.Hop != 0 {
			hop = units.Duration(time.Duration(c.Hop)).String()
		}
		if c.Eps >= 0 {
			eps = units.Duration(time.Duration(c.Eps)).String()
		}
		if c.Controlled {
			epoch = fmt.Sprint(c.Plan.GetEpoch())
		}
		t.Row(c.Switch, c.State, eps, c.Depth, hop, dash(c.Parent), dash(c.Plan.GetSecond()), fmt.Sprintf("%016x", c.Root), epoch)
		for _, p := range c.Ports {
			name := p.Port
			if len(m.Clocks) > 1 {
				name = c.Switch + "/" + name
			}
			ports.Row(name, p.Stamps)
		}
	}
	t.Print(w)
	fmt.Fprintln(w)
	ports.Print(w)
	fmt.Fprintf(w, "what leaves is stamped last before the kernel gets it\n\n")
}
