package telemetry_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"reflect"
	"runtime"
	"strings"
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

// A hello has so many switches and no more, however few bytes they take.
func TestHelloIsBounded(t *testing.T) {
	many := hello
	for i := len(many.Nodes); i < 4096; i++ {
		many.Nodes = append(many.Nodes, telemetry.Node{ID: uint16(i), Workers: 1})
	}
	var b bytes.Buffer
	if err := many.Write(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := telemetry.ReadHello(&b); err == nil || !strings.Contains(err.Error(), "more than 4095 nodes") {
		t.Error(err)
	}
	text := []byte(`{"version":1,"name":"a","boot":1,"nodes":[` + strings.Repeat("{},", 300_000) + `{}]}`)
	wire := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := telemetry.ReadHello(bytes.NewReader(wire)); err == nil {
		t.Error("it is taken")
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes are read with %d bytes of memory", len(text), n)
	}
	size, err := telemetry.HelloSize(bufio.NewReader(bytes.NewReader(wire)))
	if err != nil || size != len(wire) {
		t.Errorf("%d bytes of %d, %v", size, len(wire), err)
	}
}
