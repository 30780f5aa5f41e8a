package agent

import (
	"errors"
	"fmt"
	"slices"

	"gswitch/frame"
)

// Reconfigure changes the settings that may change while queue pairs are open: those of
// hostnic.NIC.Reconfigure, and the units, timers and algorithms of queue pairs opened
// later. On error nothing changes.
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

// ErrClosing is the error of everything that Shutdown ends, and of later requests.
var ErrClosing = errors.New("this host is being taken down")

// Shutdown aborts all transfers, ends all sessions and accepts no new ones: the host is
// about to be removed. Each other end is sent one Close.
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
		// It was registered here, and nothing else deregisters it.
		_ = a.nic.Memory().Deregister(r.key)
		r.registered = false
		return true
	})
}
