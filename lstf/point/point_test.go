package point

import (
	"testing"

	"gswitch/frame"
	"gswitch/lstf"
	"gswitch/scheduler"
	"gswitch/scheduler/orders"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// datagram is of station 1 to station 2, the flow by its port.
func datagram(flow uint16, opts ...wt.IPOption) []byte {
	return wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2", opts...), wt.UDP(flow, 2000), wt.Zeros(1400))
}

// config is a switch that serves the least slack first; the ports of edges face
// hosts.
func config(o Config, edges ...int) *vswitch.Config {
	cfg := st.Star()
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		p.Trust = vswitch.TrustDSCP
		p.Options = vswitch.Options{Name: o}
		for q := range p.Scheduler.Queues {
			p.Scheduler.Queues[q].Order, p.Scheduler.Queues[q].Rank = orders.Ranked{}, scheduler.RankSlack
		}
	}
	for _, i := range edges {
		cfg.Ports[i].Edge = true
	}
	return cfg
}

func constant(of frame.Time) Config {
	return Config{Queues: 0xff, Policy: lstf.Policy{Of: of}, Max: int64(frame.Second)}
}

func view(t *testing.T, b []byte) (frame.Meta, *wire.Slack) {
	t.Helper()
	m, why := wt.Parse(b)
	if why != frame.Keep {
		t.Fatal(why)
	}
	return m, wire.SlackAt(&m, b)
}

func state(r *st.Rig) *points { return r.Switch.Nodes[0].Feature(Name).(*points) }

// On a way of three switches the waits of each packet, to the nanosecond, are the
// slack that it used; what hosts send and get has none.
func TestWaitsAddUpToSlackUsed(t *testing.T) {
	const initial = 5 * frame.Microsecond
	chain := []*st.Rig{st.New(t, config(constant(initial), 0, 2)), st.New(t, config(constant(initial), 2)), st.New(t, config(constant(initial), 1, 2))}
	begin := chain[0].Now
	entered, sent := map[uint16]frame.Time{}, map[uint16][]byte{}
	flow := uint16(1000)
	enter := func(r *st.Rig, port uint16) {
		flow++
		b := datagram(flow)
		entered[flow], sent[flow] = r.Now, b
		r.In(port, b)
	}
	left, late, waited := 0, 0, frame.Time(0)
	for now := begin; left < 60; now++ {
		if now > begin+frame.Millisecond {
			t.Fatalf("%d of 60 packets left", left)
		}
		for i, r := range chain {
			r.Now = now
			if since := now - begin; since < 4000 && since%200 == 0 {
				enter(r, [3]uint16{0, 2, 2}[i])
			}
			for _, b := range r.Out(1) {
				m, h := view(t, b)
				if i < 2 {
					if h == nil || h.Initial() != int64(initial) || h.Left() != int64(initial-(now-entered[m.SrcPort])) {
						t.Fatalf("flow %d leaves switch %d after %d ns with %x", m.SrcPort, i, now-entered[m.SrcPort], h)
					}
					chain[i+1].Now = now
					chain[i+1].In(0, b)
					continue
				}
				if string(b) != string(sent[m.SrcPort]) {
					t.Fatalf("flow %d is not what was sent: % x", m.SrcPort, b)
				}
				left++
				wait := now - entered[m.SrcPort]
				waited += wait
				if wait > initial {
					late++
				}
			}
		}
	}
	x := state(chain[2]).ports[1]
	if x.used.Total() != 60 || x.waited != int64(waited) || x.late[0] != uint64(late) || late == 0 || late == 60 {
		t.Errorf("counted %d packets, %d ns, %d late; want 60, %d, %d", x.used.Total(), x.waited, x.late[0], waited, late)
	}
}

