package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"gswitch/control/api"
)

// Apply are the flags of the verb that makes a file the configuration of a
// running daemon.
type Apply struct {
	file string
	dry  bool
}

// Flags adds the flags.
func (a *Apply) Flags(c *cobra.Command) {
	c.Flags().StringVarP(&a.file, "file", "f", "", "configuration file, or - for standard input")
	c.Flags().BoolVar(&a.dry, "dry-run", false, "only show what would change")
	if err := c.MarkFlagRequired("file"); err != nil {
		panic(err)
	}
}

// Run reads the file, checks it here, so that mistakes cost no call and have
// the exit code of validate, and calls apply.
func (a *Apply) Run(c *cobra.Command, check func(file string, text []byte) error, apply func(context.Context, *api.ApplyRequest) (*api.ApplyResponse, error)) (*api.ApplyResponse, error) {
	text, err := read(c, a.file)
	if err != nil {
		return nil, Usage(err)
	}
	if err := check(a.file, text); err != nil {
		return nil, Usage(err)
	}
	return apply(c.Context(), &api.ApplyRequest{Yaml: string(text), File: a.file, DryRun: a.dry})
}

func read(c *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(c.InOrStdin())
	}
	return os.ReadFile(file)
}

// Applied shows what an edit or a document changed.
func Applied(out io.Writer, r *api.ApplyResponse, json bool) error {
	if json {
		return PrintJSON(out, r)
	}
	for _, line := range append(r.Changes, r.Consequences...) {
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
