package vswitch

import (
	"slices"
	"testing"

	"gswitch/frame"
)

// What waits in ingress queues of the crossbar for room in a paused egress
// queue waits for that pause, too, and is part of a circle if there is one.
func TestFramesBehindACrossbarWait(t *testing.T) {
	cfg := crossbarConfig(4, Crossing{Egress: 20_000, TotalCap: true})
	r := newRig(t, cfg)
	r.in(2, pfcFrame(1<<3, 0xffff))
	for range 30 { // more than the egress queue takes
		r.in(0, classed(1, 3, 3, 1000))
		r.advance(15 * frame.Microsecond)
	}
	for range 2 {
		r.in(1, classed(2, 3, 3, 1000)) // none of which cross
		r.in(3, classed(4, 1, 3, 1000)) // nor do these have to wait
	}
	r.advance(15 * frame.Microsecond)
	n := r.sw.Nodes[0]
	frames, bytes := n.ports[2].sched.QueueLen(3)
	w := n.Waits(r.now, nil)
	if len(w) != 1 || w[0].Port != 2 || w[0].Class != 3 || !slices.Equal(w[0].From, []uint16{0, 1}) {
		t.Fatalf("%+v, want frames of ports 0 and 1 that wait for port 2", w)
	}
	if frames == 0 || frames >= 30 || w[0].Frames != uint64(frames) || w[0].Bytes != bytes {
		t.Errorf("%d frames and %d bytes wait at the egress: %+v", frames, bytes, w[0])
	}
	r.in(2, pfcFrame(1<<3, 0))
	if w := n.Waits(r.now, nil); len(w) != 0 {
		t.Errorf("after the pause %+v", w)
	}
}

// Where two classes share a queue only the frames of the paused one wait for
// the neighbour.
func TestWaitsByClass(t *testing.T) {
	cfg := losslessConfig(3)
	cfg.PFC.Classes |= 1 << 4
	cfg.Class.Queue[4] = cfg.Class.Queue[3]
	r := newRig(t, cfg)
	r.in(1, pfcFrame(1<<3, 0xffff))
	r.in(0, tagged(1, 0, 3, 100))
	r.in(2, tagged(1, 2, 4, 100))
	w := r.sw.Nodes[0].Waits(r.now, nil)
	if len(w) != 1 || w[0].Class != 3 || w[0].Frames != 1 || w[0].Bytes != 100 || !slices.Equal(w[0].From, []uint16{0}) {
		t.Errorf("%+v, want the frame of class 3 alone", w)
	}
}
