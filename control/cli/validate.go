package cli

import (
	"errors"
	"fmt"

	"gswitch/section"

	"github.com/spf13/cobra"
)

// Found is what a configuration has: how many of each kind, by the names in
// JSON, and in words.
type Found struct {
	Counts   map[string]int
	Text     string
	Warnings section.Errors // what does nothing, of a configuration that is right
}

// Validate is the verb of a program that checks a file. With an error check
// returns the kinds all the same, of which there are none then.
func Validate(program, file string, asJSON *bool, check func(file string) (Found, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "validate FILE",
		Short:   "Check a configuration file",
		Long:    "Check everything about a configuration that can be known without the machine it is for. Exits with 2 if something is wrong.",
		Example: fmt.Sprintf("  %s validate %s", program, file),
		Args:    Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, files []string) error {
			found, err := check(files[0])
			if *asJSON {
				// Lines and columns count from 1.
				verdict := map[string]any{"file": files[0], "ok": err == nil, "errors": problems(err), "warnings": problems(found.Warnings)}
				for kind, n := range found.Counts {
					verdict[kind] = n
				}
				err = errors.Join(err, PrintValue(c.OutOrStdout(), verdict))
			} else if err == nil {
				for _, w := range found.Warnings {
					if _, err := fmt.Fprintln(c.ErrOrStderr(), "warning:", w); err != nil {
						return err
					}
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s: ok (%s)\n", files[0], found.Text)
				return err
			}
			if err != nil {
				return Input(err)
			}
			return nil
		},
	}
}

type problem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Key     string `json:"key"`
	Problem string `json:"problem"`
}

func problems(err error) []problem {
	out := []problem{}
	var list section.Errors
	switch {
	case err == nil:
	case errors.As(err, &list):
		for _, e := range list {
			out = append(out, problem{e.Line, e.Column, e.Key, e.Problem})
		}
	default:
		out = append(out, problem{Problem: err.Error()})
	}
	return out
}
