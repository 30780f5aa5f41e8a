// Package report shows results: on a terminal (Text), as a page that needs no
// network (HTML), and side by side (Compare).
package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gswitch/fabric/results"
)

// TextOptions change how Text writes.
type TextOptions struct {
	Width int  // columns; 0 = 100
	Color bool // the writer is a terminal that understands ANSI colours
	Equal bool // of a comparison: show values that are the same in all files, too
}

// Text writes what a person wants to know first: a table of the runs side by
// side, slowdowns by flow size, and the expectations.
func Text(w io.Writer, f *results.File, o TextOptions) error {
	if o.Width == 0 {
		o.Width = 100
	}
	t := &text{o: o}
	t.heading(f)
	t.warn(f.Runs)
	for _, part := range t.split(f.Runs) {
		t.runs(part)
	}
	t.sizes(f.Runs)
	t.timing(f.Runs)
	t.checks(f)
	// On terminals all tables write us, which every one of them has.
	_, err := io.WriteString(w, strings.ReplaceAll(t.b.String(), "µs", "us"))
	return err
}

// text is a report that is being written.
type text struct {
	o TextOptions
	b strings.Builder
}

// The look of what is written to a terminal (ECMA-48, select graphic rendition).
const (
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

func (t *text) paint(style, s string) string {
	if !t.o.Color {
		return s
	}
	return style + s + reset
}

func (t *text) heading(f *results.File) {
	title := f.Title
	if title == "" {
		title = f.Scenario
	}
	t.b.WriteString(t.paint(bold, printable(title)) + "\n")
	if f.Figure != "" {
		for _, line := range wrap(printable(f.Figure), t.o.Width) {
			t.b.WriteString(line + "\n")
		}
	}
}

// printable takes control characters out of what came from a file.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

const (
	labelWidth  = 22 // of the first column
	columnWidth = 15 // of a run
)

// part is the runs of one table.
type part struct {
	labels []string
	runs   []results.Run
	all    []results.Measure // of all runs, so that parts have the same rows
}

// split divides runs so that each part fits the width.
func (t *text) split(runs []results.Run) []part {
	n := max(1, (t.o.Width-labelWidth)/columnWidth)
	labels := results.Labels(runs)
	all := results.MeasuresOf(runs)
	var parts []part
	for i := 0; i < len(runs); i += n {
		end := min(i+n, len(runs))
		parts = append(parts, part{labels[i:end], runs[i:end], all})
	}
	return parts
}

// runs writes one table of runs.
func (t *text) runs(p part) {
	t.b.WriteByte('\n')
	t.columns("", p.labels)
	for _, m := range p.all {
		if !anyEnoughFlows(p.runs, m.Name) {
			continue
		}
		unit := unitOf(m.Name)
		t.row(m.Label, len(p.runs), func(i int) string {
			if v, ok := p.runs[i].Values[m.Name]; ok && enoughFlows(&p.runs[i], m.Name) {
				return quantity(v, unit)
			}
			return "-"
		})
	}
	rows := []struct {
		label string
		cell  func(r *results.Run) string
	}{
		{"virtual time", func(r *results.Run) string { return quantity(r.VirtualTime, "s") }},
		{"wall time", func(r *results.Run) string { return quantity(r.WallTime, "s") }},
		{"frame-hops", func(r *results.Run) string { return quantity(float64(r.FrameHops), "count") }},
		{"frame-hops/s", func(r *results.Run) string { return hopRate(r) }},
		{"digest", func(r *results.Run) string { return shorten(r.Digest, columnWidth-2) }},
	}
	for _, row := range rows {
		t.row(row.label, len(p.runs), func(i int) string { return row.cell(&p.runs[i]) })
	}
}

// hopRate is how many frame-hops an engine did in a second of wall time.
func hopRate(r *results.Run) string {
	if r.WallTime <= 0 || r.FrameHops == 0 {
		return "-"
	}
	p, f := prefix(float64(r.FrameHops) / r.WallTime)
	return strings.TrimSpace(significant(float64(r.FrameHops)/r.WallTime/f) + " " + p)
}

// columns writes the names of the columns, on several lines if need be.
func (t *text) columns(first string, labels []string) {
	lines := make([][]string, len(labels))
	height := 1
	for i, l := range labels {
		lines[i] = wrap(printable(l), columnWidth-2)
		height = max(height, len(lines[i]))
	}
	for k := range height {
		var b strings.Builder
		if k == height-1 {
			b.WriteString(first)
		}
		for i, l := range lines {
			if at := k - height + len(l); at >= 0 {
				padTo(&b, labelWidth+(i+1)*columnWidth-utf8.RuneCountInString(l[at]))
				b.WriteString(l[at])
			}
		}
		t.b.WriteString(t.paint(bold, strings.TrimRight(b.String(), " ")) + "\n")
	}
}

// row writes a line of n cells; nothing if no cell has anything to say.
func (t *text) row(label string, n int, cell func(i int) string) {
	cells := make([]string, n)
	for i := range cells {
		cells[i] = shorten(printable(cmp.Or(cell(i), "-")), columnWidth-1)
	}
	label = printable(label)
	// A name that is too long for its column has a line of its own.
	if n > 0 && utf8.RuneCountInString(label+cells[0]) >= labelWidth+columnWidth {
		t.b.WriteString(shorten(label, t.o.Width) + "\n")
		label = ""
	}
	var b strings.Builder
	b.WriteString(label)
	for i, s := range cells {
		padTo(&b, labelWidth+(i+1)*columnWidth-utf8.RuneCountInString(s))
		b.WriteString(s)
	}
	t.b.WriteString(b.String() + "\n")
}

// padTo adds spaces up to column n, at least one if anything is there.
func padTo(b *strings.Builder, n int) {
	have := utf8.RuneCountInString(b.String())
	b.WriteString(strings.Repeat(" ", max(n-have, min(have, 1))))
}

// sizes writes slowdowns by flow size, a table per percentile. With flows of
// one size the table of runs says it all.
func (t *text) sizes(runs []results.Run) {
	buckets := bucketLabels(runs)
	if len(buckets) < 2 {
		return
	}
	const mean = 0
	for _, p := range append([]float64{mean}, results.Percentiles...) {
		name := results.Percentile(p)
		if p == mean {
			name = "mean"
		}
		for _, part := range t.split(runs) {
			t.b.WriteByte('\n')
			t.columns("slowdown "+name+" by size", part.labels)
			for _, label := range buckets {
				t.row(label, len(part.runs), func(i int) string { return bucketValue(&part.runs[i], label, p) })
			}
		}
	}
}

// bucketLabels returns the labels of all buckets by their size.
func bucketLabels(runs []results.Run) []string {
	type bucket struct {
		label string
		size  uint64
	}
	var all []bucket
	for i := range runs {
		for _, b := range runs[i].Buckets {
			if !slices.ContainsFunc(all, func(a bucket) bool { return a.label == b.Label }) {
				all = append(all, bucket{b.Label, b.MaxBytes})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b bucket) int {
		if a.size < b.size {
			return -1
		} else if a.size > b.size {
			return 1
		}
		return 0
	})
	labels := make([]string, len(all))
	for i := range all {
		labels[i] = all[i].label
	}
	return labels
}

// findBucket returns the bucket of a run, nil if it has none or nothing is in it.
func findBucket(r *results.Run, label string) *results.Bucket {
	for i := range r.Buckets {
		if r.Buckets[i].Label == label && r.Buckets[i].N > 0 {
			return &r.Buckets[i]
		}
	}
	return nil
}

// bucketValue is the mean, percentile 0, or a percentile of a bucket that has
// flows enough for it.
func bucketValue(r *results.Run, label string, percentile float64) string {
	b := findBucket(r, label)
	switch {
	case b == nil:
		return "-"
	case percentile == 0:
		return significant(b.Mean)
	}
	if v, ok := b.Quantiles[results.Percentile(percentile)]; ok && enough(percentile, float64(b.N)) {
		return significant(v)
	}
	return "-"
}

// checks writes the expectations of all runs and those between runs.
func (t *text) checks(f *results.File) {
	all := checksOf(f)
	if len(all) == 0 {
		return
	}
	failed, differs := 0, 0
	t.b.WriteString("\n" + t.paint(bold, "expectations") + "\n")
	for _, c := range all {
		verdict := t.paint(green, "ok    ")
		line := printable(c.Text)
		if c.Deviates != "" {
			differs++
			verdict = t.paint(yellow, "known ")
			line = "the paper has " + line + "; not here: " + printable(c.Deviates)
		}
		if !c.OK {
			failed++
			verdict = t.paint(red, "FAILED")
		}
		if c.run != "" {
			line = printable(c.run) + ": " + line
		}
		switch {
		case c.Why == "":
			line += " (measured " + c.got() + ")"
		case c.OK:
			line += " (" + printable(c.Why) + ")"
		default:
			line += ": " + printable(c.Why)
			if of := c.estimates(); len(of) > 0 {
				line += "; " + printable(strings.Join(of, ", "))
			}
		}
		for i, l := range wrap(line, t.o.Width-9) {
			if i > 0 {
				verdict = "      "
			}
			t.b.WriteString("  " + verdict + " " + l + "\n")
		}
	}
	if failed > 0 {
		fmt.Fprintf(&t.b, "%s of %d expectations\n", t.paint(red, fmt.Sprintf("%d FAILED", failed)), len(all))
	} else {
		fmt.Fprintf(&t.b, "all %d expectations held\n", len(all)-differs)
	}
	if differs > 0 {
		fmt.Fprintf(&t.b, "known to differ from the paper: %d\n", differs)
	}
}

// check is an expectation with the run that it is about, none if it compares several.
type check struct {
	run string
	results.Check
}

func (c *check) got() string {
	if c.Got != c.Got { // NaN
		return "nothing"
	}
	return significant(c.Got)
}

// estimates are the values of a claim about the mean of several seeds, each with the
// interval of the mean where there are seeds enough for one.
func (c *check) estimates() (v []string) {
	for _, e := range c.Values {
		text := e.Name + " " + quantity(e.Mean, unitOf(e.Name))
		if e.Low != nil {
			text += " ± " + quantity((*e.High-*e.Low)/2, unitOf(e.Name))
		}
		of := " seeds"
		if e.Seeds == 1 {
			of = " seed"
		}
		v = append(v, text+" of "+strconv.Itoa(e.Seeds)+of)
	}
	return v
}

func checksOf(f *results.File) []check {
	var all []check
	labels := results.Labels(f.Runs)
	for i := range f.Runs {
		for _, c := range f.Runs[i].Checks {
			all = append(all, check{labels[i], c})
		}
	}
	for _, c := range f.Checks {
		all = append(all, check{c.Run, c})
	}
	return all
}

// shorten cuts s to n characters.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// wrap breaks s into lines of at most n characters, at spaces where it can.
func wrap(s string, n int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		for utf8.RuneCountInString(word) > n {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			r := []rune(word)
			lines, word = append(lines, string(r[:n])), string(r[n:])
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}
