package feature

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gswitch/command"
	"gswitch/frame"
)

// TakePlan is a call of a feature that is Planned: it gives the clock its part of a plan
// that a controller made.
type TakePlan struct {
	ClockPlan
	Refused error // set when it is done
}

// Refusal implements Refuser.
func (c *TakePlan) Refusal() error { return c.Refused }

// Do implements Call.
func (c *TakePlan) Do(now frame.Time, state any) {
	k, ok := state.(Planned)
	if !ok {
		c.Refused = errors.New("there is no clock that a controller may plan for")
		return
	}
	c.Refused = k.TakePlan(int64(now), &c.ClockPlan)
}

// PlanKind is the first byte of an encoded plan, among the calls of a clock.
const PlanKind = 1

// Flags of an encoded plan.
const (
	rootFlag   = 1
	deputyFlag = 2
)

// MaxPorts is how many ports a clock has at most.
const MaxPorts = 256

// mostHops bounds the hops of an encoded plan.
const mostHops = 255

// Encode implements Call.
func (c *TakePlan) Encode(b []byte) []byte {
	b = binary.AppendUvarint(append(b, PlanKind), uint64(c.Epoch))
	flags := byte(0)
	if c.Root {
		flags |= rootFlag
	}
	if c.Deputy {
		flags |= deputyFlag
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

// DecodePlan is the inverse of TakePlan.Encode.
func DecodePlan(b []byte) (Call, error) {
	d := command.Decoder{B: b}
	if kind := d.Byte(255); kind != PlanKind || d.Bad() {
		return nil, fmt.Errorf("a call of a clock of the unknown kind %d", kind)
	}
	c := &TakePlan{}
	c.Epoch, c.Stage = uint32(d.Uvarint(1<<32-1)), ClockStage(d.Byte(byte(numClockStages-1)))
	flags := d.Byte(rootFlag | deputyFlag)
	c.Root, c.Deputy = flags&rootFlag != 0, flags&deputyFlag != 0
	c.Parent, c.Second = int(d.Uvarint(MaxPorts))-1, int(d.Uvarint(MaxPorts))-1
	c.Hops, c.MostHops = int(d.Uvarint(mostHops)), int(d.Uvarint(mostHops))
	for n := d.Uvarint(MaxPorts); n > 0 && !d.Bad(); n-- {
		c.Send = append(c.Send, int(d.Uvarint(MaxPorts-1)))
	}
	return c, d.Err("a plan of a clock")
}
