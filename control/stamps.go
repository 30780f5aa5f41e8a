package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gswitch/dataplane"
	"gswitch/feature"
	"gswitch/frame"
)

// Stamps are the clocks by which captures stamp what passes ports. A port without one, or
// with one that knows no time when the capture begins, has the machine's.
type Stamps map[*dataplane.Port]*stampClock

// stampPeriod is between two looks at a clock: in it two oscillators part by 2 us at most.
const stampPeriod = 10 * time.Millisecond

// stampClock is a clock as it was seen last. The goroutine that writes a capture owns it.
type stampClock struct {
	worker *dataplane.Worker
	clock  feature.Timekeeper
	zero   feature.Slew // what frame.Time zero is by the clock
	known  bool         // zero is
	last   feature.Time
	next   time.Time
}

// Add looks at the clock of a port; nil: it has none.
func (s Stamps) Add(p *dataplane.Port, worker *dataplane.Worker, k feature.Timekeeper) {
	if k == nil {
		return
	}
	if c := (&stampClock{worker: worker, clock: k}); c.look() {
		s[p] = c
	}
}

// look asks the clock, and reports whether it knows the time. While it does not, stamps go
// on as they did.
func (c *stampClock) look() bool {
	var t feature.Time
	var at frame.Time
	if err := c.worker.Do(func(now frame.Time) { t, at = c.clock.ReadTime(int64(now)), now }); err != nil {
		return false
	}
	if c.next = time.Now().Add(stampPeriod); t.Eps >= 0 {
		c.last = t
		if zero := t.Time - int64(at); c.known {
			c.zero.Set(int64(at), zero)
		} else {
			c.zero.Step(zero)
			c.known = true
		}
	}
	return t.Eps >= 0
}

// use has a capture stamp by the clocks of its ports, and say so.
func (s Stamps) use(spec *dataplane.CaptureSpec, e *dataplane.Engine) {
	by := make([]*stampClock, len(spec.Ports))
	var said []string
	for i, p := range spec.Ports {
		c := s[p]
		if by[i] = c; c != nil {
			text := fmt.Sprintf("root %016x within %v", c.last.Root, time.Duration(c.last.Eps)+stampPeriod/5000)
			if !slices.Contains(said, text) {
				said = append(said, text)
			}
		}
	}
	if said == nil {
		return
	}
	spec.Comment += "; stamps are synchronised time: that of " + strings.Join(said, ", of ") + " when the capture began"
	if slices.Contains(by, nil) {
		spec.Comment += "; ports without a clock have the machine's"
	}
	epoch := e.Epoch().UnixNano()
	spec.Zero = func(port uint32, at int64) int64 {
		c := by[port]
		if c == nil {
			return epoch
		}
		if time.Now().After(c.next) {
			c.look()
		}
		return c.zero.Stamp(at) - at
	}
}

// stamps are those of all ports of the daemon.
func (d *Daemon) stamps() Stamps {
	d.mu.RLock()
	defer d.mu.RUnlock()
	s := Stamps{}
	for _, u := range d.units {
		k, i := u.clockOf()
		if k == nil {
			continue
		}
		for _, o := range u.ports {
			for _, p := range o.open {
				s.Add(p, d.engine.Worker(u.workers[i]), k)
			}
		}
	}
	return s
}
