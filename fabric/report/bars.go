package report

import (
	"fmt"
	"strings"

	"gswitch/fabric/results"
)

// barChart is groups of bars: values[g][k] are what group g has of kind k,
// one per seed.
type barChart struct {
	title  string
	xName  string
	unit   string
	groups []string
	kinds  []entry
	looks  []style // of groups, if they are not to look alike
	values [][][]float64
}

// draw draws the bars from zero; several seeds become a bar at their mean and
// a dot for each.
func (c *barChart) draw(width, height float64) *plot {
	var e extent
	for _, g := range c.values {
		for _, v := range g {
			e.add(v...)
		}
	}
	p := newPlot(width, height, c.title, c.xName, "", scale{kind: ordinal, names: c.groups}, e.linearFrom(c.unit))
	// The unit and its prefix stand above the axis.
	if _, unit := p.y.ticks(p.yTicks); unit != "" && unit != "count" {
		p.title = fmt.Sprintf("%s (%s)", c.title, unit)
	}
	p.bars = true
	slot := 0.8 / float64(len(c.kinds))
	for g := range c.groups {
		for k, kind := range c.kinds {
			v := c.values[g][k]
			if len(v) == 0 {
				continue
			}
			look := kind.look
			if c.looks != nil {
				look = c.looks[g]
			}
			mean := results.Mean(v)
			at := float64(g) - 0.4 + slot*float64(k)
			tip := fmt.Sprintf("%s: %s", strings.TrimSpace(kind.name+" "+c.groups[g]), quantity(mean, c.unit))
			if len(v) > 1 {
				tip += fmt.Sprintf(", mean of %d seeds", len(v))
			}
			p.bar(look, tip, at+slot*0.05, at+slot*0.95, mean)
			for _, one := range v {
				if len(v) > 1 {
					p.dot(look, quantity(one, c.unit), at+slot/2, one)
				}
			}
		}
	}
	return p
}

// bar draws a bar from zero to v.
func (p *plot) bar(look style, tip string, left, right, v float64) {
	x0, x1 := p.x.at(left), p.x.at(right)
	y0, y1 := p.y.at(max(v, 0)), p.y.at(min(v, 0))
	fmt.Fprintf(&p.marks, `<rect %s x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`,
		look.attr("b"), px(x0), px(y0), px(x1-x0), px(y1-y0), esc(tip))
}
