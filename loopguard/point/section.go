package point

import (
	"fmt"
	"slices"

	"gswitch/frame"
	"gswitch/units"
	"gswitch/vswitch"
)

// Options are those of a switch.
type Options struct {
	Interval frame.Time // between two probes of a port
	Shut     frame.Time // for how long a port is shut
	Ports    []string   // that are watched; nil: all that bridge
}

// Section is loops in documents.
type Section struct {
	Interval units.Duration `yaml:"interval" range:"100ms,1h" default:"1s" doc:"Between two frames that a port sends to find loops."`
	Shut     units.Duration `yaml:"shut" range:"1s,24h" default:"300s" doc:"For how long a port is shut that gets one of them back."`
	Ports    []string       `yaml:"ports" doc:"Ports that are watched. All that bridge if left out."`
}

// Options returns the Options of a switch.
func (s *Section) Options(cfg *vswitch.Config) (any, error) {
	for i, name := range s.Ports {
		at := slices.IndexFunc(cfg.Ports, func(p vswitch.PortConfig) bool { return p.Name == name && name != "" })
		switch {
		case at < 0:
			return nil, &vswitch.KeyError{Key: fmt.Sprintf("ports[%d]", i), Err: fmt.Errorf("there is no port %q", name)}
		case len(cfg.Ports[at].Addresses) > 0:
			return nil, &vswitch.KeyError{Key: fmt.Sprintf("ports[%d]", i), Err: fmt.Errorf("port %q routes; loops are those of ports that bridge", name)}
		}
	}
	return Options{Interval: frame.Time(s.Interval), Shut: frame.Time(s.Shut), Ports: s.Ports}, nil
}

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Check: check, New: newGuard, Counters: counters,
		Whole:   func() vswitch.WholeSection { return new(Section) },
		Doc:     "Ports that a frame of the switch comes back to are shut for a while: they are on a loop.",
		Nowhere: "none of these ports is watched: those with an address route, and its list ports may leave out others"})
}
