package fault

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

func addr4(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }

// udp is a frame from 10.0.0.1 port 1 to 10.0.0.2 port 2.
func udp() []byte {
	b := make([]byte, 60)
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	b[14], b[23] = 0x45, 17
	copy(b[26:], []byte{10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2})
	return b
}

func tagged(b []byte) []byte {
	return append(append(append([]byte(nil), b[:12]...), 0x81, 0, 0, 5), b[12:]...)
}

// linked is a frame with a link tag.
func linked(b []byte) []byte {
	return append(append(append([]byte(nil), b[:12]...), 0x88, 0xb6, 0x40, 1, 0, 0, 0, 9), b[12:]...)
}

func TestFiveTuple(t *testing.T) {
	for f, want := range map[FiveTuple]bool{
		{}: true, {Src: addr4(1)}: true, {Dst: addr4(1)}: false, {Proto: 6}: false, {Proto: 17, SrcPort: 1, DstPort: 2}: true, {DstPort: 1}: false,
	} {
		for _, b := range [][]byte{udp(), tagged(udp()), linked(udp()), linked(tagged(udp()))} {
			if got := f.Match()(b, nil); got != want {
				t.Errorf("%+v matches %x: %v", f, b, got)
			}
		}
	}
}

// Whatever the bytes are, matching reads none that are not there, and what
// names nothing matches all IPv4.
func FuzzFiveTuple(f *testing.F) {
	b := udp()
	f.Add(b)
	f.Add(b[:34])
	f.Add(tagged(b))
	f.Add(linked(b))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		all, one := FiveTuple{}, FiveTuple{Src: addr4(1), Dst: addr4(2), Proto: 17, SrcPort: 1, DstPort: 2}
		if one.matches(b) && !all.matches(b) {
			t.Errorf("%x is of a flow, and of none", b)
		}
	})
}
