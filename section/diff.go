package section

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
)

// Change is one difference between two documents.
type Change struct {
	Op   byte   // '+' added, '-' removed, '~' changed
	Path string // such as switches[leaf1].ports[p1].rate
	Old  string // the value before; empty for '+'
	New  string // the value after; empty for '-'
}

func (c Change) String() string {
	switch c.Op {
	case '+':
		return fmt.Sprintf("+ %s: %s", c.Path, c.New)
	case '-':
		return fmt.Sprintf("- %s: %s", c.Path, c.Old)
	}
	return fmt.Sprintf("~ %s: %s -> %s", c.Path, c.Old, c.New)
}

// Diff returns what turns the document old into new, in the order of the
// document, both with their defaults written out, so that leaving a key out and
// writing its default are the same. Elements of lists are paired by what names
// them.
func Diff[T any](old, new *T) []Change {
	var changes []Change
	diff(reflect.ValueOf(old).Elem(), reflect.ValueOf(new).Elem(), "", "", &changes)
	return changes
}

func diff(a, b reflect.Value, path, id string, out *[]Change) {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return
	}
	t := a.Type()
	switch {
	case t.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		diff(a.Elem(), b.Elem(), path, "", out)
	case isText(t) || t.Kind() != reflect.Struct && t.Kind() != reflect.Map && !isList(t):
		*out = append(*out, change(path, a, b))
	case t.Kind() == reflect.Struct:
		for _, f := range Fields(t) {
			diff(f.value(a), f.value(b), join(path, f.Key), f.Tag.Get("id"), out)
		}
	case t.Kind() == reflect.Map:
		keys := sortedKeys(a)
		for _, k := range sortedKeys(b) {
			if !a.MapIndex(k).IsValid() {
				keys = append(keys, k)
			}
		}
		for _, k := range keys {
			diffElement(a.MapIndex(k), b.MapIndex(k), join(path, fmt.Sprint(k.Interface())), "", out)
		}
	default:
		diffList(a, b, path, id, out)
	}
}

// isList reports whether t is a list whose elements are compared one by one.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && !isText(t.Elem())
}

func diffList(a, b reflect.Value, path, id string, out *[]Change) {
	if id != "" {
		a, b = trim(a, b)
	}
	left, right := elements(a, id), elements(b, id)
	order := left.names
	for _, n := range right.names {
		if _, both := left.at[n]; !both {
			order = append(slices.Clip(order), n)
		}
	}
	for _, n := range order {
		diffElement(left.at[n], right.at[n], fmt.Sprintf("%s[%s]", path, n), id, out)
	}
}

// trim takes off what two lists begin and end with alike: mostly all of it.
func trim(a, b reflect.Value) (reflect.Value, reflect.Value) {
	same := func(i, j int) bool { return reflect.DeepEqual(a.Index(i).Interface(), b.Index(j).Interface()) }
	from, n := 0, min(a.Len(), b.Len())
	for from < n && same(from, from) {
		from++
	}
	end := 0
	for end < n-from && same(a.Len()-1-end, b.Len()-1-end) {
		end++
	}
	return a.Slice(from, a.Len()-end), b.Slice(from, b.Len()-end)
}

type namedElements struct {
	names []string
	at    map[string]reflect.Value
}

func elements(list reflect.Value, id string) namedElements {
	e := namedElements{at: map[string]reflect.Value{}}
	for i := range list.Len() {
		v := list.Index(i)
		n := fmt.Sprint(i)
		if x, ok := v.Addr().Interface().(Named); ok {
			n = x.Identity()
		} else if id != "" {
			n = identity(v, id)
		}
		e.names = append(e.names, n)
		e.at[n] = v
	}
	return e
}

// diffElement compares elements of a list or a map. One that is not valid is
// not there; one that is counts, whatever it holds: the zero of its type, such
// as queue 0 of a profile with nothing else about it, is an element too.
func diffElement(a, b reflect.Value, path, id string, out *[]Change) {
	switch {
	case !a.IsValid():
		*out = append(*out, Change{Op: '+', Path: path, New: briefElement(b, id)})
	case !b.IsValid():
		*out = append(*out, Change{Op: '-', Path: path, Old: briefElement(a, id)})
	case !reflect.DeepEqual(a.Interface(), b.Interface()):
		// Map elements cannot be addressed; copies can.
		diff(deepCopy(a), deepCopy(b), path, "", out)
	}
}

func change(path string, a, b reflect.Value) Change {
	switch {
	case !isSet(a):
		return Change{Op: '+', Path: path, New: brief(b)}
	case !isSet(b):
		return Change{Op: '-', Path: path, Old: brief(a)}
	}
	return Change{Op: '~', Path: path, Old: brief(a), New: brief(b)}
}

// isSet reports whether there is a value to show. Numbers and words of our
// own are always shown: zero means something.
func isSet(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return !v.IsNil()
	case reflect.Struct, reflect.String:
		return !v.IsZero()
	}
	return true
}

// Brief writes the value that v points to in one line, without what was left out.
func Brief(v any) string { return brief(reflect.ValueOf(v).Elem()) }

func brief(v reflect.Value) string { return briefElement(v, "") }

// briefElement is brief of an element of a list, with the key that names it
// even if that is zero.
func briefElement(v reflect.Value, id string) string {
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		return briefElement(v.Elem(), id)
	}
	if isText(t) {
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	s := ""
	add := func(part string) {
		if s != "" {
			s += ", "
		}
		s += part
	}
	switch t.Kind() {
	case reflect.Struct:
		for _, f := range Fields(t) {
			if e := f.value(v); f.Key == id && isScalar(e.Kind()) || !e.IsZero() {
				add(f.Key + ": " + briefElement(e, f.Tag.Get("id")))
			}
		}
		return "{" + s + "}"
	case reflect.Slice:
		for i := range v.Len() {
			add(briefElement(v.Index(i), id))
		}
		return "[" + s + "]"
	case reflect.Map:
		for _, k := range sortedKeys(v) {
			add(fmt.Sprint(k.Interface()) + ": " + brief(v.MapIndex(k)))
		}
		return "{" + s + "}"
	}
	return fmt.Sprint(v.Interface())
}
