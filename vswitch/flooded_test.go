package vswitch

import (
	"fmt"
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/scheduler/orders"
	"gswitch/wire"
)

// floodTo are destinations of the three kinds of floods: broadcast, a group, and a
// station that was not learned.
var floodTo = map[string]wire.MAC{"broadcast": wire.BroadcastMAC, "multicast": {1, 0, 0x5e, 1, 2, 3}, "unknown unicast": hostMAC(77)}

// sharedFloods is a bridge of four ports at 100 Mb/s whose floods have a share.
func sharedFloods(share float64) *Config {
	cfg := baseConfig(4)
	cfg.Buffer.Chunks, cfg.Buffer.FloodShare = true, share
	for i := range cfg.Ports {
		cfg.Ports[i].Trust, cfg.Ports[i].Scheduler = TrustPCP, scheduler.PortConfig{Rate: 100e6, Burst: 200 * frame.Microsecond}
	}
	return cfg
}

// beside sends some frames of class 3 from port 0 to port 1, five in eight of the
// link, and floods of a class from port 2 ten times as fast as the link is. It returns
// how many of the frames were sent and arrived, and how many copies came with them.
func beside(r *rig, to wire.MAC, pcp uint8) (sent, arrived, copies int) {
	r.in(1, l2(1, 2))
	for p := range uint16(4) {
		r.out(p)
	}
	for i := range 1000 {
		if i < 900 { // then what waits leaves
			sent++
			r.in(2, times(10, ofClass(to, hostMAC(3), pcp, 1200))...)
			r.in(0, ofClass(hostMAC(2), hostMAC(1), 3, 735))
		}
		for p := range uint16(4) {
			for _, f := range r.out(p) {
				switch {
				case p == 1 && wire.Ethernet(f).Src() == hostMAC(1):
					arrived++
				case p == 1:
					copies++
				}
			}
		}
		r.advance(100 * frame.Microsecond)
	}
	return sent, arrived, copies
}

// Floods take nothing from frames that are for one port alone, in the class of these
// or above, and by the default has an eighth of the link beside them. Without a share
// they lose.
func TestFloodsGiveWay(t *testing.T) {
	for kind, to := range floodTo {
		for _, pcp := range []uint8{0, 3, 7} {
			for _, share := range []float64{0, 0.125} {
				t.Run(fmt.Sprintf("%s of class %d, share %v", kind, pcp, share), func(t *testing.T) {
					r := newRig(t, sharedFloods(share))
					sent, arrived, copies := beside(r, to, pcp)
					if share == 0 {
						if pcp != 0 && arrived > sent*9/10 {
							t.Errorf("%d of %d frames arrived though floods have no share", arrived, sent)
						}
						return
					}
					if arrived != sent || r.counts(2).Drops[frame.FloodShare] == 0 {
						t.Errorf("%d of %d frames arrived; drops %v", arrived, sent, r.drops())
					}
					// The link has room for some 600 beside the frames.
					if copies < 100 || copies > 800 {
						t.Errorf("%d copies", copies)
					}
					for p, ps := range r.sw.Nodes[0].ports {
						if n, _ := ps.sched.Backlog(); ps.floods.frames > n {
							t.Errorf("port %d: %d copies of %d frames", p, ps.floods.frames, n)
						}
					}
				})
			}
		}
	}
}

// A port for which there is no other traffic carries floods as fast as its link is, and
// what waits is less than half of what every port may always hold.
func TestFloodsHaveAnIdleLink(t *testing.T) {
	r := newRig(t, sharedFloods(0.125))
	copies := 0
	for range 1000 {
		r.in(2, times(10, ofClass(wire.BroadcastMAC, hostMAC(3), 0, 1200))...)
		copies += len(r.out(1))
		r.advance(100 * frame.Microsecond)
	}
	// 100 ms of 100 Mb/s are 1,006 frames of 1242 bytes.
	if copies < 1000 || copies > 1010 {
		t.Errorf("%d copies of floods by a link with room for 1006", copies)
	}
	n := r.sw.Nodes[0]
	waiting, _ := n.ports[1].sched.Backlog()
	if own := int(n.buffer.Own(1514)); waiting > own/2 || waiting < own/2-1 || n.ports[1].floods.frames != waiting {
		t.Errorf("%d frames wait, %d copies; a port always has %d", waiting, n.ports[1].floods.frames, own)
	}
	r.setLink(1, false)
	if left := n.ports[1].floods; left.frames != 0 {
		t.Errorf("%d copies wait at a port without a link", left.frames)
	}
}

