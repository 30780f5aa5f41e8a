package gcollect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/collect"
	"gswitch/collect/clocks"
	"gswitch/control"
	"gswitch/control/cli"
	"gswitch/control/privilege"
	"gswitch/fabric"
	"gswitch/fabric/clock"
	"gswitch/table"
)

// fabricRun is where the daemons of gfabric listen, by the name of the fabric.
const fabricRun = "/run/gfabric"

func (a *app) clockCommand() *cobra.Command {
	return cli.Group("clock", "Plan the clocks of switches, and bring the switches to the plan",
		"  gcollect clock run --fabric leaf-spine:2,4,2\n"+
			"  gcollect clock status",
		a.clockRunCommand(), a.clockStatusCommand())
}

// clockFlags are the flags of clock run.
type clockFlags struct {
	fabric   string
	name     string
	root     string
	domains  []string
	daemons  []string
	sockets  string
	metrics  string
	names    []string // by which metrics may be asked for
	lease    time.Duration
	every    time.Duration
	replicas int
	show     control.Credentials
	keep     cli.Privileges
}

func (a *app) clockRunCommand() *cobra.Command {
	var f clockFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "Control the clocks of a fabric's switches",
		Long: `run looks at the switches of a fabric, plans which clock follows which (as gfabric clock plan
does) on what works, and brings the switches to the plan, make before break: first
all send by the ports of the new plan, too, then they follow its parents, the root
first, then they send by no others. Clocks with "clock: {controlled: true}" in their
document take part. When a link or a switch fails, or comes back, it plans again; in
the time until then the clocks turn to their second parents by themselves.

Several may run for one fabric. They choose one by a lease in JetStream: in the server
of "gcollect run" with the same --data, or in a cluster (--nats). When it fails, another
one leads after --lease. Each plan has an epoch of its own, and a switch takes nothing
of an earlier plan than it has begun with: a controller that was replaced, and does not know it,
changes nothing.

--fabric is the network as gfabric up takes it. Ports of switches are named as gfabric
names them: by the neighbour, and s2.2 for the second link to s2. Daemons are found
where gfabric up has them, or by --daemon.`,
		Example: `  gcollect clock run --fabric leaf-spine:2,4,2
  gcollect clock run --fabric fabric.yaml --root spine1 \
    --domain supply=spine1,spine2
  gcollect clock run --fabric fabric.yaml --token token \
    --daemon s1=10.0.0.1:9100 --daemon s2=10.0.0.2:9100
  gcollect clock run --fabric fabric.yaml --replicas 2 \
    --nats nats://n1:4222,nats://n2:4222`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c.Context(), a, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.fabric, "fabric", "", "the network: a file, or a generator such as leaf-spine:2,4,2")
	fl.StringVar(&f.name, "name", "", "of this controller among others; the machine's and the process's number if left out")
	fl.StringVar(&f.root, "root", "", "switch that the others follow where there is no root yet; the first of those farthest from the hosts if left out")
	fl.StringArrayVar(&f.domains, "domain", nil, "failure domain, as name=node,node,...; may be repeated")
	fl.StringArrayVar(&f.daemons, "daemon", nil, "where the daemon of a switch is, as switch=socket or switch=host:port; may be repeated")
	fl.StringVar(&f.sockets, "sockets", "", "directory of the daemons' sockets, each with the name of its switch; that of the fabric that is up if left out")
	fl.StringVar(&f.metrics, "metrics", "", "TCP address of /metrics and /healthz; none if left out")
	fl.StringSliceVar(&f.names, "metrics-name", nil, "names by which /metrics may be asked for, beside addresses, localhost and the name of this machine")
	fl.DurationVar(&f.lease, "lease", 3*time.Second, "for how long a controller leads that has stopped renewing its lease")
	fl.DurationVar(&f.every, "every", 200*time.Millisecond, "between two looks at the switches")
	fl.IntVar(&f.replicas, "replicas", 1, "with --nats: servers that keep who leads")
	cli.CredentialFlags(fl, &f.show)
	f.keep.Flag(fl)
	return c
}

