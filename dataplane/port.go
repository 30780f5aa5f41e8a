package dataplane

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"gswitch/dataplane/xsk"
	"gswitch/frame"
)

// Port is a port of a node. The device below it may come and go; the port and its
// counters stay.
type Port struct {
	engine *Engine
	worker *Worker
	node   frame.Node
	number uint16
	spec   PortSpec
	line   *line

	// Guarded by Engine.mu.
	state    string // "up", or "down: " and why
	up       bool
	iface    *iface        // XDP
	sockets  []*xsk.Socket // XDP: of this port's queues, while the interface is open
	device   device        // XDP: over these sockets
	closed   PortCounters  // XDP: counters of sockets that have been closed
	reopened uint64        // XDP
	wire     *wire         // Wire
	pcap     *pcapPort     // Pcap
	tap      *tapPort      // Tap; nil while the interface does not exist

	tapRefused uint64 // of earlier devices

	// Written by the worker.
	cut    atomic.Bool // SetLink
	faulty atomic.Bool // SetFault
}

// Name returns the port's name.
func (p *Port) Name() string { return p.spec.Name }

// Number returns the port's number at its node.
func (p *Port) Number() uint16 { return p.number }

// AddPort opens a port and adds it to a node of a worker under a number. The node is told
// the state of the link. AddPort waits up to spec.Wait for a missing interface. With
// spec.Optional the interface may stay missing, and is opened when it appears.
func (e *Engine) AddPort(worker int, n frame.Node, number uint16, spec PortSpec) (*Port, error) {
	w, err := e.worker(worker)
	if err != nil {
		return nil, err
	}
	if err := spec.complete(number); err != nil {
		return nil, err
	}
	p := &Port{engine: e, worker: w, node: n, number: number, spec: spec, state: "down: not opened"}
	if err := e.addPort(p); err != nil {
		return nil, fmt.Errorf("port %s: %w", spec.Name, err)
	}
	return p, nil
}

