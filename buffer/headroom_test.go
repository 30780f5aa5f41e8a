package buffer

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

// A 1 Gb/s link with frames of 1530 bytes on the wire, 0.476 us of cable and
// 5 us of transceivers, and two quanta of reaction, not counting the pause
// frame itself: 36.456 us, 4557 bytes (the example of the DeTail paper,
// SIGCOMM 2012, section 6.1).
func TestHeadroomVector(t *testing.T) {
	b := Headroom(Link{Rate: 1e9, Delay: 5476, MaxFrame: 1530, Response: 1024}, 0)
	want := Budget{Own: 1530, Control: 84, Cable: 1369, Response: 128, Peer: 1530, Trigger: 1530}
	if b != want {
		t.Fatalf("%+v", b)
	}
	skid := b.Skid() - b.Control
	if skid != 4557 || skid*8 != 36456 {
		t.Fatalf("%d bytes, %d ns", skid, skid*8)
	}
	if b.Total() != 4557+84+1530 {
		t.Fatal(b.Total())
	}
}

func TestHeadroomTerms(t *testing.T) {
	// 100 Gb/s, 300 m, 1 us reaction: 2*1500 ns of cable are 37500 bytes.
	b := Headroom(Link{Rate: 100e9, Delay: 1500, MaxFrame: 1514, Overhead: 24, Response: 1000}, 0)
	if b.Own != 1538 || b.Cable != 37500 || b.Response != 12500 || b.Trigger != 1514 || b.Rounding != 0 {
		t.Fatalf("%+v", b)
	}
	// Rounded up, and never overflowing.
	if n := inFlight(1e6, 1); n != 1 {
		t.Fatal(n)
	}
	if n := inFlight(800e9, frame.Never); n == 0 {
		t.Fatal("overflow")
	}
	if inFlight(1e9, -5) != 0 {
		t.Fatal("negative")
	}
}

// A link that is longer than any buffer needs more than any buffer, and does not
// wrap around to something small, whatever its cells.
func TestHeadroomDoesNotWrap(t *testing.T) {
	for _, d := range []frame.Time{frame.Never, frame.Never / 2, 1000 * 3600 * frame.Second, 10 * frame.Second} {
		for _, cell := range []uint32{0, 208, 1 << 16} {
			for _, l := range []Link{{Rate: 800e9, Delay: d, MaxFrame: 1 << 20, Overhead: 24}, {Rate: 800e9, Response: d, MaxFrame: 64}} {
				if b := Headroom(l, cell); b.Total() <= maxSize || b.Total() > 1<<60 {
					t.Errorf("%+v, cells of %d: %d", l, cell, b.Total())
				}
				if _, err := (InputQueue{Size: maxSize, Classes: 1, Link: l}).Thresholds(); err == nil {
					t.Errorf("%+v fits into a queue", l)
				}
			}
		}
	}
}

// Whatever the link: more of anything needs no less, the terms are what their
// formulas say in exact arithmetic, and a switch that gives each class so much
// of its buffer accepts the headroom and refuses a byte less.
func TestHeadroomProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := Link{Rate: rapid.Uint64Range(1e6, 1600e9).Draw(r, "rate"), Delay: rapidTime(r, "delay"), Response: rapidTime(r, "response"),
			MaxFrame: rapid.Uint32Range(64, 9234).Draw(r, "frame"), Overhead: rapid.SampledFrom([]uint32{0, 20, 24}).Draw(r, "overhead")}
		cell := rapid.SampledFrom([]uint32{0, 80, 208, 4096}).Draw(r, "cell")
		b := Headroom(l, cell)
		exact := func(d frame.Time) uint64 {
			n := new(big.Int).Mul(new(big.Int).SetUint64(l.Rate), big.NewInt(int64(d)))
			return n.Add(n, big.NewInt(8e9-1)).Div(n, big.NewInt(8e9)).Uint64()
		}
		if b.Cable != exact(2*l.Delay) || b.Response != exact(l.Response) || b.Own != uint64(l.MaxFrame+l.Overhead) || b.Peer != b.Own || b.Control != 84 {
			r.Fatalf("%+v of %+v", b, l)
		}
		for _, more := range []Link{{Rate: l.Rate * 2, Delay: l.Delay, Response: l.Response, MaxFrame: l.MaxFrame, Overhead: l.Overhead},
			{Rate: l.Rate, Delay: l.Delay + 1000, Response: l.Response, MaxFrame: l.MaxFrame, Overhead: l.Overhead},
			{Rate: l.Rate, Delay: l.Delay, Response: l.Response, MaxFrame: l.MaxFrame + 100, Overhead: l.Overhead}} {
			if Headroom(more, 0).Total() < Headroom(l, 0).Total() {
				r.Fatalf("%+v needs less than %+v", more, l)
			}
		}
		classes, ports := rapid.IntRange(1, 8).Draw(r, "classes"), rapid.IntRange(1, 4).Draw(r, "ports")
		for _, short := range []uint64{0, 1} {
			c := Config{Size: b.Total()*uint64(classes*ports) + 1<<16, Cell: cell}
			for range ports {
				p := PortConfig{Link: l}
				for i := range classes {
					p.Groups[i] = Group{Lossless: true, Headroom: b.Total() - short}
				}
				c.Ports = append(c.Ports, p)
			}
			// What is more than a buffer may have is refused, however safe.
			if _, err := plan(&c); (err == nil) != (short == 0 && c.Size <= maxSize) {
				r.Fatalf("%d B less than %d in a buffer of %d B: %v", short, b.Total(), c.Size, err)
			}
		}
	})
}

// With cells, whatever the frame size, what the link delivers within the skid
// costs no more than skid and rounding together.
func TestHeadroomCells(t *testing.T) {
	for _, cell := range []uint32{64, 80, 208, 254} {
		l := Link{Rate: 25e9, Delay: 100, MaxFrame: 1514, Overhead: 24, Response: 500}
		b := Headroom(l, cell)
		for w := uint64(minFrame); w <= 1514; w++ {
			// Frames of which at least the last byte arrives within the skid.
			n := b.Skid() / (w + 24)
			if cost := n * roundUp(w, uint64(cell)); cost > b.Skid()+b.Rounding {
				t.Fatalf("cell %d: %d frames of %d bytes cost %d of %d", cell, n, w, cost, b.Skid()+b.Rounding)
			}
		}
		if b.Rounding == 0 || b.Trigger%uint64(cell) != 0 {
			t.Fatalf("%+v", b)
		}
	}
}
