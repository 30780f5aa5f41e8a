// Package gswitch is the command gswitch, a software switch over AF_XDP: the
// daemon, and the verbs that watch and change it.
package gswitch

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/control/doctor"
	"gswitch/control/privilege"
)

// version is the program's, which Main gets.
var version = "unknown"

// Main runs gswitch by the arguments of the process and returns its exit code.
// The version is the program's own, as show version prints it.
func Main(v string) int {
	if err := privilege.Raise(); err != nil {
		fmt.Fprintln(os.Stderr, "gswitch:", err)
		return 1
	}
	return cli.Main(context.Background(), Command(v))
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
	sw     string
	json   bool
	show   control.Credentials
	limit  uint32
}

func newRoot() *cobra.Command {
	a := &app{}
	root := cli.Root(&cobra.Command{
		Use:   "gswitch",
		Short: "A software switch over AF_XDP",
		Long: `gswitch forwards frames between network interfaces in user space, over AF_XDP.

"gswitch run" is the daemon. Every other verb uses a running one, found
under ` + control.SocketDir + ` where only one runs, else chosen with --name or --socket.`,
		Example: `  gswitch run --port eth1 --port eth2
  gswitch run -c switch.yaml
  gswitch show ports
  gswitch watch`,
	}, version)
	f := root.PersistentFlags()
	f.StringVar(&a.socket, "socket", "", "control socket of the daemon (or host:port)")
	f.StringVar(&a.name, "name", "", "daemon, by the name of a switch of it; names the switch of run --port")
	f.StringVarP(&a.sw, "switch", "S", "", "switch, where the daemon runs several")
	cli.CredentialFlags(f, &a.show)
	f.BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(a.runCommand(), a.validateCommand(), a.applyCommand(), schemaCommand(), a.showCommand(), a.setCommand(), a.addCommand(), a.delCommand(),
		a.clearCommand(), a.watchCommand(), a.captureCommand(), a.recordCommand(), a.policyCommand(), doctor.Command("gswitch", &a.json), cli.Version("gswitch", version, "Version of this program (show version: of the daemon too)"))
	a.completeNames(root)
	return root
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
	return control.Dial(address, a.show), address, nil
}
