package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gswitch/gswitch/config"
	"github.com/gswitch/gswitch/control"
	"github.com/gswitch/gswitch/control/api"
)

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "validate FILE",
		Short:   "Check a configuration file",
		Long:    "Check everything about a configuration that can be known without the machine it is for. Exits with 2 if something is wrong.",
		Example: "  gswitch validate switch.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, files []string) error {
			doc, err := config.Load(files[0])
			if err == nil {
				if err = control.Check(doc); err != nil {
					err = fmt.Errorf("%s: %w", files[0], err)
				}
			}
			if err != nil {
				if a.json {
					err = errors.Join(err, printValue(c, verdict{File: files[0], Errors: problems(err)}))
				}
				return usageError{err}
			}
			ports := 0
			for i := range doc.Switches {
				ports += len(doc.Switches[i].Ports)
			}
			if a.json {
				return printValue(c, verdict{File: files[0], OK: true, Switches: len(doc.Switches), Ports: ports, Errors: []problem{}})
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: ok (%s, %s)\n", files[0], plural(len(doc.Switches), "switch"), plural(ports, "port"))
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
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(config.Schema())
			return err
		},
	}
}

func (a *app) applyCommand() *cobra.Command {
	var file string
	var dry bool
	c := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make a file the configuration of a running daemon",
		Long: `Show what a file changes, and change it. Forwarding goes on; what is wrong
with the file changes nothing. "-f -" reads standard input.`,
		Example: `  gswitch apply -f switch.yaml --dry-run
  gswitch apply -f switch.yaml`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := read(c, file)
			if err != nil {
				return usageError{err}
			}
			// Found here, mistakes cost no call, and the code is that of validate.
			if _, err := config.Parse(file, text); err != nil {
				return usageError{err}
			}
			client, address, err := a.client()
			if err != nil {
				return err
			}
			r, err := client.Apply(c.Context(), &api.ApplyRequest{Yaml: string(text), File: file, DryRun: dry})
			if err != nil {
				return control.Explain(address, err)
			}
			return a.applied(c, r)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "configuration file")
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would change")
	if err := c.MarkFlagRequired("file"); err != nil {
		panic(err)
	}
	return c
}

func read(c *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(c.InOrStdin())
	}
	return os.ReadFile(file)
}

// applied shows what an edit or a document changed.
func (a *app) applied(c *cobra.Command, r *api.ApplyResponse) error {
	if a.json {
		return printJSON(c, r)
	}
	out := c.OutOrStdout()
	for _, line := range r.Changes {
		fmt.Fprintln(out, line)
	}
	switch {
	case len(r.Changes) == 0:
		fmt.Fprintln(out, "nothing changes")
	case r.DryRun:
		fmt.Fprintln(out, "nothing was changed (dry run)")
	default:
		fmt.Fprintf(out, "applied (generation %d)\n", r.Generation)
	}
	return nil
}
