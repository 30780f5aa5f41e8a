package replay

import (
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// A record holds no payload, so that a replayed host sends other payload, with another checksum.
// That of TCP is 0 for one payload in 65,536, which is no difference. UDP without a checksum
// is one (RFC 768).
func TestHashKnowsNoPayload(t *testing.T) {
	a := frame.MustArena(1, 2048, frame.DefaultHeadroom)
	hash := func(b []byte) uint64 {
		a.SetBytes(0, b)
		var s sent
		s.add(a, 0, 1)
		return s.h
	}
	tcp, udp := wt.TCP(wire.TCPFields{SrcPort: 5000, DstPort: 80, Seq: 9}), wt.UDP(5000, 80)
	payload := wt.Payload(make([]byte, 100))
	eth, tag, ip := wt.Eth(wt.MAC(2), wt.MAC(1)), wt.VLAN(7, 0), wt.IPv4("10.0.0.1", "10.0.0.2")
	for _, c := range []struct {
		name string
		b    []byte
		sum  int // offset
		same bool
	}{
		{"TCP", wt.Frame(eth, ip, tcp, payload), wire.EthernetLen + wire.IPv4Len + 16, true},
		{"TCP with a tag", wt.Frame(eth, tag, ip, tcp, payload), wire.EthernetLen + wire.VLANLen + wire.IPv4Len + 16, true},
		{"UDP", wt.Frame(eth, ip, udp, payload), wire.EthernetLen + wire.IPv4Len + 6, false},
		{"UDP with a tag", wt.Frame(eth, tag, ip, udp, payload), wire.EthernetLen + wire.VLANLen + wire.IPv4Len + 6, false},
	} {
		be.PutUint16(c.b[c.sum:], 0x1234)
		one := hash(c.b)
		be.PutUint16(c.b[c.sum:], 0xabcd)
		c.b[len(c.b)-1]++
		if hash(c.b) != one {
			t.Errorf("%s: other payload, another hash", c.name)
		}
		be.PutUint16(c.b[c.sum:], 0)
		if same := hash(c.b) == one; same != c.same {
			t.Errorf("%s with a checksum of 0: the hash is the same: %v, want %v", c.name, same, c.same)
		}
	}
}
