package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"gswitch/clocksync"
	"gswitch/fabric/clock"
	"gswitch/frame"
	"gswitch/section"
	"gswitch/units"
)

// Clock configures the synchronisation of the clocks of all switches and hosts.
type Clock struct {
	Scheme     string         `yaml:"scheme" enum:"none,sundial,sundial-no-domains,sync-messages,frequent-messages,dtp,ptp,huygens,marzullo" default:"none" doc:"none: nodes have no clock but their own. sundial: messages in reaction only, and a second parent for everybody. What it is compared with: sundial-no-domains, whose second parents failure domains may take down with the first; sync-messages, without second parents; frequent-messages, where each node sends by a timer; dtp, the same each 5 us; ptp, each 2 s; huygens, which sets all clocks at once each 2 s, and marzullo, where all neighbours send each other their time: models without frames."`
	Root       string         `yaml:"root" doc:"The node that all others follow. The first switch farthest from the hosts if left out."`
	Interval   units.Duration `yaml:"interval" doc:"Between two messages of the root. 90us if left out, 5us for dtp, 2s for ptp."`
	Timeout1   units.Duration `yaml:"timeout1" doc:"Time without a sync message after which a node turns to its second parent. 185/90 of the interval if left out."`
	Timeout2   units.Duration `yaml:"timeout2" doc:"Time without a sync message behind that, after which the backup root takes over. Twice the interval if left out."`
	Oscillator int            `yaml:"oscillator" range:"0,100000" default:"100" doc:"Oscillators are within so many parts per million of the truth: of each node by the seed."`
	Ramp       units.Duration `yaml:"ramp" doc:"In which each oscillator goes, as the temperature does, from one frequency within oscillator to the next, again and again: to which ones by the seed. They keep theirs if left out."`
	clocksync.Uncertainty
	Controller units.Duration `yaml:"controller" doc:"How long after a failure the controller has another plan, made of what works, at all nodes. It does nothing if left out."`
	Push       units.Duration `yaml:"push" doc:"Within which each stage of a plan, and of the second stage each level of the tree, comes to all nodes: to each by the seed. At once if left out."`
	Domains    []ClockDomain  `yaml:"domains" doc:"What one failure takes down together."`
	Sample     units.Duration `yaml:"sample" default:"10us" doc:"Between two looks at all clocks: how uncertain they say they are, and how wrong they are."`
	Watch      string         `yaml:"watch" doc:"A node that is recorded over time, with values of its own (clock_watched_eps)."`
}

// ClockDomain is a failure domain.
type ClockDomain struct {
	Name  string   `yaml:"name" need:"yes" doc:"Name."`
	Nodes []string `yaml:"nodes" need:"yes" doc:"Hosts and switches, or ranges such as h1..h4."`
}

// rampSteps is the number of steps of a ramp. Within a step the frequency is constant.
const rampSteps = 32

// RampSteps returns the number of steps of a ramp, and the length of one.
func (c *Clock) RampSteps() (n int, each frame.Time) {
	return rampSteps, frame.Time(c.Ramp) / rampSteps
}

// On reports whether clocks are synchronised.
func (c *Clock) On() bool { return c.Scheme != "none" }

// ClockSpec returns how the clocks of the network are synchronised, with all defaults
// filled in.
func (r *Run) ClockSpec() (*clock.Spec, error) {
	c := &r.Doc.Clock
	scheme, err := clock.Find(c.Scheme)
	if err != nil {
		return nil, err
	}
	s := &clock.Spec{Scheme: scheme, Root: c.Root, Interval: frame.Time(c.Interval), Timeout1: frame.Time(c.Timeout1), Timeout2: frame.Time(c.Timeout2),
		Hop: frame.Time(c.Hop), Drift: int64(c.Drift) * 1000, Controller: frame.Time(c.Controller), Push: frame.Time(c.Push), Seed: r.Seed}
	for _, d := range c.Domains {
		var nodes []string
		for _, n := range d.Nodes {
			v, err := spread(n)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, v...)
		}
		s.Domains = append(s.Domains, clock.Domain{Name: d.Name, Nodes: nodes})
	}
	s.Defaults(r.Topology)
	return s, nil
}

