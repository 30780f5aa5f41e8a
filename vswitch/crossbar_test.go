package vswitch

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/pipeline"
	"gswitch/scheduler/orders"
	wt "gswitch/wire/wiretest"
)

// crossbarConfig is a bridge of n ports at 1 Gb/s, host i+1 behind port i, all
// classes lossless.
func crossbarConfig(n int, c Crossing) *Config {
	cfg := rated(baseConfig(n), 1_000_000_000)
	cfg.PFC = PFCConfig{Mode: pfc.PFC, Classes: 0xff}
	WithCrossbar(cfg, c)
	for i := range cfg.Ports {
		cfg.Ports[i].Trust = TrustDSCP
		cfg.FDB.Static = append(cfg.FDB.Static, StaticMAC{VLAN: 1, MAC: hostMAC(i + 1), Port: uint16(i)})
	}
	return cfg
}

// classed is a frame from host a to host b.
func classed(a, b, class, bytes int) []byte {
	f := wt.Frame(wt.Eth(hostMAC(b), hostMAC(a)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.TOS(uint8(class)<<5)), wt.UDP(1000, 2000))
	return append(f, make([]byte, max(0, bytes-len(f)))...)
}

// A frame for a queue that the watchdog drains is refused by it, whether it would have
// come there from an input queue or from the shared buffer.
func TestDrainedQueueRefuses(t *testing.T) {
	for _, crossed := range []bool{false, true} {
		cfg := crossbarConfig(2, Crossing{})
		if !crossed {
			cfg = without(cfg)
		}
		cfg.PFC.Watchdog.Detect = 100 * frame.Microsecond
		r := newRig(t, cfg)
		r.in(0, classed(1, 2, 3, 200), classed(1, 2, 3, 200))
		r.in(1, wt.PFC(hostMAC(2), 1<<3, 0xffff))
		r.in(0, classed(1, 2, 3, 200))
		for range 10 {
			r.advance(50 * frame.Microsecond)
		}
		before := r.counts(1).QueueDrops[3]
		r.in(0, classed(1, 2, 3, 200), classed(1, 2, 3, 200))
		if c := r.counts(1); c.QueueDrops[3] != before+2 || r.counts(0).Drops[frame.PFCWatchdog] < 2 {
			t.Errorf("crossbar %v: the queue refused %d of 2 frames, dropped by the watchdog %d", crossed, c.QueueDrops[3]-before, r.counts(0).Drops[frame.PFCWatchdog])
		}
	}
}

// Frames that come in go out, are dropped or wait, whatever is sent, paused,
// unplugged or reconfigured meanwhile; in the end all chunks are back, which
// the rig checks.
func TestCrossbarConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := crossbarConfig(3, Crossing{})
		workers := rapid.IntRange(1, 2).Draw(rt, "workers")
		for i := range cfg.Ports {
			cfg.Ports[i].Worker = i % workers
		}
		cfg.PFC.Classes = rapid.Byte().Draw(rt, "classes")
		if cfg.PFC.Classes == 0 {
			cfg.PFC = PFCConfig{}
		}
		WithCrossbar(cfg, Crossing{TotalCap: rapid.Bool().Draw(rt, "total"), Latency: rapid.SampledFrom([]frame.Time{0, 4224}).Draw(rt, "latency"), Egress: 20_000})
		r := newRigOf(t, cfg, workers, 1024)
		var in, out uint64
		count := func(port uint16) { out += uint64(len(r.out(port))) }
		rt.Repeat(map[string]func(*rapid.T){
			"send": func(rt *rapid.T) {
				port := rapid.IntRange(0, 2).Draw(rt, "port")
				b := classed(port+1, (port+rapid.IntRange(1, 2).Draw(rt, "to"))%3+1, rapid.IntRange(0, 7).Draw(rt, "class"), rapid.IntRange(60, 1514).Draw(rt, "bytes"))
				for range rapid.IntRange(1, 40).Draw(rt, "frames") {
					in++
					r.in(uint16(port), b)
				}
			},
			"time": func(rt *rapid.T) {
				r.advance(rapid.SampledFrom([]frame.Time{100, 3000, 50_000}).Draw(rt, "wait"))
				for p := range uint16(3) {
					count(p)
				}
			},
			"pause": func(rt *rapid.T) {
				r.in(uint16(rapid.IntRange(0, 2).Draw(rt, "port")), wt.PFC(hostMAC(9), rapid.Uint8().Draw(rt, "which"), 100))
			},
			"link": func(rt *rapid.T) {
				port := uint16(rapid.IntRange(0, 2).Draw(rt, "port"))
				r.setLink(port, false)
				r.setLink(port, true)
			},
			"apply": func(rt *rapid.T) {
				next := cfg
				if !rapid.Bool().Draw(rt, "on") {
					next = without(cfg)
				}
				if err := r.sw.Apply(next); err != nil {
					rt.Fatal(err)
				}
				r.runAll()
			},
			"": func(rt *rapid.T) {
				for _, n := range r.sw.Nodes {
					if n.inputs == nil {
						continue
					}
					inside, queued := n.inputs.(waiting).Held(), 0
					for i := range n.ports {
						if s := n.ports[i].sched; s != nil {
							for q := range 8 {
								k, _ := s.QueueLen(q)
								queued += k
							}
						}
					}
					if n.chunks.held != inside+queued {
						rt.Fatalf("%d frames are held, %d in ingress queues and %d in egress queues", n.chunks.held, inside, queued)
					}
				}
			},
		})
		waiting := func() (n int) {
			for _, node := range r.sw.Nodes {
				n += node.chunks.held
			}
			return n
		}
		// What is left leaves, a frame at a time, and then the pauses that end by it.
		for k, idle := 0, 0; k < 5000 && idle < 4; k++ {
			if idle++; waiting() > 0 {
				idle = 0
			}
			r.advance(15 * frame.Microsecond)
			for p := range uint16(3) {
				count(p)
			}
		}
		var dropped uint64
		for p := range uint16(3) {
			c := r.counts(p)
			dropped += c.Dropped()
		}
		if n := waiting(); n != 0 {
			rt.Fatalf("%d frames stay", n)
		}
		made := uint64(0) // pauses of ours
		for _, n := range r.sw.Nodes {
			made += n.Counts().Made
		}
		if in+made != out+dropped {
			rt.Fatalf("%d frames came in and %d were made, %d went out, %d were dropped: %v", in, made, out, dropped, r.drops())
		}
	})
}

