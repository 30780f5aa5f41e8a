package gswitch

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/section"
	"gswitch/wholefile"
)

func (a *app) validateCommand() *cobra.Command {
	return cli.Validate("gswitch", "switch.yaml", &a.json, func(file string) (cli.Found, error) {
		switches, ports := 0, 0
		var warnings section.Errors
		doc, err := config.Load(file)
		if err == nil {
			if text, rerr := wholefile.Read(file, section.MaxDocument); rerr == nil {
				warnings = config.Warnings(file, text)
			}
			if err = control.Check(doc); err != nil {
				err = fmt.Errorf("%s: %w", file, err)
			}
		}
		if err == nil {
			switches = len(doc.Switches)
			for i := range doc.Switches {
				ports += len(doc.Switches[i].Ports)
			}
		}
		return cli.Found{Counts: map[string]int{"switches": switches, "ports": ports}, Text: cli.Plural(switches, "switch") + ", " + cli.Plural(ports, "port"), Warnings: warnings}, err
	})
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of the configuration",
		Example: "  gswitch schema > gswitch.schema.json",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(config.Schema())
			return err
		},
	}
}

func (a *app) applyCommand() *cobra.Command {
	var k cli.Apply
	c := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make a file the configuration of a running daemon",
		Long: `Show what a file changes, and change it. Forwarding goes on; what is wrong
with the file changes nothing. "-" reads standard input. -f FILE is the same.`,
		Example: `  gswitch apply switch.yaml --dry-run
  gswitch apply switch.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			check := func(file string, text []byte) error { _, err := config.Parse(file, text); return err }
			r, err := k.Run(c, args, check, func(ctx context.Context, r *api.ApplyRequest) (*api.ApplyResponse, error) {
				client, address, err := a.client()
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
