package sim

import "gswitch/frame"

// farHeap holds the slots that are due beyond the wheel: a heap of four
// children to a node (two levels to a cache line's worth of comparisons, half
// the depth of a binary one), indexed by slot, so that a slot can be taken out
// anywhere.
type farHeap struct{ heap []farEntry }

type farEntry struct {
	at   frame.Time
	slot int32
}

func (h *farHeap) first() frame.Time {
	if len(h.heap) == 0 {
		return frame.Never
	}
	return h.heap[0].at
}

func (h *farHeap) push(slots []slot, at frame.Time, i int32) {
	h.heap = append(h.heap, farEntry{at, i})
	h.up(slots, len(h.heap)-1)
}

// remove takes out the entry at place k.
func (h *farHeap) remove(slots []slot, k int32) {
	last := len(h.heap) - 1
	x := h.heap[last]
	h.heap = h.heap[:last]
	if int(k) == last {
		return
	}
	h.heap[k] = x
	slots[x.slot].far = k
	h.down(slots, int(k))
	h.up(slots, int(slots[x.slot].far))
}

func (h *farHeap) up(slots []slot, k int) {
	x := h.heap[k]
	for k > 0 {
		p := (k - 1) / 4
		if h.heap[p].at <= x.at {
			break
		}
		h.heap[k] = h.heap[p]
		slots[h.heap[k].slot].far = int32(k)
		k = p
	}
	h.heap[k] = x
	slots[x.slot].far = int32(k)
}

func (h *farHeap) down(slots []slot, k int) {
	x := h.heap[k]
	for {
		c := 4*k + 1
		if c >= len(h.heap) {
			break
		}
		least := c
		for j := c + 1; j < min(c+4, len(h.heap)); j++ {
			if h.heap[j].at < h.heap[least].at {
				least = j
			}
		}
		if h.heap[least].at >= x.at {
			break
		}
		h.heap[k] = h.heap[least]
		slots[h.heap[k].slot].far = int32(k)
		k = least
	}
	h.heap[k] = x
	slots[x.slot].far = int32(k)
}
