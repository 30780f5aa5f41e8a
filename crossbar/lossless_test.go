package crossbar

import (
	"testing"

	"gswitch/frame"
)

const (
	full = 1530 // bytes on the wire of the report's largest frame
	skid = 4557 // that arrive after a pause at 1 Gb/s
)

// adversary lets one class after the other come as close to its threshold as
// it can, cross it by a full frame, and go on for as long as a pause takes. It
// returns what the queue would need, and whether something was lost.
func adversary(t *testing.T, threshold uint32, classes []uint8) (need uint32, lost bool) {
	cfg := detail()
	cfg.Pause, cfg.Egress = threshold, 1 // nothing crosses
	g := newRig(t, cfg)
	push := func(class uint8, bytes uint32) {
		for bytes > 0 {
			n := min(bytes, full)
			lost = !g.arrive(0, 1, class, n) || lost
			need += n
			bytes -= n
		}
	}
	for _, class := range classes {
		if g.x.Wants(0)>>class&1 != 0 {
			continue
		}
		push(class, threshold-1-g.x.Port(0).Ingress[class])
		push(class, full)
		if !lost && g.x.Wants(0)>>class&1 == 0 {
			t.Fatalf("class %d is not paused at %d bytes", class, threshold)
		}
		push(class, skid)
	}
	return need, lost
}

func TestAdversary(t *testing.T) {
	up, down := []uint8{0, 1, 2, 3, 4, 5, 6, 7}, []uint8{7, 6, 5, 4, 3, 2, 1, 0}
	for _, c := range []struct {
		threshold uint32
		order     []uint8
		need      uint32
		lost      bool
	}{
		{8192, up, 114_224, false},
		{8192, down, 14_278, false},
		{10_297, up, 131_064, false},
		{11_827, up, 143_304, true},
	} {
		if need, lost := adversary(t, c.threshold, c.order); need != c.need || lost != c.lost {
			t.Errorf("threshold %d, classes in order %v: needs %d bytes, lost %t; want %d, %t", c.threshold, c.order, need, lost, c.need, c.lost)
		}
	}
}

// upstream is a sender that is always backlogged in all classes. A pause
// reaches it when so many bytes of its link have passed that with the frame
// which it has begun by then the skid is full.
type upstream struct {
	pos    uint64 // bytes of link time
	paused uint8
	queue  []notice
}

type notice struct {
	at    uint64
	wants uint8
}

// TestRandomArrivals: a million frames at four ports that are congested without
// end, in whatever order. Nothing is lost and no port comes to hold more than
// the adversary's.
func TestRandomArrivals(t *testing.T) {
	peak, pauses := congest(t, newRig(t, detail()), 1_000_000, func(rng *frame.Rand) uint32 {
		if rng.Uint32n(4) == 0 {
			return 84 + rng.Uint32n(full-83)
		}
		return full
	})
	if peak > 114_232 {
		t.Errorf("a port held %d bytes", peak)
	}
	if peak < 40_000 || pauses < 10_000 {
		t.Errorf("peak %d bytes, %d pauses: the test does not stress it", peak, pauses)
	}
}

// The smallest frames take all chunks that there are for them long before the bytes of
// their queues. Neighbours that honour pauses are paused in time all the same, whichever classes
// they go on with, and nothing is lost.
func TestSmallestFramesLoseNothing(t *testing.T) {
	cfg := detail()
	cfg.Chunks = Divide(2048, 4000, 4, 4, 8*(2+skid/84))
	g := newRig(t, cfg)
	peak, pauses := congest(t, g, 300_000, func(rng *frame.Rand) uint32 {
		if rng.Uint32n(100) == 0 {
			return 84 + rng.Uint32n(full-83)
		}
		return 84
	})
	if peak > 90_000 || pauses < 1000 { // a chunk has 84 bytes
		t.Errorf("peak %d bytes, %d pauses: it is bytes that are short", peak, pauses)
	}
}

// congest has four neighbours send frames without end, which honour pauses, to four ports
// that are shut now and then. It returns the most bytes that were at an ingress port,
// and the pauses; nothing must be lost.
func congest(t *testing.T, g *rig, arrivals int, length func(*frame.Rand) uint32) (peak, pauses uint64) {
	const ports = 4
	rng := frame.NewRand(7)
	var up [ports]upstream
	type queue struct {
		fifo [8][]frame.Ref
		free frame.Time
	}
	var egress [ports]queue
	var shut [ports]frame.Time
	frames, idle, seen := 0, 0, [8]bool{}
	for frames < arrivals {
		// The link that is furthest behind has the next frame.
		i := 0
		for k := range up {
			if up[k].pos < up[i].pos {
				i = k
			}
		}
		u := &up[i]
		now := max(g.now, frame.Time(u.pos*8))
		// What crossed until then, and what left.
		for r, _ := nextOne(g.x, now); r != frame.Nil; r, _ = nextOne(g.x, now) {
			m := g.pool.Meta(r)
			q := &egress[m.OutPort].fifo[m.Class]
			*q = append(*q, r)
		}
		g.now = now
		for j := range egress {
			e := &egress[j]
			if rng.Uint32n(2000) == 0 {
				shut[j] = now + frame.Time(rng.Uint32n(400_000))
			}
			for c := 7; c >= 0 && e.free <= now && shut[j] <= now; c-- {
				if len(e.fifo[c]) > 0 {
					r := e.fifo[c][0]
					e.fifo[c] = e.fifo[c][1:]
					e.free = now + frame.Time(g.pool.Meta(r).Wire*8)
					g.x.Leave(now, []frame.Ref{r})
					g.pool.Free(r)
					c = 8
				}
			}
		}
		signal(g, up[:])
		for len(u.queue) > 0 && u.queue[0].at <= u.pos {
			u.paused = u.queue[0].wants
			u.queue = u.queue[1:]
		}
		if u.paused == 0xff {
			u.pos += 84
			idle++
			continue
		}
		// The lowest class that may be sent is the worst, now and then another one.
		class := uint8(0)
		for u.paused>>class&1 != 0 {
			class++
		}
		if rng.Uint32n(3) == 0 {
			for class = uint8(rng.Uint32n(8)); u.paused>>class&1 != 0; class = uint8(rng.Uint32n(8)) {
			}
		}
		size := length(&rng)
		// It is there when its last byte is.
		u.pos += uint64(size)
		if !g.arrive(uint16(i), uint16(rng.Uint32n(ports)), class, size) {
			t.Fatalf("frame %d, of class %d at port %d, was lost: %+v", frames, class, i, g.x.Port(uint16(i)))
		}
		seen[class] = true
		frames++
		signal(g, up[:])
	}
	for i := range uint16(ports) {
		v := g.x.Port(i)
		peak = max(peak, uint64(v.IngressPeak))
		for _, n := range v.In.Pauses {
			pauses += n
		}
		if v.In.Refused != 0 {
			t.Errorf("port %d refused %d frames", i, v.In.Refused)
		}
	}
	t.Logf("%d frames, peak of an ingress queue %d bytes, %d pauses, %d slots idle", frames, peak, pauses, idle)
	if seen != [8]bool{true, true, true, true, true, true, true, true} {
		t.Errorf("classes %v", seen)
	}
	return peak, pauses
}

// signal passes on what should be paused.
func signal(g *rig, up []upstream) {
	for port, ok := g.x.NextDirty(); ok; port, ok = g.x.NextDirty() {
		u := &up[port]
		u.queue = append(u.queue, notice{u.pos + skid - full, g.x.Wants(port)})
	}
}
