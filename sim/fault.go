package sim

import (
	"fmt"

	"gswitch/fault"
	"gswitch/frame"
)

// Way names a direction of a link: Forth from the first node of Connect to the
// second, Back the other.
type Way uint8

const (
	Forth Way = iota
	Back
)

// Fault sets what goes wrong on one direction of a link from now on, in place
// of what was set before. Frames that are on the link already are not touched.
func (e *Engine) Fault(id LinkID, way Way, c fault.Config) error {
	if _, err := e.direction(id, way); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("link %d: %w", id, err)
	}
	e.faulty(int32(2*int(id) + int(way))).model.Set(c)
	return nil
}

func (e *Engine) direction(id LinkID, way Way) (*direction, error) {
	if id < 0 || int(id) >= len(e.dirs)/2 || way > Back {
		return nil, fmt.Errorf("there is no direction %d of link %d", way, id)
	}
	return &e.dirs[2*int(id)+int(way)], nil
}

// faulty is the state of a direction on which something went wrong once.
type faulty struct {
	model fault.Model
	late  []inFlight

	injected uint64
	lost     [fault.NumLosses]uint64
}

// faulty returns the state of faults of direction d. From the first one on the
// parts go in step: what a fault does to a frame is noted at both of its ends.
func (e *Engine) faulty(d int32) *faulty {
	dir := &e.dirs[d]
	if dir.fault == nil {
		// Neighbouring seeds are unrelated streams, so directions get neighbouring ones.
		dir.fault = &faulty{model: fault.NewModel(e.seed*0x9e3779b97f4a7c15 + uint64(d))}
		e.inStep("a link has faults")
	}
	return dir.fault
}

// launchFaulty is launch on a direction on which something went wrong.
func (p *part) launchFaulty(d int32, dir *direction, start, end frame.Time, r frame.Ref, m *frame.Meta) {
	f := p.e.faulty(d)
	if f.model.Slows() {
		end = start + f.model.Span(end-start)
	}
	dir.free = end
	var v fault.Verdict
	if dir.up {
		v = f.model.Judge(p.arena.Bytes(r), m)
	} else {
		v = fault.Verdict{Loss: fault.LossLink, Late: f.model.Late()}
	}
	at := end + dir.delay + v.Late
	if v.Held {
		at = max(at+f.model.ReorderBy(), p.now)
	} else {
		at = max(at, dir.last, p.now)
		dir.last = at
	}
	x := inFlight{at: at, ref: r, cause: v.Loss}
	if v.Loss != fault.LossNone && v.Loss != fault.LossFCS { // one that arrives damaged is in flight until then
		p.lose(dir, x)
		return
	}
	if v.Held {
		f.hold(x)
	} else {
		dir.flight.add(x)
	}
	if v.Duplicate {
		if c := p.pool.Copy(r); c != frame.Nil {
			f.injected++
			x.ref = c
			if v.Held {
				f.hold(x)
			} else {
				dir.flight.add(x)
			}
		}
	}
	p.e.receiver(dir).queue.set(d, max(dir.nextArrival(), p.now))
}

// OnLost has fn called with each frame that a link loses: what is materialised of
// it, which fn does not keep.
func (e *Engine) OnLost(fn func(id LinkID, way Way, why fault.Loss, b []byte)) { e.onLost = fn }

// lose ends a frame on a link.
func (p *part) lose(dir *direction, x inFlight) {
	p.record(dir, &x)
	dir.fault.lost[x.cause]++
	if p.e.onLost != nil {
		d := 0
		for &p.dirs[d] != dir {
			d++
		}
		p.e.onLost(LinkID(d/2), Way(d%2), x.cause, p.arena.Bytes(x.ref))
	}
	p.pool.Free(x.ref)
}

// hold keeps a frame that others overtake. They are few: a sorted list does.
func (f *faulty) hold(x inFlight) {
	f.late = append(f.late, x)
	for k := len(f.late) - 1; k > 0 && f.late[k-1].at > f.late[k].at; k-- {
		f.late[k-1], f.late[k] = f.late[k], f.late[k-1]
	}
}

// nextArrival returns when the next frame arrives, or Never.
func (dir *direction) nextArrival() frame.Time {
	at := frame.Never
	if dir.flight.len() > 0 {
		at = dir.flight.first().at
	}
	if f := dir.fault; f != nil && len(f.late) > 0 {
		at = min(at, f.late[0].at)
	}
	return at
}

// arriveFaulty is arrive on a direction on which something went wrong: what is
// damaged ends here, and frames that were held back come after those that
// arrive in order at the same instant.
func (p *part) arriveFaulty(d int32, dir *direction, v []frame.Ref, room int) []frame.Ref {
	f := dir.fault
	for len(v) < room {
		var x inFlight
		switch {
		case dir.flight.due(p.now) && !(len(f.late) > 0 && f.late[0].at < dir.flight.first().at):
			x = dir.flight.pop()
		case len(f.late) > 0 && f.late[0].at <= p.now:
			x = f.late[0]
			f.late = f.late[:copy(f.late, f.late[1:])]
		default:
			p.rearm(d, dir)
			return v
		}
		if x.cause != fault.LossNone {
			p.lose(dir, x)
			continue
		}
		p.record(dir, &x)
		v = append(v, x.ref)
	}
	p.rearm(d, dir)
	return v
}

func (p *part) rearm(d int32, dir *direction) {
	if at := dir.nextArrival(); at != frame.Never {
		p.queue.set(d, max(at, p.now))
	}
}

// empty loses everything that is in flight.
func (e *Engine) empty(d int32, cause fault.Loss) {
	dir := &e.dirs[d]
	f, p := e.faulty(d), e.receiver(dir)
	for dir.flight.len() > 0 {
		x := dir.flight.pop()
		x.cause = cause
		p.lose(dir, x)
	}
	for _, x := range f.late {
		x.cause = cause
		p.lose(dir, x)
	}
	f.late = f.late[:0]
	dir.digest = fold(dir.digest^uint64(e.now), uint64(cause)^key2)
	dir.last = e.now
	if e.laid {
		p.queue.set(d, frame.Never)
	}
}

// DirStats is what one direction of a link counted.
type DirStats struct {
	Handed, Delivered, Injected, InFlight uint64
	Lost                                  [fault.NumLosses]uint64
}

// LinkStats returns the counters of one direction of a link.
func (e *Engine) LinkStats(id LinkID, way Way) (s DirStats) {
	dir, err := e.direction(id, way)
	if err != nil {
		return s
	}
	s.Handed, s.Delivered, s.InFlight = dir.handed, dir.delivered, uint64(dir.flight.len())
	if f := dir.fault; f != nil {
		s.Injected, s.Lost = f.injected, f.lost
		s.InFlight += uint64(len(f.late))
	}
	return s
}
