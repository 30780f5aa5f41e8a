package section

import (
	"fmt"
	"net/netip"
	"reflect"
)

// Named is an element of a list that knows what distinguishes it from the others, in
// place of the key that the tag id names.
type Named interface{ Identity() string }

// Unique reports elements of lists, in the document that v points to, that are
// distinguished by a key and are not different in it.
func (d *Section) Unique(v any) { d.unique(reflect.ValueOf(v).Elem(), "") }

// unique checks the lists whose elements are distinguished by a key.
func (d *Section) unique(v reflect.Value, path string) {
	t := v.Type()
	switch {
	case isText(t):
	case t.Kind() == reflect.Pointer && !v.IsNil():
		d.unique(v.Elem(), path)
	case t.Kind() == reflect.Struct:
		for _, f := range Fields(t) {
			e, sub := f.value(v), join(path, f.Key)
			if key := f.Tag.Get("id"); key != "" {
				d.uniqueIn(e, sub, key)
			}
			d.unique(e, sub)
		}
	case t.Kind() == reflect.Slice:
		for i := range v.Len() {
			if e := v.Index(i); hasLists(e) {
				d.unique(e, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	case t.Kind() == reflect.Map:
		for _, k := range v.MapKeys() {
			d.unique(v.MapIndex(k), join(path, fmt.Sprint(k.Interface())))
		}
	}
}

// hasLists reports whether there is anything in an element to look through.
func hasLists(e reflect.Value) bool {
	if e.Kind() != reflect.Struct || isText(e.Type()) {
		return false
	}
	for _, field := range Fields(e.Type()) {
		switch f := field.value(e); f.Kind() {
		case reflect.Slice, reflect.Map, reflect.Pointer:
			if !f.IsNil() {
				return true
			}
		case reflect.Struct:
			if hasLists(f) {
				return true
			}
		}
	}
	return false
}

func (d *Section) uniqueIn(list reflect.Value, path, key string) {
	seen := make(map[any]int, list.Len())
	for i := range list.Len() {
		e := list.Index(i)
		id, none := any(nil), true
		if x, ok := e.Addr().Interface().(Named); ok {
			id, none = x.Identity(), x.Identity() == ""
		} else {
			f := fieldOf(e.Type(), key).value(e)
			// Zero is a name of numbers only; other names are missing then,
			// and were missed already.
			id, none = f.Interface(), f.IsZero() && f.Kind() != reflect.Int
		}
		if none {
			continue
		}
		if first, twice := seen[id]; twice {
			d.Fail(fmt.Sprintf("%s[%d].%s", path, i, key), "%v is taken by %s[%d]", id, path, first)
			continue
		}
		seen[id] = i
	}
}

// identity is what distinguishes an element from the others of its list.
func identity(e reflect.Value, key string) string {
	if x, ok := e.Addr().Interface().(Named); ok {
		return x.Identity()
	}
	f := fieldOf(e.Type(), key).value(e)
	if f.Kind() == reflect.String {
		return f.String()
	}
	if p, ok := f.Interface().(netip.Prefix); ok && !p.IsValid() {
		return ""
	}
	if a, ok := f.Interface().(netip.Addr); ok && !a.IsValid() {
		return ""
	}
	return fmt.Sprint(f.Interface())
}
