package vswitch

import (
	"testing"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// In a switch with input queues neither a mirror whose port stands still nor a paused
// host, which gets what its sender broadcasts, holds up what that sender sends to
// others: copies do not wait at its port.
func TestCopiesHoldNobodyUp(t *testing.T) {
	for what, mirrored := range map[string]bool{"mirror": true, "broadcasts": false} {
		cfg := crossbarConfig(3, Crossing{})
		cfg.Buffer.Chunks = true
		if mirrored {
			cfg.ACLs = []ACL{{Name: "in", Default: pipeline.Action{Ops: pipeline.OpPermit | pipeline.OpMirror}}}
			cfg.Mirrors = []Mirror{{Name: "m", Port: 0}}
			cfg.Ports[1].ACL = "in"
		}
		r := newRigOf(t, cfg, 1, 4096)
		everybody := wt.Frame(wt.Eth(wire.BroadcastMAC, hostMAC(2)), wt.IPv4("10.0.0.2", "10.0.0.255"), wt.UDP(1, 2), wt.Zeros(900))
		arrived, paused := 0, 0
		const steps = 2000
		for i := range steps + 5 {
			r.in(0, wt.PFC(hostMAC(1), 0xff, 0xffff)) // port 0 is held back
			if i < steps && i%2 == 0 {                // two frames leave a port in the time
				r.in(1, classed(2, 3, 0, 1000))
				if !mirrored {
					r.in(1, everybody)
				}
			}
			for _, f := range r.out(2) {
				if wire.Ethernet(f).Dst() == hostMAC(3) {
					arrived++
				}
			}
			for _, f := range r.out(1) {
				if wire.Ethernet(f).EtherType() == wire.EtherTypeMACControl {
					paused++
				}
			}
			r.advance(10 * frame.Microsecond)
		}
		if arrived != steps/2 || paused != 0 {
			t.Errorf("%s: %d of %d frames arrived, their sender was paused %d times; drops %v", what, arrived, steps/2, paused, r.drops())
		}
		// They do wait at port 0, as long as there is room.
		if d := r.drops(); d["queue-tail"] == 0 {
			t.Errorf("%s: nothing was refused: %v", what, d)
		}
	}
}
