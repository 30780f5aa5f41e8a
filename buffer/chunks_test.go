package buffer

import (
	"slices"
	"testing"

	"gswitch/frame"
)

// inChunks is a buffer whose bytes are never short, over so many chunks of 2000
// bytes.
func inChunks(t testing.TB, all, lossy int) *Buffer {
	c := Config{Size: 1 << 30, Chunks: Chunks{Bytes: 2000, All: all, Lossy: lossy}, Ports: make([]PortConfig, 12)}
	for p := range c.Ports {
		c.Ports[p].Link = testLink
		c.Ports[p].Groups[3] = Group{Lossless: true, Limit: Threshold{Alpha: 0.125}}
		c.Ports[p].Groups[4] = Group{Lossless: true, Limit: Threshold{Bytes: 1 << 20}}
		for q := range c.Ports[p].Queues {
			c.Ports[p].Queues[q].Limit.Alpha = 1
		}
	}
	return mustNew(t, c)
}

// fill admits frames until one is refused.
func fill(b *Buffer, m frame.Meta) (list []*frame.Meta, why frame.Reason) {
	for {
		f := m
		if why := b.Admit(&f); why != frame.Keep {
			return list, why
		}
		list = append(list, &f)
	}
}

// Queues of small frames share the chunks as those of bytes share the pool:
// with an alpha of 1 each of n congested ones has an (n+1)th, and as much is
// left for those who need little. The same number of large frames fits.
func TestChunksAreShared(t *testing.T) {
	var small []int
	for _, wire := range []uint32{60, 1500} {
		b := inChunks(t, 1000, 1000)
		var held []int
		for queue := range uint16(10) {
			list, why := fill(b, *meta(0, 0, queue, 0, wire))
			held = append(held, len(list))
			if why != frame.QueueTail && why != frame.ArenaExhausted {
				t.Errorf("%d bytes: queue %d: %v", wire, queue, why)
			}
			// The first has half of what all share, and what is its own; each has no
			// less than that, and no more than the one before.
			switch {
			case queue == 0 && (len(list) < 380 || len(list) > 420), queue > 0 && len(list) > held[queue-1], uint64(len(list)) < b.own, b.own < 15:
				t.Errorf("%d bytes: queue %d takes %d chunks, %d are its own; those before took %v", wire, queue, len(list), b.own, held)
			}
		}
		// Another class of a port that holds its own already leaves that to others.
		fill(b, *meta(0, 1, 0, 1, wire))
		if list, _ := fill(b, *meta(1, 0, 11, 0, wire)); uint64(len(list)) < b.own {
			t.Errorf("%d bytes: %d chunks are left for the eleventh port", wire, len(list))
		}
		if small == nil {
			small = held
		} else if !slices.Equal(small, held) {
			t.Errorf("small frames take %v chunks, large ones %v", small, held)
		}
	}
	// A frame of several chunks takes as many.
	b := inChunks(t, 1000, 1000)
	if list, _ := fill(b, *meta(0, 0, 1, 0, 9000)); len(list) != small[0]/5 {
		t.Errorf("%d frames of five chunks fit where %d of one do", len(list), small[0])
	}
}

// Small frames of a lossless class pause the port that sends them, and not the
// others; frames that it had under way still find chunks, those that lossy
// frames must leave; and when they are gone the pause ends.
func TestChunksPause(t *testing.T) {
	for _, class := range []uint8{3, 4} {
		b := inChunks(t, 1000, 750)
		var held []*frame.Meta
		for b.Want(0) == 0 {
			m := meta(0, class, 1, class, 60)
			if why := b.Admit(m); why != frame.Keep {
				t.Fatalf("class %d: %v after %d frames, and no pause", class, why, len(held))
			}
			held = append(held, m)
		}
		first := len(held)
		if first < 60 || first > 72 { // n >= (578-(n-own))/8
			t.Errorf("class %d: pause after %d frames", class, first)
		}
		if b.Want(2) != 0 {
			t.Errorf("class %d: another port is paused", class)
		}
		for range 100 {
			m := meta(0, class, 1, class, 60)
			if why := b.Admit(m); why != frame.Keep {
				t.Fatalf("class %d: a frame under way is lost: %v", class, why)
			}
			held = append(held, m)
		}
		lossy, why := fill(b, *meta(2, 0, 5, 0, 60))
		if len(lossy) == 0 || why != frame.QueueTail {
			t.Errorf("class %d: %d lossy frames beside it, %v", class, len(lossy), why)
		}
		for len(held) > 0 && b.Want(0) != 0 {
			b.Release(held[0])
			held = held[1:]
		}
		if n := len(held); n == 0 || n >= first {
			t.Errorf("class %d: the pause ends with %d frames", class, n)
		}
	}
	// A neighbour that does not pause takes a ninth of what all share and half
	// of the headroom, the next one half of the rest.
	b := inChunks(t, 1000, 750)
	left := 250
	for port := range uint16(3) {
		list, why := fill(b, *meta(port, 3, 7, 3, 60))
		if spare := int(b.groups[port+1][3].spare); spare != left/2 && spare != (left+1)/2 || why != frame.HeadroomFull || len(list)-spare > 72 {
			t.Errorf("port %d takes %d chunks, %d of them of %d of headroom, %v", port, len(list), spare, left, why)
		} else {
			left -= spare
		}
	}
}

// What others hold moves the threshold of a group that neither gets nor gives.
func TestChunksAreSwept(t *testing.T) {
	b := inChunks(t, 1000, 750)
	for range 40 {
		if why := b.Admit(meta(0, 4, 1, 4, 60)); why != frame.Keep {
			t.Fatal(why)
		}
	}
	b.Sweep()
	if b.Want(0) != 0 {
		t.Fatal("40 of 750 chunks are a reason to pause")
	}
	for q := range uint16(4) {
		fill(b, *meta(2, 0, 4+q, 0, 60))
	}
	if !b.Unswept() {
		t.Error("nothing to be looked at")
	}
	if b.Sweep(); b.Want(0) != 1<<4 {
		t.Error("40 chunks are no reason to pause where few are free")
	}
}

func TestChunksKeepTheirSize(t *testing.T) {
	b := inChunks(t, 1000, 750)
	c := b.Config()
	c.Chunks.Bytes = 4000
	if err := b.Reconfigure(c); err == nil {
		t.Error("chunks changed their size")
	}
	c.Chunks = Chunks{Bytes: 2000, All: 10, Lossy: 10}
	if err := b.Reconfigure(c); err != nil {
		t.Error(err)
	}
	if list, _ := fill(b, *meta(0, 0, 1, 0, 60)); len(list) != 5 {
		t.Errorf("%d frames in half of ten chunks", len(list))
	}
}
