package report

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// figure is one drawing: two axes, and marks that were put between them.
type figure struct {
	plot          *plot.Plot
	name          string // of its files
	title         string
	x, y          scale
	width, height vg.Length
	legend        []entry
	bars          []bar
}

// The sizes of drawings, in points.
const (
	wide, tall    vg.Length = 352, 204
	narrow, short vg.Length = 232, 162
)

const titleHeight vg.Length = 15

// newFigure returns a figure with its axes.
func newFigure(name string, width, height vg.Length, title, xName, yName string, x, y scale) *figure {
	f := &figure{plot: plot.New(), name: name, title: printable(title), x: x, y: y, width: width, height: height}
	f.x.marks, f.y.marks = max(2, int(width/56)), max(2, int(height/30))
	if x.kind == ordinal {
		f.x.marks = max(1, len(x.names))
		f.x.lo, f.x.hi = -0.5, float64(len(x.names))-0.5
	}
	p := f.plot
	p.X.Scale, p.Y.Scale = &f.x, &f.y
	p.X.Tick.Marker, p.Y.Tick.Marker = &f.x, &f.y
	for _, a := range []struct {
		axis *plot.Axis
		s    *scale
		name string
	}{{&p.X, &f.x, xName}, {&p.Y, &f.y, yName}} {
		align := a.axis.Tick.Label
		a.axis.Tick.Label = letters(7.5, soft)
		a.axis.Tick.Label.XAlign, a.axis.Tick.Label.YAlign = align.XAlign, align.YAlign
		align = a.axis.Label.TextStyle
		a.axis.Label.TextStyle = letters(7.5, soft)
		a.axis.Label.TextStyle.XAlign, a.axis.Label.TextStyle.YAlign = align.XAlign, align.YAlign
		_, unit := a.s.ticks(a.s.marks)
		a.axis.Label.Text = printable(withUnit(a.name, unit))
		a.axis.Label.Padding, a.axis.Padding = 2, 0
		a.axis.LineStyle = draw.LineStyle{Color: soft, Width: 0.5}
		a.axis.Tick.LineStyle, a.axis.Tick.Length = draw.LineStyle{Color: rule, Width: 0.5}, 3
	}
	if f.slanted() {
		p.X.Tick.Label.Rotation, p.X.Tick.Length = math.Pi/4, 5
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
	}
	grid := plotter.NewGrid()
	grid.Horizontal, grid.Vertical = draw.LineStyle{Color: rule, Width: 0.5}, draw.LineStyle{Color: rule, Width: 0.5}
	if x.kind == ordinal {
		grid.Vertical.Color = nil
	}
	p.Add(grid)
	return f
}

// slanted says that the names on the x axis are too wide to lie side by side.
func (f *figure) slanted() bool {
	if f.x.kind != ordinal || len(f.x.names) == 0 {
		return false
	}
	sty, widest := letters(7.5, soft), vg.Length(0)
	for _, name := range f.x.names {
		widest = max(widest, sty.Width(shorten(printable(name), longestTick)))
	}
	return widest+4 > (f.width-45)/vg.Length(len(f.x.names))
}

func withUnit(name, unit string) string {
	if unit == "" || unit == "count" {
		return name
	}
	return name + " (" + unit + ")"
}

// draw draws the figure: its title, the plot, and, where it stands alone, its
// legend.
func (f *figure) draw(c vg.CanvasSizer, rows [][]entry) {
	p := f.plot
	// What was added may have widened the axes.
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = f.x.lo, f.x.hi, f.y.lo, f.y.hi
	all := draw.New(c)
	all.SetColor(p.BackgroundColor)
	all.Fill(all.Rectangle.Path())
	if f.title != "" {
		sty := letters(8.5, ink)
		sty.Font.Weight = bold700
		sty.YAlign = draw.YTop
		all.FillText(sty, vg.Point{X: all.Min.X + 2, Y: all.Max.Y - 1}, fit(f.title, f.width-4, sty.Width))
	}
	below := legendHeight * vg.Length(len(rows))
	if len(rows) > 0 {
		below += 3
		drawLegend(draw.Crop(all, 4, 0, 0, below-all.Max.Y+all.Min.Y), rows)
	}
	p.Draw(draw.Crop(all, 0, -8, below+1, -titleHeight))
}

