// Package commandtest tests the encodings of what changes nodes.
package commandtest

import (
	"reflect"
	"testing"
)

// Change is a change of a node.
type Change interface{ Encode(b []byte) []byte }

// Encoded tests that changes come back from their encodings.
func Encoded[C Change](t *testing.T, some []C, decode func([]byte) (C, error)) {
	t.Helper()
	for _, c := range some {
		b := c.Encode([]byte{99})
		back, err := decode(b[1:])
		if b[0] != 99 || err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%T %+v came back from %x as %+v, %v", c, c, b, back, err)
		}
	}
}

// Fuzz tests that whatever is decoded comes back from its own encoding.
func Fuzz[C Change](f *testing.F, some []C, decode func([]byte) (C, error)) {
	for _, c := range some {
		f.Add(c.Encode(nil))
	}
	f.Add([]byte{1, 200})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decode(b)
		if err != nil {
			return
		}
		again, err := decode(c.Encode(nil))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%x is %+v, which is encoded and comes back as %+v, %v", b, c, again, err)
		}
	})
}
