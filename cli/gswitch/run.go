package gswitch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/cli"
	"gswitch/section"
)

// runFlags are the flags of run.
type runFlags struct {
	file    string
	ports   []string
	netns   string
	mode    string
	poll    string
	cpu     int
	listen  string
	wait    time.Duration
	take    bool
	verbose bool
	record  cli.RecordFlags
	keep    cli.Privileges
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [-c FILE | --port IF --port IF ...]",
		Short: "Run a daemon",
		Long: `Run switches until a signal ends them.

With -c the switches of a file run. With --port one switch runs, that learns
addresses and forwards between the interfaces.

An interface that is the loopback, or carries the default route or the SSH
session that this is started in, is refused: a port takes all frames, and the
machine would be cut off. --take, or "take: true" at a port of the file, says
that it is meant.

One line with the word ready is printed once it forwards. SIGHUP reads the
file again; SIGINT and SIGTERM end it.

Before that line it drops all capabilities but those that its configuration
needs, and may run no other program from then on. A configuration that names
other network namespaces for the first time is then refused, unless it runs
with --keep-privileges.`,
		Example: `  gswitch run --port eth1 --port eth2
  gswitch run --port eth1 --port eth2 --poll spin --cpu 1
  gswitch run --netns lab --port veth0 --port veth1 --mode native
  gswitch run -c switch.yaml --wait 30s
  gswitch run -c switch.yaml --record /var/lib/gswitch/records
  gswitch run -c switch.yaml --record records --record-last 64MiB \
    --record-on drop`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			doc, err := f.document(c, a)
			if err != nil {
				return err
			}
			return f.run(c.Context(), doc, a.socket, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVarP(&f.file, "config", "c", "", "configuration file")
	fl.StringArrayVarP(&f.ports, "port", "p", nil, "interface to forward over (repeat)")
	fl.StringVar(&f.netns, "netns", "", "network namespace of the interfaces, a name or a path")
	fl.BoolVar(&f.take, "take", false, "take interfaces that carry the default route, this SSH session or loopback, too")
	fl.StringVar(&f.mode, "mode", "auto", "AF_XDP mode: auto, zerocopy, native, generic")
	fl.StringVar(&f.poll, "poll", "adaptive", "when the worker sleeps: spin, adaptive, sleep")
	fl.IntVar(&f.cpu, "cpu", 0, "pin the worker to this CPU")
	fl.StringVar(&f.listen, "listen", "", "serve /metrics and /healthz on this TCP address")
	fl.DurationVar(&f.wait, "wait", 0, "wait so long for interfaces that are not there yet")
	f.record.Flags(fl, "switch", "gswitch record save, SIGUSR1", control.SwitchTriggers, control.ParseTriggers)
	f.keep.Flag(fl)
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log every change of the configuration too")
	return c
}

// document is the file, or what the flags say.
func (f *runFlags) document(c *cobra.Command, a *app) (*config.Config, error) {
	if f.file == "" && len(f.ports) == 0 {
		return nil, cli.Usage(errors.New("run what? Give a file with -c, or interfaces with --port"))
	}
	if f.file != "" {
		for _, name := range []string{"port", "netns", "mode", "poll", "cpu", "take"} {
			if c.Flags().Changed(name) {
				return nil, cli.Usage(fmt.Errorf("--%s does not go with -c: it is said in the file", name))
			}
		}
		doc, err := config.Load(f.file)
		if err != nil {
			return nil, cli.Input(err)
		}
		return doc, nil
	}
	name := a.name
	if name == "" {
		name = "gswitch"
	}
	worker := config.Worker{Poll: f.poll}
	if c.Flags().Changed("cpu") {
		worker.CPU = &f.cpu
	}
	sw := config.Switch{Name: name}
	for _, p := range f.ports {
		sw.Ports = append(sw.Ports, config.Port{Interface: p, NetNS: f.netns, Mode: f.mode, Take: f.take})
	}
	made := &config.Config{Version: 1, Workers: []config.Worker{worker}, Switches: []config.Switch{sw}}
	// The decoder knows what words and names are legal.
	doc, err := config.Parse("flags", made.YAML())
	if err != nil {
		return nil, cli.Input(byFlag(err))
	}
	return doc, nil
}

// byFlag names the flags that errors are about in place of the document that
// was made of them, which the user has not seen.
func byFlag(err error) error {
	flags := map[string]string{"mode": "--mode", "poll": "--poll", "cpu": "--cpu", "netns": "--netns", "interface": "--port"}
	return section.Rename(err, func(key string) string {
		switch flag := flags[key[strings.LastIndex(key, ".")+1:]]; {
		case flag != "":
			return flag
		case key == "switches[0].name":
			return "--name"
		case strings.HasPrefix(key, "switches[0].ports"):
			return "--port"
		}
		return key
	})
}

func (f *runFlags) run(ctx context.Context, doc *config.Config, socket string, stdout, stderr io.Writer) error {
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	log := control.NewLogger(stderr, level)
	record, err := f.record.Options()
	if err != nil {
		return cli.Usage(err)
	}
	opts := control.Options{Version: version, Source: cmp.Or(f.file, "flags"), Wait: f.wait, Record: f.record.Dir, RecordOptions: record, Logger: log, Control: config.Control{Listen: f.listen}}
	if socket != "" {
		// A socket is named as seen from here.
		if abs, err := filepath.Abs(socket); err == nil {
			opts.Control.Socket = abs
		}
	}
	doc = opts.Override(doc)
	r := &cli.Run{Log: log, Control: doc.Resolved().Control, File: f.file}
	r.Open = func(ctx context.Context) (cli.Daemon, error) {
		d, err := control.New(ctx, doc, opts)
		if refused := (control.ConfigError{}); errors.As(err, &refused) {
			err = fmt.Errorf("%s: %w", opts.Source, err)
		}
		r.Save = func(why string) error { _, err := d.SaveRecording("", why); return err }
		return d, err
	}
	return r.UntilSignal(ctx, &f.keep, stdout, summary(doc))
}

func summary(doc *config.Config) string {
	var parts []string
	for i := range doc.Switches {
		parts = append(parts, fmt.Sprintf("%s (%s)", doc.Switches[i].Name, cli.Plural(len(doc.Switches[i].Ports), "port")))
	}
	if len(parts) > 4 {
		parts = append(parts[:4], fmt.Sprintf("and %d more", len(parts)-4))
	}
	return strings.Join(parts, ", ")
}
