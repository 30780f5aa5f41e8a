package telemetry_test

import (
	"bytes"
	"reflect"
	"testing"

	"gswitch/telemetry"
)

var hello = telemetry.Hello{Version: 1, Name: "leaf1", Boot: 1 << 60, Nodes: []telemetry.Node{{ID: 1, Name: "leaf1", Workers: 2}}}

func TestHello(t *testing.T) {
	var b bytes.Buffer
	if err := hello.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := bytes.Clone(b.Bytes())
	if h, err := telemetry.ReadHello(&b); err != nil || !reflect.DeepEqual(*h, hello) {
		t.Errorf("%+v, %v", h, err)
	}
	for what, change := range map[string]func(*telemetry.Hello){
		"another version": func(h *telemetry.Hello) { h.Version = 2 },
		"no name":         func(h *telemetry.Hello) { h.Name = "" },
		"no boot":         func(h *telemetry.Hello) { h.Boot = 0 },
		"no workers":      func(h *telemetry.Hello) { h.Nodes = []telemetry.Node{{ID: 1}} },
	} {
		h := hello
		change(&h)
		b.Reset()
		if err := h.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := telemetry.ReadHello(&b); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	for _, bad := range [][]byte{text[:3], text[:20], []byte("GET / HTTP/1.1\r\n\r\n")} {
		if _, err := telemetry.ReadHello(bytes.NewReader(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// A hello that is read is written and read again as the same.
func FuzzHello(f *testing.F) {
	var b bytes.Buffer
	if err := hello.Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := telemetry.ReadHello(bytes.NewReader(b))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := h.Write(&again); err != nil {
			t.Fatal(err)
		}
		if o, err := telemetry.ReadHello(&again); err != nil || !reflect.DeepEqual(o, h) {
			t.Errorf("%+v is read as %+v, %v", h, o, err)
		}
	})
}
