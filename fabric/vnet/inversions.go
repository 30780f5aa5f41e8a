package vnet

// CountsInversions reports whether the switches' egress queues count inversions.
func (n *Network) CountsInversions() bool { return n.cfg.Queue.Inversions }

// Inversions returns how many frames left an egress queue of a switch while a frame of
// smaller rank waited in it.
func (n *Network) Inversions() (sum uint64) {
	for i, sw := range n.Switches {
		for p := range n.Ports(i) {
			for q := range 8 {
				if v, on := sw.Nodes[0].Scheduler(uint16(p)).Inversions(q); on {
					sum += v.Frames
				}
			}
		}
	}
	return sum
}
