package fabric

import (
	"fmt"
	"path"
	"strings"
	"time"

	"gswitch/section"
	"gswitch/units"
)

// LinkChange is how links differ from what their classes say, or that they are
// not there, such as after a failure that routing knows of.
type LinkChange struct {
	Link   string          `yaml:"link" need:"yes" doc:"The links between two nodes or, with *, groups of nodes: agg1:core1, agg*:core*. The order of the ends does not matter."`
	Remove bool            `yaml:"remove" doc:"true: they are not there."`
	Rate   *units.Rate     `yaml:"rate" doc:"Overrides the class."`
	Delay  *units.Duration `yaml:"delay" doc:"Overrides the class."`
	MTU    *int            `yaml:"mtu" range:"576,9000" doc:"Overrides the class."`
}

// matches reports whether the change is about a link between two nodes.
func (c *LinkChange) matches(a, b string) (bool, error) {
	x, y, ok := strings.Cut(c.Link, ":")
	if !ok || x == "" || y == "" {
		return false, fmt.Errorf("%q is not a link; write its two ends, such as agg1:core1", c.Link)
	}
	for range 2 {
		at, err := path.Match(x, a)
		if err != nil {
			return false, fmt.Errorf("%q: %w", c.Link, err)
		}
		to, err := path.Match(y, b)
		if err != nil {
			return false, fmt.Errorf("%q: %w", c.Link, err)
		}
		if at && to {
			return true, nil
		}
		a, b = b, a
	}
	return false, nil
}

// applyChanges changes and removes links.
func (s Spec) applyChanges(t *Topology, sec *section.Section) {
	gone := make([]bool, len(t.Links))
	for i := range s.Change {
		c, key := &s.Change[i], fmt.Sprintf("change[%d]", i)
		n := 0
		for k := range t.Links {
			l := &t.Links[k]
			ok, err := c.matches(t.Nodes[l.A.Node].Name, t.Nodes[l.B.Node].Name)
			if err != nil {
				sec.Fail(key+".link", "%v", err)
				return
			}
			if ok {
				n++
				gone[k] = gone[k] || c.Remove
				c.apply(l)
			}
		}
		if n == 0 {
			sec.Fail(key+".link", "no link is between %s; gfabric graph lists the names", strings.Replace(c.Link, ":", " and ", 1))
		}
	}
	t.dropLinks(gone)
}

func (c *LinkChange) apply(l *Link) {
	if c.Rate != nil {
		l.Rate = uint64(*c.Rate)
	}
	if c.Delay != nil {
		l.Delay = time.Duration(*c.Delay)
	}
	if c.MTU != nil {
		l.MTU = *c.MTU
	}
}

// dropLinks takes out the links that are gone; ports behind theirs move up.
func (t *Topology) dropLinks(gone []bool) {
	old := t.Links
	t.Links = nil
	for i := range t.Nodes {
		t.Nodes[i].Links = nil
	}
	for i, l := range old {
		if !gone[i] {
			t.addLink(l.A.Node, l.B.Node, l)
		}
	}
}
