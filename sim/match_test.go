package sim

import (
	"testing"

	"github.com/gswitch/gswitch/frame"
)

// Whatever the bytes are, matching reads none that are not there, and what
// names nothing matches all IPv4.
func FuzzFiveTuple(f *testing.F) {
	p := frame.NewPool(frame.MustArena(4, chunkSize, headroom))
	b := newHost(p, 1, 1e9, swMAC(0)).proto
	f.Add(b)
	f.Add(b[:34])
	f.Add(append(append(append([]byte(nil), b[:12]...), 0x81, 0, 0, 5), b[12:]...))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		all, one := FiveTuple{}, FiveTuple{Src: addr4(1), Dst: addr4(2), Proto: 17, SrcPort: 1, DstPort: 2}
		if one.matches(b) && !all.matches(b) {
			t.Errorf("%x is of a flow, and of none", b)
		}
	})
}
