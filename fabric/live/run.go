package live

import (
	"errors"
	"fmt"
	"time"

	"gswitch/dataplane"
	"gswitch/fault"
	"gswitch/frame"
	"gswitch/sim"
)

// Run implements vnet.Engine.
func (e *Engine) Run(until frame.Time) error {
	if err := e.failure(); err != nil {
		return err
	}
	switch e.phase {
	case building:
		if err := e.begin(); err != nil {
			e.Stop(err)
			return err
		}
	case halted, closed:
		return errors.New("the engine has been halted")
	}
	for {
		// Rounded up, plus the fraction of a nanosecond that the clock hides.
		wait := longest
		if left := until - e.Now(); left < longest/frame.Time(e.dp.Dilation()) {
			wait = (left + 1) * frame.Time(e.dp.Dilation())
		}
		select {
		case <-e.stopped:
			return e.failure()
		case <-time.After(max(wait.Duration(), pollDone)):
		}
		if e.past(until) {
			return e.failure()
		}
	}
}

// longest is the longest sleep of Run, in real time.
const longest = frame.Time(time.Hour)

// pollDone is how often Run checks whether the callbacks that are due have run.
const pollDone = 50 * time.Microsecond

// past reports whether all callbacks up to an instant have run.
func (e *Engine) past(until frame.Time) bool {
	over := true
	for w, ctl := range e.ctl {
		e.dp.Worker(w).Do(func(now frame.Time) { over = over && now >= until && ctl.Next() > until })
	}
	return over
}

// begin starts the workers, waits for the links, and starts the nodes' time.
func (e *Engine) begin() error {
	e.phase = running
	if err := e.dp.Start(); err != nil {
		return err
	}
	if err := e.awaitPorts(); err != nil {
		return err
	}
	if p := e.cfg.Part; p != nil {
		e.gc.hold(p.Processes)
		origin, err := p.Begin()
		if err != nil {
			return err
		}
		e.dp.ReleaseAt(origin)
		return nil
	}
	e.gc.hold(1)
	e.dp.Release()
	return nil
}

// awaitPorts waits until all links are up.
func (e *Engine) awaitPorts() error {
	const patience = 10 * time.Second
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		down := ""
		for _, p := range e.dp.Stats().Ports {
			if !p.Up {
				down = fmt.Sprintf("port %s (%s in network namespace %s) is %s", p.Name, p.Interface, p.NetNS, p.State)
			}
		}
		if down == "" {
			return nil
		}
		if err := e.failure(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s after %v: look at both ends with ip link", down, patience)
		}
	}
}

// Halt implements vnet.Engine.
func (e *Engine) Halt() error {
	if e.phase >= halted {
		return nil
	}
	if e.phase == running {
		e.dp.Halt()
		e.gc.release()
	}
	e.phase = halted
	st := e.dp.Stats()
	e.final = &st
	// The end is the start of the last loop. The clock itself runs on, since no worker is
	// left to stop it.
	for i := range st.Workers {
		e.end = max(e.end, st.Workers[i].Last)
	}
	if e.tape != nil {
		e.untaped = e.tape.end(e.end)
	}
	return nil
}

// Close implements vnet.Engine.
func (e *Engine) Close() error {
	if e.phase == closed {
		return nil
	}
	err := e.Halt()
	e.phase = closed
	return errors.Join(err, e.dp.Stop())
}

// Stats implements vnet.Engine. Before Halt it returns nothing, so as not to disturb the
// workers for a progress display.
func (e *Engine) Stats() (s sim.Stats) {
	if e.final == nil {
		return s
	}
	for i := range e.final.Ports {
		p := &e.final.Ports[i].PortCounters
		s.Handed += p.TxFrames
		s.Injected += p.Faults.Duplicated
		s.FrameHops += p.RxFrames
		for k, n := range p.Faults.Lost {
			s.Lost[k] += n
		}
		s.Lost[fault.LossLink] += p.Faults.RxLost
	}
	for _, c := range e.ctl {
		s.Events += c.ran
	}
	s.Events += s.FrameHops
	lost := ringDrops(e.final)
	for _, n := range s.Lost {
		lost += n
	}
	if all := s.Handed + s.Injected; all > s.FrameHops+lost {
		s.InFlight = all - s.FrameHops - lost
	}
	return s
}

// Digest implements vnet.Engine: a run in real time has none.
func (e *Engine) Digest() string { return "" }

// ringDrops counts frames that were lost below the nodes unintentionally.
func ringDrops(st *dataplane.Stats) (n uint64) {
	for i := range st.Ports {
		p := &st.Ports[i].PortCounters
		n += p.RxDropped + p.RxRingFull + p.KickDrops + p.TxInvalid + p.TxDropped
	}
	return n
}
