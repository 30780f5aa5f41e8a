package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// JSON encodes a message with the names of the .proto file, all of its fields, and
// numbers as numbers: the format of the API and of --json. (protojson encodes 64-bit
// numbers as strings, since JavaScript rounds beyond 2^53; counters stay far below that.)
func JSON(m proto.Message) ([]byte, error) {
	var b bytes.Buffer
	if err := writeMessage(&b, m.ProtoReflect()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writeMessage(b *bytes.Buffer, m protoreflect.Message) error {
	fields := m.Descriptor().Fields()
	b.WriteByte('{')
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.HasPresence() && !m.Has(f) {
			continue
		}
		if b.Bytes()[b.Len()-1] != '{' {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%q:", f.Name())
		if err := writeField(b, f, m.Get(f)); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writeField(b *bytes.Buffer, f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	if f.IsMap() {
		return writeMap(b, f, v.Map())
	}
	if !f.IsList() {
		return writeValue(b, f, v)
	}
	b.WriteByte('[')
	list := v.List()
	for i := range list.Len() {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeValue(b, f, list.Get(i)); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

// writeMap writes a map ordered by its keys, which JSON requires to be strings.
func writeMap(b *bytes.Buffer, f protoreflect.FieldDescriptor, m protoreflect.Map) error {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(x, y protoreflect.MapKey) int { return strings.Compare(x.String(), y.String()) })
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%q:", k.String())
		if err := writeValue(b, f.MapValue(), m.Get(k)); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writeValue(b *bytes.Buffer, f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	if f.Kind() == protoreflect.MessageKind {
		return writeMessage(b, v.Message())
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false) // no browser reads it
	if err := e.Encode(v.Interface()); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // without the newline
	return nil
}

// jsonCodec is JSON in the API. It decodes what protojson decodes.
type jsonCodec struct{}

func (jsonCodec) Name() string { return "json" }

func (jsonCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a message", v)
	}
	return JSON(m)
}

func (jsonCodec) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a message", v)
	}
	if len(data) == 0 {
		return nil // curl -X POST without a body
	}
	return protojson.Unmarshal(data, m)
}
