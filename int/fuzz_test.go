package inband_test

import (
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/wire"
)

// header returns the telemetry of a frame after n hops.
func header(t testing.TB, mode inband.Mode, n int) []byte {
	codec := inband.NewCodec(mode, nil)
	w := newWire(t, host(&codec, 64))
	for i := range n {
		w.hop(stamper(t, uint32(i+1), nil), inband.Departure{Port: uint16(i), Code: 5, TS: 1 << 30, Tx: 1 << 31, Q: 4000})
	}
	at := w.a.Meta(0).INT
	return append([]byte{}, w.a.Bytes(0)[at:]...)
}

// FuzzDecode: no panic; what is good has the length that the parser and the
// echo give it, and decodes alike when only that much is there.
func FuzzDecode(f *testing.F) {
	for mode := range modes {
		for _, n := range []int{0, 1, 4, 5} {
			f.Add(uint8(mode), header(f, mode, n))
		}
	}
	f.Fuzz(func(t *testing.T, m uint8, b []byte) {
		codec := inband.NewCodec(inband.Mode(m%6), nil)
		var p, q inband.Path
		n, why := codec.Decode(b, &p)
		switch {
		case why != frame.Keep && (n != 0 || p.N != 0):
			t.Errorf("%v with %d bytes and %d hops", why, n, p.N)
		case n < 0 || n > len(b) || p.N < 0 || p.N > inband.MaxHops || p.ID > 0xfff:
			t.Errorf("%d bytes, %d hops, path %x", n, p.N, p.ID)
		case why == frame.Keep && codec.EchoLen(b) != n:
			t.Errorf("%d bytes, %d to echo", n, codec.EchoLen(b))
		}
		if why == frame.Keep {
			if k, again := codec.DecodeEcho(b[:n], &q); k != n || again != frame.Keep || q.ID != p.ID || string(hops(&p)) != string(hops(&q)) {
				t.Errorf("the echo differs: %d %v", k, again)
			}
		}
	})
}

// FuzzStamp: whatever frame the parser takes for one with telemetry, a switch
// leaves it good, and one hop longer or as long as it was.
func FuzzStamp(f *testing.F) {
	for mode := range modes {
		codec := inband.NewCodec(mode, nil)
		f.Add(host(&codec, 40), uint32(7))
	}
	f.Fuzz(func(t *testing.T, b []byte, id uint32) {
		if len(b) > 1024 {
			return
		}
		a := frame.MustArena(1, 2048, 256)
		p := wire.NewParser(wire.NewHasher(1, false))
		a.SetBytes(0, b)
		p.Parse(a, []frame.Ref{0})
		m := a.Meta(0)
		if m.Reason != frame.Keep || m.Flags&frame.HasINT == 0 {
			return
		}
		var before, after inband.Path
		codec := inband.NewCodec(inband.None, nil)
		for mode := range modes {
			if mode.Port() == m.DstPort {
				codec = inband.NewCodec(mode, nil)
			}
		}
		codec.Decode(a.Bytes(0)[m.INT:], &before)
		s := stamper(t, 1+id%inband.MaxID, nil)
		out := s.Prepare(a, 0, 1514)
		if out == inband.Ready {
			s.Stamp(m, a.Bytes(0), &inband.Departure{TS: 1, Tx: 2, Q: 3})
		}
		p.Parse(a, []frame.Ref{0})
		if m.Reason != frame.Keep || m.Flags&frame.HasINT == 0 {
			t.Fatalf("%v after %v", m.Reason, out)
		}
		if codec.Decode(a.Bytes(0)[m.INT:], &after); out == inband.Ready && after.N != before.N+1 || out != inband.Ready && after.N != before.N {
			t.Errorf("%v: %d hops became %d", out, before.N, after.N)
		}
	})
}

func TestCodecAllocatesNothing(t *testing.T) {
	for mode := range modes {
		codec := inband.NewCodec(mode, nil)
		b := header(t, mode, 4)
		w := newWire(t, host(&codec, 64))
		w.a.Meta(0)
		f := append([]byte{}, w.a.Bytes(0)...)
		s := stamper(t, 5, nil)
		var p inband.Path
		v := []frame.Ref{0}
		if n := testing.AllocsPerRun(100, func() {
			codec.Init(b[:codec.HeaderLen()])
			codec.Decode(b, &p)
			codec.EchoLen(b)
			w.a.SetBytes(0, f)
			w.p.Parse(w.a, v)
			s.Prepare(w.a, 0, 1514)
			s.Stamp(w.a.Meta(0), w.a.Bytes(0), &inband.Departure{TS: 1, Tx: 2, Q: 3})
		}); n != 0 {
			t.Errorf("%v: %v allocations", mode, n)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, mode := range []inband.Mode{inband.HPCC, inband.HPCCGrow, inband.INTMD} {
		b.Run(mode.String(), func(b *testing.B) {
			codec := inband.NewCodec(mode, nil)
			h := header(b, mode, 4)
			var p inband.Path
			b.ReportAllocs()
			for b.Loop() {
				codec.Decode(h, &p)
			}
		})
	}
}

func BenchmarkStamp(b *testing.B) {
	for _, mode := range []inband.Mode{inband.HPCC, inband.HPCCGrow, inband.INTMD} {
		b.Run(mode.String(), func(b *testing.B) {
			codec := inband.NewCodec(mode, nil)
			f := host(&codec, 1000)
			wire.UDP(f[34:]).SetChecksum(0)
			w := newWire(b, f)
			s, m, v := stamper(b, 5, nil), w.a.Meta(0), []frame.Ref{0}
			d := inband.Departure{TS: 1, Tx: 2, Q: 3}
			b.ReportAllocs()
			for b.Loop() {
				w.a.Adopt(256, len(f)) // as it arrived
				copy(w.a.Bytes(0)[:100], f)
				w.p.Parse(w.a, v)
				s.Prepare(w.a, 0, 1514)
				s.Stamp(m, w.a.Bytes(0), &d)
			}
		})
	}
}
