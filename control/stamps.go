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

// Stamps are the clocks whose time captures use at ports. A port without a clock, or
// whose clock does not know the time when the capture starts, uses the machine's.
type Stamps map[*dataplane.Port]*stampClock

// stampPeriod is the interval between readings of a clock: two oscillators diverge by at
// most 2 us within it.
const stampPeriod = 10 * time.Millisecond

// stampClock is a clock as last read. The goroutine that writes a capture owns it.
type stampClock struct {
	worker *dataplane.Worker
	clock  feature.Timekeeper
	zero   feature.Slew // time of the clock at frame.Time zero
	known  bool         // zero is valid
	last   feature.Time
	next   time.Time
}

// Add adds the clock of a port; nil: none.
func (s Stamps) Add(p *dataplane.Port, worker *dataplane.Worker, k feature.Timekeeper) {
	if k == nil {
		return
	}
	if c := (&stampClock{worker: worker, clock: k}); c.look() {
		s[p] = c
	}
}

// look reads the clock, and reports whether it knows the time. While it does not, stamps
// continue as before.
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

// use makes a capture stamp by the clocks of its ports, and say so in its comment.
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

// stamps returns the clocks of all ports of the daemon.
func (d *Daemon) stamps() Stamps {
	d.mu.RLock()
	defer d.mu.RUnlock()
	s := Stamps{}
	for _, u := range d.units {
		k, ok := u.clockOf()
		if !ok {
			continue
		}
		for _, o := range u.ports {
			for _, p := range o.open {
				s.Add(p, d.engine.Worker(u.workers[k.at]), k)
			}
		}
	}
	return s
}
