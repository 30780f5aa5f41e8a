package vswitch

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/scheduler"
	wt "gswitch/wire/wiretest"
)

// fanConfig is a switch that routes what comes by port 0 over a group of n
// ports, from 1 on.
func fanConfig(n int, c PathsConfig) *Config {
	cfg := baseConfig(n + 1)
	cfg.Paths = c
	cfg.Ports[0].Addresses = prefixes("10.0.0.1/24")
	r := Route{Prefix: netip.MustParsePrefix("20.0.0.0/8")}
	for i := 1; i <= n; i++ {
		cfg.Ports[i].Addresses = prefixes(fmt.Sprintf("10.0.%d.1/24", i))
		via := netip.MustParseAddr(fmt.Sprintf("10.0.%d.2", i))
		cfg.Neighbors = append(cfg.Neighbors, StaticNeighbor{Addr: via, MAC: hostMAC(i + 1)})
		r.NextHops = append(r.NextHops, NextHop{Via: via})
	}
	cfg.Routes = []Route{r}
	cfg.Buffer.Size = 8 << 20
	return cfg
}

// fanned is the class and length of a frame to the group of fanConfig.
func fanned(class, length int, flow uint16) []byte {
	return wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "20.7.0.1", wt.TOS(uint8(class)<<5)), wt.UDP(1000+flow, 2000), wt.Zeros(length-42))
}

func fan(t testing.TB, n int, c PathsConfig) *rig {
	return newRig(t, rated(trusting(fanConfig(n, c)), 1e9))
}

func trusting(cfg *Config) *Config {
	for i := range cfg.Ports {
		cfg.Ports[i].Trust = TrustDSCP
	}
	return cfg
}

// load makes port p look as if n bytes of a class waited there.
func (r *rig) load(p uint16, class int, n int) {
	node := r.sw.Nodes[0]
	for ; n > 0; n -= 9000 {
		ref := r.pools[0].New(make([]byte, 60))
		m := r.arena.Meta(ref)
		m.InPort, m.OutPort, m.Class, m.Wire = 0, p, uint8(class), uint32(min(n, 9000))
		node.now = r.now
		node.enqueue([]frame.Ref{ref})
	}
}

// picks draws n ways for a class, and returns how many went by each port.
func (r *rig) picks(class uint8, n int) map[uint16]int {
	node := r.sw.Nodes[0]
	got := map[uint16]int{}
	for i := range n {
		hop := node.choose(0, &frame.Meta{Class: class, Hash: uint32(i) * 2654435769})
		got[node.prog.ifaces[node.prog.routing.hops[hop].iface].port]++
	}
	return got
}

func wantShares(t *testing.T, got map[uint16]int, n int, ports ...uint16) {
	t.Helper()
	if len(got) != len(ports) {
		t.Errorf("ports %v are chosen, want %v", got, ports)
	}
	for _, p := range ports {
		if share := float64(got[p]) / float64(n) * float64(len(ports)); share < 0.98 || share > 1.02 {
			t.Errorf("port %d has %.3f of its share: %v", p, share, got)
		}
	}
}

// The ports that may be taken for what waits at them, after section 4.3 of the
// paper, and that classes above count.
func TestAdaptivePaths(t *testing.T) {
	const n = 100_000
	for name, c := range map[string]struct {
		loads [4]int
		of    int // class of what waits
		class uint8
		want  []uint16
		tier  int
	}{
		"two are favoured":                     {[4]int{0, 17_000, 10_000, 70_000}, 3, 3, []uint16{1, 3}, 0},
		"two are less favoured":                {[4]int{20_000, 30_000, 65_536, 70_000}, 3, 3, []uint16{1, 2}, 1},
		"none is favoured":                     {[4]int{65_536, 90_000, 70_000, 80_000}, 3, 3, []uint16{1, 2, 3, 4}, pipeline.MaxTiers},
		"16384 bytes are too many":             {[4]int{16_384, 16_383, 16_384, 16_384}, 0, 0, []uint16{2}, 0},
		"what waits above counts":              {[4]int{20_000, 0, 20_000, 0}, 7, 2, []uint16{2, 4}, 0},
		"what waits below does not":            {[4]int{100_000, 0, 100_000, 0}, 0, 7, []uint16{1, 2, 3, 4}, 0},
		"the same for those who wait below it": {[4]int{100_000, 0, 100_000, 0}, 0, 0, []uint16{2, 4}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := fan(t, 4, PathsConfig{Choose: pipeline.ChooseAdaptive})
			for i, b := range c.loads {
				r.load(uint16(i+1), c.of, b)
			}
			wantShares(t, r.picks(c.class, n), n, c.want...)
			counts := r.sw.Nodes[0].PathCounts()
			if got := counts.Tier[c.class][c.tier]; got != n {
				t.Errorf("%d of %d choices are counted in tier %d: %v", got, n, c.tier, counts.Tier[c.class])
			}
		})
	}
}

