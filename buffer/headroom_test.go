package buffer

import (
	"testing"

	"github.com/gswitch/gswitch/frame"
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
