package vswitch

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/pipeline"
	wt "gswitch/wire/wiretest"
)

// The flows of a next hop whose link is gone are spread over the others by
// their weights, one way each as long as that has a link; flows of the others
// stay.
func TestFlowsOfALostLinkFollowWeights(t *testing.T) {
	const n = 200_000
	cfg := rated(fanConfig(4, PathsConfig{Choose: pipeline.ChooseWeighted}), 10e9)
	cfg.Ports[4].Scheduler.Rate = 1e9
	r := newRig(t, cfg)
	ways := func() []uint16 {
		node, v := r.sw.Nodes[0], make([]uint16, n)
		for i := range v {
			hop := node.choose(0, &frame.Meta{Hash: uint32(i) * 2654435769})
			v[i] = node.prog.ifaces[node.prog.routing.hops[hop].iface].port
		}
		return v
	}
	share := func(v []uint16, p uint16) float64 {
		k := 0
		for _, q := range v {
			if q == p {
				k++
			}
		}
		return float64(k) / n
	}
	whole := ways()
	r.setLink(1, false)
	less := ways()
	r.setLink(2, false)
	least := ways()
	// The table is exact to 3 % of a member's share, of the slowest to a bucket.
	for p, want := range map[uint16]float64{1: 0, 2: 10. / 21, 3: 10. / 21, 4: 1. / 21} {
		if got := share(less, p); got < want-0.02 || got > want+0.02 {
			t.Errorf("without link 1, port %d has %.3f of the flows, want %.3f", p, got, want)
		}
	}
	for p, want := range map[uint16]float64{1: 0, 2: 0, 3: 10. / 11, 4: 1. / 11} {
		if got := share(least, p); got < want-0.02 || got > want+0.02 {
			t.Errorf("without links 1 and 2, port %d has %.3f of the flows, want %.3f", p, got, want)
		}
	}
	for i := range whole {
		if whole[i] != 1 && less[i] != whole[i] || less[i] != 2 && least[i] != less[i] {
			t.Fatalf("flow %d went by ports %d, %d, %d: it left a port that has a link", i, whole[i], less[i], least[i])
		}
	}
	r.setLink(1, true)
	r.setLink(2, true)
	if !slices.Equal(ways(), whole) {
		t.Error("with all links again, flows go otherwise than before")
	}
}

// A next hop that has a link and does not answer takes no frames from those that
// do, whatever chooses: nothing waits at its port, so by what waits it would be
// the best of all.
func TestUnresolvedNextHopIsAvoided(t *testing.T) {
	for kind := range pipeline.NumChoosers {
		t.Run(kind.String(), func(t *testing.T) {
			cfg := trusting(fanConfig(3, PathsConfig{Choose: kind}))
			cfg.Neighbors = slices.DeleteFunc(cfg.Neighbors, func(s StaticNeighbor) bool { return s.Addr == netip.MustParseAddr("10.0.2.2") })
			r := newRig(t, cfg)
			sent, came := 0, 0
			send := func() {
				for range 20 {
					sent++
					r.in(0, fanned(0, 200, uint16(sent)))
				}
				came += len(r.out(1)) + len(r.out(3))
				r.out(2) // questions
			}
			for range 5 {
				send()
			}
			waits := sent - came
			if waits > neighborPending {
				t.Errorf("%d of %d frames wait for an answer, at most %d may", waits, sent, neighborPending)
			}
			// No answer: what waited goes by the others, too.
			for range 2 * neighborTries {
				r.advance(neighborRetry)
				send()
			}
			if failed := r.sw.Nodes[0].local.table[nextHop{r.sw.Nodes[0].prog.ports[2].iface, keyOf(netip.MustParseAddr("10.0.2.2"))}]; waits == 0 || failed == nil {
				t.Fatal("the silent next hop was never chosen")
			}
			r.advance(neighborRetry)
			came += len(r.out(1)) + len(r.out(3))
			if d := r.drops(); sent-came > neighborPending || len(d) != 0 {
				t.Errorf("of %d frames %d came: drops %v", sent, came, d)
			}
			// Without the others there is nowhere to go, which is reported and counted.
			r.setLink(1, false)
			r.setLink(3, false)
			for range 2 * neighborTries {
				r.advance(neighborRetry)
				r.in(0, fanned(0, 200, 1))
			}
			if r.counts(0).Drops[frame.NeighborFailed] == 0 {
				t.Errorf("drops %v", r.drops())
			}
		})
	}
}

// A port that is err-disabled since its neighbour does not pause is chosen no more,
// and is again after a while.
func TestDisabledPortIsNotChosen(t *testing.T) {
	const us, n = frame.Microsecond, 3000
	cfg := rated(trusting(fanConfig(3, PathsConfig{Choose: pipeline.ChooseAdaptive})), 1e9)
	cfg.PFC = PFCConfig{Mode: pfc.PFC, Classes: 1 << 3, ErrDisable: frame.Millisecond, Grace: 50 * us}
	WithCrossbar(cfg, Crossing{Pause: 8192, Unpause: 4557, Egress: 2000})
	cfg.Buffer.AllowLoss = true
	cfg.Neighbors = append(cfg.Neighbors, StaticNeighbor{Addr: netip.MustParseAddr("10.0.0.9"), MAC: hostMAC(9)})
	r := newRig(t, cfg)
	// Port 2 sends what cannot leave by port 0, whose neighbour pauses, and goes
	// on when it is asked to stop.
	back := wt.Frame(wt.Eth(selfMAC, hostMAC(3)), wt.IPv4("20.7.0.1", "10.0.0.9", wt.TOS(3<<5)), wt.UDP(1000, 2000), wt.Zeros(458))
	r.in(0, pfcFrame(1<<3, 0xffff))
	asked := 0
	for k := 0; !r.sw.Nodes[0].Disabled(2); k++ {
		if k > 1000 {
			t.Fatalf("the port is not err-disabled: %+v", r.sw.Nodes[0].PFC(2).Stats(r.now))
		}
		if k%5 == 0 {
			r.in(2, back)
		}
		for _, b := range r.out(2) {
			if b[12] == 0x88 && b[13] == 0x08 {
				asked++
			}
		}
		r.advance(us)
	}
	if asked != 4 { // and again three times
		t.Errorf("the neighbour was asked %d times", asked)
	}
	if got := r.picks(3, n); got[2] != 0 || got[1] == 0 || got[3] == 0 {
		t.Errorf("while port 2 is err-disabled: %v", got)
	}
	for range 1200 {
		r.advance(us)
	}
	wantShares(t, r.picks(0, 40*n), 40*n, 1, 2, 3)
}