// Bursts with more floods than the share come through a switch that can send them all at
// once, or that sends them before the next burst, and lose nothing: with a rate and
// without, by flows, and through a crossbar.
func TestFloodsInABurst(t *testing.T) {
	of := func(rate uint64) *Config {
		cfg := sharedFloods(0.125)
		for i := range cfg.Ports {
			cfg.Ports[i].Scheduler.Rate = rate
		}
		return cfg
	}
	crossed, byFlow := of(1e9), of(0)
	WithCrossbar(crossed, Crossing{})
	for i := range byFlow.Ports {
		byFlow.Ports[i].Scheduler.Queues[0].Order = orders.VOQ{}
	}
	for name, cfg := range map[string]*Config{"no rate": of(0), "1 Gb/s": of(1e9), "by flow": byFlow, "crossbar": crossed} {
		for kind, to := range floodTo {
			t.Run(name+", "+kind, func(t *testing.T) {
				r := newRig(t, cfg)
				got := 0
				come := func() {
					got += len(r.out(1))
					for _, p := range []uint16{0, 2, 3} {
						r.out(p)
					}
				}
				r.in(1, l2(1, 2))
				r.advance(frame.Millisecond)
				if come(); got != 0 {
					t.Fatalf("%d frames came back", got)
				}
				const rounds = 100
				for range rounds { // a quarter for one port, the rest for all
					r.in(0, append(times(3, ofClass(hostMAC(2), hostMAC(1), 0, 200)), times(9, ofClass(to, hostMAC(1), 0, 200))...)...)
					come()
					r.advance(40 * frame.Microsecond)
					come()
				}
				if d := r.drops(); got != rounds*12 || len(d) != 0 {
					t.Errorf("%d of %d frames arrived; drops %v", got, rounds*12, d)
				}
			})
		}
	}
}

// The ring of a port without a rate that takes less than comes for it is what backs it
// up: floods give way there, too.
func TestFloodsGiveWayToAFullRing(t *testing.T) {
	for kind, to := range floodTo {
		t.Run(kind, func(t *testing.T) {
			cfg := sharedFloods(0.125)
			for i := range cfg.Ports {
				cfg.Ports[i].Scheduler.Rate = 0
			}
			r := newRig(t, cfg)
			r.in(1, l2(1, 2))
			for p := range uint16(4) {
				r.out(p)
			}
			sent, arrived, copies := 0, 0, 0
			for i := range 1000 {
				if i < 900 {
					sent += 5
					r.in(2, times(20, ofClass(to, hostMAC(3), 7, 1200))...)
					r.in(0, times(5, ofClass(hostMAC(2), hostMAC(1), 3, 735))...)
				}
				var v [8]frame.Ref // so many it takes
				for _, ref := range v[:r.sw.Nodes[0].Transmit(r.now, 1, v[:])] {
					if wire.Ethernet(r.arena.Bytes(ref)).Src() == hostMAC(1) {
						arrived++
					} else {
						copies++
					}
					r.pools[0].Free(ref)
				}
				for _, p := range []uint16{0, 2, 3} {
					r.out(p)
				}
				r.advance(100 * frame.Microsecond)
			}
			if arrived != sent || copies < 100 || r.counts(2).Drops[frame.FloodShare] == 0 {
				t.Errorf("%d of %d frames arrived, and %d copies; drops %v", arrived, sent, copies, r.drops())
			}
		})
	}
}

