package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Version returns the verb that prints the version of a program.
func Version(program, version, short string) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: short, Example: "  " + program + " version", Args: Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), program, version)
			return err
		},
	}
}
