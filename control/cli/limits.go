package cli

import (
	"fmt"
	"io"
	"strings"

	"gswitch/control/api"
	"gswitch/table"
	"gswitch/units"
)

// PrintLimits prints what is bounded. Shares of ports of which nothing is in
// use are left out.
func PrintLimits(w io.Writer, m *api.Limits) {
	switches := map[string]bool{}
	for _, l := range m.Limits {
		switches[l.Switch] = true
	}
	delete(switches, "")
	t, left := table.New("WHAT", "OF", ">USED", ">LIMIT", ">REFUSED", "SET BY"), 0
	for _, l := range m.Limits {
		if l.Port != "" && l.Used == 0 && l.Refused == 0 {
			left++
			continue
		}
		of := l.Port
		if len(switches) > 1 || of == "" {
			of = strings.TrimSuffix(l.Switch+"/"+l.Port, "/")
		}
		t.Row(l.Name, of, quantity(l.Used, l.Unit), limit(l), l.Refused, l.Key)
	}
	t.Print(w)
	if left > 0 {
		fmt.Fprintf(w, "and %s of ports, of which nothing is in use (--json)\n", Plural(left, "share"))
	}
}

func limit(l *api.Limit) string {
	if l.Limit == 0 {
		return "-"
	}
	return quantity(l.Limit, l.Unit)
}

func quantity(n uint64, unit string) string {
	if unit == "bytes" {
		return units.Bytes.Brief(float64(n))
	}
	return fmt.Sprint(n)
}
