package gfabric

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/table"
	"gswitch/transport"
)

func recoveryCommand() *cobra.Command {
	return catalogue[*transport.Kind]{
		name: "recovery", one: "a scheme", all: "schemes", what: "the schemes of loss recovery of hosts", examples: [2]string{"irn", "newreno"},
		list: transport.Kinds, find: transport.Lookup, writeList: writeRecoveries, write: writeRecovery,
	}.command()
}

func writeRecoveries(w io.Writer, kinds []*transport.Kind) error {
	t := table.New("NAME", "PAPER", "WHAT IT DOES")
	for _, k := range kinds {
		t.Row(k.Name, k.Cite, k.Title)
	}
	return t.Print(w)
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
