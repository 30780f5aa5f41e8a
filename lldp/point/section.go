package point

import (
	"fmt"
	"slices"

	"gswitch/frame"
	"gswitch/units"
	"gswitch/vswitch"
)

// maxText bounds, in bytes, what a switch reports of itself in one value.
const maxText = 200

// Options are those of a switch.
type Options struct {
	Interval    frame.Time // between two frames of a port
	Hold        int        // intervals for which neighbours keep one
	System      string     // name; "": that of the switch
	Description string
	Ports       []string // that take part; nil: all
}

// ttl is for how many seconds neighbours keep what a frame says (IEEE 802.1AB clause
// 9.2.5.22).
func (o *Options) ttl() uint16 {
	s := int64((o.Interval + frame.Second - 1) / frame.Second)
	return uint16(min(s*int64(o.Hold)+1, maxTTL))
}

// Section is lldp in documents.
type Section struct {
	Interval    units.Duration `yaml:"interval" range:"1s,1h" default:"30s" doc:"Between two frames of a port."`
	Hold        int            `yaml:"hold" range:"1,100" default:"4" doc:"Intervals for which neighbours keep a frame."`
	System      string         `yaml:"system" doc:"Name that is announced to neighbours. That of the switch if left out."`
	Description string         `yaml:"description" default:"gswitch" doc:"Description that is announced to neighbours."`
	Ports       []string       `yaml:"ports" doc:"Ports that announce who they are and take what neighbours announce. All if left out."`
}

// Options returns the Options of a switch.
func (s *Section) Options(cfg *vswitch.Config) (any, error) {
	for _, t := range [...]struct{ key, text string }{{"system", s.System}, {"description", s.Description}} {
		if len(t.text) > maxText {
			return nil, &vswitch.KeyError{Key: t.key, Err: fmt.Errorf("is %d bytes long; at most %d are possible", len(t.text), maxText)}
		}
	}
	for i, name := range s.Ports {
		if !slices.ContainsFunc(cfg.Ports, func(p vswitch.PortConfig) bool { return p.Name == name && name != "" }) {
			return nil, &vswitch.KeyError{Key: fmt.Sprintf("ports[%d]", i), Err: fmt.Errorf("there is no port %q", name)}
		}
	}
	return Options{Interval: frame.Time(s.Interval), Hold: s.Hold, System: s.System, Description: s.Description, Ports: s.Ports}, nil
}

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Check: check, New: newAgent, Counters: counters,
		Whole: func() vswitch.WholeSection { return new(Section) },
		Doc:   "Ports announce to their neighbours who they are, and keep what these announce (LLDP, IEEE 802.1AB)."})
}
