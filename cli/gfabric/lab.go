package gfabric

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/control/cli"
	"gswitch/fabric/lab"
)

func upCommand() *cobra.Command {
	var f layoutFlags
	var r recordFlags
	var gswitch string
	c := &cobra.Command{
		Use:   "up FILE|GENERATOR",
		Short: "Raise a fabric",
		Example: "  gfabric up leaf-spine:2,4,2 --rate 200Mbps\n" +
			"  gfabric up ring:4 --name lab --listen 127.0.0.1:9100\n" +
			"  gfabric up dumbbell:2,2 --rate 10Mbps --host-rate 100Mbps --delay 5ms\n" +
			"  gfabric up my-topology.yaml --processes each\n" +
			"  gfabric up leaf-spine:2,4,2 --processes each --clock\n" +
			"  gfabric up ring:4 --record records --record-last 64MiB --record-on drop",
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if f.run, err = r.words(); err != nil {
				return err
			}
			l, err := f.layout(args[0])
			if err != nil {
				return err
			}
			program, err := lab.FindGswitch(gswitch)
			if err != nil {
				return err
			}
			return lab.Up(c.Context(), l, program, say)
		},
	}
	f.add(c)
	c.Flags().StringVar(&r.dir, "record", "", "record every switch to a file in this directory, from its beginning (gfabric replay)")
	c.Flags().StringVar(&r.last, "record-last", "", "keep the last inputs of each switch in this much memory, as in 64MiB, until a file is asked for (gswitch record save, --record-on)")
	c.Flags().StringSliceVar(&r.on, "record-on", nil, "with --record-last, write a file at these events: drop, drop:REASON, pause-storm")
	c.Flags().StringVar(&gswitch, "gswitch", "", "the gswitch to run; the one beside gfabric, or in PATH, if left out")
	return c
}

// recordFlags say how the switches of a fabric are recorded.
type recordFlags struct {
	dir, last string
	on        []string
}

// words are the flags of gswitch run that say so.
func (r *recordFlags) words() ([]string, error) {
	switch {
	case r.dir == "" && (r.last != "" || len(r.on) > 0):
		return nil, usagef("--record-last and --record-on go with --record, which names the directory")
	case r.dir == "":
		return nil, nil
	}
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		return nil, err
	}
	words := []string{"--record", dir}
	if r.last != "" {
		words = append(words, "--record-last", r.last)
	}
	if len(r.on) > 0 {
		words = append(words, "--record-on", strings.Join(r.on, ","))
	}
	return words, nil
}

func downCommand() *cobra.Command {
	var name string
	var all bool
	c := &cobra.Command{
		Use:   "down [NAME]",
		Short: "Remove a fabric, whole or not",
		Example: "  gfabric down\n" +
			"  gfabric down ring\n" +
			"  gfabric down --all",
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := named(&name, args); err != nil {
				return err
			}
			if all {
				if name != "" {
					return usagef("--all contradicts the name %s", name)
				}
				_, err := lab.DownAll(say)
				return err
			}
			if name == "" {
				only, err := lab.Resolve("")
				if errors.Is(err, lab.ErrNone) {
					say("no fabric is up: nothing to remove")
					return nil
				}
				if err != nil {
					return err
				}
				name = only
			}
			was, err := lab.Down(name, say)
			if err == nil && !was {
				say("there is no fabric %s: nothing to remove", name)
			}
			return err
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the fabric; not needed where there is one only")
	c.Flags().BoolVar(&all, "all", false, "remove all fabrics")
	return c
}

func execCommand() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "exec [--name FABRIC] HOST -- COMMAND [ARGUMENT...]",
		Short: "Run a command in a host, with this terminal; its exit code is passed on",
		Long: "exec runs a command in a host (or a switch's namespace) with this terminal.\n" +
			"The exit code is the command's own; 127 if it is not found, 126 if it cannot be run.",
		Example: "  gfabric exec h1 -- ping -c 3 h8\n" +
			"  gfabric exec h1 -- bash\n" +
			"  gfabric exec --name ring h1 -- ip route\n" +
			"  gfabric exec h2 -- gfabric load serve",
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no host and no command is given, as in gfabric exec h1 -- ping h2")
			}
			// Flags may stand before the host and behind it.
			if err := c.Flags().Parse(args[1:]); err != nil {
				return usagef("%w; a command begins after --, as in gfabric exec %s -- ping h2", err, args[0])
			}
			if help, _ := c.Flags().GetBool("help"); help {
				return c.Help()
			}
			argv := c.Flags().Args()
			if len(argv) == 0 {
				return usagef("no command is given to run in %s, as in gfabric exec %s -- ping h2, or bash for a shell", args[0], args[0])
			}
			only, err := lab.Resolve(name)
			if err != nil {
				return err
			}
			err = lab.Exec(only, args[0], argv)
			// As shells and env(1) do.
			switch {
			case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
				say("gfabric: %v", err)
				os.Exit(127)
			case errors.Is(err, fs.ErrPermission):
				say("gfabric: %v", err)
				os.Exit(126)
			}
			return err
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the fabric; not needed where there is one only")
	c.Flags().SetInterspersed(false) // what follows the host is the command's
	return c
}

// named takes the name of a fabric from the only argument, if there is one, in
// place of --name.
func named(name *string, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if *name != "" && *name != args[0] {
		return usagef("--name %s contradicts the argument %s", *name, args[0])
	}
	*name = args[0]
	return nil
}

func statusCommand() *cobra.Command {
	var name string
	var asJSON bool
	c := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show what is up; exit code 1 if a fabric is not whole",
		Example: "  gfabric status\n" +
			"  gfabric status ring --json",
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := named(&name, args); err != nil {
				return err
			}
			list, err := statuses(name)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(list)
			} else {
				err = writeTables(list)
			}
			for _, st := range list {
				if err == nil && !st.Healthy {
					err = fmt.Errorf("fabric %s is not whole", st.Name)
				}
			}
			return err
		},
	}
	c.Flags().StringVar(&name, "name", "", "only this fabric")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON: a list of fabrics")
	return c
}

func statuses(name string) ([]*lab.Status, error) {
	if name == "" {
		return lab.List()
	}
	st, err := lab.Inspect(name)
	if err != nil {
		return nil, err
	}
	return []*lab.Status{st}, nil
}

func writeTables(list []*lab.Status) error {
	if len(list) == 0 {
		fmt.Fprintln(&stdout, "no fabric is up")
	}
	for i, st := range list {
		if i > 0 {
			fmt.Fprintln(&stdout)
		}
		if err := st.WriteTable(&stdout); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(v any) error {
	e := json.NewEncoder(&stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
