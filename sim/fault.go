package sim

import (
	"fmt"

	"github.com/gswitch/gswitch/frame"
)

// Loss says why a link lost a frame.
type Loss uint8

const (
	LossNone   Loss = iota
	LossRandom      // FaultConfig.Loss
	LossBurst       // FaultConfig.Burst
	LossChosen      // FaultConfig.Drop
	LossFCS         // arrived corrupted: the receiver's port dropped it by its check sequence
	LossLink        // the link went down while it was on it, or was down
	LossReboot      // the node at one end was restarting
	NumLosses
)

var lossNames = [NumLosses]string{"none", "random", "burst", "chosen", "fcs", "link-down", "reboot"}

func (l Loss) String() string {
	if l < NumLosses {
		return lossNames[l]
	}
	return "unknown"
}

// Burst is the loss model of Gilbert and Elliott (Elliott, "Estimates of error
// rates for codes on burst-noise channels", BSTJ 42, 1963): a chain with a
// good and a bad state, which each frame moves and which decides how likely
// the frame is lost. All are probabilities.
type Burst struct {
	ToBad, ToGood     float64 // of leaving the good state, and the bad one, at each frame
	LossGood, LossBad float64 // of losing a frame in that state
}

// Drop loses chosen frames: of those that match, the First (from 1) and then
// Count-1 more (0 = 1), or every Every-th after the first if Every > 0.
type Drop struct {
	// Match gets the materialised bytes, and of Meta what belongs to the frame
	// on a link: Len, Wire, Depart, Span. FiveTuple makes one. nil: every frame.
	Match        func(b []byte, m *frame.Meta) bool
	First, Count uint64
	Every        uint64
	// Share above 0 takes the place of these three: each frame that matches is
	// lost with this probability.
	Share float64
}

// FaultConfig is what goes wrong on one direction of a link. Shares are
// probabilities, drawn for each frame on its own. The zero value is a link
// without faults.
type FaultConfig struct {
	Loss    float64
	Burst   Burst
	Drop    []Drop
	Corrupt float64 // share that arrives damaged and is dropped by its check sequence
	// Flip is the share that is passed on to the node with FlipBits (0 = 1)
	// random bits of its headers inverted, as by a faulty memory behind the
	// check: what no check sequence finds.
	Flip     float64
	FlipBits int

	Reorder   float64    // share that is held back by ReorderBy and overtaken meanwhile
	ReorderBy frame.Time // ns
	Jitter    frame.Time // each frame takes up to so much longer, in order
	Duplicate float64    // share that arrives twice

	// Slow > 1 lets each frame occupy the link so many times longer, as after
	// a rate change at one lane of several: the sender's port waits for it.
	// 0 or 1 = the port's own rate. Ports without a rate are not slowed.
	Slow float64
}

func (c *FaultConfig) validate() error {
	for _, p := range []struct {
		name string
		v    float64
	}{{"loss", c.Loss}, {"burst to bad", c.Burst.ToBad}, {"burst to good", c.Burst.ToGood}, {"burst loss in good", c.Burst.LossGood},
		{"burst loss in bad", c.Burst.LossBad}, {"corrupt", c.Corrupt}, {"flip", c.Flip}, {"reorder", c.Reorder}, {"duplicate", c.Duplicate}} {
		if !(p.v >= 0 && p.v <= 1) {
			return fmt.Errorf("%s %v is no probability: use 0 to 1", p.name, p.v)
		}
	}
	for i := range c.Drop {
		if p := c.Drop[i].Share; !(p >= 0 && p <= 1) {
			return fmt.Errorf("drop %v is no probability: use 0 to 1", p)
		}
	}
	switch {
	case c.ReorderBy < 0 || c.Jitter < 0:
		return fmt.Errorf("a delay is negative")
	case c.Reorder > 0 && c.ReorderBy == 0:
		return fmt.Errorf("reorder needs the time by which frames are held back")
	case c.FlipBits < 0 || c.FlipBits > 64:
		return fmt.Errorf("%d bits to flip: use 1 to 64", c.FlipBits)
	case c.Slow != 0 && !(c.Slow >= 1 && c.Slow <= 1e6):
		return fmt.Errorf("slow %v: use a factor from 1 to 1e6", c.Slow)
	}
	return nil
}

