package grafana

import (
	"fmt"
	"strings"

	"gswitch/frame"
)

// source is the Prometheus that the reader chooses at the top.
var source = datasource{Type: "prometheus", UID: "${datasource}"}

// builder lays panels out from left to right and from top to bottom.
type builder struct {
	d       dashboard
	x, y, h int // where the next panel goes, and the height of the line it stands in
}

const columns = 24 // of Grafana's grid

func newDashboard(name, title, description string, vars ...variable) *builder {
	return &builder{d: dashboard{
		UID: "gswitch-" + name, Title: title, Description: description, Tags: []string{"gswitch"},
		SchemaVersion: schemaVersion, Editable: true, GraphTooltip: 1, Refresh: "10s", Time: timeRange{"now-30m", "now"}, Timezone: "browser",
		Links:       []dashLink{{Type: "dashboards", Title: "gswitch", Icon: "external link", Tags: []string{"gswitch"}, IncludeVars: true, KeepTime: true}},
		Annotations: annotations{[]annotation{alerts, reloads}},
		Templating:  templating{append([]variable{{Name: "datasource", Label: "Prometheus", Type: "datasource", Query: "prometheus", Refresh: 1}}, vars...)},
	}}
}

var (
	alerts = annotation{Name: "Alerts", Datasource: &source, Enable: true, Step: "10s", IconColor: "red", TitleFormat: "{{alertname}}", TextFormat: "{{switch}} {{port}} {{host}} {{worker}}",
		Expr: `ALERTS{alertstate="firing",service="gswitch",instance=~"$instance"}`}
	reloads = annotation{Name: "Configuration", Datasource: &source, Enable: true, Step: "10s", IconColor: "blue", TitleFormat: "configuration changed", TextFormat: "{{instance}}",
		Expr: `changes(gswitch_config_generation{instance=~"$instance"}[$__interval]) > 0`}
)

// choice is a variable whose values are those of a label.
func choice(name, label, metric string, multi bool) variable {
	q := fmt.Sprintf("label_values(%s, %s)", metric, name)
	v := variable{Name: name, Label: label, Type: "query", Query: variableQuery{q, "A"}, Definition: q, Datasource: &source, Refresh: 2, Sort: 7, Multi: multi, IncludeAll: multi}
	if multi {
		v.Current = &current{[]string{"All"}, []string{"$__all"}}
	}
	return v
}

func (b *builder) place(p *panel, w, h int) *panel {
	if b.x+w > columns {
		b.newLine()
	}
	p.ID, p.GridPos = len(b.d.Panels)+1, gridPos{b.x, b.y, w, h}
	b.x, b.h = b.x+w, max(b.h, h)
	b.d.Panels = append(b.d.Panels, p)
	return p
}

func (b *builder) newLine() { b.x, b.y, b.h = 0, b.y+b.h, 0 }

func (b *builder) row(title string) {
	b.newLine()
	b.place(&panel{Type: "row", Title: title, Collapsed: new(bool), Panels: &[]*panel{}}, columns, 1)
	b.newLine()
}

// q is a query with the legend of its series.
type q struct{ legend, expr string }

func targets(qs []q, format string, instant bool) []target {
	var ts []target
	for i, q := range qs {
		ts = append(ts, target{RefID: string(rune('A' + i)), Datasource: source, Expr: q.expr, LegendFormat: q.legend, Format: format, Instant: instant, Range: !instant})
	}
	return ts
}

func (b *builder) newPanel(kind, title, unit, description string, w, h int, ts []target) *panel {
	return b.place(&panel{Type: kind, Title: title, Description: description, Datasource: &source, Targets: ts,
		FieldConfig: &fieldConfig{Defaults: fieldDefaults{Unit: unit}, Overrides: []override{}}}, w, h)
}

