package deploy_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "gswitch/systems"
	"gswitch/vswitch"
)

// dashboard is what Grafana reads of a file under grafana/dashboards, as far
// as it matters here.
type dashboard struct {
	UID, Title, Description string
	Tags                    []string
	SchemaVersion           int
	Templating              struct{ List []variable }
	Annotations             struct{ List []struct{ Name, Expr string } }
	Panels                  []panel
}

type variable struct {
	Name, Type, Definition string
	Datasource             source
	Multi, IncludeAll      bool
	Query                  any
}

type source struct{ Type, UID string }

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               source
	Targets                  []struct {
		RefID, Expr, Format string
		Datasource          source
		Instant, Range      bool
	}
	FieldConfig struct {
		Defaults struct {
			Unit  string
			Links []link
		}
		Overrides []struct {
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
}

type link struct{ Title, URL string }

// links of a panel, and of single columns of a table.
func (p *panel) links(t *testing.T) []link {
	all := p.FieldConfig.Defaults.Links
	for _, o := range p.FieldConfig.Overrides {
		for _, prop := range o.Properties {
			if prop.ID == "links" {
				text, _ := json.Marshal(prop.Value)
				var more []link
				if err := json.Unmarshal(text, &more); err != nil {
					t.Errorf("%s: %v", p.Title, err)
				}
				all = append(all, more...)
			}
		}
	}
	return all
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob("grafana/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	all := map[string]dashboard{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[d.UID] = d
	}
	if len(all) != len(files) {
		t.Errorf("%d dashboards have %d uids", len(files), len(all))
	}
	return all
}

// units that Grafana has, of those that are used.
var units = []string{"", "none", "bps", "pps", "ops", "percentunit", "s", "decbytes"}

// usesVariable finds $name and ${name}, ${name:format}, but for Grafana's own,
// which begin with two underscores.
var usesVariable = regexp.MustCompile(`\$\{?([a-zA-Z_]\w*)`)

func TestDashboards(t *testing.T) {
	all := dashboards(t)
	for _, d := range all {
		if d.Title == "" || d.Description == "" || d.SchemaVersion < 30 || !slices.Contains(d.Tags, "gswitch") {
			t.Errorf("%s: title %q, schema %d, tags %v; the links at the top find dashboards by their tag", d.UID, d.Title, d.SchemaVersion, d.Tags)
		}
		known := map[string]bool{}
		for i, v := range d.Templating.List {
			if i == 0 && (v.Type != "datasource" || v.Query != "prometheus" || v.Name != "datasource") {
				t.Errorf("%s: the first variable chooses the Prometheus, but is %+v", d.UID, v)
			}
			for _, m := range usesVariable.FindAllStringSubmatch(v.Definition, -1) {
				if !known[m[1]] {
					t.Errorf("%s: variable %s needs $%s, which comes later or not at all", d.UID, v.Name, m[1])
				}
			}
			if i > 0 && v.Datasource.UID != "${datasource}" {
				t.Errorf("%s: variable %s asks %v", d.UID, v.Name, v.Datasource)
			}
			known[v.Name] = true
		}
		d.checkPanels(t, known)
		d.checkGrid(t)
		for _, p := range d.Panels {
			for _, l := range p.links(t) {
				checkLink(t, all, d.UID+": "+p.Title, l.URL)
			}
		}
	}
}

func (d *dashboard) checkPanels(t *testing.T, variables map[string]bool) {
	ids, titles, row := map[int]bool{}, map[string]bool{}, ""
	for _, p := range d.Panels {
		where := fmt.Sprintf("%s: panel %d, %s", d.UID, p.ID, p.Title)
		if p.ID < 1 || ids[p.ID] {
			t.Errorf("%s: the number is not unique", where)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			row = p.Title
			continue
		}
		if titles[row+p.Title] || p.Title == "" {
			t.Errorf("%s: the title is not unique in its row", where)
		}
		titles[row+p.Title] = true
		if !strings.HasSuffix(p.Description, ".") {
			t.Errorf("%s: description %q", where, p.Description)
		}
		if !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
			t.Errorf("%s: unit %q", where, p.FieldConfig.Defaults.Unit)
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s: asks nothing", where)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.Expr == "" || refs[q.RefID] || q.Instant == q.Range || q.Datasource.UID != "${datasource}" || p.Datasource.UID != "${datasource}" {
				t.Errorf("%s: query %+v", where, q)
			}
			refs[q.RefID] = true
			for _, m := range usesVariable.FindAllStringSubmatch(q.Expr, -1) {
				if !variables[m[1]] && m[1] != "__rate_interval" {
					t.Errorf("%s: $%s is no variable here", where, m[1])
				}
			}
		}
	}
}

