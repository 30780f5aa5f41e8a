package vswitch

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// weighted returns a route to 20.n.0.0/16 by the next hops of fanConfig, with
// weights that no other change has.
func weighted(n, change int, hops ...int) Route {
	r := Route{Prefix: netip.MustParsePrefix(fmt.Sprintf("20.%d.0.0/16", n))}
	for i, h := range hops {
		r.NextHops = append(r.NextHops, NextHop{Via: netip.MustParseAddr(fmt.Sprintf("10.0.%d.2", h)), Weight: uint32(1 + change>>(8*i)&0xff)})
	}
	return r
}

// flowTo is a frame to 20.n.0.1.
func flowTo(n int, flow uint16) []byte {
	return wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", fmt.Sprintf("20.%d.0.1", n)), wt.UDP(1000+flow, 2000), wt.Zeros(18))
}

// A controller changes weights 100,000 times: sets of next hops that no route
// uses any more are dropped, frames of its route go by those next hops, those
// of other routes where they always went, and each route counts under its id.
func TestWeightsChangeForever(t *testing.T) {
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprintf("workers=%d", workers), func(t *testing.T) {
			cfg := fanConfig(6, PathsConfig{})
			for i := range cfg.Ports {
				cfg.Ports[i].Worker = i % workers
			}
			adaptive := pipeline.ChooseAdaptive
			steady, loaded := weighted(8, 0x0302, 4, 5, 6), weighted(9, 0, 3, 6)
			loaded.Choose = &adaptive
			cfg.Routes = []Route{steady, weighted(1, 0, 1, 2)}
			r := newRigOf(t, cfg, workers, 4096)
			if err := r.sw.SetRoute(loaded); err != nil {
				t.Fatal(err)
			}
			r.runAll()
			sent := map[int]uint64{}
			send := func(n int, flow uint16) int {
				r.in(0, flowTo(n, flow))
				sent[n]++
				for p := uint16(1); p <= 6; p++ {
					if out := r.out(p); len(out) > 0 {
						if len(out) != 1 || wire.Ethernet(out[0]).Dst() != hostMAC(int(p)+1) {
							t.Fatalf("port %d sends %x", p, out)
						}
						return int(p)
					}
				}
				t.Fatalf("a frame of route %d is lost: %v", n, r.drops())
				return 0
			}
			var always [64]int
			for flow := range always {
				always[flow] = send(8, uint16(flow))
			}
			const changes = 100_000 / 2 // by each number of workers
			var heap [2]uint64
			by := [7]int{}
			for change := range changes {
				route := weighted(1, change, 1, 2, 3)
				if err := r.sw.SetRoute(route); err != nil {
					t.Fatal(err)
				}
				switch {
				case change%8 == 0:
					p := send(1, uint16(change))
					if by[p]++; p > 3 {
						t.Fatalf("change %d: port %d", change, p)
					}
					if p := send(8, uint16(change%512/8)); p != always[change%512/8] {
						t.Fatalf("change %d: a flow of another route goes by port %d, not %d", change, p, always[change%512/8])
					}
					if p := send(9, uint16(change)); p != 3 && p != 6 {
						t.Fatalf("change %d: port %d", change, p)
					}
				case change%1000 == 1: // a route that comes and goes
					if err := r.sw.SetRoute(weighted(2, change, 4, 5)); err != nil {
						t.Fatal(err)
					}
				case change%1000 == 2:
					if err := r.sw.DeleteRoute(netip.MustParsePrefix("20.2.0.0/16")); err != nil {
						t.Fatal(err)
					}
				}
				if rt := &r.sw.Program().routing; len(rt.groups) > 2*4+spareSets || len(rt.hops) > 3*len(rt.groups) || len(rt.sets) != len(rt.groups) {
					t.Fatalf("change %d: %d sets of next hops, %d next hops, %d names", change, len(rt.groups), len(rt.hops), len(rt.sets))
				}
				if change == changes/10 || change == changes-1 {
					heap[min(change/(changes/2), 1)] = heapInUse()
				}
			}
			// Each set that stayed would take a kilobyte: 45 MB.
			if heap[1] > heap[0]+1<<20 {
				t.Errorf("%d bytes of heap after %d changes, %d after %d", heap[0], changes/10, heap[1], changes)
			}
			if slices.Contains(by[1:4], 0) {
				t.Errorf("frames of the route that changes, by port: %v", by)
			}
			for info := range r.sw.Program().Routes {
				var n int
				if _, err := fmt.Sscanf(info.Prefix.String(), "20.%d.0.0/16", &n); err == nil && r.routed(info.ID) != sent[n] {
					t.Errorf("route %s counted %d frames of %d", info.Prefix, r.routed(info.ID), sent[n])
				}
			}
		})
	}
}

