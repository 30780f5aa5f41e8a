package pfc

import (
	"math/bits"

	"gswitch/frame"
)

// watch looks for storms that begin or end.
func (p *Port) watch(now frame.Time, waiting uint8) {
	for m := p.paused &^ p.storm; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		r := &p.rx[c]
		switch {
		case waiting>>c&1 == 0:
			r.stuck = frame.Never
		case r.stuck == frame.Never:
			r.stuck = now
		case now-r.stuck >= p.cfg.Watchdog.Detect:
			r.stuck, r.stormy = frame.Never, now
			p.storm |= 1 << c
			p.changed |= 1 << c
			p.stats.Storms[c]++
		}
	}
	for m := p.storm &^ p.paused; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		if now-p.rx[c].until >= p.cfg.restore() {
			p.endStorms(now, 1<<c)
			p.stats.Restored[c]++
		}
	}
}

// endStorms ends storms of these classes.
func (p *Port) endStorms(now frame.Time, classes uint8) {
	for m := p.storm & classes; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		p.stats.StormTime[c] += now - p.rx[c].stormy
		p.storm &^= 1 << c
		p.changed |= 1 << c
	}
}

// ignored returns the classes whose pause is not honoured.
func (p *Port) ignored() uint8 {
	if p.cfg.Watchdog.Action == Alert {
		return 0
	}
	return p.storm
}

// Storms returns the classes in a storm.
func (p *Port) Storms() uint8 { return p.storm }

// Dropping returns the classes of which waiting and coming frames for this
// port must be dropped.
func (p *Port) Dropping() uint8 {
	if p.cfg.Watchdog.Action != Drop {
		return 0
	}
	return p.storm
}
