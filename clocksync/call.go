package clocksync

import (
	"bytes"
	"encoding/json"
	"fmt"

	"gswitch/command"
	"gswitch/feature"
	"gswitch/frame"
)

// Follow is a call of a clock (feature.Call): it gives the clock other options, as a
// controller does that works them out for each clock.
type Follow struct {
	Options
	Refused error `json:"-"` // set when it is done
}

// Refusal implements feature.Refuser.
func (c *Follow) Refusal() error { return c.Refused }

// SendBy is a call of a clock: messages go to these ports, too, or with Only to no others.
type SendBy struct {
	Ports Ports
	Only  bool
}

// Adjust is a call of a clock: it sets the clock to what another scheme found
// (Device.Adjust). Only runs whose clocks are kept by such a scheme make it, and these are
// not recorded.
type Adjust struct {
	To, Bound frame.Time
	Root      uint64
	Hops      uint8
}

// called is the state of a feature that keeps a clock.
type called interface {
	Adjust(now, to, base frame.Time, root uint64, hops uint8)
	Set(now frame.Time, o Options) error
	Widen(more *Ports)
	Narrow(to Ports)
}

// Do implements feature.Call.
func (c *Follow) Do(now frame.Time, state any) { c.Refused = state.(called).Set(now, c.Options) }

// Do implements feature.Call.
func (c *SendBy) Do(_ frame.Time, state any) {
	if k := state.(called); c.Only {
		k.Narrow(c.Ports)
	} else {
		k.Widen(&c.Ports)
	}
}

// Do implements feature.Call.
func (c *Adjust) Do(now frame.Time, state any) {
	state.(called).Adjust(now, c.To, c.Bound, c.Root, c.Hops)
}

// The first byte of an encoded call.
const (
	planKind   = feature.PlanKind
	followKind = 2
	sendByKind = 3
	adjustKind = 4
)

// Encode implements feature.Call.
func (c *Follow) Encode(b []byte) []byte {
	text, err := json.Marshal(&c.Options)
	if err != nil {
		panic(err) // cannot happen: it has only numbers
	}
	return append(append(b, followKind), text...)
}

// Encode implements feature.Call.
func (c *SendBy) Encode(b []byte) []byte {
	b = append(b, sendByKind, 0)
	if c.Only {
		b[len(b)-1] = 1
	}
	for _, w := range c.Ports {
		b = be.AppendUint64(b, w)
	}
	return b
}

// Encode implements feature.Call.
func (c *Adjust) Encode(b []byte) []byte {
	b = append(b, adjustKind, c.Hops)
	return be.AppendUint64(be.AppendUint64(be.AppendUint64(b, uint64(c.To)), uint64(c.Bound)), c.Root)
}

func decodeFollow(text []byte) (feature.Call, error) {
	c, d := &Follow{}, json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c.Options); err != nil {
		return nil, fmt.Errorf("options of a clock: %w", err)
	}
	if text[0] != '{' || d.InputOffset() != int64(len(text)) {
		return nil, fmt.Errorf("options of a clock: %q is not one object, and nothing else", text)
	}
	return c, nil
}

// DecodeCall is the inverse of Encode of the calls of a clock.
func DecodeCall(b []byte) (feature.Call, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("a call of a clock without a kind")
	}
	switch b[0] {
	case planKind:
		return feature.DecodePlan(b)
	case followKind:
		return decodeFollow(b[1:])
	case sendByKind:
		d := command.Decoder{B: b[1:]}
		c := &SendBy{Only: d.Byte(1) == 1}
		for i := range c.Ports {
			c.Ports[i] = decodeWord(&d)
		}
		return c, d.Err("ports of a clock")
	case adjustKind:
		d := command.Decoder{B: b[1:]}
		c := &Adjust{Hops: d.Byte(255), To: frame.Time(decodeWord(&d)), Bound: frame.Time(decodeWord(&d)), Root: decodeWord(&d)}
		if c.To < -maxSeconds*frame.Second || c.To > maxSeconds*frame.Second || c.Bound < 0 || c.Bound > longest {
			d.Fail()
		}
		return c, d.Err("an adjustment of a clock")
	}
	return nil, fmt.Errorf("a call of a clock of the unknown kind %d", b[0])
}

func decodeWord(d *command.Decoder) (w uint64) {
	for range 8 {
		w = w<<8 | uint64(d.Byte(255))
	}
	return w
}
