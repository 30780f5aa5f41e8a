package hostnic

import (
	intpoint "gswitch/int/point"
	"maps"
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/scheduler"
	"gswitch/vswitch"
)

// star is NICs around one switch.
type star struct {
	*rig
	nics []*NIC
	sw   *vswitch.Switch
}

func newStar(t testing.TB, hosts int, change func(i int, c *Config), turn func(c *vswitch.Config)) *star {
	return newScaledStar(t, hosts, 1, change, turn)
}

// newScaledStar is one whose cables are so many times longer.
func newScaledStar(t testing.TB, hosts int, scale frame.Time, change func(i int, c *Config), turn func(c *vswitch.Config)) *star {
	g := newRig(t, 1<<15, 256)
	g.delay *= scale
	s := &star{rig: g}
	cfg := &vswitch.Config{Name: "s", ID: 5, MAC: testMAC(200), Seed: 1, Class: vswitch.DefaultClassMaps()}
	for i := range hosts {
		p := vswitch.PortConfig{Name: string(rune('a' + i)), Enabled: true, Trust: vswitch.TrustDSCP, MTU: 9000, CableDelay: g.delay}
		p.Scheduler.Rate = 100e9
		cfg.Ports = append(cfg.Ports, p)
	}
	cfg.Buffer.Size = 8 << 20
	cfg.Options = vswitch.Options{intpoint.Name: intpoint.Config{}}
	for i := range hosts {
		cfg.FDB.Static = append(cfg.FDB.Static, vswitch.StaticMAC{VLAN: 1, MAC: testMAC(i + 1), Port: uint16(i)})
	}
	if turn != nil {
		turn(cfg)
	}
	sw, err := vswitch.New(cfg, []*frame.Pool{g.pool})
	must(t, err)
	s.sw = sw
	hub := g.add(sw.Nodes[0], hosts)
	for i := range hosts {
		c := testConfig(i + 1)
		if change != nil {
			change(i, &c)
		}
		n, err := New(&c, g.pool)
		must(t, err)
		s.nics = append(s.nics, n)
		g.link(g.add(n, 1), 0, hub, i)
	}
	return s
}

// deepest returns the most bytes that wait at the switch's port to host 0,
// looked at every microsecond between two instants.
func (s *star) deepest(from, until frame.Time) (most uint64) {
	s.run(from)
	for s.now < until {
		s.run(s.now + frame.Microsecond)
		_, bytes := s.sw.Nodes[0].Scheduler(0).Backlog()
		most = max(most, uint64(bytes))
	}
	return most
}

// incast lets all hosts send to host 0.
func (s *star) incast(cc string, params map[string]string, bytes uint64, change func(c *QPConfig)) {
	s.t.Helper()
	for i := 1; i < len(s.nics); i++ {
		qa, _ := connect(s.t, s.now, s.nics[i], s.nics[0], func(c *QPConfig) {
			if cc != "" {
				c.CC = factory(s.t, cc, params)
			}
			if change != nil {
				change(c)
			}
		})
		must(s.t, s.nics[i].SendMessage(s.now, qa, bytes, uint64(i)))
	}
}

// finish runs to the end and checks that every message arrived, and how long
// that took.
func (s *star) finish(bytes uint64) (took frame.Time) {
	s.t.Helper()
	s.run(s.now + 100*frame.Millisecond)
	done := take(s.nics[0])
	if len(done) != len(s.nics)-1 {
		s.t.Fatalf("%d of %d messages arrived", len(done), len(s.nics)-1)
	}
	for _, c := range done {
		if c.Bytes != bytes {
			s.t.Fatalf("a message of %d bytes arrived as %d", bytes, c.Bytes)
		}
		took = max(took, c.End)
	}
	s.drained()
	return took
}

func redMarking(c *vswitch.Config) {
	for i := range c.Ports {
		c.Ports[i].Scheduler.Queues[3].ECN = scheduler.ECN{KMin: 100_000, KMax: 400_000, PMax: 0.2}
	}
}

