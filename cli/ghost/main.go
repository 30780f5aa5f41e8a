// Package ghost is the command ghost, a host on a network interface over
// AF_XDP: a NIC with queue pairs and congestion control, and the tools to load
// and to watch it.
//
// A program of another module that registers an algorithm and calls Main is
// ghost with that algorithm.
package ghost

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/control/doctor"
	"gswitch/control/privilege"
)

// version is the program's, which Main gets.
var version = "unknown"

// Main runs ghost by the arguments of the process and returns its exit code.
// The version is the program's own.
func Main(v string) int {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if err := privilege.Raise(); err != nil {
		fmt.Fprintln(os.Stderr, "ghost:", err)
		return 1
	}
	return cli.Main(ctx, Command(v))
}

// Command returns the tree of commands, for manual pages and completions.
func Command(v string) *cobra.Command {
	version = v
	return newRoot()
}

// app is what every verb needs.
type app struct {
	socket string
	name   string
	host   string
	json   bool
	show   control.Credentials
	keep   cli.Privileges // of run
}

func newRoot() *cobra.Command {
	a := &app{}
	root := cli.Root(&cobra.Command{
		Use:   "ghost",
		Short: "A host on AF_XDP: queue pairs, congestion control, load",
		Long: `ghost is a host on a network interface, in user space over AF_XDP: it answers
for its IP address, and moves messages over RoCEv2 queue pairs that are paced
by HPCC, DCQCN, TIMELY, DCTCP and others.

"ghost run" is the daemon, of one host or of several. The other verbs use a
running one, found under ` + config.HostSocketDir + ` where only one runs, else chosen with
--name or --socket; --host chooses among the hosts of a daemon. With --port,
serve, send, ping and perf are a host of their own instead, for as long as they
run.`,
		Example: `  ghost run --port veth0 --addr 10.0.0.1/24
  ghost run -c host.yaml
  ghost serve --port veth1 --addr 10.0.0.2/24
  ghost send --to 10.0.0.2 --size 1MB --count 10 --cc hpcc
  ghost ping 10.0.0.2
  ghost show flows
  ghost apply host.yaml --dry-run`,
	}, version)
	f := root.PersistentFlags()
	f.StringVar(&a.socket, "socket", "", "control socket of the host (or host:port)")
	f.StringVar(&a.name, "name", "", "host, or daemon, by name; names the host of --port")
	f.StringVar(&a.host, "host", "", "host, where the daemon runs several")
	cli.CredentialFlags(f, &a.show)
	f.BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(a.withTransparent(a.runCommand()), a.serveCommand(), a.sendCommand(), a.pingCommand(), a.perfCommand(), a.tcpCommand(), a.calibrateCommand(), a.withChannels(a.showCommand()), a.timeCommand(), a.watchCommand(), a.captureCommand(),
		a.applyCommand(), a.withTransparentFiles(a.validateCommand()), schemaCommand(), doctor.Command("ghost", &a.json), cli.Version("ghost", version, "Version of this program (show host: of the daemon)"))
	return root
}

// client returns the API of the daemon that was chosen, and its address for
// messages. A name that is one of its hosts chooses that too.
func (a *app) client(ctx context.Context) (api.HostClient, string, error) {
	address := a.socket
	switch {
	case address != "":
	case a.name != "":
		if address = control.HostNamed(ctx, config.HostSocketDir, a.name); a.host == "" && control.HasHost(ctx, address, a.name) {
			a.host = a.name
		}
	default:
		var err error
		if address, err = control.FindHost(config.HostSocketDir); err != nil {
			return nil, "", err
		}
	}
	return control.DialHost(address, a.show), address, nil
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{Use: "schema", Short: "JSON Schema of the configuration file", Example: "  ghost schema > ghost.schema.json", Args: cli.Args(cobra.NoArgs), RunE: func(c *cobra.Command, _ []string) error {
		_, err := c.OutOrStdout().Write(config.HostsSchema())
		return err
	}}
}
