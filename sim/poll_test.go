package sim

import (
	"testing"

	"gswitch/fault"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/vswitch"
)

// poller is the engine that one would write first: each nanosecond it hands
// over what arrives, advances all nodes and asks all ports, and never relies on
// a node that there is nothing to do. It keeps the order within an instant
// that the package documents: ports that were due come after those that have
// become ready just now.
type poller struct {
	t    *testing.T
	e    *Engine // for its nodes and links; it never runs
	wake []frame.Time
	hops int
}

func (p *poller) run(until frame.Time) {
	e := p.e
	for i := range e.nodes {
		p.drain(i, 0, nil)
	}
	due := make([]bool, len(e.dirs))
	for now := frame.Time(1); now <= until; now++ {
		for d := range e.dirs {
			dir := &e.dirs[d]
			var v []frame.Ref
			for dir.flight.due(now) {
				x := dir.flight.pop()
				e.parts[0].record(dir, &x)
				v = append(v, x.ref)
			}
			if len(v) > 0 {
				p.hops += len(v)
				e.nodes[dir.to].step.Receive(now, dir.toPort, v)
			}
			due[d] = p.wake[d] <= now
		}
		for i := range e.nodes {
			e.nodes[i].step.Advance(now)
			p.drain(i, now, due)
		}
		for d := range e.dirs {
			if due[d] {
				p.ask(d, now)
			}
		}
		for i := range e.nodes {
			p.drain(i, now, nil)
		}
		p.checkWake(now)
	}
}

// drain asks the ports of a node, those that are due left out, until none has
// anything.
func (p *poller) drain(i int, now frame.Time, due []bool) {
	for more := true; more; {
		more = false
		for _, d := range p.e.nodes[i].ports {
			if due == nil || !due[d] {
				more = p.ask(int(d), now) || more
			}
		}
	}
}

func (p *poller) ask(d int, now frame.Time) (some bool) {
	e := p.e
	dir := &e.dirs[d]
	var out [vector]frame.Ref
	for {
		k := e.nodes[dir.from].step.Transmit(now, dir.fromPort, out[:])
		for _, r := range out[:k] {
			m := e.arena.Meta(r)
			at := m.Depart + frame.Time(m.Span) + dir.delay
			m.Forget()
			dir.flight.push(at, r)
			some = true
		}
		if k == 0 {
			return some
		}
	}
}

// checkWake holds Wake against its parts, and notes when ports are due.
func (p *poller) checkWake(now frame.Time) {
	for i := range p.e.nodes {
		n := &p.e.nodes[i]
		least := n.step.TimerWake(now)
		for port, d := range n.ports {
			p.wake[d] = n.step.PortWake(now, uint16(port))
			if p.wake[d] <= now {
				p.t.Fatalf("at %d port %d of node %d says it has a frame now, and gave none", now, port, i)
			}
			least = min(least, p.wake[d])
		}
		if w := n.step.Wake(now); w != least {
			p.t.Fatalf("at %d node %d wakes at %d, its timer and ports at %d", now, i, w, least)
		}
	}
}

