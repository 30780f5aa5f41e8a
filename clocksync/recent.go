package clocksync

import "gswitch/frame"

// recentMessages is how many sync messages a device compares a new one with.
const recentMessages = 16

// recent is what the last messages from one root by one port contained. Links and machines make
// messages late, and never early: one that is later beside the others than hops and
// oscillators explain is wrong by so much, whatever its sender allowed for.
type recent struct {
	port  int
	root  uint64
	n, at int
	said  [recentMessages]struct {
		lead  frame.Time // of the root's time over the own one
		stamp frame.Time
		late  frame.Time // Message.Late
	}
}

// behind takes in a message that came at the node's time stamp, with the claim that
// synchronised time is `to`, and which may be wrong by base by what its sender and its hops
// allow. It returns by how much it is later than the least late of the last ones, 0 if base
// and the drift of c explain that.
func (h *recent) behind(stamp, to frame.Time, port int, m *Message, base frame.Time, c *Clock) (most frame.Time) {
	if h.port != port || h.root != m.Root {
		*h = recent{port: port, root: m.Root}
	}
	lead := to - stamp
	for i := range h.said[:h.n] {
		s := &h.said[i]
		if d := s.lead - lead; d > most && d > base && d > base+s.late+c.drifted(stamp-s.stamp) {
			most = d
		}
	}
	s := &h.said[h.at]
	s.lead, s.stamp, s.late = lead, stamp, m.Late
	h.at = (h.at + 1) % recentMessages
	h.n = min(h.n+1, recentMessages)
	return most
}
