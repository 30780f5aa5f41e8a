package ns3

import (
	"fmt"
	"strings"

	"gswitch/cc"
	"gswitch/config"
	"gswitch/fabric"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	intpoint "gswitch/int/point"
	"gswitch/transport"
	"gswitch/units"
)

// The ns3-compat profile: what HPCC's simulator does and a network of gswitches
// otherwise does not. Every number is one of that simulator's, as its published
// script run.py sets it or as its code has it built in
// (github.com/alibaba-edu/High-Precision-Congestion-Control, simulation/).

// Bytes on a link. Nothing is counted for preamble, FCS and gap.
const (
	payload = 1000 // of a full data frame

	dataHeader   = 48 // Ethernet 14, IPv4 20, UDP 8, sequence number and class 6
	timelyHeader = 56 // and the time of departure, 8
	ackBytes     = 60 // the least of Ethernet; acknowledgements and NAKs alike
	ackINTBytes  = 88 // with the 42 bytes of telemetry that data frames carry, too
	pfcBytes     = 43 // Ethernet 14, IPv4 20, class and time 9
)

// Switch buffer.
const (
	bufferPer50G  = 16 << 20 // bytes for each 50 Gb/s of a host's rate
	groupReserve  = 4 << 10  // bytes guaranteed to each port and class
	headroomDelay = 3        // headroom in one-way delays of the link at its rate
	resumeOffset  = 3 << 10  // a pause ends so far below its threshold
	pauseAlpha    = 1.0 / 8  // of the free bytes; doubled for every doubling of the rate above the hosts'
)

// ECN, for ports of a host's rate and in proportion for others; the script
// knows two rates, that of hosts and four times as much.
const (
	kminPer25G = 100_000 // bytes for each 25 Gb/s
	kmaxPer25G = 400_000
	pmax       = 0.2
	dctcpPer10 = 30_000 // DCTCP marks everything above this for each 10 Gb/s
)

// Recovery: go back to the gap that a NAK reports; a receiver repeats the NAK
// for a gap at most once in this time; there is no timer.
const nakInterval = 500 * frame.Microsecond

// stopTime is when the script's runs end.
const stopTime = 4 * frame.Second

// Algorithms are the names of congestion control that Profile knows.
var Algorithms = cc.NS3Names

// Profile returns the network that agrees with HPCC's simulator for one of the
// Algorithms.
func Profile(t *fabric.Topology, algorithm string) (*vnet.Config, error) {
	nic := hostRate(t)
	gbps := float64(nic) / 1e9
	name, params, ok := cc.NS3(algorithm, gbps)
	if !ok {
		return nil, fmt.Errorf("congestion control %q is not one of %s", algorithm, strings.Join(Algorithms, ", "))
	}
	build, err := cc.Factory(name, params)
	if err != nil {
		return nil, err
	}
	rtt, err := vnet.MaxRTTNS3(t, payload)
	if err != nil {
		return nil, err
	}
	c := &vnet.Config{
		Topology: t,
		Payload:  payload,
		WholeNs:  true, // a frame's time on a link is cut to whole nanoseconds
		Sizes:    hostnic.Sizes{Data: dataHeader, Ack: ackBytes, AckINT: ackINTBytes, PFC: pfcBytes},
		BaseRTT:  rtt,
		// Queues 1 to 7 of a switch take turns; flows use one of them.
		Weights: [8]uint32{0, 1, 1, 1, 1, 1, 1, 1},
		Buffer: config.NetworkBuffer{
			Size:           units.Size(bufferPer50G * gbps / 50),
			LosslessRoom:   config.LosslessRoom{Reserve: groupReserve, AllowLoss: true},
			HeadroomDelays: headroomDelay, LosslessAlpha: pauseAlpha, ScaleAlpha: true, XONOffset: resumeOffset,
		},
		OwnFrames: true, // a port that others made wait too much is paused by its next frame
		// Every class of data is lossless; class 0 is that of control.
		PFC: vnet.PFC{On: true, Classes: 0xfe},
		ECN: vnet.ECN{On: true, At: nic, ECN: config.ECN{KMin: units.Size(kminPer25G * gbps / 25), KMax: units.Size(kmaxPer25G * gbps / 25), PMax: pmax}, Classes: 0xfe},
		Host: vnet.Host{
			Transport: transport.Config{Recovery: transport.GoBackN, NakInterval: nakInterval},
			CC:        vnet.Algorithm{Name: algorithm, New: build},
			Overshoot: true, // what is in flight may exceed the window by a frame
			InOrder:   true, // hosts' flows take turns in the order of their starts
			// HPCC's changes of rate move the next departure, those of the
			// others do not.
			KeepPlanned: name != "hpcc",
		},
	}
	switch algorithm {
	case "hpcc", "hpcc_mi5":
		p := inband.NS3Profile(nic)
		c.INT = vnet.INT{Mode: inband.HPCC, Profile: &p, Stamp: intpoint.Stamp{Occupancy: "port"}}
	case "dctcp":
		k := units.Size(dctcpPer10 * gbps / 10)
		c.ECN.KMin, c.ECN.KMax, c.ECN.PMax = k, k, 1
	case "timely", "timely_win":
		c.Sizes.Data = timelyHeader
	}
	switch algorithm {
	case "dcqcn", "timely", "timely_win":
		// At hosts the pause of class 0 stops acknowledgements, which never
		// comes; in switches they wait with the data.
		c.Host.AckPauseClass = vnet.InClass(0)
	}
	return c, nil
}

// hostRate is the rate of the first host's link, to which the script scales
// everything.
func hostRate(t *fabric.Topology) uint64 {
	return t.Links[t.Nodes[t.Hosts()[0]].Links[0]].Rate
}