// Thresholds in time are more bytes where the link is faster.
func TestAdaptivePathsByTime(t *testing.T) {
	cfg := rated(trusting(fanConfig(2, PathsConfig{Choose: pipeline.ChooseAdaptive, Times: []frame.Time{100 * frame.Microsecond}})), 1e9)
	cfg.Ports[2].Scheduler.Rate = 1e8
	r := newRig(t, cfg)
	r.load(1, 0, 12_499)
	r.load(2, 0, 1250)
	wantShares(t, r.picks(0, 1000), 1000, 1)
	r.load(1, 0, 1)
	wantShares(t, r.picks(0, 40_000), 40_000, 1, 2)
}

// A port without a link is in no set, and is again when it comes back; if none
// is left the frames are dropped and counted.
func TestAdaptivePathsWithoutLinks(t *testing.T) {
	for _, kind := range []pipeline.Chooser{pipeline.ChooseScatter, pipeline.ChooseFlowlet, pipeline.ChooseAdaptive, pipeline.ChooseLeast} {
		t.Run(kind.String(), func(t *testing.T) {
			r := fan(t, 3, PathsConfig{Choose: kind})
			r.setLink(2, false)
			if got := r.picks(0, 1000); got[2] != 0 || len(got) != 2 {
				t.Errorf("without link at port 2: %v", got)
			}
			r.setLink(2, true)
			if got := r.picks(0, 1000); len(got) != 3 && kind != pipeline.ChooseFlowlet {
				t.Errorf("with all links: %v", got)
			}
			for p := range uint16(3) {
				r.setLink(p+1, false)
			}
			r.in(0, fanned(0, 100, 1))
			r.wantDrop(0, frame.EgressPortDown)
		})
	}
}

// Frames of exempt classes take the way that flows take, whatever the group.
func TestExemptClassesGoByFlow(t *testing.T) {
	flow := fan(t, 4, PathsConfig{})
	want := flow.picks(5, 1000)
	for kind := range pipeline.NumChoosers {
		r := fan(t, 4, PathsConfig{Choose: kind, Exempt: 1 << 5})
		r.load(1, 5, 100_000)
		if got := r.picks(5, 1000); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v: %v, by flow %v", kind, got, want)
		}
	}
}

// A flow stays on a way while its pauses are short.
func TestFlowletPaths(t *testing.T) {
	const gap = 100 * frame.Microsecond
	r := fan(t, 4, PathsConfig{Choose: pipeline.ChooseFlowlet, FlowletGap: gap})
	send := func() (at uint16) {
		r.in(0, fanned(0, 100, 1))
		for p := range uint16(4) {
			if len(r.out(p+1)) > 0 {
				at = p + 1
			}
		}
		return at
	}
	seen := map[uint16]bool{}
	for range 40 {
		first := send()
		for range 10 {
			r.advance(gap)
			if at := send(); at != first {
				t.Fatalf("a frame after %v goes by port %d, the one before by port %d", gap.Duration(), at, first)
			}
		}
		seen[first] = true
		r.advance(gap + 1)
	}
	if len(seen) != 4 {
		t.Errorf("40 flowlets went by ports %v", seen)
	}
	if c := r.sw.Nodes[0].PathCounts(); c.Flowlets != 40 {
		t.Errorf("%d flowlets are counted", c.Flowlets)
	}
}

