package rocc

import (
	"bytes"
	"gswitch/notice"
	"slices"
	"testing"
)

// message is a notice of either kind.
type message interface {
	Encode(b []byte, icmp uint8, quote []byte) int
	Decode(b []byte, icmp uint8) (quote []byte, err error)
}

// refuses checks that a message which is whole is not taken with any of the
// changes, nor cut off before size.
func refuses(t *testing.T, m message, whole []byte, size int, changes map[string]func(b []byte)) {
	t.Helper()
	for name, change := range changes {
		b := slices.Clone(whole)
		if change(b); func() error { _, err := m.Decode(b, notice.Type4); return err }() != ErrForeign {
			t.Errorf("wrong %s is taken", name)
		}
	}
	if _, err := m.Decode(whole[:size-1], notice.Type4); err != ErrShort {
		t.Errorf("one that is cut off: %v", err)
	}
}

// comesBack reports whether in is a message, which is what it was when it has
// been written again.
func comesBack(t *testing.T, m message, in []byte) bool {
	quote, err := m.Decode(in, notice.Type4)
	if err != nil {
		return false
	}
	out := make([]byte, len(in))
	if k := m.Encode(out, notice.Type4, quote); k != len(in) {
		t.Fatalf("%d bytes became %d", len(in), k)
	}
	in = slices.Clone(in)
	clear(in[2:4]) // the checksum
	if !bytes.Equal(in, out) {
		t.Errorf("%x became %x", in, out)
	}
	return true
}

func TestNotice(t *testing.T) {
	n := Notice{Stretch: 9, Class: 3, Port: 0x0102, Switch: 77, Fair: 272, Unit: 10_000_000, Queue: 163_154, Before: 150_000, Sequence: 9}
	b := make([]byte, 200)
	quote := []byte{0x45, 1, 2, 3}
	k := n.Encode(b, notice.Type4, quote)
	want := []byte{253, 0, 0, 0, 0x19, 3, 1, 2, 0, 0, 0, 77, 0, 0, 1, 16, 0, 0x98, 0x96, 0x80, 0, 2, 0x7d, 0x52, 0, 2, 0x49, 0xf0, 0, 0, 0, 9, 0x45, 1, 2, 3}
	if !bytes.Equal(b[:k], want) {
		t.Errorf("on the wire\n%x, want\n%x", b[:k], want)
	}
	var got Notice
	q, err := got.Decode(b[:k], notice.Type4)
	if err != nil || got != n || !bytes.Equal(q, quote) || got.Rate() != 2.72e9 || got.Point() != 77<<32|0x102<<8|3 {
		t.Errorf("%+v, quoting %x: %v", got, q, err)
	}
	refuses(t, &got, b[:k], NoticeLen, map[string]func(b []byte){"type": func(b []byte) { b[0] = 200 }, "code": func(b []byte) { b[1] = 1 }, "version": func(b []byte) { b[4] = 0x20 }, "class": func(b []byte) { b[5] = 8 },
		"rate": func(b []byte) { clear(b[12:16]) }, "unit": func(b []byte) { clear(b[16:20]) }})
}

func FuzzNotice(f *testing.F) {
	b := make([]byte, 100)
	n := Notice{Class: 3, Fair: 1, Unit: 1}
	f.Add(b[:n.Encode(b, notice.Type4, []byte{1, 2})])
	f.Add([]byte{253, 0, 0, 0, 16, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		comesBack(t, new(Notice), in)
	})
}