// A queue serves the least slack first, the last bit of each counting: of the same
// slack the shorter packet; and among all that is the same the first.
func TestQueueServesLeastSlack(t *testing.T) {
	cfg := config(constant(0), 1)
	for i := range cfg.Ports {
		cfg.Ports[i].Scheduler.Rate = 1e9
	}
	r := st.New(t, cfg)
	with := func(flow uint16, slack int64, n int) []byte {
		return wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.Slack(slack, slack), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(flow, 2000), wt.Zeros(n))
	}
	r.In(0, with(1, 900, 1400)) // is sent at once
	r.Out(1)
	r.In(0, with(2, 5000, 100), with(3, -7, 100), with(4, 700, 1400), with(5, 700, 60), with(6, 700, 60), datagram(7))
	var got []uint16
	for len(got) < 6 {
		r.Now += 100
		for _, b := range r.Out(1) {
			m, h := view(t, b)
			if got = append(got, m.SrcPort); h != nil {
				t.Errorf("flow %d leaves to a host with slack", m.SrcPort)
			}
		}
	}
	// 1400 bytes take 11.5 us, 100 take 1.2: the packet without slack has 0.
	if want := [6]uint16{3, 5, 6, 2, 7, 4}; [6]uint16(got) != want {
		t.Errorf("order %v, want %v", got, want)
	}
}

// With fixed slack the one with which a packet entered is its priority, whatever it
// has waited; in a replay by priority a packet is late that leaves after the instant
// that it bears.
func TestFixedSlackIsPriority(t *testing.T) {
	o := constant(0)
	o.Fixed, o.Policy.Kind, o.Policy.Schedule = true, lstf.Exit, &lstf.Schedule{}
	cfg := config(o, 1)
	for i := range cfg.Ports {
		p := &cfg.Ports[i].Scheduler
		p.Rate = 1e9
		for q := range p.Queues {
			p.Queues[q].Rank = scheduler.RankKept
		}
	}
	r := st.New(t, cfg)
	with := func(flow uint16, initial, left int64) []byte {
		return wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.Slack(initial, left), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(flow, 2000), wt.Zeros(1400))
	}
	late := int64(r.Now) + 30_000 // a packet takes 11.5 us
	r.In(0, with(1, late, late))
	r.Out(1)
	r.In(0, with(2, late+2, -900), with(3, late+1, 500), with(4, late, 700), with(5, late+2, -1000))
	var got []uint16
	for len(got) < 4 {
		r.Now += 100
		for _, b := range r.Out(1) {
			m, _ := view(t, b)
			got = append(got, m.SrcPort)
		}
	}
	if want := [4]uint16{4, 3, 2, 5}; [4]uint16(got) != want {
		t.Errorf("order %v, want %v", got, want)
	}
	// They leave 0, 11.5, 23, 34.5 and 46 us after the first came.
	if x := state(r).ports[1]; x.late[0] != 2 {
		t.Errorf("%d packets late, want 2", x.late[0])
	}
}

// What a host wrote is replaced, or kept within limits where it is trusted; of
// queues that are not asked for nothing is written.
func TestHostsArePoliced(t *testing.T) {
	forged := wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.Slack(-9e9, -9e9), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1, 2), wt.Zeros(100))
	trusted := constant(100)
	trusted.Trusted, trusted.Min, trusted.Max = true, -50, 1000
	other := constant(100)
	other.Queues = 1 << 5
	for name, c := range map[string]struct {
		o       Config
		b       []byte
		want    int64 // -1: no slack
		policed uint64
	}{
		"without":         {constant(100), datagram(1), 100, 0},
		"forged":          {constant(100), forged, 100, 1},
		"trusted":         {trusted, forged, -50, 1},
		"trusted, silent": {trusted, datagram(1), 100, 0},
		"other queue":     {other, datagram(1), -1, 0},
		"forged, other":   {other, forged, -1, 1},
	} {
		r := st.New(t, config(c.o, 0))
		r.In(0, c.b)
		_, h := view(t, r.One(1))
		if got := state(r).ports[0].policed; got != c.policed {
			t.Errorf("%s: %d packets policed, want %d", name, got, c.policed)
		}
		switch {
		case c.want == -1 && h != nil, c.want != -1 && (h == nil || h.Left() != c.want || h.Initial() != c.want):
			t.Errorf("%s: slack %x, want %d", name, h, c.want)
		}
	}
}

