package report

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	plottext "gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// palette are the colours of Okabe and Ito ("Color Universal Design", 2008),
// which people with any kind of colour vision can tell apart, dark enough for thin
// lines on white.
var palette = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff}, color.RGBA{0xb8, 0x56, 0x8f, 0xff},
	color.RGBA{0xc9, 0x89, 0x00, 0xff}, color.RGBA{0x3a, 0xa0, 0xd8, 0xff}, color.RGBA{0x4a, 0x4a, 0x4a, 0xff},
}

// dashes are the patterns of lines, in points.
var dashes = [][]vg.Length{nil, {5, 2}, {1.5, 1.5}, {7, 2, 1.5, 2}, {10, 3}, {4, 1.5, 1, 1.5, 1, 1.5}}

// What stands around the curves.
var (
	ink   = color.RGBA{0x1c, 0x1e, 0x21, 0xff}
	soft  = color.RGBA{0x5b, 0x61, 0x68, 0xff}
	rule  = color.RGBA{0xe3, 0xe5, 0xe8, 0xff}
	faint = color.RGBA{0xa9, 0xae, 0xb4, 0xff} // a curve that has no name
)

// style is the look of what belongs to one run or object.
type style struct {
	color color.Color
	dash  []vg.Length
}

// styleOf returns the look of number i: no two of the first 42 have colour and
// pattern in common.
func styleOf(i int) style {
	return style{palette[i%len(palette)], dashes[(i+i/len(palette))%len(dashes)]}
}

// solid is a look without its pattern.
func (s style) solid() style { return style{color: s.color} }

func (s style) line(width vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: s.color, Width: width, Dashes: s.dash}
}

// entry is a line of a legend.
type entry struct {
	look style
	name string
	fill bool // a bar, not a line
}

// letters is the style of text of this many points.
func letters(size vg.Length, c color.Color) plottext.Style {
	return plottext.Style{Color: c, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}, Handler: plot.DefaultTextHandler}
}

const (
	legendSize   vg.Length = 7.5
	legendHeight vg.Length = 11 // of a row
	swatch       vg.Length = 18 // the width of the line before a name
)

// legendRows breaks entries to rows that fit into the width.
func legendRows(entries []entry, width vg.Length) [][]entry {
	var rows [][]entry
	at := vg.Length(0)
	for _, e := range entries {
		w := entryWidth(e)
		if len(rows) == 0 || at+w > width {
			rows, at = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		at += w
	}
	return rows
}

func entryWidth(e entry) vg.Length {
	return swatch + 4 + letters(legendSize, ink).Width(printable(e.name)) + 12
}

// drawLegend draws rows from the top of the canvas.
func drawLegend(c draw.Canvas, rows [][]entry) {
	sty := letters(legendSize, ink)
	sty.YAlign = draw.YCenter
	y := c.Max.Y - legendHeight/2
	for _, row := range rows {
		x := c.Min.X
		for _, e := range row {
			if e.fill {
				c.FillPolygon(e.look.color, []vg.Point{{X: x + 5, Y: y - 3.5}, {X: x + 12, Y: y - 3.5}, {X: x + 12, Y: y + 3.5}, {X: x + 5, Y: y + 3.5}})
			} else {
				c.StrokeLine2(e.look.line(1.4), x, y, x+swatch, y)
			}
			c.FillText(sty, vg.Point{X: x + swatch + 4, Y: y}, printable(e.name))
			x += entryWidth(e)
		}
		y -= legendHeight
	}
}
