package section

import (
	"errors"
	"fmt"
	"reflect"
)

// Fill sets everything in the struct that v points to that is zero from the
// default tag of its field.
func Fill(v any) { fill(reflect.ValueOf(v).Elem(), "") }

// fill sets what is zero from the default of its tag.
func fill(v reflect.Value, tag reflect.StructTag) {
	t := v.Type()
	if def := tag.Get("default"); def != "" && v.IsZero() && t.Kind() != reflect.Slice {
		e := v
		if t.Kind() == reflect.Pointer {
			v.Set(reflect.New(t.Elem()))
			e = v.Elem()
		}
		if problem := setScalar(e, def, "", tag); problem != "" {
			panic(fmt.Sprintf("section: default %q: %s", def, problem))
		}
		return
	}
	switch {
	case isText(t) || v.IsZero() && t.Kind() == reflect.Pointer:
	case t.Kind() == reflect.Pointer:
		fill(v.Elem(), "")
	case t.Kind() == reflect.Struct:
		for _, f := range Fields(t) {
			e := f.value(v)
			fill(e, f.Tag)
			f.keep(v, e)
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			fill(v.Index(i), "")
		}
	case t.Kind() == reflect.Map:
		for _, k := range v.MapKeys() {
			e := deepCopy(v.MapIndex(k))
			fill(e, "")
			v.SetMapIndex(k, e)
		}
	}
}

// Set sets what v points to from the text of a scalar.
func Set(v any, text string) error {
	if problem := setScalar(reflect.ValueOf(v).Elem(), text, "", ""); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// SetKey sets a key of the struct that v points to from its text as in a
// document, or takes it away.
func SetKey(v any, key, text string, away bool) error {
	s := reflect.ValueOf(v).Elem()
	f := fieldOf(s.Type(), key)
	if f == nil {
		return fmt.Errorf("there is no key %q", key)
	}
	at := f.value(s)
	if away {
		at.SetZero()
	} else if problem := setScalar(at, text, "", f.Tag); problem != "" {
		return fmt.Errorf("%s: %s", key, problem)
	}
	return nil
}

// Keys returns the keys of the struct that v points to, in their order.
func Keys(v any) []string { return keysOf(reflect.TypeOf(v).Elem()) }
