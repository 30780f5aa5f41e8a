package flows

import "gswitch/fabric/measure"

// values are what runs have of it.
var values = []measure.Key{
	{Name: "flow_slots_total", Of: measure.OfRun, Doc: "Slots in which switches counted flows, of all switches together. This, as what follows, with switch.flowradar."},
	{Name: "flow_unknown_slots_total", Of: measure.OfRun, Doc: "Of these, those whose report did not come, or was about several slots."},
	{Name: "flow_strange_reports_total", Of: measure.OfRun, Doc: "Reports of unknown switches, or that came too late."},
	{Name: "flow_slot_flows_max", Of: measure.OfRun, Doc: "Most flows of a switch in a slot."},
	{Name: "flow_complete_slots_share", Of: measure.OfRun, Doc: "Share of the slots of which every flow came out of the tables."},
	{Name: "flow_exact_slots_share", Of: measure.OfRun, Doc: "The same, with the packets of every flow."},
	{Name: "flow_alone_share", Of: measure.OfRun, Doc: "Of the flows that switches counted, the share that came out of their own table, without those of other switches."},
	{Name: "flow_decoded_share", Of: measure.OfRun, Doc: "Of the flows of exact tables beside encoded ones (mode both), the share that came out of the encoded ones."},
	{Name: "flow_counters_share", Of: measure.OfRun, Doc: "The same, with the right packets."},
	{Name: "flow_garbage_total", Of: measure.OfRun, Doc: "Flows that came out of encoded tables, and are in no exact one."},
	{Name: "flow_lost_total", Of: measure.OfRun, Doc: "Packets that flows lost between switches or in their tables, found when each burst was over."},
	{Name: "flow_blackholes_total", Of: measure.OfRun, Doc: "Times that all packets of a flow were found to be lost at one place."},
	{Name: "flow_loops_total", Of: measure.OfRun, Doc: "Times that packets of a flow were found to loop."},
	{Name: "flow_moved_total", Of: measure.OfRun, Doc: "Times that the controller moved blackholed flows (controller.blackholes)."},
	{Name: "flow_loss_seen", Of: measure.OfRun, Quant: true, Unit: "seconds", Doc: "Time from the beginning of the first slot of a burst in which packets may have been lost until it was known which, of each packet."},
	{Name: "flow_blackhole_seen", Of: measure.OfRun, Quant: true, Unit: "seconds", Doc: "Time from the beginning of the first slot in which all packets of a flow are lost until that was known."},
	{Name: "flow_loop_seen", Of: measure.OfRun, Quant: true, Unit: "seconds", Doc: "Time from the beginning of the slot in which a loop begins until it was known."},
}
