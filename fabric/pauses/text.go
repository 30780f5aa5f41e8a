package pauses

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Text writes a trace for a terminal: the tree, then the table of pauses.
// most bounds the lines of each; 0 is all.
func (t *Trace) Text(w io.Writer, most int) error {
	p := printer{w: w}
	if len(t.Pauses) == 0 {
		p.line("no port paused another")
		return p.err
	}
	p.line("%s, from %s to %s", t.Size(), Seconds(t.From), Seconds(t.To))
	if t.Forgotten > 0 {
		p.line("%s not known any more: the first ones below may have followed from them", count(int(t.Forgotten), "older pause is", "older pauses are"))
	}
	for i := range t.Circles {
		p.line("%s", t.Circles[i].String())
	}
	p.line("")
	p.line("WHERE IT BEGAN, AND WHO WAS PAUSED FOR IT")
	rows := t.rows()
	p.table(cut(rows, most))
	p.more(rows, most)
	p.line("")
	p.line("WHO PAUSED WHOM")
	rows = t.table()
	if most > 0 {
		most++ // its head
	}
	p.table(cut(rows, most))
	p.more(rows, most)
	return p.err
}

// row is a line of a table: the first cells to the left, the others to the
// right, and a remark.
type row struct {
	name   string
	cells  []string
	remark string
}

func sums(s *Sum) []string {
	return []string{fmt.Sprint(s.Count), Seconds(s.Seconds), Seconds(s.Longest), Seconds(s.First), size(s.Held)}
}

var heads = []string{"PAUSES", "IN ALL", "LONGEST", "FIRST AT", "HELD"}

// rows are those of the tree.
func (t *Trace) rows() []row {
	v := []row{{cells: heads}}
	var below func(b *Branch, indent string)
	below = func(b *Branch, indent string) {
		for _, c := range b.Branches {
			v = append(v, row{fmt.Sprintf("%s%s paused %s", indent, node(c.By), c.At.Node), sums(&c.Sum), c.remark()})
			below(c, indent+"  ")
		}
	}
	for _, r := range t.Roots {
		v = append(v, row{fmt.Sprintf("%s class %d: %s", r.place(), r.Class, reasons[r.Why]), sums(&r.Sum), t.remark(r)})
		below(r, "  ")
	}
	return v
}

// place names the place of a root.
func (b *Branch) place() string {
	switch b.Why {
	case Asked:
		return b.At.Node
	case Memory:
		return b.At.Node
	}
	return b.At.String()
}

var reasons = map[string]string{Congestion: "congested", Asked: "asks by itself", Memory: "short of memory for frames"}

func node(end string) string {
	n, _, _ := strings.Cut(end, ">")
	return n
}

// remark is that of a root.
func (t *Trace) remark(r *Branch) string {
	if r.Why == Congestion && t.within(r.At, r.Class) {
		return "part of the circle: where that closed, not why"
	}
	return r.remark()
}

func (b *Branch) remark() string {
	var v []string
	if b.Lasting > 0 && b.up != nil {
		v = append(v, fmt.Sprintf("%d not over", b.Lasting))
	}
	if b.Again {
		v = append(v, "led to itself again: a circle")
	}
	return strings.Join(v, ", ")
}

// table has the edges.
func (t *Trace) table() []row {
	v := []row{{cells: heads}}
	for i := range t.Edges {
		e := &t.Edges[i]
		why := "asked by itself"
		if len(e.For) > 0 {
			var list []string
			for _, f := range e.For {
				list = append(list, fmt.Sprintf("%s (%d)", f.Port, f.Count))
			}
			why = "for " + strings.Join(list[:min(3, len(list))], ", ")
		}
		if len(e.Behind) > 0 {
			var list []string
			for _, c := range e.Behind[:min(3, len(e.Behind))] {
				list = append(list, fmt.Sprintf("%s (%s)", c.Port, size(c.Bytes)))
			}
			why += "; behind it " + strings.Join(list, ", ")
		}
		if e.Lasting > 0 {
			why += fmt.Sprintf(", %d not over", e.Lasting)
		}
		v = append(v, row{fmt.Sprintf("%s paused %s class %d", e.By.Node, e.Of.Node, e.Class), sums(&e.Sum), why})
	}
	return v
}

func cut(v []row, most int) []row {
	if most > 0 && len(v) > most {
		return v[:most]
	}
	return v
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) more(v []row, most int) {
	if most > 0 && len(v) > most {
		p.line("and %d more lines", len(v)-most)
	}
}

func (p *printer) table(v []row) {
	var wide []int
	first := 0
	for i := range v {
		first = max(first, utf8.RuneCountInString(v[i].name))
		for k, c := range v[i].cells {
			if k == len(wide) {
				wide = append(wide, 0)
			}
			wide[k] = max(wide[k], utf8.RuneCountInString(c))
		}
	}
	for i := range v {
		var b strings.Builder
		fmt.Fprintf(&b, "%-*s", first, v[i].name)
		for k, c := range v[i].cells {
			fmt.Fprintf(&b, "  %*s", wide[k], c)
		}
		if v[i].remark != "" {
			b.WriteString("  " + v[i].remark)
		}
		p.line("%s", strings.TrimRight(b.String(), " "))
	}
}

// Seconds writes a time with three digits.
func Seconds(s float64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}} {
		if math.Abs(s) >= 0.9995*u.of { // what would be written as 1000 of the smaller unit
			return significant(s/u.of) + " " + u.name
		}
	}
	if s == 0 {
		return "0 s"
	}
	return significant(s*1e9) + " ns"
}

func size(n uint64) string {
	switch {
	case n >= 1e6:
		return significant(float64(n)/1e6) + " MB"
	case n >= 1e3:
		return significant(float64(n)/1e3) + " kB"
	case n == 0:
		return "-"
	}
	return fmt.Sprintf("%d B", n)
}

// significant writes three digits.
func significant(v float64) string {
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return fmt.Sprintf("%.*f", max(0, min(2, digits)), v)
}
