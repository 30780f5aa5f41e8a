package vswitch

import (
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// Sixty bytes again and again for a port that is slow, or held back by its
// neighbour, cost others nothing: neither their frames nor a pause. So it is with the
// shared buffer and with input queues.
func TestSmallFramesToASlowPort(t *testing.T) {
	for _, with := range []string{"shared buffer", "crossbar"} {
		t.Run(with, func(t *testing.T) { smallFramesToASlowPort(t, with == "crossbar") })
	}
}

func smallFramesToASlowPort(t *testing.T, crossbar bool) {
	small := func(dst, src int, pcp uint8) []byte {
		return wt.Frame(wt.Eth(hostMAC(dst), hostMAC(src)), wt.VLAN(0, pcp), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1, 2), wt.Zeros(14))
	}
	for name, c := range map[string]struct {
		rate  uint64
		pause bool
		pcp   uint8
	}{"slow": {1e6, false, 0}, "paused": {1e9, true, 3}, "slow and lossless": {1e6, false, 3}} {
		cfg := baseConfig(4)
		for i := range cfg.Ports {
			cfg.Ports[i].Trust = TrustPCP
		}
		cfg.PFC = PFCConfig{Mode: pfc.PFC, Classes: 1 << 3}
		cfg.Buffer.Chunks = true
		if crossbar {
			WithCrossbar(cfg, Crossing{})
		}
		cfg.Ports[1].Scheduler = scheduler.PortConfig{Rate: c.rate}
		r := newRigOf(t, cfg, 1, 8192)
		for i := range uint16(4) { // all are known
			r.in(i, l2(99, int(i)+1))
			for range 2 { // a crossbar takes its time
				for o := range uint16(4) {
					r.out(o)
				}
				r.advance(frame.Millisecond)
			}
		}
		served, paused := 0, 0
		for step := range 401 {
			if step == 400 { // what still crosses comes
				r.advance(frame.Millisecond)
			}
			if c.pause && step%10 == 0 {
				r.in(1, wt.PFC(hostMAC(2), 1<<3, 65535))
			}
			for range 50 {
				r.in(0, small(2, 1, c.pcp))
			}
			r.out(1)
			if step < 400 {
				r.in(2, small(4, 3, 0), small(4, 3, 3))
			}
			for _, f := range r.out(3) {
				if wire.Ethernet(f).Src() == hostMAC(3) {
					served++
				}
			}
			for _, f := range r.out(2) {
				if f[12] == 0x88 && f[13] == 0x08 {
					paused++
				}
			}
			r.advance(20 * frame.Microsecond)
		}
		if served != 800 || paused != 0 {
			t.Errorf("%s: %d of 800 frames between others arrived, and they were paused %d times; drops %v", name, served, paused, r.drops())
		}
	}
}
