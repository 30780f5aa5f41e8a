package gfabric

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/clocksync"
	"gswitch/clocksync/boundary"
	"gswitch/config"
	"gswitch/control/cli"
	"gswitch/fabric"
	"gswitch/fabric/lab"
	"gswitch/units"
)

// topologyFlags change a topology on the command line.
type topologyFlags struct {
	name, mode, rate, hostRate string
	delay                      time.Duration
	mtu                        int
}

func (f *topologyFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "name", "", "name of the fabric; that of the file or the generator if left out")
	c.Flags().StringVar(&f.mode, "mode", "", "l2 (switches bridge) or l3 (they route)")
	c.Flags().StringVar(&f.rate, "rate", "", "emulated speed of all links, such as 200Mbps")
	c.Flags().StringVar(&f.hostRate, "host-rate", "", "emulated speed of the links to hosts, if it differs")
	c.Flags().DurationVar(&f.delay, "delay", 0, "propagation delay of all links, each way")
	c.Flags().IntVar(&f.mtu, "mtu", 0, "MTU of all links")
}

// load makes the topology that arg and the flags describe. Rates, delay and
// MTU on the command line replace the two classes host and fabric.
func (f *topologyFlags) load(arg string) (*fabric.Topology, error) {
	s := fabric.Spec{Name: f.name, Mode: f.mode}
	if f.rate != "" || f.hostRate != "" || f.delay != 0 || f.mtu != 0 {
		c := fabric.Class{Delay: units.Duration(f.delay), MTU: f.mtu}
		if f.rate != "" {
			if err := c.Rate.UnmarshalText([]byte(f.rate)); err != nil {
				return nil, usagef("--rate: %w", err)
			}
		}
		h := c
		if f.hostRate != "" {
			if err := h.Rate.UnmarshalText([]byte(f.hostRate)); err != nil {
				return nil, usagef("--host-rate: %w", err)
			}
		}
		s.Classes = map[string]fabric.Class{fabric.ClassFabric: c, fabric.ClassHost: h}
	}
	t, err := fabric.Load(arg, s)
	return t, mistake(err)
}

// mistake makes what is wrong with a topology an error of its writer.
func mistake(err error) error {
	if err == nil {
		return nil
	}
	return cli.Input(err)
}

// pollModes are what --poll may be.
var pollModes = []string{"spin", "adaptive", "sleep"}

func checkPoll(mode string) error {
	if !slices.Contains(pollModes, mode) {
		return usagef("--poll: %q is not one of %s", mode, strings.Join(pollModes, ", "))
	}
	return nil
}

// layoutFlags say how a topology is laid out on the machine.
type layoutFlags struct {
	topologyFlags
	processes, poll string
	listen          string
	cpus, lossless  []int
	clock           time.Duration // between messages of the root; 0: no clocks
	run             []string      // further flags of gswitch run
}

func (f *layoutFlags) add(c *cobra.Command) {
	f.topologyFlags.add(c)
	c.Flags().StringVar(&f.processes, "processes", "one", "one: a single gswitch for all switches, joined inside. each: one for every switch, joined by veth")
	c.Flags().StringVar(&f.poll, "poll", "adaptive", "how switches wait for frames: spin, adaptive or sleep")
	c.Flags().StringVar(&f.listen, "listen", "", "TCP address, such as 127.0.0.1:9100, that serves metrics of the switches on this machine; not with --processes each")
	c.Flags().IntSliceVar(&f.lossless, "lossless", nil, "classes under priority flow control at every switch, such as 3; frames are of the class that the upper three bits of their DSCP say")
	c.Flags().DurationVar(&f.clock, "clock", 0, "give every switch a synchronised clock, which a controller plans (gcollect clock run), with a message of the root so often, 10ms if only --clock is said; with --processes each")
	c.Flags().Lookup("clock").NoOptDefVal = "10ms"
	c.Flags().IntSliceVar(&f.cpus, "cpu", nil, "pin the workers to these CPUs, one worker each")
}

func (f *layoutFlags) layout(arg string) (*lab.Layout, error) {
	if err := checkPoll(f.poll); err != nil {
		return nil, err
	}
	t, err := f.load(arg)
	if err != nil {
		return nil, err
	}
	plan, err := fabric.NewPlan(t)
	if err != nil {
		return nil, mistake(err)
	}
	o := lab.Options{Poll: f.poll, CPUs: f.cpus, Listen: f.listen, Run: f.run}
	if f.clock < 0 {
		return nil, usagef("--clock=%v: messages come each 10ms, or so", f.clock)
	}
	if f.clock != 0 && f.processes != "each" {
		return nil, usagef("--clock goes with --processes each: between switches of one process frames have no stamps")
	}
	if len(f.lossless) > 0 || f.clock != 0 {
		o.Adjust = f.adjust
	}
	switch f.processes {
	case "one":
	case "each":
		o.Each = true
	default:
		return nil, usagef("--processes: %q is neither one nor each", f.processes)
	}
	l, err := lab.NewLayout(plan, o)
	return l, mistake(err)
}

// adjust gives a switch what the flags say of all.
func (f *layoutFlags) adjust(_ int, sw *config.Switch) {
	if f.clock != 0 {
		sw.Features.Set(boundary.Name, &boundary.Section{Controlled: true, Times: clocksync.Times{Interval: units.Duration(f.clock)}})
	}
	if len(f.lossless) == 0 {
		return
	}
	sw.PFC.Classes = f.lossless
	for i := range sw.Ports {
		sw.Ports[i].Trust = "dscp"
	}
}

func planCommand() *cobra.Command {
	var f layoutFlags
	var configs bool
	c := &cobra.Command{
		Use:   "plan FILE|GENERATOR",
		Short: "Show the address plan, or the gswitch configuration, without raising anything",
		Example: "  gfabric plan leaf-spine:2,4,2\n" +
			"  gfabric plan ring:4 --rate 1Gbps --config",
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := f.layout(args[0])
			if err != nil {
				return err
			}
			if !configs {
				return l.Plan.WriteTable(&stdout)
			}
			return l.WriteConfigs(&stdout)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&configs, "config", false, "print the generated gswitch configuration instead")
	return c
}

func graphCommand() *cobra.Command {
	var f topologyFlags
	var format string
	c := &cobra.Command{
		Use:   "graph [FILE|GENERATOR]",
		Short: "Draw a topology; without an argument that of the fabric that is up",
		Example: "  gfabric graph fat-tree:4\n" +
			"  gfabric graph --format dot | dot -Tsvg > fabric.svg",
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			draw := fabric.ASCII
			switch format {
			case "ascii":
			case "dot":
				draw = fabric.DOT
			case "mermaid":
				draw = fabric.Mermaid
			default:
				return usagef("--format: %q is not one of ascii, dot, mermaid", format)
			}
			t, err := f.loadOrRunning(args)
			if err != nil {
				return err
			}
			return draw(&stdout, t)
		},
	}
	f.add(c)
	c.Flags().StringVar(&format, "format", "ascii", "ascii, dot (Graphviz) or mermaid")
	return c
}

func (f *topologyFlags) loadOrRunning(args []string) (*fabric.Topology, error) {
	if len(args) == 1 {
		return f.load(args[0])
	}
	name, err := lab.Resolve(f.name)
	if err != nil {
		return nil, err
	}
	st, err := lab.Inspect(name)
	if err != nil {
		return nil, err
	}
	return st.Topology, nil
}
