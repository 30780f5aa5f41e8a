package vnet

import (
	"errors"
	"fmt"
	"slices"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/hostnic"
)

// CommandKind is the kind of a Command.
type CommandKind uint8

// Kinds of commands.
const (
	CommandOpen    CommandKind = iota // open the host's end of a connection
	CommandSend                       // send a message; at a receiver of TCP: expect one
	CommandClose                      // close the host's end
	CommandInject                     // send a frame of no connection as it is
	CommandReports                    // hand over what a feature of the host has to report
	CommandCall                       // call a feature of the host
)

// Command notes what the network had one of its hosts do. Apart from frames and time,
// commands are the only input of hosts. It is no frame.Command, which would do it: the
// network calls the host, and reports a Command to OnCommand. Carry repeats it in another
// network. In the record of a host it stands in the form of a frame.Command whose Do does
// nothing (fabric/run/lone.go).
type Command struct {
	Kind  CommandKind
	Ends  Ends
	Flow  Flow   // of CommandOpen, with the ports of the sender and the receiver filled in
	Bytes uint64 // of CommandSend
	ID    uint64
	Frame []byte // of CommandInject; of CommandCall the call, as it is encoded
	Class uint8
	Of    string // of CommandReports and CommandCall: the feature
}

// OnCommand sets the function that is called for each command: after the host has carried
// it out, or before, if it is a close. c is valid only during the call.
func (n *Network) OnCommand(f func(now frame.Time, host int, c *Command)) { n.flows.command = f }

// commanded reports the command that an open connection gives to its sender, its
// receiver, or both.
func (n *Network) commanded(now frame.Time, i uint32, of [2]bool, c Command) {
	if n.flows.command == nil {
		return
	}
	k := &n.flows.conns[i]
	c.Ends, c.Flow = Ends{Conn(i + 1), k.generation, [2]uint32{k.qpA, k.qpB}}, k.flow
	if k.flow.TCP != nil {
		c.Flow.SrcPort = k.port
	}
	for end, host := range [2]int{k.flow.Src, k.flow.Dst} {
		if of[end] {
			n.flows.command(now, host, &c)
		}
	}
}

// Inject has a host send a frame as it is, in a class, and reports whether there was memory
// for it. A command that there was none for is not noted: nothing was sent.
func (n *Network) Inject(now frame.Time, host int, b []byte, class uint8) bool {
	if !n.Hosts[host].Inject(n.hostTime(now, host), b, class) {
		return false
	}
	if n.flows.command != nil {
		n.flows.command(now, host, &Command{Kind: CommandInject, Frame: b, Class: class})
	}
	n.Engine.Poke(n.engine[n.hostNode[host]])
	return true
}

// TakeReports takes the reports that are ready of a feature of a host. taken is called for
// each, with its body, which is valid until taken returns; nil: the reports are discarded.
func (n *Network) TakeReports(now frame.Time, host int, name string, taken func(body []byte)) {
	if source, ok := n.Hosts[host].Feature(name).(feature.Reporter); ok {
		feature.TakeReports(source, nil, taken)
	}
	if n.flows.command != nil {
		n.flows.command(now, host, &Command{Kind: CommandReports, Of: name})
	}
}

// Call calls a feature of a host. The error says as well why the feature refused.
func (n *Network) Call(now frame.Time, host int, name string, c hostnic.Call) error {
	state := n.Hosts[host].Feature(name)
	if state == nil {
		return fmt.Errorf("virtual network %s: host %s has no %s", n.Topology.Name, n.HostName(host), name)
	}
	c.Do(n.hostTime(now, host), state)
	if n.flows.command != nil {
		n.flows.command(now, host, &Command{Kind: CommandCall, Of: name, Frame: c.Encode(nil)})
	}
	n.Engine.Poke(n.engine[n.hostNode[host]])
	return feature.Refusal(c)
}

// carryCall calls a feature as a recorded command did.
func (n *Network) carryCall(now frame.Time, host int, c *Command) error {
	i := slices.IndexFunc(hostnic.Features(), func(f *hostnic.Feature) bool { return f.Name == c.Of })
	if i < 0 || hostnic.Features()[i].Decode == nil {
		return fmt.Errorf("virtual network %s: a call of %q, which is no feature that is called", n.Topology.Name, c.Of)
	}
	call, err := hostnic.Features()[i].Decode(c.Frame)
	if err != nil {
		return err
	}
	return n.Call(now, host, c.Of, call)
}

