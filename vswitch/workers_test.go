package vswitch

import (
	"slices"
	"sync"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// twoWorkers is a bridge whose ports 0 and 1 belong to different workers.
func twoWorkers(cfg *Config) *Config {
	for i := range cfg.Ports {
		cfg.Ports[i].Worker = i % 2
	}
	return cfg
}

func TestFramesCrossWorkers(t *testing.T) {
	r := newRigOf(t, twoWorkers(baseConfig(4)), 2, 4096)
	r.in(0, l2(2, 1))
	for _, p := range []uint16{1, 2, 3} {
		r.one(p)
	}
	r.in(1, l2(1, 2)) // learned by worker 0, used by worker 1
	r.one(0)
	r.none(2)
	r.inOn(0, 1, l2(1, 3)) // a queue of port 1 that worker 0 serves
	r.one(0)
}

func TestRoutingFromAWorkerWithoutSlowPath(t *testing.T) {
	r := newRigOf(t, twoWorkers(routerConfig()), 2, 4096)
	r.in(1, udp(selfMAC, hostMAC(2), "10.0.0.9", "10.0.1.2"))
	q := r.one(0)
	if a := wire.ARP(q[14:]); a.Op() != wire.ARPRequest {
		t.Fatalf("worker 1 asked %x", q)
	}
	r.in(0, arp(wire.ARPReply, selfMAC, hostMAC(1), "10.0.0.9", "10.0.0.1"))
	if b := r.one(0); wire.Ethernet(b).Dst() != hostMAC(1) {
		t.Errorf("routed frame is %x", b)
	}
}

func TestPauseCrossesWorkers(t *testing.T) {
	cfg := twoWorkers(losslessConfig(2))
	r := newRigOf(t, cfg, 2, 4096)
	r.inOn(0, 1, pfcFrame(1<<3, 0xffff)) // for port 1, seen by worker 0
	r.in(0, tagged(1, 0, 3, 100))
	r.none(1)
	r.inOn(0, 1, pfcFrame(1<<3, 0))
	r.one(1)
	// Congestion in worker 1's share of the buffer pauses worker 0's port.
	for range 25 {
		r.in(0, tagged(1, 0, 3, 1000))
	}
	if b := r.out(0); len(b) == 0 || wire.MACControl(b[0]).Enabled() != 1<<3 {
		t.Error("port 0 did not ask its sender to pause")
	}
	for range 100 {
		r.advance(10 * frame.Microsecond)
		r.out(1)
	}
	if b := r.out(0); len(b) == 0 || wire.MACControl(b[len(b)-1]).Quanta(3) != 0 {
		t.Error("port 0 did not let its sender go on")
	}
}

// Two workers forward at once while the control plane changes the program;
// run with -race. Every frame is accounted for.
func TestWorkersRunConcurrently(t *testing.T) {
	cfg := twoWorkers(baseConfig(4))
	r := newRigOf(t, cfg, 2, 16384)
	const rounds = 2000
	var wg sync.WaitGroup
	var sent, got [2]int
	for w := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			n, pool := r.sw.Nodes[w], r.pools[w]
			var v [16]frame.Ref
			rnd := frame.NewRand(uint64(w))
			for i := range rounds * 2 {
				now := r.now + frame.Time(i)*frame.Microsecond
				n.Advance(now)
				if i < rounds {
					k := 0
					for range 8 {
						src, dst := 1+rnd.Uint32n(50), 1+rnd.Uint32n(50)
						if ref := pool.New(l2(int(dst), int(src))); ref != frame.Nil {
							v[k] = ref
							k++
						}
					}
					sent[w] += k
					n.Receive(now, uint16(w+2*int(rnd.Uint32n(2))), v[:k])
				}
				for p := uint16(w); p < 4; p += 2 {
					k := n.Transmit(now, p, v[:])
					for _, ref := range v[:k] {
						pool.Free(ref)
					}
					got[w] += k
				}
			}
		}()
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := range 200 {
			c := *cfg
			c.Ports = append([]PortConfig(nil), cfg.Ports...)
			c.Ports[3].Isolated = i%2 == 0
			if err := r.sw.Apply(&c); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	wg.Wait()
	if sent[0] == 0 || got[0] == 0 || got[1] == 0 {
		t.Errorf("sent %v, got %v", sent, got)
	}
}

// An engine that runs the switch on some of its workers is given those.
func TestHandoffNamesTheEnginesWorkers(t *testing.T) {
	cfg := twoWorkers(baseConfig(2))
	cfg.Workers = []int{1, 5}
	r := newRigOf(t, cfg, 2, 4096)
	for _, n := range r.sw.Nodes {
		n.Handoff()
	}
	r.in(0, l2(2, 1))
	if got := r.sw.Nodes[0].Handoff(); got != 1<<5 {
		t.Errorf("handed to workers %b", got)
	}
	r.sw.Nodes[1].SetLink(r.now, 1, false)
	if got := r.sw.Nodes[1].Handoff(); got != 1<<1 {
		t.Errorf("notifies workers %b of a link", got)
	}
	cfg.Workers = []int{1}
	if _, err := New(cfg, r.pools); err == nil {
		t.Error("one worker named for two")
	}
}

// A frame that waited for its neighbour on another worker leaves before the next of its flow,
// which came when the neighbour was known, although both reach the worker together.
func TestOrderAcrossWorkers(t *testing.T) {
	r := newRigOf(t, twoWorkers(routerConfig()), 2, 4096)
	numbered := func(i byte) []byte {
		return wt.Frame(wt.Eth(selfMAC, hostMAC(2)), wt.IPv4("10.0.1.2", "10.0.0.9"), wt.UDP(1000, 2000), wt.Payload([]byte{i}), wt.Zeros(20))
	}
	r.receive(1, numbered(1)) // to the slow path
	r.receive(0, arp(wire.ARPReply, selfMAC, hostMAC(1), "10.0.0.9", "10.0.0.1"))
	r.receive(1, numbered(2))
	r.sw.Nodes[0].Advance(r.now)
	var order []byte
	for _, b := range r.out(0) {
		order = append(order, b[42])
	}
	if !slices.Equal(order, []byte{1, 2}) {
		t.Errorf("frames leave in the order %v, drops %v", order, r.drops())
	}
}

// Frames of two ports that reach their worker together are charged to the port of each.
func TestFramesOfTwoPortsCrossTogether(t *testing.T) {
	cfg := twoWorkers(baseConfig(4))
	cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 1}}
	r := newRigOf(t, cfg, 2, 4096)
	r.receive(0, times(5, l2(2, 1))...)
	r.receive(2, times(7, l2(2, 3))...)
	r.runAll()
	each := uint64(len(l2(2, 1)))
	b := r.sw.Nodes[1].buffer
	if from0, from2 := b.Held(0, 0), b.Held(2, 0); from0 != 5*each || from2 != 7*each {
		t.Errorf("%d and %d bytes are charged, want %d and %d", from0, from2, 5*each, 7*each)
	}
	r.out(1)
	if got := r.charged(); got != "" {
		t.Errorf("charged when all has left: %s", got)
	}
}
