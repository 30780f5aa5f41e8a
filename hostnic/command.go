package hostnic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"gswitch/command"
	"gswitch/feature"
	"gswitch/frame"
)

// Change is a change of a NIC between two steps, whatever the host is used for: TakeReports,
// CallFeature or Inject. Those who use NICs have changes of their own beside them
// (agent.Change, vnet.HostChange).
type Change interface {
	// Encode appends the change to b. DecodeChange is its inverse.
	Encode(b []byte) []byte
	// Do makes the change.
	Do(now frame.Time, n *NIC)
	// String says what it is, as listings of records do.
	String() string
}

// TakeReports takes the reports of what features have counted, in a host that is
// recorded. The time at which reports are taken decides what is counted in which of them,
// so it belongs into the record.
type TakeReports struct {
	// Feature is the only one whose reports are taken; "": all.
	Feature string
	// Taken is called for each report with the feature and the report's body, which is
	// valid until it returns. nil: discard the reports.
	Taken func(feature string, body []byte)
}

// CallFeature calls a feature of the NIC.
type CallFeature struct {
	Feature string
	Call    Call
	Refused error // set when it is done: the host has no such feature
}

// Inject has the NIC send a frame as it is.
type Inject struct {
	Frame   []byte
	Class   uint8
	Sent    bool  // set when it is done; else there was no memory for the frame, or
	Refused error // the frame is not one that can be sent
}

// Refusal returns why the call was refused when it was carried out, by the host or by the
// feature; nil if it was not.
func (c *CallFeature) Refusal() error {
	if c.Refused != nil {
		return c.Refused
	}
	return feature.Refusal(c.Call)
}

// Refusal returns why the frame cannot be sent; nil if it can.
func (c *Inject) Refusal() error { return c.Refused }

// Do implements Change.
func (c TakeReports) Do(_ frame.Time, n *NIC) {
	var b []byte
	for _, f := range features {
		if source, ok := n.Feature(f.Name).(feature.Reporter); ok && (c.Feature == "" || c.Feature == f.Name) {
			b = feature.TakeReports(source, b, func(body []byte) {
				if c.Taken != nil {
					c.Taken(f.Name, body)
				}
			})
		}
	}
}

// Do implements Change.
func (c *CallFeature) Do(now frame.Time, n *NIC) {
	if state := n.Feature(c.Feature); state != nil {
		c.Call.Do(now, state)
	} else {
		c.Refused = fmt.Errorf("the host has no %s in its configuration", c.Feature)
	}
}

// Do implements Change.
func (c *Inject) Do(now frame.Time, n *NIC) {
	if len(c.Frame) > n.arena.Room() || c.Class > 7 {
		c.Refused = fmt.Errorf("a frame of %d bytes cannot be sent in class %d", len(c.Frame), c.Class)
		return
	}
	c.Sent = n.Inject(now, c.Frame, c.Class)
}

func (c TakeReports) String() string { return strings.TrimSuffix("reports of "+c.Feature, " of ") }

func (c *CallFeature) String() string {
	return fmt.Sprintf("call of %s: %s", c.Feature, strings.TrimPrefix(fmt.Sprintf("%T", c.Call), "*"))
}

func (c *Inject) String() string { return fmt.Sprintf("frame of %d bytes", len(c.Frame)) }

// The first byte of an encoded change. Those of agent and vnet, which carry these as well,
// are below takeReportsKind, or above lastKind.
const (
	takeReportsKind = 6
	callFeatureKind = 7
	injectKind      = 8
	lastKind        = 15
)

// longestName bounds the name of a feature in an encoded change.
const longestName = 256

// Encode implements Change.
func (c TakeReports) Encode(b []byte) []byte {
	if b = append(b, takeReportsKind); c.Feature != "" {
		b = command.AppendString(b, c.Feature)
	}
	return b
}

// Encode implements Change.
func (c *CallFeature) Encode(b []byte) []byte {
	return c.Call.Encode(command.AppendString(append(b, callFeatureKind), c.Feature))
}

// Encode implements Change.
func (c *Inject) Encode(b []byte) []byte {
	return append(binary.AppendUvarint(append(b, injectKind, c.Class), uint64(len(c.Frame))), c.Frame...)
}

// IsChange reports whether DecodeChange decodes b, and not one who uses NICs.
func IsChange(b []byte) bool { return len(b) > 0 && b[0] >= takeReportsKind && b[0] <= lastKind }

// DecodeChange is the inverse of Change.Encode.
func DecodeChange(b []byte) (Change, error) {
	if len(b) == 0 {
		return nil, errors.New("a change of a host without a kind")
	}
	d := command.Decoder{B: b[1:]}
	var c Change
	switch b[0] {
	case takeReportsKind:
		take := TakeReports{}
		if len(d.B) > 0 {
			take.Feature = d.String(longestName)
		}
		c = take
	case callFeatureKind:
		return decodeCall(&d)
	case injectKind:
		c = &Inject{Class: d.Byte(7), Frame: []byte(d.String(math.MaxUint16))}
	default:
		return nil, fmt.Errorf("a change of a host of the unknown kind %d", b[0])
	}
	if err := d.Err(fmt.Sprintf("a change of a host of kind %d", b[0])); err != nil {
		return nil, err
	}
	return c, nil
}

func decodeCall(d *command.Decoder) (Change, error) {
	c := &CallFeature{Feature: d.String(longestName)}
	for _, f := range features {
		if f.Name == c.Feature && f.Decode != nil && !d.Bad() {
			call, err := f.Decode(d.B)
			if err != nil {
				return nil, err
			}
			c.Call = call
			return c, nil
		}
	}
	return nil, fmt.Errorf("a call of %q, which is no feature that is called", c.Feature)
}
