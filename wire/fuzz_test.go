package wire_test

import (
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// FuzzParser: no panic; offsets lie inside the frame, whatever the reason; the
// short cut and the full parser agree.
func FuzzParser(f *testing.F) {
	for _, x := range formats() {
		f.Add(x.b, uint16(0))
		f.Add(x.b[:len(x.b)/2], uint16(len(x.b)-len(x.b)/2))
	}
	f.Fuzz(func(t *testing.T, b []byte, beyond uint16) {
		if len(b) <= 2048 {
			comparePaths(t, b, int(beyond))
		}
	})
}

// FuzzCodecs: what a decoder takes, its encoder gives back.
func FuzzCodecs(f *testing.F) {
	for i, c := range codecs {
		b := make([]byte, 64)
		copy(b[c.offset:], c.magic)
		f.Add(uint8(i), b)
		f.Add(uint8(i), b[:c.offset+len(c.magic)])
	}
	for _, x := range formats() {
		f.Add(uint8(0), x.b)
		f.Add(uint8(3), x.b[14:])
		f.Add(uint8(4), x.b[14:])
		f.Add(uint8(10), x.b[min(54, len(x.b)):])
	}
	f.Fuzz(func(t *testing.T, i uint8, b []byte) {
		checkCodec(t, int(i)%len(codecs), b)
	})
}

// FuzzEdits: every edit leaves a good frame good, its Meta true, and what it
// does not mean to change unchanged.
func FuzzEdits(f *testing.F) {
	for _, x := range formats() {
		f.Add(x.b, []byte{0, 1, 2, 3, 4, 5, 6, 7})
	}
	f.Fuzz(func(t *testing.T, b, ops []byte) {
		if len(b) <= 1024 && len(ops) <= 32 {
			checkEdits(t, b, ops)
		}
	})
}

// FuzzNDOptions: walking options ends, inside the bytes.
func FuzzNDOptions(f *testing.F) {
	f.Add(lladdr(wire.NDSourceLinkLayer))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		total := 0
		for o := wire.NDOptions(b); ; {
			_, body, rest, ok := o.Next()
			if !ok {
				break
			}
			total += 2 + len(body)
			o = rest
		}
		if total > len(b) || wire.NDOptions(b).Valid() != (total == len(b)) {
			t.Errorf("walked %d of %d bytes", total, len(b))
		}
		wire.NDOptions(b).LinkLayer(wire.NDTargetLinkLayer)
	})
}

// checkEdits does the edits ops to the frame b and compares the Meta that they
// keep with what the parser says of the bytes.
func checkEdits(t testing.TB, b, ops []byte) {
	t.Helper()
	a := frame.MustArena(1, 2048, 256)
	p := wire.NewParser(wire.NewHasher(5, false))
	a.SetBytes(0, b)
	p.Parse(a, []frame.Ref{0})
	m := a.Meta(0)
	if m.Reason != frame.Keep || m.Flags&frame.IsMACControl != 0 {
		return
	}
	for _, op := range ops {
		arg := op >> 3
		behind := m.L3 - wire.EthernetLen
		if wire.SlackAt(m, a.Bytes(0)) != nil {
			behind -= wire.NSHLen
		}
		tags := int(behind) / wire.VLANLen
		switch op & 7 {
		case 0:
			wire.SetDSCP(a, 0, arg)
		case 1:
			was := m.Flags & (frame.IsECT | frame.IsCE)
			if wire.MarkCE(a, 0) != (was != 0) {
				t.Errorf("MarkCE on flags %x", was)
			}
		case 2:
			if ttl := m.TTL; wire.DecTTL(a.Meta(0), a.Bytes(0)) != (ttl > 1) {
				t.Errorf("DecTTL on TTL %d", ttl)
			}
		case 3:
			// The hash of what is not IP covers the addresses: leave those.
			if m.Flags&(frame.HasIPv4|frame.HasIPv6) != 0 {
				wire.RewriteMACs(a, 0, wt.MAC(uint16(arg)), wt.MAC(9))
			}
		case 4:
			// A tag before 0x8808 makes it no MAC control frame; two are the limit.
			if tags < 2 && m.EtherType != wire.EtherTypeMACControl && !wire.PushVLAN(a, 0, wire.EtherTypeVLAN, uint16(arg)<<8) {
				t.Error("no headroom")
			}
		case 5:
			if m.EtherType != wire.EtherTypeMACControl && wire.PopVLAN(a, 0) != (tags > 0) {
				t.Errorf("PopVLAN with %d tags", tags)
			}
		case 6:
			wire.SetPCP(a, 0, arg)
		case 7:
			wire.SetTCI(a, 0, uint16(arg)<<3)
		}
		kept := *m
		p.Parse(a, []frame.Ref{0})
		if kept != *m {
			t.Fatalf("edit %d: kept and parsed Meta differ:\n%+v\n%+v", op&7, kept, *m)
		}
	}
}
