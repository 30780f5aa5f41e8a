package results

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Part is something that a system adds to runs, beside their values: a T of its own under
// a key in results.json, or in a file beside it.
type Part[T any] struct{ key string }

// NewPart registers a part with a key in results.json. Packages call it when they are
// initialized. It panics if the key is taken.
func NewPart[T any](key string) Part[T] {
	addPart(part{key: key, kind: reflect.TypeFor[T]()})
	return Part[T]{key}
}

// NewFilePart registers a part in a file of its own, whose name is its key. write writes
// the file for the runs of results.json, of which one at least has the part. read gives
// the part of a file to these runs: only LoadAll calls it.
func NewFilePart[T any](name string, write func(w io.Writer, runs []Run) error, read func(r io.Reader, runs []Run) error) Part[T] {
	addPart(part{key: name, write: write, read: read})
	return Part[T]{name}
}

// Of returns the part of a run, the zero T if it has none.
func (p Part[T]) Of(r *Run) T {
	v, _ := r.Parts[p.key].(T)
	return v
}

// Set gives a run its part.
func (p Part[T]) Set(r *Run, v T) {
	if r.Parts == nil {
		r.Parts = map[string]any{}
	}
	r.Parts[p.key] = v
}

// part is a registered one: in results.json if it has a kind, in a file if it does not.
type part struct {
	key   string
	kind  reflect.Type
	write func(w io.Writer, runs []Run) error
	read  func(r io.Reader, runs []Run) error
}

var parts []part // ordered by their keys

func addPart(p part) {
	at, dup := slices.BinarySearchFunc(parts, p.key, func(p part, key string) int { return strings.Compare(p.key, key) })
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Run]()) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		dup = dup || key == p.key
	}
	if dup || slices.Contains(saved, p.key) {
		panic(fmt.Sprintf("results: %s is there already", p.key))
	}
	parts = slices.Insert(parts, at, p)
}

// has reports whether any of the runs has the part.
func (p *part) has(runs []Run) bool {
	return slices.ContainsFunc(runs, func(r Run) bool { return r.Parts[p.key] != nil })
}

// partField names the field of the k-th part in a runLayout.
func partField(k int) string { return fmt.Sprintf("Part%d", k) }

// runLayout is a run as it stands in results.json: the fields of Run, and before its
// values the parts of systems.
var runLayout = sync.OnceValue(func() reflect.Type {
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Run]()) {
		if f.Name == "Values" {
			for k, p := range parts {
				if p.kind != nil {
					fields = append(fields, reflect.StructField{Name: partField(k), Type: p.kind, Tag: reflect.StructTag(fmt.Sprintf(`json:"%s,omitempty"`, p.key))})
				}
			}
		}
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
})

// fileLayout is results.json with such runs.
var fileLayout = sync.OnceValue(func() reflect.Type {
	fields := reflect.VisibleFields(reflect.TypeFor[File]())
	for i := range fields {
		if fields[i].Name == "Runs" {
			fields[i].Type = reflect.SliceOf(runLayout())
		}
	}
	return reflect.StructOf(fields)
})

// MarshalJSON writes a run with its parts.
func (r Run) MarshalJSON() ([]byte, error) {
	from, to := reflect.ValueOf(r), reflect.New(runLayout()).Elem()
	for _, f := range reflect.VisibleFields(from.Type()) {
		to.FieldByName(f.Name).Set(from.FieldByIndex(f.Index))
	}
	for k, p := range parts {
		if v := r.Parts[p.key]; v != nil && p.kind != nil {
			to.FieldByName(partField(k)).Set(reflect.ValueOf(v))
		}
	}
	return json.Marshal(to.Interface())
}

// UnmarshalJSON reads a run with its parts.
func (r *Run) UnmarshalJSON(b []byte) error {
	from := reflect.New(runLayout())
	if err := json.Unmarshal(b, from.Interface()); err != nil {
		return err
	}
	r.take(from.Elem())
	return nil
}

// take takes over what was read to a runLayout.
func (r *Run) take(from reflect.Value) {
	to := reflect.ValueOf(r).Elem()
	for _, f := range reflect.VisibleFields(to.Type()) {
		to.FieldByIndex(f.Index).Set(from.FieldByName(f.Name))
	}
	for k, p := range parts {
		if p.kind == nil {
			continue
		}
		if v := from.FieldByName(partField(k)); !v.IsZero() {
			if r.Parts == nil {
				r.Parts = map[string]any{}
			}
			r.Parts[p.key] = v.Interface()
		}
	}
}

// decodeFile reads results.json in one pass, so that errors say where in it they are.
func decodeFile(b []byte) (*File, error) {
	from := reflect.New(fileLayout())
	if err := json.Unmarshal(b, from.Interface()); err != nil {
		return nil, err
	}
	f := new(File)
	to := reflect.ValueOf(f).Elem()
	for _, x := range reflect.VisibleFields(to.Type()) {
		if x.Name != "Runs" {
			to.FieldByIndex(x.Index).Set(from.Elem().FieldByIndex(x.Index))
		}
	}
	runs := from.Elem().FieldByName("Runs")
	if runs.IsNil() {
		return f, nil
	}
	f.Runs = make([]Run, runs.Len())
	for i := range f.Runs {
		f.Runs[i].take(runs.Index(i))
	}
	return f, nil
}
