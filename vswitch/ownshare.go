package vswitch

import (
	"gswitch/frame"
	"gswitch/pipeline"
)

// A switch sends neighbour requests, and notices to senders, on links that carry data.
// The frames that it sends by itself take at most an eighth of each link, with a burst of
// a tenth of a second of that, but at least sixteen large frames. (ICMP errors have a
// limit of their own.)
const ownShare = 8

// adoptOwn gives the switch's own frames their share of a port's link.
func (n *Node) adoptOwn(now frame.Time, ps *portState, c *PortConfig) {
	rate := uint64(0)
	if n.prog.Config.ShareOwn {
		rate = c.rate() / ownShare / uint64(len(n.others.in))
	}
	if rate != ps.ownRate {
		ps.ownRate = rate
		if rate != 0 {
			ps.own, _ = pipeline.NewMeter(int64(rate), min(max(int64(rate)/80, 16*1518), pipeline.MaxBurst))
			ps.own.Take(now, 0)
		}
	}
}
