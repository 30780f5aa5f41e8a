package pfc

import (
	"math/bits"

	"gswitch/frame"
)

// Receive takes in a PFC frame: the class enable vector and a time for each
// class, in quanta. Time 0 ends the pause of a class. The upper half of the
// vector is reserved and ignored (IEEE 802.3 annex 31D).
func (p *Port) Receive(now frame.Time, enable uint16, quanta [8]uint16) {
	p.stats.RxFrames++
	if p.cfg.Mode != PFC {
		p.stats.RxIgnored++
		return
	}
	if p.cfg.Response > 0 {
		p.delay(now, delayedFrame{enable: uint8(enable), quanta: quanta})
		return
	}
	p.expire(now)
	p.act(now, uint8(enable), &quanta)
}

// act lets a PFC frame take effect.
func (p *Port) act(now frame.Time, enable uint8, quanta *[8]uint16) {
	scope := p.scope()
	for m := enable; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		if scope>>c&1 == 0 {
			p.stats.RxDisabled[c]++
			continue
		}
		p.setPause(now, c, quanta[c])
	}
}

// ReceivePause takes in an 802.3x pause frame.
func (p *Port) ReceivePause(now frame.Time, quanta uint16) {
	p.stats.RxPause++
	if p.cfg.Mode != Pause {
		p.stats.RxIgnored++
		return
	}
	if p.cfg.Response > 0 {
		p.delay(now, delayedFrame{link: true, quanta: [8]uint16{quanta}})
		return
	}
	p.expire(now)
	p.actLink(now, quanta)
}

// actLink lets an 802.3x pause frame take effect.
func (p *Port) actLink(now frame.Time, quanta uint16) {
	for c := range p.rx {
		p.setPause(now, c, quanta)
	}
}

// setPause sets the pause of a class. A new time replaces what is left of an old
// one (IEEE 802.3 31B.3.3).
func (p *Port) setPause(now frame.Time, c int, quanta uint16) {
	if quanta == 0 {
		p.stats.RxXON[c]++
		if p.paused>>c&1 != 0 {
			p.endPause(c, now)
		}
		return
	}
	p.stats.RxXOFF[c]++
	r := &p.rx[c]
	if p.paused>>c&1 == 0 {
		p.paused |= 1 << c
		r.since = now
		p.stats.Pauses[c]++
	}
	if p.cfg.Stages != 0 {
		r.stage, quanta = uint8(min(quanta, uint16(p.cfg.Stages))), DefaultQuanta
	}
	r.until = now + Span(quanta, p.cfg.rate())
	p.changed |= 1 << c
}

// expire ends the pauses that were over by now.
func (p *Port) expire(now frame.Time) {
	for m := p.paused; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		if u := p.rx[c].until; u <= now {
			p.stats.Expired[c]++
			p.endPause(c, u)
		}
	}
}

func (p *Port) endPause(c int, at frame.Time) {
	r := &p.rx[c]
	p.stats.PausedTime[c] += at - r.since
	r.until, r.stuck = at, frame.Never
	p.paused &^= 1 << c
	p.changed |= 1 << c
}

// Changed returns the classes whose Until or whose bit in Dropping may have
// changed since the last call.
func (p *Port) Changed() uint8 {
	m := p.changed
	p.changed = 0
	return m
}

// Until returns the instant before which no frame of the class may be sent: a
// past one if it may be sent now.
func (p *Port) Until(class int) frame.Time {
	c := class & 7
	if (p.paused&^p.ignored())>>c&1 == 0 || p.cfg.Stages != 0 {
		return 0
	}
	return p.rx[c].until
}

// Paused returns the classes that may not be sent at now.
func (p *Port) Paused(now frame.Time) uint8 {
	var paused uint8
	if p.cfg.Stages != 0 {
		return 0
	}
	for m := p.paused &^ p.ignored(); m != 0; m &= m - 1 {
		if c := bits.TrailingZeros8(m); p.rx[c].until > now {
			paused |= 1 << c
		}
	}
	return paused
}
