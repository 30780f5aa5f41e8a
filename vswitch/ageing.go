package vswitch

import "gswitch/frame"

// The forwarding database is aged in steps: it is visited completely ten times per ageing
// time.
const (
	defaultAgeing = 300 * frame.Second // IEEE 802.1Q 8.8.3
	ageSteps      = 1000
)

// age takes the next step of ageing.
func (n *Node) age(now frame.Time) {
	ageing := n.prog.Config.FDB.Ageing
	if ageing == 0 {
		ageing = defaultAgeing
	}
	n.fdb.Age(now, ageing, n.fdb.Buckets()*10/ageSteps+1)
	n.ageAt = now + max(ageing/ageSteps, frame.Microsecond)
}
