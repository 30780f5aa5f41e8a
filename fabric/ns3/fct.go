package ns3

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"

	"gswitch/frame"
)

// FCT is a line of a file of completion times. Lines stand in the order in
// which flows end:
//
//	source destination (IPv4, 8 hexadecimal digits) sport dport bytes start completion standalone
//
// with the last three in nanoseconds. The completion time counts from the
// start of the flow to the arrival of the last acknowledgement at its sender.
type FCT struct {
	Src, Dst         uint32 // addresses, see AddrOf
	SrcPort, DstPort uint16
	Bytes            uint64
	Start, Time      frame.Time
	Standalone       frame.Time // alone in the network
}

// Slowdown is how much longer than alone the flow took, at least 1.
func (f *FCT) Slowdown() float64 { return math.Max(1, float64(f.Time)/float64(f.Standalone)) }

// AddrOf is the IPv4 address that the files give a host.
func AddrOf(node int) uint32 {
	return 0x0b000001 + uint32(node/256)<<16 + uint32(node%256)<<8
}

// NodeOf inverts AddrOf.
func NodeOf(addr uint32) int { return int(addr >> 8 & 0xffff) }

// WriteFCT writes a file of completion times.
func WriteFCT(w io.Writer, flows []FCT) error {
	b := bufio.NewWriter(w)
	for i := range flows {
		f := &flows[i]
		fmt.Fprintf(b, "%08x %08x %d %d %d %d %d %d\n", f.Src, f.Dst, f.SrcPort, f.DstPort, f.Bytes, f.Start, f.Time, f.Standalone)
	}
	return b.Flush()
}

// ParseFCT reads a file of completion times. file is the name that errors
// carry.
func ParseFCT(file string, data []byte) ([]FCT, error) {
	r := &reader{file: file, data: data}
	var flows []FCT
	for f := r.next(); f != nil; f = r.next() {
		if len(f) != 8 {
			return nil, r.fail("%d fields instead of the 8 of a completion time", len(f))
		}
		var v [8]uint64
		for i, b := range f {
			base, size := 10, 63
			switch i {
			case 0, 1:
				base, size = 16, 32
			case 2, 3:
				size = 16
			}
			var err error
			if v[i], err = strconv.ParseUint(string(b), base, size); err != nil {
				return nil, r.fail("field %d, %q, is not a number in its range", i+1, b)
			}
		}
		if v[7] == 0 {
			return nil, r.fail("the time alone in the network is 0")
		}
		flows = append(flows, FCT{uint32(v[0]), uint32(v[1]), uint16(v[2]), uint16(v[3]), v[4], frame.Time(v[5]), frame.Time(v[6]), frame.Time(v[7])})
	}
	return flows, nil
}
