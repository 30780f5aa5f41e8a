// Package gfabric is the command gfabric: it raises networks of hosts and
// gswitches on this machine, in network namespaces, and runs scenarios in
// virtual time.
//
// A program of another module that registers an algorithm and calls Main is
// gfabric with that algorithm.
package gfabric

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"gswitch/control/cli"
	"gswitch/fabric"
)

// version is the program's, which Main gets.
var version = "unknown"

// Exit codes.
const (
	exitFailed = cli.ExitFailure // it was understood and did not work
	exitUsage  = cli.ExitUsage   // the command line or the topology is wrong
	// exitInvalid: a run on real frames did not keep time, so that there is no
	// result; another machine, or a larger scale, may give one.
	exitInvalid = 3
)

// usagef is a mistake on the command line.
func usagef(format string, args ...any) error { return cli.Usage(fmt.Errorf(format, args...)) }

// inputf is a mistake in what the command line names.
func inputf(format string, args ...any) error { return cli.Input(fmt.Errorf(format, args...)) }

// Main runs gfabric by the arguments of the process and returns its exit code.
// The version is the program's own, as results and --version show it.
func Main(v string) int {
	version = v
	return run(os.Args[1:])
}

// Command returns the tree of commands, for manual pages and completions.
func Command(v string) *cobra.Command {
	version = v
	root, _ := command()
	return root
}

// stdout is where all that is asked for is printed.
var stdout cli.Output

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	root, began := command()
	root.SetArgs(args)
	stdout = cli.Output{}
	root.SetOut(&stdout)
	c, err := root.ExecuteContextC(ctx)
	err = stdout.Failed(err)
	var invalid invalidError
	switch {
	case err == nil:
		return 0
	case cli.ExitCode(err) == exitUsage || !*began:
		fmt.Fprintln(os.Stderr, cli.Explained(c, err))
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "gfabric: interrupted")
		return exitFailed
	}
	fmt.Fprintf(os.Stderr, "gfabric: %v\n", err)
	if errors.As(err, &invalid) {
		return exitInvalid
	}
	return exitFailed
}

// command returns the tree of commands, and a flag that is set once one of
// them was understood and begins.
func command() (*cobra.Command, *bool) {
	began := false
	root := cli.Root(&cobra.Command{
		Use:   "gfabric",
		Short: "Networks of hosts and gswitches on this machine, in network namespaces or in virtual time",
		Long: "gfabric raises networks of hosts and gswitches on this machine (up, exec, status,\n" +
			"down, demo; root): hosts are network namespaces with the kernel's own stack, the\n" +
			"switches are gswitch processes.\n\n" +
			"It also runs experiments (run, check, compare, report, cc, ns3; no root): a scenario\n" +
			"file says who sends what, what is measured and what must come out. Hosts are RDMA\n" +
			"NICs. They and the switches run in virtual time (--on sim) or, the same nodes, on\n" +
			"real frames between network namespaces (--on netns, fit, compare --sim --netns; root).\n\n" +
			"traces, why, losses and diagnose say what became of packets and connections; replay\n" +
			"does again what a switch did. None of them needs root.\n\n" +
			"A network is described by a YAML file or by a generator:\n  " + strings.Join(fabric.Generators(), "\n  "),
		Example: "  gfabric up leaf-spine:2,4,2 --rate 200Mbps\n" +
			"  gfabric exec h1 -- ping -c 3 h8\n" +
			"  gfabric status\n" +
			"  gfabric down\n" +
			"  gfabric run scenarios/quickstart.yaml\n" +
			"  gfabric run scenarios/agreement/incast2.yaml --on netns",
		PersistentPreRun: func(*cobra.Command, []string) { began = true },
	}, version)
	root.AddCommand(upCommand(), downCommand(), execCommand(), statusCommand(), graphCommand(), siteCommand(), watchCommand(), planCommand(), loadCommand(), demoCommand(), headroomCommand(), pfcCommand(), clockCommand(), replayCommand(), tracesCommand(), whyCommand(), probeCommand(), diagnoseCommand(), transparentCommand(), compareCommand(), reportCommand(), runCommand(), fitCommand(), checkCommand(), schemaCommand(), ccCommand(), recoveryCommand(), ns3Command(), nodeCommand(), cli.Version("gfabric", version, "Version of this program"))
	root.AddCommand(lossesCommand(), flowsCommand(), sweepCommand(), workerCommand(), exportCommand(), collectCommand())
	return root, &began
}

// one accepts a single argument, and says what it is if it is missing.
func one(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usagef("name %s", what)
		case len(args) > 1:
			return usagef("%q is one argument too many; %s takes %s", args[1], c.CommandPath(), what)
		}
		return nil
	}
}

// say writes a line of progress. Results go to standard output, progress to
// standard error.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
