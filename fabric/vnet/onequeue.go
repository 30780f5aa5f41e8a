package vnet

import (
	"math/bits"

	"gswitch/config"
)

// oneQueue maps all lossy classes to the lowest of their queues.
func (n *Network) oneQueue(d *config.Switch) {
	lossless := uint8(0)
	if n.cfg.PFC.On {
		lossless = n.lossless()
	}
	first := bits.TrailingZeros8(^lossless)
	for class := range d.Classes.Queue {
		if lossless>>class&1 == 0 {
			d.Classes.Queue[class] = first
		}
	}
}
