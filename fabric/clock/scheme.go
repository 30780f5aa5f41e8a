// Package clock puts synchronised clocks (package clocksync) into the networks of
// topologies: which scheme, whose plan, what each node is configured with, what a
// controller does when something fails, and how wrong the clocks are.
package clock

import (
	"fmt"
	"slices"
	"strings"

	"gswitch/clocksync"
	"gswitch/fabric"
	"gswitch/frame"
)

// Scheme is how clocks are kept together: Sundial, or one of those that it is
// compared with, each with a bound by the same formula (section 3.6 of Li's
// dissertation).
type Scheme struct {
	Name     string
	Doc      string
	Interval frame.Time // default
	Free     bool       // all send by timers of their own
	Backup   bool       // a second parent for all
	Domains  bool       // which no failure domain takes down with the first
	// Recovery is for how long a node may follow a parent that is cut off: a
	// number of intervals, or until the controller has acted.
	Intervals  int64
	Controller bool
	// Computed sets all clocks at once at the beginning of each interval, and Mesh by what
	// neighbours agree on: both without messages of PTP.
	Computed, Mesh bool
}

// Schemes are all of them. The ladder from frequent messages to Sundial adds one
// feature at a time (figure 3.21).
var Schemes = []Scheme{
	{Name: "sundial", Doc: "messages in reaction only, and a second parent that no single failure takes down with the first", Interval: clocksync.DefaultInterval, Backup: true, Domains: true},
	{Name: "sundial-no-domains", Doc: "the same, with second parents that failure domains are not kept from", Interval: clocksync.DefaultInterval, Backup: true},
	{Name: "sync-messages", Doc: "messages in reaction only; a failure waits for the controller", Interval: clocksync.DefaultInterval},
	{Name: "frequent-messages", Doc: "PTP with messages as frequent as Sundial's; each node sends by its own timer", Interval: clocksync.DefaultInterval, Free: true, Controller: true},
	{Name: "dtp", Doc: "PTP with DTP's messages of the physical layer, each 5 us", Interval: 5 * frame.Microsecond, Free: true, Controller: true},
	{Name: "huygens", Doc: "all clocks are set at once each 2 s, as exactly as can be, by what was measured in between", Interval: 2 * frame.Second, Computed: true},
	{Name: "marzullo", Doc: "each node sends its time to all neighbours and takes what all that it receives agree on; two masters", Interval: clocksync.DefaultInterval, Mesh: true},
	{Name: "ptp", Doc: "PTP's boundary clocks, a message each 2 s", Interval: 2 * frame.Second, Free: true, Intervals: 1},
}

// Bare is the scheme for networks in which not all nodes can have a second parent.
var Bare = &Schemes[slices.IndexFunc(Schemes, func(s Scheme) bool { return s.Name == "sync-messages" })]

// Find returns the scheme with a name.
func Find(name string) (*Scheme, error) {
	var names []string
	for i := range Schemes {
		if Schemes[i].Name == name {
			return &Schemes[i], nil
		}
		names = append(names, Schemes[i].Name)
	}
	return nil, fmt.Errorf("there is no scheme %q; there are %s", name, strings.Join(names, ", "))
}

// Spec says how the clocks of a network are kept together.
type Spec struct {
	Scheme     *Scheme
	Root       string // node; "": the first switch farthest from the hosts
	Domains    []Domain
	Interval   frame.Time // 0: that of the scheme
	Timeout1   frame.Time // 0: 185/90 of the interval
	Timeout2   frame.Time // 0: twice the interval
	Hop        frame.Time // uncertainty that a hop adds; 0: clocksync.EpsHop
	Drift      int64      // assumed of oscillators, parts in 10^9; 0: clocksync.Drift
	Controller frame.Time // how long the controller takes to act; 0: it does not
	Unstamped  frame.Time // clocksync.Options.Unstamped
	Push       frame.Time // within which a stage of a plan comes to all nodes; 0: at once
	Seed       uint64     // by which it comes to each
}

// Domain is what one failure takes down.
type Domain struct {
	Name  string
	Nodes []string
}

// NewSpec returns how a scheme keeps clocks from a root, with domains that are written as
// name=node,node,...
func NewSpec(scheme, root string, domains []string) (*Spec, error) {
	of, err := Find(scheme)
	if err != nil {
		return nil, err
	}
	s := &Spec{Scheme: of, Root: root}
	for _, d := range domains {
		domain, err := parseDomain(d)
		if err != nil {
			return nil, fmt.Errorf("domain %w", err)
		}
		s.Domains = append(s.Domains, domain)
	}
	return s, nil
}

func parseDomain(s string) (Domain, error) {
	name, nodes, ok := strings.Cut(s, "=")
	if !ok || name == "" || nodes == "" {
		return Domain{}, fmt.Errorf("%q: write name=node,node and so on", s)
	}
	return Domain{Name: name, Nodes: strings.Split(nodes, ",")}, nil
}

// Defaults fills in what was left out.
func (s *Spec) Defaults(t *fabric.Topology) {
	if s.Interval == 0 {
		s.Interval = s.Scheme.Interval
	}
	if s.Timeout1 == 0 {
		s.Timeout1 = s.Interval * clocksync.DefaultTimeout1 / clocksync.DefaultInterval
	}
	if s.Timeout2 == 0 {
		s.Timeout2 = s.Interval * clocksync.DefaultTimeout2 / clocksync.DefaultInterval
	}
	if s.Hop == 0 {
		s.Hop = clocksync.EpsHop
	}
	if s.Drift == 0 {
		s.Drift = clocksync.Drift
	}
	if s.Root == "" {
		s.Root = top(t)
	}
}

// top is the first of the switches farthest from the hosts.
func top(t *fabric.Topology) string {
	best := -1
	for _, i := range t.Switches() {
		if best < 0 || t.Nodes[i].Tier > t.Nodes[best].Tier {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	return t.Nodes[best].Name
}

// recovery is for how long a parent may have been cut off without its children
// knowing.
func (s *Spec) recovery() frame.Time {
	if s.Scheme.Controller {
		return max(s.Controller, s.Interval)
	}
	return frame.Time(s.Scheme.Intervals) * s.Interval
}

// CheckNames reports what a spec, of which the defaults are filled in, names that is not
// there, or has more ports than a clock looks after.
func (s *Spec) CheckNames(t *fabric.Topology) error {
	if _, ok := t.Lookup(s.Root); !ok {
		return fmt.Errorf("root: there is no node %q", s.Root)
	}
	for _, d := range s.Domains {
		for _, n := range d.Nodes {
			if _, ok := t.Lookup(n); !ok {
				return fmt.Errorf("domain %q: there is no node %q", d.Name, n)
			}
		}
	}
	n := slices.MaxFunc(t.Nodes, func(a, b fabric.Node) int { return len(a.Links) - len(b.Links) })
	if len(n.Links) > clocksync.MaxPorts {
		return fmt.Errorf("%s has %d ports; a clock looks after %d", n.Name, len(n.Links), clocksync.MaxPorts)
	}
	return nil
}

// Check reports what stands against a spec of which the defaults are filled in.
func (s *Spec) Check(t *fabric.Topology) error {
	if err := s.CheckNames(t); err != nil {
		return err
	}
	_, err := s.Plan(t, Everything, -1)
	return err
}
