package scenario

import (
	"encoding"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"gswitch/fabric"
	"gswitch/fabric/measure"
	"gswitch/fabric/workload"
	"gswitch/section"
	"gswitch/units"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/SCENARIOS.md")

const (
	page    = "../../docs/SCENARIOS.md"
	example = "../../scenarios/dumbbell.yaml"
)

// block is a part of the page that follows from the code: between a line
// <!-- keys hosts --> and a line <!-- end -->.
var block = regexp.MustCompile(`(?ms)^<!-- ([a-z]+)(?: ([a-z0-9_.]+))? -->\n(.*?)^<!-- end -->\n`)

// The tables of the page say what the types say, and every section has one.
func TestPageIsComplete(t *testing.T) {
	before, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]reflect.Type{}
	collect(sections, "", reflect.TypeFor[Document]())
	missing := map[string]bool{}
	for path := range sections {
		missing["keys "+path] = true
	}
	for _, other := range []string{"kinds ", "faults ", "values ", "units ", "generators ", "sizes ", "example "} {
		missing[other] = true
	}
	after := block.ReplaceAllStringFunc(string(before), func(text string) string {
		m := block.FindStringSubmatch(text)
		name := m[1] + " " + m[2]
		if !missing[name] {
			t.Errorf("%s: block %q stands for nothing, or twice", page, name)
		}
		delete(missing, name)
		first, _, _ := strings.Cut(text, "\n")
		return first + "\n" + content(t, m[1], sections[m[2]]) + "<!-- end -->\n"
	})
	for name := range missing {
		t.Errorf("%s has no block <!-- %s -->", page, strings.TrimSpace(name))
	}
	if after == string(before) {
		return
	}
	if !*update {
		t.Fatalf("%s does not say what the code says; go test ./fabric/scenario -update rewrites its tables", page)
	}
	if err := os.WriteFile(page, []byte(after), 0o666); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, kind string, of reflect.Type) string {
	var b strings.Builder
	switch kind {
	case "keys":
		b.WriteString("| Key | Value | Default | Meaning |\n|---|---|---|---|\n")
		for _, f := range section.Fields(of) {
			b.WriteString(keyRow(f))
		}
	case "kinds":
		b.WriteString("| Kind | Keys |\n|---|---|\n")
		for _, k := range enum[Entry]("Kind") {
			fmt.Fprintf(&b, "| `%s` | %s |\n", k, code(uses[k]))
		}
	case "faults":
		b.WriteString("| Kind | Needs | May have |\n|---|---|---|\n")
		for _, k := range enum[Fault]("Kind") {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k, code(faultUses[k].needs), code(slices.DeleteFunc(append([]string{"start", "stop"}, faultUses[k].may...), func(s string) bool { return slices.Contains(faultUses[k].needs, s) })))
		}
	case "values":
		valueTable(&b)
	case "units":
		names := slices.Concat([]string{"%"}, units.Time.Names(), units.Bytes.Names(), units.Bits.Names())
		b.WriteString(folded(code(names)) + "\n")
	case "generators":
		for _, g := range fabric.Generators() {
			b.WriteString("    " + g + "\n")
		}
	case "sizes":
		b.WriteString(code(workload.Names()) + "\n")
	case "example":
		data, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("```yaml\n" + string(data) + "```\n")
	}
	return b.String()
}

// collect finds the sections below a type, each by the first path that leads
// to it.
// folded breaks a list into lines of 120 characters at most.
func folded(list string) string {
	var b strings.Builder
	n := 0
	for i, x := range strings.Split(list, ", ") {
		switch size := len(x) + 2; {
		case i == 0:
			n = size
		case n+size > 119:
			b.WriteString(",\n")
			n = size
		default:
			b.WriteString(", ")
			n += size
		}
		b.WriteString(x)
	}
	return b.String()
}

