package pfc

import (
	"encoding/hex"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	"pgregory.net/rapid"
)

func TestStages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Stages
		var want [8]uint8
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			c, k := rapid.IntRange(0, 7).Draw(t, "class"), rapid.Uint8Range(0, 20).Draw(t, "stage")
			s, want[c] = s.With(c, k), min(k, MaxStages)
		}
		classes := uint8(0)
		for c, k := range want {
			if s.Of(c) != k {
				t.Fatalf("class %d is in stage %d, not %d", c, s.Of(c), k)
			}
			if k != 0 {
				classes |= 1 << c
			}
		}
		if s.Classes() != classes {
			t.Fatalf("classes %08b, not %08b", s.Classes(), classes)
		}
	})
}

// TestGentleFrames: a frame of priority flow control whose times are stages,
// sent at each change and renewed at half of the longest pause.
func TestGentleFrames(t *testing.T) {
	p := NewPort(Config{Mode: PFC, Enable: 1<<3 | 1<<4, Rate: gig, Stages: 10, Source: wire.MAC{2, 0, 0, 0, 0, 1}})
	head := "0180c2000001" + "020000000001" + "8808" + "0101"
	next := func(now frame.Time) string {
		var b [wire.MinFrame]byte
		n := p.NextFrame(now, b[:])
		return hex.EncodeToString(b[:n])
	}
	times := func(enable string, t3, t4 string) string {
		return head + enable + strings.Repeat("0", 12) + t3 + t4 + strings.Repeat("0", 12+52)
	}
	for i, step := range []struct {
		at    frame.Time
		set   Stages
		frame string
	}{
		{0, 0, ""},
		{1, Stages(0).With(3, 1), times("0008", "0001", "0000")},
		{2, Stages(0).With(3, 1), ""},
		{3, Stages(0).With(3, 12).With(4, 2).With(5, 3), times("0018", "000a", "0002")}, // at most 10, class 5 is not under flow control
		{4, Stages(0).With(4, 2), times("0018", "0000", "0002")},
		{4 + Span(DefaultQuanta, gig)/2, Stages(0).With(4, 2), times("0010", "0000", "0002")},
		{20_000_000, 0, times("0010", "0000", "0000")},
		{40_000_000, 0, ""},
	} {
		p.RequestStages(step.set)
		if got := next(step.at); got != step.frame {
			t.Errorf("step %d: sent %s, want %s", i, got, step.frame)
		}
	}
	// For a neighbour that supports only classes it means the last stage.
	p.Request(1 << 3)
	if got := next(50_000_000); got != times("0008", "000a", "0000") {
		t.Errorf("sent %s", got)
	}
	// Without stages, the same is a pause, which is sent at once.
	cfg := p.Config()
	cfg.Stages = 0
	p.Configure(50_000_001, cfg)
	if got := next(50_000_001); got != times("0008", "ffff", "0000") {
		t.Errorf("sent %s", got)
	}
}

// TestStagesFromThePeer: a stage slows and never pauses, ends by stage 0, or like a
// pause that is not renewed, and what is no stage is the last one.
func TestStagesFromThePeer(t *testing.T) {
	p := NewPort(Config{Mode: PFC, Enable: 1 << 3, Rate: gig, Stages: 10})
	var stages []uint8
	note := func() {
		if p.Changed() != 0 {
			stages = append(stages, p.Stage(3))
		}
		if p.Paused(0) != 0 || p.Until(3) != 0 || p.Stage(4) != 0 {
			t.Errorf("paused %b until %d, class 4 in stage %d", p.Paused(0), p.Until(3), p.Stage(4))
		}
	}
	for i, q := range []uint16{1, 3, 2, 0, 0xffff} {
		p.Receive(frame.Time(i), 1<<3|1<<4, [8]uint16{3: q, 4: q})
		note()
	}
	end := 4 + Span(DefaultQuanta, gig)
	if p.Wake(5) != end {
		t.Errorf("wakes at %d, not %d", p.Wake(5), end)
	}
	p.Advance(end, 1<<3)
	note()
	if got, want := hex.EncodeToString(stages), "010302000a00"; got != want {
		t.Errorf("stages %s, want %s", got, want)
	}
	if s := p.Stats(end); s.Pauses[3] != 2 || s.PausedTime[3] != 3+end-4 || s.Expired[3] != 1 || s.RxDisabled[4] != 5 {
		t.Errorf("%+v", s)
	}
	p.Receive(end+1, 1<<3, [8]uint16{3: 2})
	p.Reset(end + 2)
	if p.Stage(3) != 0 {
		t.Error("a link that went down leaves a stage")
	}
}

func TestGentleConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Mode: PFC, Enable: 1, Stages: 16}, "at most 15"},
		{Config{Mode: Pause, Stages: 1}, "needs pfc"},
	} {
		if err := c.cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
}
