package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gswitch/section"

	"pgregory.net/rapid"
)

// TestDiffOfZeroElements: an element that is all zero is there all the same.
func TestDiffOfZeroElements(t *testing.T) {
	profile := func(queues string) *Config {
		c, err := Parse("", []byte("version: 1\nswitches: [{name: s, ports: [{interface: e, qos: dc}], qos: {dc: {queues: ["+queues+"]}}}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, tc := range []struct{ old, new, want string }{
		{"{queue: 0}", "", "- switches[s].qos.dc.queues[0]: {queue: 0}"},
		{"", "{queue: 0}", "+ switches[s].qos.dc.queues[0]: {queue: 0}"},
		{"{queue: 0}", "{queue: 1}", "- switches[s].qos.dc.queues[0]: {queue: 0}\n+ switches[s].qos.dc.queues[1]: {queue: 1}"},
	} {
		var got []string
		for _, c := range Diff(profile(tc.old), profile(tc.new)) {
			got = append(got, c.String())
		}
		if s := strings.Join(got, "\n"); s != tc.want {
			t.Errorf("[%s] to [%s]:\n%s\nwant\n%s", tc.old, tc.new, s, tc.want)
		}
	}
	a := map[string]QoS{"dc": {Queues: []Queue{{}}}}
	changes := section.Diff(&Switch{QoS: a}, &Switch{QoS: map[string]QoS{}})
	if len(changes) != 1 || changes[0].String() != "- qos.dc: {queues: [{queue: 0}]}" {
		t.Errorf("a profile with queue 0: %v", changes)
	}
}

// words and bounds are what a tag allows.
func words(tag reflect.StructTag) []string {
	return section.Enum(tag)
}

func bounds(tag reflect.StructTag) (lo, hi float64, ok bool) {
	n, err := fmt.Sscanf(tag.Get("range"), "%g,%g", &lo, &hi)
	return lo, hi, n == 2 && err == nil
}

// arbitrary sets v to what a document can hold under a key with this tag: half
// of the time nothing, else the least, the greatest or anything in between.
func arbitrary(t *rapid.T, v reflect.Value, tag reflect.StructTag, depth int) {
	if depth > 0 && rapid.Bool().Draw(t, "left out") {
		return
	}
	typ := v.Type()
	switch x := v.Addr().Interface().(type) {
	case *netip.Addr:
		*x = netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "addr")})
		return
	case *netip.Prefix:
		*x = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, 0}), rapid.IntRange(0, 32).Draw(t, "bits"))
		return
	}
	switch typ.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
		arbitrary(t, v.Elem(), tag, depth+1)
	case reflect.Struct:
		for i := range typ.NumField() {
			if typ.Field(i).IsExported() {
				arbitrary(t, v.Field(i), typ.Field(i).Tag, depth+1)
			}
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, "len")
		v.Set(reflect.MakeSlice(typ, n, n))
		for i := range n {
			arbitrary(t, v.Index(i), tag, depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			arbitrary(t, v.Index(i), "", depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(typ))
		for range rapid.IntRange(0, 2).Draw(t, "len") {
			k, e := reflect.New(typ.Key()).Elem(), reflect.New(typ.Elem()).Elem()
			arbitrary(t, k, reflect.StructTag(`range:"`+tag.Get("keys")+`"`), 0)
			arbitrary(t, e, tag, depth+1)
			v.SetMapIndex(k, e)
		}
	case reflect.String:
		list := words(tag)
		if list == nil {
			list = []string{"a", "b", "c"}
		}
		v.SetString(rapid.SampledFrom(list).Draw(t, "word"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(0, 1).Draw(t, "float"))
	default: // whole numbers
		n := uint64(rapid.IntRange(0, 3).Draw(t, "number"))
		if list := words(tag); list != nil {
			n, _ = strconv.ParseUint(rapid.SampledFrom(list).Draw(t, "word"), 10, 64)
		} else if lo, hi, ok := bounds(tag); ok {
			n = min(uint64(lo)+n, uint64(hi))
		}
		if v.CanUint() {
			v.SetUint(n)
		} else {
			v.SetInt(int64(n))
		}
	}
}

// differences checks what is true of any two documents: the same has none, and
// what comes one way goes the other way.
func differences[T any](t *rapid.T, compare func(a, b *T) []section.Change) {
	a, b := new(T), new(T)
	arbitrary(t, reflect.ValueOf(a).Elem(), "", 0)
	arbitrary(t, reflect.ValueOf(b).Elem(), "", 0)
	if same := compare(a, a); len(same) != 0 {
		t.Fatalf("differs from itself: %v", same)
	}
	there, back := compare(a, b), compare(b, a)
	turn := map[byte]byte{'+': '-', '-': '+', '~': '~'}
	var want, got []string
	for _, c := range there {
		want = append(want, section.Change{Op: turn[c.Op], Path: c.Path, Old: c.New, New: c.Old}.String())
	}
	for _, c := range back {
		got = append(got, c.String())
	}
	// Elements of one name are distinguished by nothing: no document has them.
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(slices.Compact(want), slices.Compact(got)) {
		t.Fatalf("there %v\nback %v", want, got)
	}
}

func TestDiffOfAnyTwoDocuments(t *testing.T) {
	t.Run("switch", rapid.MakeCheck(func(t *rapid.T) { differences(t, Diff) }))
	t.Run("host", rapid.MakeCheck(func(t *rapid.T) { differences(t, section.Diff[Hosts]) }))
	t.Run("transparent", rapid.MakeCheck(func(t *rapid.T) { differences(t, section.Diff[Transparent]) }))
}