// fit cuts text that is wider than there is room.
func fit(s string, room vg.Length, width func(string) vg.Length) string {
	for letters := []rune(s); width(s) > room && len(letters) > 1; {
		letters = letters[:len(letters)-1]
		s = strings.TrimRight(string(letters), " ,") + "…"
	}
	return s
}

// alone returns the height of the figure with its legend, and the legend.
func (f *figure) alone() (vg.Length, [][]entry) {
	rows := legendRows(f.legend, f.width-8)
	h := f.height + legendHeight*vg.Length(len(rows))
	return h, rows
}

// SVG writes the figure with its legend.
func (f *figure) SVG(w io.Writer) error {
	h, rows := f.alone()
	c := vgsvg.New(f.width, h)
	f.draw(c, rows)
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(anyFont(b.Bytes()))
	return err
}

// PDF writes the figure with its legend and its font.
func (f *figure) PDF(w io.Writer) error {
	h, rows := f.alone()
	c := vgpdf.New(f.width, h)
	f.draw(c, rows)
	_, err := c.WriteTo(w)
	return err
}

var (
	svgText = regexp.MustCompile(`(<text )([^>]*>)([^<]*)(</text>)`)
	svgSize = regexp.MustCompile(`font-size:([0-9.]+)px`)
)

// anyFont names fonts of the same widths, or at least without serifs, for
// machines that do not have the one that the text was measured with, and says how
// wide each text is, so that it stays so with any of them.
func anyFont(svg []byte) []byte {
	svg = svgText.ReplaceAllFunc(svg, func(text []byte) []byte {
		m := svgText.FindSubmatch(text)
		size := svgSize.FindSubmatch(m[2])
		if size == nil || len(bytes.TrimSpace(m[3])) == 0 {
			return text
		}
		points, err := strconv.ParseFloat(string(size[1]), 64)
		if err != nil {
			return text
		}
		sty := letters(vg.Points(points), ink)
		if bytes.Contains(m[2], []byte("font-weight:600")) {
			sty.Font.Weight = bold700
		}
		wide := sty.Width(html.UnescapeString(string(m[3])))
		return fmt.Appendf(nil, `%stextLength="%.4g" lengthAdjust="spacingAndGlyphs" %s%s%s`, m[1], wide.Points(), m[2], m[3], m[4])
	})
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arimo,Arial,Helvetica,sans-serif;"))
}

const bold700 = 2 // golang.org/x/image/font.WeightBold

var svgHead = regexp.MustCompile(`(?s)^.*?<svg[^>]*>`)

// Inline returns the figure as part of a page, without a legend.
func (f *figure) Inline() template.HTML {
	c := vgsvg.New(f.width, f.height)
	f.draw(c, nil)
	return inlined(c, f.width, f.height, f.title)
}

// InlineAlone returns the figure as part of a page, with its legend.
func (f *figure) InlineAlone() template.HTML {
	h, rows := f.alone()
	c := vgsvg.New(f.width, h)
	f.draw(c, rows)
	return inlined(c, f.width, h, f.title)
}

// inlined returns a canvas as part of a page. What is drawn comes from vgsvg,
// which escapes text.
func inlined(c *vgsvg.Canvas, width, height vg.Length, name string) template.HTML {
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		panic(err) // a buffer takes everything
	}
	head := fmt.Sprintf(`<svg viewBox="0 0 %.5g %.5g" role="img" aria-label="%s">`, width.Points(), height.Points(), html.EscapeString(name))
	return template.HTML(svgHead.ReplaceAllLiteralString(string(anyFont(b.Bytes())), head))
}

// legend returns the entries as a drawing for the top of a section.
func legend(entries []entry) template.HTML {
	const width = 690
	rows := legendRows(entries, width)
	h := legendHeight * vg.Length(len(rows))
	c := vgsvg.New(width, h)
	drawLegend(draw.New(c), rows)
	return template.HTML(`<div class="legend">`) + inlined(c, width, h, "legend") + `</div>`
}