// Way names a direction of a link: Forth from the first node of Connect to the
// second, Back the other.
type Way uint8

const (
	Forth Way = iota
	Back
)

// Fault sets what goes wrong on one direction of a link from now on, in place
// of what was set before. Frames that are on the link already are not touched.
func (e *Engine) Fault(id LinkID, way Way, c FaultConfig) error {
	dir, err := e.direction(id, way)
	if err != nil {
		return err
	}
	if err := c.validate(); err != nil {
		return fmt.Errorf("link %d: %w", id, err)
	}
	f := dir.ensureFault(e.seed, 2*int(id)+int(way))
	f.cfg, f.bad = c, false
	f.seen = make([]uint64, len(c.Drop))
	f.stretch = 0
	if c.Slow > 1 {
		f.stretch = uint64(c.Slow * (1 << stretchBits))
	}
	return nil
}

func (e *Engine) direction(id LinkID, way Way) (*direction, error) {
	if id < 0 || int(id) >= len(e.dirs)/2 || way > Back {
		return nil, fmt.Errorf("there is no direction %d of link %d", way, id)
	}
	return &e.dirs[2*int(id)+int(way)], nil
}

// fault is the state of a direction on which something went wrong once.
type fault struct {
	cfg     FaultConfig
	rng     frame.Rand
	bad     bool     // state of the burst model
	seen    []uint64 // frames that matched, by Drop
	stretch uint64   // Slow in units of 2^-stretchBits, 0 = not slow
	late    []inFlight

	injected uint64
	lost     [NumLosses]uint64
}

const stretchBits = 20

func (dir *direction) ensureFault(seed uint64, index int) *fault {
	if dir.fault == nil {
		// Neighbouring seeds are unrelated streams, so directions get neighbouring ones.
		dir.fault = &fault{rng: frame.NewRand(seed*0x9e3779b97f4a7c15 + uint64(index))}
	}
	return dir.fault
}

func (f *fault) slows() bool { return f.stretch != 0 }

// chance draws whether something of probability p happens. Without a chance it
// draws nothing.
func (f *fault) chance(p float64) bool { return p > 0 && f.rng.Float64() < p }

// judge decides whether a frame is lost, and why.
func (f *fault) judge(b []byte, m *frame.Meta) Loss {
	c := &f.cfg
	cause := LossNone
	for i := range c.Drop {
		if f.chosen(i, b, m) {
			cause = LossChosen
		}
	}
	if g := &c.Burst; g.ToBad > 0 || g.LossGood > 0 || f.bad {
		p, leave := g.LossGood, g.ToBad
		if f.bad {
			p, leave = g.LossBad, g.ToGood
		}
		if f.chance(p) && cause == LossNone {
			cause = LossBurst
		}
		if f.chance(leave) {
			f.bad = !f.bad
		}
	}
	if f.chance(c.Loss) && cause == LossNone {
		cause = LossRandom
	}
	if f.chance(c.Corrupt) && cause == LossNone {
		cause = LossFCS
	}
	return cause
}

func (f *fault) chosen(i int, b []byte, m *frame.Meta) bool {
	d := &f.cfg.Drop[i]
	if d.Match != nil && !d.Match(b, m) {
		return false
	}
	if d.Share > 0 {
		return f.chance(d.Share)
	}
	f.seen[i]++
	n, first := f.seen[i], max(d.First, 1)
	switch {
	case n < first:
		return false
	case d.Every > 0:
		return (n-first)%d.Every == 0 && (d.Count == 0 || (n-first)/d.Every < d.Count)
	}
	return n-first < max(d.Count, 1)
}

