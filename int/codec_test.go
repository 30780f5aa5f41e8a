package inband_test

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

const giga = 1_000_000_000

// modes are the formats, with the most hops that each records.
var modes = map[inband.Mode]int{inband.HPCC: wire.HPCCSlots, inband.HPCCGrow: inband.MaxHops, inband.INTMD: inband.MaxHops, inband.INTMDUDP: inband.MaxHops}

// host puts an empty telemetry header into a data frame.
func host(c *inband.Codec, payload int, layers ...wt.Layer) []byte {
	h := make([]byte, c.HeaderLen())
	c.Init(h)
	if c.Mode() == inband.INTMDUDP {
		c.InitPort(h, 2000)
	}
	if layers == nil {
		layers = []wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2")}
	}
	l := append([]wt.Layer{wt.Eth(wt.MAC(2), wt.MAC(1))}, layers...)
	l = append(l, wt.UDP(49152, c.Mode().Port()), wt.Payload(h))
	if c.Mode() != inband.INTMDUDP {
		l = append(l, wt.BTH(wire.RCSendMiddle, 7, 99))
	}
	return wt.Frame(append(l, wt.Zeros(payload), wt.Payload([]byte{1, 2, 3, 4}))...)
}

// wireOf is a frame in an arena, on its way through stampers.
type wireOf struct {
	t testing.TB
	a *frame.Arena
	p *wire.Parser
}

func newWire(t testing.TB, b []byte) *wireOf {
	w := &wireOf{t, frame.MustArena(1, 2048, frame.DefaultHeadroom), wire.NewParser(wire.NewHasher(1, false))}
	if !w.a.SetBytes(0, b) {
		t.Fatal("the frame does not fit")
	}
	w.parse()
	return w
}

func (w *wireOf) parse() *frame.Meta {
	w.t.Helper()
	w.p.Parse(w.a, []frame.Ref{0})
	m := w.a.Meta(0)
	if m.Reason != frame.Keep || m.Flags&frame.HasINT == 0 {
		w.t.Fatalf("not a good frame with telemetry: %v, flags %x: % x", m.Reason, m.Flags, w.a.Bytes(0))
	}
	return m
}

// hop runs the frame through a switch.
func (w *wireOf) hop(s *inband.Stamper, d inband.Departure) inband.Outcome {
	w.t.Helper()
	m := w.a.Meta(0)
	out := s.Prepare(w.a, 0, 1514)
	if out == inband.Ready {
		s.Stamp(m, w.a.Bytes(0), &d)
	}
	kept := *m
	if w.parse(); kept != *m {
		w.t.Fatalf("Meta was kept as %+v, the bytes say %+v", kept, *m)
	}
	wt.Check(w.t, w.a.Bytes(0), wt.Checksums())
	return out
}

