package gswitch

import (
	"context"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
)

func (a *app) captureCommand() *cobra.Command {
	var k cli.Capture
	c := &cobra.Command{
		Use:   "capture [-p PORT ...] -w FILE [FILTER ...]",
		Short: "Capture frames of ports as pcapng",
		Long: `Write the frames of the named ports, or of all, to a pcapng file or to standard
output: all, or those that a filter in the manner of tcpdump selects. They come
with their direction, interface, time in nanoseconds, and the reason of those
that were dropped. Forwarding never waits for it. Ends with Ctrl-C.

Frames are taken as they arrive, so that each is there once. --out takes them as
they leave, with what the switch itself sends; --in --out takes both.`,
		Example: `  gswitch capture -p p1 -p p2 -w trace.pcapng
  gswitch capture -w - udp port 4791 | tshark -r -
  gswitch capture --drops --in --duration 10s -w drops.pcapng`,
		RunE: func(c *cobra.Command, words []string) error {
			k.Request.In = k.Request.In || !k.Request.Out
			return k.Run(c, words, a.capture)
		},
	}
	k.Flags(c)
	c.Flags().StringArrayVarP(&k.Request.Ports, "port", "p", nil, "port, or switch/port (repeat); all if left out")
	return c
}

func (a *app) capture(ctx context.Context, r *api.CaptureRequest) (*connect.ServerStreamForClient[api.CaptureResponse], string, error) {
	client, address, err := a.client()
	if err != nil {
		return nil, address, err
	}
	// A stream has no deadline; whether anybody answers is found out before.
	if _, err := client.GetVersion(ctx, &api.GetVersionRequest{}); err != nil {
		return nil, address, control.Explain(address, err)
	}
	stream, err := client.Capture(ctx, r)
	return stream, address, control.Explain(address, err)
}
