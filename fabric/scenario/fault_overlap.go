package scenario

import "fmt"

// Bursty reports whether losses come in bursts of consecutive frames.
func (f *Fault) Bursty() bool { return f.Kind == "loss" && f.Burst > 1 && f.Share > 0 && f.Share < 1 }

// faultOverlaps rejects faults of one kind that cannot be active at the same time in the
// same place. Other faults combine: independent shares are combined as probabilities, the
// lowest rate and the latest end of a link failure count, and storms run side by side.
func (v *validator) faultOverlaps() {
	for i := range v.doc.Faults {
		f := &v.doc.Faults[i]
		for j := range i {
			g := &v.doc.Faults[j]
			if f.Kind != g.Kind || !f.overlaps(g) || !v.samePlace(f, g) {
				continue
			}
			key, why := "kind", ""
			switch {
			case f.Node != "":
				key, why = "node", "let one end before the other begins"
			case f.Bursty() && g.Bursty():
				key, why = "burst", "two chains of bursts on one link are no chain: write one, or leave burst out of one"
			case f.Kind == "reorder" && f.Delay != g.Delay:
				key, why = "delay", "give both the same delay, or let one end before the other begins"
			case f.Kind == "jitter":
				key, why = "link", "write one jitter of the delay that is meant"
			default:
				continue
			}
			v.sec.Fail(fmt.Sprintf("faults[%d].%s", i, key), "faults[%d] is a %s at the same place and time; %s", j, f.Kind, why)
		}
	}
}

// overlaps reports whether two faults are active at the same time.
func (f *Fault) overlaps(g *Fault) bool {
	return (f.Stop == 0 || g.Start < f.Stop) && (g.Stop == 0 || f.Start < g.Stop)
}

// samePlace reports whether two faults of one kind are at the same node, or on the same
// direction of a link.
func (v *validator) samePlace(f, g *Fault) bool {
	if f.Node != "" || g.Node != "" {
		return f.Node == g.Node
	}
	if f.Link == "all" || g.Link == "all" {
		return true
	}
	p, err1 := FindPort(v.t, f.Link)
	q, err2 := FindPort(v.t, g.Link)
	if err1 != nil || err2 != nil {
		return false // rejected elsewhere
	}
	link := func(node, port int) int { return v.t.Nodes[node].Links[port] }
	if link(p.Node, p.Port) != link(q.Node, q.Port) {
		return false
	}
	return f.Both || g.Both || p.Node == q.Node && p.Port == q.Port
}