// spread returns the names in a range such as h1..h4, or the single name.
func spread(text string) ([]string, error) {
	from, to, ok := strings.Cut(text, "..")
	if !ok {
		return []string{text}, nil
	}
	part := func(s string) (string, int, error) {
		stem := strings.TrimRight(s, "0123456789")
		n, err := strconv.Atoi(s[len(stem):])
		return stem, n, err
	}
	a, first, err1 := part(from)
	b, last, err2 := part(to)
	if err1 != nil || err2 != nil || a != b || last < first || last-first > 100_000 {
		return nil, fmt.Errorf("%q is no range; write one such as h1..h4", text)
	}
	var v []string
	for i := first; i <= last; i++ {
		v = append(v, a+strconv.Itoa(i))
	}
	return v, nil
}

// choosesClock reports whether a variant or the sweep sets a clock. The keys of the
// document's clock section are then meant for those.
func (d *Document) choosesClock() bool {
	of := func(key string) bool { return key == "clock" || key == "clock.scheme" }
	for _, v := range d.Variants {
		for key := range v.Set {
			if of(key) {
				return true
			}
		}
	}
	for key := range d.Sweep {
		if of(key) {
			return true
		}
	}
	return false
}

func (v *validator) clock() {
	c := &v.doc.Clock
	if !c.On() {
		for _, key := range section.Keys(c) {
			if key != "scheme" && v.sec.Has("clock."+key) && !v.doc.choosesClock() {
				v.sec.Fail("clock."+key, "means nothing without a scheme")
				return
			}
		}
		return
	}
	if c.Push < 0 || c.Push > units.Duration(frame.Second) {
		v.sec.Fail("clock.push", "is not from 0 to 1s")
	}
	if c.Ramp != 0 && c.Ramp < units.Duration(frame.Microsecond*rampSteps) {
		v.sec.Fail("clock.ramp", "is shorter than %v", units.Duration(frame.Microsecond*rampSteps))
	}
	if c.Sample <= 0 {
		v.sec.Fail("clock.sample", "is not above zero")
	}
	if _, ok := v.t.Lookup(c.Watch); !ok && c.Watch != "" {
		v.sec.Fail("clock.watch", "there is no node %q", c.Watch)
	}
	r := Run{Doc: v.doc, Topology: v.t}
	s, err := r.ClockSpec()
	if err != nil {
		v.sec.Fail("clock.domains", "%v", err)
		return
	}
	if err := s.Check(v.t); err != nil {
		v.sec.Fail("clock", "%v", err)
		return
	}
	p, err := s.Plan(v.t, clock.Everything, -1)
	if err != nil {
		v.sec.Fail("clock", "%v", err)
		return
	}
	for _, o := range s.Options(v.t, clock.Everything, p, 1) {
		if err := o.Validate(); err != nil {
			v.sec.Fail("clock", "%s", strings.TrimPrefix(err.Error(), "clock: "))
			return
		}
	}
}

// Oscillator returns the frequency offset of a node's oscillator in parts per 10^9,
// positive if fast, and its time offset when the run starts. Both depend on the seed, and
// are 0 where nodes have no clocks of their own.
func (r *Run) Oscillator(node int) (drift int64, step frame.Time) {
	if !r.Doc.Clock.On() || r.Doc.Clock.Oscillator == 0 {
		return 0, 0
	}
	rnd := frame.NewRand(r.Seed*0x9e3779b97f4a7c15 + uint64(node))
	span := uint32(r.Doc.Clock.Oscillator) * 2000
	return int64(rnd.Uint32n(span+1)) - int64(span/2), frame.Time(rnd.Uint32n(1_000_000))
}