// graph is a third of a line: what changes over time.
func (b *builder) graph(title, unit, description string, qs ...q) *panel {
	p := b.newPanel("timeseries", title, unit, description, 8, 8, targets(qs, "time_series", false))
	zero := 0.0
	p.FieldConfig.Defaults.Min = &zero
	p.FieldConfig.Defaults.Custom = map[string]any{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false}
	p.Options = map[string]any{
		"legend":  map[string]any{"displayMode": "table", "placement": "bottom", "showLegend": true, "calcs": []string{"mean", "max"}},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}
	return p
}

// stat is a number at the top; its colour says whether it is as it should be.
func (b *builder) stat(title, unit, description, expr string, steps ...step) *panel {
	p := b.newPanel("stat", title, unit, description, 4, 4, targets([]q{{"", expr}}, "time_series", true))
	if len(steps) == 0 {
		steps = from("green")
	}
	p.FieldConfig.Defaults.Thresholds = &thresholds{"absolute", steps}
	p.Options = map[string]any{"colorMode": "value", "graphMode": "none", "reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}}}
	return p
}

// heatmap shows how a histogram changes; expr keeps the label le.
func (b *builder) heatmap(title, unit, description, expr string) *panel {
	p := b.newPanel("heatmap", title, "", description, 8, 8, targets([]q{{"{{le}}", expr}}, "heatmap", false))
	p.Options = map[string]any{
		"calculate": false, "yAxis": map[string]any{"unit": unit, "axisPlacement": "left"}, "color": map[string]any{"mode": "scheme", "scheme": "Spectral", "exponent": 0.5},
		"tooltip": map[string]any{"mode": "single", "yHistogram": true}, "cellGap": 1,
	}
	return p
}

// from says which colours a number has: one, and others from some value on.
func from(color string, more ...any) []step {
	s := []step{{Color: color}}
	for i := 0; i+1 < len(more); i += 2 {
		v := more[i].(float64)
		s = append(s, step{more[i+1].(string), &v})
	}
	return s
}

// lines draws thresholds into a graph.
func (p *panel) lines(steps []step) *panel {
	p.FieldConfig.Defaults.Thresholds = &thresholds{"absolute", steps}
	p.FieldConfig.Defaults.Custom["thresholdsStyle"] = map[string]any{"mode": "dashed"}
	return p
}

func (p *panel) atMost(v float64) *panel {
	p.FieldConfig.Defaults.Max = &v
	return p
}

func (p *panel) stacked() *panel {
	p.FieldConfig.Defaults.Custom["stacking"] = map[string]any{"mode": "normal"}
	p.FieldConfig.Defaults.Custom["fillOpacity"] = 30
	return p
}

// linked lets a click on a series lead to another dashboard; the labels named
// there become its variables.
func (p *panel) linked(to string, labels ...string) *panel {
	url := "/d/gswitch-" + to + "/gswitch-" + to + "?${__url_time_range}&var-datasource=${datasource}"
	for _, l := range labels {
		url += fmt.Sprintf("&var-%s=${__field.labels.%s}", l, l)
	}
	p.FieldConfig.Defaults.Links = append(p.FieldConfig.Defaults.Links, dataLink{"Open the " + to, url})
	return p
}

// notLost matches the reasons that are no losses.
func notLost() string {
	var s []string
	for r := frame.Keep + 1; r < frame.NumReasons; r++ {
		if !r.Loss() {
			s = append(s, r.String())
		}
	}
	return strings.Join(s, "|")
}

// orZero shows a zero where there is no series, since many exist only once
// something went wrong. label names what the series are distinguished by.
func orZero(expr, label string) string {
	return fmt.Sprintf(`%s or on () label_replace(vector(0), "%s", "none", "", "")`, expr, label)
}

// rate is the sum of what counters of a name grow by in a second.
func rate(by, metric, selector string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s{%s}[$__rate_interval]))", by, metric, selector)
}

func quantile(phi, by, metric, selector string) string {
	return fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s_bucket{%s}[$__rate_interval])))", phi, strings.TrimPrefix(by+", le", ", "), metric, selector)
}
