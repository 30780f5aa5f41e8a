// Command ghost is a host on a network interface over AF_XDP: a NIC with queue
// pairs and congestion control, and the tools to load and to watch it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gswitch/gswitch/config"
	"github.com/gswitch/gswitch/control"
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
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, " ") {
			line = "ghost: " + line
		}
		fmt.Fprintln(os.Stderr, strings.TrimSuffix(line, "\n"))
	}
	os.Exit(exitCode(err))
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
	json   bool
}

func newRoot() *cobra.Command {
	a := &app{}
	root := &cobra.Command{
		Use:   "ghost",
		Short: "A host on AF_XDP: queue pairs, congestion control, load",
		Long: `ghost is a host on a network interface, in user space over AF_XDP: it answers
for its IP address, and moves messages over RoCEv2 queue pairs that are paced
by HPCC, DCQCN, TIMELY, DCTCP and others.

"ghost run" is the daemon. serve, send, ping, perf and show talk to a running
one, found under ` + config.HostSocketDir + ` where only one runs, else chosen with --name or
--socket. With --port, serve, send, ping and perf are a host of their own
instead, for as long as they run.`,
		Example: `  ghost run --port veth0 --addr 10.0.0.1/24
  ghost run -c host.yaml
  ghost serve --port veth1 --addr 10.0.0.2/24
  ghost send --to 10.0.0.2 --size 1MB --count 10 --cc hpcc
  ghost ping 10.0.0.2`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
	}
	root.SetVersionTemplate("ghost {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	f := root.PersistentFlags()
	f.StringVar(&a.socket, "socket", "", "control socket of the host (or host:port)")
	f.StringVar(&a.name, "name", "", "host by its name; names the host of --port")
	f.BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(a.runCommand(), a.serveCommand(), a.sendCommand(), a.pingCommand(), a.perfCommand(), a.showCommand(), validateCommand(), schemaCommand())
	return root
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

// address returns the control socket of the host that was chosen.
func (a *app) address() (string, error) {
	switch {
	case a.socket != "":
		return a.socket, nil
	case a.name != "":
		return filepath.Join(config.HostSocketDir, a.name+".sock"), nil
	}
	return control.FindHost(config.HostSocketDir)
}

func validateCommand() *cobra.Command {
	return &cobra.Command{Use: "validate FILE", Short: "Check a configuration file", Args: args(cobra.ExactArgs(1)), RunE: func(c *cobra.Command, words []string) error {
		h, err := config.LoadHost(words[0])
		if err != nil {
			return usageError{err}
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: a host %s on %s is right\n", words[0], h.Address, h.Interface)
		return err
	}}
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{Use: "schema", Short: "JSON Schema of the configuration file", Args: args(cobra.NoArgs), RunE: func(c *cobra.Command, _ []string) error {
		_, err := c.OutOrStdout().Write(config.SchemaOf("ghost configuration", new(config.Host)))
		return err
	}}
}
