package vnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"gswitch/command"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/tcp/stack"
)

// HostChange is a change of one host of a network: OpenEnd, Post, CloseEnd, or one of its
// NIC. Apart from frames, links and time, such changes are all that alters a host during
// a run.
type HostChange interface {
	// Encode appends the change to b. DecodeHostChange is its inverse.
	Encode(b []byte) []byte
	// do makes the change, in the host's time, and returns why it was refused.
	do(now frame.Time, n *Network, host int) error
}

// OpenEnd opens the host's end of a connection.
type OpenEnd struct {
	Ends // with TCP, QPN is set when it is done, since it is of no use to others
	// Flow has the ports of the sender and the receiver filled in. The encoding has only
	// Group, Src, Dst, ID, NoECN and the ports of it: the rest must follow from Group
	// and Src.
	Flow Flow
	taps [2]stack.Tap
}

// Post posts a message at the sender's end of a connection. At the receiver's end of one
// over TCP it announces the message.
type Post struct {
	Conn       Conn
	Generation uint32
	Bytes, ID  uint64
}

// CloseEnd closes the host's end of a connection.
type CloseEnd struct {
	Conn       Conn
	Generation uint32
}

// OfNIC is a change of the host's NIC.
type OfNIC struct{ hostnic.Change }

// bound is a change of a host. It implements frame.Command.
type bound struct {
	HostChange
	n       *Network
	host    int
	refused error
}

// Do implements frame.Command.
func (c *bound) Do(now frame.Time) { c.refused = c.do(now, c.n, c.host) }

// given are the changes that hosts are given for each flow, kept to avoid allocations: they
// are carried out one after another.
type given struct {
	open  OpenEnd
	post  Post
	close CloseEnd
	bound *bound
}

// hand has a host carry out a change, and returns why it was refused.
func (n *Network) hand(now frame.Time, host int, c HostChange) error {
	b := n.flows.given.bound
	if n.flows.given.bound = nil; b == nil {
		b = new(bound)
	}
	*b = bound{HostChange: c, n: n, host: host}
	n.carryOut(n.hostTime(now, host), n.hostNode[host], b)
	n.flows.given.bound = b
	return b.refused
}

// ChangeHost has the NIC of a host carry out a change. The error says as well why a
// feature refused a call.
func (n *Network) ChangeHost(now frame.Time, host int, c hostnic.Change) error {
	err := n.hand(now, host, OfNIC{c})
	n.Engine.Poke(n.engine[n.hostNode[host]])
	if err != nil {
		return fmt.Errorf("virtual network %s: host %s: %w", n.Topology.Name, n.HostName(host), err)
	}
	return nil
}

func (c OfNIC) do(now frame.Time, n *Network, host int) error {
	c.Do(now, n.Hosts[host])
	if r, may := c.Change.(feature.Refuser); may {
		return r.Refusal()
	}
	return nil
}

func (c *OpenEnd) do(now frame.Time, n *Network, host int) error {
	fl, i, end := &n.flows, uint32(c.Conn)-1, c.Flow.end(host)
	if c.Flow.TCP != nil {
		return n.openStream(now, c, end)
	}
	if c.QPN[end] == 0 {
		return fmt.Errorf("host %s: connection %d has no queue pair", n.HostName(host), c.Conn)
	}
	var pair [2]hostnic.QPConfig
	pair[0], pair[1] = n.pair(&c.Flow, i, c.Generation)
	own, nic := c.QPN[end], n.Hosts[host]
	pair[end].Number = own
	if _, err := nic.OpenQP(now, &pair[end]); err != nil {
		return err
	}
	if err := nic.ConnectQP(now, own, c.QPN[1-end]); err != nil {
		return errors.Join(err, nic.CloseQP(now, own))
	}
	fl.peer[host][own] = i
	return nil
}

func (c *Post) do(now frame.Time, n *Network, host int) error {
	k := &n.flows.conns[c.Conn-1]
	switch {
	case k.flow.TCP == nil:
		return n.Hosts[host].SendMessage(now, k.qp[k.flow.end(host)], c.Bytes, c.ID)
	case host == k.flow.Dst:
		n.stacks[host].Expect(k.qp[1], c.Bytes)
		return nil
	}
	err := n.stacks[host].Send(now, k.qp[0], c.Bytes, c.ID)
	n.stacks[host].Kick(now)
	return err
}

