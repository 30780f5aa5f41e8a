package point

import "gswitch/vswitch"

var counters = []vswitch.Counter{
	{Name: "escape_on", Help: "1: frames escape by the port; 0: no more, though what was under way may still come.", Gauge: true},
	{Name: "escape_places", Help: "Places of frames that escape from paused queues, by what they are: free, kept for the frame of a token that is out, taken; beside those, of frames that wait in the queue of their class (parked).",
		Labels: []string{"state"}, Values: []string{"free", "kept", "taken", "parked"}, Gauge: true},
	{Name: "escape_flows", Help: "Flows that leave by the port and are known, of which tokens can be made.", Gauge: true},
	{Name: "escape_tokens_total", Help: "Tokens: made here, forwarded; those that came and got a frame (hit), or ended here without one (dropped); those that came to nothing (reclaimed).",
		Labels: []string{"outcome"}, Values: []string{"made", "forwarded", "hit", "dropped", "reclaimed"},
		Known: map[string]string{"made": "tokens_total", "hit": "escaped_total", "reclaimed": "tokens_reclaimed_total"}},
	{Name: "escape_requests_total", Help: "Requests for tokens: sent by the port (asked), for flows that leave by it (requested), or those that came by it and led nowhere (refused).",
		Labels: []string{"outcome"}, Values: []string{"asked", "requested", "refused"}},
	{Name: "escape_packets_total", Help: "Frames that escaped to the port, on a token of it (arrived) or without one (stray); that left by it without a mark, for which they had no room (unmarked); of flows for which the table had none (unknown).",
		Labels: []string{"outcome"}, Values: []string{"arrived", "stray", "unmarked", "unknown"}, Known: map[string]string{"stray": "escape_strays_total"}},
}

func (p *ports) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	for i, x := range p.ports {
		if x == nil {
			continue
		}
		at, c := uint16(i), x.Counts()
		on := 0.0
		if x.on {
			on = 1
		}
		emit(0, at, on)
		emit(2, at, float64(x.Flows()))
		for _, v := range []struct {
			counter int
			kind    string
			n       uint64
		}{
			{1, "free", uint64(x.Free())}, {1, "kept", uint64(x.Kept())}, {1, "taken", uint64(x.Taken())}, {1, "parked", uint64(x.Parked())},
			{3, "made", c.Made}, {3, "forwarded", c.Forwarded}, {3, "hit", c.Hits}, {3, "dropped", c.Dropped}, {3, "reclaimed", c.Reclaimed},
			{4, "asked", c.Asked}, {4, "requested", c.Requests}, {4, "refused", c.Refused},
			{5, "arrived", c.Arrived}, {5, "stray", c.Strays}, {5, "unmarked", x.unmarked}, {5, "unknown", c.Full},
		} {
			emit(v.counter, at, float64(v.n), v.kind)
		}
	}
}
