package gswitch

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control/api"
)

// completeNames lets shells complete the names of ports and switches of the
// daemon that runs: wherever usage says PORT, and for --port and --switch.
func (a *app) completeNames(root *cobra.Command) {
	ports := func(c *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.names(c.Context(), func(p *api.Port) string {
			if a.sw != "" && p.Switch != a.sw {
				return ""
			}
			return p.Name
		})
	}
	switches := func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.names(c.Context(), func(p *api.Port) string { return p.Switch })
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if _, args, _ := strings.Cut(c.Use, " "); strings.HasPrefix(strings.TrimLeft(args, "["), "PORT") {
			c.ValidArgsFunction = func(c *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
				if len(words) > 0 { // the port is there
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return ports(c, words, typed)
			}
		}
		// run --port names interfaces, before there is a daemon.
		if f := c.Flags().Lookup("port"); f != nil && c.Name() != "run" {
			_ = c.RegisterFlagCompletionFunc("port", ports) // the flag is there
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	_ = root.RegisterFlagCompletionFunc("switch", switches) // the flag is there
}

// names asks the daemon for its ports. A shell that waits for an answer gets
// none after a second.
func (a *app) names(ctx context.Context, of func(p *api.Port) string) (list []string, _ cobra.ShellCompDirective) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client, _, err := a.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	m, err := client.ListPorts(ctx, &api.ListRequest{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, p := range m.Ports {
		if name := of(p); name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, cobra.ShellCompDirectiveNoFileComp
}
