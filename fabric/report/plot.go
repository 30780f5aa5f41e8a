package report

import (
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"
	"unicode/utf8"
)

// plot is one drawing: two axes, and marks that were put between them.
type plot struct {
	title          string
	xName, yName   string
	x, y           scale
	width, height  float64
	marks          strings.Builder
	xTicks, yTicks int
	bars           bool // marks stand on an ordinal axis: no grid across it
}

const (
	letter     = 6.1 // width of a letter of 11 px, about
	lineHeight = 14.0
)

// inner is where marks are drawn, from the drawing's upper left corner.
type inner struct{ x, y, w, h float64 }

// newPlot returns a plot whose scales know their pixels: marks may be added.
func newPlot(width, height float64, title, xName, yName string, x, y scale) *plot {
	p := &plot{title: title, xName: xName, yName: yName, x: x, y: y, width: width, height: height, xTicks: max(2, int(width/75)), yTicks: max(2, int(height/40))}
	if x.kind == ordinal {
		p.xTicks = max(1, len(x.names))
	}
	in := p.inner()
	p.x.a, p.x.b = 0, in.w
	if x.kind == ordinal {
		p.x.lo, p.x.hi = -0.5, float64(len(x.names))-0.5
	}
	p.y.a, p.y.b = in.h, 0
	return p
}

// slanted tells that the names on the x axis are too wide to lie side by side.
func (p *plot) slanted() bool {
	if p.x.kind != ordinal || len(p.x.names) == 0 {
		return false
	}
	return float64(p.longestName())*letter > (p.width-60)/float64(len(p.x.names))
}

func (p *plot) longestName() int {
	n := 0
	for _, name := range p.x.names {
		n = max(n, utf8.RuneCountInString(shorten(name, 22)))
	}
	return n
}

func (p *plot) inner() inner {
	widest := 1
	ticks, _ := p.y.ticks(p.yTicks)
	for _, t := range ticks {
		widest = max(widest, utf8.RuneCountInString(t.label))
	}
	in := inner{x: float64(widest)*letter + 14, y: 8}
	if p.yName != "" || p.title != "" {
		in.y += 2 * lineHeight
	}
	below := lineHeight + 8
	if p.slanted() {
		below = float64(p.longestName())*letter*0.71 + 14
	}
	if p.xName != "" {
		below += lineHeight
	}
	in.w = p.width - in.x - 12
	in.h = p.height - in.y - below
	return in
}

// px writes a coordinate with one decimal.
func px(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

func esc(s string) string { return html.EscapeString(printable(s)) }

// svg returns the drawing. All text from outside passes through esc.
func (p *plot) svg() template.HTML {
	var b strings.Builder
	in := p.inner()
	fmt.Fprintf(&b, `<svg viewBox="0 0 %s %s" role="img" aria-label="%s" data-x="%s" data-y="%s" data-in="%s %s %s %s">`,
		px(p.width), px(p.height), esc(p.name()), p.x.describe(), p.y.describe(), px(in.x), px(in.y), px(in.w), px(in.h))
	yTicks, yUnit := p.y.ticks(p.yTicks)
	xTicks, xUnit := p.x.ticks(p.xTicks)
	if p.title != "" {
		fmt.Fprintf(&b, `<text class="pt" x="0" y="12">%s</text>`, esc(shorten(p.title, int(p.width/letter)-2)))
	}
	if p.yName != "" {
		fmt.Fprintf(&b, `<text class="an" x="0" y="%s">%s</text>`, px(in.y-9), esc(withUnit(p.yName, yUnit)))
	}
	p.grid(&b, in, xTicks, yTicks)
	p.labels(&b, in, xTicks, yTicks)
	if p.xName != "" {
		fmt.Fprintf(&b, `<text class="an" x="%s" y="%s" text-anchor="end">%s</text>`, px(in.x+in.w), px(p.height-4), esc(withUnit(p.xName, xUnit)))
	}
	// An inner svg clips the marks to the axes.
	fmt.Fprintf(&b, `<svg x="%s" y="%s" width="%s" height="%s" class="marks">`, px(in.x), px(in.y), px(in.w), px(in.h))
	b.WriteString(p.marks.String())
	fmt.Fprintf(&b, `</svg><path class="ax" d="M%s %sv%sh%s"/></svg>`, px(in.x), px(in.y), px(in.h), px(in.w))
	return template.HTML(b.String())
}

func (p *plot) name() string {
	if p.title != "" {
		return p.title
	}
	return p.yName
}

func withUnit(name, unit string) string {
	if unit == "" || unit == "count" {
		return name
	}
	return name + " (" + unit + ")"
}

// grid draws a line at each tick; those of minor ticks are fainter.
func (p *plot) grid(b *strings.Builder, in inner, xTicks, yTicks []tick) {
	var major, minor strings.Builder
	for _, t := range yTicks {
		to := &major
		if t.label == "" {
			to = &minor
		}
		fmt.Fprintf(to, "M%s %sh%s", px(in.x), px(in.y+p.y.at(t.v)), px(in.w))
	}
	for _, t := range xTicks {
		if p.bars {
			break
		}
		to := &major
		if t.label == "" {
			to = &minor
		}
		fmt.Fprintf(to, "M%s %sv%s", px(in.x+p.x.at(t.v)), px(in.y), px(in.h))
	}
	fmt.Fprintf(b, `<path class="g2" d="%s"/><path class="g1" d="%s"/>`, minor.String(), major.String())
}

func (p *plot) labels(b *strings.Builder, in inner, xTicks, yTicks []tick) {
	for _, t := range yTicks {
		if t.label != "" {
			fmt.Fprintf(b, `<text x="%s" y="%s" text-anchor="end">%s</text>`, px(in.x-5), px(in.y+p.y.at(t.v)+4), esc(t.label))
		}
	}
	slanted := p.slanted()
	end := -1e9 // of the last label
	for _, t := range xTicks {
		if t.label == "" {
			continue
		}
		label := shorten(t.label, 22)
		x := in.x + p.x.at(t.v)
		if slanted {
			fmt.Fprintf(b, `<text transform="translate(%s %s) rotate(-45)" text-anchor="end">%s</text>`, px(x+4), px(in.y+in.h+12), esc(label))
			continue
		}
		half := float64(utf8.RuneCountInString(label)) * letter / 2
		if x-half < end+4 {
			continue
		}
		end = x + half
		fmt.Fprintf(b, `<text x="%s" y="%s" text-anchor="middle">%s</text>`, px(min(x, p.width-half)), px(in.y+in.h+15), esc(label))
	}
}

// describe tells the reader's script how to turn pixels into values.
func (s *scale) describe() string {
	kind := [...]string{"lin", "log", "nines", "ord"}[s.kind]
	return fmt.Sprintf("%s %s %s %s", kind, strconv.FormatFloat(s.lo, 'g', 6, 64), strconv.FormatFloat(s.hi, 'g', 6, 64), esc(s.unit))
}
