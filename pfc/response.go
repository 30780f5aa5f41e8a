package pfc

import "gswitch/frame"

// delayedFrame is a frame of flow control that has not taken effect yet.
type delayedFrame struct {
	at     frame.Time // when it does
	enable uint8
	link   bool // of the whole link
	quanta [8]uint16
}

// delayed are the frames that arrived within Config.Response, the oldest first. A neighbour
// sends few in so short a time.
type delayed struct {
	frames [8]delayedFrame
	n      int
}

// delay notes a frame. If there are more than can be noted the oldest one acts
// early.
func (p *Port) delay(now frame.Time, f delayedFrame) {
	if p.delayed.n == len(p.delayed.frames) {
		p.actDelayed(now, 1)
	}
	f.at = now + p.cfg.Response
	p.delayed.frames[p.delayed.n] = f
	p.delayed.n++
}

// respond lets the frames act whose time has come.
func (p *Port) respond(now frame.Time) {
	k := 0
	for k < p.delayed.n && p.delayed.frames[k].at <= now {
		k++
	}
	p.actDelayed(now, k)
}

// hasten applies a new response time to the frames that wait: none waits longer than one
// that comes now, so the oldest stays the first to act.
func (p *Port) hasten(now frame.Time) {
	for i := range p.delayed.frames[:p.delayed.n] {
		f := &p.delayed.frames[i]
		f.at = min(f.at, now+p.cfg.Response)
	}
	p.respond(now)
}

// actDelayed lets the oldest k frames act: each at its time, or now if that is still to
// come.
func (p *Port) actDelayed(now frame.Time, k int) {
	r := &p.delayed
	for i := range r.frames[:k] {
		f := &r.frames[i]
		at := min(f.at, now)
		p.expire(at)
		if f.link {
			p.actLink(at, f.quanta[0])
		} else {
			p.act(at, f.enable, &f.quanta)
		}
	}
	copy(r.frames[:], r.frames[k:r.n])
	r.n -= k
}