// The weights are the rates of the links.
func TestWeightedPaths(t *testing.T) {
	cfg := rated(fanConfig(3, PathsConfig{Choose: pipeline.ChooseWeighted}), 1e9)
	cfg.Ports[2].Scheduler.Rate = 4e9
	cfg.Ports[3].Scheduler.Rate = 0 // 10 Gb/s, nominally
	got := newRig(t, cfg).picks(0, 150_000)
	for p, want := range map[uint16]float64{1: 10_000, 2: 40_000, 3: 100_000} {
		if x := float64(got[p]) / want; x < 0.95 || x > 1.05 {
			t.Errorf("port %d got %d, want about %.0f", p, got[p], want)
		}
	}
}

// A route may choose otherwise than the rest, also one that is added later.
func TestRouteNamesItsChoice(t *testing.T) {
	r := fan(t, 2, PathsConfig{})
	if r.sw.Nodes[0].paths.loads != nil {
		t.Error("loads are counted though nobody asks for them")
	}
	r.load(1, 0, 20_000) // is counted though it waits already
	kind := pipeline.ChooseAdaptive
	via := r.sw.Program().Config.Routes[0].NextHops
	if err := r.sw.SetRoute(Route{Prefix: netip.MustParsePrefix("30.0.0.0/8"), NextHops: via, Choose: &kind}); err != nil {
		t.Fatal(err)
	}
	r.runAll()
	n := r.sw.Nodes[0]
	for i := range 200 {
		hop := n.choose(1, &frame.Meta{Hash: uint32(i) << 24})
		if p := n.prog.ifaces[n.prog.routing.hops[hop].iface].port; p != 2 {
			t.Fatalf("port %d is chosen", p)
		}
	}
	if got := r.picks(0, 1000); len(got) != 2 {
		t.Errorf("the other route: %v", got)
	}
}

