package pfc

import (
	"encoding/hex"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// TestPauseOfTwoClasses: the frames of DeTail's classes 0 and 1, to the byte.
func TestPauseOfTwoClasses(t *testing.T) {
	p := NewPort(Config{Mode: PFC, Enable: 0xff, Rate: gig, Source: wire.MAC{2, 0, 0, 0, 0, 1}})
	head := "0180c2000001" + "020000000001" + "8808" + "0101" + "0003"
	zeros := func(n int) (s string) {
		for range n {
			s += "00"
		}
		return s
	}
	var b [wire.MinFrame]byte
	for _, c := range []struct {
		want uint8
		hex  string
	}{{3, head + "ffffffff" + zeros(12) + zeros(26)}, {0, head + zeros(16) + zeros(26)}} {
		p.Request(c.want)
		if n := p.NextFrame(0, b[:]); n != 60 || hex.EncodeToString(b[:n]) != c.hex {
			t.Errorf("classes %#x: %d bytes %x, want %s", c.want, n, b[:n], c.hex)
		}
	}
}

// TestResponse: a pause takes effect so long after it came, and ends so long
// after its end came.
func TestResponse(t *testing.T) {
	p := NewPort(Config{Mode: PFC, Enable: 0xff, Rate: gig, Response: 1024})
	p.Receive(1000, 1<<3, q8(3, 100))
	p.Receive(1672, 1<<3, q8(3, 0))
	if p.Paused(1000) != 0 || p.Wake(1000) != 2024 {
		t.Fatalf("paused %b, wakes at %d", p.Paused(1000), p.Wake(1000))
	}
	p.Advance(2024, 0)
	if p.Paused(2024) != 1<<3 || p.Changed() != 1<<3 || p.Until(3) != 2024+51_200 || p.Wake(2024) != 2696 {
		t.Fatalf("paused %b until %d, wakes at %d", p.Paused(2024), p.Until(3), p.Wake(2024))
	}
	p.Advance(2696, 0)
	if p.Paused(2696) != 0 || p.Changed() != 1<<3 || p.Wake(2696) != frame.Never {
		t.Fatalf("paused %b, wakes at %d", p.Paused(2696), p.Wake(2696))
	}
	if s := p.Stats(2696); s.PausedTime[3] != 672 || s.RxXOFF[3] != 1 || s.RxXON[3] != 1 {
		t.Errorf("%+v", s)
	}
	// More frames than can be noted: none is lost.
	for i := range frame.Time(20) {
		p.Receive(3000+i, 1<<5, q8(5, uint16(100+i)))
	}
	p.Advance(3019+1024, 0)
	if s := p.Stats(5000); s.RxXOFF[5] != 20 || p.Until(5) != 3019+1024+119*512 {
		t.Errorf("%d frames acted, paused until %d", s.RxXOFF[5], p.Until(5))
	}
	// One that acts early is in force from then on, and the next ends it when it comes.
	p = NewPort(Config{Mode: PFC, Enable: 0xff, Rate: gig, Response: 1024})
	for i := range frame.Time(9) {
		p.Receive(3000+i, 1<<(i&7), q8(int(i&7), 1))
	}
	if c := p.Class(0); c.PausedSince != 3008 || c.PausedUntil != 3008+512 {
		t.Errorf("paused since %d until %d", c.PausedSince, c.PausedUntil)
	}
	p.Advance(3010, 0)
	if p.Paused(3010) != 1 || p.Wake(3010) != 3520 {
		t.Errorf("paused %b, wakes at %d", p.Paused(3010), p.Wake(3010))
	}
	if p.Reset(3108); p.Stats(3108).PausedTime[0] != 100 {
		t.Errorf("paused for %d", p.Stats(3108).PausedTime[0])
	}
	// So are those that wait where the response time is taken away.
	p.Receive(4000, 1<<4, q8(4, 1))
	p.Configure(4100, Config{Mode: PFC, Enable: 0xff, Rate: gig})
	if c := p.Class(4); c.PausedSince != 4100 || c.PausedUntil != 4100+512 {
		t.Errorf("paused since %d until %d", c.PausedSince, c.PausedUntil)
	}
	p.Configure(4100, Config{Mode: PFC, Enable: 0xff, Rate: gig, Response: 1024})
	p.Reset(4100)
	// Where it gets shorter they keep their order.
	p = NewPort(Config{Mode: PFC, Enable: 0xff, Rate: gig, Response: 10_000})
	p.Receive(0, 1<<3, q8(3, 100))
	p.Configure(1000, Config{Mode: PFC, Enable: 0xff, Rate: gig, Response: 1000})
	p.Receive(2000, 1<<3, q8(3, 0))
	p.Advance(2000, 0)
	p.Advance(3000, 0)
	if s := p.Stats(10_000); s.PausedTime[3] != 1000 {
		t.Errorf("paused for %d with a response time that got shorter, want 1000", s.PausedTime[3])
	}
	p = NewPort(Config{Mode: PFC, Enable: 0xff, Rate: gig, Response: 1024})
	// A link that went down forgets them.
	p.Receive(5000, 1<<6, q8(6, 100))
	p.Reset(5001)
	if p.Wake(5001) != frame.Never {
		t.Error("something is left of before the reset")
	}
}

// listenUntil steps a port that asks its neighbour to pause class 3, with so
// many frames of the class in each microsecond, and returns when it proved to
// be unresponsive.
func listenUntil(p *Port, end frame.Time, came func(now frame.Time) uint64) (unresponsive frame.Time, sent []frame.Time) {
	var b [wire.MinFrame]byte
	for now := frame.Time(0); now < end; now += frame.Microsecond {
		if frames := (&[8]uint64{3: came(now)}); p.Wake(now) <= now && p.CheckViolations(now, frames) && unresponsive == 0 {
			unresponsive = now
		}
		p.Advance(now, 0)
		for p.NextFrame(now, b[:]) != 0 {
			sent = append(sent, now)
		}
	}
	return unresponsive, sent
}

func TestUnresponsiveNeighbour(t *testing.T) {
	const us = frame.Microsecond
	cfg := Config{Mode: PFC, Enable: 1<<3 | 1<<4, Rate: gig, Violations: ViolationLimit{Grace: 45 * us}}
	port := func() *Port {
		p := NewPort(cfg)
		p.Request(1 << 3)
		return p
	}
	// Frames come on and on: asked, again three times, then disabled.
	p := port()
	unresponsive, sent := listenUntil(p, 400*us, func(now frame.Time) uint64 { return uint64(now) })
	if unresponsive != 4*90*us || len(sent) < 4 || sent[0] != 0 || sent[1] != 90*us || sent[2] != 180*us || sent[3] != 270*us {
		t.Errorf("unresponsive at %d, sent at %v", unresponsive, sent)
	}
	if s := p.Stats(400 * us); s.Violations[3] != 4 || s.Disables != 1 || s.Requests[3] != 1 {
		t.Errorf("%+v", s)
	}
	// Frames under way do not count, and a neighbour that stops is left alone.
	p = port()
	unresponsive, sent = listenUntil(p, 20_000*us, func(now frame.Time) uint64 { return uint64(min(now, 40*us)) })
	if unresponsive != 0 || len(sent) != 2 || sent[1] < 16_776*us || p.Stats(0).Violations[3] != 0 {
		t.Errorf("unresponsive at %d, sent at %v, violations %d", unresponsive, sent, p.Stats(0).Violations[3])
	}
	// It is watched again after each renewal.
	p = port()
	unresponsive, _ = listenUntil(p, 20_000*us, func(now frame.Time) uint64 {
		if now < 16_000*us {
			return 0
		}
		return uint64(now)
	})
	if unresponsive < 16_776*us || unresponsive > 17_300*us {
		t.Errorf("unresponsive at %d", unresponsive)
	}
	// One that stops the second time is not unresponsive.
	p = port()
	unresponsive, sent = listenUntil(p, 10_000*us, func(now frame.Time) uint64 { return uint64(min(now, 100*us)) })
	if unresponsive != 0 || len(sent) != 2 || p.Stats(0).Violations[3] != 1 {
		t.Errorf("unresponsive at %d, sent at %v", unresponsive, sent)
	}
	// Nothing is watched without Grace.
	cfg.Violations = ViolationLimit{}
	p = port()
	if unresponsive, sent = listenUntil(p, 1000*us, func(now frame.Time) uint64 { return uint64(now) }); unresponsive != 0 || len(sent) != 1 {
		t.Errorf("unresponsive at %d, sent at %v", unresponsive, sent)
	}
	for _, bad := range []Config{{Mode: PFC, Enable: 1, Violations: ViolationLimit{Grace: -1}}, {Mode: PFC, Enable: 1, Violations: ViolationLimit{Resends: -1}}, {Mode: PFC, Enable: 1, Response: frame.Second}, {Response: -1}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}
