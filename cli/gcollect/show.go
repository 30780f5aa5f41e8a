package gcollect

import (
	"github.com/spf13/cobra"

	"gswitch/collect"
	"gswitch/control/cli"
)

func (a *app) showCommand() *cobra.Command {
	return cli.Group("show", "Show state of collectors", "  gcollect show limits\n  gcollect show limits --json", a.limitsCommand())
}

func (a *app) limitsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "limits",
		Short: "What is bounded: memory by what, tables, connections, streams, lines of the log",
		Long: `limits shows what is bounded of each collector that runs, what is in use of it, and how
often something was refused.`,
		Example: "  gcollect show limits\n  gcollect show limits --json",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			v, err := asked(c.Context(), a, (*collect.Store).AskLimits)
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(c.OutOrStdout(), v)
			}
			cli.PrintLimits(c.OutOrStdout(), v)
			return nil
		},
	}
}