func (c *CloseEnd) do(now frame.Time, n *Network, host int) error {
	k := &n.flows.conns[c.Conn-1]
	qpn := k.qp[k.flow.end(host)]
	if k.flow.TCP != nil {
		delete(n.flows.streams[host], qpn)
		n.stacks[host].Close(now, qpn)
		n.stacks[host].Kick(now)
		return nil
	}
	delete(n.flows.peer[host], qpn)
	return n.Hosts[host].CloseQP(now, qpn)
}

// The first byte of an encoded change; others are of the NIC.
const (
	openEndKind  = 16
	postKind     = 17
	closeEndKind = 18
)

// noECN is a flag of an encoded connection.
const noECN = 1

// Encode implements HostChange.
func (c *OpenEnd) Encode(b []byte) []byte {
	f, flags := &c.Flow, byte(0)
	if f.NoECN {
		flags = noECN
	}
	b = append(b, openEndKind, flags)
	for _, v := range [...]uint64{uint64(c.Conn), uint64(c.Generation), uint64(c.QPN[0]), uint64(c.QPN[1]),
		uint64(f.Group), uint64(f.Src), uint64(f.Dst), f.ID, uint64(f.SrcPort), uint64(f.AckPort)} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

// Encode implements HostChange.
func (c *Post) Encode(b []byte) []byte {
	b = appendConn(append(b, postKind), c.Conn, c.Generation)
	return binary.AppendUvarint(binary.AppendUvarint(b, c.Bytes), c.ID)
}

// Encode implements HostChange.
func (c *CloseEnd) Encode(b []byte) []byte {
	return appendConn(append(b, closeEndKind), c.Conn, c.Generation)
}

func appendConn(b []byte, c Conn, generation uint32) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(c)), uint64(generation))
}

// DecodeHostChange is the inverse of HostChange.Encode. OpenEnd lacks what its encoding
// does not have.
func DecodeHostChange(b []byte) (HostChange, error) {
	switch {
	case hostnic.IsChange(b):
		c, err := hostnic.DecodeChange(b)
		if err != nil {
			return nil, err
		}
		return OfNIC{c}, nil
	case len(b) == 0:
		return nil, fmt.Errorf("a change of a host without a kind")
	case b[0] == '{':
		return nil, fmt.Errorf("a note of what a host was given, as records of earlier versions have: " +
			"replay the record with the version of the program that its header names")
	}
	d := command.Decoder{B: b[1:]}
	small := func() int { return int(d.Uvarint(math.MaxInt32)) }
	var c HostChange
	switch b[0] {
	case openEndKind:
		o := &OpenEnd{}
		o.Flow.NoECN = d.Byte(noECN) != 0
		o.Conn, o.Generation = decodeConn(&d)
		for end := range o.QPN {
			o.QPN[end] = uint32(d.Uvarint(1<<24 - 1))
		}
		o.Flow.Group, o.Flow.Src, o.Flow.Dst = small(), small(), small()
		o.Flow.ID = d.Uvarint(math.MaxUint64)
		o.Flow.SrcPort, o.Flow.AckPort = uint16(d.Uvarint(math.MaxUint16)), uint16(d.Uvarint(math.MaxUint16))
		c = o
	case postKind:
		p := &Post{}
		p.Conn, p.Generation = decodeConn(&d)
		p.Bytes, p.ID = d.Uvarint(math.MaxUint64), d.Uvarint(math.MaxUint64)
		c = p
	case closeEndKind:
		e := &CloseEnd{}
		e.Conn, e.Generation = decodeConn(&d)
		c = e
	default:
		return nil, fmt.Errorf("a change of a host of the unknown kind %d", b[0])
	}
	return c, d.Err(fmt.Sprintf("a change of a host of kind %d", b[0]))
}

func decodeConn(d *command.Decoder) (Conn, uint32) {
	c := d.Uvarint(math.MaxUint32) // Carry says which are too large
	if c == 0 {
		d.Fail()
	}
	return Conn(c), uint32(d.Uvarint(math.MaxUint32))
}
