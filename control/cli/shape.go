package cli

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Shape says what --json prints of a message: the names of its fields, a list
// as name[], and what an object has in braces. control/api/control.proto says
// what each field is.
func Shape(m proto.Message) string {
	var b strings.Builder
	shape(&b, m.ProtoReflect().Descriptor())
	return b.String()
}

func shape(b *strings.Builder, d protoreflect.MessageDescriptor) {
	b.WriteByte('{')
	fields := d.Fields()
	for i := range fields.Len() {
		if i > 0 {
			b.WriteString(", ")
		}
		f := fields.Get(i)
		b.WriteString(string(f.Name()))
		if f.IsList() {
			b.WriteString("[]")
		}
		if k := f.Message(); k != nil && !f.IsMap() && k.FullName() != d.FullName() {
			b.WriteByte(' ')
			shape(b, k)
		}
	}
	b.WriteByte('}')
}

// wrap breaks a text into lines of at most so many columns, between words.
func wrap(text string, most int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > most:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}

// JSONHelp is the part of a verb's help about --json.
func JSONHelp(m proto.Message) string {
	return "--json prints one object, in which every field is always there and counts are numbers:\n\n" + wrap(Shape(m), columns)
}