func stamper(t testing.TB, id uint32, p *inband.Profile) *inband.Stamper {
	t.Helper()
	s, err := inband.NewStamper(id, p)
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// The vectors of the path field: exclusive or of 0x123, 0x456, 0x789, counted.
func TestPathIdentifier(t *testing.T) {
	c := inband.NewCodec(inband.HPCC, nil)
	w := newWire(t, host(&c, 100))
	for i, want := range []string{"0000", "1123", "2575", "32fc"} {
		if i > 0 {
			w.hop(stamper(t, []uint32{0x123, 0x456, 0x789}[i-1], nil), inband.Departure{})
		}
		at := w.a.Meta(0).INT
		if got := hex.EncodeToString(w.a.Bytes(0)[at : at+2]); got != want {
			t.Errorf("after %d hops: %s, want %s", i, got, want)
		}
	}
}

// Records as bytes, and what they mean.
func TestRecordVectors(t *testing.T) {
	p := inband.DefaultProfile()
	for i := range p.Rates { // codes by number
		p.Rates[i] = uint64(i) * giga
	}
	for _, c := range []struct {
		d    inband.Departure
		hex  string
		want inband.Hop
	}{
		{inband.Departure{Code: 3, TS: 0xabcdef, Tx: 0x12345 * 128, Q: 0x678 * 80}, "3abcdef123450678",
			inband.Hop{Rate: 3 * giga, TS: 0xabcdef, Tx: 0x12345 * 128, Q: 0x678 * 80}},
		{inband.Departure{Code: 5, TS: 1_234_567_890, Tx: 987_654_321, Q: 43_600}, "59602d25bcd10221",
			inband.Hop{Rate: 5 * giga, TS: 0x9602d2, Tx: 376_017 * 128, Q: 545 * 80}},
		{inband.Departure{Code: 15, TS: 1<<64 - 1, Tx: 1<<64 - 1, Q: 1<<64 - 1}, "ffffffffffffffff",
			inband.Hop{Rate: 15 * giga, TS: 1<<24 - 1, Tx: (1<<20 - 1) * 128, Q: 65535 * 80}},
		{inband.Departure{}, "0000000000000000", inband.Hop{}},
	} {
		codec := inband.NewCodec(inband.HPCC, &p)
		w := newWire(t, host(&codec, 100))
		w.hop(stamper(t, 1, &p), c.d)
		at := w.a.Meta(0).INT + wire.HPCCBase
		if got := hex.EncodeToString(w.a.Bytes(0)[at : at+8]); got != c.hex {
			t.Errorf("%+v: %s, want %s", c.d, got, c.hex)
		}
		var path inband.Path
		if n, why := codec.Decode(w.a.Bytes(0)[w.a.Meta(0).INT:], &path); n != 42 || why != frame.Keep || path.N != 1 || path.Hops[0] != c.want {
			t.Errorf("%s: %d %v %+v, want %+v", c.hex, n, why, path.Hops[0], c.want)
		}
	}
}

func TestCountersWrap(t *testing.T) {
	p := inband.DefaultProfile()
	codec := inband.NewCodec(inband.HPCC, &p)
	hop := func(ts, tx uint64) *inband.Hop {
		w := newWire(t, host(&codec, 0))
		w.hop(stamper(t, 1, &p), inband.Departure{TS: ts, Tx: tx})
		var path inband.Path
		codec.Decode(w.a.Bytes(0)[w.a.Meta(0).INT:], &path)
		h := path.Hops[0]
		return &h
	}
	r := codec.Range()
	if r != (inband.Range{TS: 1 << 24, Tx: 1 << 27}) {
		t.Fatalf("range %+v", r)
	}
	before := hop(0xffff00, 0xffff0*128)
	if ns, by := r.Delta(before.TS, before.Tx, hop(0x1000100, 0x100010*128)); ns != 512 || by != 4096 {
		t.Errorf("across the wrap: %d ns, %d bytes, want 512 and 4096", ns, by)
	}
	rng := frame.NewRand(3)
	for range 1000 {
		ts, tx := rng.Uint64()>>1, rng.Uint64()>>1
		dts, dtx := uint64(rng.Uint32n(1<<24)), uint64(rng.Uint32n(1<<20))*128
		before := hop(ts, tx)
		if ns, by := r.Delta(before.TS, before.Tx, hop(ts+dts, tx+dtx)); ns != dts || by != dtx {
			t.Fatalf("from %d, %d: %d ns, %d bytes, want %d and %d", ts, tx, ns, by, dts, dtx)
		}
	}
}

// What was stamped is what is read, in every format, for paths up to the
// longest; a switch beyond that leaves the frame as it is.
func TestPathsThroughEveryFormat(t *testing.T) {
	var rates inband.RateTable
	p := inband.DefaultProfile()
	for node := range uint32(20) {
		rates.Set(node+1, uint16(node), p.Rates[1+node%15])
	}
	for mode, limit := range modes {
		codec := inband.NewCodec(mode, &p).WithRates(&rates)
		for _, ip := range []wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2"), wt.IPv6("fd00::1", "fd00::2")} {
			w := newWire(t, host(&codec, 1000, wt.VLAN(5, 1), ip))
			var want [inband.MaxHops]inband.Hop
			id := uint16(0)
			for n := 1; n <= 16; n++ {
				node, port := uint32(n), uint16(n-1)
				d := inband.Departure{Port: port, Code: uint8(1 + (n-1)%15), TS: uint64(n) << 10, Tx: uint64(n) << 12, Q: uint64(n) * 80}
				before := append([]byte{}, w.a.Bytes(0)...)
				out := w.hop(stamper(t, node, &p), d)
				m := w.a.Meta(0)
				b := w.a.Bytes(0)[m.INT:]
				var path inband.Path
				size, why := codec.Decode(b, &path)
				if size == 0 || why != frame.Keep || size != codec.EchoLen(b) {
					t.Fatalf("%v: %d hops: length %d, echo %d, %v", mode, n, size, codec.EchoLen(b), why)
				}
				if n > limit {
					if out != inband.Full {
						t.Errorf("%v: hop %d of at most %d: %v", mode, n, limit, out)
					}
					// INT-MD notes that a hop is missing.
					if flagged := mode == inband.INTMD || mode == inband.INTMDUDP; string(before) != string(w.a.Bytes(0)) != flagged && n == limit+1 {
						t.Errorf("%v: hop %d changed the frame: %v", mode, n, !flagged)
					}
					n = limit
				} else {
					want[n-1] = inband.Hop{Rate: p.Rates[d.Code], TS: d.TS, Tx: d.Tx, Q: d.Q}
					id ^= uint16(n)
					if mode == inband.INTMD || mode == inband.INTMDUDP {
						want[n-1].Node, want[n-1].Port = node, port
						id = path.ID
					}
					if out != inband.Ready {
						t.Fatalf("%v: hop %d: %v", mode, n, out)
					}
				}
				if path.N != n || path.Hops != want && string(hops(&path)) != string(hops(&inband.Path{N: n, Hops: want})) || path.ID != id {
					t.Fatalf("%v: after %d hops: %d %03x %+v\nwant %03x %+v", mode, n, path.N, path.ID, path.Hops[:path.N], id, want[:n])
				}
				if out == inband.Full {
					break
				}
			}
		}
	}
}