// Which classes get slack follows the queues to which a new configuration takes them.
func TestClassesFollowTheirQueues(t *testing.T) {
	o := constant(100)
	o.Queues = 1 << 5
	cfg := config(o, 0)
	r := st.New(t, cfg)
	for _, queue := range []uint8{0, 5, 0} {
		c := *cfg
		c.Class.Queue[0] = queue
		r.Apply(&c)
		r.Now += 20 * frame.Microsecond
		r.In(0, datagram(1))
		if _, h := view(t, r.One(1)); (h != nil) != (queue == 5) {
			t.Errorf("by queue %d it leaves with slack %x", queue, h)
		}
	}
}

// A packet that waited long enough on all of its way is marked or dropped where it
// leaves, though its last queue is empty.
func TestEdgeJudges(t *testing.T) {
	used := func(tos uint8) []byte {
		return wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.Slack(50_000_000, 40_000_000), wt.IPv4("10.0.0.1", "10.0.0.2", wt.TOS(tos)), wt.UDP(1, 2), wt.Zeros(100))
	}
	o := constant(0)
	o.Edge = lstf.Edge{MarkAbove: 9 * frame.Millisecond}
	r := st.New(t, config(o, 1))
	for tos, want := range map[uint8]uint32{0: 0, 2: frame.IsCE} {
		r.Now += frame.Microsecond
		r.In(0, used(tos))
		if m, _ := view(t, r.One(1)); m.Flags&frame.IsCE != want {
			t.Errorf("with TOS %d it leaves with %x", tos, m.Flags&frame.IsCE)
		}
	}
	o.Edge = lstf.Edge{Target: 5 * frame.Millisecond, Interval: 100 * frame.Millisecond, Refresh: 20 * frame.Millisecond}
	r.Apply(config(o, 1))
	left := 0
	for range 150 {
		r.Now += frame.Millisecond
		r.In(0, used(0))
		left += len(r.Out(1))
	}
	if x := state(r).ports[1]; left != 149 || x.dropped != 1 || x.marked != 1 {
		t.Errorf("%d of 150 packets left, %d dropped, %d marked; want 149, 1, 1", left, x.dropped, x.marked)
	}
	r.WantDrop(0, frame.QueueShed)
}

func TestPointsAreChecked(t *testing.T) {
	r := st.New(t, st.Star())
	for name, o := range map[string]Config{"policy": {Policy: lstf.Policy{Kind: lstf.Fair}}, "limits": {Min: 2, Max: 1}, "edge": {Edge: lstf.Edge{Target: 1}}} {
		if r.Switch.Apply(config(o)) == nil {
			t.Errorf("%s: %+v is taken", name, o)
		}
	}
	s := Section{Write: "fair", Rate: 5e7, Max: 10}
	o, err := s.Options(3, 0)
	if want := (Config{Queues: 3, Policy: lstf.Policy{Kind: lstf.Fair, Rate: 5e7}, Max: 10}); err != nil || o != want {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestPointsAllocateNothing(t *testing.T) {
	o := constant(100)
	o.Policy = lstf.Policy{Kind: lstf.Fair, Rate: 1e9}
	o.Edge = lstf.Edge{Target: frame.Millisecond, Interval: frame.Second, Refresh: frame.Second}
	r := st.New(t, config(o, 0, 1))
	r.AllocatesNothing([][]byte{datagram(1), datagram(2), datagram(3)})
	if state(r).ports[1].used.Total() < 200 {
		t.Error("hardly any packet had slack")
	}
}

// What slack costs a packet that enters and leaves by one switch.
func BenchmarkSlack(b *testing.B) {
	without, with := st.Star(), st.Star()
	for i := range with.Ports {
		without.Ports[i].Edge, with.Ports[i].Edge = true, true
		without.Ports[i].Scheduler.Rate, with.Ports[i].Scheduler.Rate = 0, 0
		with.Ports[i].Options = vswitch.Options{Name: constant(100)}
	}
	short := [][]byte{wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1, 2), wt.Zeros(60))}
	st.BenchBeside(b, st.NewPump(b, without, short), st.NewPump(b, with, short))
}
