// Package controltest compares what a daemon answered with what the replay of its record answers.
package controltest

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"gswitch/replay"
)

// Answers calls each with every view that the client of an API has: all that can be listed or
// got, by the names of the calls in order, and what asks for it. fill completes a request, and
// without has the fields, by the names of the calls, that are left out of the answers.
func Answers(t *testing.T, client any, without map[string][]string, fill func(name string, request any), each func(name string, ask func() proto.Message)) {
	t.Helper()
	c := reflect.ValueOf(client)
	for i := range c.NumMethod() {
		name := c.Type().Method(i).Name
		if !strings.HasPrefix(name, "List") && !strings.HasPrefix(name, "Get") {
			continue
		}
		in := reflect.New(c.Method(i).Type().In(1).Elem())
		fill(name, in.Interface())
		each(name, func() proto.Message {
			t.Helper()
			out := c.Method(i).Call([]reflect.Value{reflect.ValueOf(t.Context()), in})
			if err, failed := out[1].Interface().(error); failed {
				t.Fatalf("%s: %v", name, err)
			}
			m := out[0].Interface().(proto.Message)
			strip(m.ProtoReflect(), without[name])
			return m
		})
	}
}

// Player opens the record in a file for its replay.
func Player(t *testing.T, file string, build replay.Build) *replay.Player {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	in, err := replay.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.NewPlayer(in, build)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// strip removes fields from a message, and from those in its lists.
func strip(m protoreflect.Message, fields []string) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case slices.Contains(fields, string(f.Name())):
			m.Clear(f)
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				strip(v.List().Get(i).Message(), fields)
			}
		}
		return true
	})
}

// Amid says where a message is not that of an instant between those of two others, "" if it is:
// numbers that grow or shrink with time alone lie between theirs, all else is the same in both.
// What it says begins with at.
func Amid(at string, m, first, last proto.Message) string {
	return amid(at, m.ProtoReflect(), first.ProtoReflect(), last.ProtoReflect())
}

func amid(at string, m, first, last protoreflect.Message) string {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		here := at + "." + string(f.Name())
		v, a, b := m.Get(f), first.Get(f), last.Get(f)
		if f.IsList() {
			if v.List().Len() != a.List().Len() || v.List().Len() != b.List().Len() {
				return fmt.Sprintf("%s has %d entries, in the replay %d and %d", here, v.List().Len(), a.List().Len(), b.List().Len())
			}
			for k := range v.List().Len() {
				if bad := amidValue(fmt.Sprintf("%s[%d]", here, k), f, v.List().Get(k), a.List().Get(k), b.List().Get(k)); bad != "" {
					return bad
				}
			}
			continue
		}
		if m.Has(f) != first.Has(f) && m.Has(f) != last.Has(f) {
			return here + " is in one of them only"
		}
		if bad := amidValue(here, f, v, a, b); bad != "" {
			return bad
		}
	}
	return ""
}

func amidValue(at string, f protoreflect.FieldDescriptor, v, a, b protoreflect.Value) string {
	is := false
	switch x := v.Interface().(type) {
	case protoreflect.Message:
		if !x.IsValid() && !a.Message().IsValid() {
			return ""
		}
		return amid(at, x, a.Message(), b.Message())
	case float64:
		is = min(a.Float(), b.Float()) <= x && x <= max(a.Float(), b.Float())
	case uint64:
		is = min(a.Uint(), b.Uint()) <= x && x <= max(a.Uint(), b.Uint())
	case int64:
		is = min(a.Int(), b.Int()) <= x && x <= max(a.Int(), b.Int())
	default:
		is = v.Equal(a) || v.Equal(b)
	}
	if is {
		return ""
	}
	return fmt.Sprintf("%s (%v) is %v, in the replay from %v to %v", at, f.Kind(), v, a, b)
}
