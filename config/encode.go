package config

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

// YAML writes the document. Keys that are left out stay left out.
func (c *Config) YAML() []byte {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(node(reflect.ValueOf(c).Elem())); err != nil {
		panic(fmt.Sprintf("config: encoding a tree of plain nodes: %v", err))
	}
	return b.Bytes()
}

// MarshalJSON writes the document with the keys and the units of its YAML.
func (c *Config) MarshalJSON() ([]byte, error) {
	var v any
	if err := node(reflect.ValueOf(c).Elem()).Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(stringKeys(v))
}

// Clone returns a deep copy.
func (c *Config) Clone() *Config {
	n := new(Config)
	reflect.ValueOf(n).Elem().Set(deepCopy(reflect.ValueOf(c).Elem()))
	return n
}

func deepCopy(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(deepCopy(v.Elem()))
	case v.Kind() == reflect.Slice && !v.IsNil():
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(deepCopy(v.Index(i)))
		}
	case v.Kind() == reflect.Map && !v.IsNil():
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for _, k := range v.MapKeys() {
			out.SetMapIndex(k, deepCopy(v.MapIndex(k)))
		}
	case v.Kind() == reflect.Struct && !isText(v.Type()):
		for i := range v.NumField() {
			out.Field(i).Set(deepCopy(v.Field(i)))
		}
	default:
		out.Set(v)
	}
	return out
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
			panic(fmt.Sprintf("config: %s: %v", t, err))
		}
		return scalar("!!str", string(text))
	case t.Kind() == reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for i := range t.NumField() {
			if f := v.Field(i); !f.IsZero() || t.Field(i).Tag.Get("need") != "" {
				n.Content = append(n.Content, scalar("!!str", t.Field(i).Tag.Get("yaml")), node(f))
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
