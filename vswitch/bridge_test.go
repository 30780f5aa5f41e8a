package vswitch

import (
	"bytes"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

func TestBridgeFloodsThenLearns(t *testing.T) {
	r := newRig(t, baseConfig(3))
	f := l2(2, 1)
	r.in(0, f)
	for _, p := range []uint16{1, 2} {
		if got := r.one(p); !bytes.Equal(got, f) {
			t.Errorf("port %d changed the frame:\n got %x\nwant %x", p, got, f)
		}
	}
	r.none(0)
	r.in(1, l2(1, 2))
	r.one(0)
	r.none(2)
	r.in(0, l2(2, 1))
	r.one(1)
	r.none(2)
}

func TestBridgeForgetsAfterAgeing(t *testing.T) {
	cfg := baseConfig(3)
	cfg.FDB.Ageing = 10 * frame.Second
	r := newRig(t, cfg)
	r.in(1, l2(1, 2))
	r.out(0)
	r.out(2)
	for range 3000 {
		r.advance(20 * frame.Millisecond)
	}
	r.in(0, l2(2, 1))
	r.one(1)
	r.one(2)
}

func TestBridgeFollowsAMovedStation(t *testing.T) {
	r := newRig(t, baseConfig(3))
	r.in(1, l2(9, 2))
	r.in(2, l2(9, 2))
	for p := uint16(0); p < 3; p++ {
		r.out(p)
	}
	if got := r.sw.Nodes[0].Counts().Moved; got != 1 {
		t.Errorf("%d moves counted, want 1", got)
	}
	r.in(0, l2(2, 1))
	r.one(2)
	r.none(1)
}

// In one vector, too: what comes after the frame that shows where a station is goes
// there, although a frame before it for the same station went elsewhere.
func TestBridgeFollowsAStationThatMovesInAVector(t *testing.T) {
	r := newRig(t, baseConfig(4))
	r.in(1, l2(9, 2))
	for p := range uint16(4) {
		r.out(p)
	}
	r.in(0, l2(2, 1), l2(1, 2), l2(2, 1))
	r.one(1)
	r.none(2)
	r.none(3)
	if got := r.drops()[frame.SamePort.String()]; got != 2 {
		t.Errorf("%d frames dropped for a station on the port that they came from, want 2", got)
	}

	r = newRig(t, baseConfig(2))
	r.in(0, l2(2, 1), l2(9, 2), l2(2, 1)) // flooded to one port, which is remembered
	if got := len(r.all(1)); got != 2 {
		t.Errorf("port 1 sent %d frames, want 2", got)
	}
	if got := r.drops()[frame.SamePort.String()]; got != 1 {
		t.Errorf("%d frames dropped for a station on the port that they came from, want 1", got)
	}
}

func TestStaticAddressDoesNotMove(t *testing.T) {
	cfg := baseConfig(3)
	cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 1}}
	r := newRig(t, cfg)
	r.in(2, l2(9, 2))
	for p := uint16(0); p < 3; p++ {
		r.out(p)
	}
	r.in(0, l2(2, 1))
	r.one(1)
	r.none(2)
}

func TestLinkDownFlushesPortAndQueue(t *testing.T) {
	r := newRig(t, baseConfig(3))
	r.in(1, l2(1, 2))
	r.out(0)
	r.out(2)
	r.in(0, l2(2, 1)) // queued for port 1
	r.setLink(1, false)
	r.wantDrop(0, frame.QueueFlush)
	r.in(0, l2(2, 1)) // not known any more: flooded to what is up
	r.one(2)
	r.in(1, l2(1, 2))
	r.wantDrop(1, frame.PortDown)
}

