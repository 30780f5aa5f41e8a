package replay

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// Whatever switches and hosts write into telemetry, and into what only looks like it, is in
// the file as it was.
func TestTelemetryComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want [][]byte
		var tels []telemetry
		var slots []uint16
		var rows []byte
		byteOf := rapid.Byte()
		for range rapid.IntRange(1, 40).Draw(t, "frames") {
			b := make([]byte, rapid.IntRange(0, 150).Draw(t, "length"))
			for i := range b {
				b[i] = byteOf.Draw(t, "byte")
			}
			port := rapid.SampledFrom([]uint16{wire.HPCCPort, wire.HPCCGrowPort, wire.INTPort, wire.RoCEv2Port}).Draw(t, "port")
			if port == wire.RoCEv2Port && len(b) > 20 {
				b[0] = wire.RCAcknowledge
				if rapid.Bool().Draw(t, "md") {
					b[16], b[17] = wire.INTTypeMD<<4|wire.INTNextPort<<2, byte((len(b)-16)/4-1)
				}
			}
			f := wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(7, port), wt.Payload(b))
			h := headers{keep: min(len(f), flowBytes), l3: 14, l4: 34, sum: 40}
			tel := telemetryOf(f, &h)
			if !tel.known(h.keep) {
				t.Fatalf("%+v of %d bytes", tel, h.keep)
			}
			if tel.hops == 0 {
				continue
			}
			slot := uint16(rapid.IntRange(0, 2).Draw(t, "slot"))
			kept := bytes.Clone(f[:h.keep])
			want, tels, slots = append(want, bytes.Clone(kept)), append(tels, tel), append(slots, slot)
			at := len(rows)
			rows = tel.rows(rows, kept)
			be.PutUint16(rows[at:], slot)
			copy(f, kept) // the rest, without its fields
			want[len(want)-1] = append(want[len(want)-1], kept...)
		}
		var out, in predictor
		b, n := out.spread(nil, rows)
		from := &spreadRows{b: b, n: n}
		for i, both := range want {
			whole, rest := both[:len(both)/2], bytes.Clone(both[len(both)/2:])
			if !in.take(from, slots[i], tels[i], rest) || !bytes.Equal(rest, whole) {
				t.Fatalf("frame %d is\n%x\nit was\n%x", i, rest, whole)
			}
		}
		if len(tels) > 0 && in.take(from, 0, tels[0], make([]byte, 300)) {
			t.Error("there were more rows than were written")
		}
	})
}
