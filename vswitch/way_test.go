package vswitch

import (
	"fmt"
	"slices"
	"testing"

	"gswitch/frame"
	wt "gswitch/wire/wiretest"
)

// Frames that come in vectors go where they would go alone, and are counted as
// they would be: known stations and unknown ones, in VLANs of two ports and of
// more, tagged and not, of classes and sizes that change within a vector, with
// isolated ports and metered floods.
func TestVectorsGoLikeLoneFrames(t *testing.T) {
	build := func() *rig {
		cfg := baseConfig(9) // the last three know no VLANs
		cfg.VLANs = []VLANConfig{{ID: 10}, {ID: 20}}
		for i := range cfg.Ports {
			p := &cfg.Ports[i]
			p.MTU = 1500 - 100*i
			switch i {
			case 0, 1:
				p.VLANMode, p.PVID = VLANAccess, 10
			case 2, 3:
				p.VLANMode, p.PVID = VLANAccess, 20
				p.Isolated = i == 3
			case 4:
				p.VLANMode, p.PVID = VLANTrunk, 20
				p.Isolated = true
			case 5:
				p.VLANMode, p.Allowed = VLANTrunk, []uint16{20}
			case 6:
				p.Storm.UnknownUnicast = 50_000_000
			}
		}
		return newRig(t, cfg)
	}
	lone, vectors := build(), build()
	rnd := frame.NewRand(5)
	sent, follows := 0, 0
	for step := range 1000 {
		if rnd.Uint32n(50) == 0 {
			port, up := uint16(rnd.Uint32n(9)), rnd.Uint32n(3) > 0
			lone.setLink(port, up)
			vectors.setLink(port, up)
		}
		in := uint16(rnd.Uint32n(9))
		var v [][]byte
		dst, src, size, pcp := 0, 0, 0, uint8(0)
		for range 2 + rnd.Uint32n(60) {
			change := rnd.Uint32n(16) // the others are like the one before
			if change == 0 || len(v) == 0 {
				dst = 10*((int(in)+1+int(rnd.Uint32n(8)))%9) + 1 + int(rnd.Uint32n(2)) // not behind its own port
			}
			if change == 1 || len(v) == 0 {
				src = 10*int(in) + 1 + int(rnd.Uint32n(2))
			}
			if change == 2 || len(v) == 0 {
				size = int(rnd.Uint32n(1440))
			}
			if change == 3 || len(v) == 0 {
				pcp = uint8(rnd.Uint32n(8))
			}
			if change > 3 {
				follows++
			}
			layers := []wt.Layer{wt.Eth(hostMAC(dst), hostMAC(src)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1000, 2000), wt.Zeros(size)}
			if (in == 4 || in >= 6) && pcp > 1 {
				layers = slices.Insert(layers, 1, wt.VLAN(20, pcp))
			}
			v = append(v, wt.Frame(layers...))
		}
		for _, b := range v {
			lone.in(in, b)
		}
		vectors.in(in, v...)
		for p := range uint16(9) {
			a, b := lone.out(p), vectors.out(p)
			if !slices.EqualFunc(a, b, slices.Equal) {
				t.Fatalf("step %d: port %d sends %d frames of lone ones, %d of vectors", step, p, len(a), len(b))
			}
			if a, b := lone.counts(p), vectors.counts(p); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("step %d: port %d counts\n%+v\nof lone frames, of vectors\n%+v", step, p, a, b)
			}
			sent += len(a)
		}
		if a, b := lone.sw.Nodes[0].count, vectors.sw.Nodes[0].count; a != b {
			t.Fatalf("step %d: counts %+v of lone frames, %+v of vectors", step, a, b)
		}
		lone.advance(frame.Millisecond)
		vectors.advance(frame.Millisecond)
	}
	if sent < 10_000 || follows < 10_000 {
		t.Errorf("%d frames left, %d were like the one before", sent, follows)
	}
}
