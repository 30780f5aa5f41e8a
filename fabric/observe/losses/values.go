package losses

import "gswitch/fabric/measure"

// values are what runs have of it.
var values = []measure.Key{
	{Name: "lost_frames_total", Of: measure.OfRun, Doc: "Frames that were lost between two meters: by faults of the link, in the queue before it, and in the tables of the switch behind it. This, as what follows, with switch.lossradar."},
	{Name: "lost_named_total", Of: measure.OfRun, Doc: "Of these, how many the meters' digests named."},
	{Name: "lost_named_share", Of: measure.OfRun, Doc: "The same as a share."},
	{Name: "lost_wrong_total", Of: measure.OfRun, Doc: "Frames that digests named although no link or switch lost them."},
	{Name: "lost_unknown_batches_total", Of: measure.OfRun, Doc: "Batches of which a report was missing."},
	{Name: "lost_strange_reports_total", Of: measure.OfRun, Doc: "Reports of unknown meters, or of another shape."},
	{Name: "lost_decoded_batches_share", Of: measure.OfRun, Doc: "Of the batches of a link in which frames were lost, the share of which every loss was named."},
	{Name: "lost_unknown_total", Of: measure.OfRun, Doc: "Frames that were named and whose cause could not be known."},
	{Name: "lost_congestion_total", Of: measure.OfRun, Doc: "Frames that were named as lost to a full queue."},
	{Name: "lost_blackhole_total", Of: measure.OfRun, Doc: "Frames that were named as lost to a table that sends some flows nowhere."},
	{Name: "lost_random_total", Of: measure.OfRun, Doc: "Frames that were named as lost at random."},
	{Name: "lost_loop_total", Of: measure.OfRun, Doc: "Frames that were named as lost in a loop."},
	{Name: "lost_random_precision_share", Of: measure.OfRun, Doc: "Of the frames named as lost at random, the share that a fault of the link lost so. In virtual time."},
	{Name: "lost_random_recall_share", Of: measure.OfRun, Doc: "Of the frames that faults of links lost at random, the share that was named as such. In virtual time."},
	{Name: "lost_blackhole_precision_share", Of: measure.OfRun, Doc: "Of the frames named as lost to a blackhole, the share that a fault of chosen flows lost. In virtual time."},
	{Name: "lost_blackhole_recall_share", Of: measure.OfRun, Doc: "Of the frames of chosen flows that faults lost, the share that was named as such. In virtual time."},
	{Name: "lost_seen", Of: measure.OfRun, Quant: true, Unit: "seconds", Doc: "Time from a loss, as the entrance of the link dates it, until the collector named it."},
	{Name: "lost_moved_total", Of: measure.OfRun, Doc: "Times that the controller moved what is for a destination off a link that loses frames (controller.losses)."},
	{Name: "lost_moved", Of: measure.OfRun, Quant: true, Unit: "seconds", Doc: "Time from a loss until the controller moved what is for its destination: from the first that was put down to the link."},
}
