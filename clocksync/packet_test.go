package clocksync

import (
	"bytes"
	"encoding/hex"
	"hash/crc32"
	"reflect"
	"testing"

	"gswitch/wire"
)

func somePackets() []Packet {
	head := Packet{PTPFields: wire.PTPFields{Src: wire.MAC{2, 0, 0, 0, 0, 1}, Domain: 83, Clock: 0x020000fffe000001, Port: 7, Sequence: 4711, LogInterval: 0x7f,
		Time: wire.PTPTime{Seconds: 1<<40 + 5, Nanoseconds: 999_999_999}}}
	sundial := Fields{Epoch: 3, Uncertainty: 43, Depth: 5, Flags: 1, Root: 0x020000fffe00ff01, Late: 7}
	sync, req, announce, plain, answer := head, head, head, head, head
	sync.Type, sync.Correction, sync.Sundial, sync.HasSundial = wire.PTPSync, 12345<<16|0x8000, sundial, true
	req.Type = wire.PTPPdelayReq
	announce.Type, announce.Grandmaster, announce.Sundial, announce.HasSundial = wire.PTPAnnounce, 0x020000fffe00ff01, sundial, true
	plain.Type, plain.Flags = wire.PTPSync, wire.PTPTwoStep
	answer.Type, answer.RequestClock, answer.RequestPort, answer.Sundial, answer.HasSundial = wire.PTPPdelayResp, 99, 3, sundial, true
	return []Packet{sync, req, announce, plain, answer}
}

func TestPacketsKeepWhatTheySay(t *testing.T) {
	longest := 0
	for _, want := range somePackets() {
		b := make([]byte, MaxPacket)
		n := want.Encode(b)
		longest = max(longest, n)
		var got Packet
		was := bytes.Clone(b)
		if k, ok := got.Decode(b[:n]); !ok || k > n || !reflect.DeepEqual(got, want) || !bytes.Equal(b, was) {
			t.Errorf("%+v (%t), want %+v", got, ok, want)
		}
		if want.Encode(b[:n-1]) != 0 {
			t.Errorf("type %d fits into %d bytes", want.Type, n-1)
		}
		for k := range n {
			got.Decode(b[:k]) // ends
		}
		if !want.HasSundial {
			continue
		}
		tlv, _ := hex.DecodeString("80000020" + "026773000001" + "00000003" + "0000002b" + "05" + "01" + "020000fffe00ff01" + "00000007")
		if !bytes.Contains(b, tlv) {
			t.Errorf("type %d: %x has other fields than %x", want.Type, b[:n], tlv)
		}
		wire.SetPTPCorrection(b, 5<<16)
		if _, ok := got.Decode(b[:n]); !ok || got.Correction != 5<<16 {
			t.Error("a correction on the way damages the message")
		}
		for bit := 8 * 14; bit < 8*n; bit++ {
			if at := bit / 8; at >= 22 && at < 30 || at < 18 {
				continue // the correction; type, version and length have checks of their own
			}
			b[bit/8] ^= 1 << (bit % 8)
			if _, ok := got.Decode(b[:n]); ok && got.HasSundial {
				t.Errorf("type %d: bit %d flipped, and nobody sees it", want.Type, bit)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
		want.Unsealed = true
		want.Encode(b)
		if _, ok := got.Decode(b[:n]); ok {
			t.Errorf("type %d: a message without a check is taken", want.Type)
		}
	}
	if longest != MaxPacket {
		t.Errorf("the longest message has %d bytes, not %d", longest, MaxPacket)
	}
}

// A message costs what its length says: no memory, and one check.
func TestPacketsCostNothingElse(t *testing.T) {
	sync := somePackets()[0]
	b := make([]byte, 256)
	n := sync.Encode(b)
	var got Packet
	if a := testing.AllocsPerRun(100, func() { sync.Encode(b); got.Decode(b[:n]) }); a != 0 {
		t.Errorf("a message takes %v allocations", a)
	}
	const size = 36
	copy(b[n:], b[n-size:n])
	total := n - wire.EthernetLen + size
	b[wire.EthernetLen+2], b[wire.EthernetLen+3] = byte(total>>8), byte(total)
	wire.SetPTPCorrection(b, 0)
	for at := n - wire.EthernetLen - 4; at < total; at += size { // whose checks are right
		be.PutUint32(b[wire.EthernetLen+at:], crc32.ChecksumIEEE(b[wire.EthernetLen:wire.EthernetLen+at]))
	}
	if _, ok := got.Decode(b[:n+size]); ok {
		t.Error("fields that are there twice are taken")
	}
}

func FuzzPacket(f *testing.F) {
	for _, x := range somePackets() {
		b := make([]byte, MaxPacket)
		f.Add(b[:x.Encode(b)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var x, y Packet
		if _, ok := x.Decode(b); !ok {
			return
		}
		c := make([]byte, MaxPacket)
		n := x.Encode(c)
		if n == 0 {
			return // a type that is not written
		}
		if _, ok := y.Decode(c[:n]); !ok || !reflect.DeepEqual(x, y) {
			t.Fatalf("%+v becomes %+v", x, y)
		}
	})
}
