package vnet

import "testing"

func TestAnonymous(t *testing.T) {
	for _, c := range []struct {
		line     string
		from, to uintptr
	}{
		{"c000000000-c000800000 rw-p 00000000 00:00 0 \n", 0xc000000000, 0xc000800000},
		{"c000100000-c000900000 rw-p 00000000 00:00 0                              [anon: Go: heap]\n", 0xc000200000, 0xc000800000},
		{"c000100000-c000300000 rw-p 00000000 00:00 0 \n", 0, 0}, // no whole page
		{"c000000000-c000800000 ---p 00000000 00:00 0 \n", 0, 0}, // reserved
		{"7ffc00000000-7ffc00800000 rw-p 00000000 00:00 0                          [stack]\n", 0, 0},
		{"00400000-01400000 rw-p 00000000 fe:00 1234                              /usr/bin/x\n", 0, 0},
		{"nonsense\n", 0, 0},
		{"", 0, 0},
	} {
		if from, to, ok := anonymous(c.line); ok != (c.to != 0) || ok && (from != c.from || to != c.to) {
			t.Errorf("%q: %#x to %#x, %v; want %#x to %#x", c.line, from, to, ok, c.from, c.to)
		}
	}
}
