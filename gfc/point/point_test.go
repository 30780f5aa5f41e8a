package point

import (
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// slowing is a switch of two ports at 40 Gb/s that slows them from 10 KB on.
func slowing() *vswitch.Config {
	cfg := st.Rated(st.Base(2), st.Rate40G)
	cfg.PFC = vswitch.PFCConfig{Mode: pfc.PFC, Classes: 1 << 3}
	cfg.Buffer.XOFF, cfg.Buffer.XONOffset = 10_000, 1000
	cfg.Options = vswitch.Options{Name: Config{Stages: 15, Span: 64_000}}
	return cfg
}

// What stands against slowing neighbours is refused, and says why.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		change func(*vswitch.Config)
		want   string
	}{
		{func(c *vswitch.Config) {}, ""},
		{func(c *vswitch.Config) { c.Options = vswitch.Options{Name: Config{Stages: 16}} }, "at most 15 stages"},
		{func(c *vswitch.Config) { c.Options = vswitch.Options{Name: Config{}} }, "no stage"},
		{func(c *vswitch.Config) { c.PFC.Mode = pfc.Pause }, "needs pfc"},
		{func(c *vswitch.Config) { c.Buffer.XOFF, c.Buffer.LosslessAlpha = 0, 1.0/32 }, "fixed threshold"},
		{func(c *vswitch.Config) { c.Ports[0].Scheduler.Rate = 0 }, "needs a rate"},
	} {
		cfg := slowing()
		c.change(cfg)
		err := check(cfg)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// A section gives a switch its stages, and says what it needs.
func TestSection(t *testing.T) {
	cfg := slowing()
	s := &Section{Stages: 6, Span: 50_000}
	if o, err := s.Options(cfg); err != nil || o != (Config{Stages: 6, Span: 50_000}) {
		t.Errorf("%+v, %v", o, err)
	}
	cfg.Buffer.XOFF = 0
	if _, err := s.Options(cfg); err == nil || !strings.Contains(err.Error(), "xoff") {
		t.Errorf("without a fixed threshold: %v", err)
	}
	cfg.PFC.Classes = 0
	if _, err := s.Options(cfg); err == nil || !strings.Contains(err.Error(), "lossless") {
		t.Errorf("without lossless classes: %v", err)
	}
}

// stageTo returns the last stage of class 3 that a port sends to its neighbour, and
// whether it sends one.
func stageTo(r *st.Rig, port uint16) (stage uint16, sent bool) {
	for _, b := range r.Out(port) {
		if c := wire.MACControl(b); wire.Ethernet(b).EtherType() == wire.EtherTypeMACControl && c.Opcode() == wire.OpPFC {
			stage, sent = c.Quanta(3), true
		}
	}
	return stage, sent
}

func frames(n int) (v [][]byte) {
	for range n {
		v = append(v, wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1000, 2000), wt.Zeros(1000)))
	}
	return v
}

// A port that holds more sends higher stages, the last when it is full, and none
// when it is empty. A switch that is asked to pause instead, while its neighbour is
// slowed, pauses it, and the other way round.
func TestStagesFollowTheBuffer(t *testing.T) {
	cfg := slowing()
	cfg.Ports[0].Trust, cfg.Ports[0].DefaultClass = vswitch.TrustNone, 3
	r := st.New(t, cfg)
	r.In(0, frames(9)...)
	if stage, sent := stageTo(r, 0); sent {
		t.Fatalf("below the first threshold stage %d is sent", stage)
	}
	before := uint16(0)
	for range 4 {
		r.In(0, frames(16)...)
		stage, sent := stageTo(r, 0)
		if !sent || stage <= before || stage > 15 {
			t.Fatalf("stage %d (sent: %v) after stage %d, of a buffer that fills", stage, sent, before)
		}
		before = stage
	}
	pausing := *cfg
	pausing.Options = nil
	r.Apply(&pausing)
	if quanta, sent := stageTo(r, 0); !sent || quanta != pfc.DefaultQuanta {
		t.Fatalf("without stages a time of %d is sent (%v), want a pause", quanta, sent)
	}
	r.Apply(cfg)
	if stage, sent := stageTo(r, 0); !sent || stage != before {
		t.Fatalf("stage %d is sent (%v) once there are stages again, want %d", stage, sent, before)
	}
	for range 100 {
		r.Advance(300)
		r.Out(1)
	}
	if stage, sent := stageTo(r, 0); !sent || stage != 0 {
		t.Errorf("stage %d is sent (%v) when all has left, want 0", stage, sent)
	}
}