// A network stepped by what its nodes say forwards the same frames at the same
// times as one that is polled every nanosecond: with pauses that come and go,
// thresholds that follow the buffer, several classes and a storm watchdog.
func TestEventsMatchPolling(t *testing.T) {
	const until = 60 * us
	build := func(seed uint64) *network {
		rnd := frame.NewRand(seed)
		c := netConfig{rate: []uint64{100e9, 20e9}[seed%2], uplink: []uint64{40e9, 100e9, 25e9}[rnd.Uint32n(3)], delay: frame.Time(50 + rnd.Uint32n(900)), seed: seed,
			lossless: true, buffer: 200_000 + uint64(rnd.Uint32n(400_000)), chunks: 8192}
		c.tune = func(cfg *vswitch.Config) {
			cfg.Buffer.LosslessAlpha = []float64{0.125, 0.03}[rnd.Uint32n(2)]
			cfg.Buffer.AllowLoss, cfg.Buffer.Headroom = true, 20_000
			cfg.PFC.Quanta = uint16(200 + rnd.Uint32n(4000))
			if seed%3 == 0 {
				cfg.PFC.Watchdog = pfc.Watchdog{Detect: 5 * us, Restore: 5 * us}
			}
			for i := range cfg.Ports {
				q := &cfg.Ports[i].Scheduler.Queues
				q[0].Weight, q[1].Weight = rnd.Uint32n(3), rnd.Uint32n(3)
				q[0].ECN.KMin, q[0].ECN.KMax, q[0].ECN.PMax = 5000, 50_000, 0.2
			}
		}
		n := leafSpine(t, c, 2, 1+int(seed%2), 3)
		n.all(seed, 100+uint64(rnd.Uint32n(300)), 2, 3)
		for i, h := range n.hosts {
			k := frame.NewRand(seed + 100*uint64(i))
			h.wire = func(uint64) uint32 { return 90 + k.Uint32n(1300) }
			h.tos = func(i uint64) byte { return byte(i%3) * 8 << 2 } // classes 0 to 2, of which 0 is lossless
			h.timer, h.every, h.give = frame.Time(1+k.Uint32n(20_000)), frame.Time(5000+k.Uint32n(20_000)), 40
		}
		return n
	}
	var pauses uint64
	for seed := range uint64(6) {
		polled, stepped := build(seed), build(seed)
		p := &poller{t: t, e: polled.e, wake: make([]frame.Time, len(polled.e.dirs))}
		p.run(until)
		stepped.run(t, until)
		for d := range polled.e.dirs {
			a, b := &polled.e.dirs[d], &stepped.e.dirs[d]
			if a.digest != b.digest {
				t.Errorf("seed %d: direction %d, from port %d of node %d, differs", seed, d, a.fromPort, a.from)
			}
		}
		for i, h := range polled.hosts {
			if o := stepped.hosts[i]; h.got != o.got || h.sent != o.sent {
				t.Errorf("seed %d: host %d sent %d and got %d when polled, %d and %d when stepped", seed, i, h.sent, h.got, o.sent, o.got)
			}
		}
		if uint64(p.hops) != stepped.e.Stats().FrameHops || p.hops < 2000 {
			t.Errorf("seed %d: %d frame-hops when polled, %d when stepped", seed, p.hops, stepped.e.Stats().FrameHops)
		}
		for _, sw := range stepped.sw {
			for port := range uint16(5) {
				if sw.Nodes[0].HasPort(port) && sw.Nodes[0].Owns(port) {
					s := sw.Nodes[0].Scheduler(port)
					pauses += s.Controls()
				}
			}
		}
	}
	if pauses < 100 {
		t.Errorf("only %d pause frames were sent: the networks send too little for this test", pauses)
	}
}

func TestClocks(t *testing.T) {
	for _, drift := range []int64{0, 1, -1, 12_345, -99_999, MaxDrift, -MaxDrift} {
		c := NewOscillator(1000, 5000, drift)
		rnd := frame.NewRand(uint64(drift))
		last := c.Local(1000)
		if last != 5000 {
			t.Fatalf("drift %d: the clock begins at %d", drift, last)
		}
		for x := frame.Time(1000); x < 1e15; x += 1 + frame.Time(rnd.Uint64()%uint64(x)) {
			l := c.Local(x)
			if l < last {
				t.Fatalf("drift %d: time went back at %d", drift, x)
			}
			last = l
			// engine is the first instant at which the local time is reached.
			at := c.Engine(l + 7)
			if c.Local(at) < l+7 || c.Local(at-1) >= l+7 {
				t.Fatalf("drift %d: local %d is not reached first at %d", drift, l+7, at)
			}
		}
	}
}

// A host whose clock is fast sends at a rate that is so much higher, and its
// timers run as much faster; steps put its time forward or hold it back.
func TestDriftAndSteps(t *testing.T) {
	e, a, b := wirePair(t, 1, 1<<40, fault.Config{})
	if err := e.SetClock(0, 100_000_000, 0); err != nil { // a tenth
		t.Fatal(err)
	}
	a.timer, a.every = 1000, 1000
	runAll(t, e, 1000*us)
	// Of its nanoseconds it sees ten in eleven, so a frame may begin one late.
	if want := 1000e3 / 89.12 * 1.1; float64(a.sent) < want*(1-1/89.) || float64(a.sent) > want+1 {
		t.Errorf("%d frames were sent by a clock that is a tenth too fast, want %.0f", a.sent, want)
	}
	if a.ticks != 1100 || e.LocalTime(0, e.Now()) != 1100*us {
		t.Errorf("%d ticks at %d of its time", a.ticks, e.LocalTime(0, e.Now()))
	}
	if err := e.SetClock(0, 0, 50*us); err != nil {
		t.Fatal(err)
	}
	runAll(t, e, 1001*us)
	if got := e.LocalTime(0, e.Now()); got != 1151*us {
		t.Errorf("after the step its time is %d", got)
	}
	if err := e.SetClock(0, 0, -20*us); err != nil {
		t.Fatal(err)
	}
	runAll(t, e, 1021*us)
	if got := e.LocalTime(0, e.Now()); got != 1161*us {
		t.Errorf("while a step back is made up its time is %d", got)
	}
	runAll(t, e, 1100*us)
	if got := e.LocalTime(0, e.Now()); got != 1230*us {
		t.Errorf("after the step back its time is %d", got)
	}
	if e.SetClock(0, 2*MaxDrift, 0) == nil {
		t.Error("a drift beyond reason was taken")
	}
	conserved(t, e)
	if b.got == 0 {
		t.Error("nothing arrived")
	}
}