// Acknowledgements are counted whose telemetry no switch wrote to: all of them
// where the switch has none, and none where it has, or where it was not asked for.
func TestBlindAcknowledgements(t *testing.T) {
	const bytes = 100_000
	for _, c := range []struct {
		telem  inband.Mode
		writes bool
		blind  bool
	}{{inband.HPCC, true, false}, {inband.HPCC, false, true}, {inband.HPCCGrow, true, false}, {inband.INTMD, true, false}, {inband.INTMD, false, true}, {inband.None, false, false}} {
		s := newStar(t, 2, nil, func(sw *vswitch.Config) {
			if !c.writes {
				sw.Options = nil
			}
		})
		s.incast("hpcc", nil, bytes, func(q *QPConfig) { q.INT = c.telem })
		s.finish(bytes)
		n := s.nics[1].Counts()
		if want := map[bool]uint64{true: n.AcksReceived}[c.blind]; n.AcksReceived == 0 || n.Blind != want {
			t.Errorf("%v, switch writes %v: %d of %d acknowledgements", c.telem, c.writes, n.Blind, n.AcksReceived)
		}
	}
}

// Eight hosts send to one. Congestion control keeps the queue at the switch
// within bounds that its signal sets, and the link busy; without, all that the
// transport allows lies there.
func TestIncast(t *testing.T) {
	const bytes = 2_000_000
	ideal := frame.Time(8 * bytes * 8 / 100) // ns, payload alone
	// For 100 Gb/s. It begins near its share: all at line rate would drive it
	// to its least rate, and what is lost meanwhile gives no samples.
	short := map[string]string{"tlow": "10us", "thigh": "50us", "minrtt": "5us", "initial": "15Gbps", "minrate": "500Mbps"}
	// What one segment adds to the queue must not count as a trend.
	bursts := maps.Clone(short)
	bursts["alpha"] = "0.04"
	for _, c := range []struct {
		cc      string
		params  map[string]string
		telem   inband.Mode
		frames  bool // CNPs
		segment uint32
		queue   uint64 // bytes in the second half of the run, at most
		slack   float64
	}{
		{cc: "hpcc", telem: inband.HPCC, queue: 60_000, slack: 1.25},
		{cc: "hpcc", telem: inband.HPCCGrow, queue: 60_000, slack: 1.25},
		{cc: "hpcc", telem: inband.INTMD, queue: 60_000, slack: 1.25},
		{cc: "dcqcn", queue: 1_000_000, slack: 2},
		{cc: "dcqcn", params: map[string]string{"ti": "55us", "td": "50us", "alpha_timer": "55us"}, frames: true, queue: 3_000_000, slack: 1.6},
		{cc: "timely", params: short, queue: 1_500_000, slack: 2},
		{cc: "timely", params: bursts, segment: 16000, queue: 1_500_000, slack: 2},
		{cc: "", queue: 8 << 20, slack: 1.4},
	} {
		s := newStar(t, 9, func(_ int, n *Config) { n.CNP.Frames = c.frames }, redMarking)
		var rates inband.RateTable
		for p := range 9 {
			rates.Set(5, uint16(p), 100e9)
		}
		s.incast(c.cc, c.params, bytes, func(q *QPConfig) {
			q.INT, q.INTRates, q.Segment, q.LazyPacing = c.telem, &rates, c.segment, c.cc == "timely"
		})
		violations := 0
		s.seen = func(from int, m *frame.Meta, b []byte) {
			if from == 0 || s.nics == nil {
				return
			}
			for qpn := range s.nics[from-1].QPs {
				v, _ := s.nics[from-1].QP(qpn)
				if v.Window > 0 && float64(v.InFlight) > max(v.Window, 1000) && m.Wire > 1000 {
					violations++
				}
			}
		}
		early := s.deepest(0, ideal/2)
		late := s.deepest(ideal/2, ideal)
		took := s.finish(bytes)
		n := s.nics[1].Counts()
		t.Logf("%s %v segment %d: queue %d then %d bytes, took %.2f of ideal, %d marks %d CNPs %d retransmissions", c.cc, c.telem, c.segment, early, late,
			float64(took)/float64(ideal), s.nics[0].Counts().CEMarked, n.CNPsReceived, n.Retransmissions)
		if violations > 0 {
			t.Errorf("%s: %d frames sent beyond the window", c.cc, violations)
		}
		if late > c.queue {
			t.Errorf("%s: %d bytes wait at the switch, more than %d", c.cc, late, c.queue)
		}
		if float64(took) > c.slack*float64(ideal) {
			t.Errorf("%s: took %v, %v without headers", c.cc, took.Duration(), ideal.Duration())
		}
		if c.frames != (n.CNPsReceived > 0) {
			t.Errorf("%s: %d CNPs", c.cc, n.CNPsReceived)
		}
	}
}