// A frame that does not fit is dropped under a reason of its own, where nothing
// is lossless; one of a lossless class has found no headroom.
func TestCrossbarTailDrop(t *testing.T) {
	for why, on := range map[string]PFCConfig{"ingress-queue": {}, "headroom-full": {Mode: pfc.PFC, Classes: 1}} {
		cfg := crossbarConfig(3, Crossing{Ingress: 4000, Egress: 2000, TotalCap: true, Pause: 3000, Unpause: 1000})
		cfg.PFC, cfg.Buffer.AllowLoss = on, true
		r := newRig(t, cfg)
		for range 10 {
			r.in(0, classed(1, 2, 0, 1000))
		}
		r.advance(frame.Millisecond)
		for range 10 {
			r.in(0, classed(1, 2, 0, 1000))
		}
		if d := r.drops(); d[why] != 14 || len(d) != 1 {
			t.Errorf("drops %v, want 14 for %s", d, why)
		}
		if held := r.sw.Nodes[0].inputs.Bytes(0, 0); held != 4000 {
			t.Errorf("%s: %d bytes wait", why, held)
		}
	}
}

// Frames wait at their ingress ports until the memory is full: lossless ones all of what the
// worker may hold, others what it leaves to them.
func TestInputQueuesFillTheirMemory(t *testing.T) {
	for _, lossless := range []bool{false, true} {
		r := shutCrossbar(t, lossless, 1<<20)
		n := r.sw.Nodes[0]
		room := n.chunks.lossy
		if lossless {
			room = n.chunks.limit
		}
		for range 512 / 32 {
			r.receive(0, times(32, classed(1, 2, 2, 100))...)
			n.freeDropped()
		}
		if d := r.drops(); n.chunks.held != room || d["arena-exhausted"] != uint64(512-room) || d["ingress-queue"] != 0 {
			t.Errorf("lossless %v: %d frames wait, drops %v; want %d and the rest dropped", lossless, n.chunks.held, d, room)
		}
	}
}

// A frame that its ingress queue refuses leaves the memory to those behind it in the vector.
func TestRefusedFramesTakeNoMemory(t *testing.T) {
	room := shutCrossbar(t, false, 1<<20).sw.Nodes[0].chunks.lossy
	r := shutCrossbar(t, false, uint32(100*room+250))
	small := classed(1, 2, 2, 100)
	for range room - 2 {
		r.receive(0, small)
	}
	r.receive(0, classed(1, 2, 2, 1400), small, small, small, small)
	if d, n := r.drops(), r.sw.Nodes[0]; n.chunks.held != room || d["ingress-queue"] != 1 || d["arena-exhausted"] != 2 {
		t.Errorf("%d frames wait, drops %v; want %d, one refused and two without memory", n.chunks.held, d, room)
	}
}

// shutCrossbar is a crossbar of two ports with little memory, whose port 1 sends nothing.
func shutCrossbar(t *testing.T, lossless bool, ingress uint32) *rig {
	cfg := crossbarConfig(2, Crossing{Ingress: ingress, Egress: 1 << 20})
	if !lossless {
		cfg.PFC = PFCConfig{Mode: pfc.PFC}
	}
	r := newRigOf(t, cfg, 1, 512)
	r.in(1, wt.PFC(hostMAC(9), 0xff, 0xffff))
	return r
}

