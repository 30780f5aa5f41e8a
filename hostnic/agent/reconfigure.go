package agent

import (
	"errors"
	"fmt"
	"slices"

	"gswitch/frame"
)

// Reconfigure changes what may change while queue pairs are open: what
// hostnic.NIC.Reconfigure takes, and the units, timers and algorithms of those
// that are opened from now on. On an error nothing has changed.
func (a *Agent) Reconfigure(now frame.Time, cfg *Config) error {
	c := cfg.complete()
	if err := c.Transport.Validate(); err != nil {
		return fmt.Errorf("agent %s: %w", c.NIC.Name, err)
	}
	if err := a.nic.Reconfigure(now, &c.NIC); err != nil {
		return err
	}
	c.NIC = a.nic.Config()
	a.cfg = c
	return nil
}

// ErrClosing is what everything ends with, and what new requests get, from
// Shutdown on.
var ErrClosing = errors.New("this host is being taken down")

// Shutdown aborts all transfers and ends all sessions, and begins no others:
// the host is about to be taken down. The other ends get one Close each.
func (a *Agent) Shutdown(now frame.Time) {
	a.closing, a.serving = true, nil
	for _, t := range a.transfers {
		if t.State != Ended {
			a.fail(now, t, ErrClosing)
		}
	}
	a.transfers = nil
	for _, s := range a.sessions {
		if !s.Closed {
			a.endSession(now, s)
		}
	}
	a.sessions = nil
}

// retire frees regions without connections.
func (a *Agent) retire() {
	a.retired = slices.DeleteFunc(a.retired, func(r *Region) bool {
		for _, s := range a.sessions {
			if s.region == r && !s.Closed {
				return false
			}
		}
		// It was registered here, and only here it ends.
		_ = a.nic.Memory().Deregister(r.key)
		r.registered = false
		return true
	})
}