// hops is the valid part of a path as bytes, to compare.
func hops(p *inband.Path) (b []byte) {
	for _, h := range p.Hops[:p.N] {
		for _, x := range []uint64{uint64(h.Node), uint64(h.Port), h.Rate, h.TS, h.Tx, h.Q} {
			b = binary.BigEndian.AppendUint64(b, x)
		}
	}
	return b
}

// INT-MD's path identifier distinguishes paths that differ in a node, a port or
// their number, and cancels nothing.
func TestMDPathIdentifier(t *testing.T) {
	codec := inband.NewCodec(inband.INTMD, nil)
	read := func(nodes ...uint32) uint16 {
		w := newWire(t, host(&codec, 0))
		for _, n := range nodes {
			w.hop(stamper(t, n&0xff, nil), inband.Departure{Port: uint16(n >> 8)})
		}
		var p inband.Path
		codec.Decode(w.a.Bytes(0)[w.a.Meta(0).INT:], &p)
		return p.ID
	}
	seen := map[uint16][]uint32{}
	for _, path := range [][]uint32{{1}, {2}, {0x101}, {0x201}, {1, 2}, {1, 3}, {1, 0x102}, {1, 0x103}, {1, 2, 3}, {1, 2, 0x103}, {4, 5, 6}} {
		id := read(path...)
		if id > 0xfff || seen[id] != nil {
			t.Errorf("paths %x and %x are both %03x", path, seen[id], id)
		}
		seen[id] = path
	}
}

func TestMTUIsRespected(t *testing.T) {
	for mode := range modes {
		codec := inband.NewCodec(mode, nil)
		f := host(&codec, 0)
		w := newWire(t, host(&codec, 1514-len(f)))
		before := len(w.a.Bytes(0))
		out := w.hop(stamper(t, 1, nil), inband.Departure{})
		want := inband.TooLong
		if mode == inband.HPCC {
			want = inband.Ready // the sender reserved the room
		}
		if out != want || len(w.a.Bytes(0)) != before {
			t.Errorf("%v: %v, %d bytes of %d", mode, out, len(w.a.Bytes(0)), before)
		}
		if flag := w.a.Bytes(0)[w.a.Meta(0).INT+4] & 0x02; (mode == inband.INTMD || mode == inband.INTMDUDP) && flag == 0 {
			t.Errorf("%v: M is not set", mode)
		}
	}
}

// A chunk that is full at both ends takes no record.
func TestNoRoom(t *testing.T) {
	codec := inband.NewCodec(inband.HPCCGrow, nil)
	f := host(&codec, 256-18-90)
	a := frame.MustArena(1, 256, 0)
	f = f[:256]
	a.SetBytes(0, f)
	a.Meta(0).Wire = 1000
	wire.NewParser(wire.NewHasher(1, false)).Parse(a, []frame.Ref{0})
	if a.Meta(0).Flags&frame.HasINT == 0 {
		t.Fatal(a.Meta(0).Reason)
	}
	if out := stamper(t, 1, nil).Prepare(a, 0, 1514); out != inband.NoRoom {
		t.Errorf("%v", out)
	}
}

