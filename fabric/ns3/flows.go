package ns3

import (
	"math"
	"math/bits"
	"strconv"

	"gswitch/frame"
)

// Flow is a line of a flow file: source, destination, priority group,
// destination port, bytes, start in seconds.
type Flow struct {
	Src, Dst int // nodes
	Class    uint8
	DstPort  uint16
	Bytes    uint64
	Start    frame.Time
}

// maxFlows bounds the number that the first line may announce.
const maxFlows = 1 << 26

// maxBytes of a flow: the simulator's positions in a stream are 32 bits.
const maxBytes = math.MaxUint32

// ParseFlows reads a flow file: a first line with the number of flows, then
// one line a flow in order of their starts. file is the name that errors
// carry; t is the topology that the nodes are of.
func ParseFlows(file string, data []byte, t *Topology) ([]Flow, error) {
	r := &reader{file: file, data: data}
	f, err := r.row(1, "the number of flows")
	if err != nil {
		return nil, err
	}
	n, err := r.number(f[0], maxFlows, "number of flows")
	if err != nil {
		return nil, err
	}
	var flows []Flow
	for range n {
		fl, err := r.flow(t)
		if err != nil {
			return nil, err
		}
		if len(flows) > 0 && fl.Start < flows[len(flows)-1].Start {
			return nil, r.fail("the flow starts before the one above it; sort the file by start")
		}
		flows = append(flows, fl)
	}
	return flows, r.end("flow")
}

func (r *reader) flow(t *Topology) (fl Flow, err error) {
	f, err := r.row(6, "a flow (source, destination, priority group, destination port, bytes, start)")
	if err != nil {
		return fl, err
	}
	if fl.Src, err = r.host(f[0], t); err != nil {
		return fl, err
	}
	if fl.Dst, err = r.host(f[1], t); err != nil {
		return fl, err
	}
	if fl.Src == fl.Dst {
		return fl, r.fail("host %d sends to itself", fl.Src)
	}
	class, err := r.number(f[2], 7, "priority group")
	if err != nil {
		return fl, err
	}
	port, err := r.number(f[3], math.MaxUint16, "destination port")
	if err != nil {
		return fl, err
	}
	if fl.Bytes, err = r.number(f[4], maxBytes, "bytes"); err != nil {
		return fl, err
	}
	if fl.Bytes == 0 {
		return fl, r.fail("a flow of 0 bytes never ends")
	}
	fl.Class, fl.DstPort = uint8(class), uint16(port)
	fl.Start, err = r.start(f[5])
	return fl, err
}

func (r *reader) host(b []byte, t *Topology) (int, error) {
	v, err := r.node(b, t.Nodes)
	if err == nil && t.IsSwitch[v] {
		err = r.fail("node %d is a switch, a flow is from host to host", v)
	}
	return v, err
}

// maxStart is some three years of virtual time.
const maxStart = 1e8

func (r *reader) start(b []byte) (frame.Time, error) {
	s, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(s >= 0 && s <= maxStart) {
		return 0, r.fail("start %q is not a number of seconds from 0 to %g", b, float64(maxStart))
	}
	return truncate(s), nil
}

// truncate turns seconds into whole nanoseconds as ns-3 does: the binary
// fraction, exactly, times 10^9, without what is less than a nanosecond. So
// 2.00036172 s, whose binary fraction lies just below it, is 2000361719 ns.
func truncate(s float64) frame.Time {
	frac, exp := math.Frexp(s)
	hi, lo := bits.Mul64(uint64(math.Ldexp(frac, 53)), 1e9)
	switch shift := 53 - exp; {
	case shift <= 0:
		return frame.Time(lo << -shift)
	case shift < 64:
		return frame.Time(hi<<(64-shift) | lo>>shift)
	case shift < 128:
		return frame.Time(hi >> (shift - 64))
	}
	return 0
}
