package section

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Schema returns the JSON Schema (draft 2020-12) of documents that are decoded
// into one of the structs that v point to, for editors and for other programs.
// It knows what single values look like, not what they mean together. A type
// that decodes from text and has a method JSONSchema describes itself.
func Schema(title string, v ...any) []byte {
	s := schemaOf(reflect.TypeOf(v[0]), "")
	if len(v) > 1 {
		one := make([]schema, len(v))
		for i := range v {
			one[i] = schemaOf(reflect.TypeOf(v[i]), "")
		}
		s = schema{"oneOf": one}
	}
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("section: " + err.Error())
	}
	return append(out, '\n')
}

type schema = map[string]any

var describesItself = reflect.TypeFor[interface{ JSONSchema() map[string]any }]()

func schemaOf(t reflect.Type, tag reflect.StructTag) schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := schema{}
	switch {
	case t == nodeType: // whatever
	case isText(t) && t.Implements(describesItself):
		return reflect.Zero(t).Interface().(interface{ JSONSchema() map[string]any }).JSONSchema()
	case isText(t):
		s["type"] = []string{"string", "integer"}
		if words := Enum(tag); words != nil {
			s["enum"] = words
		}
	case t.Kind() == reflect.Struct:
		s["type"] = "object"
		s["additionalProperties"] = false
		props, need := schema{}, []string{}
		for _, f := range Fields(t) {
			name := f.Key
			p := schemaOf(f.Type, f.Tag)
			p["description"] = f.Tag.Get("doc")
			if def := f.Tag.Get("default"); def != "" {
				p["default"] = literal(f.Type, def)
			}
			props[name] = p
			if was := f.Tag.Get("was"); was != "" {
				old := schemaOf(f.Type, f.Tag)
				old["description"], old["deprecated"] = "Use "+name+": the next version has this key no more.", true
				props[was] = old
			}
			if f.Tag.Get("need") != "" {
				need = append(need, name)
			}
		}
		s["properties"] = props
		if len(need) > 0 {
			s["required"] = need
		}
	case t.Kind() == reflect.Slice:
		s["type"] = "array"
		s["items"] = schemaOf(t.Elem(), tag)
		if tag.Get("single") != "" {
			s = map[string]any{"anyOf": []any{s, schemaOf(t.Elem(), tag)}}
		}
	case t.Kind() == reflect.Map:
		s["type"] = "object"
		s["additionalProperties"] = schemaOf(t.Elem(), tag)
	case t.Kind() == reflect.Bool:
		s["type"] = "boolean"
	case t.Kind() == reflect.String:
		s["type"] = "string"
		if words := Enum(tag); words != nil {
			s["enum"] = words
		}
	default:
		s["type"] = "integer"
		if t.Kind() == reflect.Float64 {
			s["type"] = "number"
		}
		if lo, hi, ok := rangeOf(tag); ok {
			s["minimum"], s["maximum"] = lo, hi
		}
		if words := Enum(tag); words != nil {
			s["enum"] = literals(t, words)
		}
	}
	return s
}

func literals(t reflect.Type, words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = literal(t, w)
	}
	return out
}

// literal turns the text of a tag into the JSON value that it stands for.
func literal(t reflect.Type, text string) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if isText(t) {
		return text
	}
	switch t.Kind() {
	case reflect.Bool:
		return text == "true"
	case reflect.Int, reflect.Uint64, reflect.Float64:
		if v, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
			return v
		}
	}
	return text
}
