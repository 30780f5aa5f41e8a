package vnet

import (
	"gswitch/config"
	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/transport"
	wirefmt "gswitch/wire"
)

// Headers of RoCEv2 over IPv4: Ethernet, IP, UDP, BTH and, after the payload, the ICRC.
// An acknowledgement has an AETH and no payload (IBTA A17, 9.7.5).
const (
	dataHeader = wirefmt.EthernetLen + wirefmt.IPv4Len + wirefmt.UDPLen + wirefmt.BTHLen + wirefmt.ICRCLen
	ackFrame   = dataHeader + wirefmt.AETHLen
)

// Derived holds the values that Build derives from the topology where the configuration
// does not set them.
type Derived struct {
	MTU    int // bytes on the wire of a full data frame, without link overhead
	Header int // the part of MTU that is neither payload nor padding
	Ack    int // bytes on the wire of an acknowledgement

	// Longest is MTU with what not every full data frame has: the header of an RDMA Write,
	// and the telemetry of every switch of the longest path.
	Longest int

	// MaxRTT is the largest round-trip time over all pairs of hosts: propagation both
	// ways, a full data frame stored and forwarded at each hop, and its acknowledgement.
	// The step from an input to an output queue counts as a hop.
	MaxRTT frame.Time
	// MaxBDP is the largest bandwidth-delay product over all pairs, in bytes on the wire:
	// round-trip propagation times the rate of the slowest link.
	MaxBDP uint64

	// BaseRTT is T of congestion control: as configured, or MaxRTT.
	BaseRTT frame.Time
	// Transport is the configuration of the hosts, with the values that Recovery asks
	// for. Cap is MaxBDP in full frames. RTOHigh is round-trip propagation plus the time
	// in which the slowest host link drains the buffer that a port can fill. RTOLow is a
	// third of RTOHigh rounded to 10 us. N is 3 (Mittal et al., SIGCOMM 2018, sections
	// 3.1, 3.2 and 4.1: 110 frames, 320 and 100 us at 40 Gb/s).
	Transport transport.Config
}

// sizes computes the lengths of frames on the wire. switches is how many the longest path
// has.
func (d *Derived) sizes(c *Config, switches int) {
	room, grows := 0, 0
	if c.INT.Mode != inband.None {
		codec := inband.NewCodec(c.INT.Mode, c.INT.Profile)
		room = codec.HeaderLen()
		grows = codec.FullLen(switches) - room
	}
	d.Header = dataHeader + room
	if c.Sizes.Data != 0 {
		d.Header = c.Sizes.Data + room
	}
	d.MTU = d.Header + int(c.padded(uint64(c.payload())))
	d.Longest = d.MTU + grows
	if c.Host.Writes {
		d.Longest += wirefmt.RETHLen
	}
	if c.Streams.On {
		d.MTU = max(d.MTU, tcpHeader+c.payload())
		d.Longest = max(d.Longest, d.MTU)
	}
	d.Ack = ackFrame + room
	switch {
	case room == 0 && c.Sizes.Ack != 0:
		d.Ack = c.Sizes.Ack
	case room != 0 && c.Sizes.AckINT != 0:
		d.Ack = c.Sizes.AckINT
	}
}

// padded returns the bytes that a payload takes in a data frame: RDMA fills up words,
// frames of given sizes do not.
func (c *Config) padded(payload uint64) uint64 {
	if c.Sizes.Data != 0 {
		return payload
	}
	return payload + uint64(wirefmt.RoCEPad(uint32(payload)))
}

// scan examines all pairs of hosts.
func (d *Derived) scan(w *ways, c *Config) error {
	data, ack := c.frame(d.MTU), c.frame(d.Ack)
	return w.pairs(func(hops []hop) {
		there := w.alone(hops, 0, wire{}, data)
		back := w.alone(hops, 0, wire{}, ack)
		d.MaxRTT = max(d.MaxRTT, nanoseconds(there+back))
		prop := 2 * w.delay(hops)
		d.MaxBDP = max(d.MaxBDP, w.bottleneck(hops)/8*uint64(prop)/1e9)
	})
}

// complete fills in what the configuration leaves open.
func (d *Derived) complete(w *ways, c *Config) {
	if d.BaseRTT = c.BaseRTT; d.BaseRTT == 0 {
		d.BaseRTT = d.MaxRTT
	}
	d.Transport = c.Host.Transport
	tr := &d.Transport
	if c.Host.Recovery.Cap && tr.Cap == 0 {
		tr.Cap = max(1, uint32(d.MaxBDP/uint64(d.MTU)))
	}
	if !c.Host.Recovery.RTOs {
		return
	}
	if tr.RTOHigh == 0 {
		tr.RTOHigh = d.MaxRTT + d.drain(w, c)
	}
	if tr.RTOLow == 0 {
		tr.RTOLow = max(tr.RTOHigh/30*10/(10*frame.Microsecond)*(10*frame.Microsecond), min(d.MaxRTT, tr.RTOHigh))
	}
	if tr.N == 0 {
		tr.N = 3
	}
}

// pushOutLimit returns the most bytes that can wait at a port, 0 if there is no limit.
func pushOutLimit(c *config.PushOut) uint64 {
	port, all := uint64(c.Port), 8*uint64(c.Queue)
	switch {
	case port == 0:
		return all
	case all == 0:
		return port
	default:
		return min(all, port)
	}
}

// drain is the longest time in which the buffer that one egress port can fill drains
// through it: the static limits of all ingress ports or, without them, the dynamic
// threshold of a queue in an empty buffer. With input queues it is the queue of the port
// and those of all ingress ports.
func (d *Derived) drain(w *ways, c *Config) (t frame.Time) {
	inputs := c.passage()
	for i := range w.t.Nodes {
		n := &w.t.Nodes[i]
		for p := range n.Links {
			l := &w.t.Links[n.Links[p]]
			if n.Tier == 0 || l.Rate == 0 {
				continue
			}
			alpha := c.Buffer.Alpha
			fill := float64(c.Buffer.Size) * alpha / (1 + alpha)
			if c.Buffer.QueueLimit != 0 {
				fill = min(fill, float64(c.Buffer.QueueLimit))
			}
			if most := pushOutLimit(&c.PushOut); most != 0 {
				fill = min(float64(c.Buffer.Size), float64(most))
			}
			if c.Buffer.Ingress != 0 {
				fill = float64(c.Buffer.Ingress) * float64(len(n.Links))
			}
			if inputs != nil {
				in, out := inputs.Queues()
				fill = float64(out) + float64(float64(in)*float64(len(n.Links)))
			}
			t = max(t, frame.Time(fill*8e9/float64(l.Rate)))
		}
	}
	return t
}
