package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"gswitch/control/api"
	"gswitch/section"
	"gswitch/wholefile"
)

// Apply are the flags of the verb that makes a file the configuration of a
// running daemon.
type Apply struct {
	file string
	dry  bool
}

// Flags adds the flags, and the file as an argument.
func (a *Apply) Flags(c *cobra.Command) {
	c.Flags().StringVarP(&a.file, "file", "f", "", "configuration file, or - for standard input; the same as the argument")
	c.Flags().BoolVar(&a.dry, "dry-run", false, "only show what would change")
	c.Args = Args(cobra.MaximumNArgs(1))
}

// Run reads the file, checks it here, so that mistakes cost no call and have
// the exit code of validate, and calls apply.
func (a *Apply) Run(c *cobra.Command, args []string, check func(file string, text []byte) error, apply func(context.Context, *api.ApplyRequest) (*api.ApplyResponse, error)) (*api.ApplyResponse, error) {
	switch {
	case len(args) > 0 && a.file != "":
		return nil, Usage(fmt.Errorf("apply which file, %s or %s? Name one", args[0], a.file))
	case len(args) > 0:
		a.file = args[0]
	case a.file == "":
		return nil, Usage(errors.New("apply what? Name a file, or - for standard input"))
	}
	text, err := read(c, a.file)
	if err != nil {
		return nil, Input(err)
	}
	if err := check(a.file, text); err != nil {
		return nil, Input(err)
	}
	return apply(c.Context(), &api.ApplyRequest{Yaml: string(text), File: a.file, DryRun: a.dry})
}

func read(c *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return wholefile.All("standard input", c.InOrStdin(), section.MaxDocument)
	}
	return wholefile.Read(file, section.MaxDocument)
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
