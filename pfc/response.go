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
		p.respond(p.delayed.frames[0].at)
	}
	f.at = now + p.cfg.Response
	p.delayed.frames[p.delayed.n] = f
	p.delayed.n++
}

// respond lets the frames act whose time has come.
func (p *Port) respond(now frame.Time) {
	r := &p.delayed
	k := 0
	for ; k < r.n && r.frames[k].at <= now; k++ {
		f := &r.frames[k]
		p.expire(f.at)
		if f.link {
			p.actLink(f.at, f.quanta[0])
		} else {
			p.act(f.at, f.enable, &f.quanta)
		}
	}
	copy(r.frames[:], r.frames[k:r.n])
	r.n -= k
}
