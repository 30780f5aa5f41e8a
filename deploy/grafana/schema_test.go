package grafana

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// published are Grafana's own types, by their names in testdata/grafana.schema.json,
// which says where they come from.
type published struct{ compiler *jsonschema.Compiler }

func newPublished(t *testing.T) published {
	t.Helper()
	f, err := os.Open("testdata/grafana.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("grafana.json", doc); err != nil {
		t.Fatal(err)
	}
	return published{c}
}

// is returns what stands against a value being of a type.
func (p published) is(kind string, v any) error {
	s, err := p.compiler.Compile("grafana.json#/definitions/" + kind)
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// check returns what Grafana's types have against a dashboard: the document, each
// panel, and what its type of panel and its queries are made of, which the type
// of the document leaves open.
func (p published) check(d map[string]any) (errs []error) {
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	note(p.is("dashboard", known(d)))
	for _, x := range d["panels"].([]any) {
		panel := x.(map[string]any)
		kind := panel["type"].(string)
		if kind == "row" {
			note(p.is("row", panel))
			continue
		}
		note(p.is("panel", panel))
		if o, ok := panel["options"]; ok {
			note(p.is(kind+".options", o))
		}
		if f, ok := panel["fieldConfig"].(map[string]any); ok {
			defaults, _ := f["defaults"].(map[string]any)
			if custom, ok := defaults["custom"]; ok {
				note(p.is(kind+".custom", custom))
			}
		}
		for _, q := range panel["targets"].([]any) {
			note(p.is("query", q))
		}
	}
	return errs
}

// known is a dashboard without what a source of data adds to the types of
// Grafana itself: to annotations of Prometheus their query and texts, to
// variables what the editor shows of their query.
func known(d map[string]any) map[string]any {
	lists := map[string][]string{"annotations": {"expr", "step", "titleFormat", "textFormat"}, "templating": {"definition"}}
	d = maps.Clone(d)
	for key, added := range lists {
		whole := maps.Clone(d[key].(map[string]any))
		list := slices.Clone(whole["list"].([]any))
		for i, x := range list {
			entry := maps.Clone(x.(map[string]any))
			for _, name := range added {
				delete(entry, name)
			}
			list[i] = entry
		}
		whole["list"], d[key] = list, whole
	}
	return d
}

// Grafana's published types take every dashboard, and know all that it says.
func TestPublishedSchema(t *testing.T) {
	types := newPublished(t)
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read := func() (d map[string]any) {
			if err := json.Unmarshal(text, &d); err != nil {
				t.Fatal(err)
			}
			return d
		}
		for _, err := range types.check(read()) {
			t.Errorf("%s: %v", file, err)
		}
		// What Grafana does not know is found, wherever it stands.
		for where, spoil := range map[string]func(d, panel map[string]any){
			"dashboard": func(d, _ map[string]any) { d["refrsh"] = "5s" },
			"panel":     func(_, p map[string]any) { p["tilte"] = "x" },
			"options":   func(_, p map[string]any) { p["options"] = map[string]any{"legnd": 1} },
			"unit": func(_, p map[string]any) {
				p["fieldConfig"].(map[string]any)["defaults"].(map[string]any)["unti"] = "s"
			},
			"query": func(_, p map[string]any) { p["targets"].([]any)[0].(map[string]any)["exp"] = "up" },
		} {
			d := read()
			for _, x := range d["panels"].([]any) {
				if p := x.(map[string]any); p["type"] != "row" {
					spoil(d, p)
					break
				}
			}
			if len(types.check(d)) == 0 {
				t.Errorf("%s: a mistake at %s is not found", file, where)
			}
		}
	}
}

// What Grafana reads at its start has only keys of its schema (its documentation,
// "Provision Grafana"), and leads to the dashboards and to the source of data.
func TestProvisioning(t *testing.T) {
	var dashboards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name                  string
			OrgID                 int `yaml:"orgId"`
			Folder, FolderUID     string
			Type                  string
			DisableDeletion       bool `yaml:"disableDeletion"`
			UpdateIntervalSeconds int  `yaml:"updateIntervalSeconds"`
			AllowUIUpdates        bool `yaml:"allowUiUpdates"`
			Options               struct{ Path string }
		}
	}
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, Type, UID, Access, URL string
			IsDefault                    bool `yaml:"isDefault"`
			Editable                     bool
			JSONData                     struct {
				HTTPMethod   string `yaml:"httpMethod"`
				TimeInterval string `yaml:"timeInterval"`
			} `yaml:"jsonData"`
		}
	}
	for file, into := range map[string]any{"provisioning/dashboards/gswitch.yaml": &dashboards, "provisioning/datasources/prometheus.yaml": &sources} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		if err := d.Decode(into); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if p := dashboards.Providers; dashboards.APIVersion != 1 || len(p) != 1 || p[0].Type != "file" || !filepath.IsAbs(p[0].Options.Path) {
		t.Errorf("%+v", dashboards)
	}
	if s := sources.Datasources; sources.APIVersion != 1 || len(s) != 1 || s[0].Type != source.Type || s[0].UID == "" || s[0].Access != "proxy" || s[0].JSONData.HTTPMethod != "POST" {
		t.Errorf("%+v", sources)
	}
}
