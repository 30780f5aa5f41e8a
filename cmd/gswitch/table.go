package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/gswitch/gswitch/config"
	"github.com/gswitch/gswitch/control"
)

// table prints aligned columns. A column whose title begins with ">" is
// aligned to the right.
type table struct {
	titles []string
	right  []bool
	rows   [][]string
}

func newTable(titles ...string) *table {
	t := &table{}
	for _, s := range titles {
		name, right := strings.CutPrefix(s, ">")
		t.titles, t.right = append(t.titles, name), append(t.right, right)
	}
	return t
}

func (t *table) row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

func (t *table) print(w io.Writer) {
	width := make([]int, len(t.titles))
	for _, row := range append([][]string{t.titles}, t.rows...) {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
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

// printJSON prints a message, indented.
func printJSON(c *cobra.Command, m proto.Message) error {
	raw, err := control.JSON(m)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = b.WriteTo(c.OutOrStdout())
	return err
}

// rate writes bits per second.
func rate(bits uint64) string { return config.Rate(bits).String() }

// size writes bytes with a binary unit and three digits.
func size(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", v, units[i])
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

// span writes nanoseconds with three digits.
func span(ns uint64) string {
	switch {
	case ns < 1000:
		return fmt.Sprintf("%dns", ns)
	case ns < 1_000_000:
		return fmt.Sprintf("%.3gus", float64(ns)/1e3)
	case ns < 1_000_000_000:
		return fmt.Sprintf("%.3gms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.3gs", float64(ns)/1e9)
}

// printValue prints as JSON what is no message: a configuration, what was found
// in one, or in a machine.
func printValue(c *cobra.Command, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s\n", text)
	return err
}
