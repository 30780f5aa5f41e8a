package vnet

// CountsInversions reports whether the egress queues of switches count them.
func (n *Network) CountsInversions() bool { return n.cfg.Queue.Inversions }

// Inversions returns how many frames left an egress queue of a switch while one
// of smaller rank waited there.
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
