package bump

import (
	"maps"

	"gswitch/cc"
)

// Control returns the congestion control of channels: the one of this name with
// these options, and those that machines have in place of the defaults.
func Control(name string, options map[string]string) (func(*cc.Env) cc.Algorithm, error) {
	if in, ok := cc.Lookup(name); ok && in.Machines != nil {
		all := maps.Clone(in.Machines)
		maps.Copy(all, options)
		options = all
	}
	return cc.Factory(name, options)
}
