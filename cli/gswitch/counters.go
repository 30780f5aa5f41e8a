package gswitch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/table"
	"gswitch/units"
	"gswitch/vswitch"
)

// showFeature is the verb that shows what a feature counts.
func (a *app) showFeature(f *vswitch.Feature) *cobra.Command {
	on := false // at a switch, though no port counts
	ask := func(client api.ControlClient, ctx context.Context, r *api.ListRequest) (*api.Counters, error) {
		r.Feature = f.Name
		m, err := client.ListCounters(ctx, r)
		if err == nil && len(m.Counters) == 0 && f.Section == nil {
			on, err = isOn(ctx, client, f, r.Switch)
		}
		return m, err
	}
	print := func(w io.Writer, m *api.Counters) { printCounters(w, f, m, on) }
	return aliased(list(a, f.Name+" [PORT]", strings.TrimSuffix(f.Doc, "."), ask, print), f.Aliases...)
}

// isOn reports whether a switch has a feature, by the document in force, or one
// of the switches if no name is given.
func isOn(ctx context.Context, client api.ControlClient, f *vswitch.Feature, name string) (bool, error) {
	m, err := client.GetConfig(ctx, &api.GetConfigRequest{})
	if err != nil {
		return false, err
	}
	doc, err := config.Parse("running", []byte(m.Yaml))
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(doc.Switches, func(s config.Switch) bool {
		return (name == "" || s.Name == name) && s.Features.Get(f.Name) != nil
	}), nil
}

// widest is how many columns a table of counters may take. Those that take more
// have a row for each counter.
const widest = 120

// printCounters prints a row for each port and place at it, with a column for
// each counter. Places of different kinds have tables of their own. on says
// that a switch has the feature, where no port has.
func printCounters(w io.Writer, f *vswitch.Feature, m *api.Counters, on bool) {
	switch {
	case len(m.Counters) == 0 && on:
		fmt.Fprintf(w, "nothing: %s is on, but %s\n", f.Name, cmp.Or(f.Nowhere, "at none of these ports"))
		return
	case len(m.Counters) == 0 && f.Section == nil:
		fmt.Fprintf(w, "nothing: %s of the switch turns it on\n", f.Name)
		return
	case len(m.Counters) == 0:
		fmt.Fprintf(w, "no port has %s: %s of a queue profile (qos) turns it on\n", f.Name, f.Name)
		return
	}
	port := cli.Namer(m.Counters)
	kinds := map[string][]*api.Counter{}
	var order []string
	for _, c := range m.Counters {
		kind := ""
		for _, l := range c.Labels {
			kind += l.Name + " "
		}
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], c)
	}
	for i, kind := range order {
		if i > 0 {
			fmt.Fprintln(w)
		}
		t := countersTable(f.Name, kinds[kind], port)
		if t.Width() > widest {
			t = t.Long(1 + len(kinds[kind][0].Labels))
		}
		t.Print(w)
	}
}

// countersTable is the table of counters with the same labels.
func countersTable(feature string, counters []*api.Counter, port func(sw, port string) string) *table.Table {
	titles, columns := []string{"PORT"}, map[string]int{}
	for _, l := range counters[0].Labels {
		titles = append(titles, ">"+strings.ToUpper(l.Name))
	}
	fixed := len(titles)
	var rows [][]any
	at := map[string]int{}
	for _, c := range counters {
		key := []any{port(c.Switch, c.Port)}
		for _, l := range c.Labels {
			key = append(key, l.Value)
		}
		row, there := at[fmt.Sprint(key)]
		if !there {
			row = len(rows)
			rows, at[fmt.Sprint(key)] = append(rows, key), row
		}
		title := columnOf(feature, c)
		if _, there := columns[title]; !there {
			columns[title] = len(titles)
			titles = append(titles, ">"+title)
		}
		for len(rows[row]) <= columns[title] {
			rows[row] = append(rows[row], "-")
		}
		rows[row][columns[title]] = written(c)
	}
	t := table.New(titles...)
	for _, r := range rows {
		for len(r) < max(len(titles), fixed) {
			r = append(r, "-")
		}
		t.Row(r...)
	}
	return t
}

// columnOf names the column of a counter: its name without what all of them have
// in common, and without its unit.
func columnOf(feature string, c *api.Counter) string {
	name := strings.TrimPrefix(c.Name, feature+"_")
	for _, unit := range []string{"_total", "_bytes_per_second", "_bytes", "_seconds"} {
		name = strings.TrimSuffix(name, unit)
	}
	return strings.ToUpper(strings.ReplaceAll(strings.TrimSpace(name+" "+c.Kind), "_", " "))
}

// written writes a value in the unit that the counter's name ends with.
func written(c *api.Counter) string {
	switch name := strings.TrimSuffix(c.Name, "_total"); {
	case strings.HasSuffix(name, "_bytes_per_second"):
		return units.Bits.Brief(8 * c.Value)
	case strings.HasSuffix(name, "_bytes") && c.Gauge:
		return units.Bytes.Brief(c.Value)
	case strings.HasSuffix(name, "_seconds"):
		return units.Time.Brief(1e9 * c.Value)
	}
	return strconv.FormatFloat(c.Value, 'f', -1, 64)
}
