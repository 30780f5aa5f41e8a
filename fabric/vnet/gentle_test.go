package vnet

import (
	"strconv"
	"testing"
	"time"

	"gswitch/frame"
	"gswitch/gfc/point"
	"gswitch/units"
	"gswitch/vswitch"
)

// gentleRing is deadRing with stages in place of pauses.
func gentleRing(t testing.TB, switches string, voq bool, xoff uint32, span uint32) *Network {
	topo := topology(t, "ring("+switches+", 1)", 40*gig, 40*gig, time.Microsecond)
	c := deadRingConfig(topo, Escape{}, units.Size(xoff))
	c.VOQ = voq
	c.Wholes = []Whole{{Name: point.Name, Options: func(*vswitch.Config) (any, error) { return point.Config{Stages: 15, Span: uint64(span)}, nil }}}
	return build(t, c)
}

// load lets every host send to the one two links on.
func (n *Network) load(t testing.TB, hosts int, bytes uint64) {
	for i := range hosts {
		start(t, n, Flow{Src: i, Dst: (i + 2) % hosts, Bytes: bytes})
	}
}

// framesIn is how many frames came to hosts.
func (n *Network) framesIn() (frames uint64) {
	for _, h := range n.Hosts {
		frames += h.Counts().RxFrames
	}
	return frames
}

// A ring of switches whose egress queues take turns among the ports that frames
// came by keeps full speed with Gentle Flow Control, as its authors found
// (SIGCOMM 2019, section 6).
func TestGentleRing(t *testing.T) {
	n := gentleRing(t, "3", true, 40_000, 0)
	var done []Done
	n.OnDone(func(_ frame.Time, d *Done) { done = append(done, *d) })
	n.load(t, 3, 4_000_000)
	n.advance(t, 2*frame.Millisecond) // two flows to a link of 40 Gb/s: 1.6 ms
	if len(done) != 3 || n.Lost() != 0 || retransmitted(done) != 0 {
		t.Fatalf("%d of 3 messages arrived, lost %v", len(done), n.Drops())
	}
	if d := n.Deadlocks(n.Engine.Now()); len(d) != 0 {
		t.Fatalf("deadlocks %+v", d)
	}
}

// Whatever the ring, its thresholds and its queues, it never stands still: in
// any time in which the slowest port sends a few frames something arrives, and
// nothing is lost. First in, first out, such a ring may slow itself down to
// that, since the flow that has more in a queue gets more of it.
func TestGentleRingNeverStops(t *testing.T) {
	for _, voq := range []bool{false, true} {
		// A frame of 1058 bytes at 40 Gb/s / 2^15 takes 7 ms.
		step := 14 * frame.Millisecond
		if voq {
			step = 200 * us // at full speed: so much costs more to run
		}
		for i, c := range []struct{ xoff, span uint32 }{{5_000, 0}, {40_000, 0}, {100_000, 0}, {20_000, 200_000}} {
			k := 3 + i%3
			n := gentleRing(t, strconv.Itoa(k), voq, c.xoff, c.span)
			n.load(t, k, 1<<40)
			before := uint64(0)
			for range 3 {
				n.advance(t, step)
				now := n.framesIn()
				if dead := n.Deadlocks(n.Engine.Now()); now == before || n.Lost() != 0 || len(dead) != 0 {
					t.Fatalf("%d switches, voq %v, %+v: %d frames arrived, before them %d; lost %v, deadlocks %+v", k, voq, c, now, before, n.Drops(), dead)
				}
				before = now
			}
		}
	}
}
