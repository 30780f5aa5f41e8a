package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"gswitch/control"
)

// Table prints aligned columns. A column whose title begins with ">" is
// aligned to the right.
type Table struct {
	titles []string
	right  []bool
	rows   [][]string
}

// NewTable returns a table with these titles.
func NewTable(titles ...string) *Table {
	t := &Table{}
	for _, s := range titles {
		name, right := strings.CutPrefix(s, ">")
		t.titles, t.right = append(t.titles, name), append(t.right, right)
	}
	return t
}

// Row adds a row with as many cells as there are titles.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

// Width returns how many columns of a terminal the table takes.
func (t *Table) Width() int {
	sum := 2 * (len(t.titles) - 1)
	for _, n := range t.widths() {
		sum += n
	}
	return sum
}

// widths returns how many characters each of the columns takes.
func (t *Table) widths() []int {
	width := make([]int, len(t.titles))
	for _, row := range append([][]string{t.titles}, t.rows...) {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	return width
}

// Long returns the table with a row for each cell behind the first fixed ones,
// as name and value: what is too wide for a terminal.
func (t *Table) Long(fixed int) *Table {
	l := &Table{titles: append(slices.Clone(t.titles[:fixed]), "COUNTER", "VALUE"), right: append(slices.Clone(t.right[:fixed]), false, true)}
	for _, row := range t.rows {
		for i, c := range row[fixed:] {
			l.rows = append(l.rows, append(slices.Clone(row[:fixed]), strings.ToLower(t.titles[fixed+i]), c))
		}
	}
	return l
}

// Print writes the table.
func (t *Table) Print(w io.Writer) {
	width := t.widths()
	line := func(row []string) {
		var b strings.Builder
		for i, c := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if t.right[i] {
				b.WriteString(pad + c)
			} else {
				b.WriteString(c + pad)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	line(t.titles)
	for _, row := range t.rows {
		line(row)
	}
}

// PrintJSON prints a message, indented.
func PrintJSON(w io.Writer, m proto.Message) error {
	raw, err := control.JSON(m)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = b.WriteTo(w)
	return err
}

// PrintValue prints as JSON what is no message.
func PrintValue(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// Namer writes ports without their node where there is only one.
func Namer[T interface{ GetSwitch() string }](list []T) func(node, port string) string {
	for _, e := range list {
		if e.GetSwitch() != list[0].GetSwitch() {
			return func(node, port string) string { return node + "/" + port }
		}
	}
	return func(_, port string) string { return port }
}

// Plural writes a number of things.
func Plural(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// si writes a number with a decimal unit and three digits.
func si(v float64) string {
	units := []string{"", "k", "M", "G", "T"}
	i := 0
	for v >= 1000 && i < len(units)-1 {
		v, i = v/1000, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g%s", v, units[i])
}

// isTerminal reports whether people read what is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
