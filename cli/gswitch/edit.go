package gswitch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
)

func (a *app) edit(c *cobra.Command, r *api.EditRequest) error {
	client, address, err := a.client()
	if err != nil {
		return err
	}
	r.Switch = a.sw
	out, err := client.Edit(c.Context(), r)
	if err != nil {
		return control.Explain(address, err)
	}
	return cli.Applied(c.OutOrStdout(), out, a.json)
}

func (a *app) setCommand() *cobra.Command {
	return cli.Group("set", "Change ports; add or replace entries of tables", `  gswitch set port p1 --rate 10Gbps
  gswitch set port p1 --disable
  gswitch set port p1 loss 1% jitter 10us
  gswitch set route 10.0.0.0/8 via 10.1.0.1
  gswitch set fdb 02:00:00:00:00:07 p2 vlan 10
  gswitch set neighbor 10.1.0.1 02:00:00:00:00:02
  gswitch set acl edge '{name: ssh, match: {dst_port: 22}, action: permit}'`, append(a.entryCommands(false), a.setPortCommand())...)
}

func (a *app) addCommand() *cobra.Command {
	return cli.Group("add", "Add entries to tables that are not there yet", `  gswitch add route 10.0.0.0/8 via 10.1.0.1
  gswitch add route 10.0.0.0/8 via 10.1.0.1 weight 2 via 10.1.0.5
  gswitch add fdb 02:00:00:00:00:07 p1 vlan 10
  gswitch add neighbor 10.1.0.1 02:00:00:00:00:01
  gswitch add acl edge '{match: {protocol: tcp, dst_port: 22}, action: drop}'`, a.entryCommands(true)...)
}

// entryCommands set an entry: with create only one that is not there, else in
// place of the one with the same key, if there is one.
func (a *app) entryCommands(create bool) []*cobra.Command {
	set := func(c *cobra.Command, table, acl, yaml string) error {
		return a.edit(c, &api.EditRequest{Edit: &api.EditRequest_Set{Set: &api.Entry{Table: table, Acl: acl, Yaml: yaml, Create: create}}})
	}
	return []*cobra.Command{
		{Use: "route PREFIX (via ADDRESS [weight N])... [choose KIND] | blackhole | unreachable | prohibit", Short: "A static route", Args: cli.Args(cobra.MinimumNArgs(2)),
			RunE: func(c *cobra.Command, w []string) error {
				yaml, err := routeEntry(w)
				if err != nil {
					return cli.Usage(err)
				}
				return set(c, "routes", "", yaml)
			}},
		{Use: "neighbor ADDRESS MAC", Short: "A static neighbour", Args: cli.Args(cobra.ExactArgs(2)),
			RunE: func(c *cobra.Command, w []string) error {
				return set(c, "neighbors", "", fmt.Sprintf("{address: %q, mac: %q}", w[0], w[1]))
			}},
		{Use: "fdb MAC PORT [vlan ID]", Short: "A static address of layer 2", Args: cli.Args(cobra.RangeArgs(2, 4)),
			RunE: func(c *cobra.Command, w []string) error {
				entry := fmt.Sprintf("{mac: %q, port: %q}", w[0], w[1])
				switch {
				case len(w) == 4 && w[2] == "vlan":
					entry = fmt.Sprintf("{mac: %q, port: %q, vlan: %s}", w[0], w[1], scalarWord(w[3]))
				case len(w) > 2:
					return cli.Usage(fmt.Errorf("%q: after MAC and PORT only vlan ID may follow", strings.Join(w[2:], " ")))
				}
				return set(c, "fdb", "", entry)
			}},
		{Use: "acl LIST RULE", Short: "A rule of an access list, written as in the configuration", Args: cli.Args(cobra.ExactArgs(2)),
			RunE: func(c *cobra.Command, w []string) error { return set(c, "acl", w[0], w[1]) }},
	}
}

// routeEntry writes the words of a route as an entry of the document.
func routeEntry(w []string) (string, error) {
	if refusals := []string{"blackhole", "unreachable", "prohibit"}; len(w) == 2 && slices.Contains(refusals, w[1]) {
		return fmt.Sprintf("{prefix: %q, %s: true}", w[0], w[1]), nil
	}
	var hops []string
	choose := ""
	for i := 1; i < len(w); {
		if w[i] == "choose" && i+2 == len(w) && len(hops) > 0 {
			choose = ", choose: " + scalarWord(w[i+1])
			break
		}
		if w[i] != "via" || i+1 == len(w) {
			return "", fmt.Errorf("%q: write via ADDRESS [weight N], choose KIND behind them, or blackhole, unreachable or prohibit", strings.Join(w[i:], " "))
		}
		hop := fmt.Sprintf("{via: %q", w[i+1])
		if i += 2; i < len(w) && w[i] == "weight" {
			if i+1 == len(w) {
				return "", fmt.Errorf("weight wants a number")
			}
			hop += ", weight: " + scalarWord(w[i+1])
			i += 2
		}
		hops = append(hops, hop+"}")
	}
	if len(hops) == 1 && choose == "" && !strings.Contains(hops[0], "weight") {
		return fmt.Sprintf("{prefix: %q, %s", w[0], hops[0][1:]), nil
	}
	return fmt.Sprintf("{prefix: %q, next_hops: [%s]%s}", w[0], strings.Join(hops, ", "), choose), nil
}

