package gfabric

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"gswitch/config"
	"gswitch/fabric"
	"gswitch/fabric/export"
	"gswitch/fabric/lab"
	"gswitch/fabric/scenario"
	intpoint "gswitch/int/point"
	"gswitch/section"
	"gswitch/units"
	"gswitch/wholefile"
)

// exportFlags say what containers are to be.
type exportFlags struct {
	topology topologyFlags
	scenario scenarioFlags // which runs: they have one topology
	dir      string
	hosts    string
	prefix   string
	kernel   string
	force    bool
}

func exportCommand() *cobra.Command {
	var f exportFlags
	formats := ""
	for _, v := range export.Formats {
		formats += fmt.Sprintf("  %-14s%s\n", v.Name, v.Title)
	}
	c := &cobra.Command{
		Use:   "export " + strings.Join(export.Names(), "|") + " SCENARIO.yaml|FILE|GENERATOR",
		Short: "Write a network as containers, for containerlab, Kubernetes or docker compose",
		Long: "export writes files that make a network of containers:\n\n" + formats + "\n" +
			"Of a topology, switches run gswitch, and hosts have their kernel's stack or run ghost\n" +
			"(--hosts ghost). Of a scenario, each node is a container that waits for runs, which\n" +
			"gfabric collect starts there and whose results it keeps as gfabric run does.\n\n" +
			"make images builds the images. What a file is about stands at its head.",
		Example: "  gfabric export containerlab leaf-spine:2,4,2 --rate 200Mbps --dir lab\n" +
			"  gfabric export compose star:4 --hosts ghost --rate 200Mbps --dir lab\n" +
			"  gfabric export clabernetes ring:4 --images registry.example.com/lab/\n" +
			"  gfabric export compose scenarios/agreement/incast2.yaml --dir lab",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) < 2:
				return usagef("name a format (%s) and what to export, such as gfabric export containerlab leaf-spine:2,4,2", strings.Join(export.Names(), ", "))
			case len(args) > 2:
				return usagef("%q is one argument too many: gfabric export takes a format and a network", args[2])
			case !slices.Contains(export.Names(), args[0]):
				return usagef("%q is not a format: there are %s", args[0], strings.Join(export.Names(), ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			l, s, err := f.lab(c, args[1])
			if err != nil {
				return err
			}
			if f.dir == "" {
				f.dir = l.Name
			}
			paths, err := export.Write(l, args[0], f.dir, f.force)
			if err != nil {
				return err
			}
			if s != nil {
				copied, err := export.Copy(s, f.scenario.set, f.scenario.only, f.dir)
				if err != nil {
					return err
				}
				paths = append(paths, copied...)
				defer say("its nodes take runs of gfabric collect %s", f.dir)
			}
			for _, p := range paths {
				fmt.Fprintln(&stdout, p)
			}
			return nil
		},
	}
	f.topology.add(c)
	c.Flags().StringArrayVar(&f.scenario.set, "set", nil, "of a scenario: path=value sets a key, such as topology.generate='star(4)'; may be repeated")
	c.Flags().StringArrayVar(&f.scenario.only, "only", nil, "of a scenario: only this variant, or the run of this name; may be repeated")
	c.Flags().StringVar(&f.dir, "dir", "", "directory of the files; one of the network's name if left out")
	c.Flags().StringVar(&f.hosts, "hosts", string(export.Kernel), "of a topology: kernel (containers with a kernel's own stack) or ghost (RDMA hosts; class 3 is lossless then, and data has telemetry)")
	c.Flags().StringVar(&f.prefix, "images", "", "what stands before the names of images (gswitch, ghost, gfabric), such as registry.example.com/lab/")
	c.Flags().StringVar(&f.kernel, "kernel-image", "nicolaka/netshoot:v0.13", "image of hosts with a kernel's own stack; for containerlab with ip and ethtool")
	c.Flags().BoolVar(&f.force, "force", false, "replace files that are there")
	return c
}

// lab is what an argument names: a scenario, which is returned, too, or a topology.
func (f *exportFlags) lab(c *cobra.Command, arg string) (*export.Lab, *scenario.Scenario, error) {
	images := export.Images{Gswitch: f.prefix + "gswitch", Ghost: f.prefix + "ghost", Gfabric: f.prefix + "gfabric", Kernel: f.kernel}
	if !isScenario(arg) {
		if err := refuse(c, arg+" is a topology, and not a scenario", "set", "only"); err != nil {
			return nil, nil, err
		}
		l, err := f.daemons(arg, images)
		return l, nil, err
	}
	if err := refuse(c, arg+" is a scenario, and says itself what its network is", "mode", "rate", "host-rate", "delay", "mtu", "name", "hosts", "kernel-image"); err != nil {
		return nil, nil, err
	}
	s, err := f.scenario.load(arg)
	if err != nil {
		return nil, nil, err
	}
	t, err := export.Of(s)
	if err != nil {
		return nil, nil, mistake(err)
	}
	own := *t
	own.Name = strings.TrimPrefix(wiresName(s.Doc.Name), "run-")
	return export.Scenario(s, &own, images), s, nil
}

// refuse says of flags that they have no meaning here.
func refuse(c *cobra.Command, why string, flags ...string) error {
	for _, name := range flags {
		if c.Flags().Changed(name) {
			return usagef("--%s: %s", name, why)
		}
	}
	return nil
}

// isScenario reports whether a file is a scenario: it has runs to make.
func isScenario(path string) bool {
	text, err := wholefile.Read(path, section.MaxDocument)
	var doc map[string]yaml.Node
	if err != nil || yaml.Unmarshal(text, &doc) != nil {
		return false
	}
	_, nodes := doc["topology"]
	return nodes
}

// daemons is a topology of switches and hosts that run as they do without
// containers.
func (f *exportFlags) daemons(arg string, images export.Images) (*export.Lab, error) {
	hosts := export.Hosts(f.hosts)
	if hosts != export.Kernel && hosts != export.Ghost {
		return nil, usagef("--hosts: %q is neither %s nor %s", f.hosts, export.Kernel, export.Ghost)
	}
	t, err := f.topology.load(arg)
	if err != nil {
		return nil, err
	}
	plan, err := fabric.NewPlan(t)
	if err != nil {
		return nil, mistake(err)
	}
	o := lab.Options{Poll: "adaptive", Each: true}
	if hosts == export.Ghost {
		rates := export.Rates(t)
		if rates == nil {
			return nil, usagef("--hosts ghost: an RDMA host paces what it sends: give all links a rate, such as --rate 200Mbps")
		}
		o.Adjust = func(_ int, sw *config.Switch) { forGhosts(sw, rates) }
	}
	l, err := lab.NewLayout(plan, o)
	if err != nil {
		return nil, mistake(err)
	}
	return export.Topology(l, hosts, images)
}

// forGhosts gives a switch the class of ghosts' data, and telemetry.
func forGhosts(sw *config.Switch, rates []units.Rate) {
	sw.PFC.Classes = []int{export.Class}
	for i := range sw.Ports {
		sw.Ports[i].Trust = "dscp"
	}
	sw.Telemetry = intpoint.Section{INT: true, Links: rates}
}
