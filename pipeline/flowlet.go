package pipeline

import "gswitch/frame"

// Flowlets assigns a key to each flowlet, the frames of a flow between two pauses, by
// which it is spread like a flow (LetFlow: Vanini et al., "Let It Flow: Resilient
// Asymmetric Load Balancing with Flowlet Switching", NSDI 2017, section 4). It holds the
// state of one worker.
//
// As in the paper the table has no tags: flows that hash to the same entry share their
// flowlets. That does not reorder frames, since each of these flows has pauses at least
// as long as the shared ones.
type Flowlets struct {
	entry []flowlet
	shift uint8
}

type flowlet struct {
	last frame.Time // of the latest frame
	key  uint32
	seen bool
}

// NewFlowlets returns a table of 2^bits entries, bits from 1 to 24.
func NewFlowlets(bits int) *Flowlets {
	return &Flowlets{entry: make([]flowlet, 1<<bits), shift: uint8(32 - bits)}
}

// Key returns the key of a frame of the flow with the given hash that arrives at now. It
// stays the same as long as frames follow each other within gap. A later frame starts a
// new flowlet with a new random key.
func (f *Flowlets) Key(now frame.Time, hash uint32, gap frame.Time, rng *frame.Rand) (key uint32, began bool) {
	e := &f.entry[hash>>f.shift]
	if !e.seen || now-e.last > gap {
		e.key, e.seen, began = uint32(rng.Uint64()>>32), true, true
	}
	e.last = now
	return e.key, began
}