// Telemetry of another domain is left alone.
func TestForeignInstructions(t *testing.T) {
	codec := inband.NewCodec(inband.INTMD, nil)
	f := host(&codec, 100)
	at := 14 + 20 + 8 + 8 // instructions
	f[at] ^= 0x20
	wire.UDP(f[34:]).SetChecksum(0)
	w := newWire(t, f)
	if out := w.hop(stamper(t, 1, nil), inband.Departure{}); out != inband.Foreign {
		t.Errorf("%v", out)
	}
	var p inband.Path
	if n, why := codec.Decode(f[42:], &p); n != 0 || why == frame.Keep || p.N != 0 {
		t.Errorf("decoded: %d %v", n, why)
	}
}

func TestStamperRefuses(t *testing.T) {
	for _, id := range []uint32{0, 4096} {
		if _, err := inband.NewStamper(id, nil); err == nil {
			t.Errorf("identifier %d passed", id)
		}
	}
	if _, err := inband.NewStamper(1, &inband.Profile{}); err == nil {
		t.Error("a profile without units passed")
	}
}

// A zero UDP checksum means none and stays so; any other is corrected.
func TestUDPChecksumZeroStays(t *testing.T) {
	for mode := range modes {
		codec := inband.NewCodec(mode, nil)
		f := host(&codec, 100)
		wire.UDP(f[34:]).SetChecksum(0)
		w := newWire(t, f)
		w.hop(stamper(t, 1, nil), inband.Departure{TS: 77, Tx: 1 << 20, Q: 800})
		if c := wire.UDP(w.a.Bytes(0)[34:]).Checksum(); c != 0 {
			t.Errorf("%v: %04x", mode, c)
		}
	}
}

// The invariant CRC that the sender wrote holds at the end of the path.
func TestICRCSurvives(t *testing.T) {
	for mode := range modes {
		if mode == inband.INTMDUDP {
			continue
		}
		codec := inband.NewCodec(mode, nil)
		f := host(&codec, 100)
		m, _ := wt.Parse(f)
		wire.PutICRC(f, int(m.L3), wire.BTHOffset(&m, f))
		wire.UDP(f[m.L4:]).SetChecksum(0)
		w := newWire(t, f)
		for id := range uint32(4) {
			w.hop(stamper(t, id+1, nil), inband.Departure{TS: 12345, Tx: 1 << 20, Q: 800, Code: 5})
		}
		b := w.a.Bytes(0)
		if !wire.CheckICRC(b, int(w.a.Meta(0).L3), wire.BTHOffset(w.a.Meta(0), b)) {
			t.Errorf("%v: the CRC does not hold any more", mode)
		}
	}
}

func TestFittingHasRoomForThePath(t *testing.T) {
	longest := 0
	for m := range modes {
		c := inband.NewCodec(m, nil)
		longest = max(longest, c.HeaderLen())
	}
	if longest != wire.LongestTelemetry {
		t.Errorf("the longest header has %d bytes, and is said to have %d", longest, wire.LongestTelemetry)
	}
	for n := range inband.MaxHops + 1 {
		if m := inband.Fitting(n); modes[m] < n {
			t.Errorf("%v is to fit paths of %d switches, and records %d", m, n, modes[m])
		}
	}
	if m := inband.Fitting(wire.HPCCSlots); m != inband.HPCC {
		t.Errorf("%v for paths that the sender's records suffice for", m)
	}
	const all = "hpcc has room for 5 switches, hpcc-grow and int-md for 15"
	for _, c := range []struct {
		of       inband.Mode
		switches int
		want     string
	}{
		{inband.HPCC, 6, all}, {inband.HPCC, 17, all}, {inband.HPCCGrow, 15, all},
		{inband.HPCCGrow, 17, "hpcc-grow has room for 15 switches, the most that a format has, and the longest path has 17"},
		{inband.INTMD, 16, "int-md has room for 15 switches, the most that a format has, and the longest path has 16"},
	} {
		if got := inband.Rooms(c.of, c.switches); got != c.want {
			t.Errorf("%v, %d switches: %q, want %q", c.of, c.switches, got, c.want)
		}
	}
}
