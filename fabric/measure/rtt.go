package measure

import "gswitch/frame"

// RTT notes a round-trip time that an acknowledgement gave to a connection.
func (r *Recorder) RTT(now frame.Time, id uint64, rtt frame.Time) {
	i, ok := r.good.where[id]
	if !ok || now > r.closed {
		return
	}
	group := r.good.open[i].group
	for k := range r.scopes {
		s := &r.scopes[k]
		if !s.Has(now) {
			continue
		}
		s.rtt.Add(uint64(rtt), 1)
		if s.Prefix == "" {
			s.rtts[group].Add(uint64(rtt), 1)
		}
	}
}
