package ordinary

import (
	"gswitch/clocksync"
	"gswitch/hostnic"
)

// Section is clock in documents of hosts.
type Section struct {
	clocksync.Times
	// Behind the root there is a switch at least, so the default is not that of switches.
	Hops int `yaml:"hops" range:"1,254" default:"2" doc:"Hops from the root."`
}

// Options returns the clocksync.Options of a host.
func (s *Section) Options(*hostnic.Config) (any, error) {
	o, err := s.Times.Options(s.Hops, 0, clocksync.NoPort)
	if err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return o, nil
}
