package buffer

import (
	"strings"
	"testing"

	"gswitch/frame"
	"pgregory.net/rapid"
)

// gentle is a buffer with one port and class 3 in stages from b1 on, over span
// bytes (0: the least that is safe).
func gentle(b1, span, offset uint64, last uint8) Config {
	c := Config{Size: 1 << 20, Ports: make([]PortConfig, 2)}
	c.Ports[0].Link = testLink
	c.Ports[0].Groups[3] = Group{Lossless: true, Limit: Threshold{Bytes: b1}, XONOffset: offset, Stages: last, Span: span}
	return c
}

// TestStageThresholds: B_k = Bm - (Bm-B1)/2^(k-1), up and down.
func TestStageThresholds(t *testing.T) {
	const b1, span = 100_000, 64_000
	b := mustNew(t, gentle(b1, span, 0, 9))
	stage := func() uint8 { return uint8(b.Stages(0) >> 12 & 15) }
	var held []*frame.Meta
	to := func(bytes uint64) {
		t.Helper()
		for b.held > bytes && len(held) > 0 {
			b.Release(held[len(held)-1])
			held = held[:len(held)-1]
		}
		for b.held < bytes {
			m := meta(0, 3, 1, 3, uint32(min(500, bytes-b.held)))
			if why := b.Admit(m); why != frame.Keep {
				t.Fatalf("refused %v at %d", why, b.held)
			}
			held = append(held, m)
		}
	}
	for _, c := range []struct {
		held  uint64
		stage uint8
	}{
		{99_999, 0}, {100_000, 1}, {131_999, 1}, {132_000, 2}, {147_999, 2}, {148_000, 3}, {156_000, 4}, {160_000, 5}, {162_000, 6}, {163_000, 7},
		{163_500, 8}, {163_750, 9}, {163_999, 9}, {165_000, 9}, {148_000, 3}, {147_500, 2}, {131_500, 1}, {99_500, 0},
	} {
		to(c.held)
		if stage() != c.stage {
			t.Errorf("%d bytes held: stage %d, want %d", b.held, stage(), c.stage)
		}
	}
	// With an offset a stage k ends that much below its threshold, divided by
	// 2^(k-1).
	to(0)
	if err := b.Reconfigure(gentle(b1, span, 8000, 9)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		held  uint64
		stage uint8
	}{{148_000, 3}, {146_000, 3}, {145_500, 2}, {128_000, 2}, {127_500, 1}, {92_000, 1}, {91_500, 0}, {99_500, 0}} {
		to(c.held)
		if stage() != c.stage {
			t.Errorf("with an offset, %d bytes held: stage %d, want %d", b.held, stage(), c.stage)
		}
	}
	// A stage ends with stages.
	to(140_000)
	b.NextDirty()
	c := gentle(b1, 0, 0, 0)
	if err := b.Reconfigure(c); err != nil {
		t.Fatal(err)
	}
	if port, ok := b.NextDirty(); b.Stages(0) != 0 || !ok || port != 0 || b.Want(0) != 1<<3 {
		t.Errorf("stages %#x, wants %08b, dirty %d %v", b.Stages(0), b.Want(0), port, ok)
	}
}

// TestStagesFollowHeld: whatever comes and goes, each stage is the one of what
// is held, every change is reported, and without an offset it does not depend on
// the way there.
func TestStagesFollowHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b1, span := rapid.Uint64Range(1, 50_000).Draw(t, "b1"), rapid.Uint64Range(20_000, 100_000).Draw(t, "span")
		last := rapid.Uint8Range(1, 15).Draw(t, "last")
		b, err := New(gentle(b1, span, 0, last))
		if err != nil {
			t.Fatal(err)
		}
		var held []*frame.Meta
		var sum uint64
		for range rapid.IntRange(1, 200).Draw(t, "frames") {
			before := b.Stages(0)
			if n := len(held); n > 0 && rapid.Bool().Draw(t, "leaves") {
				i := rapid.IntRange(0, n-1).Draw(t, "which")
				sum -= uint64(held[i].Wire)
				b.Release(held[i])
				held = append(held[:i], held[i+1:]...)
			} else if m := meta(0, 3, 1, 3, rapid.Uint32Range(60, 1514).Draw(t, "wire")); b.Admit(m) == frame.Keep {
				held = append(held, m)
				sum += uint64(m.Wire)
			}
			want := uint8(0)
			for k := uint8(1); k <= last; k++ {
				if sum >= b1+span-span>>(k-1) { // B_k, in whole bytes
					want = k
				}
			}
			if got := uint8(b.Stages(0) >> 12 & 15); got != want {
				t.Fatalf("%d held of %d+%d: stage %d, want %d", sum, b1, span, got, want)
			}
			if _, dirty := b.NextDirty(); before != b.Stages(0) && !dirty {
				t.Fatal("a change was not reported")
			}
			for _, dirty := b.NextDirty(); dirty; _, dirty = b.NextDirty() {
			}
		}
	})
}

func TestStagesRefused(t *testing.T) {
	safe := 2 * Headroom(testLink, 0).Skid()
	for _, c := range []struct {
		change func(*Group)
		want   string
	}{
		{func(g *Group) { g.Stages = 16 }, "at most 15 stages"},
		{func(g *Group) { g.Stages = 0 }, "a span is for stages"},
		{func(g *Group) { g.Limit = Threshold{Alpha: 1} }, "fixed threshold"},
		{func(g *Group) { g.Limit.Alpha = 1 }, "fixed threshold"},
		{func(g *Group) { g.Span = safe - 1 }, "not safe"},
		{func(g *Group) { g.Span = 1 << 30 }, "do not fit"},
	} {
		cfg := gentle(10_000, safe, 0, 9)
		c.change(&cfg.Ports[0].Groups[3])
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	cfg := gentle(10_000, 0, 0, 9)
	b := mustNew(t, cfg)
	if got, want := b.groups[1][3].room, safe+Headroom(testLink, 0).Total(); got != want {
		t.Errorf("%d bytes beyond B1, want %d", got, want)
	}
}

func TestStagesAllocations(t *testing.T) {
	b := mustNew(t, gentle(1000, 0, 100, 9))
	m := meta(0, 3, 1, 3, 1500)
	if n := testing.AllocsPerRun(100, func() {
		b.Admit(m)
		b.NextDirty()
		b.Release(m)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
