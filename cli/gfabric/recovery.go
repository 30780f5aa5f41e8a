package gfabric

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gswitch/transport"
)

func recoveryCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "recovery",
		Short: "List the schemes of loss recovery of hosts and their options",
		Example: "  gfabric recovery list\n" +
			"  gfabric recovery show irn",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("say which: gfabric recovery list, or gfabric recovery show NAME")
		},
	}
	c.AddCommand(recoveryListCommand(), recoveryShowCommand())
	return c
}

func recoveryListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List all schemes",
		Example: "  gfabric recovery list\n" +
			"  gfabric recovery list --json | jq -r '.[].name'",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return writeJSON(transport.Kinds())
			}
			return writeRecoveries(os.Stdout)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON: a list of schemes with their options")
	return c
}

func recoveryShowCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a scheme and its options",
		Example: "  gfabric recovery show irn\n" +
			"  gfabric recovery show newreno --json",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			k, err := transport.Lookup(args[0])
			if err != nil {
				return mistake(err)
			}
			if asJSON {
				return writeJSON(k)
			}
			return writeRecovery(os.Stdout, k)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

func writeRecoveries(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tPAPER\tWHAT IT DOES")
	for _, k := range transport.Kinds() {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", k.Name, k.Cite, k.Title)
	}
	return tw.Flush()
}

func writeRecovery(w io.Writer, k *transport.Kind) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", k.Name, k.Title)
	fmt.Fprintf(&b, "paper    %s\n", k.Paper)
	indent(&b, "", "note     ", strings.TrimPrefix(k.Note+"; cap, timeouts and ack_every are keys that all schemes share", "; "))
	writeOptions(&b, k.Params)
	_, err := io.WriteString(w, b.String())
	return err
}