// complete fills in defaults and rejects contradictions.
func (s *PortSpec) complete(number uint16) error {
	if s.Name == "" {
		switch s.Kind {
		case XDP, Tap:
			s.Name = s.Interface
		case Wire:
			s.Name = s.Wire
		default:
			s.Name = fmt.Sprintf("%s%d", s.Kind, number)
		}
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("port %s: %s", s.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Kind > Tap:
		return bad("there is no kind %d", s.Kind)
	case s.Kind == XDP && s.Interface == "":
		return bad("an xdp port needs an interface")
	case s.Kind == Wire && s.Wire == "":
		return bad("a wire port needs the name of the wire")
	case s.Kind == Pcap && s.In == "" && s.Out == "":
		return bad("a pcap port needs an input file, an output file, or both")
	case s.Kind == Tap && (s.Interface == "" || s.Tap == nil):
		return bad("a tap port needs an interface and what it is like")
	case s.Delay < 0 || s.Delay > maxDelay:
		return bad("delay %v is not from 0 to %v", s.Delay.Duration(), maxDelay.Duration())
	case s.DelayFrames > 1<<24:
		return bad("%d delay frames are more than %d", s.DelayFrames, 1<<24)
	case s.TxDepth < 0 || s.DelayFrames < 0:
		return bad("transmit depth %d and delay frames %d must not be negative", s.TxDepth, s.DelayFrames)
	case s.RingSize < 0 || s.RingSize&(s.RingSize-1) != 0:
		return bad("ring size %d is not a power of two", s.RingSize)
	case s.BusyPoll < 0:
		return bad("busy polling of %d frames is negative", s.BusyPoll)
	case s.Mode > xsk.Generic:
		return bad("there is no mode %d", uint8(s.Mode))
	}
	if len(s.Queues) == 0 {
		s.Queues = []int{0}
	}
	s.Queues = slices.Clone(s.Queues)
	for i, q := range s.Queues {
		if q < 0 {
			return bad("queue %d is negative", q)
		}
		if slices.Contains(s.Queues[:i], q) {
			return bad("queue %d is named twice", q)
		}
	}
	if s.TxDepth == 0 {
		s.TxDepth = defaultTxDepth
	}
	if s.DelayFrames == 0 {
		s.DelayFrames = 4096
	}
	if s.RingSize == 0 {
		s.RingSize = 2048
	}
	return nil
}

func (e *Engine) addPort(p *Port) error {
	if p.spec.Kind == XDP && p.spec.Wait > 0 {
		if err := e.await(p.spec); err != nil && !p.spec.Optional {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return ErrStopped
	}
	if err := e.link(p); err != nil {
		return err
	}
	e.ports = append(e.ports, p)
	var err error
	switch p.spec.Kind {
	case XDP:
		err = e.addShare(p)
	case Wire:
		err = e.plug(p)
	case Pcap:
		err = e.openPcap(p)
	case Null:
		err = e.bringUp(p, null{})
	case Tap:
		err = e.openTap(p)
	}
	if err != nil {
		return errors.Join(err, e.removePort(p))
	}
	return nil
}

// link adds the worker's view of p, with the link down.
func (e *Engine) link(p *Port) error {
	l := &line{number: p.number, depth: p.spec.TxDepth, timing: p.spec.Timing}
	if p.spec.Delay > 0 || p.spec.Rated {
		l.delay, l.cable = newDelayLine(p.spec.Delay, p.spec.DelayFrames), true
	}
	p.line = l
	var refused error
	err := p.worker.Do(func(now frame.Time) {
		w := p.worker
		if l.node = w.find(p.node); l.node == nil {
			refused = fmt.Errorf("its node is not on worker %d: AddNode first", w.index)
			return
		}
		for _, o := range w.ports {
			if o.node == l.node && o.number == l.number {
				refused = fmt.Errorf("its node already has a port %d", l.number)
				return
			}
		}
		w.ports = append(w.ports, l)
		l.node.SetLink(now, l.number, false)
	})
	return errors.Join(err, refused)
}

// SetRated says that the port's node gives it a link rate, or no longer does, and how
// many frames may then wait below the node (PortSpec.Rated and TxDepth). No frame is lost
// or reordered.
func (e *Engine) SetRated(p *Port, rated bool, depth int) error {
	if depth == 0 {
		depth = defaultTxDepth
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p.spec.Rated, p.spec.TxDepth = rated, depth
	var delay *delayLine
	if rated {
		delay = newDelayLine(p.spec.Delay, p.spec.DelayFrames)
	}
	return p.worker.Do(func(frame.Time) {
		p.line.depth = depth
		// An existing delay line stays, since frames may be in it: frames without a span
		// pass it at once.
		if p.line.delay == nil {
			p.line.delay = delay
		}
		p.line.cable = p.line.cable || rated
	})
}

// RemovePort closes a port. Its interface gets its original settings back, and the frames
// below the node are freed.
func (e *Engine) RemovePort(p *Port) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.ports, p) {
		return nil
	}
	return e.removePort(p)
}

func (e *Engine) removePort(p *Port) error {
	var err error
	switch p.spec.Kind {
	case XDP:
		err = e.removeShare(p)
	case Wire:
		e.unplug(p)
	case Pcap:
		err = e.closePcap(p)
	case Null:
		e.takeDown(p, "removed")
	case Tap:
		err = e.closeTap(p, "removed")
	}
	e.ports = slices.DeleteFunc(e.ports, func(o *Port) bool { return o == p })
	err = errors.Join(err, p.worker.Do(func(frame.Time) {
		w := p.worker
		w.ports = slices.DeleteFunc(w.ports, func(o *line) bool { return o == p.line })
		w.sleep.stale = true
	}))
	return err
}

// bringUp attaches a device to a port and notifies its node that the link is up.
func (e *Engine) bringUp(p *Port, d device) error {
	err := p.worker.Do(func(now frame.Time) {
		// Provide chunks first, for whatever arrives from now on.
		d.fill(p.worker.pool)
		p.line.dev, p.line.blocked = d, false
		p.worker.sleep.stale = true
		p.line.node.SetLink(now, p.number, p.line.fault == nil || !p.line.fault.cut)
	})
	if err == nil {
		p.up, p.state = true, "up"
	}
	return err
}

// takeDown detaches the device from a port, frees the frames on their way to it and
// notifies the node that the link is down. It returns the device, which the worker no
// longer uses.
func (e *Engine) takeDown(p *Port, why string) (d device) {
	p.up, p.state = false, "down: "+why
	p.worker.Do(func(now frame.Time) {
		l, w := p.line, p.worker
		if d = l.dev; d == nil {
			return
		}
		l.dev = nil
		w.sleep.stale = true
		// What the node has sent and no device has accepted is lost on the cable.
		l.stats.TxDropped += uint64(l.empty(w.pool))
		l.node.SetLink(now, l.number, false)
	})
	return d
}

// plug attaches p to its wire, and brings both ends up if it is the second.
func (e *Engine) plug(p *Port) error {
	l := e.wires[p.spec.Wire]
	if l == nil {
		l = &wire{name: p.spec.Wire, rings: [2]*frame.Ring{frame.NewRing(wireFrames), frame.NewRing(wireFrames)}}
		e.wires[p.spec.Wire] = l
	}
	i := slices.Index(l.ends[:], nil)
	if i < 0 {
		return fmt.Errorf("wire %s already joins %s and %s", l.name, l.ends[0].spec.Name, l.ends[1].spec.Name)
	}
	l.ends[i], p.wire = p, l
	if l.ends[1-i] == nil {
		p.state = "down: the other end of the wire is not there"
		return nil
	}
	for k, end := range l.ends {
		if err := e.bringUp(end, l.end(k)); err != nil {
			return err
		}
	}
	return nil
}

// unplug takes both ends down, in an order that leaves no frame in the rings, and
// detaches p.
func (e *Engine) unplug(p *Port) {
	l := p.wire
	if l == nil {
		return
	}
	i := slices.Index(l.ends[:], p)
	far := l.ends[1-i]
	if far != nil {
		devs := [2]device{e.takeDown(p, "removed"), e.takeDown(far, "the other end of the wire was removed")}
		// Nothing is sent any more.
		for k, end := range [2]*Port{p, far} {
			if d := devs[k]; d != nil {
				end.worker.Do(func(frame.Time) { d.release(end.worker.pool) })
			}
		}
	}
	l.ends[i], p.wire = nil, nil
	if far == nil {
		delete(e.wires, l.name)
	}
}

// status returns the control plane's view of p.
func (p *Port) status() PortStats {
	cut := p.cut.Load()
	s := PortStats{Name: p.spec.Name, Number: p.number, Worker: p.worker.index, Kind: p.spec.Kind, Up: p.up && !cut, State: p.state, Faulty: p.faulty.Load() || cut,
		Interface: p.spec.Interface, TxDepth: p.spec.TxDepth, NetNS: p.spec.NetNS, Queues: slices.Clone(p.spec.Queues), Wire: p.spec.Wire, Reopened: p.reopened}
	if p.up && cut {
		s.State = "down: the link is cut"
		if p.spec.Kind == Wire {
			s.State = "down: no carrier"
		}
	}
	switch p.spec.Kind {
	case XDP:
		p.iface.describe(&s)
	case Pcap:
		s.InputEnded = p.pcap.ended()
	}
	return s
}
