package vswitch

import (
	"encoding/binary"
	"errors"

	"gswitch/command"
	"gswitch/feature"
	"gswitch/frame"
)

// PlanClock gives the switch's clock its part of a plan that a controller made.
type PlanClock struct {
	feature.ClockPlan
	Err error // set when it is done: why it was rejected
}

var errNoClock = errors.New("the switch has no clock that a controller may plan for")

func (c *PlanClock) prepare(sw *Switch) (func(frame.Time), error) {
	n := sw.ClockNode()
	if n == nil {
		return nil, errNoClock
	}
	k, ok := n.Timekeeper().(feature.Planned)
	if !ok {
		return nil, errNoClock
	}
	return func(now frame.Time) { c.Err = k.TakePlan(int64(now), &c.ClockPlan) }, nil
}

// ClockNode is the node that has the clock: that of all ports.
func (sw *Switch) ClockNode() *Node {
	ports := sw.Program().Config.Ports
	for i := range ports {
		if ports[i].Name != "" {
			return sw.Nodes[ports[i].Worker]
		}
	}
	return nil
}

// Flags of an encoded plan of a clock.
const (
	clockRootFlag   = 1
	clockDeputyFlag = 2
)

// Encode implements Change.
func (c *PlanClock) Encode(b []byte) []byte {
	b = binary.AppendUvarint(append(b, planClockKind), uint64(c.Epoch))
	flags := byte(0)
	if c.Root {
		flags |= clockRootFlag
	}
	if c.Deputy {
		flags |= clockDeputyFlag
	}
	b = append(b, byte(c.Stage), flags)
	for _, v := range []int{c.Parent + 1, c.Second + 1, c.Hops, c.MostHops, len(c.Send)} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	for _, p := range c.Send {
		b = binary.AppendUvarint(b, uint64(p))
	}
	return b
}

func decodePlanClock(d *command.Decoder) Change {
	c := &PlanClock{}
	c.Epoch, c.Stage = uint32(d.Uvarint(1<<32-1)), feature.ClockStage(d.Byte(byte(feature.ClockStages-1)))
	flags := d.Byte(clockRootFlag | clockDeputyFlag)
	c.Root, c.Deputy = flags&clockRootFlag != 0, flags&clockDeputyFlag != 0
	c.Parent, c.Second = int(d.Uvarint(MaxPorts))-1, int(d.Uvarint(MaxPorts))-1
	c.Hops, c.MostHops = int(d.Uvarint(255)), int(d.Uvarint(255))
	for n := d.Uvarint(MaxPorts); n > 0 && !d.Bad(); n-- {
		c.Send = append(c.Send, int(d.Uvarint(MaxPorts-1)))
	}
	return c
}