func collect(into map[string]reflect.Type, path string, t reflect.Type) {
	for _, known := range into {
		if known == t {
			return
		}
	}
	name := path
	if name == "" {
		name = "document"
	}
	into[name] = t
	for _, f := range section.Fields(t) {
		if s := sectionOf(f.Type); s != nil {
			collect(into, strings.TrimPrefix(path+"."+f.Key, "."), s)
		}
	}
}

// sectionOf returns the struct that a type is, points to or has elements of.
func sectionOf(t reflect.Type) reflect.Type {
	if t == reflect.TypeFor[yaml.Node]() || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return t
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return sectionOf(t.Elem())
	}
	return nil
}

func keyRow(f section.Field) string {
	def := f.Tag.Get("default")
	switch {
	case f.Tag.Get("need") != "":
		def = "must be given"
	case def != "":
		def = "`" + def + "`"
	case f.Type.Kind() == reflect.Bool:
		def = "`false`"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", f.Key, valueOf(f.Type, f.Tag), def, strings.ReplaceAll(f.Tag.Get("doc"), "|", "\\|"))
}

// valueOf says what a key takes.
func valueOf(t reflect.Type, tag reflect.StructTag) string {
	if words := section.Enum(tag); words != nil {
		return code(words)
	}
	bounds := ""
	if low, high, ok := strings.Cut(tag.Get("range"), ","); ok {
		bounds = " " + low + " to " + high
		if low == high {
			bounds = " " + low
		}
	}
	switch t {
	case reflect.TypeFor[units.Duration]():
		return "duration"
	case reflect.TypeFor[units.Size]():
		return "size"
	case reflect.TypeFor[units.Rate]():
		return "rate"
	case reflect.TypeFor[Params]():
		return "names and values"
	case reflect.TypeFor[yaml.Node]():
		return "value"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return valueOf(t.Elem(), tag)
	case reflect.Struct:
		return "keys"
	case reflect.Slice:
		return "list of " + plural.Replace(valueOf(t.Elem(), tag))
	case reflect.Map:
		return "names, each with " + valueOf(t.Elem(), tag)
	case reflect.Bool:
		return "`true`, `false`"
	case reflect.Float64:
		return "number" + bounds
	case reflect.Int, reflect.Uint64:
		return "whole number" + bounds
	}
	return "text"
}

var plural = strings.NewReplacer("number", "numbers", "text", "texts", "size", "sizes", "value", "values")

func enum[T any](field string) []string {
	f, _ := reflect.TypeFor[T]().FieldByName(field)
	return section.Enum(f.Tag)
}

func code(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

func valueTable(b *strings.Builder) {
	b.WriteString("| Value | Run | Group | Sizes | Window | Event | Meaning |\n|---|---|---|---|---|---|---|\n")
	keys := measure.Keys()
	for i := range keys {
		k := &keys[i]
		name := k.Name
		if k.Quant {
			name += "_*"
			if k.Unit != "" {
				name += "_" + k.Unit
			}
		}
		fmt.Fprintf(b, "| `%s` |", name)
		for _, s := range []measure.Scope{measure.OfRun, measure.OfGroup, measure.OfSizes, measure.OfWindow, measure.OfEvent} {
			if k.Of&s != 0 {
				b.WriteString(" yes |")
			} else {
				b.WriteString(" |")
			}
		}
		b.WriteString(" " + k.Doc + " |\n")
	}
}

// The example of the page is a scenario, and what the page says of it is so.
func TestPageExample(t *testing.T) {
	s, err := Load(example, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Runs) != 12 || len(s.Expect) != 3 || s.Runs[0].Name != "hpcc, mode=go-back-n" {
		t.Errorf("%d runs, the first %q, %d expectations", len(s.Runs), s.Runs[0].Name, len(s.Expect))
	}
	if short, err := Load(example, Options{Short: true}); err != nil || len(short.Runs) != 12 {
		t.Errorf("the short form has %d runs: %v", len(short.Runs), err)
	}
}