// checkGrid finds panels that lie outside of the grid or on another one.
func (d *dashboard) checkGrid(t *testing.T) {
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		g := p.GridPos
		if g.W < 1 || g.H < 1 || g.X < 0 || g.Y < 0 || g.X+g.W > 24 {
			t.Errorf("%s: %s lies at %+v", d.UID, p.Title, g)
			continue
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok {
					t.Fatalf("%s: %s lies on %s", d.UID, p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// checkLink follows a link to another dashboard: it is there, and has the
// variables that are set.
func checkLink(t *testing.T, all map[string]dashboard, where, to string) {
	path, query, _ := strings.Cut(to, "?")
	parts := strings.Split(path, "/") // "", d, uid, slug
	target, ok := all[parts[2]]
	if len(parts) != 4 || parts[1] != "d" || !ok {
		t.Errorf("%s: leads to %s, which is nowhere", where, to)
		return
	}
	set, err := url.ParseQuery(strings.ReplaceAll(query, "${__url_time_range}", "from=1&to=2"))
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	for key := range set {
		name, isVar := strings.CutPrefix(key, "var-")
		if isVar && !slices.ContainsFunc(target.Templating.List, func(v variable) bool { return v.Name == name }) {
			t.Errorf("%s: sets %s, which %s has not", where, name, target.UID)
		}
	}
}

// declared matches where package metrics declares a name.
var declared = regexp.MustCompile(`(?:(counter|gauge)\("|prometheus\.NewDesc\("gswitch_)(\w+)"`)

// collected matches where package collect declares one.
var collected = regexp.MustCompile(`"gcollect_(\w+)"|\bdesc\("(\w+)"`)

// exposed returns the names of all series that gswitch, ghost and gcollect may expose.
func exposed(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../metrics/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources of the metrics: %v", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "" {
				names = append(names, "gswitch_"+m[2])
				continue
			}
			for _, part := range []string{"bucket", "sum", "count"} { // a histogram
				names = append(names, "gswitch_"+m[2]+"_"+part)
			}
		}
	}
	text, err := os.ReadFile("../collect/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range collected.FindAllStringSubmatch(string(text), -1) {
		names = append(names, "gcollect_"+m[1]+m[2])
	}
	for _, f := range vswitch.Features() { // systems declare theirs in their rooms
		for _, c := range f.Counters {
			names = append(names, "gswitch_"+c.Name)
		}
	}
	return names
}

// Dashboards ask for gswitch's and ghost's own metrics only, alerts for those
// and recorded ones. Rare ones may be missing in a running fabric, so that a
// wrong name would show a zero for ever.
func TestMetricNames(t *testing.T) {
	names := exposed(t)
	check := func(where, expr string) {
		for _, m := range metricsIn(expr) {
			if !slices.Contains(names, m) {
				t.Errorf("%s: there is no metric %s", where, m)
			}
		}
	}
	for _, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			check(d.UID, v.Definition)
		}
		for _, a := range d.Annotations.List {
			check(d.UID, a.Expr)
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				check(d.UID+": "+p.Title, q.Expr)
			}
		}
	}
	for _, r := range readRules(t, "recording.yml") {
		check(r.Record, r.Expr)
		names = append(names, r.Record)
	}
	for _, r := range readRules(t, "alerts.yml") {
		check(r.Alert, r.Expr)
	}
}

func TestCheckersFind(t *testing.T) {
	var d dashboard
	for i, x := range []int{0, 8, 12} {
		p := panel{ID: i + 1}
		p.GridPos.X, p.GridPos.W, p.GridPos.H = x, 4, 2
		d.Panels = append(d.Panels, p)
	}
	d.checkGrid(t) // side by side
	for _, s := range []struct{ expr, want string }{
		{`sum(rate(gswitch_queue_delay_seconds_bucket{a="b"}[1m])) + port:gswitch_x:rate1m`, "[gswitch_queue_delay_seconds_bucket port:gswitch_x:rate1m]"},
		{`{__name__="x"}`, "[]"},
	} {
		if got := fmt.Sprint(metricsIn(s.expr)); got != s.want {
			t.Errorf("metrics in %s: %s, want %s", s.expr, got, s.want)
		}
	}
}

// metricName matches this project's metrics and recording rules.
var metricName = regexp.MustCompile(`\b(?:[a-z]+:)?(?:gswitch|gcollect)_\w+(?::\w+)?`)

func metricsIn(expr string) []string { return metricName.FindAllString(expr, -1) }
