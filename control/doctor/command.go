package doctor

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"gswitch/control/cli"
	"gswitch/control/privilege"
	"gswitch/table"
)

// Command returns the command "doctor" of a program; asJSON is its flag --json.
func Command(program string, asJSON *bool) *cobra.Command {
	var fix bool
	var grant string
	var chunk int
	c := &cobra.Command{
		Use:   "doctor [INTERFACE | NETNS/INTERFACE]...",
		Short: "Check whether this machine and these interfaces can carry a switch or a host",
		Long: `Check the kernel, privileges, limits, CPUs and clock, and the interfaces that
are named: offloads of both ends of a veth, XDP programs, MTU, queues. Each line
says what was found; what is not in order comes with why it matters and the
command that fixes it. Exits with 1 if something that is needed is missing.

--fix fixes what can be fixed without harm, and says what it did: offloads of
the far end of a veth that leave its frames unfinished.

--grant FILE gives a program's file the capabilities that ports over interfaces
take, and does nothing else: who may run it needs not be root then, and can do
what they allow. For images of containers; leave it to one group elsewhere.`,
		Example: "  " + program + " doctor\n  " + program + " doctor veth0 lab/eth0\n  " + program + " doctor --fix veth0",
		RunE: func(c *cobra.Command, names []string) error {
			if grant != "" {
				return privilege.Grant(grant)
			}
			found := Here().Machine()
			for _, n := range names {
				v, err := Interface(n, chunk, fix)
				if err != nil {
					return err
				}
				found = append(found, v...)
			}
			if *asJSON {
				if err := cli.PrintValue(c.OutOrStdout(), map[string][]Finding{"checks": found}); err != nil {
					return err
				}
			} else {
				Print(c.OutOrStdout(), found)
			}
			for _, f := range found {
				if f.Result == Fail {
					return errors.New("a switch cannot run here as it should; see FAIL above")
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&fix, "fix", false, "fix what can be fixed without harm")
	c.Flags().StringVar(&grant, "grant", "", "give this program's file the capabilities that it takes, for users who are not root")
	c.Flags().IntVar(&chunk, "chunk", 2048, "bytes of a chunk (memory: {chunk: ...}), for the MTU")
	return c
}

// Print writes a table, followed by the remedies.
func Print(w io.Writer, found []Finding) {
	t := table.New("CHECK", "RESULT", "FOUND")
	todo := false
	for _, f := range found {
		t.Row(f.Check, f.Result, f.Found)
		todo = todo || f.Result != OK || f.Fixed != ""
	}
	t.Print(w)
	if !todo {
		return
	}
	for _, f := range found {
		if f.Result == OK && f.Fixed == "" {
			continue
		}
		fmt.Fprintf(w, "\n%s: %s\n", f.Check, f.Found)
		for _, x := range []struct{ name, text string }{{"why", f.Why}, {"run", f.Remedy}, {"fixed", f.Fixed}} {
			if x.text != "" {
				fmt.Fprintf(w, "  %-5s  %s\n", x.name, x.text)
			}
		}
	}
}