// What the ingress queue asks for goes out as PFC frames, and so does its end.
func TestCrossbarPauses(t *testing.T) {
	cfg := crossbarConfig(2, Crossing{Pause: 8192, Unpause: 4557})
	r := newRig(t, cfg)
	r.in(1, wt.PFC(hostMAC(9), 0xff, 0xffff)) // the way out is shut
	sent := 0
	requested := func() (classes []byte) {
		for _, b := range r.out(0) {
			classes = append(classes, b[17])
		}
		return classes
	}
	var asked []byte
	for ; len(asked) == 0 && sent < 200; sent++ {
		r.in(0, classed(1, 2, 2, 1500))
		r.advance(20 * frame.Microsecond)
		asked = requested()
	}
	// Egress holds 87 frames of 1500 bytes, ingress reaches 8192 with the sixth.
	if want := (128<<10)/1500 + 6; sent != want || !slices.Equal(asked, []byte{0x07}) {
		t.Fatalf("after %d frames, want %d, the neighbour is asked to pause % x", sent, want, asked)
	}
	r.in(1, wt.PFC(hostMAC(9), 0xff, 0))
	left := 0
	var ended []byte
	for ; len(ended) == 0 && left < 200; left++ {
		r.advance(12_200)
		r.out(1)
		ended = requested()
	}
	if left < 2 || left > 8 || !slices.Equal(ended, []byte{0x07}) {
		t.Errorf("after %d frames left the pause of % x ended", left, ended)
	}
	if d := r.drops(); d["pause-consumed"] != 2 || len(d) != 1 {
		t.Errorf("drops %v", d)
	}
}

// A port that goes and comes again while frames for it wait at the crossbar
// counts none of those that its predecessor was reported.
func TestCrossbarPortComesAgain(t *testing.T) {
	cfg := fanConfig(2, PathsConfig{Choose: pipeline.ChooseAdaptive, Assigned: true})
	WithCrossbar(cfg, Crossing{Egress: 2000, Reserve: 1})
	r := newRig(t, rated(cfg, 1_000_000_000))
	for range 10 {
		r.in(0, wt.Frame(wt.Eth(selfMAC, hostMAC(1)), wt.IPv4("10.0.0.9", "20.7.7.1"), wt.UDP(1000, 4791), wt.Zeros(900)))
	}
	held := r.sw.Nodes[0].inputs.(waiting).Held()
	if held == 0 {
		t.Fatal("nothing waits at the crossbar")
	}
	gone := *cfg
	gone.Ports = slices.Clone(cfg.Ports)
	for i := 1; i < 3; i++ {
		gone.Ports[i] = PortConfig{}
	}
	gone.Routes, gone.Neighbors = nil, nil
	for _, c := range []*Config{&gone, cfg} {
		if err := r.sw.Apply(c); err != nil {
			t.Fatal(err)
		}
		for _, n := range r.sw.Nodes {
			n.adopt(r.now, r.sw.Program()) // between two events
		}
	}
	for range 1000 {
		r.advance(frame.Microsecond)
		for p := range uint16(3) {
			r.out(p)
		}
	}
	n := r.sw.Nodes[0]
	for p := 1; p < 3; p++ {
		if b := n.ports[p].sched.DrainBytes(0); b != 0 {
			t.Errorf("port %d has %d drain bytes", p, b)
		}
		for q := range n.paths.loads.Below {
			if n.paths.loads.Below[q][0][0]>>p&1 == 0 {
				t.Errorf("port %d is said to have a load in queue %d", p, q)
			}
		}
	}
}

// A crossbar that is taken out and put in again leaves no frame charged to what
// is not there any more, whatever queue the frame waits in.
func TestCrossbarLeavesNoCharge(t *testing.T) {
	cfg := crossbarConfig(2, Crossing{})
	cfg.Ports[1].Scheduler.Queues[0].Order = orders.VOQ{}
	r := newRig(t, cfg)
	for range 10 {
		r.in(0, classed(1, 2, 0, 1500))
	}
	r.advance(10 * frame.Microsecond)
	for _, c := range []*Config{without(cfg), cfg} {
		if err := r.sw.Apply(c); err != nil {
			t.Fatal(err)
		}
		r.runAll()
	}
	sent := 0
	for range 20 {
		r.advance(20 * frame.Microsecond)
		sent += len(r.out(1))
	}
	n := r.sw.Nodes[0]
	if d, charged := r.drops(), n.inputs.(waiting).EgressDrain(1, 0); sent+int(d["queue-flush"]) != 10 || n.chunks.held != 0 || charged != 0 {
		t.Errorf("%d of 10 frames were sent, %v dropped; %d are held, %d bytes are charged", sent, d, n.chunks.held, charged)
	}
}
