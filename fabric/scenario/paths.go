package scenario

import (
	"gswitch/config"
	"gswitch/units"
	"gswitch/vswitch"
)

// Paths configures the choice among several shortest paths.
type Paths struct {
	Choose     string           `yaml:"choose" enum:"hash,scatter,flowlet,weighted,adaptive,least" default:"hash" doc:"hash: by flow. scatter: at random, frame by frame. flowlet: at random, anew after each pause of a flow (LetFlow). weighted: by flow, in proportion to what fits through each way. adaptive: frame by frame, at random among the ports below the lowest threshold that any is below (DeTail). least: the port with the fewest bytes, frame by frame."`
	Thresholds []units.Size     `yaml:"thresholds" doc:"adaptive: up to four, ascending, in bytes that wait at a port in the frame's class and above. [16KiB, 64KiB] if left out."`
	Times      []units.Duration `yaml:"times" doc:"The same as the time that the port takes to send them, for links of different rates."`
	FlowletGap units.Duration   `yaml:"flowlet_gap" default:"500us" doc:"flowlet: the pause after which a flow may go another way."`
	Assigned   bool             `yaml:"assigned" doc:"true: a frame counts for its port from when that is chosen, also while it waits at the crossbar (switch.crossbar)."`
	Exempt     []int            `yaml:"exempt" range:"0,7" doc:"Classes whose frames go by flow all the same."`
}

// Config returns the configuration of switches.
func (p *Paths) Config() vswitch.PathsConfig { return (*config.Paths)(p).Config() }

// paths checks switch.paths.
func (v *validator) paths() {
	c := v.doc.Switch.Paths.Config()
	if err := c.Validate(); err != nil {
		v.sec.Fail("switch.paths", "%v", err)
	}
}
