package connections

import "gswitch/fabric/measure"

// values are what runs have of it.
var values = []measure.Key{
	{Name: "connections_replayed_total", Of: measure.OfRun | measure.OfGroup, Doc: "Connections of TCP whose replay was the same to the bit, with measure.connections."},
	{Name: "connections_diverged_total", Of: measure.OfRun | measure.OfGroup, Doc: "Those whose replay was not."},
	{Name: "record_bytes_per_packet", Of: measure.OfRun, Doc: "What their records take, of both ends together."},
	{Name: "diagnosed_rto_total", Of: measure.OfRun | measure.OfGroup, Doc: "Messages over TCP in which the timer ran out, for another reason than the two that follow, with measure.connections."},
	{Name: "diagnosed_tail_drop_total", Of: measure.OfRun | measure.OfGroup, Doc: "Messages in which it ran out since nothing behind what was lost arrived."},
	{Name: "diagnosed_ack_drop_total", Of: measure.OfRun | measure.OfGroup, Doc: "Messages in which it ran out since acknowledgements were lost."},
	{Name: "diagnosed_fast_retransmit_total", Of: measure.OfRun | measure.OfGroup, Doc: "Messages in which duplicate acknowledgements reported a loss."},
	{Name: "diagnosed_late_retransmit_total", Of: measure.OfRun | measure.OfGroup, Doc: "Messages in which they did so long after the third, which reordering that was seen had made too few."},
	{Name: "diagnosed_delayed_ack_total", Of: measure.OfRun | measure.OfGroup, Doc: "Messages in which an acknowledgement was held back for 20 ms while data waited for it."},
	{Name: "diagnosed_zero_window_total", Of: measure.OfRun | measure.OfGroup, Doc: "Messages that the receiver's window held back for more than half of their time; a window that is full behind a loss is not counted."},
	{Name: "diagnosed_slow_start_total", Of: measure.OfRun | measure.OfGroup, Doc: "Slow messages in which nothing else was found and that ended within slow start (gfabric diagnose --slow)."},
	{Name: "diagnosed_congestion_total", Of: measure.OfRun | measure.OfGroup, Doc: "Slow messages in which nothing was found."},
}
