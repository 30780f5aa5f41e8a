// Package secondloop counts what hosts send in the second loop of RC3 (hosts.transport.rc3).
package secondloop

import (
	"gswitch/fabric/measure"
	"gswitch/fabric/observe"
	"gswitch/fabric/vnet"
)

const lowFrames = "low_frames_total"

func init() {
	observe.Register(&observe.System{
		Name:   "rc3",
		Values: []measure.Key{{Name: lowFrames, Of: measure.OfRun, Doc: "Data frames of second loops (hosts.transport.rc3)."}},
		Count:  count,
	})
}

// count adds up the frames of all hosts. Runs without second loops have the value, too.
func count(n *vnet.Network, sums map[string]float64) {
	for _, h := range n.Hosts {
		sums[lowFrames] += float64(h.Counts().LowFrames)
	}
}
