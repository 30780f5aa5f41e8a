package gswitch

import (
	"context"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
)

func (a *app) watchCommand() *cobra.Command {
	var k cli.Watch
	c := &cobra.Command{
		Use:   "watch",
		Short: "Watch the rates of the ports",
		Long: `Show the rates of all ports, again and again. On a terminal the picture is
refreshed in place; else, and with --json, one report follows the other.`,
		Example: "  gswitch watch\n  gswitch watch -i 200ms\n  gswitch watch -n 3 --json",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := k.Check(); err != nil {
				return err
			}
			client, address, err := a.client()
			if err != nil {
				return err
			}
			// A stream has no deadline; whether anybody answers is found out before.
			if _, err := client.GetVersion(c.Context(), &api.GetVersionRequest{}); err != nil {
				return control.Explain(address, err)
			}
			return k.Run(c, a.json, address, func(ctx context.Context, ms uint32) (*connect.ServerStreamForClient[api.Ports], error) {
				return client.Watch(ctx, &api.WatchRequest{Switch: a.sw, IntervalMs: ms})
			})
		},
	}
	k.Flags(c)
	return c
}
