package cli

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"gswitch/control"
	"gswitch/section"
)

// What is wrong in what was asked for ends with 2, what failed with 1.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("it failed"), ExitFailure},
		{Usage(errors.New("x")), ExitUsage},
		{fmt.Errorf("a: %w", section.Errors{{Problem: "x"}}), ExitUsage},
		{errors.Join(errors.New("x"), control.Refused(errors.New("y"))), ExitUsage},
		{errors.New("unknown command \"fly\" for \"ghost\""), ExitUsage},
		{errors.New("required flag(s) \"file\" not set"), ExitUsage},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v ends with %d, want %d", c.err, got, c.want)
		}
	}
	if got := prefixed("ghost", errors.New("a\n  b\nc")); got != "ghost: a\n  b\nghost: c" {
		t.Errorf("printed %q", got)
	}
}

func TestLossIsReported(t *testing.T) {
	var b bytes.Buffer
	captured{bytes: 9, frames: 1, dropped: 2}.report(&b, "-")
	if want := "2 frames more lost by the capture"; !bytes.HasPrefix(b.Bytes(), []byte(want)) {
		t.Errorf("a loss is shown as %q", b.String())
	}
}

// block is a pcapng block of n bytes.
func block(kind, n uint32) []byte {
	b := make([]byte, n)
	binary.LittleEndian.PutUint32(b, kind)
	binary.LittleEndian.PutUint32(b[4:], n)
	binary.LittleEndian.PutUint32(b[n-4:], n)
	return b
}

// However the stream is cut, whole blocks are written, and no packet more than
// were requested.
func TestBlocks(t *testing.T) {
	var all []byte
	for _, b := range [][]byte{block(0x0a0d0d0a, 28), block(1, 20), block(6, 32), block(6, 40), block(6, 36), block(5, 24)} {
		all = append(all, b...)
	}
	for most, want := range map[int][2]int{0: {180, 3}, 1: {80, 1}, 2: {120, 2}, 3: {156, 3}, 9: {180, 3}} {
		for cut := 1; cut <= len(all); cut++ {
			var out bytes.Buffer
			w := blockWriter{out: &out, most: most}
			for at := 0; at < len(all); at += cut {
				if err := w.write(all[at:min(len(all), at+cut)]); err != nil {
					t.Fatal(err)
				}
			}
			if got := [2]int{out.Len(), w.packets}; got != want || !bytes.HasPrefix(all, out.Bytes()) || w.written != out.Len() {
				t.Fatalf("most %d, in pieces of %d: %v, want %v", most, cut, got, want)
			}
		}
	}
	w := blockWriter{out: &bytes.Buffer{}}
	if w.write(make([]byte, 8)) == nil {
		t.Error("a block of no bytes is taken")
	}
}
