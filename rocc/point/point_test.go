package point

import (
	"gswitch/notice"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"testing"

	"gswitch/frame"
	"gswitch/rocc"
	"gswitch/scheduler/orders"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

const rate40G = st.Rate40G

// roccConfig is a bridge of three 40 Gb/s ports whose port 1 is a congestion
// point in queue 0.
func roccConfig() *vswitch.Config {
	return with(st.Star(), Config{Queues: 1, Params: rocc.For(rate40G)})
}

// with gives port 1 options.
func with(cfg *vswitch.Config, o Config) *vswitch.Config {
	next := *cfg
	next.Ports = append([]vswitch.PortConfig(nil), cfg.Ports...)
	next.Ports[1].Options = vswitch.Options{Name: o}
	return &next
}

// changed is a configuration whose port 1 has other options.
func changed(cfg *vswitch.Config, change func(*Config)) *vswitch.Config {
	o := Of(&cfg.Ports[1])
	change(&o)
	return with(cfg, o)
}

func pointsOf(n *vswitch.Node) *points { return n.Feature(Name).(*points) }

// noticesAt takes the notices that leave by a port.
func noticesAt(t *testing.T, r *st.Rig, port uint16) (list []rocc.Notice, quotes [][]byte) {
	t.Helper()
	for range 8 { // a microsecond each: they leave one behind the other
		r.Now += frame.Microsecond
		v := r.Out(port)
		for _, b := range v {
			wt.Check(t, b, wt.Checksums())
			m, why := wt.Parse(b)
			if why != frame.Keep {
				t.Fatal(why)
			}
			msg, typ := b[m.L4:], uint8(notice.Type4)
			if m.Flags&frame.HasIPv6 != 0 {
				typ = notice.Type6
			}
			var n rocc.Notice
			q, err := n.Decode(msg, typ)
			if err != nil || m.DSCP != 56 {
				t.Fatalf("%v, DSCP %d: %x", err, m.DSCP, b)
			}
			list, quotes = append(list, n), append(quotes, append([]byte(nil), q...))
		}
	}
	return list, quotes
}

// The senders of exactly the flows that wait get the rate of the queue,
// on the way that their frames came, and by what they sent.
func TestCongestionPointNotifiesSenders(t *testing.T) {
	r := st.New(t, roccConfig())
	T := rocc.For(rate40G).Period
	r.Now = 100 * T
	for range 60 { // 60 x 2 x 1.4 kB
		r.In(0, st.RoCE(1, 1, 1400), st.RoCE(1, 2, 1400))
		r.In(2, st.RoCE(3, 1, 1400))
	}
	// A reply through another port, and one without congestion point.
	_, queued := r.Switch.Nodes[0].Scheduler(1).QueueLen(0)
	want := rocc.NewController(&pointsOf(r.Switch.Nodes[0]).ports[1][0].params)
	want.Update(queued)
	r.Now += T - 1
	r.RunIdle()
	if list, _ := noticesAt(t, r, 0); len(list) != 0 {
		t.Fatalf("%d notices before the period is over", len(list))
	}
	r.Now++
	r.RunIdle()
	for port, flows := range map[uint16]int{0: 2, 2: 1} {
		list, quotes := noticesAt(t, r, port)
		if len(list) != flows {
			t.Fatalf("%d notices by port %d, want %d", len(list), port, flows)
		}
		for i, n := range list {
			if n != (rocc.Notice{Class: 0, Port: 1, Switch: 9, Fair: want.Units(), Unit: 10_000_000, Queue: uint32(queued), Sequence: 1}) {
				t.Errorf("%+v, want F = %d at %d bytes", n, want.Units(), queued)
			}
			ip := wire.IPv4(quotes[i])
			if len(quotes[i]) != 20+8+12 || ip.Src() != [4]byte{10, 0, 0, byte(port + 1)} || wire.BTH(quotes[i][28:]).DestQP() == 0 {
				t.Errorf("the notice quotes %x", quotes[i])
			}
		}
	}
	v := Views(r.Switch.Nodes[0], nil)
	if len(v) != 1 || v[0].Port != 1 || v[0].Flows != 3 || v[0].Notices != 3 || v[0].Branch != [3]uint64{1, 0, 0} || v[0].Fair != want.Rate() {
		t.Errorf("the point says %+v", v)
	}
}

// When the queue is gone the rate rises to its largest, which those that were
// held back are notified once; then the point rests until a frame comes.
func TestCongestionPointRests(t *testing.T) {
	r := st.New(t, roccConfig())
	n := r.Switch.Nodes[0]
	if n.TimerWake(r.Now) < r.Now+10*frame.Second && pointsOf(n).due != frame.Never {
		t.Error("an idle point wakes its switch")
	}
	for range 200 {
		r.In(0, st.RoCE(1, 1, 1400))
	}
	T := rocc.For(rate40G).Period
	var last rocc.Notice
	notified, atMax := 0, 0
	for range 400 {
		r.Advance(T - 8*frame.Microsecond)
		r.Out(1) // one frame: the queue lasts for 200 periods
		list, _ := noticesAt(t, r, 0)
		for _, last = range list {
			if notified++; last.Fair == 4000 {
				atMax++
			}
		}
	}
	if pointsOf(n).due != frame.Never || pointsOf(n).all[0].flows.Len() != 0 || !pointsOf(n).all[0].control.AtMax() {
		t.Errorf("the point does not rest: due %d, %d flows, F %d", pointsOf(n).due, pointsOf(n).all[0].flows.Len(), pointsOf(n).all[0].control.Units())
	}
	if notified < 100 || last.Fair != 4000 || atMax != 1 {
		t.Errorf("%d notices, the last with %d units, %d with the largest rate", notified, last.Fair, atMax)
	}
	r.In(0, st.RoCE(1, 1, 1400))
	if due := pointsOf(n).due; due <= r.Now || due > r.Now+T || due%T != 0 {
		t.Errorf("woken at %d for %d", r.Now, due)
	}
}

// Routers send notices by the route to the sender, over IPv4 and IPv6.
func TestCongestionPointOfARouter(t *testing.T) {
	cfg := st.Router()
	cfg.Ports[1].Options = vswitch.Options{Name: Config{Queues: 0xff, Params: rocc.For(rate40G)}}
	r := st.New(t, cfg)
	for range 100 {
		r.In(0, wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(1)), wt.IPv4("10.0.0.1", "10.0.1.2"), wt.UDP(1000, 2000), wt.Zeros(1400)),
			wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(1)), wt.IPv6("fd00::1", "fd01::2"), wt.UDP(1000, 2000), wt.Zeros(1300)))
	}
	r.Advance(rocc.For(rate40G).Period)
	v := r.Out(0)
	r.Now += frame.Microsecond
	if v = append(v, r.Out(0)...); len(v) != 2 {
		t.Fatalf("%d notices", len(v))
	}
	for _, b := range v {
		wt.Check(t, b, wt.Checksums())
		if e := wire.Ethernet(b); e.Dst() != st.HostMAC(1) || e.Src() != st.SelfMAC {
			t.Errorf("from %v to %v", e.Src(), e.Dst())
		}
		m, _ := wt.Parse(b)
		if m.Flags&frame.HasIPv4 != 0 && (wire.IPv4(b[14:]).Src() != [4]byte{10, 0, 0, 254} || wire.IPv4(b[14:]).Dst() != [4]byte{10, 0, 0, 1}) {
			t.Errorf("%x", b)
		}
	}
}

