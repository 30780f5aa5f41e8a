package section

import (
	"reflect"
	"strings"
	"testing"

	"gswitch/units"
)

// A place whose sections only those that make them know.
type place struct{}

type place2 struct {
	Queues []int `yaml:"queues" need:"yes" range:"0,7" doc:"The queues."`
}

type marks struct {
	Above units.Size `yaml:"above" default:"30KB" doc:"From where."`
	Share *float64   `yaml:"share" range:"0,1" default:"1" doc:"How many."`
}

func (place) Kinds() []Kind {
	return []Kind{
		{Key: "marks", Doc: "Marks.", Type: Join(reflect.TypeFor[place2](), reflect.TypeFor[marks]())},
		{Key: "stamps", Doc: "Stamps.", Type: reflect.TypeFor[marks]()},
	}
}

type document struct {
	Name  string       `yaml:"name" need:"yes" doc:"Name."`
	Rate  units.Rate   `yaml:"rate" default:"10Gbps" doc:"Rate."`
	Extra Extra[place] // marks, stamps
	Last  int          `yaml:"last" doc:"Last."`
}

func marksOf(d *document) *marks { return Parts(d.Extra.Get("marks"))[1].(*marks) }

func TestExtra(t *testing.T) {
	d := new(document)
	text := "name: a\nrate: 1Gbps\nmarks:\n  queues: [1, 2]\n  share: 0\nlast: 3\n"
	if err := Parse("d.yaml", []byte(text), d).Err(); err != nil {
		t.Fatal(err)
	}
	x := d.Extra.Get("marks")
	if x == nil || d.Extra.Get("stamps") != nil {
		t.Fatalf("marks are %v, stamps %v", x, d.Extra.Get("stamps"))
	}
	if p, m := Parts(x)[0].(*place2), marksOf(d); len(p.Queues) != 2 || m.Share == nil || *m.Share != 0 || m.Above != 0 {
		t.Errorf("%+v, %+v", p, m)
	}
	if got := string(YAML(d)); got != text {
		t.Errorf("written as\n%s", got)
	}
	full := Clone(d)
	Fill(full)
	if m := marksOf(full); m.Above != 30_000 || *m.Share != 0 {
		t.Errorf("filled in: %+v", m)
	}
	if marksOf(d).Above != 0 {
		t.Error("filling in a copy changed the document")
	}
	changes := Diff(d, full)
	if len(changes) != 1 || changes[0].String() != "~ marks.above: 0B -> 30kB" {
		t.Errorf("filled in, it differs by %v", changes)
	}
	if c := Diff(new(document), d); len(c) != 4 || c[2].String() != "+ marks: {queues: [1, 2], share: 0}" {
		t.Errorf("from nothing: %v", c)
	}
	if s := string(Schema("x", d)); !strings.Contains(s, `"marks"`) || !strings.Contains(s, `"30KB"`) || !strings.Contains(s, "The queues.") {
		t.Errorf("the schema is %s", s)
	}
}

func TestExtraRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\nmarcs: {}\n":                                  `d.yaml:2:1: marcs: unknown key; did you mean "marks"?`,
		"name: a\nelse: 1\n":                                    "known here are name, rate, marks, stamps, last",
		"name: a\nmarks: {share: 0.5}\n":                        "d.yaml:2:8: marks.queues: is missing",
		"name: a\nmarks: {queues: [1], share: 2}\n":             "d.yaml:2:29: marks.share: 2 is not between 0 and 1",
		"name: a\nmarks: {queues: [1], above: 3x}\n":            `marks.above: "3x" is not a size`,
		"name: a\nmarks:\n":                                     "marks: has no value",
		"name: a\nmarks: 3\n":                                   "marks: wants keys and values",
		"name: a\nmarks: {queues: [1]}\nmarks: {queues: [1]}\n": "appears twice",
	} {
		if err := Parse("d.yaml", []byte(text), new(document)).Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A key that has another name now is understood by both, and stands at the new
// one; both at once are one too many.
func TestRenamedKey(t *testing.T) {
	type renamed struct {
		Now int `yaml:"now" was:"before" range:"0,9" doc:"What it is."`
	}
	for text, want := range map[string]string{
		"before: 3\n":         "",
		"now: 3\n":            "",
		"before: 10\n":        "d.yaml:1:9: now: ",
		"before: 3\nnow: 3\n": "d.yaml:2:1: now: appears twice",
		"now: 3\nbefore: 3\n": "d.yaml:2:1: now: appears twice",
		"beforehand: 3\n":     "beforehand: unknown key",
	} {
		var v renamed
		err := Parse("d.yaml", []byte(text), &v).Err()
		if want == "" && (err != nil || v.Now != 3 || string(YAML(&v)) != "now: 3\n") {
			t.Errorf("%q: %d, %v", text, v.Now, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if s := string(Schema("x", new(renamed))); !strings.Contains(s, `"deprecated": true`) {
		t.Errorf("the schema says nothing of the old key:\n%s", s)
	}
}

// A struct that embeds another has its keys, and may give some of them another default.
func TestDefaultsOfEmbedded(t *testing.T) {
	type link struct {
		Overhead string `yaml:"overhead" enum:"ethernet,none" default:"ethernet"`
		Burst    *int   `yaml:"burst" default:"5"`
	}
	type daemon struct{ link }
	type scenario struct {
		Name string `yaml:"name" default:"a"`
		link `defaults:"overhead=none,burst=7"`
	}
	var d daemon
	var s scenario
	Fill(&d)
	Fill(&s)
	if d.Overhead != "ethernet" || *d.Burst != 5 || s.Overhead != "none" || *s.Burst != 7 || s.Name != "a" {
		t.Errorf("%+v, %+v", d, s)
	}
	for of, want := range map[reflect.Type]string{reflect.TypeFor[daemon](): "ethernet", reflect.TypeFor[scenario](): "none"} {
		if p := schemaOf(of, "")["properties"].(map[string]any)["overhead"].(map[string]any); p["default"] != want || len(p["enum"].([]string)) != 2 {
			t.Errorf("%v: %v", of, p)
		}
	}
}
