package copies

import "gswitch/fabric/measure"

// values are what runs have of it.
var values = []measure.Key{
	{Name: "copies_collected_total", Of: measure.OfRun, Doc: "Copies of packets that came to the hosts of measure.traces."},
	{Name: "traces_total", Of: measure.OfRun, Doc: "Packets of which copies came."},
	{Name: "traces_delivered_total", Of: measure.OfRun, Doc: "Of these, the ones that were seen last by a switch that hands them to their destination."},
	{Name: "traces_dropped_total", Of: measure.OfRun, Doc: "Those of which a switch says that it dropped them (drops of a session of switch.watch)."},
	{Name: "traces_lost_total", Of: measure.OfRun, Doc: "Those that were seen last where they should have gone on."},
	{Name: "traces_looped_total", Of: measure.OfRun, Doc: "Those that came to a switch again."},
	{Name: "traces_missing_copies_total", Of: measure.OfRun, Doc: "Hops of these packets of which no copy came, although later hops saw them."},
	{Name: "loop_visits_mean", Of: measure.OfRun, Doc: "How often the packets of the loop with most of them came to each of its switches. Known where any looped."},
	{Name: "uneven_max", Of: measure.OfRun, Doc: "The most packets that one of several next hops of a switch got, in mean shares: 1 is even. Of traced packets, the largest of all switches."},
}
