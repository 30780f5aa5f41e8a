package scheduler

import "gswitch/frame"

// marker is ECN in the form the hot path reads. Probabilities are integers of
// 2^32, so that a run repeats to the bit on every machine.
type marker struct {
	on         bool
	kmin, kmax uint32
	slope      uint64 // probability per byte above kmin, times 2^20
	pi         *integrator
}

// newMarker returns a marker. An integrator whose numbers did not change goes
// on from where it was.
func newMarker(c ECN, old *marker) marker {
	if c.PI.Ref > 0 {
		if old.pi != nil && old.pi.cfg == c.PI {
			return *old
		}
		return marker{on: true, pi: newIntegrator(c.PI)}
	}
	m := marker{on: c.KMax > 0, kmin: min(c.KMin, c.KMax), kmax: c.KMax}
	if c.PMax > 0 && m.kmax > m.kmin {
		m.slope = uint64(min(c.PMax, 1)*(1<<52)) / uint64(m.kmax-m.kmin)
	}
	return m
}

// marks decides for a frame that leaves left bytes behind at now.
func (k *marker) marks(now frame.Time, left uint64, rng *frame.Rand) bool {
	if k.pi != nil {
		return k.pi.marks(now, left, rng)
	}
	if left <= uint64(k.kmin) {
		return false
	}
	if left > uint64(k.kmax) {
		return true
	}
	return rng.Uint64()>>32 < (left-uint64(k.kmin))*k.slope>>20
}
