package section

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// YAML writes the struct that v points to. Keys that are left out stay left out.
func YAML(v any) []byte {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(node(reflect.ValueOf(v).Elem())); err != nil {
		panic(fmt.Sprintf("section: encoding a tree of plain nodes: %v", err))
	}
	return b.Bytes()
}

// JSON writes the struct that v points to with the keys and the units of its
// YAML.
func JSON(v any) ([]byte, error) {
	var tree any
	if err := node(reflect.ValueOf(v).Elem()).Decode(&tree); err != nil {
		return nil, err
	}
	return json.Marshal(stringKeys(tree))
}

// Clone returns a deep copy of a document.
func Clone[T any](v *T) *T {
	n := *v
	unshare(reflect.ValueOf(&n).Elem())
	return &n
}

func deepCopy(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	unshare(out)
	return out
}

// unshare gives v its own copy of everything that it refers to. Lists are
// copied as a whole; there may be half a million routes.
func unshare(v reflect.Value) {
	t := v.Type()
	switch {
	case isText(t):
	case t.Kind() == reflect.Pointer && !v.IsNil():
		p := reflect.New(t.Elem())
		p.Elem().Set(v.Elem())
		unshare(p.Elem())
		v.Set(p)
	case t.Kind() == reflect.Slice && !v.IsNil():
		list := reflect.MakeSlice(t, v.Len(), v.Len())
		reflect.Copy(list, v)
		if t.Elem().Kind() == reflect.Struct {
			for i := range list.Len() {
				unshare(list.Index(i))
			}
		}
		v.Set(list)
	case t.Kind() == reflect.Map && !v.IsNil():
		m := reflect.MakeMapWithSize(t, v.Len())
		for _, k := range v.MapKeys() {
			m.SetMapIndex(k, deepCopy(v.MapIndex(k)))
		}
		v.Set(m)
	case t.Kind() == reflect.Struct:
		for _, f := range Fields(t) {
			switch e := f.value(v); e.Kind() {
			case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Struct:
				unshare(e)
				f.keep(v, e)
			}
		}
	}
}

// node turns a value into YAML, leaving out zero fields.
func node(v reflect.Value) *yaml.Node {
	t := v.Type()
	switch {
	case t.Kind() == reflect.Pointer:
		return node(v.Elem())
	case isText(t):
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			panic(fmt.Sprintf("section: %s: %v", t, err))
		}
		return scalar("!!str", string(text))
	case t.Kind() == reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range Fields(t) {
			if e := f.value(v); !e.IsZero() || f.Tag.Get("need") != "" {
				n.Content = append(n.Content, scalar("!!str", f.Key), node(e))
			}
		}
		return n
	case t.Kind() == reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if isText(t.Elem()) || isScalar(t.Elem().Kind()) {
			n.Style = yaml.FlowStyle
		}
		for i := range v.Len() {
			n.Content = append(n.Content, node(v.Index(i)))
		}
		return n
	case t.Kind() == reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if isScalar(t.Elem().Kind()) {
			n.Style = yaml.FlowStyle
		}
		for _, k := range sortedKeys(v) {
			n.Content = append(n.Content, node(k), node(v.MapIndex(k)))
		}
		return n
	case t.Kind() == reflect.String:
		return scalar("!!str", v.String())
	}
	return scalar("", fmt.Sprint(v.Interface()))
}

func scalar(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		if a.Kind() == reflect.Int {
			return cmp.Compare(a.Int(), b.Int())
		}
		return cmp.Compare(a.String(), b.String())
	})
	return keys
}

// stringKeys makes every key of a tree a string, as JSON wants.
func stringKeys(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = stringKeys(e)
		}
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[fmt.Sprint(k)] = stringKeys(e)
		}
		return m
	case []any:
		for i, e := range v {
			v[i] = stringKeys(e)
		}
	}
	return v
}
