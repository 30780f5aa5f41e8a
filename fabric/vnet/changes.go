package vnet

import (
	"fmt"

	"gswitch/frame"
	"gswitch/vswitch"
)

// Change makes a switch carry out a change. The error says as well why a feature refused a
// call. Apart from frames, links and time, changes are all that alters a switch during a
// run.
func (n *Network) Change(now frame.Time, sw int, c vswitch.Change) error {
	cmd, err := n.Switches[sw].Prepare(c)
	if err != nil {
		return fmt.Errorf("virtual network %s: %s: %w", n.Topology.Name, n.SwitchName(sw), err)
	}
	node := n.engine[n.swNode[sw]]
	if at := n.Engine.LocalTime(node, now); n.changed != nil {
		n.changed(at, sw, cmd)
	} else {
		cmd.Do(at)
	}
	n.Engine.Poke(node)
	if call, is := c.(*vswitch.CallFeature); is {
		return call.Refusal()
	}
	return nil
}

// OnChange sets the function that carries out the commands of switches, which is to call
// their Do, by the switch's own time: a record notes which of its calls came of them.
func (n *Network) OnChange(f func(now frame.Time, sw int, c frame.Command)) { n.changed = f }
