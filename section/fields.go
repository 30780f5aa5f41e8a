package section

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Field is a key of a struct.
type Field struct {
	Key  string
	Type reflect.Type
	Tag  reflect.StructTag

	index []int
	kind  string // of an Extra at index: its key there
}

// value returns what a struct has under the key. That of a section of an Extra
// is a pointer, nil if it is not there, which keep puts into the struct.
func (f *Field) value(v reflect.Value) reflect.Value {
	at := v.FieldByIndex(f.index)
	if f.kind == "" {
		return at
	}
	e := reflect.New(f.Type).Elem()
	if p := at.Interface().(extra).sections()[f.kind]; p != nil {
		e.Set(reflect.ValueOf(p))
	}
	return e
}

// keep is for values that were changed.
func (f *Field) keep(v, e reflect.Value) {
	if f.kind != "" && !e.IsNil() {
		v.FieldByIndex(f.index).Addr().Interface().(settable).Set(f.kind, e.Interface())
	}
}

// Kind is a section, or another value, that a place of a document may have beside its
// fields.
type Kind struct {
	Key  string
	Doc  string
	Type reflect.Type
	Tag  reflect.StructTag // besides key and doc
}

// Place says which sections there may be.
type Place interface{ Kinds() []Kind }

// Extra is a field whose sections stand as keys beside the other fields of its
// struct: those of what registered itself, which the struct does not know.
type Extra[P Place] struct {
	at map[string]any // pointers, by key
}

// Get returns a section, a pointer to the type of its Kind, nil if it is not
// there.
func (x *Extra[P]) Get(key string) any { return x.at[key] }

func (x Extra[P]) sections() map[string]any { return x.at }
func (Extra[P]) kinds() []Kind              { return (*new(P)).Kinds() }

// Set adds a section, a pointer to the type of its Kind, or replaces it. It does not
// touch the map of a document that this one is a shallow copy of.
func (x *Extra[P]) Set(key string, v any) {
	at := map[string]any{key: v}
	for k, e := range x.at {
		if k != key {
			at[k] = e
		}
	}
	x.at = at
}

type extra interface {
	sections() map[string]any
	kinds() []Kind
}

type settable interface{ Set(key string, v any) }

var extraType = reflect.TypeFor[extra]()

// layouts caches the answers of Fields, which is asked a million times for a
// document with many routes.
var layouts sync.Map // reflect.Type to []Field

// Fields returns the keys of a struct in the order of the document. Those of an
// embedded struct stand among them, without those of the same Go name outside of
// it.
func Fields(t reflect.Type) []Field {
	if fields, known := layouts.Load(t); known {
		return fields.([]Field)
	}
	var fields []Field
	for _, f := range reflect.VisibleFields(t) {
		switch {
		case f.Type.Implements(extraType):
			for _, k := range reflect.Zero(f.Type).Interface().(extra).kinds() {
				tag := reflect.StructTag(fmt.Sprintf("yaml:%q doc:%q %s", k.Key, k.Doc, k.Tag))
				fields = append(fields, Field{Key: k.Key, Type: reflect.PointerTo(k.Type), Tag: tag, index: f.Index, kind: k.Key})
			}
		case f.Tag.Get("yaml") == inline:
			for _, k := range Fields(f.Type) {
				k.index = append(slices.Clone(f.Index), k.index...)
				fields = append(fields, k)
			}
		case f.Anonymous:
			checkDefaults(t, &f)
		case f.IsExported():
			fields = append(fields, Field{Key: f.Tag.Get("yaml"), Type: f.Type, Tag: tagOf(t, &f), index: f.Index})
		}
	}
	layouts.Store(t, fields)
	return fields
}

// checkDefaults panics if the changed defaults of a struct that is embedded are of keys that
// it does not have: a mistake of the programmer, by which they would silently not apply.
func checkDefaults(t reflect.Type, f *reflect.StructField) {
	text, ok := f.Tag.Lookup("defaults")
	if !ok {
		return
	}
	for _, d := range strings.Split(text, ",") {
		key, _, _ := strings.Cut(d, "=")
		if !slices.ContainsFunc(Fields(f.Type), func(f Field) bool { return f.Key == key }) {
			panic(fmt.Sprintf("section: %v has a default for %q, which %v does not have", t, key, f.Type))
		}
	}
}

// tagOf returns the tag of a field, in which the struct that embeds it may have changed its
// default.
func tagOf(t reflect.Type, f *reflect.StructField) reflect.StructTag {
	for depth := 1; depth < len(f.Index); depth++ {
		for _, d := range strings.Split(t.FieldByIndex(f.Index[:depth]).Tag.Get("defaults"), ",") {
			if key, value, ok := strings.Cut(d, "="); ok && key == f.Tag.Get("yaml") {
				return reflect.StructTag(fmt.Sprintf("default:%q ", value)) + f.Tag
			}
		}
	}
	return f.Tag
}

// fieldOf returns the field of a key, or of one that was called so before.
func fieldOf(t reflect.Type, key string) *Field {
	fields := Fields(t)
	for i := range fields {
		if f := &fields[i]; f.Key == key || key != "" && f.Tag.Get("was") == key {
			return f
		}
	}
	return nil
}

func keysOf(t reflect.Type) []string {
	var names []string
	for _, f := range Fields(t) {
		names = append(names, f.Key)
	}
	return names
}

// inline is the tag of a field whose keys stand among those of its struct.
const inline = ",inline"

// Join returns a struct that has the keys of several, which Parts returns.
func Join(parts ...reflect.Type) reflect.Type {
	fields := make([]reflect.StructField, len(parts))
	for i, p := range parts {
		fields[i] = reflect.StructField{Name: fmt.Sprintf("Part%d", i), Type: p, Tag: reflect.StructTag(fmt.Sprintf("yaml:%q", inline))}
	}
	return reflect.StructOf(fields)
}

// Parts returns pointers to the parts of the struct, of a type that Join made, to
// which joined points.
func Parts(joined any) []any {
	v := reflect.ValueOf(joined).Elem()
	parts := make([]any, v.NumField())
	for i := range parts {
		parts[i] = v.Field(i).Addr().Interface()
	}
	return parts
}