// Carry makes one host carry out a command that was recorded in another network with the
// same configuration. The other ends of its connections are never opened: what they send
// must arrive as frames. The commands of a connection must come in their order. If a
// command depends on one that is missing, Carry returns an error and does nothing.
func (n *Network) Carry(now frame.Time, host int, c *Command) error {
	i := int(c.Ends.Conn) - 1
	if c.Kind > CommandCall {
		return fmt.Errorf("virtual network %s: there is no kind %d of commands", n.Topology.Name, c.Kind)
	}
	if c.Kind == CommandReports && host >= 0 && host < len(n.Hosts) {
		n.TakeReports(now, host, c.Of, nil)
		return nil
	}
	if c.Kind == CommandCall && host >= 0 && host < len(n.Hosts) {
		return n.carryCall(now, host, c)
	}
	if c.Kind == CommandInject && host >= 0 && host < len(n.Hosts) {
		if len(c.Frame) > n.Hosts[host].Arena().Room() || c.Class > 7 || !n.Inject(now, host, c.Frame, c.Class) {
			return fmt.Errorf("virtual network %s: a frame of %d bytes cannot be sent in class %d", n.Topology.Name, len(c.Frame), c.Class)
		}
		return nil
	}
	if host < 0 || host >= len(n.Hosts) || i < 0 || i >= maxConns {
		return fmt.Errorf("virtual network %s: there is no connection %d at host %d of %d", n.Topology.Name, c.Ends.Conn, host, len(n.Hosts))
	}
	if c.Kind == CommandOpen {
		return n.carryOpen(now, host, c)
	}
	if i >= len(n.flows.conns) || !n.flows.conns[i].open || n.flows.conns[i].generation != c.Ends.Generation {
		return fmt.Errorf("virtual network %s: connection %d is not open", n.Topology.Name, c.Ends.Conn)
	}
	k := &n.flows.conns[i]
	sends := host == k.flow.Src
	if c.Kind == CommandClose {
		return n.carryClose(now, host, k)
	}
	switch {
	case k.flow.TCP == nil:
		if err := n.Hosts[host].SendMessage(n.hostTime(now, host), k.qpA, c.Bytes, c.ID); err != nil {
			return err
		}
	case sends:
		if err := n.stacks[host].Send(n.hostTime(now, host), k.qpA, c.Bytes, c.ID); err != nil {
			return err
		}
		n.stirred(now, host)
	default:
		n.stacks[host].Expect(k.qpB, c.Bytes)
		return nil
	}
	k.posted += c.Bytes
	k.begin(now)
	return nil
}

// carryOpen opens one end of a connection.
func (n *Network) carryOpen(now frame.Time, host int, c *Command) error {
	fl, f := &n.flows, &c.Flow
	if f.Src == f.Dst || f.Src < 0 || f.Dst < 0 || f.Src >= len(n.Hosts) || f.Dst >= len(n.Hosts) || host != f.Src && host != f.Dst || f.TCP != nil && n.stacks == nil {
		return fmt.Errorf("virtual network %s: there is no connection from host %d to host %d at host %d of %d", n.Topology.Name, f.Src, f.Dst, host, len(n.Hosts))
	}
	i := uint32(c.Ends.Conn) - 1
	for len(fl.conns) <= int(i) {
		fl.conns = append(fl.conns, conn{})
	}
	k := &fl.conns[i]
	if k.open {
		return fmt.Errorf("virtual network %s: connection %d is open already", n.Topology.Name, c.Ends.Conn)
	}
	qpn, at := c.Ends.QPN, n.hostTime(now, host)
	own, other := 0, 1
	if host == f.Dst {
		own, other = 1, 0
	}
	if f.TCP != nil {
		// The numbers of its ends are of no use to others.
		a, b := n.streamPair(f, i, c.Ends.Generation)
		open, o := n.stacks[host].Dial, &a
		if own == 1 {
			open, o = n.stacks[host].Listen, &b
		}
		var err error
		if qpn[own], err = open(at, o); err != nil {
			return err
		}
		fl.streams[host][qpn[own]] = i
	} else {
		var pair [2]hostnic.QPConfig
		pair[0], pair[1] = n.pair(f, i, c.Ends.Generation)
		pair[own].Number = qpn[own]
		if _, err := n.Hosts[host].OpenQP(at, &pair[own]); err != nil {
			return err
		}
		if err := n.Hosts[host].ConnectQP(at, qpn[own], qpn[other]); err != nil {
			return errors.Join(err, n.Hosts[host].CloseQP(at, qpn[own]))
		}
		fl.peer[host][qpn[own]] = i
	}
	*k = conn{flow: *f, qpA: qpn[0], qpB: qpn[1], generation: c.Ends.Generation, open: true, arrivals: k.arrivals[:0], starts: k.starts[:0]}
	fl.count.Open++
	if f.TCP != nil && own == 0 {
		n.stirred(now, host)
	}
	return nil
}

// carryClose closes the local end of a connection.
func (n *Network) carryClose(now frame.Time, host int, k *conn) error {
	k.open = false
	n.flows.count.Open--
	qpn := k.qpA
	if host == k.flow.Dst {
		qpn = k.qpB
	}
	if k.flow.TCP != nil {
		delete(n.flows.streams[host], qpn)
		n.stacks[host].Close(n.hostTime(now, host), qpn)
		n.stirred(now, host)
		return nil
	}
	delete(n.flows.peer[host], qpn)
	return n.Hosts[host].CloseQP(n.hostTime(now, host), qpn)
}