// A flood that only one port gets is like any frame for that port.
func TestFloodToOnePort(t *testing.T) {
	cfg := sharedFloods(0.125)
	cfg.Ports = cfg.Ports[:2]
	r := newRig(t, cfg)
	r.in(0, times(60, l2(77, 1))...)
	if n := &r.sw.Nodes[0].ports[1]; n.floods.frames != 0 {
		t.Errorf("%d copies of floods", n.floods.frames)
	}
}

// Copies take a worker that has fallen behind no more than half of the way to it:
// frames for one port alone still come through.
func TestFloodsLeaveRoomBetweenWorkers(t *testing.T) {
	cfg := sharedFloods(0.125)
	cfg.Ports[1].Worker = 1
	r := newRigOf(t, cfg, 2, 8192)
	r.in(1, l2(1, 2))
	from := r.sw.Nodes[0]
	ring := from.others.out[1].ring
	give := func(n int, b []byte) {
		for range n {
			from.Receive(r.now, 0, []frame.Ref{r.pools[0].New(b)})
		}
	}
	give(ring.Cap(), ofClass(wire.BroadcastMAC, hostMAC(1), 0, 20))
	if ring.Len() != ring.Cap()/2 || r.counts(0).Drops[frame.FloodShare] == 0 {
		t.Errorf("%d copies wait for the other worker, of %d; drops %v", ring.Len(), ring.Cap(), r.drops())
	}
	give(ring.Cap()/2, l2(2, 1))
	if n := r.counts(0).Drops[frame.WorkerRing]; ring.Len() != ring.Cap() || n != 0 {
		t.Errorf("%d of %d frames wait for the other worker, %d were lost", ring.Len(), ring.Cap(), n)
	}
	r.runAll()
	for p := range uint16(4) {
		r.out(p)
	}
}

// Copies of floods in a switch that changes: rates, shares, ports that go and come. What
// is counted of them is what waits.
func TestFloodsAreCounted(t *testing.T) {
	for seed := range uint64(20) {
		rng := frame.NewRand(seed)
		cfg := sharedFloods(0.125)
		r := newRig(t, cfg)
		for range 100 {
			switch rng.Uint32n(8) {
			case 0:
				next := *cfg
				next.Ports = append([]PortConfig(nil), cfg.Ports...)
				next.Buffer.FloodShare = []float64{0, 0.125, 0.5}[rng.Uint32n(3)]
				next.Ports[rng.Uint32n(4)].Scheduler.Rate = []uint64{1e6, 0}[rng.Uint32n(2)]
				r.apply(&next)
			case 1:
				r.setLink(uint16(rng.Uint32n(4)), rng.Uint32n(3) != 0)
			case 2:
				r.advance(frame.Time(rng.Uint32n(1000)) * frame.Microsecond)
			default:
				for _, to := range floodTo {
					r.in(uint16(rng.Uint32n(4)), times(int(rng.Uint32n(30)), ofClass(to, hostMAC(3), uint8(rng.Uint32n(8)), int(rng.Uint32n(1400))))...)
				}
				r.in(uint16(rng.Uint32n(4)), times(int(rng.Uint32n(30)), l2(1+int(rng.Uint32n(4)), 1+int(rng.Uint32n(4))))...)
			}
			r.out(uint16(rng.Uint32n(4)))
			for p := range r.sw.Nodes[0].ports {
				ps, waiting := &r.sw.Nodes[0].ports[p], 0
				for q := range 8 {
					ps.sched.Each(q, func(ref frame.Ref) bool {
						if r.arena.Meta(ref).Flags&frame.Flooded != 0 {
							waiting++
						}
						return true
					})
				}
				if waiting != ps.floods.frames {
					t.Fatalf("seed %d, port %d: %d copies wait, %d are counted", seed, p, waiting, ps.floods.frames)
				}
			}
		}
	}
}
