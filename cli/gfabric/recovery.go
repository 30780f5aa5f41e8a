package gfabric

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gswitch/transport"
)

func recoveryCommand() *cobra.Command {
	return catalogue[*transport.Kind]{
		name: "recovery", one: "a scheme", all: "schemes", what: "the schemes of loss recovery of hosts", examples: [2]string{"irn", "newreno"},
		list: transport.Kinds, find: transport.Lookup, writeList: writeRecoveries, write: writeRecovery,
	}.command()
}

func writeRecoveries(w io.Writer, kinds []*transport.Kind) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tPAPER\tWHAT IT DOES")
	for _, k := range kinds {
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
