package vnet

import (
	"fmt"
	"testing"
	"time"

	"gswitch/frame"
	inband "gswitch/int"
)

// Full frames of every payload pass every switch, whatever comes on top: RDMA's padding,
// the header of a Write, a telemetry record at each switch. A message whose frames keep
// their length takes as long as Ideal says.
func TestEveryPayloadPasses(t *testing.T) {
	payloads := []int{1, 2, 3, 4, 365, 1400, 1424, 1440, 1441, 1442, 1460, 1461, 1462, 1463, 1464, 1500, 1501, 2001, 4097, 7001, 7999, 8990, 8996, 8997, 8998, 8999, 9000}
	for p := 5; p < 9000; p += 499 {
		payloads = append(payloads, p)
	}
	topo := topology(t, "line(4, 1)", 100*gig, 100*gig, time.Microsecond)
	for _, mode := range []inband.Mode{inband.None, inband.HPCC, inband.HPCCGrow, inband.INTMD} {
		for _, writes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, writes %v", mode, writes), func(t *testing.T) {
				for _, p := range payloads {
					c := &Config{Topology: topo, Payload: p, INT: INT{Mode: mode}, Chunks: 512}
					c.Host.Writes = writes
					n := build(t, c)
					last, bytes := len(n.Hosts)-1, uint64(2*p+1)
					start(t, n, Flow{Src: 0, Dst: last, Bytes: bytes})
					if err := n.Engine.Run(frame.Millisecond); err != nil {
						t.Fatal(err)
					}
					if n.Lost() != 0 || n.Counts().Finished != 1 {
						t.Errorf("payload of %d bytes: %d frames lost, %d of 1 messages ended", p, n.Lost(), n.Counts().Finished)
					}
					if k := n.Telemetry()[inband.TooLong]; k != 0 {
						t.Errorf("payload of %d bytes: %d frames had no room for telemetry", p, k)
					}
				}
			})
		}
	}
}

// Ideal and T count the padding of full frames, which is a fifth of a small payload.
func TestIdealOfPaddedFrames(t *testing.T) {
	topo := topology(t, "leaf-spine(2, 2, 2)", 40*gig, 100*gig, time.Microsecond)
	for p := 1; p <= 9000; p += 1 + p/8 {
		n := build(t, &Config{Topology: topo, Payload: p})
		last, bytes := len(n.Hosts)-1, uint64(30*p+1)
		start(t, n, Flow{Src: 0, Dst: last, Bytes: bytes})
		d := run(t, n, 20*frame.Millisecond)[0]
		if want := n.Ideal(0, last, bytes); d.FCT() > want || d.FCT() < want-8 {
			t.Errorf("payload of %d bytes: took %d ns, alone it should be %d", p, d.FCT(), want)
		}
		if want := n.IdealAcked(0, last, uint64(p)); n.Derived.MaxRTT != want {
			t.Errorf("payload of %d bytes: T is %d ns, a full frame and its acknowledgement take %d", p, n.Derived.MaxRTT, want)
		}
	}
}
