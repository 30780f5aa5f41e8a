package inband_test

import (
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
)

func TestProfileFor(t *testing.T) {
	const mega = 1_000_000
	for _, c := range []struct {
		min, max uint64
		ts, tx   uint8
		q        uint32
	}{
		{25 * giga, 100 * giga, 0, 7, 80},
		{100 * giga, 400 * giga, 0, 9, 320},
		{100 * giga, 200 * giga, 0, 8, 160},
		{10 * giga, 800 * giga, 0, 10, 640},
		{1 * giga, 10 * giga, 6, 7, 80},
		{100 * mega, 100 * mega, 6, 7, 80},
		{1 * mega, 10 * mega, 12, 7, 80},
		{0, 0, 0, 7, 80},
	} {
		p := inband.ProfileFor(c.min, c.max)
		if p.TSShift != c.ts || p.TxShift != c.tx || p.QUnit != c.q {
			t.Errorf("%d to %d bit/s: %+v", c.min, c.max, p)
		}
		if c.max == 0 {
			continue
		}
		// Records that are compared across a packet must be far from a wrap.
		if gap := 12000 * giga / c.min; p.Range().TS < 16*gap {
			t.Errorf("%d bit/s: %d ns of range, a packet takes %d", c.min, p.Range().TS, gap)
		}
		if wrap := p.Range().Tx * 8 * 1000 / (c.max / mega); wrap < 10_600_000 {
			t.Errorf("%d bit/s: the byte counter wraps in %d ns", c.max, wrap)
		}
		if p.Code(c.min) == 0 || p.Code(c.max) == 0 {
			t.Errorf("%d to %d bit/s: no code: %v", c.min, c.max, p.Rates)
		}
	}
}

// Rates that no table foresees get codes of their own, and what does not fit
// is unknown rather than wrong.
func TestRateCodes(t *testing.T) {
	p := inband.ProfileFor(10*giga, 12_345_678, 4*giga)
	for _, r := range []uint64{10 * giga, 12_345_678, 4 * giga} {
		if k := p.Code(r); k == 0 || p.Rates[k] != r {
			t.Errorf("%d bit/s has code %d of %v", r, k, p.Rates)
		}
	}
	if p.Code(25*giga) != 0 || p.Code(0) != 0 {
		t.Error("a rate that is not in the network has a code")
	}
	var many []uint64
	for i := range uint64(20) {
		many = append(many, 7_000_000+i)
	}
	p = inband.ProfileFor(many...)
	for i, r := range many {
		if k := p.Code(r); (k != 0) != (i < 15) || p.Rates[k] != r && k != 0 {
			t.Errorf("%d bit/s, number %d of 20, has code %d", r, i, k)
		}
	}
	std := inband.DefaultProfile()
	for k, r := range inband.StandardRates {
		if r != 0 && std.Code(r) != uint8(k) {
			t.Errorf("%d bit/s has code %d, want %d", r, std.Code(r), k)
		}
	}
}

// The layout of the authors' simulator: 3, 24, 20, 17 bits, units by the NIC.
func TestNS3Profile(t *testing.T) {
	p := inband.NS3Profile(100 * giga)
	if p.TxShift != 9 || p.QUnit != 320 || p.Code(400*giga) != 5 || p.Code(10*giga) != 0 {
		t.Fatalf("%+v", p)
	}
	codec := inband.NewCodec(inband.HPCC, &p)
	w := newWire(t, host(&codec, 10))
	d := inband.Departure{Code: p.Code(400 * giga), TS: 0xabcdef, Tx: 0xfedcb * 512, Q: 0x1ffff * 320}
	w.hop(stamper(t, 1, &p), d)
	var path inband.Path
	codec.Decode(w.a.Bytes(0)[42:], &path)
	if want := (inband.Hop{Rate: 400 * giga, TS: d.TS, Tx: d.Tx, Q: d.Q}); path.Hops[0] != want {
		t.Errorf("%+v, want %+v", path.Hops[0], want)
	}
	w = newWire(t, host(&codec, 10))
	w.hop(stamper(t, 1, &p), inband.Departure{Q: 1 << 40})
	if codec.Decode(w.a.Bytes(0)[42:], &path); path.Hops[0].Q != p.MaxQ() || p.MaxQ() != 0x1ffff*320 {
		t.Errorf("the queue does not saturate: %d", path.Hops[0].Q)
	}
}

// Every value is read back as it was written, rounded down to the unit.
func TestRecordsRoundDown(t *testing.T) {
	rng := frame.NewRand(9)
	for _, p := range []inband.Profile{inband.DefaultProfile(), inband.ScaledProfile(400 * giga), inband.NS3Profile(100 * giga), inband.ProfileFor(1_000_000, 10_000_000)} {
		codec := inband.NewCodec(inband.HPCC, &p)
		r := codec.Range()
		for range 300 {
			d := inband.Departure{TS: rng.Uint64() >> (rng.Uint32n(64)), Tx: rng.Uint64() >> rng.Uint32n(64), Q: rng.Uint64() >> rng.Uint32n(64)}
			w := newWire(t, host(&codec, 0))
			w.hop(stamper(t, 1, &p), d)
			var path inband.Path
			codec.Decode(w.a.Bytes(0)[42:], &path)
			unit := uint64(p.QUnit)
			want := inband.Hop{TS: d.TS % r.TS >> p.TSShift << p.TSShift, Tx: d.Tx % r.Tx >> p.TxShift << p.TxShift, Q: min(d.Q/unit*unit, p.MaxQ())}
			if path.Hops[0] != want {
				t.Fatalf("%s: %+v became %+v, want %+v", p.Name, d, path.Hops[0], want)
			}
		}
	}
}

func TestRateTable(t *testing.T) {
	var none *inband.RateTable
	if none.Rate(1, 1) != 0 {
		t.Error("no table knows a rate")
	}
	var tab inband.RateTable
	if tab.Rate(0, 0) != 0 {
		t.Error("an empty table knows a rate")
	}
	for node := range uint32(300) {
		for port := range uint16(10) {
			tab.Set(node, port, uint64(node)<<16|uint64(port)|1<<40)
			tab.Set(node, port, uint64(node)<<16|uint64(port))
		}
	}
	for node := range uint32(310) {
		for port := range uint16(11) {
			want := uint64(node)<<16 | uint64(port)
			if node >= 300 || port >= 10 {
				want = 0
			}
			if got := tab.Rate(node, port); got != want {
				t.Fatalf("rate of %d.%d is %d, want %d", node, port, got, want)
			}
		}
	}
}