func (f *clockFlags) run(ctx context.Context, a *app, stdout, stderr io.Writer) error {
	log := control.NewLogger(stderr, slog.LevelInfo)
	switch {
	case f.fabric == "":
		return cli.Usage(errors.New("--fabric is missing: name the network that is planned"))
	case f.lease < 100*time.Millisecond:
		return cli.Usage(fmt.Errorf("--lease of %v: it takes 100ms or more", f.lease))
	case f.every < 10*time.Millisecond:
		return cli.Usage(fmt.Errorf("--every of %v: it takes 10ms or more", f.every))
	}
	ctl, err := f.controller()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM)
	defer stop()
	nc, err := collect.Dial(a.nats, a.login, a.data)
	if err != nil {
		return err
	}
	defer nc.Close()
	opening, cancel := context.WithTimeout(ctx, time.Minute)
	ctl.KV, err = clocks.Open(opening, nc, f.replicas)
	cancel()
	if err != nil {
		return fmt.Errorf("where controllers keep who leads cannot be opened: %w", err)
	}
	p := newProcess(log)
	ctl.Metrics, ctl.Log = clocks.NewMetrics(p.registry), log
	p.add(ctl.Run)
	if f.metrics != "" {
		if _, err := p.serveMetrics(f.metrics, f.names); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("%d switches of %s", len(ctl.Topology.Switches()), ctl.Topology.Name)
	return p.run(ctx, &f.keep, privilege.Need{Sockets: true}, stdout, "clock "+ctl.ID, what)
}

// controller makes a controller of what the flags say.
func (f *clockFlags) controller() (*clocks.Controller, error) {
	t, err := fabric.Load(f.fabric, fabric.Spec{})
	if err != nil {
		return nil, cli.Input(err)
	}
	s, err := clock.NewSpec("sundial", f.root, f.domains)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--%w", err))
	}
	s.Defaults(t)
	if err := s.CheckNames(t); err != nil {
		return nil, cli.Input(err)
	}
	at := map[string]string{}
	for _, d := range f.daemons {
		name, address, ok := strings.Cut(d, "=")
		if _, known := t.Lookup(name); !ok || address == "" || !known {
			return nil, cli.Usage(fmt.Errorf("--daemon %q: write switch=socket or switch=host:port, of a switch of the network", d))
		}
		at[name] = address
	}
	c := &clocks.Controller{Topology: t, Spec: s, Daemons: make([]clocks.Switch, len(t.Nodes)), Lease: f.lease, Every: f.every}
	for _, i := range t.Switches() {
		name := t.Nodes[i].Name
		c.Daemons[i] = control.Dial(cmp.Or(at[name], filepath.Join(cmp.Or(f.sockets, filepath.Join(fabricRun, t.Name)), name+".sock")), f.show)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	c.ID = cmp.Or(f.name, fmt.Sprintf("%s-%d", host, os.Getpid()))
	return c, nil
}

func (a *app) clockStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show which controller has the clocks of which fabric, and the last plan",
		Long: `status shows for each fabric the controller that leads, the epoch of the last plan,
the clock that all follow, the one that takes over from it, how many switches the plan has, how
many had to change for it, and which do not answer. The state of a switch's own clock
is shown by gswitch show clock.`,
		Example: "  gcollect clock status\n  gcollect clock status --json",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			nc, err := collect.Dial(a.nats, a.login, a.data)
			if err != nil {
				return err
			}
			defer nc.Close()
			kv, err := clocks.Open(c.Context(), nc, 1)
			if err != nil {
				return err
			}
			states, err := clocks.States(c.Context(), kv)
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(c.OutOrStdout(), states)
			}
			showClocks(c.OutOrStdout(), states)
			return nil
		},
	}
}

func showClocks(w io.Writer, states []clocks.State) {
	t := table.New("FABRIC", "LEADER", ">EPOCH", "MADE", "BY", "ROOT", "DEPUTY", ">SWITCHES", ">CHANGED", "FAILED", "STATE")
	var notes []string
	for _, s := range states {
		leader := cmp.Or(s.Leader, "-")
		if s.Plan == nil {
			t.Row(s.Fabric, leader, "-", "-", "-", "-", "-", "-", "-", "-", "no plan yet")
			continue
		}
		p, state := s.Plan, "in force"
		switch {
		case p.Error != "":
			state = "not done"
			notes = append(notes, s.Fabric+": "+p.Error)
		case !p.Done:
			state = "begun"
		}
		if p.Bare != "" {
			notes = append(notes, s.Fabric+": no second parents: "+p.Bare)
		}
		t.Row(s.Fabric, leader, p.Epoch, instant(p.At), p.Controller, p.Root, cmp.Or(p.Deputy, "-"), p.Switches, p.Changed, cmp.Or(strings.Join(p.Failed, ","), "-"), state)
	}
	t.Print(w)
	for _, n := range notes {
		fmt.Fprintln(w, n)
	}
}
