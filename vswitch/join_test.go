package vswitch

import (
	"testing"

	"gswitch/rocc"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// What has escaped from a neighbour's queue counts for the congestion points of
// the queue in which it waits, and does so no longer when a token lets it out or
// the link goes.
func TestCongestionPointsSeeEscapedFrames(t *testing.T) {
	cfg := escapeConfig()
	params := rocc.For(rate40G)
	params.QRef, params.QMid, params.QMax = 3_000, 6_000, 9_000
	cfg.Ports[1].RoCC = RoCCConfig{Queues: 1 << 3, Params: params}
	r := newRig(t, cfg)
	n := r.sw.Nodes[0]
	flows := func() int {
		r.advance(3 * params.Period)
		r.all(2)
		return n.RoCC(nil)[0].Flows
	}
	r.in(1, wt.PFC(hostMAC(9), 1<<3, 0xffff))
	for qp := range uint32(8) {
		r.in(2, marked(roce(3, qp, 1000), 1))
	}
	if v := n.Escape(nil)[1]; v.Parked != 8 {
		t.Fatalf("%d frames escaped, want 8", v.Parked)
	}
	if k := flows(); k != 8 {
		t.Errorf("RoCC knows %d flows, want 8", k)
	}
	r.in(1, token(roce(3, 5, 1000), 1))
	left := 0
	for _, b := range r.all(1) { // besides requests
		if wire.Ethernet(b).EtherType() == wire.EtherTypeEscape {
			left++
		}
	}
	if left != 1 {
		t.Fatalf("%d frames left, want 1", left)
	}
	if k := flows(); k != 7 {
		t.Errorf("RoCC knows %d flows when one has left, want 7", k)
	}
	r.setLink(1, false)
	if k := flows(); k != 0 {
		t.Errorf("RoCC knows %d flows without a link, want none", k)
	}
}
