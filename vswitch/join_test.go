package vswitch_test

import (
	"encoding/binary"
	"testing"

	escapepoint "gswitch/escape/point"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/qcn"
	qcnpoint "gswitch/qcn/point"
	"gswitch/rocc"
	roccpoint "gswitch/rocc/point"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// What has escaped from a neighbour's queue counts for the congestion points of
// the queue in which it waits, and does so no longer when a token lets it out or
// the link goes.
func TestCongestionPointsSeeEscapedFrames(t *testing.T) {
	params := rocc.For(st.Rate40G)
	params.QRef, params.QMid, params.QMax = 3_000, 6_000, 9_000
	cfg := st.Star()
	cfg.Class.Queue[6] = 7
	cfg.PFC = vswitch.PFCConfig{Mode: pfc.PFC, Classes: 1 << 3}
	cfg.Options = vswitch.Options{escapepoint.Name: escapepoint.Config{Queue: 6}}
	cfg.Buffer.XOFF, cfg.Buffer.XONOffset = 3000, 1000
	for i := range cfg.Ports {
		cfg.Ports[i].Trust, cfg.Ports[i].DefaultClass = vswitch.TrustNone, 3
		if i > 0 {
			cfg.Ports[i].Options = vswitch.Options{escapepoint.Name: escapepoint.Neighbor{}}
		}
	}
	cfg.Ports[1].Options = vswitch.Options{
		escapepoint.Name: escapepoint.Neighbor{},
		roccpoint.Name:   roccpoint.Config{Queues: 1 << 3, Params: params},
		qcnpoint.Name:    qcnpoint.Config{Queues: 1 << 3, Params: qcn.Params{SetPoint: 1000, Weight: 2, Sample: 64}},
	}
	r := st.New(t, cfg)
	n := r.Switch.Nodes[0]
	flows := func() int {
		r.Advance(3 * params.Period)
		for range 20 {
			r.Advance(frame.Microsecond)
			r.Out(2)
		}
		return roccpoint.Views(n, nil)[0].Flows
	}
	r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
	for qp := range uint32(8) {
		b := st.RoCE(3, qp, 1000)
		r.In(2, append(append(append([]byte(nil), b[:12]...), 0x88, 0xb5, 1, 3), b[12:]...)) // the mark: one hop, class 3
	}
	if v := escapepoint.Views(n, nil)[1]; v.Parked != 8 {
		t.Fatalf("%d frames escaped, want 8", v.Parked)
	}
	if k := flows(); k != 8 {
		t.Errorf("RoCC knows %d flows, want 8", k)
	}
	if s := qcnpoint.Views(n, nil)[0].Samples; s != 8 {
		t.Errorf("QCN judged the queue by %d frames, want 8", s)
	}
	r.In(1, tokenFor(st.RoCE(3, 5, 1000)))
	left := 0
	for range 20 {
		r.Advance(frame.Microsecond)
		for _, b := range r.Out(1) { // besides requests
			if wire.Ethernet(b).EtherType() == wire.EtherTypeTokenMark {
				left++
			}
		}
	}
	if left != 1 {
		t.Fatalf("%d frames left, want 1", left)
	}
	if k := flows(); k != 7 {
		t.Errorf("RoCC knows %d flows when one has left, want 7", k)
	}
	r.SetLink(1, false)
	if k := flows(); k != 0 {
		t.Errorf("RoCC knows %d flows without a link, want none", k)
	}
}

// tokenFor is a token of one hop for the flow of a datagram.
func tokenFor(data []byte) []byte {
	f := wire.TokenFields{Src: st.HostMAC(9), Hops: 1, Flow: wire.FlowID{Addrs: binary.BigEndian.Uint64(data[26:]), Ports: binary.BigEndian.Uint32(data[34:]), Proto: wire.ProtoUDP}}
	b := make([]byte, wire.MinFrame)
	f.Encode(b)
	return b
}
