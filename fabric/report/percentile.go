package report

import (
	"strconv"
	"strings"

	"gswitch/fabric/results"
)

// enough reports whether n observations define a percentile: at least one of
// them has to lie beyond it.
func enough(percentile, n float64) bool { return n*(100-percentile) >= 100-1e-9 }

// enoughFlows reports whether a run has flows enough for a value, if that is a
// percentile of flows: of eight there is no p99.9. What is sampled over time
// has samples enough.
func enoughFlows(r *results.Run, name string) bool {
	group, own := "", name
	if i := strings.LastIndexByte(name[:strings.IndexByte(name+"_", '_')], '.'); i >= 0 {
		group, own = name[:i+1], name[i+1:]
	}
	rest, ok := strings.CutPrefix(own, "slowdown_p")
	if !ok {
		if rest, ok = strings.CutPrefix(own, "fct_p"); !ok {
			return true
		}
	}
	percentile, err := strconv.ParseFloat(strings.TrimSuffix(rest, "_seconds"), 64)
	flows, known := r.Values[group+"flows_total"]
	if err != nil || !known {
		return true
	}
	return enough(percentile, flows-r.Values[group+"flows_unfinished_total"])
}

// anyEnoughFlows reports whether one of the runs has flows enough for the value.
func anyEnoughFlows(runs []results.Run, name string) bool {
	for i := range runs {
		if _, ok := runs[i].Values[name]; ok && enoughFlows(&runs[i], name) {
			return true
		}
	}
	return false
}
