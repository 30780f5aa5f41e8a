package vnet

import (
	"fmt"

	"gswitch/frame"
	"gswitch/vswitch"
)

// Change has a switch carry out a change. The error says as well why a feature refused a
// call. Apart from frames, links and time, changes are all that alters a switch during a
// run.
func (n *Network) Change(now frame.Time, sw int, c vswitch.Change) error {
	cmd, err := n.Switches[sw].Prepare(c)
	if err != nil {
		return fmt.Errorf("virtual network %s: %s: %w", n.Topology.Name, n.SwitchName(sw), err)
	}
	node := n.engine[n.swNode[sw]]
	n.carryOut(n.Engine.LocalTime(node, now), n.swNode[sw], cmd)
	n.Engine.Poke(node)
	if call, is := c.(*vswitch.CallFeature); is {
		return call.Refusal()
	}
	return nil
}

// carryOut has a node of the topology carry out a command. All commands come here.
func (n *Network) carryOut(now frame.Time, node int, c frame.Command) {
	if n.command != nil {
		n.command(now, node, c)
	} else {
		c.Do(now)
	}
}

// OnCommand sets the function that carries out the commands of nodes of the topology, which
// is to call their Do, by the node's own time: a record notes which of its calls came of
// them. The function must not keep the command.
func (n *Network) OnCommand(f func(now frame.Time, node int, c frame.Command)) { n.command = f }
