package live

import (
	"errors"

	"github.com/gswitch/gswitch/fabric/results"
	"github.com/gswitch/gswitch/fabric/vnet"
)

// New returns an engine for spec.
func New(c Config, spec *vnet.EngineSpec) (vnet.Engine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return nil, errors.New("not yet")
}

// Timed is an engine that tells how well it kept time.
type Timed interface {
	// Timing is complete after Halt.
	Timing() *results.Timing
}
