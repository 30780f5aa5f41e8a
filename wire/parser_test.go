package wire

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/gswitch/gswitch/frame"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// parse runs the parser over one frame in an arena of its own.
func parse(t testing.TB, b []byte) *frame.Meta {
	t.Helper()
	a := frame.MustArena(1, 4096, 256)
	if !a.SetBytes(0, b) {
		t.Fatalf("%d bytes do not fit", len(b))
	}
	NewParser(NewHasher(1, false)).Parse(a, []frame.Ref{0})
	return a.Meta(0)
}

func TestParsePlainUDP(t *testing.T) {
	m := parse(t, unhex(t, `020000000002 020000000001 0800
		4500 001c 0000 4000 4011 66cf c0a80001 08080808 04d2 0035 0008 0000`))
	if m.Reason != frame.ParseIPv4Checksum {
		t.Errorf("reason %v, want a checksum error", m.Reason)
	}
	b := unhex(t, `020000000002 020000000001 0800
		4501 001c 0000 4000 4011 0000 c0a80001 08080808 04d2 0035 0008 0000`)
	IPv4(b[14:]).UpdateChecksum()
	m = parse(t, b)
	if m.Reason != frame.Keep || m.L3 != 14 || m.L4 != 34 || m.SrcPort != 1234 || m.DstPort != 53 || m.Flags != frame.HasIPv4|frame.HasUDP|frame.IsECT {
		t.Errorf("%+v", m)
	}
}