func (r *rig) routed(route uint32) (frames uint64) {
	for _, n := range r.sw.Nodes {
		frames += n.RouteCounts(nil)[route].Frames
	}
	return frames
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What is left after unused sets were dropped chooses as before, in every way there is, and
// routes that were deleted meanwhile come back with other next hops.
func TestSweepKeepsChoices(t *testing.T) {
	for kind := range pipeline.NumChoosers {
		cfg := rated(fanConfig(4, PathsConfig{Choose: kind}), 1e9)
		cfg.Routes = []Route{weighted(1, 0, 1, 2), weighted(2, 0x010003, 2, 3, 4)}
		r := newRig(t, cfg)
		before := r.ways(2)
		cleanings := 0
		for change := 1; cleanings < 3; change++ {
			if change > 100_000 {
				t.Fatalf("%v: unused sets stay", kind)
			}
			was := len(r.sw.Program().routing.groups)
			if err := r.sw.SetRoute(weighted(1, change, 1, 2)); err != nil {
				t.Fatal(err)
			}
			if len(r.sw.Program().routing.groups) < was {
				cleanings++
			}
			if change == 10 {
				if err := r.sw.DeleteRoute(netip.MustParsePrefix("20.1.0.0/16")); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.runAll()
		if after := r.ways(2); !slices.Equal(before, after) {
			t.Errorf("%v: flows go by ports %v, and before by %v", kind, after, before)
		}
	}
}

// ways are the ports by which keys of a route to 20.n.0.0/16 go.
func (r *rig) ways(n uint32) (ports []uint16) {
	node := r.sw.Nodes[0]
	node.rng = frame.NewRand(7)
	rt := &node.prog.routing
	g := rt.entries[rt.table.Lookup4(20<<24|n<<16|1)].group
	for i := range uint32(500) {
		node.now = frame.Time(i) * frame.Microsecond
		hop := node.choose(g, &frame.Meta{Hash: i * 2654435769})
		ports = append(ports, node.prog.ifaces[rt.hops[hop].iface].port)
	}
	return ports
}

// Two workers forward at once while weights change; run with -race. No frame
// goes where its route does not lead, and none is lost.
func TestWeightsChangeBesideWorkers(t *testing.T) {
	cfg := fanConfig(5, PathsConfig{})
	for i := range cfg.Ports {
		cfg.Ports[i].Worker = i % 2
	}
	cfg.Routes = []Route{weighted(1, 0, 1, 2, 3), weighted(2, 0, 4, 5)}
	r := newRigOf(t, cfg, 2, 16384)
	frames := [2][]byte{flowTo(1, 7), flowTo(2, 7)}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var sent, got [2]int
	for w := range 2 {
		wg.Go(func() {
			n, pool := r.sw.Nodes[w], r.pools[w]
			var v [16]frame.Ref
			for i, idle := 0, 0; idle < 2; i++ {
				now := r.now + frame.Time(i)*frame.Microsecond
				n.Advance(now)
				select {
				case <-stop:
					idle++
				default:
					k := 0
					for range 4 {
						if ref := pool.New(frames[i&1]); ref != frame.Nil {
							v[k] = ref
							k++
						}
					}
					sent[w] += k
					n.Receive(now, 0, v[:k])
				}
				for p := 1 + (1+w)%2; p <= 5; p += 2 {
					k := n.Transmit(now, uint16(p), v[:])
					for _, ref := range v[:k] {
						if b := r.arena.Bytes(ref); (b[31] == 1) != (p <= 3) {
							t.Errorf("a frame to 20.%d.0.1 leaves by port %d", b[31], p)
						}
						pool.Free(ref)
					}
					got[w] += k
				}
			}
		})
	}
	for change := range 5000 {
		if err := r.sw.SetRoute(weighted(1, change, 1, 2, 3)); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	r.advance(frame.Second) // later than any worker was
	left := 0
	for p := uint16(1); p <= 5; p++ {
		left += len(r.out(p))
	}
	// Nothing waits for a worker that the machine keeps from its processor: what
	// comes for it overflows.
	drops, over := r.drops(), 0
	for _, why := range []frame.Reason{frame.WorkerRing, frame.ArenaExhausted} {
		over += int(drops[why.String()])
		delete(drops, why.String())
	}
	if len(drops) > 0 {
		t.Errorf("dropped: %v", drops)
	}
	if sent[0] == 0 || sent[1] == 0 || sent[0]+sent[1] != got[0]+got[1]+left+over {
		t.Errorf("sent %v, got %v, left %d, too many %d", sent, got, left, over)
	}
}
