package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gswitch/gswitch/config"
	"github.com/gswitch/gswitch/control"
	"github.com/gswitch/gswitch/control/api"
	"github.com/gswitch/gswitch/control/cli"
)

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "validate FILE",
		Short:   "Check a configuration file",
		Long:    "Check everything about a configuration that can be known without the machine it is for. Exits with 2 if something is wrong.",
		Example: "  gswitch validate switch.yaml",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, files []string) error {
			doc, err := config.Load(files[0])
			if err == nil {
				if err = control.Check(doc); err != nil {
					err = fmt.Errorf("%s: %w", files[0], err)
				}
			}
			if err != nil {
				if a.json {
					err = errors.Join(err, cli.PrintValue(c.OutOrStdout(), verdict{File: files[0], Errors: problems(err)}))
				}
				return cli.Usage(err)
			}
			ports := 0
			for i := range doc.Switches {
				ports += len(doc.Switches[i].Ports)
			}
			if a.json {
				return cli.PrintValue(c.OutOrStdout(), verdict{File: files[0], OK: true, Switches: len(doc.Switches), Ports: ports, Errors: []problem{}})
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: ok (%s, %s)\n", files[0], cli.Plural(len(doc.Switches), "switch"), cli.Plural(ports, "port"))
			return nil
		},
	}
}

// verdict is what validate found, as JSON. Lines and columns count from 1.
type verdict struct {
	File     string    `json:"file"`
	OK       bool      `json:"ok"`
	Switches int       `json:"switches"`
	Ports    int       `json:"ports"`
	Errors   []problem `json:"errors"`
}

type problem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Key     string `json:"key"`
	Problem string `json:"problem"`
}

func problems(err error) []problem {
	var list config.Errors
	if !errors.As(err, &list) {
		return []problem{{Problem: err.Error()}}
	}
	var out []problem
	for _, e := range list {
		out = append(out, problem{e.Line, e.Column, e.Key, e.Problem})
	}
	return out
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
		Use:   "apply -f FILE",
		Short: "Make a file the configuration of a running daemon",
		Long: `Show what a file changes, and change it. Forwarding goes on; what is wrong
with the file changes nothing. "-f -" reads standard input.`,
		Example: `  gswitch apply -f switch.yaml --dry-run
  gswitch apply -f switch.yaml`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			check := func(file string, text []byte) error { _, err := config.Parse(file, text); return err }
			r, err := k.Run(c, check, func(ctx context.Context, r *api.ApplyRequest) (*api.ApplyResponse, error) {
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
