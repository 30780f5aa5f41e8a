// Command gswitch is a software switch over AF_XDP: the daemon, and the verbs
// that watch and change it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gswitch/gswitch/config"
	"github.com/gswitch/gswitch/control"
	"github.com/gswitch/gswitch/control/api"
)

// version is set by the linker.
var version = "unknown"

// Exit codes.
const (
	exitFailure = 1 // the operation failed
	exitUsage   = 2 // the command line or the configuration is wrong
)

// usageError is an error of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() {
	root := newRoot()
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, prefixed(err))
	os.Exit(exitCode(err))
}

// prefixed begins every error with the program's name. Indented lines belong
// to the one before.
func prefixed(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, l := range lines {
		if l != "" && !strings.HasPrefix(l, " ") {
			lines[i] = "gswitch: " + l
		}
	}
	return strings.Join(lines, "\n")
}

func exitCode(err error) int {
	var usage usageError
	var conf config.Errors
	var refused control.ConfigError
	// cobra has no type for these two.
	if errors.As(err, &usage) || errors.As(err, &conf) || errors.As(err, &refused) || strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "required flag") {
		return exitUsage
	}
	return exitFailure
}

// app is what every verb needs.
type app struct {
	socket string
	name   string
	sw     string
	json   bool
	limit  uint32
}

func newRoot() *cobra.Command {
	a := &app{}
	root := &cobra.Command{
		Use:   "gswitch",
		Short: "A software switch over AF_XDP",
		Long: `gswitch forwards frames between network interfaces in user space, over AF_XDP.

"gswitch run" is the daemon. Every other verb talks to a running one, found
under ` + control.SocketDir + ` where only one runs, else chosen with --name or --socket.`,
		Example: `  gswitch run --port eth1 --port eth2
  gswitch run -c switch.yaml
  gswitch show ports
  gswitch watch`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
	}
	root.SetVersionTemplate("gswitch {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	f := root.PersistentFlags()
	f.StringVar(&a.socket, "socket", "", "control socket of the daemon (or host:port)")
	f.StringVar(&a.name, "name", "", "daemon, by the name of a switch of it; names the switch of run --port")
	f.StringVarP(&a.sw, "switch", "S", "", "switch, where the daemon runs several")
	f.BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(a.runCommand(), a.validateCommand(), a.applyCommand(), schemaCommand(), a.showCommand(), a.setCommand(), a.addCommand(), a.delCommand(),
		a.clearCommand(), a.watchCommand(), a.captureCommand(), a.doctorCommand(), versionCommand())
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Version of this program (show version: of the daemon too)", Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "gswitch", version)
			return err
		}}
}

// args makes what cobra says of arguments a usage error.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, a []string) error {
		if err := check(c, a); err != nil {
			return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
		}
		return nil
	}
}

// group is a verb that is nothing without another word.
func group(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Example: example, RunE: func(c *cobra.Command, a []string) error {
		var words []string
		for _, s := range c.Commands() {
			words = append(words, s.Name())
		}
		if len(a) > 0 {
			return usageError{fmt.Errorf("%s: unknown %q; there are %s", c.CommandPath(), a[0], strings.Join(words, ", "))}
		}
		return usageError{fmt.Errorf("%s what? There are %s", c.CommandPath(), strings.Join(words, ", "))}
	}}
	c.AddCommand(subs...)
	return c
}

// client returns the daemon's API, and its address for messages.
func (a *app) client() (api.ControlClient, string, error) {
	address := a.socket
	switch {
	case address != "":
	case a.name != "":
		address = control.SocketNamed(control.SocketDir, a.name)
	default:
		var err error
		if address, err = control.FindSocket(control.SocketDir, control.FabricSockets); err != nil {
			return nil, "", err
		}
	}
	return control.Dial(address), address, nil
}
