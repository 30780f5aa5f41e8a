package section

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gswitch/units"

	"go.yaml.in/yaml/v3"
)

// What a document may cost, which anybody may have written: a few megabytes of
// "{}," would be lists of millions of switches, each of some hundred bytes.
const (
	// Values beyond those that it writes out, against aliases that double with
	// every line.
	maxUnfolded = 100_000
	maxDepth    = 32
	// Characters that begin or end a value: half a million routes have three
	// million, and each may cost the parser 200 bytes.
	maxStructure = 4 << 20
	maxLists     = 256 << 20 // bytes of what lists become
	maxErrors    = 1000
	maxProblem   = 1000 // letters of one
)

func (d *Section) fail(n *yaml.Node, path, format string, args ...any) {
	if len(d.errs) == maxErrors {
		d.errs = append(d.errs, Error{File: d.file, Problem: fmt.Sprintf("these are %d errors; what follows was not looked at", maxErrors)})
	}
	if len(d.errs) > maxErrors {
		return
	}
	e := Error{File: d.file, Key: shorten(path), Problem: shorten(fmt.Sprintf(format, args...))}
	if n != nil {
		e.Line, e.Column = n.Line, n.Column
	}
	d.errs = append(d.errs, e)
}

// shorten cuts what would fill a screen, or a log.
func shorten(s string) string {
	if len(s) <= maxProblem {
		return s
	}
	return strings.ToValidUTF8(s[:maxProblem/2], "") + " ... " + strings.ToValidUTF8(s[len(s)-maxProblem/2:], "")
}

// structure counts the characters that begin or end values, at least one for
// each value of a document.
func structure(data []byte) (n int) {
	for i, c := range data {
		switch c {
		case '{', '[', ',', '\n', '\r':
			n++
		case '-', ':', '?':
			if i+1 == len(data) || data[i+1] == ' ' || data[i+1] == '\n' || data[i+1] == '\t' || data[i+1] == '\r' {
				n++
			}
		}
	}
	return n
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

func (d *Section) parse(data []byte) *yaml.Node {
	if n := structure(data); n > maxStructure {
		d.fail(nil, "", "the document has %d values or more, %d are possible; divide it", n, maxStructure)
		return nil
	}
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if err.Error() == "EOF" {
			d.fail(&yaml.Node{Line: 1, Column: 1}, "", "the document is empty; the shortest has version, switches and ports")
			return nil
		}
		d.syntax(err, data)
		return nil
	}
	if err := dec.Decode(&second); err == nil {
		d.fail(&second, "", "a second document follows; one file holds one document")
		return nil
	} else if err.Error() != "EOF" {
		d.syntax(err, data)
		return nil
	}
	return doc.Content[0]
}

func (d *Section) syntax(err error, data []byte) {
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		d.fail(nil, "", "%v", err)
		return
	}
	line, _ := strconv.Atoi(m[1])
	if at, column := tabbed(data, line); at > 0 {
		d.fail(&yaml.Node{Line: at, Column: column}, "", "a tab indents this line; YAML takes spaces only")
		return
	}
	d.fail(&yaml.Node{Line: line, Column: 1}, "", "not YAML: %s", m[2])
}

// tabbed finds the tab in the indentation that the parser stumbled over: it
// names the line of the tab, or one before.
func tabbed(data []byte, line int) (at, column int) {
	n := 0
	for text := range strings.Lines(string(data)) {
		n++
		indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		if i := strings.IndexByte(indent, '\t'); i >= 0 && n >= line-1 && n <= line+1 && strings.TrimSpace(text) != "" {
			return n, i + 1
		}
	}
	return 0, 0
}

// nodeType is that of a field that takes whatever stands there, to be decoded later.
var nodeType = reflect.TypeFor[yaml.Node]()

