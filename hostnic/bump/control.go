package bump

import (
	"maps"

	"gswitch/cc"
)

// defaults are options of congestion control that channels have in place of
// the published ones of simulations. Few flows share a host's link, and T is
// several round trips of the idle network, since it must hold what the machine
// adds. HPCC moves its reference once in a round trip, by a U that is an average
// over T: with a multiplicative increase each time it answers the same
// measurement several times, overshoots, and the links are empty by turns.
// maxStage=5 is what the paper's testbed has (HPCC section 5.1). n=10 is for as
// many flows on a link as share that of a host, so that additive increase
// finds what is free in between.
var defaults = map[string]map[string]string{
	"hpcc": {"maxStage": "5", "n": "10"},
}

// Control returns the congestion control of channels: the one of this name with
// these options, and those that channels have by default.
func Control(name string, options map[string]string) (func(*cc.Env) cc.Algorithm, error) {
	if in, ok := cc.Lookup(name); ok && defaults[in.Name] != nil {
		all := maps.Clone(defaults[in.Name])
		maps.Copy(all, options)
		options = all
	}
	return cc.Factory(name, options)
}
