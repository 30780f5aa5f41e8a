package cc_test

import (
	"fmt"

	"gswitch/cc"
	"gswitch/frame"
)

// An algorithm is made once by name and options, and then for each queue pair.
// It turns feedback into a rate and a window.
func ExampleFactory() {
	build, err := cc.Factory("newreno", map[string]string{"initial": "10kB"})
	if err != nil {
		fmt.Println(err)
		return
	}
	a := build(&cc.Env{Rate: 100e9, BaseRTT: 10 * frame.Microsecond, MTU: 1048, Payload: 1000})
	fmt.Println(a.Window(), "bytes at", a.Rate(), "bit/s")
	// The first window is acknowledged: slow start opens it by as much.
	for ack := uint64(1000); ack <= 10_000; ack += 1000 {
		a.OnAck(&cc.Feedback{Now: frame.Time(ack), Ack: ack, SndNxt: ack + 10_000, Newly: 1000, RTT: 10 * frame.Microsecond})
	}
	fmt.Println(a.Window(), "bytes after a round trip")
	a.OnLoss(20*frame.Microsecond, cc.LossNAK)
	fmt.Println(a.Window(), "bytes after a loss")
	// Output:
	// 10000 bytes at 1e+11 bit/s
	// 20000 bytes after a round trip
	// 10000 bytes after a loss
}
