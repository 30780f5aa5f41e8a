package vnet

import (
	"fmt"

	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/vswitch"
	wirefmt "gswitch/wire"
)

// Ideal returns how long a message takes alone in the network, from its start to the
// arrival of its last byte: propagation, store and forward of the first frame at every
// hop and after every input queue, then the other frames at the rate of the slowest hop,
// headers included. It is exact if the host sends at line rate.
func (n *Network) Ideal(src, dst int, bytes uint64) frame.Time {
	hops := n.way(src, dst)
	return nanoseconds(n.data(hops, bytes))
}

// IdealAcked is Ideal plus the time in which the last acknowledgement returns to the
// sender.
func (n *Network) IdealAcked(src, dst int, bytes uint64) frame.Time {
	ack := n.cfg.frame(n.Derived.Ack)
	return nanoseconds(n.data(n.way(src, dst), bytes) + n.ways.alone(n.way(dst, src), 0, wire{}, ack))
}

func (n *Network) data(hops []hop, bytes uint64) int64 {
	payload := uint64(n.cfg.payload())
	full := uint64(0)
	if bytes > payload {
		full = (bytes - 1) / payload
	}
	of := func(payload uint64) wire { return n.cfg.frame(n.Derived.Header + int(n.cfg.padded(payload))) }
	return n.ways.alone(hops, full, of(payload), of(bytes-full*payload))
}

// way returns a shortest path; if there are several, the one through the lowest ports.
func (n *Network) way(src, dst int) []hop {
	hops, err := n.ways.walk(nil, src, dst, first)
	if err != nil {
		panic(err) // cannot happen: Build walked all pairs of switches
	}
	return hops
}

// IdealNS3 returns the ideal completion time by the formula of HPCC's simulator:
// round-trip propagation, the payload of one frame serialised at every hop, and the whole
// message, with header bytes per frame, at the rate of the slowest link, each truncated
// to whole nanoseconds. It counts neither telemetry nor the bytes of the acknowledgement.
func (n *Network) IdealNS3(src, dst int, bytes uint64, header int) frame.Time {
	hops := n.way(src, dst)
	payload := uint64(n.cfg.payload())
	total := bytes + max(1, (bytes+payload-1)/payload)*uint64(header)
	return n.ways.rttNS3(hops, payload) + frame.Time(total*8e9/n.ways.bottleneck(hops))
}

// MaxRTTNS3 returns the largest round-trip time over all pairs of hosts as HPCC's
// simulator computes it: propagation both ways and the payload of one frame serialised at
// every hop of one way.
func MaxRTTNS3(t *fabric.Topology, payload int) (rtt frame.Time, err error) {
	w := newWays(t)
	err = w.pairs(func(hops []hop) { rtt = max(rtt, w.rttNS3(hops, uint64(payload))) })
	return rtt, err
}

func (w *ways) rttNS3(hops []hop, payload uint64) frame.Time {
	rtt := 2 * w.delay(hops)
	for _, h := range hops {
		rtt += frame.Time(payload * 8e9 / w.t.Links[h.link].Rate)
	}
	return rtt
}

// Port is a port of a switch.
type Port struct {
	Switch int // index among the switches
	Port   int
}

// Route returns, in order, the egress ports of the switches that data from host src to
// host dst passes if its UDP source port is srcPort and all links are up. The switches'
// hashes decide it. ack asks for the path of acknowledgements, which are RoCEv2 without
// telemetry.
func (n *Network) Route(src, dst int, srcPort uint16, ack bool) ([]Port, error) {
	dstPort := n.cfg.INT.Mode.Port()
	if ack {
		dstPort = wirefmt.RoCEv2Port
	}
	f := vswitch.Flow{Src: n.addrs[src], Dst: n.addrs[dst], SrcPort: srcPort, DstPort: dstPort, Proto: 17}
	hops, err := n.ways.walk(make([]hop, 0, 8), src, dst, func(node int, ports []int) (int, error) {
		if len(ports) == 1 || n.Topology.Mode == fabric.L2 {
			return ports[0], nil
		}
		p, ok := n.Switches[n.swOf[node]].EgressPort(f)
		if !ok {
			return 0, fmt.Errorf("switch %s has no route from %s to %s", n.Topology.Nodes[node].Name, f.Src, f.Dst)
		}
		return int(p), nil
	})
	if err != nil {
		return nil, err
	}
	v := make([]Port, 0, len(hops)-1)
	for _, h := range hops[1:] {
		v = append(v, Port{n.swOf[h.from], h.port})
	}
	return v, nil
}