func TestPathsRefused(t *testing.T) {
	vlan := baseConfig(3)
	vlan.VLANs = []VLANConfig{{ID: 1, Addresses: prefixes("10.0.1.1/24")}}
	vlan.Routes = []Route{{Prefix: netip.MustParsePrefix("20.0.0.0/8"), NextHops: []NextHop{{Via: netip.MustParseAddr("10.0.1.2")}, {Via: netip.MustParseAddr("10.0.1.3")}}}}
	same := fanConfig(2, PathsConfig{})
	same.Routes[0].NextHops = append(same.Routes[0].NextHops, NextHop{Via: netip.MustParseAddr("10.0.1.3")})
	for want, cfg := range map[string]*Config{
		"is not above the one before": fanConfig(2, PathsConfig{Thresholds: []uint64{5, 5}}),
		"threshold 1 of [0]":          fanConfig(2, PathsConfig{Thresholds: []uint64{0}}),
		"more than 4":                 fanConfig(2, PathsConfig{Times: []frame.Time{1, 2, 3, 4, 5}}),
		"exclude each other":          fanConfig(2, PathsConfig{Thresholds: []uint64{5}, Times: []frame.Time{1}}),
		"is negative":                 fanConfig(2, PathsConfig{FlowletGap: -1}),
		"no way to choose":            fanConfig(2, PathsConfig{Choose: 77}),
		"behind VLAN 1":               vlan,
		"both behind port b":          same,
	} {
		if cfg.Paths.Choose == pipeline.ChooseHash && len(cfg.Paths.Thresholds)+len(cfg.Paths.Times) == 0 {
			cfg.Paths.Choose = pipeline.ChooseAdaptive
		}
		r := newRig(t, baseConfig(1))
		if _, err := New(cfg, r.pools); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Whatever comes and goes, links, configurations and routes among it: what a
// path is chosen by is what waits, and no frame is lost without being counted
// (the rig counts chunks).
func TestPathsProperty(t *testing.T) {
	kinds := []pipeline.Chooser{pipeline.ChooseAdaptive, pipeline.ChooseLeast, pipeline.ChooseHash, pipeline.ChooseFlowlet}
	rapid.Check(t, func(rt *rapid.T) {
		sub := &subTest{T: t}
		r := fan(sub, 4, PathsConfig{Choose: kinds[0]})
		defer sub.finish()
		in, out := 0, 0
		for range 60 {
			p := uint16(rapid.IntRange(1, 4).Draw(rt, "port"))
			switch rapid.IntRange(0, 11).Draw(rt, "what") {
			case 0:
				r.setLink(p, rapid.Bool().Draw(rt, "up"))
			case 1:
				cfg := *r.sw.Program().Config
				cfg.Paths = PathsConfig{Choose: rapid.SampledFrom(kinds).Draw(rt, "kind"), Thresholds: []uint64{3000, 9000}}
				if err := r.sw.Apply(&cfg); err != nil {
					rt.Fatal(err)
				}
				r.runAll()
			case 2, 3, 4:
				r.advance(frame.Time(rapid.IntRange(0, 50_000).Draw(rt, "wait")))
				out += len(r.out(p))
			default:
				v := make([][]byte, rapid.IntRange(1, 9).Draw(rt, "frames"))
				for i := range v {
					v[i] = fanned(rapid.IntRange(0, 7).Draw(rt, "class"), rapid.IntRange(60, 1500).Draw(rt, "length"), uint16(i))
				}
				in += len(v)
				r.in(0, v...)
			}
			waiting := 0
			for p := range uint16(5) {
				s := r.sw.Nodes[0].ports[p].sched
				frames, _ := s.Backlog()
				waiting += frames
				if l := r.sw.Nodes[0].paths.loads; l != nil {
					for q := range scheduler.NumQueues {
						below := l.Below[q][0][0]>>p&1 != 0
						if limit := r.sw.Program().Config.Paths.thresholds(&PortConfig{})[0]; below != (s.DrainBytes(q) < limit) {
							rt.Fatalf("port %d queue %d with %d bytes is below %d: %v", p, q, s.DrainBytes(q), limit, below)
						}
					}
				}
			}
			lost := 0
			for _, k := range r.drops() {
				lost += int(k)
			}
			if in != out+waiting+lost {
				rt.Fatalf("%d frames came, %d left, %d wait, %d were dropped: %v", in, out, waiting, lost, r.drops())
			}
		}
	})
}

// subTest lets a rig be closed within one draw of a property.
type subTest struct {
	*testing.T
	last []func()
}

func (s *subTest) Cleanup(f func()) { s.last = append(s.last, f) }

func (s *subTest) finish() {
	for _, f := range s.last {
		f()
	}
}

// A vector whose ports belong to another worker, which counts it only when it
// is over, does not go to the port that was least loaded when it began.
func TestVectorDoesNotHerd(t *testing.T) {
	for kind, most := range map[pipeline.Chooser]int{pipeline.ChooseLeast: 25, pipeline.ChooseAdaptive: 18} {
		cfg := rated(trusting(fanConfig(4, PathsConfig{Choose: kind, Thresholds: []uint64{16 << 10, 24 << 10}})), 1e9)
		for i := range cfg.Ports[1:] {
			cfg.Ports[1+i].Worker = 1
		}
		r := newRigOf(t, cfg, 2, 4096)
		for range 12 { // 18 KB at all but port 1
			for p := uint16(2); p <= 4; p++ {
				r.enqueueAt(p)
			}
		}
		var v [][]byte
		for i := range 64 {
			v = append(v, fanned(0, 1500, uint16(i)))
		}
		r.in(0, v...)
		frames, _ := r.sw.Nodes[1].ports[1].sched.Backlog()
		// Adaptive: 11 frames until 16 KiB are reached, then its share of the
		// second tier until 24 KiB are.
		if frames > most || frames < 11 {
			t.Errorf("%v: port 1 has %d of 64 frames, want 11 to %d", kind, frames, most)
		}
		if kind == pipeline.ChooseLeast && r.sw.Nodes[0].paths.loads.Bytes[0][1] != 0 {
			t.Error("port 1 is still burdened with what its owner has counted")
		}
	}
}

// enqueueAt puts a frame of 1500 bytes into the lowest queue of a port.
func (r *rig) enqueueAt(p uint16) {
	worker := r.sw.Program().ports[p].worker
	owner := r.sw.Nodes[worker]
	ref := r.pools[worker].New(make([]byte, 1500))
	m := r.arena.Meta(ref)
	m.InPort, m.OutPort = 0, p
	owner.now = r.now
	owner.enqueue([]frame.Ref{ref})
}

// What one worker has queued, another one goes by.
func TestPathsCrossWorkers(t *testing.T) {
	for _, kind := range []pipeline.Chooser{pipeline.ChooseLeast, pipeline.ChooseAdaptive} {
		cfg := rated(trusting(fanConfig(4, PathsConfig{Choose: kind})), 1e9)
		for i := range cfg.Ports {
			cfg.Ports[i].Worker = i % 2
		}
		r := newRigOf(t, cfg, 2, 4096)
		for range 20 { // 30 KB at ports 1 to 3, of both workers
			for p := uint16(1); p <= 3; p++ {
				r.enqueueAt(p)
			}
		}
		if got := r.picks(0, 500); got[4] != 500 {
			t.Errorf("%v: %v, want all at port 4", kind, got)
		}
	}
}

// Two workers choose and queue at once; run with -race.
func TestPathsRunConcurrently(t *testing.T) {
	cfg := trusting(fanConfig(4, PathsConfig{Choose: pipeline.ChooseAdaptive, Thresholds: []uint64{2000, 6000}}))
	for i := range cfg.Ports {
		cfg.Ports[i].Worker = i % 2
	}
	r := newRigOf(t, cfg, 2, 16384)
	least := *cfg
	least.Paths.Choose = pipeline.ChooseLeast
	const rounds = 1500
	done := make(chan int, 2)
	for w := range 2 {
		go func() {
			n, pool := r.sw.Nodes[w], r.pools[w]
			var v [16]frame.Ref
			got := 0
			for i := range rounds * 2 {
				now := r.now + frame.Time(i)*frame.Microsecond
				n.Advance(now)
				if i < rounds {
					k := 0
					for f := range 8 {
						if ref := pool.New(fanned(f%8, 400, uint16(f))); ref != frame.Nil {
							v[k] = ref
							k++
						}
					}
					n.Receive(now, 0, v[:k])
				}
				for p := uint16(w); p < 5; p += 2 {
					k := n.Transmit(now, p, v[:3])
					for _, ref := range v[:k] {
						pool.Free(ref)
					}
					got += k
				}
			}
			done <- got
		}()
	}
	for i := range 50 {
		c := []*Config{cfg, &least}[i%2]
		if err := r.sw.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := <-done, <-done; a == 0 || b == 0 {
		t.Errorf("the workers sent %d and %d frames", a, b)
	}
}

func TestPathsAllocateNothing(t *testing.T) {
	for kind := range pipeline.NumChoosers {
		cfg := fanConfig(2, PathsConfig{Choose: kind})
		p := newPump(t, cfg, flows(64, func(i int) string { return fmt.Sprintf("20.0.%d.7", i) }, 0))
		both := func() {
			k := p.step(0, 1)
			k += p.r.sw.Nodes[0].Transmit(p.r.now, 2, p.v[k:])
			if k != vector {
				t.Fatalf("%v: %d of %d frames came out: %v", kind, k, vector, p.r.drops())
			}
		}
		both()
		if got := testing.AllocsPerRun(100, both); got != 0 {
			t.Errorf("%v: %v allocations a vector", kind, got)
		}
		p.free()
	}
}

// Frames that wait at the crossbar count for the port that was chosen for them
// if that is asked for, and those that have crossed count once.
func TestAssignedFramesCount(t *testing.T) {
	for _, assigned := range []bool{false, true} {
		cfg := rated(trusting(fanConfig(2, PathsConfig{Choose: pipeline.ChooseAdaptive, Assigned: assigned})), 1e9)
		WithCrossbar(cfg, Crossing{Latency: frame.Millisecond})
		r := newRig(t, cfg)
		for range 2 {
			var v [][]byte
			for i := range 40 {
				v = append(v, fanned(0, 1500, uint16(i)))
			}
			r.in(0, v...)
		}
		n := r.sw.Nodes[0]
		below := n.paths.loads.Below[0][0][0]
		if got := below&0b110 == 0; got != assigned {
			t.Errorf("assigned %v: below the first threshold are ports %b", assigned, below)
		}
		for range 1000 {
			r.advance(100 * frame.Microsecond)
			r.out(1)
			r.out(2)
		}
		for p := uint16(1); p <= 2; p++ {
			if b := n.paths.loads.Below[0][0][0]; b>>p&1 == 0 {
				t.Errorf("assigned %v: with nothing left port %d is burdened", assigned, p)
			}
		}
	}
}
