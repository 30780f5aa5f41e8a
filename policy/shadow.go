package policy

import (
	"gswitch/frame"
	"gswitch/scheduler"
)

// Link is an engine with a link of its own: what a policy would do with traffic.
type Link struct {
	*Engine
	clock    scheduler.RateClock
	overhead uint32
	// Sent and Lost are called with packets, if they are set.
	Sent func(at frame.Time, p *Packet)
	Lost func(at frame.Time, p *Packet)
}

// NewLink returns an empty one whose link has a rate in bit/s and adds overhead bytes
// to a packet.
func (p *Program) NewLink(seed, rate uint64, overhead uint32) *Link {
	l := &Link{Engine: p.NewEngine(seed, rate), overhead: overhead}
	l.clock.SetRate(l.bits)
	return l
}

// Until sends what leaves before an instant, or at it.
func (l *Link) Until(now frame.Time) {
	for l.n > 0 && l.clock.Free() <= now {
		t := max(l.clock.Free(), l.First().Arrival)
		if t > now {
			return
		}
		p := l.Take()
		l.clock.Idle(t)
		l.clock.Charge(p.Size + l.overhead)
		if l.Sent != nil {
			l.Sent(t, p)
		}
	}
}

// Come gives it a packet at an instant that is not before any other it was given.
func (l *Link) Come(now frame.Time, p Packet) {
	if l.clock.Limited() {
		l.until(now)
	}
	p.Arrival = now
	i := l.slot()
	l.slots[i].Packet = p
	l.offer(i)
	for v := l.Victim(); v != nil; v = l.Victim() {
		if l.Lost != nil {
			l.Lost(now, v)
		}
	}
	if !l.clock.Limited() {
		l.Until(now)
	}
}

// until is Until without what would leave at the instant itself: a packet that comes
// then competes.
func (l *Link) until(now frame.Time) { l.Until(now - 1) }

// Shadow runs a policy beside a queue: it gets every frame that comes, lets all
// pass, and counts what the policy would have sent and dropped over a link of the
// port's rate that it has for itself. Under is the admission that the queue has, or
// nil.
type Shadow struct {
	Text  string
	Under scheduler.Admission
}

// New implements scheduler.Admission.
func (s Shadow) New(env scheduler.Env) scheduler.Gate {
	p, err := load("", s.Text, false)
	if err != nil {
		panic("policy: " + err.Error()) // Compile took it
	}
	g := &Watch{Link: *p.NewLink(env.Seed, env.Rate, env.Overhead)}
	if s.Under == nil {
		return g
	}
	g.under = s.Under.New(env)
	if shed, ok := g.under.(scheduler.Shedder); ok {
		return &watchShedder{g, shed}
	}
	return g
}

// Check implements scheduler.Checked.
func (s Shadow) Check() error {
	_, err := Compile("shadow", s.Text)
	if c, ok := s.Under.(scheduler.Checked); ok && err == nil {
		err = c.Check()
	}
	return err
}

// String implements scheduler.Admission.
func (s Shadow) String() string {
	if s.Under != nil {
		return s.Under.String()
	}
	return ""
}

// Watch is a shadow at work.
type Watch struct {
	Link
	under scheduler.Gate
}

// Admits implements scheduler.Gate.
func (w *Watch) Admits(now frame.Time, m *frame.Meta, frames int, bytes uint64) scheduler.Verdict {
	var p Packet
	record(&p, m)
	w.Come(now, p)
	if w.under != nil {
		return w.under.Admits(now, m, frames, bytes)
	}
	return scheduler.Pass
}

type watchShedder struct {
	*Watch
	scheduler.Shedder
}

// Watched returns the shadow of a gate, or nil.
func Watched(g scheduler.Gate) *Watch {
	switch g := g.(type) {
	case *Watch:
		return g
	case *watchShedder:
		return g.Watch
	}
	return nil
}

// Held returns the engine of a discipline, or nil if it is no policy.
func Held(d scheduler.Discipline) *Engine {
	switch d := d.(type) {
	case *Discipline:
		return &d.Engine
	case *paced:
		return &d.Engine
	case *spanning:
		return &d.Engine
	}
	return nil
}