// A route by more ports than a word has bits, most of them full, some without
// a link.
func TestWideGroup(t *testing.T) {
	const ways, n = 200, 40_000
	for _, kind := range []pipeline.Chooser{pipeline.ChooseAdaptive, pipeline.ChooseLeast} {
		r := fan(t, ways, PathsConfig{Choose: kind})
		free := []uint16{1, 64, 65, 128, 199}
		for p := uint16(1); p <= ways; p++ {
			if !slices.Contains(free, p) && p != 100 {
				r.load(p, 3, 17_000)
			}
		}
		r.setLink(100, false)
		wantShares(t, r.picks(3, n), n, free...)
		for _, p := range free {
			r.setLink(p, false)
		}
		if got := r.picks(3, n); len(got) != ways-len(free)-1 {
			t.Errorf("%v: %d ports are chosen, want %d", kind, len(got), ways-len(free)-1)
		}
	}
}

// The group that frames go by loses and gets next hops, and other thresholds,
// while frames wait at its ports: what waits is what it goes by, and of what
// goes by another worker's port nothing is left behind.
func TestGroupInUseIsReplaced(t *testing.T) {
	for workers := 1; workers <= 2; workers++ {
		cfg := rated(trusting(fanConfig(4, PathsConfig{Choose: pipeline.ChooseAdaptive})), 1e9)
		for i := range cfg.Ports {
			cfg.Ports[i].Worker = i % workers
		}
		r := newRigOf(t, cfg, workers, 4096)
		for range 12 { // 18 kB at ports 1 and 2
			r.enqueueAt(1)
			r.enqueueAt(2)
		}
		apply := func(change func(*Config)) {
			c := *r.sw.Program().Config
			c.Routes = slices.Clone(c.Routes)
			change(&c)
			if err := r.sw.Apply(&c); err != nil {
				t.Fatal(err)
			}
			r.runAll()
		}
		want := func(what string, ports ...uint16) {
			t.Helper()
			got := r.picks(0, 2000)
			for p := range uint16(5) {
				if slices.Contains(ports, p) != (got[p] > 0) {
					t.Errorf("%d workers, %s: %v, want ports %v", workers, what, got, ports)
					return
				}
			}
		}
		want("as it was", 3, 4)
		hops := slices.Clone(r.sw.Program().Config.Routes[0].NextHops)
		apply(func(c *Config) { c.Routes[0].NextHops = hops[:3] })
		want("without the fourth", 3)
		apply(func(c *Config) { c.Routes[0].NextHops = hops[:1] })
		want("one left", 1)
		apply(func(c *Config) { c.Routes[0].NextHops = hops })
		want("all again", 3, 4)
		apply(func(c *Config) { c.Paths.Thresholds = []uint64{30_000} })
		want("a higher threshold", 1, 2, 3, 4)
		apply(func(c *Config) { c.Paths.Thresholds = []uint64{1000, 2000, 4000, 8000} })
		want("four thresholds", 3, 4)
		apply(func(c *Config) { c.Ports[4].Enabled = false })
		want("port 4 disabled", 3)
		apply(func(c *Config) { c.Paths.Choose = pipeline.ChooseHash })
		want("by flow", 1, 2, 3)
		apply(func(c *Config) { c.Paths.Choose, c.Paths.Assigned = pipeline.ChooseLeast, true })
		want("the least", 3)
		for i := range 30 { // sets of next hops that come and go
			prefix := netip.MustParsePrefix(fmt.Sprintf("30.%d.0.0/16", i))
			if err := r.sw.SetRoute(Route{Prefix: prefix, NextHops: slices.Clone(hops[i%3 : i%3+2])}); err != nil {
				t.Fatal(err)
			}
		}
		r.runAll()
		want("beside others", 3)
	}
}

// Classes that no queue of their own serves, and those that metadata cannot
// have, go by what waits for the queue that they map to.
func TestClassesBeyondQueues(t *testing.T) {
	cfg := rated(trusting(fanConfig(2, PathsConfig{Choose: pipeline.ChooseAdaptive})), 1e9)
	for class := range cfg.Class.Queue {
		cfg.Class.Queue[class] = uint8(class / 4)
	}
	r := newRig(t, cfg)
	r.load(1, 3, 20_000) // all in queue 0
	for class, want := range map[uint8][]uint16{0: {2}, 3: {2}, 4: {1, 2}, 7: {1, 2}, 8: {2}, 255: {1, 2}} {
		wantShares(t, r.picks(class, 40_000), 40_000, want...)
	}
}
