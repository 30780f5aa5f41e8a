package vswitch

import (
	"fmt"

	"gswitch/command"
	"gswitch/feature"
	"gswitch/frame"
)

// CallFeature calls a feature of the switch, on the worker that owns the ports
// (Switch.Owner).
type CallFeature struct {
	Feature string
	Call    Call
	Refused error // set when it is done: the switch does not have the feature
}

// Refusal returns why the call was refused when it was carried out, by the switch or by the
// feature; nil if it was not.
func (c *CallFeature) Refusal() error {
	if c.Refused != nil {
		return c.Refused
	}
	return feature.Refusal(c.Call)
}

func (c *CallFeature) prepare(sw *Switch) (func(frame.Time), error) {
	n := sw.Owner()
	return func(now frame.Time) {
		if state := n.Feature(c.Feature); state != nil {
			c.Call.Do(now, state)
		} else {
			c.Refused = fmt.Errorf("the switch has no %s in its configuration", c.Feature)
		}
	}, nil
}

// Owner returns the node that owns the ports: that of the first port, if several nodes
// have some, and node 0 if there is no port.
func (sw *Switch) Owner() *Node {
	ports := sw.Program().Config.Ports
	for i := range ports {
		if ports[i].Name != "" {
			return sw.Nodes[ports[i].Worker]
		}
	}
	return sw.Nodes[0]
}

// longestName bounds the name of a feature in an encoded call.
const longestName = 256

// Encode implements Change.
func (c *CallFeature) Encode(b []byte) []byte {
	return c.Call.Encode(command.AppendString(append(b, callFeatureKind), c.Feature))
}

func decodeCall(d *command.Decoder) (Change, error) {
	c := &CallFeature{Feature: d.String(longestName)}
	f := Find(c.Feature)
	if d.Bad() || f == nil || f.Decode == nil {
		return nil, fmt.Errorf("a call of %q, which is no feature that is called", c.Feature)
	}
	var err error
	c.Call, err = f.Decode(d.B)
	return c, err
}
