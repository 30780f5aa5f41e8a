package clocks

import (
	"fmt"
	"slices"

	"gswitch/fabric/measure"
)

// values are what runs have of it.
var values = slices.Concat(seenValues(), controllerValues)

// controllerValues are those of the controller.
var controllerValues = []measure.Key{
	{Name: "clock_plans_total", Of: measure.OfRun, Doc: "Plans that the controller made after the first."},
	{Name: "clock_unplanned_total", Of: measure.OfRun, Doc: "Times that it found none."},
	{Name: "clock_devices_total", Of: measure.OfRun, Doc: "Nodes that were configured anew by these plans, all plans together."},
	{Name: "clock_disagreed_total", Of: measure.OfRun, Doc: "Times that what a node of a mesh received could not be true together (marzullo)."},
}

// seenValues are those of what is seen of clocks.
func seenValues() []measure.Key {
	v := []measure.Key{
		{Name: "clock_eps", Of: measure.OfRun | measure.OfWindow, Quant: true, Unit: "seconds", Doc: "Uncertainty that clocks say they have, at all samples of all nodes that work, with clock."},
		{Name: "clock_error", Of: measure.OfRun | measure.OfWindow, Quant: true, Unit: "seconds", Doc: "What these clocks differ in truth from the root that they follow."},
		{Name: "clock_watched_eps", Of: measure.OfRun | measure.OfWindow, Quant: true, Unit: "seconds", Doc: "Uncertainty of the clock of the node clock.watch."},
		{Name: "clock_watched_eps_min_seconds", Of: measure.OfRun | measure.OfWindow, Doc: "The least of it."},
		{Name: "clock_idle_max_seconds", Of: measure.OfRun | measure.OfWindow, Doc: "Longest that a node had received no message of the root."},
		{Name: "clock_quiet_max_seconds", Of: measure.OfRun | measure.OfWindow, Doc: "Use clock_idle_max_seconds: this name is removed in the next version."},
		{Name: "clock_found", Of: measure.OfRun | measure.OfWindow, Quant: true, Unit: "seconds", Doc: "How long nodes that turned to their second parent had received nothing, at the first look behind that."},
		{Name: "clock_samples_total", Of: measure.OfRun, Doc: "Samples of clocks that say a bound, those before the warm-up and of nodes that failed included."},
		{Name: "clock_broken_total", Of: measure.OfRun, Doc: "Of these, the ones whose error was larger than the bound. There must not be any."},
		{Name: "clock_unknown_total", Of: measure.OfRun, Doc: "Samples of clocks that know no bound: no root has set them yet, or know that they are broken."},
		{Name: "clock_roots_max", Of: measure.OfRun, Doc: "Most nodes that took themselves for the root at one time, those that failed not counted."},
	}
	for _, of := range [...][2]string{{"", "switches"}, {"host_", "hosts"}} {
		v = append(v, measure.Key{Name: of[0] + "clock_working_gaps_total", Of: measure.OfRun, Doc: "Times that " + of[1] + " received no sync message for longer than one lost message explains, or, where all clocks send by a timer, for as long or until a controller acts, though they worked, and what worked connected them with the others."},
			measure.Key{Name: of[0] + "clock_working_impacted_seconds_total", Of: measure.OfRun, Doc: "The length of these times together, each from the last message to the next: the impacted device time of Sundial (figure 3.20)."})
	}
	for d := 1; d <= depths; d++ {
		v = append(v, measure.Key{Name: depthKey(d), Of: measure.OfRun, Doc: fmt.Sprintf("Largest uncertainty of a clock that is %d hops from the root.", d)})
	}
	v[len(v)-1].Doc = fmt.Sprintf("Largest uncertainty of a clock that is %d hops from the root, or more.", depths)
	return v
}
