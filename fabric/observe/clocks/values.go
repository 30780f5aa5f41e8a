package clocks

import "gswitch/fabric/measure"

// values are what runs have of it.
var values = []measure.Key{
	{Name: "clock_plans_total", Of: measure.OfRun, Doc: "Plans that the controller made after the first."},
	{Name: "clock_unplanned_total", Of: measure.OfRun, Doc: "Times that it found none."},
	{Name: "clock_devices_total", Of: measure.OfRun, Doc: "Nodes that were configured anew by these plans, all plans together."},
	{Name: "clock_disagreed_total", Of: measure.OfRun, Doc: "Times that what a node of a mesh received could not be true together (marzullo)."},
}