// Flows that wait are all notified where the table has room for them, a few at a
// time where that is asked for; turning a point off and on, or taking the port
// down, forgets no frame and counts none twice.
func TestCongestionPointIsReconfigured(t *testing.T) {
	cfg := changed(roccConfig(), func(o *Config) { o.Table.Flows, o.PerTick = 4, 3 })
	r := st.New(t, cfg)
	T := rocc.For(rate40G).Period
	for qp := range uint32(6) {
		for range 30 {
			r.In(0, st.RoCE(1, qp+1, 1400))
		}
	}
	r.Advance(T)
	if list, _ := noticesAt(t, r, 0); len(list) != 3 {
		t.Errorf("%d notices, want 3", len(list))
	}
	if v := Views(r.Switch.Nodes[0], nil); v[0].Full != 60 || v[0].Flows != 4 {
		t.Errorf("%+v", v[0])
	}
	// A larger table takes the two that found no room as soon as they send
	// again, and keeps those that wait.
	if err := r.Switch.Apply(changed(cfg, func(o *Config) { o.Table.Flows = 100 })); err != nil {
		t.Fatal(err)
	}
	for qp := range uint32(6) {
		r.In(0, st.RoCE(1, qp+1, 1400))
	}
	if v := Views(r.Switch.Nodes[0], nil); v[0].Flows != 6 || v[0].Full != 60 {
		t.Errorf("after the table grew: %+v", v[0])
	}
	if err := r.Switch.Apply(with(cfg, Config{})); err != nil {
		t.Fatal(err)
	}
	r.Advance(T)
	if list, _ := noticesAt(t, r, 0); len(list) != 0 || len(Views(r.Switch.Nodes[0], nil)) != 0 {
		t.Error("a point that is off notifies senders")
	}
	for range 20 {
		r.In(0, st.RoCE(1, 9, 1400))
	}
	if err := r.Switch.Apply(cfg); err != nil {
		t.Fatal(err)
	}
	r.Advance(2 * T)
	r.SetLink(1, false)
	r.SetLink(1, true)
	r.Advance(T)
	noticesAt(t, r, 0)
	r.Advance(T)
	if v := Views(r.Switch.Nodes[0], nil); v[0].Flows > 1 {
		t.Errorf("with an empty queue: %+v", v[0])
	}
	if err := r.Switch.Apply(changed(cfg, func(o *Config) { o.Params.QMax = 1 })); err == nil {
		t.Error("lengths out of order are taken")
	}
}

