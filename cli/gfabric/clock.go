package gfabric

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"gswitch/clocksync"
	"gswitch/clocksync/plan"
	"gswitch/control/cli"
	"gswitch/fabric"
	"gswitch/fabric/clock"
	"gswitch/frame"
	"gswitch/table"
	"gswitch/units"
)

func clockCommand() *cobra.Command {
	return cli.Group("clock", "Plan which clock follows which (Sundial)",
		"  gfabric clock plan 'fat-tree(4)' --root core1\n"+
			"  gfabric clock verify 'leaf-spine(4, 6, 2)' --domain supply=spine1,spine2",
		clockPlanCommand(), clockVerifyCommand())
}

// clockFlags say what is planned.
type clockFlags struct {
	root    string
	domains []string
	json    bool
}

func (f *clockFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.root, "root", "", "node that all others follow; the first switch farthest from the hosts if left out")
	c.Flags().StringArrayVar(&f.domains, "domain", nil, "failure domain, as name=node,node,...; may be repeated")
	c.Flags().BoolVar(&f.json, "json", false, "write JSON")
}

// clockPlan is a plan with what it was made for.
type clockPlan struct {
	t    *fabric.Topology
	spec *clock.Spec
	plan *clock.Plan
	took time.Duration
}

func (f *clockFlags) plan(arg string) (*clockPlan, error) {
	t, err := fabric.Load(arg, fabric.Spec{})
	if err != nil {
		return nil, mistake(err)
	}
	s, err := clock.NewSpec("sundial", f.root, f.domains)
	if err != nil {
		return nil, usagef("--%w", err)
	}
	s.Defaults(t)
	if err := s.Check(t); err != nil {
		return nil, mistake(err)
	}
	began := time.Now()
	p, err := s.Plan(t, clock.Everything, -1)
	if err != nil {
		return nil, err
	}
	return &clockPlan{t, s, p, time.Since(began)}, nil
}

func clockPlanCommand() *cobra.Command {
	var f clockFlags
	c := &cobra.Command{
		Use:   "plan TOPOLOGY",
		Short: "Show the primary tree and the second parents of a topology",
		Long: "plan finds, for each node, which one it follows, and which it turns to when it receives no\n" +
			"sync messages, such that all that are left receive those of a root after any single\n" +
			"failure of a link, a node, the root or a failure domain. Hosts with one link have no\n" +
			"second parent. HOPS are those to the root, and EPS is how uncertain a clock is that\n" +
			"has just been set; MOST HOPS and MOST EPS are those after the worst single failure.",
		Example: "  gfabric clock plan 'fat-tree(4)' --root core1",
		Args:    one("the topology: a file, or a generator such as 'fat-tree(4)'"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := f.plan(args[0])
			if err != nil {
				return err
			}
			if f.json {
				return writeJSON(p.rows())
			}
			return p.write(&stdout)
		},
	}
	f.add(c)
	return c
}

// clockRow is what a plan says of a node.
type clockRow struct {
	Node, Parent, Second string
	Role                 string `json:",omitempty"`
	Hops, MostHops       int
	Eps, MostEps         units.Duration
}

func (p *clockPlan) rows() (v []clockRow) {
	name := func(i int) string {
		if i < 0 {
			return "-"
		}
		return p.t.Nodes[i].Name
	}
	for _, i := range p.plan.TopDown() {
		r := clockRow{Node: name(i), Parent: name(p.plan.Parent(i)), Second: name(p.plan.SecondParent(i))}
		r.Hops, r.MostHops = p.plan.Hops(i)
		r.MostHops = max(r.Hops, r.MostHops)
		r.Eps, r.MostEps = units.Duration(frame.Time(r.Hops)*clocksync.EpsHop), units.Duration(frame.Time(r.MostHops)*clocksync.EpsHop)
		if r.Second == r.Parent {
			r.Second = "-" // the only link
		}
		switch i {
		case p.plan.RootNode():
			r.Role, r.MostHops, r.MostEps = "root", 0, 0
		case p.plan.BackupRootNode():
			r.Role = "backup root"
		}
		v = append(v, r)
	}
	return v
}

func (p *clockPlan) write(out io.Writer) error {
	w := table.New("NODE", "PARENT", "SECOND", ">HOPS", ">MOST HOPS", ">EPS", ">MOST EPS", "ROLE")
	for _, r := range p.rows() {
		w.Row(r.Node, r.Parent, r.Second, r.Hops, r.MostHops, r.Eps, r.MostEps, r.Role)
	}
	w.Print(out)
	return nil
}

func clockVerifyCommand() *cobra.Command {
	var f clockFlags
	c := &cobra.Command{
		Use:   "verify TOPOLOGY",
		Short: "Plan, and try every single failure",
		Long: "verify plans as plan does, and then lets each link, each node, the root and each\n" +
			"failure domain fail, one after the other: who is left must have a root, and one only.",
		Example: "  gfabric clock verify 'fat-tree(8)'",
		Args:    one("the topology: a file, or a generator such as 'fat-tree(4)'"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := f.plan(args[0])
			if err != nil {
				return err
			}
			g := p.spec.Graph(p.t)
			failures, defects := len(plan.Failures(g)), plan.Verify(g, &p.plan.Plan)
			if f.json {
				return writeJSON(map[string]any{"Nodes": g.Nodes, "Links": len(g.Links), "Failures": failures, "Defects": len(defects), "PlanSeconds": p.took.Seconds()})
			}
			fmt.Fprintf(&stdout, "%d nodes, %d links, planned in %v: %d failures tried, %d leave a node without a root\n", g.Nodes, len(g.Links), p.took.Round(time.Microsecond), failures, len(defects))
			if len(defects) > 0 {
				return fmt.Errorf("the plan does not hold: %v", defects[0])
			}
			return nil
		},
	}
	f.add(c)
	return c
}
