// Package table writes tables of text for terminals: aligned columns with two blanks between them.
package table

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// gap is what stands between two columns.
const gap = "  "

// Table is rows of cells.
type Table struct {
	titles   []string
	right    []bool
	indented bool
	rows     [][]string
	flushed  []int // after a Flush: how wide columns are at least
}

// New returns a table with these titles; without titles, columns are aligned to the left. A column whose title
// begins with ">" is aligned to the right.
func New(titles ...string) *Table {
	t := &Table{}
	for _, s := range titles {
		name, right := strings.CutPrefix(s, ">")
		t.titles, t.right = append(t.titles, name), append(t.right, right)
	}
	return t
}

// Right returns an indented table all of whose columns are aligned to the right.
func Right(titles ...string) *Table {
	t := &Table{titles: titles, right: slices.Repeat([]bool{true}, len(titles))}
	return t.Indented()
}

// Indented has the first column begin two blanks from the edge.
func (t *Table) Indented() *Table {
	t.indented = true
	return t
}

// Row adds a row. A cell of several lines goes on below.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.add(row)
}

// Rowf adds a row whose cells are separated by tabs in the format.
func (t *Table) Rowf(format string, args ...any) {
	t.add(strings.Split(fmt.Sprintf(format, args...), "\t"))
}

func (t *Table) add(row []string) {
	for more := true; more; {
		more = false
		line := make([]string, len(row))
		for i := range row {
			var below bool
			line[i], row[i], below = strings.Cut(row[i], "\n")
			more = more || below
		}
		t.rows = append(t.rows, line)
	}
}

// Width returns how many columns of a terminal the table takes.
func (t *Table) Width() int {
	widths := t.widths()
	sum := len(gap) * max(0, len(widths)-1)
	if t.indented {
		sum += len(gap)
	}
	for _, n := range widths {
		sum += n
	}
	return sum
}

// widths returns how many characters each of the columns takes.
func (t *Table) widths() []int {
	width := slices.Clone(t.flushed)
	for _, row := range append([][]string{t.titles}, t.rows...) {
		for len(width) < len(row) {
			width = append(width, 0)
		}
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	return width
}

// Long returns the table with a row for each cell behind the first fixed ones, as name and value: what is too wide
// for a terminal.
func (t *Table) Long(fixed int) *Table {
	l := &Table{
		titles: append(slices.Clone(t.titles[:fixed]), "COUNTER", "VALUE"),
		right:  append(slices.Clone(t.right[:fixed]), false, true),
	}
	for _, row := range t.rows {
		for i, c := range row[fixed:] {
			l.rows = append(l.rows, append(slices.Clone(row[:fixed]), strings.ToLower(t.titles[fixed+i]), c))
		}
	}
	return l
}

// Print writes the table: its titles, if it has any, and its rows.
func (t *Table) Print(w io.Writer) error {
	width := t.widths()
	var b strings.Builder
	if len(t.titles) > 0 && t.flushed == nil {
		t.line(&b, width, t.titles)
	}
	for _, row := range t.rows {
		t.line(&b, width, row)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) line(b *strings.Builder, width []int, row []string) {
	var line strings.Builder
	for i, c := range row {
		if i > 0 || t.indented {
			line.WriteString(gap)
		}
		pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
		if i < len(t.right) && t.right[i] {
			line.WriteString(pad + c)
		} else {
			line.WriteString(c + pad)
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// Flush writes what Print does, and goes on behind it: what is written next has no titles, and is only of rows that
// are added from now on, in columns at least as wide. A long list can be seen while it grows.
func (t *Table) Flush(w io.Writer) error {
	width := t.widths()
	err := t.Print(w)
	t.rows, t.flushed = nil, width
	return err
}
