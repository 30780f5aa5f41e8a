package scheduler

import "github.com/gswitch/gswitch/frame"

// marker is ECN in the form the hot path reads. Probabilities are integers of
// 2^32, so that a run repeats to the bit on every machine.
type marker struct {
	on         bool
	kmin, kmax uint32
	slope      uint64 // probability per byte above kmin, times 2^20
}

func newMarker(c ECN) marker {
	m := marker{on: c.KMax > 0, kmin: min(c.KMin, c.KMax), kmax: c.KMax}
	if c.PMax > 0 && m.kmax > m.kmin {
		m.slope = uint64(min(c.PMax, 1)*(1<<52)) / uint64(m.kmax-m.kmin)
	}
	return m
}

// marks decides for a frame that leaves left bytes behind.
func (k *marker) marks(left uint64, rng *frame.Rand) bool {
	if left <= uint64(k.kmin) {
		return false
	}
	if left > uint64(k.kmax) {
		return true
	}
	return rng.Uint64()>>32 < (left-uint64(k.kmin))*k.slope>>20
}