// scalarWord keeps a word of the command line from being more than a value.
func scalarWord(s string) string {
	if strings.ContainsAny(s, ",{}[]:#&*!|>'\"%@` \n") {
		return fmt.Sprintf("%q", s)
	}
	return s
}

func (a *app) setPortCommand() *cobra.Command {
	var enable, disable bool
	var rate string
	c := &cobra.Command{Use: "port PORT [FAULT VALUE]... [none]", Short: "Enable, disable, or give a rate or faults to a port",
		Long: `Enable or disable a port, give it a rate, or let something go wrong with the
frames that leave it: loss, burst, corrupt, flip, duplicate, reorder,
reorder_delay, jitter, slow and seed, as under "faults" of a port in the
configuration. What is not named stays. The value none takes one away, the word
none at the end all that are there.`,
		Example: `  gswitch set port p1 --rate 25Gbps
  gswitch set port p1 --disable
  gswitch set port p1 loss 1% burst 8
  gswitch set port p1 reorder 0.1% reorder_delay 50us
  gswitch set port p1 loss none
  gswitch set port p1 none`,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, w []string) error {
			faults, err := faultWords(w[1:])
			if err != nil {
				return cli.Usage(err)
			}
			e := &api.SetPort{Port: w[0], Faults: faults}
			switch {
			case enable && disable:
				return cli.Usage(fmt.Errorf("--enable contradicts --disable"))
			case enable || disable:
				e.Enabled = &enable
			case rate == "" && len(faults) == 0:
				return cli.Usage(fmt.Errorf("set what? Give --enable, --disable, --rate, or a fault such as loss 1%%"))
			}
			if rate != "" {
				e.Rate = &rate
			}
			return a.edit(c, &api.EditRequest{Edit: &api.EditRequest_SetPort{SetPort: e}})
		}}
	c.Flags().BoolVar(&enable, "enable", false, "administratively up")
	c.Flags().BoolVar(&disable, "disable", false, "administratively down")
	c.Flags().StringVar(&rate, "rate", "", "speed of the emulated link, 10Gbps or unlimited")
	return c
}

func (a *app) delCommand() *cobra.Command {
	del := func(c *cobra.Command, table, acl, key string) error {
		return a.edit(c, &api.EditRequest{Edit: &api.EditRequest_Delete{Delete: &api.Key{Table: table, Acl: acl, Key: key}}})
	}
	one := func(use, short, table string) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cli.Args(cobra.ExactArgs(1)),
			RunE: func(c *cobra.Command, w []string) error { return del(c, table, "", w[0]) }}
	}
	return cli.Group("del", "Delete entries of tables", `  gswitch del route 10.0.0.0/8
  gswitch del fdb 02:00:00:00:00:07/10
  gswitch del neighbor 10.1.0.1
  gswitch del acl edge 20`,
		one("route PREFIX", "A static route", "routes"),
		one("neighbor ADDRESS", "A static neighbour", "neighbors"),
		one("fdb MAC[/VLAN]", "A static address of layer 2", "fdb"),
		&cobra.Command{Use: "acl LIST RULE", Short: "A rule of an access list, by number or name", Args: cli.Args(cobra.ExactArgs(2)),
			RunE: func(c *cobra.Command, w []string) error { return del(c, "acl", w[0], w[1]) }})
}

func (a *app) clearCommand() *cobra.Command {
	counters := &cobra.Command{Use: "counters", Short: "Count from zero in what show prints (/metrics goes on)", Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			client, address, err := a.client()
			if err != nil {
				return err
			}
			r, err := client.ClearCounters(c.Context(), &api.ClearCountersRequest{})
			if err != nil || !a.json {
				return control.Explain(address, err)
			}
			return cli.PrintJSON(c.OutOrStdout(), r)
		}}
	fdb := &cobra.Command{Use: "fdb", Short: "Remove learned addresses", Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			client, address, err := a.client()
			if err != nil {
				return err
			}
			r, err := client.FlushFDB(c.Context(), &api.FlushFDBRequest{Switch: a.sw})
			if err != nil {
				return control.Explain(address, err)
			}
			if a.json {
				return cli.PrintJSON(c.OutOrStdout(), r)
			}
			fmt.Fprintf(c.OutOrStdout(), "%d removed\n", r.Removed)
			return nil
		}}
	return cli.Group("clear", "Clear counters or learned addresses", "  gswitch clear counters\n  gswitch clear fdb", counters, fdb)
}
