package buffer

import (
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
	for _, wire := range []uint32{60, 1500} {
		b := inChunks(t, 1000, 1000)
		total := 0
		for queue := range uint16(9) {
			list, why := fill(b, *meta(0, 0, queue, 0, wire))
			if want := (1000 - total) / 2; len(list) != want && len(list) != want+1 || why != frame.QueueTail {
				t.Errorf("%d bytes: queue %d takes %d of %d free chunks, %v", wire, queue, len(list), 1000-total, why)
			}
			total += len(list)
		}
		if list, _ := fill(b, *meta(1, 0, 11, 0, wire)); len(list) == 0 {
			t.Errorf("%d bytes: nothing is left for the tenth queue", wire)
		}
	}
	// A frame of several chunks takes as many.
	b := inChunks(t, 1000, 1000)
	if list, _ := fill(b, *meta(0, 0, 1, 0, 9000)); len(list) != 100 {
		t.Errorf("%d frames of five chunks fit into half of a thousand", len(list))
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
		if n := len(held); n != 83 { // the least n of n >= (750-n)/8, rounded down
			t.Errorf("class %d: pause after %d frames", class, n)
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
		if n := len(held); n == 0 || n >= 83 {
			t.Errorf("class %d: the pause ends with %d frames", class, n)
		}
	}
	// A neighbour that does not obey takes a ninth of what all share and half
	// of the headroom, the next one half of the rest.
	b := inChunks(t, 1000, 750)
	for port, want := range []int{83 + 125, 74 + 62} {
		if list, why := fill(b, *meta(uint16(port), 3, 7, 3, 60)); len(list) != want && len(list) != want+1 || why != frame.HeadroomFull {
			t.Errorf("port %d takes %d chunks, %v", port, len(list), why)
		}
	}
}

// What others hold moves the threshold of a group that neither gets nor gives.
func TestChunksAreSwept(t *testing.T) {
	b := inChunks(t, 1000, 750)
	for range 50 {
		if why := b.Admit(meta(0, 4, 1, 4, 60)); why != frame.Keep {
			t.Fatal(why)
		}
	}
	b.Sweep()
	if b.Want(0) != 0 {
		t.Fatal("50 of 750 chunks are a reason to pause")
	}
	for q := range uint16(4) {
		fill(b, *meta(2, 0, 4+q, 0, 60))
	}
	if !b.Unswept() {
		t.Error("nothing to be looked at")
	}
	if b.Sweep(); b.Want(0) != 1<<4 {
		t.Error("50 chunks are no reason to pause where few are free")
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