// A span is that of exact nodes: where nodes are late, what comes at full rate in twice
// their lateness is added, else it would be refused as unsafe.
func TestSpanOfLateNodes(t *testing.T) {
	cfg := slowing()
	cfg.Ports[0].Trust, cfg.Ports[0].DefaultClass = vswitch.TrustNone, 3
	cfg.Buffer.Lateness = 10 * frame.Microsecond // 50 KB
	r := st.New(t, cfg)
	for _, c := range []struct {
		frames int // of 1066 bytes
		stage  uint16
	}{{70, 1}, {40, 2}} { // stage 2 begins at 10 KB and half of 164: 92 KB
		for range c.frames / 10 {
			r.In(0, frames(10)...)
		}
		if stage, _ := stageTo(r, 0); stage != c.stage {
			t.Errorf("stage %d after %d frames more, want %d", stage, c.frames, c.stage)
		}
	}
}

// Where frames run out, all lossless classes are in the last stage, and paused once
// there are no stages.
func TestLastStageWhereFramesRunOut(t *testing.T) {
	cfg := slowing()
	cfg.Ports[0].Trust, cfg.Ports[0].DefaultClass = vswitch.TrustNone, 3
	cfg.Buffer.XOFF, cfg.MaxFrames = 500_000, 50
	pausing := *cfg
	pausing.Options = nil
	r := st.New(t, cfg)
	r.In(0, frames(45)...)
	for _, c := range []struct {
		cfg  *vswitch.Config
		want uint16
	}{{cfg, 15}, {&pausing, pfc.DefaultQuanta}, {cfg, 15}} {
		r.Apply(c.cfg)
		if got, sent := stageTo(r, 0); !sent || got != c.want {
			t.Fatalf("%d is sent (%v), want %d", got, sent, c.want)
		}
	}
}

// The gap is that of the queue that the class has now.
func TestSlowedClassMoves(t *testing.T) {
	cfg := slowing()
	cfg.Ports[0].Trust, cfg.Ports[0].DefaultClass = vswitch.TrustNone, 3
	cfg.Buffer.XOFF = 200_000
	moved := *cfg
	moved.Class.Queue[3] = 5
	r := st.New(t, cfg)
	r.In(1, wt.PFC(st.HostMAC(2), 1<<3, 3))
	r.Apply(&moved)
	r.In(0, frames(60)...)
	n := 0
	for range 40 {
		n += len(r.Out(1))
		r.Advance(214)
	}
	if n < 4 || n > 6 {
		t.Errorf("%d frames leave in the time of 40 in stage 3, want 5", n)
	}
}

// A neighbour that slows a port gets a frame in 2^stage times its own time, and all
// of them when the stage is over, or when there are no stages any more.
func TestPortsFollowStages(t *testing.T) {
	cfg := slowing()
	cfg.Ports[0].Trust, cfg.Ports[0].DefaultClass = vswitch.TrustNone, 3
	cfg.Buffer.XOFF = 200_000
	plain := *cfg
	plain.Options = nil
	for _, c := range []struct {
		what   string
		stage  uint16
		then   func(*st.Rig)
		frames int
	}{
		{"no stage", 0, func(*st.Rig) {}, 40},
		{"stage 3", 3, func(*st.Rig) {}, 5},
		{"a stage that is over", 3, func(r *st.Rig) { r.In(1, wt.PFC(st.HostMAC(2), 1<<3, 0)) }, 40},
		{"no stages any more, and full speed", 3, func(r *st.Rig) {
			r.Apply(&plain)
			r.In(1, wt.PFC(st.HostMAC(2), 1<<3, 0))
		}, 40},
	} {
		r := st.New(t, cfg)
		r.In(1, wt.PFC(st.HostMAC(2), 1<<3, c.stage))
		c.then(r)
		r.In(0, frames(60)...)
		n := 0
		for range 40 {
			n += len(r.Out(1))
			r.Advance(214) // 1066 bytes at 40 Gb/s
		}
		if n < c.frames-1 || n > c.frames+1 {
			t.Errorf("%s: %d frames leave in the time of 40, want %d", c.what, n, c.frames)
		}
	}
}

// A port that is slowed, goes and comes back is not slowed: its neighbour is another one.
func TestPortComesBack(t *testing.T) {
	cfg := slowing()
	r := st.New(t, cfg)
	r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 2))
	if s := r.Switch.Nodes[0].Feature(Name).(*ports); len(s.slowed) < 2 || !s.slowed[1] {
		t.Fatal("the port is not slowed")
	}
	gone := *cfg
	gone.Ports = append([]vswitch.PortConfig(nil), cfg.Ports...)
	gone.Ports[1] = vswitch.PortConfig{}
	for _, c := range []*vswitch.Config{&gone, cfg} {
		if err := r.Switch.Apply(c); err != nil {
			t.Fatal(err)
		}
		r.Advance(frame.Microsecond)
		if s := r.Switch.Nodes[0].Feature(Name).(*ports); s.slowed[1] {
			t.Errorf("with %q at the port it counts as slowed", c.Ports[1].Name)
		}
	}
}