// flip inverts random bits of the headers.
func (f *fault) flip(b []byte) {
	for range max(f.cfg.FlipBits, 1) {
		if i := f.rng.Uint32n(uint32(8 * max(len(b), 1))); int(i/8) < len(b) {
			b[i/8] ^= 1 << (i % 8)
		}
	}
}

// launchFaulty is launch on a direction on which something went wrong.
func (e *Engine) launchFaulty(d int32, dir *direction, start, end frame.Time, r frame.Ref, m *frame.Meta) {
	f := dir.ensureFault(e.seed, int(d))
	if f.slows() {
		end = start + frame.Time(uint64(end-start)*f.stretch>>stretchBits)
	}
	dir.free = end
	at := end + dir.delay
	cause := LossNone
	switch {
	case !dir.up:
		cause = LossLink
	default:
		cause = f.judge(e.arena.Bytes(r), m)
	}
	if cause == LossNone && f.chance(f.cfg.Flip) {
		f.flip(e.arena.Bytes(r))
	}
	if f.cfg.Jitter > 0 {
		at += frame.Time(f.rng.Float64() * float64(f.cfg.Jitter+1))
	}
	held := cause == LossNone && f.chance(f.cfg.Reorder)
	if held {
		at = max(at+f.cfg.ReorderBy, e.now)
	} else {
		at = max(at, dir.last, e.now)
		dir.last = at
	}
	x := inFlight{at: at, ref: r, cause: cause}
	if cause != LossNone && cause != LossFCS { // one that arrives damaged is in flight until then
		e.lose(dir, x)
		return
	}
	if held {
		f.hold(x)
	} else {
		dir.flight.add(x)
	}
	if cause == LossNone && f.chance(f.cfg.Duplicate) {
		if c := e.pool.Copy(r); c != frame.Nil {
			f.injected++
			x.ref = c
			if held {
				f.hold(x)
			} else {
				dir.flight.add(x)
			}
		}
	}
	e.queue.set(d, max(dir.nextArrival(), e.now))
}

// lose ends a frame on a link.
func (e *Engine) lose(dir *direction, x inFlight) {
	e.record(dir, &x)
	dir.fault.lost[x.cause]++
	e.pool.Free(x.ref)
}

// hold keeps a frame that others overtake. They are few: a sorted list does.
func (f *fault) hold(x inFlight) {
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
func (e *Engine) arriveFaulty(d int32, dir *direction, v []frame.Ref, room int) []frame.Ref {
	f := dir.fault
	for len(v) < room {
		var x inFlight
		switch {
		case dir.flight.due(e.now) && !(len(f.late) > 0 && f.late[0].at < dir.flight.first().at):
			x = dir.flight.pop()
		case len(f.late) > 0 && f.late[0].at <= e.now:
			x = f.late[0]
			f.late = f.late[:copy(f.late, f.late[1:])]
		default:
			e.rearm(d, dir)
			return v
		}
		if x.cause != LossNone {
			e.lose(dir, x)
			continue
		}
		e.record(dir, &x)
		v = append(v, x.ref)
	}
	e.rearm(d, dir)
	return v
}

func (e *Engine) rearm(d int32, dir *direction) {
	if at := dir.nextArrival(); at != frame.Never {
		e.queue.set(d, max(at, e.now))
	}
}

// empty loses everything that is in flight.
func (e *Engine) empty(d int32, cause Loss) {
	dir := &e.dirs[d]
	f := dir.ensureFault(e.seed, int(d))
	for dir.flight.len() > 0 {
		x := dir.flight.pop()
		x.cause = cause
		e.lose(dir, x)
	}
	for _, x := range f.late {
		x.cause = cause
		e.lose(dir, x)
	}
	f.late = f.late[:0]
	dir.digest = fold(dir.digest^uint64(e.now), uint64(cause)^key2)
	dir.last = e.now
	if e.laid {
		e.queue.set(d, frame.Never)
	}
}

// DirStats is what one direction of a link counted.
type DirStats struct {
	Handed, Delivered, Injected, InFlight uint64
	Lost                                  [NumLosses]uint64
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
