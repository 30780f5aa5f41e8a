package pfc

import (
	"math/bits"

	"gswitch/frame"
)

// Port is the flow control of one port.
type Port struct {
	cfg Config

	// What the neighbour asks of us.
	rx      [8]rxClass
	paused  uint8 // classes that the neighbour pauses, as of the last call
	storm   uint8 // classes in a storm
	changed uint8 // classes whose Until or Dropping changed since Changed

	// What we ask of the neighbour.
	requested  uint8         // what the buffer wants paused
	want       uint8         // requested, as far as it is under flow control
	sent       uint8         // classes that are XOFF at the neighbour
	stages     Stages        // how much it should be slowed, with Config.Stages
	sentStages Stages        // what was sent of that
	sentMode   Mode          // in which it was sent
	renewAt    frame.Time    // when it must be sent again
	since      [8]frame.Time // since when the class is XOFF
	compliance [8]compliance // whether the neighbour stops

	delayed delayed

	stats Stats
}

// rxClass is what the neighbour asks for one class.
type rxClass struct {
	since  frame.Time // the pause began, without a break
	until  frame.Time // it ends; of a class that is not paused, when it ended
	stage  uint8      // of Gentle Flow Control
	stuck  frame.Time // paused with frames waiting since then, or Never
	stormy frame.Time // in a storm since then
}

// NewPort returns a port that is not paused and sends no pauses.
func NewPort(cfg Config) *Port {
	p := &Port{cfg: cfg, renewAt: frame.Never}
	for c := range p.rx {
		p.rx[c].stuck = frame.Never
	}
	return p
}

// Config returns the configuration in force.
func (p *Port) Config() Config { return p.cfg }

// Configure changes the configuration. Pauses of classes that leave flow
// control end; a neighbour for which they are XOFF gets XON.
func (p *Port) Configure(now frame.Time, cfg Config) {
	p.expire(now)
	p.cfg = cfg
	for m := p.paused &^ p.scope(); m != 0; m &= m - 1 {
		p.endPause(bits.TrailingZeros8(m), now)
	}
	p.request(p.requested)
	if cfg.Stages == 0 && p.sentStages != 0 {
		p.renewAt = now // a stage is not what is to be sent now
	}
	if cfg.Stages == 0 {
		p.stages, p.sentStages = 0, 0
	}
	if p.sent != 0 {
		p.renewAt = min(p.renewAt, now+p.renewal())
	}
	for m := p.sent; m != 0; m &= m - 1 {
		p.expectStop(now, bits.TrailingZeros8(m), true)
	}
	p.hasten(now)
	if cfg.Watchdog.Detect == 0 {
		p.endStorms(now, p.storm)
	}
	p.changed |= p.storm
}

// Reset clears all pauses, both ways: the link went down or came up. What the
// buffer requests stays, and the next NextFrame sends it anew.
func (p *Port) Reset(now frame.Time) {
	p.expire(now)
	p.endStorms(now, p.storm)
	for m := p.paused; m != 0; m &= m - 1 {
		p.endPause(bits.TrailingZeros8(m), now)
	}
	for m := p.sent; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		p.stats.RequestTime[c] += now - p.since[c]
	}
	p.sent, p.sentStages, p.renewAt, p.delayed.n = 0, 0, frame.Never, 0
}

// scope returns the classes under flow control.
func (p *Port) scope() uint8 {
	switch p.cfg.Mode {
	case PFC:
		return p.cfg.Enable
	case Pause:
		return 0xff
	}
	return 0
}

// Advance has delayed pauses take effect, ends those that are over and runs the watchdog. waiting has a bit
// for each class of which frames wait for this port.
func (p *Port) Advance(now frame.Time, waiting uint8) {
	if p.delayed.n > 0 {
		p.respond(now)
	}
	if p.paused|p.storm == 0 {
		return
	}
	p.expire(now)
	if p.cfg.Watchdog.Detect > 0 {
		p.watch(now, waiting)
	}
}

// Wake returns when Advance or NextFrame next has something to do if nothing
// happens before: now if NextFrame has a frame, Never if nothing is pending.
func (p *Port) Wake(now frame.Time) frame.Time {
	if p.Due(now) {
		return now
	}
	at := frame.Never
	if p.sent != 0 {
		at = min(p.renewAt, p.complianceDue())
	}
	if p.delayed.n > 0 {
		at = min(at, p.delayed.frames[0].at)
	}
	for m := p.paused; m != 0; m &= m - 1 {
		r := &p.rx[bits.TrailingZeros8(m)]
		at = min(at, r.until)
		if r.stuck != frame.Never {
			at = min(at, r.stuck+p.cfg.Watchdog.Detect)
		}
	}
	for m := p.storm &^ p.paused; m != 0; m &= m - 1 {
		at = min(at, p.rx[bits.TrailingZeros8(m)].until+p.cfg.restore())
	}
	return max(at, now)
}
