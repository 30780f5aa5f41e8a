package gswitch

import (
	"fmt"
	"io"
	"strings"

	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/table"
)

// printPauses lists the switch's log of pauses, the last one first.
func printPauses(w io.Writer, m *api.Pauses) {
	name := cli.Namer(m.Pauses)
	t := table.New("PORT", ">CLASS", "WHO ASKED", ">AGO", ">LASTED", ">HELD", "FOR")
	for i := len(m.Pauses) - 1; i >= 0; i-- {
		p := m.Pauses[i]
		who, lasted := "neighbour", ""
		if p.Asked {
			who = "this switch"
		}
		if p.To == 0 {
			lasted = cli.Span(before(m.Now, p.From)) + " so far"
		} else {
			lasted = cli.Span(before(p.To, p.From))
		}
		var causes []string
		for _, c := range p.Causes {
			held := ""
			if c.Stuck && len(p.Causes) > 1 {
				held = ", holds up the others"
			}
			causes = append(causes, fmt.Sprintf("%s (%s%s)", name(p.Switch, c.Port), size(c.Bytes), held))
		}
		if p.Short {
			causes = append(causes, "short of memory")
		}
		held := "-"
		if p.Asked {
			held = size(p.Held)
		}
		t.Row(name(p.Switch, p.Port), p.Class, who, cli.Span(before(m.Now, p.From)), lasted, held, dash(strings.Join(causes, ", ")))
	}
	t.Print(w)
	if m.Forgotten > 0 {
		fmt.Fprintf(w, "%d older ones are not kept (pfc.log says how many are)\n", m.Forgotten)
	}
}

// before is how long a was before b.
func before(b, a uint64) uint64 {
	if a > b {
		return 0
	}
	return b - a
}

// printWaits prints a switch's own part of a deadlock.
func printWaits(w io.Writer, m *api.Waits) {
	if len(m.Waits) == 0 {
		fmt.Fprintln(w, "no egress queue is held back by its neighbour")
		return
	}
	name := cli.Namer(m.Waits)
	t := table.New("PORT", ">CLASS", ">HELD BACK FOR", ">FRAMES", ">BYTES", "CAME BY", "OVERDUE")
	overdue := 0
	for _, v := range m.Waits {
		var from []string
		for _, p := range v.From {
			from = append(from, name(v.Switch, p))
		}
		late := "-"
		if v.Overdue {
			late = "yes: longer than " + cli.Span(v.Patience)
			overdue++
		}
		t.Row(name(v.Switch, v.Port), v.Class, cli.Span(before(m.Now, v.Since)), v.Frames, size(v.Bytes), strings.Join(from, ", "), late)
	}
	t.Print(w)
	if overdue > 0 {
		fmt.Fprintln(w, "a neighbour that holds back a queue for so long is broken, or part of a deadlock: gfabric pfc deadlock joins the switches of a fabric")
	}
}