// value decodes n into v. tag is the struct tag that v came under.
func (d *Section) value(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag, depth int) {
	if n.Kind == yaml.AliasNode {
		d.inAlias++
		defer func() { d.inAlias-- }()
		n = n.Alias
	}
	if d.inAlias > 0 {
		d.unfolded++
	}
	if len(d.errs) > maxErrors {
		return
	}
	if d.unfolded > maxUnfolded || depth > maxDepth {
		if !d.flooded {
			d.fail(n, path, "the document unfolds to too many or too deeply nested values")
		}
		d.flooded = true
		d.refuse(path)
		return
	}
	d.at[path] = n

	t := v.Type()
	switch {
	case t == nodeType:
		v.Set(reflect.ValueOf(*n))
	case t.Kind() == reflect.Pointer:
		if n.Tag == "!!null" {
			d.failValue(n, path, "has no value; give it one or leave the key out")
			return
		}
		v.Set(reflect.New(t.Elem()))
		d.value(n, v.Elem(), path, tag, depth+1)
	case isText(t) || isScalar(t.Kind()):
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			d.failValue(n, path, "wants a single value, not %s", nodeKind(n))
			return
		}
		if problem := setScalar(v, n.Value, n.Tag, tag); problem != "" {
			d.failValue(n, path, "%s", problem)
		}
	case t.Kind() == reflect.Struct:
		d.object(n, v, path, depth)
	case t.Kind() == reflect.Slice:
		if tag.Get("single") != "" && n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
			n = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: n.Line, Column: n.Column, Content: []*yaml.Node{n}}
		}
		if n.Kind != yaml.SequenceNode {
			d.failValue(n, path, "wants a list, not %s", nodeKind(n))
			return
		}
		if d.lists += len(n.Content) * int(t.Elem().Size()); d.lists > maxLists {
			d.failValue(n, path, "has %d elements: the lists of a document may take %d MiB, and with this one they take %d", len(n.Content), maxLists>>20, d.lists>>20)
			return
		}
		v.Set(reflect.MakeSlice(t, len(n.Content), len(n.Content)))
		for i, e := range n.Content {
			d.value(e, v.Index(i), fmt.Sprintf("%s[%d]", path, i), tag, depth+1)
		}
	case t.Kind() == reflect.Map:
		d.dictionary(n, v, path, tag, depth)
	default:
		panic("section: no decoding for " + t.String())
	}
}

func (d *Section) refuse(path string) {
	if d.bad == nil {
		d.bad = map[string]bool{}
	}
	d.bad[path] = true
}

func (d *Section) failValue(n *yaml.Node, path, format string, args ...any) {
	d.refuse(path)
	d.fail(n, path, format, args...)
}

func (d *Section) object(n *yaml.Node, v reflect.Value, path string, depth int) {
	if n.Kind != yaml.MappingNode {
		d.failValue(n, path, "wants keys and values, not %s", nodeKind(n))
		return
	}
	t := v.Type()
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name, f := key.Value, fieldOf(t, key.Value)
		if f != nil {
			name = f.Key
		}
		sub := join(path, name)
		if first, twice := seen[name]; twice {
			d.fail(key, sub, "appears twice; it is first set in line %d", first)
			continue
		}
		seen[name] = key.Line
		if f == nil {
			d.unknown(key, sub, t)
			continue
		}
		e := f.value(v)
		d.value(n.Content[i+1], e, sub, f.Tag, depth+1)
		f.keep(v, e)
	}
	for _, f := range Fields(t) {
		name := f.Key
		if _, there := seen[name]; f.Tag.Get("need") != "" && !there { // its line is 0 if it is of no file
			d.refuse(join(path, name))
			d.fail(n, join(path, name), "is missing")
		}
	}
}

func (d *Section) unknown(key *yaml.Node, path string, t reflect.Type) {
	if key.Value == "<<" {
		d.fail(key, path, "merge keys are not part of this format; write the keys out")
		return
	}
	if strings.Count(key.Value, ")") > strings.Count(key.Value, "(") {
		d.fail(key, path, "is what a comma cut off: inside { } a value with a comma wants quotes, such as \"dumbbell(4, 4)\"")
		return
	}
	names := keysOf(t)
	if near := units.Nearest(key.Value, names); near != "" {
		d.fail(key, path, "unknown key; did you mean %q?", near)
		return
	}
	d.fail(key, path, "unknown key; known here are %s", strings.Join(names, ", "))
}

func (d *Section) dictionary(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag, depth int) {
	if n.Kind != yaml.MappingNode {
		d.failValue(n, path, "wants keys and values, not %s", nodeKind(n))
		return
	}
	t := v.Type()
	v.Set(reflect.MakeMapWithSize(t, len(n.Content)/2))
	lines := map[any]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		sub := join(path, key.Value)
		k := reflect.New(t.Key()).Elem()
		if problem := setScalar(k, key.Value, key.Tag, reflect.StructTag(`range:"`+tag.Get("keys")+`"`)); problem != "" {
			d.fail(key, sub, "%s", problem)
			continue
		}
		if first, twice := lines[k.Interface()]; twice {
			d.fail(key, sub, "appears twice; it is first set in line %d", first)
			continue
		}
		lines[k.Interface()] = key.Line
		e := reflect.New(t.Elem()).Elem()
		d.value(n.Content[i+1], e, sub, tag, depth+1)
		v.SetMapIndex(k, e)
	}
}