// A frame more costs no memory.
func TestCongestionPointAllocatesNothing(t *testing.T) {
	r := st.New(t, roccConfig())
	n := r.Switch.Nodes[0]
	r.AllocatesNothing([][]byte{st.RoCE(1, 1, 1000), st.RoCE(1, 2, 1000), st.RoCE(1, 3, 1000)})
	if c := pointsOf(n).all[0].count; c.Updates < 200 || c.Notices < 200 {
		t.Errorf("%+v", c)
	}
}

// Without a bound of its own a point notifies no more flows in a period than can
// have the least rate, so that a full table does not leave in one burst.
func TestCongestionPointBoundsItsNotices(t *testing.T) {
	cfg := changed(roccConfig(), func(o *Config) { o.Params.FMin = 1000 }) // of 4000
	r := st.New(t, cfg)
	for qp := range uint32(10) {
		for range 30 {
			r.In(0, st.RoCE(1, qp+1, 1400))
		}
	}
	T := rocc.For(rate40G).Period
	notified := map[uint32]int{}
	for range 3 {
		r.Advance(T)
		list, quotes := noticesAt(t, r, 0)
		if len(list) != 4 {
			t.Errorf("%d notices in a period, want 4", len(list))
		}
		for _, q := range quotes {
			notified[wire.BTH(q[28:]).DestQP()]++
		}
	}
	if len(notified) != 10 {
		t.Errorf("of ten flows %d had their turn: %v", len(notified), notified)
	}
	for flow, want := range map[[2]uint32]int{{10, 4000}: 400, {1, 4000}: 1024, {4000, 4000}: 1} {
		c := Config{Params: rocc.Params{FMin: flow[0], FMax: flow[1]}}
		if c.perTick() != want {
			t.Errorf("F from %d to %d: %d notices, want %d", flow[0], flow[1], c.perTick(), want)
		}
	}
}

// Whatever comes and goes, a point that is active has exactly the flows of
// which a frame waits, or left since its last update; when it becomes active it may still
// have some that left while it rested. One that rests has the largest rate. Queues are first-in
// first-out, or serve their inputs in turn, so that frames overtake.
func TestCongestionPointKnowsItsQueue(t *testing.T) {
	params := rocc.For(rate40G)
	params.QRef, params.QMid, params.QMax, params.Period = 12_000, 24_000, 30_000, 2*frame.Microsecond // no notices up to 2 kB
	for name, inTurn := range map[string]bool{"in order": false, "in turn": true} {
		t.Run(name, func(t *testing.T) {
			cfg := st.Rated(st.Base(5), rate40G)
			cfg.FDB.Static = []vswitch.StaticMAC{{VLAN: 1, MAC: st.HostMAC(2), Port: 1}}
			cfg.Ports[1].Options = vswitch.Options{Name: Config{Queues: 1, Params: params}}
			if inTurn {
				cfg.Ports[1].Scheduler.Queues[0].Order = orders.VOQ{}
			}
			r := st.New(t, cfg)
			n := r.Switch.Nodes[0]
			p, sched := pointsOf(n).ports[1][0], n.Scheduler(1)
			rnd := frame.NewRand(5)
			flows := func() map[uint32]bool {
				v := map[uint32]bool{}
				sched.Each(0, func(f frame.Ref) bool {
					v[n.Arena().Meta(f).Hash] = true
					return true
				})
				return v
			}
			known := map[uint32]bool{}
			updates, exact := p.count.Updates, false
			rests, looks, most := 0, 0, 0
			look := func() {
				waiting := flows()
				if now := p.count.Updates; now != updates { // those that left have been notified
					updates, known, exact = now, map[uint32]bool{}, true
				}
				if p.dormant {
					rests++
					known, exact = map[uint32]bool{}, false
					if _, bytes := sched.QueueLen(0); bytes > p.steady || !p.control.AtMax() {
						t.Fatalf("the point rests with %d of %d bytes and F %d", bytes, p.steady, p.control.Units())
					}
					return
				}
				for h := range waiting {
					known[h] = true
				}
				if exact {
					looks++
				}
				if k := p.flows.Len(); k < len(known) || exact && k > len(known) {
					t.Fatalf("%d flows are known, want %d, of which %d wait", p.flows.Len(), len(known), len(waiting))
				}
				most = max(most, len(known))
			}
			load := uint32(0)
			for i := range 8000 {
				if i%500 == 0 {
					load = rnd.Uint32n(40)
				}
				if rnd.Uint32n(100) < load {
					from := 2 + int(rnd.Uint32n(3))
					r.In(uint16(from), st.RoCE(from, rnd.Uint32n(4), 1000))
					look()
				}
				r.Now += frame.Time(rnd.Uint32n(100))
				r.Out(1)
				look()
				r.RunIdle()
				look()
				for _, port := range []uint16{2, 3, 4} {
					r.Out(port)
				}
			}
			if rests < 1000 || looks < 1000 || most < 8 || p.count.Branch[rocc.Tuned] < 100 || p.count.Branch[rocc.Cut] == 0 {
				t.Errorf("the test did not see what it is about: %d and %d times at rest and awake, up to %d flows, %+v", rests, looks, most, p.count)
			}
		})
	}
}
