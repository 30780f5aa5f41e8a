package point

import (
	"gswitch/qcn"
	"gswitch/units"
)

// Section is qcn in documents.
type Section struct {
	SetPoint units.Size `yaml:"set_point" range:"0,4294967295" default:"26KB" doc:"Depth that is held."`
	Weight   *int       `yaml:"weight" range:"0,64" default:"2" doc:"How much growth counts beside depth."`
	Sample   units.Size `yaml:"sample" range:"0,4294967295" default:"150KB" doc:"Bytes from one sampled frame to the next where the queue is at its set point."`
}

// Options returns the Config of a port.
func (s *Section) Options(queues uint8, _ uint64) (any, error) {
	c := Config{Queues: queues, Params: qcn.Params{SetPoint: uint32(s.SetPoint), Weight: uint32(*s.Weight), Sample: uint32(s.Sample)}}
	return c, c.Params.Validate()
}
