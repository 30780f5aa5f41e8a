package gfabric

import (
	"io"

	"github.com/spf13/cobra"

	"gswitch/control/cli"
)

// catalogue is a command that lists what hosts can be known to use, of a kind T, and
// shows one with its options.
type catalogue[T any] struct {
	name           string // of the command
	one, all, what string // an algorithm, algorithms, the algorithms ... of hosts
	examples       [2]string
	list           func() []T
	find           func(name string) (T, error)
	writeList      func(w io.Writer, v []T) error
	write          func(w io.Writer, v T) error
}

func (c catalogue[T]) command() *cobra.Command {
	return cli.Group(c.name, "List "+c.what+" and their options",
		"  gfabric "+c.name+" list\n  gfabric "+c.name+" show "+c.examples[0],
		c.listCommand(), c.showCommand())
}

func (c catalogue[T]) listCommand() *cobra.Command {
	var asJSON bool
	list := &cobra.Command{
		Use:     "list",
		Short:   "List all " + c.all,
		Example: "  gfabric " + c.name + " list\n  gfabric " + c.name + " list --json | jq -r '.[].name'",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return writeJSON(c.list())
			}
			return c.writeList(&stdout, c.list())
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "write JSON: a list of "+c.all+" with their options")
	return list
}

func (c catalogue[T]) showCommand() *cobra.Command {
	var asJSON bool
	show := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show " + c.one + " and its options",
		Example: "  gfabric " + c.name + " show " + c.examples[0] + "\n  gfabric " + c.name + " show " + c.examples[1] + " --json",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			v, err := c.find(args[0])
			if err != nil {
				return mistake(err)
			}
			if asJSON {
				return writeJSON(v)
			}
			return c.write(&stdout, v)
		},
	}
	show.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return show
}
