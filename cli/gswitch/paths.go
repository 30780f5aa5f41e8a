package gswitch

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/control/api"
	"gswitch/table"
)

func aliased(c *cobra.Command, other ...string) *cobra.Command {
	c.Aliases = append(c.Aliases, other...)
	return c
}

func printPaths(w io.Writer, m *api.Paths) {
	several := map[string]bool{}
	for _, g := range m.Groups {
		several[g.Switch] = true
	}
	for _, c := range m.Choices {
		several[c.Switch] = true
	}
	name := func(sw, what string) string {
		if len(several) > 1 {
			return sw + "/" + what
		}
		return what
	}
	t := table.New("CHOOSE", ">ROUTES", "NEXT HOP", "PORT", ">WEIGHT", ">WAITING")
	for _, g := range m.Groups {
		choose, routes := name(g.Switch, g.Choose), fmt.Sprint(g.Routes)
		for _, h := range g.Hops {
			port := h.Port
			switch {
			case port == "":
				port = "-"
			case !h.Up:
				port += " (down)"
			}
			t.Row(choose, routes, h.Via, port, h.Weight, size(h.Bytes))
			choose, routes = "", ""
		}
	}
	t.Print(w)
	for i, c := range m.Choices {
		if i == 0 {
			fmt.Fprintln(w)
		}
		var v []string
		for k, n := range c.Tiers {
			tier := "no threshold"
			if k < len(c.Thresholds) {
				tier = c.Thresholds[k]
			}
			if n > 0 {
				v = append(v, fmt.Sprintf("%d below %s", n, tier))
			}
		}
		if len(v) > 0 {
			fmt.Fprintf(w, "%s: %s\n", name(c.Switch, fmt.Sprint("class ", c.Class)), strings.Join(v, ", "))
		}
		if c.Flowlets > 0 {
			fmt.Fprintf(w, "%s: %d\n", name(c.Switch, "flowlets"), c.Flowlets)
		}
	}
}
