package dataplane

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"gswitch/capture"
	"gswitch/frame"
)

// MaxCaptures is the largest number of simultaneous captures of an engine: each takes
// memory, and time of the workers.
const MaxCaptures = 16

// dropList is how many dropped frames a node can list between two loops.
const dropList = 1024

// CaptureSpec says what to capture.
type CaptureSpec struct {
	Ports     []*Port         // ports to capture at; empty is every port of the engine
	In, Out   bool            // directions; neither means both
	Drops     bool            // also frames that nodes drop, with the reason
	Filter    *capture.Filter // nil selects every frame
	SnapLen   int             // bytes kept of a frame; 0 is all
	RingBytes int             // memory of each worker; 0 is 4 MiB
	Comment   string          // section comment of the stream
	// Zero converts frame.Time zero to the clock of one of Ports; nil: Engine.Epoch.
	Zero func(port uint32, at int64) int64
}

// Capture is a running capture. It does not include ports that are added later.
type Capture struct {
	engine  *Engine
	session *capture.Session
	once    sync.Once
	err     error
}

// lineTap is a capture at a port, nodeTap one of a node's drops.
type (
	lineTap struct {
		tap     *capture.Tap
		iface   uint32
		in, out bool
	}
	nodeTap struct {
		tap    *capture.Tap
		ifaces map[uint16]uint32 // by port number
	}
)

// Capture starts writing a pcapng stream to w, on a goroutine of its own. w may be slow:
// packets that it cannot take are counted and not captured. A write error ends the
// capture (Done).
func (e *Engine) Capture(w io.Writer, spec CaptureSpec) (*Capture, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil, ErrStopped
	}
	if len(e.captures) >= MaxCaptures {
		return nil, fmt.Errorf("capture: there are %d already: end one", MaxCaptures)
	}
	ports := spec.Ports
	if len(ports) == 0 {
		ports = e.ports
	}
	names := make([]string, len(ports))
	for i, p := range ports {
		if !slices.Contains(e.ports, p) {
			return nil, fmt.Errorf("capture: port %s has been removed", p.spec.Name)
		}
		names[i] = p.spec.Name
	}
	if len(ports) == 0 {
		return nil, errors.New("capture: there is no port")
	}
	s, err := capture.NewSession(w, names, len(e.workers), capture.Options{
		Filter: spec.Filter, SnapLen: spec.SnapLen, RingBytes: spec.RingBytes, Epoch: e.Epoch(), Zero: spec.Zero, Comment: spec.Comment})
	if err != nil {
		return nil, err
	}
	if !spec.In && !spec.Out {
		spec.In, spec.Out = true, true
	}
	c := &Capture{engine: e, session: s}
	e.captures = append(e.captures, c)
	for i, p := range ports {
		t := lineTap{tap: s.Tap(p.worker.index), iface: uint32(i), in: spec.In, out: spec.Out}
		p.worker.Do(func(frame.Time) {
			p.line.taps = append(p.line.taps, t)
			if spec.Drops {
				p.line.node.tapDrops(t.tap, p.number, t.iface)
			}
		})
	}
	s.Run()
	return c, nil
}

// Stats returns how many frames were captured, and how many were not because the writer
// was too slow.
func (c *Capture) Stats() capture.Stats { return c.session.Stats() }

// Done is closed when nothing more will be written.
func (c *Capture) Done() <-chan struct{} { return c.session.Done() }

// Close ends the capture after everything captured has been written.
func (c *Capture) Close() error {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return c.engine.endCapture(c)
}

// endCapture removes the taps from the workers and completes the stream.
func (e *Engine) endCapture(c *Capture) error {
	c.once.Do(func() {
		for _, w := range e.workers {
			t := c.session.Tap(w.index)
			w.Do(func(frame.Time) {
				for _, l := range w.ports {
					l.taps = slices.DeleteFunc(l.taps, func(lt lineTap) bool { return lt.tap == t })
				}
				for _, n := range w.nodes {
					w.untapDrops(n, t)
				}
			})
		}
		e.captures = slices.DeleteFunc(e.captures, func(o *Capture) bool { return o == c })
		c.err = c.session.Close()
	})
	return c.err
}

// tapDrops makes the node list its drops for the tap.
func (n *node) tapDrops(t *capture.Tap, port uint16, iface uint32) {
	d, ok := n.id.(DropTap)
	if !ok {
		return
	}
	if n.drops == nil {
		n.drops = d
		d.TapDrops(make([]frame.Ref, 0, dropList))
	}
	i := slices.IndexFunc(n.taps, func(nt nodeTap) bool { return nt.tap == t })
	if i < 0 {
		i = len(n.taps)
		n.taps = append(n.taps, nodeTap{tap: t, ifaces: map[uint16]uint32{}})
	}
	n.taps[i].ifaces[port] = iface
}

// untapDrops removes the tap t, or every tap if t is nil.
func (w *Worker) untapDrops(n *node, t *capture.Tap) {
	if n.drops == nil {
		return
	}
	n.taps = slices.DeleteFunc(n.taps, func(nt nodeTap) bool { return t == nil || nt.tap == t })
	if len(n.taps) > 0 {
		return
	}
	for _, r := range n.drops.TakeDrops() {
		w.pool.Free(r)
	}
	n.drops.TapDrops(nil)
	n.drops = nil
}

// capture offers a vector to the captures of a port.
func (l *line) capture(now frame.Time, a *frame.Arena, dir capture.Dir, v []frame.Ref) {
	for i := range l.taps {
		t := &l.taps[i]
		if dir == capture.DirIn && t.in || dir == capture.DirOut && t.out {
			t.tap.Frames(now, a, t.iface, dir, v)
		}
	}
}

// captureDrops offers the frames that a node dropped to its captures, and frees them. It
// is called only for nodes with a capture of drops.
func (w *Worker) captureDrops(now frame.Time, n *node) {
	v := n.drops.TakeDrops()
	for i := range v {
		in := w.arena.Meta(v[i]).InPort
		for k := range n.taps {
			if iface, ok := n.taps[k].ifaces[in]; ok {
				n.taps[k].tap.Frames(now, w.arena, iface, capture.DirDrop, v[i:i+1])
			}
		}
	}
	for _, r := range v {
		w.pool.Free(r)
	}
}
