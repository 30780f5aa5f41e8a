package live

import (
	"errors"
	"fmt"
	"io"

	"gswitch/fabric/vnet"
	"gswitch/fault"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/sim"
)

// Again is a vnet.Engine that repeats a run that was recorded on real frames: the same
// calls in the same order at the same instants, with the frames that the nodes send. The
// record contains the effects of faults: which frames arrived, and when.
type Again struct {
	p       *replay.NetworkPlayer
	ctl     control
	ends    [][2]int
	running bool
	done    bool
	err     error
	halted  error // why the record ended

	stopAt frame.Time // Never: do not stop
	atStop func(now frame.Time) (next frame.Time, err error)
}

// ErrStopAt is the error that Run returns after the last instant of StopAt.
var ErrStopAt = errors.New("the replay was to end here")

// StopAt calls do at an instant, and then at each instant that it returns. When it
// returns frame.Never, Run ends.
func (a *Again) StopAt(at frame.Time, do func(now frame.Time) (next frame.Time, err error)) {
	a.stopAt, a.atStop = at, do
}

// Replayer returns a maker of the engine for a recorded run. made is called with the
// engine.
func Replayer(in *replay.Reader, made func(*Again)) vnet.EngineMaker {
	return func(*vnet.EngineSpec) (vnet.Engine, error) {
		p, err := replay.NewNetworkPlayer(in)
		if err != nil {
			return nil, err
		}
		a := &Again{p: p, stopAt: frame.Never}
		p.Agenda = a.one
		made(a)
		return a, nil
	}
}

var _ vnet.Engine = (*Again)(nil)

// Player returns the player of the record.
func (a *Again) Player() *replay.NetworkPlayer { return a.p }

// Cut returns why the record ends before the run does, or nil if it is complete.
func (a *Again) Cut() error { return a.halted }

// one runs the first entry of the agenda, if it is due.
func (a *Again) one(now frame.Time) bool {
	if a.ctl.Next() > now {
		return false
	}
	a.ctl.one(now)
	return true
}

// Virtual implements vnet.Engine: the frames are those of a run on real frames.
func (a *Again) Virtual() bool { return false }

// Pool implements vnet.Engine.
func (a *Again) Pool(int) *frame.Pool { return a.p.Pool() }

// AddNode implements vnet.Engine.
func (a *Again) AddNode(_ int, s frame.Stepper, after func(now frame.Time)) int {
	return a.p.Add(s, after)
}

// Connect implements vnet.Engine.
func (a *Again) Connect(x int, px uint16, y int, py uint16, _ sim.Link) sim.LinkID {
	a.p.Connect(x, px, y, py)
	a.ends = append(a.ends, [2]int{x, y})
	return sim.LinkID(len(a.ends) - 1)
}

// Now implements vnet.Engine.
func (a *Again) Now() frame.Time { return a.p.Now() }

// LocalTime implements vnet.Engine. Runs whose nodes have clocks of their own are not
// recorded.
func (a *Again) LocalTime(_ int, at frame.Time) frame.Time { return at }

// At implements vnet.Engine.
func (a *Again) At(t frame.Time, fn func(now frame.Time)) { a.ctl.Put(sim.Entry{At: t, Do: fn}) }

// Every implements vnet.Engine.
func (a *Again) Every(first, period frame.Time, fn func(now frame.Time)) {
	a.ctl.Put(sim.Entry{At: first, Period: max(1, period), Do: fn})
}

// Poke implements vnet.Engine: the node's reaction is in the record.
func (a *Again) Poke(int) {}

// Apart implements vnet.Engine: recorded runs have one worker for all nodes.
func (a *Again) Apart(int) bool { return false }

// EveryOn implements vnet.Engine.
func (a *Again) EveryOn(_ int, first, period frame.Time, fn func(now frame.Time)) {
	a.Every(first, period, fn)
}