func TestIngressChecks(t *testing.T) {
	reserved := func(last byte) wire.MAC { return wire.MAC{1, 0x80, 0xc2, 0, 0, last} }
	big := wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1, 2), wt.Zeros(1473))
	for _, c := range []struct {
		name   string
		frame  []byte
		reason frame.Reason
	}{
		{"bridge group address", udp(reserved(0), hostMAC(1), "10.0.0.2", "10.0.0.1"), frame.ReservedMulticast},
		{"LLDP group address", udp(reserved(0xe), hostMAC(1), "10.0.0.2", "10.0.0.1"), frame.ReservedMulticast},
		{"1501 bytes of payload", big, frame.Oversize},
		{"group source", udp(hostMAC(2), wire.MAC{1, 0, 0x5e, 0, 0, 1}, "10.0.0.2", "10.0.0.1"), frame.SourceMulticast},
		{"zero source", udp(hostMAC(2), wire.MAC{}, "10.0.0.2", "10.0.0.1"), frame.SourceZero},
		{"our own source", udp(hostMAC(2), selfMAC, "10.0.0.2", "10.0.0.1"), frame.SourceSelf},
		{"13 bytes", make([]byte, 13), frame.ParseShortEthernet},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, baseConfig(2))
			r.in(0, c.frame)
			r.none(1)
			r.wantDrop(0, c.reason)
		})
	}
}

func TestLargestFrameAndTagPass(t *testing.T) {
	r := newRig(t, baseConfig(2))
	r.in(0, wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.VLAN(5, 3), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1, 2), wt.Zeros(1472)))
	if got := len(r.one(1)); got != 1518 {
		t.Errorf("%d bytes came out, want 1518", got)
	}
}

func TestRuntsWhereThePortChecks(t *testing.T) {
	cfg := baseConfig(2)
	cfg.Ports[0].MinFrame = 60
	r := newRig(t, cfg)
	r.in(0, l2(2, 1)[:42])
	r.wantDrop(0, frame.Undersize)
}

// A frame whose upper headers contradict themselves is counted, and bridged
// all the same unless the switch is strict.
func TestMalformedIsCountedAndBridged(t *testing.T) {
	bad := l2(2, 1)
	bad[24]++ // breaks the IPv4 checksum
	r := newRig(t, baseConfig(2))
	r.in(0, bad)
	r.one(1)
	if got := r.counts(0).ParseErrors[frame.ParseIPv4Checksum]; got != 1 {
		t.Errorf("%d checksum errors counted, want 1", got)
	}
	cfg := baseConfig(2)
	cfg.Strict = true
	r = newRig(t, cfg)
	r.in(0, bad)
	r.none(1)
	r.wantDrop(0, frame.ParseIPv4Checksum)
}

func TestVLANs(t *testing.T) {
	cfg := baseConfig(4)
	cfg.VLANs = []VLANConfig{{ID: 10}, {ID: 20}}
	cfg.Ports[0].VLANMode, cfg.Ports[0].PVID = VLANAccess, 10
	cfg.Ports[1].VLANMode, cfg.Ports[1].PVID = VLANAccess, 20
	cfg.Ports[2].VLANMode = VLANTrunk
	cfg.Ports[3].VLANMode, cfg.Ports[3].PVID, cfg.Ports[3].Allowed = VLANTrunk, 10, []uint16{20}
	r := newRig(t, cfg)

	plain := l2(9, 1)
	tagged := func(vid uint16) []byte {
		return wt.Frame(wt.Eth(hostMAC(9), hostMAC(1)), wt.VLAN(vid, 0), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1000, 2000), wt.Zeros(40))
	}
	// From access 10: tagged on the trunk, plain where 10 is native.
	r.in(0, plain)
	if got := r.one(2); !bytes.Equal(got, tagged(10)) {
		t.Errorf("trunk sends\n%x, want\n%x", got, tagged(10))
	}
	if got := r.one(3); !bytes.Equal(got, plain) {
		t.Errorf("native VLAN left with a tag: %x", got)
	}
	r.none(1)
	// From the trunk in VLAN 20: plain on access 20, tagged on the other trunk.
	r.in(2, tagged(20))
	if got := r.one(1); !bytes.Equal(got, plain) {
		t.Errorf("access port sends %x", got)
	}
	if got := r.one(3); !bytes.Equal(got, tagged(20)) {
		t.Errorf("trunk changed the tag: %x", got)
	}
	r.none(0)
	// What a port does not carry.
	r.in(2, plain)
	r.wantDrop(2, frame.VLANIngress)
	r.in(0, tagged(20))
	r.wantDrop(0, frame.VLANIngress)
	r.in(3, tagged(30))
	r.wantDrop(3, frame.VLANIngress)
}

