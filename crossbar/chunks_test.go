package crossbar

import (
	"testing"

	"gswitch/frame"
)

// Small frames to an egress port that sends nothing take at most half of the chunks
// that are shared, and those of an ingress port that come later half of what is left:
// there are always some for others. What is refused is counted.
func TestSmallFramesLeaveChunks(t *testing.T) {
	cfg := detail()
	cfg.Lossless, cfg.Pause, cfg.Unpause = 0, 0, 0
	cfg.Chunks = Divide(2048, 1600, 4, 4, 0)
	if want := (Chunks{Bytes: 2048, Own: 50, Shared: 600, Egress: 200}); cfg.Chunks != want {
		t.Fatalf("%+v, want %+v", cfg.Chunks, want)
	}
	g := newRig(t, cfg)
	flood := func(in uint16) (taken int) {
		for range 1000 {
			if g.arrive(in, 3, 0, 60) {
				taken++
			}
			g.run(g.now + 200)
		}
		return taken
	}
	// Frames of one class may have half of the egress queue: each counts for a little more
	// than a two hundredth of it.
	if n := flood(0); n != 99+50+300 {
		t.Errorf("%d frames of the first port were taken", n)
	}
	if n := flood(1); n != 50+150 {
		t.Errorf("%d frames of the second port were taken", n)
	}
	if v := g.x.Port(1); v.Chunks != 200 || v.In.Short != 800 || v.In.RefusedLossy != 800 {
		t.Errorf("%+v", v)
	}
	// To another port all goes on.
	for i := range 2000 {
		if !g.arrive(2, 1, 0, 60) {
			t.Fatalf("frame %d between others was refused", i)
		}
		g.run(g.now + frame.Microsecond)
		g.x.Leave(g.now, []frame.Ref{g.out[len(g.out)-1]})
		g.pool.Free(g.out[len(g.out)-1])
		g.out = g.out[:len(g.out)-1]
	}
	// All leave, and what they took is there again.
	for k := 0; len(g.out) > 0; k++ {
		g.leave()
		g.run(g.now + frame.Microsecond)
	}
	if g.x.Held() != 0 || g.x.memory.used != 0 || g.x.in[0].chunks != 0 || g.x.out[3].total != 0 {
		t.Errorf("%d frames and %d chunks are left, %d bytes behind the crossbar", g.x.Held(), g.x.memory.used, g.x.out[3].total)
	}
}

// A neighbour that does not pause takes its headroom and what a lossy one would have,
// and costs others neither frames nor a pause.
func TestUnresponsiveNeighbourCostsOthersNothing(t *testing.T) {
	cfg := detail()
	cfg.Chunks = Divide(2048, 1600, 4, 4, 100)
	g := newRig(t, cfg)
	taken := 0
	for range 3000 {
		if g.arrive(0, 3, 5, 60) {
			taken++
		}
		g.run(g.now + 200)
		if !g.arrive(1, 2, 5, 60) || !g.arrive(1, 2, 0, 60) {
			t.Fatal("a frame of others was refused")
		}
		g.run(g.now + frame.Microsecond)
		for i := 0; i < len(g.out); i++ {
			if r := g.out[i]; g.pool.Meta(r).OutPort == 2 {
				g.x.Leave(g.now, []frame.Ref{r})
				g.pool.Free(r)
				g.out = append(g.out[:i], g.out[i+1:]...)
				i--
			}
		}
	}
	if v := g.x.Port(0); v.Wants == 0 || v.In.Pauses[5] != 1 || v.In.Short == 0 || taken < 300 || taken > 700 {
		t.Errorf("%d frames of an unresponsive neighbour were taken: %+v", taken, v)
	}
	if v := g.x.Port(1); v.Wants != 0 || v.In.Pauses != [8]uint64{} || v.In.Refused != 0 {
		t.Errorf("others: %+v", v)
	}
}

// Where headroom was in use all classes that waited for it go on, also those of which
// nothing is left.
func TestHeadroomEndsEveryPause(t *testing.T) {
	cfg := detail()
	cfg.Egress, cfg.TotalCap = 1500, true
	cfg.Chunks = Chunks{Bytes: 2048, Own: 8, Headroom: 100, Egress: 4}
	g := newRig(t, cfg)
	g.arrive(2, 1, 7, 1500)
	g.run(4 * frame.Microsecond)
	for class := range uint8(8) {
		for range 10 {
			if !g.arrive(0, 1, class, 60) {
				t.Fatalf("class %d was refused: %+v", class, g.x.Port(0))
			}
		}
	}
	if v := g.x.Port(0); v.Wants != 0xff || v.Chunks != 80 || v.In.Short != 0 {
		t.Fatalf("%+v", v)
	}
	for g.x.Held() > 0 || len(g.out) > 0 {
		g.leave()
		g.run(g.now + 4*frame.Microsecond)
	}
	if v := g.x.Port(0); v.Wants != 0 || v.In.Pauses != v.In.Resume {
		t.Errorf("nothing is left: %+v", v)
	}
}

// A class is paused while others have most of the chunks for themselves: at half of the
// eighth part, for eight lossless classes, of what the port may still have.
func TestChunksPauseInTime(t *testing.T) {
	cfg := detail()
	cfg.Egress, cfg.TotalCap = 1500, true
	cfg.Chunks = Divide(2048, 1600, 4, 4, 100)
	g := newRig(t, cfg)
	g.arrive(2, 1, 7, 1500)
	g.run(4 * frame.Microsecond)
	for sent := 1; g.x.Wants(0) == 0; sent++ {
		if !g.arrive(0, 1, 3, 60) || sent > 1000 {
			t.Fatalf("not paused: %+v", g.x.Port(0))
		}
	}
	if want := (cfg.Chunks.Own + cfg.Chunks.Shared) / 16; g.x.Port(0).Chunks != want || g.x.Wants(0) != 0x0f || want < 20 {
		t.Errorf("classes %#x are paused at %d chunks, want %d", g.x.Wants(0), g.x.Port(0).Chunks, want)
	}
}