// Run implements vnet.Engine.
func (a *Again) Run(until frame.Time) error {
	a.running = true
	if a.err != nil || a.done {
		return a.err
	}
	err := a.p.Run(min(until, a.stopAt))
	for err == nil && until >= a.stopAt {
		if a.stopAt, err = a.atStop(a.stopAt); err != nil {
			break
		}
		if a.stopAt == frame.Never {
			err = ErrStopAt
			break
		}
		err = a.p.Run(min(until, a.stopAt))
	}
	lost := replay.LostError{}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		a.done = true
	case errors.Is(err, replay.ErrCut), errors.As(err, &lost):
		a.done, a.halted = true, err
	default:
		a.done, a.err = true, err
	}
	return a.err
}

// Stop implements vnet.Engine.
func (a *Again) Stop(err error) {
	if a.err == nil && err != nil {
		a.err, a.done = err, true
	}
}

// Halt implements vnet.Engine: the rest of the record is replayed.
func (a *Again) Halt() error { return a.Run(frame.Never) }

// Close implements vnet.Engine.
func (a *Again) Close() error { return nil }

// change replaces a change below the nodes: its effects are in the record.
func (a *Again) change() {
	if a.running {
		a.ctl.Put(sim.Entry{Do: func(frame.Time) {}})
	}
}

// Fault implements vnet.Engine.
func (a *Again) Fault(_ sim.LinkID, _ sim.Way, c fault.Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	a.change()
	return nil
}

// SetLink implements vnet.Engine: it counts as a change at both ends.
func (a *Again) SetLink(sim.LinkID, bool) error {
	a.change()
	a.change()
	return nil
}

// Pause implements vnet.Engine.
func (a *Again) Pause(int, frame.Time) error {
	a.change()
	return nil
}

// Slow implements vnet.Engine.
func (a *Again) Slow(int, frame.Time) error {
	a.change()
	return nil
}

// Reboot implements vnet.Engine.
func (a *Again) Reboot(node int, down frame.Time) error {
	links := func() {
		for i, ends := range a.ends {
			if ends[0] == node || ends[1] == node {
				_ = a.SetLink(sim.LinkID(i), false) // it never fails
			}
		}
	}
	begin := func(now frame.Time) {
		links()
		a.At(now+max(down, 0), func(frame.Time) { links() })
	}
	if a.running {
		a.ctl.Put(sim.Entry{Do: begin})
	} else {
		begin(a.Now())
	}
	return nil
}

// SetClock implements vnet.Engine.
func (a *Again) SetClock(int, int64, frame.Time) error {
	return errors.New("runs whose nodes have clocks of their own are not recorded")
}

// Storm implements vnet.Engine.
func (a *Again) Storm(sim.LinkID, sim.Way, sim.Storm) error {
	return fmt.Errorf("storms of pause frames exist in virtual time only")
}

// Stats implements vnet.Engine: counters of links are not in the record.
func (a *Again) Stats() sim.Stats { return sim.Stats{} }

// Digest implements vnet.Engine.
func (a *Again) Digest() string { return "" }

// idle is an engine whose nodes are stepped elsewhere. Its time stands still.
type idle struct {
	Again
	pool  *frame.Pool
	nodes *[]frame.Stepper
}

// Idle returns a maker of an engine for a network whose nodes the caller steps; they
// allocate from pool. Run always returns ErrStopAt. nodes receives the steppers by
// number; each calls the function after of AddNode once it has been stepped.
func Idle(pool *frame.Pool, nodes *[]frame.Stepper) vnet.EngineMaker {
	return func(*vnet.EngineSpec) (vnet.Engine, error) { return &idle{pool: pool, nodes: nodes}, nil }
}

// Pool implements vnet.Engine.
func (i *idle) Pool(int) *frame.Pool { return i.pool }

// AddNode implements vnet.Engine.
func (i *idle) AddNode(at int, s frame.Stepper, after func(now frame.Time)) int {
	*i.nodes = append(*i.nodes, &node{Stepper: s, after: after, at: at, pool: i.pool})
	return len(*i.nodes) - 1
}

// Connect implements vnet.Engine.
func (i *idle) Connect(x int, _ uint16, y int, _ uint16, _ sim.Link) sim.LinkID {
	i.ends = append(i.ends, [2]int{x, y})
	return sim.LinkID(len(i.ends) - 1)
}

// Now implements vnet.Engine.
func (i *idle) Now() frame.Time { return 0 }

// Run implements vnet.Engine.
func (i *idle) Run(frame.Time) error { return ErrStopAt }