func TestIsolatedPorts(t *testing.T) {
	cfg := baseConfig(3)
	cfg.Ports[0].Isolated, cfg.Ports[1].Isolated = true, true
	r := newRig(t, cfg)
	r.in(0, l2(9, 1))
	r.none(1)
	r.one(2)
	r.in(1, l2(9, 2))
	r.one(2)
	r.in(0, l2(2, 1))
	r.wantDrop(0, frame.Isolated)
	r.in(2, l2(1, 3))
	r.one(0)
}

func TestStormControl(t *testing.T) {
	cfg := baseConfig(2)
	cfg.Ports[0].Storm.Broadcast = 8_000_000 // 1 MB/s
	r := newRig(t, cfg)
	b := udp(wire.BroadcastMAC, hostMAC(1), "10.0.0.255", "10.0.0.1")
	sent, passed := 0, 0
	for range 100 {
		r.advance(10 * frame.Millisecond) // 10 kB worth
		for range 500 {                   // 41 kB
			r.in(0, b)
			sent++
		}
		passed += len(r.out(1))
	}
	// One second at 1 MB/s plus the bucket of 100 kB, in frames of 82 bytes.
	if want := 1_100_000 / len(b); passed < want*98/100 || passed > want*102/100 {
		t.Errorf("%d of %d broadcasts passed, want about %d", passed, sent, want)
	}
	if c := r.counts(0); int(c.Drops[frame.StormControl]) != sent-passed {
		t.Errorf("%d drops counted, %d frames are missing", c.Drops[frame.StormControl], sent-passed)
	}
}

func TestDropsAreListedForACapture(t *testing.T) {
	r := newRig(t, baseConfig(2))
	n := r.sw.Nodes[0]
	n.TapDrops(make([]frame.Ref, 1))
	r.in(0, udp(hostMAC(2), wire.MAC{}, "10.0.0.2", "10.0.0.1"), udp(hostMAC(2), selfMAC, "10.0.0.2", "10.0.0.1"))
	v := n.TakeDrops()
	if len(v) != 1 || r.arena.Meta(v[0]).Reason != frame.SourceZero || r.arena.Meta(v[0]).InPort != 0 {
		t.Fatalf("%d drops listed", len(v))
	}
	r.pools[0].Free(v[0])
	n.TapDrops(nil)
	r.in(0, udp(hostMAC(2), wire.MAC{}, "10.0.0.2", "10.0.0.1"))
	if len(n.TakeDrops()) != 0 {
		t.Error("a drop was listed after the capture ended")
	}
}

// What is not flooded to a port reaches it when its address is known.
func TestFloodingOffAtAPort(t *testing.T) {
	broadcast := udp(wire.BroadcastMAC, hostMAC(1), "10.0.0.255", "10.0.0.1")
	multicast := udp(wire.MAC{1, 0, 0x5e, 0, 0, 9}, hostMAC(1), "224.0.0.9", "10.0.0.1")
	for i, off := range []Flooded{{}, {Broadcast: true}, {Multicast: true}, {UnknownUnicast: true}} {
		cfg := baseConfig(3)
		cfg.Ports[1].NoFlood = off
		r := newRig(t, cfg)
		for kind, f := range [][]byte{nil, broadcast, multicast, l2(2, 1)} {
			if f == nil {
				continue
			}
			r.in(0, f)
			if kind == i {
				r.none(1)
			} else {
				r.one(1)
			}
			r.one(2)
		}
		r.in(1, l2(1, 2))
		r.one(0)
		r.in(0, l2(2, 1))
		r.one(1)
	}
}
