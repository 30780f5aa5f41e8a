package ghost

import (
	"context"
	"io"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
)

func (a *app) validateCommand() *cobra.Command {
	return cli.Validate("ghost", "host.yaml", &a.json, func(file string) (cli.Found, error) {
		doc, err := config.LoadHosts(file)
		if err != nil {
			return cli.Found{Counts: map[string]int{"hosts": 0}}, err
		}
		return cli.Found{Counts: map[string]int{"hosts": len(doc.Hosts)}, Text: summary(doc)}, nil
	})
}

func (a *app) applyCommand() *cobra.Command {
	var k cli.Apply
	c := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make a file the configuration of a running daemon",
		Long: `Show what a file changes, and change it. Queue pairs that are open stay, with
what they were opened with, unless a line says that their host is built anew:
its interface, netns, mac, address, payload and worker need that. Bumps in the
wire keep their open channels as they are; new ones go by the file. What is
wrong with the file changes nothing. "-" reads standard input. -f FILE
is the same.`,
		Example: `  ghost apply host.yaml --dry-run
  ghost apply host.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			check := func(file string, text []byte) (err error) {
				if describesBumps(text) {
					_, err = config.ParseTransparent(file, text)
				} else {
					_, err = config.ParseHosts(file, text)
				}
				return err
			}
			r, err := k.Run(c, args, check, func(ctx context.Context, r *api.ApplyRequest) (*api.ApplyResponse, error) {
				if describesBumps([]byte(r.Yaml)) {
					address, err := a.bumps()
					if err != nil {
						return nil, err
					}
					m, err := control.DialTransparent(address, a.show).Apply(ctx, r)
					return m, control.Explain(address, err)
				}
				client, address, err := a.client(ctx)
				if err != nil {
					return nil, err
				}
				m, err := client.Apply(ctx, r)
				return m, control.Explain(address, err)
			})
			if err != nil {
				return err
			}
			return cli.Applied(c.OutOrStdout(), r, a.json)
		},
	}
	k.Flags(c)
	return c
}

func (a *app) showConfigCommand() *cobra.Command {
	return &cobra.Command{Use: "config", Short: "The configuration in force, with its defaults", Args: cli.Args(cobra.NoArgs), RunE: func(c *cobra.Command, _ []string) error {
		client, address, err := a.client(c.Context())
		if err != nil {
			return err
		}
		doc, err := client.GetConfig(c.Context(), &api.GetConfigRequest{Defaults: true})
		if err != nil {
			return control.Explain(address, err)
		}
		if !a.json {
			_, err := io.WriteString(c.OutOrStdout(), doc.Yaml)
			return err
		}
		parsed, err := config.ParseHosts("the daemon's configuration", []byte(doc.Yaml))
		if err != nil {
			return err
		}
		return cli.PrintValue(c.OutOrStdout(), parsed)
	}}
}

func (a *app) watchCommand() *cobra.Command {
	var k cli.Watch
	c := &cobra.Command{
		Use:   "watch",
		Short: "Watch the rates of the hosts",
		Long: `Show what the hosts send and receive, again and again. On a terminal the
picture is refreshed in place; else, and with --json, one report follows the
other.`,
		Example: "  ghost watch\n  ghost watch -i 200ms --host h3\n  ghost watch -n 3 --json",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := k.Check(); err != nil {
				return err
			}
			client, address, err := a.reachable(c.Context())
			if err != nil {
				return err
			}
			return k.Run(c, a.json, address, func(ctx context.Context, ms uint32) (*connect.ServerStreamForClient[api.Ports], error) {
				return client.Watch(ctx, &api.WatchHostsRequest{Host: a.host, IntervalMs: ms})
			})
		},
	}
	k.Flags(c)
	return c
}

// reachable is client for streams, which have no deadline: whether anybody
// answers is found out before.
func (a *app) reachable(ctx context.Context) (api.HostClient, string, error) {
	client, address, err := a.client(ctx)
	if err == nil {
		_, err = client.ListHosts(ctx, &api.ListHostsRequest{Host: a.host})
		err = control.Explain(address, err)
	}
	return client, address, err
}

func (a *app) captureCommand() *cobra.Command {
	var k cli.Capture
	c := &cobra.Command{
		Use:   "capture [--host HOST] -w FILE [FILTER ...]",
		Short: "Capture frames of hosts as pcapng",
		Long: `Write the frames of a host, or of all of the daemon, to a pcapng file or to
standard output: all, or those that a filter in the manner of tcpdump selects.
They come with their direction, interface, time in nanoseconds, and the reason
of those that were dropped. The hosts never wait for it. Ends with Ctrl-C.

What leaves is captured when it is handed to the interface.`,
		Example: `  ghost capture -w trace.pcapng
  ghost capture --host h3 -n 1000 -w - udp port 4791 | tshark -r -
  ghost capture --drops --in --duration 10s -w drops.pcapng`,
		RunE: func(c *cobra.Command, words []string) error {
			return k.Run(c, words, func(ctx context.Context, r *api.CaptureRequest) (*connect.ServerStreamForClient[api.CaptureResponse], string, error) {
				client, address, err := a.reachable(ctx)
				if err != nil {
					return nil, address, err
				}
				if a.host != "" {
					r.Ports = []string{a.host}
				}
				stream, err := client.Capture(ctx, r)
				return stream, address, control.Explain(address, err)
			})
		},
	}
	k.Flags(c)
	return c
}
