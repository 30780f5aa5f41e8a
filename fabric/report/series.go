package report

import (
	"cmp"
	"fmt"
	"slices"

	"gswitch/fabric/results"
)

const (
	namedObjects = 7       // of a drawing that have a colour and a name
	drawnObjects = 60      // in all; the others, smaller ones, are left out
	pathBudget   = 2 << 20 // bytes for all lines of all series
	pointBytes   = 14      // of a point in a path, about
)

// series draws each quantity over time, a drawing per run with the same axes.
func (d *design) series() []*section {
	var names []string
	lines := 0
	for i := range d.runs {
		for k := range d.runs[i].Series {
			indexOf(&names, d.runs[i].Series[k].Name)
			lines++
		}
	}
	if lines == 0 {
		return nil
	}
	// Up to four points to a column.
	columns := min(max(pathBudget/(lines*4*pointBytes), 20), 420)
	var all []*section
	for _, name := range names {
		all = append(all, d.seriesSection(name, columns))
	}
	return all
}

// track is what is drawn of one run.
type track struct {
	run    int
	series []*results.Series
}

func (d *design) seriesSection(name string, columns int) *section {
	tracks, objects, left := d.tracks(name)
	var t, v extent
	unit := ""
	for _, tr := range tracks {
		for _, s := range tr.series {
			unit = symbol(s.Unit)
			t.add(s.T...)
			v.add(s.V...)
		}
	}
	drawn := d.together(tracks, objects)
	s := &section{ID: "t-" + results.FileName(name), Title: "Over time: " + pretty(name), Class: "three"}
	times := scale{kind: linear, lo: t.lo, hi: t.hi, unit: "s"}
	if t.lo < (t.hi-t.lo)/10 {
		times.lo = min(0, t.lo)
	}
	width, height := narrow, short
	if len(drawn) <= 2 {
		s.Class, width = "two", wide
	}
	var entries []entry
	if len(objects) > 1 {
		for k, o := range objects[:min(len(objects), namedObjects)] {
			entries = append(entries, entry{look: styleOf(k), name: o})
		}
		if len(objects) > namedObjects {
			s.Note = fmt.Sprintf("The %d objects with the largest values have a colour; the others are grey.", namedObjects)
		}
	}
	for _, same := range drawn {
		title := d.labels[same[0].run]
		if len(same) > 1 {
			title = onBoth(title)
		}
		p := newFigure("time-"+results.FileName(name)+"-"+results.FileName(title), width, height, title, "time", pretty(name), times, v.linearFrom(unit))
		p.legend = entries
		for k, tr := range same {
			p.series(tr, objects, columns, styleOf(k).solid())
			if len(same) > 1 {
				p.legend = append(p.legend, entry{look: styleOf(k).solid(), name: d.runs[tr.run].Engine})
			}
		}
		s.Figures = append(s.Figures, p)
	}
	if left > 0 {
		s.Note += fmt.Sprintf(" %d lines with smaller values are left out; results.json has them.", left)
	}
	return s
}

// together puts the tracks of a run on both engines, which Beside named, into
// one drawing, if there is one line of each.
func (d *design) together(tracks []track, objects []string) (drawn [][]track) {
	for i, tr := range tracks {
		if i > 0 && len(objects) == 1 {
			a, b := &d.runs[tracks[i-1].run], &d.runs[tr.run]
			if a.Engine != b.Engine && onBoth(a.Name) != a.Name && onBoth(a.Name) == onBoth(b.Name) && a.Seed == b.Seed {
				drawn[len(drawn)-1] = append(drawn[len(drawn)-1], tr)
				continue
			}
		}
		drawn = append(drawn, []track{tr})
	}
	return drawn
}

// tracks collects the series of one name by run, and the names of their
// objects, those with the largest values first. left counts what would be too
// much to draw.
func (d *design) tracks(name string) (tracks []track, objects []string, left int) {
	peak := map[string]float64{}
	for i := range d.runs {
		tr := track{run: i}
		for k := range d.runs[i].Series {
			s := &d.runs[i].Series[k]
			if s.Name != name || len(s.T) == 0 {
				continue
			}
			tr.series = append(tr.series, s)
			indexOf(&objects, s.Object)
			peak[s.Object] = max(peak[s.Object], slices.Max(s.V))
		}
		if len(tr.series) > 0 {
			tracks = append(tracks, tr)
		}
	}
	if len(objects) > namedObjects {
		slices.SortStableFunc(objects, func(a, b string) int { return cmp.Compare(peak[b], peak[a]) })
	}
	if len(objects) > drawnObjects {
		objects = objects[:drawnObjects]
	}
	for i := range tracks {
		before := len(tracks[i].series)
		tracks[i].series = slices.DeleteFunc(tracks[i].series, func(s *results.Series) bool { return !slices.Contains(objects, s.Object) })
		left += before - len(tracks[i].series)
	}
	return tracks, objects, left
}

// series draws the lines of a track, the named ones last so that they lie on
// top; own is the look where each run has a single line.
func (f *figure) series(tr track, objects []string, columns int, own style) {
	for _, named := range []bool{false, true} {
		for _, s := range tr.series {
			k := slices.Index(objects, s.Object)
			if (k < namedObjects) != named {
				continue
			}
			look := styleOf(k).line(curveWidth)
			switch {
			case len(objects) == 1:
				look = own.line(curveWidth)
			case !named:
				look = style{color: faint}.line(0.6)
			}
			f.line(look, s.T, s.V, s.Shape, columns)
		}
	}
}
