package scenario

import (
	"fmt"
	"slices"

	"gswitch/options"
	"gswitch/transport"
)

// Recovery returns the scheme of loss recovery with its options. Cap and timeouts, which
// all schemes share, are left to the caller.
func (t *Transport) Recovery() (transport.Config, error) {
	kind, err := transport.Lookup(t.Mode)
	if err != nil {
		return transport.Config{}, err
	}
	given := t.Given()
	for name := range given {
		if !slices.ContainsFunc(kind.Params, func(p options.Param) bool { return p.Name == name }) {
			delete(given, name)
		}
	}
	for name, s := range t.Params {
		if _, twice := given[name]; twice {
			return transport.Config{}, fmt.Errorf("%s stands under params and beside it; leave one out", name)
		}
		given[name] = string(s)
	}
	c, err := kind.Configure(given)
	c.Recursive = t.RC3.Loop()
	return c, err
}