// setScalar sets v from the text of a scalar and returns what is wrong with
// it, or "". yamlTag is what YAML takes the text for.
func setScalar(v reflect.Value, text, yamlTag string, tag reflect.StructTag) string {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return describe(v.Type(), text, err)
		}
		return outOfRange(v, tag)
	}
	switch v.Kind() {
	case reflect.String:
		words := Enum(tag)
		if words != nil && !slices.Contains(words, text) {
			problem := fmt.Sprintf("%q is not one of %s", text, strings.Join(words, ", "))
			if near := units.Nearest(text, words); near != "" {
				problem += fmt.Sprintf("; did you mean %q?", near)
			}
			return problem
		}
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Sprintf("%q is neither true nor false", text)
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Uint64:
		if words := Enum(tag); words != nil && !slices.Contains(words, text) {
			return fmt.Sprintf("%q is not one of %s", text, strings.Join(words, ", "))
		}
		if v.Kind() == reflect.Uint64 {
			x, err := strconv.ParseUint(text, 0, 64)
			if err != nil {
				return fmt.Sprintf("%q is not a whole number", text)
			}
			v.SetUint(x)
			return ""
		}
		x, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Sprintf("%q is not a whole number", text)
		}
		if lo, hi, ok := rangeOf(tag); ok && (float64(x) < lo || float64(x) > hi) {
			return fmt.Sprintf("%d is not between %g and %g", x, lo, hi)
		}
		v.SetInt(x)
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || x != x {
			return fmt.Sprintf("%q is not a number", text)
		}
		if lo, hi, ok := rangeOf(tag); ok && (x < lo || x > hi) {
			return fmt.Sprintf("%v is not between %g and %g", x, lo, hi)
		}
		v.SetFloat(x)
	}
	return ""
}

// outOfRange refuses a size or a rate, in v, that is not in the range of its
// tag, with the least and the greatest.
func outOfRange(v reflect.Value, tag reflect.StructTag) string {
	lo, hi, ok := rangeOf(tag)
	if !ok || v.Kind() != reflect.Uint64 || float64(v.Uint()) >= lo && float64(v.Uint()) <= hi {
		return ""
	}
	bounds := [2]any{}
	for i, x := range [...]float64{lo, hi} {
		b := reflect.New(v.Type()).Elem()
		b.SetUint(uint64(x))
		bounds[i] = b.Interface()
	}
	return fmt.Sprintf("%v is not between %v and %v", v.Interface(), bounds[0], bounds[1])
}

// describe words an error of a type that is not ours.
func describe(t reflect.Type, text string, err error) string {
	switch t.String() {
	case "netip.Addr":
		return fmt.Sprintf("%q is not an IP address; write 10.0.0.1 or fd00::1", text)
	case "netip.Prefix":
		return fmt.Sprintf("%q is not an address with prefix length; write 10.0.0.0/24 or fd00::/64", text)
	}
	return err.Error()
}

func isScalar(k reflect.Kind) bool {
	return k == reflect.String || k == reflect.Bool || k == reflect.Int || k == reflect.Uint64 || k == reflect.Float64
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// texts caches the answers of isText, which is asked a million times for
// a document with many routes.
var texts sync.Map // reflect.Type to bool

func isText(t reflect.Type) bool {
	if t.PkgPath() == "" {
		return false // not a type with a name: it has no methods
	}
	if yes, known := texts.Load(t); known {
		return yes.(bool)
	}
	yes := reflect.PointerTo(t).Implements(textType)
	texts.Store(t, yes)
	return yes
}

func nodeKind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%q", n.Value)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Enum returns the words that a tag makes legal, nil if every word is legal.
func Enum(tag reflect.StructTag) (words []string) {
	if e := tag.Get("enum"); e != "" {
		words = strings.Split(e, ",")
	}
	if also := registered[tag.Get("registered")]; also != nil {
		for _, w := range also() {
			if !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	return words
}

// registered are the functions of Words.
var registered = map[string]func() []string{}

// Words makes the words of f legal, besides those of enum, for fields with the tag
// registered:"kind". Packages call it when they are initialized.
func Words(kind string, f func() []string) { registered[kind] = f }

func rangeOf(tag reflect.StructTag) (lo, hi float64, ok bool) {
	a, b, ok := strings.Cut(tag.Get("range"), ",")
	if !ok {
		return 0, 0, false
	}
	lo, _ = strconv.ParseFloat(a, 64)
	hi, _ = strconv.ParseFloat(b, 64)
	return lo, hi, true
}
