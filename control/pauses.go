package control

import (
	"context"
	"fmt"

	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/vswitch"
)

// DefaultPatience is how long a queue may be paused before it is reported as overdue, if
// there is no watchdog: the watchdog's default.
const DefaultPatience = 200 * frame.Millisecond

// portName returns the name of a port, or its number if it no longer exists.
func portName(cfg *vswitch.Config, port uint16) string {
	if int(port) < len(cfg.Ports) && cfg.Ports[port].Name != "" {
		return cfg.Ports[port].Name
	}
	return fmt.Sprint(port)
}

// monotonic returns the machine's monotonic clock at the engine's time 0, which makes
// times of several daemons on one machine comparable.
func (d *Daemon) monotonic() uint64 {
	if d.replayed {
		return d.recordedMonotonic
	}
	at, _ := d.engine.Monotonic(0)
	return uint64(at)
}

func (s *server) ListPauses(_ context.Context, r *api.ListRequest) (*api.Pauses, error) {
	d := s.d
	if err := d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	base := d.monotonic()
	out := &api.Pauses{Now: base + uint64(d.engine.Now())}
	for u := range d.chosen(r.Switch) {
		cfg := u.sw.Program().Config
		var list []vswitch.Pause
		for i, w := range u.workers {
			var lost uint64
			if err := d.engine.Worker(w).Do(func(frame.Time) { list, lost = u.sw.Nodes[i].Pauses(list) }); err != nil {
				return nil, err
			}
			out.Forgotten += lost
		}
		for i := range list {
			p := &list[i]
			m := &api.Pause{Switch: u.name, Port: portName(cfg, p.Port), Number: uint32(p.Port), Class: uint32(p.Class), Asked: p.Asked, Short: p.Short,
				From: base + uint64(p.From), Held: p.Held}
			if r.Port != "" && r.Port != m.Port {
				continue
			}
			if p.To != frame.Never {
				m.To = base + uint64(p.To)
			}
			for _, c := range p.Causes {
				if c.Bytes > 0 {
					m.Causes = append(m.Causes, &api.PauseCause{Port: portName(cfg, c.Port), Number: uint32(c.Port), Bytes: c.Bytes, Stuck: c.Stuck})
				}
			}
			out.Pauses = append(out.Pauses, m)
		}
	}
	return out, nil
}

func (s *server) ListWaits(_ context.Context, r *api.ListRequest) (*api.Waits, error) {
	d := s.d
	if err := d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	base := d.monotonic()
	out := &api.Waits{}
	for u := range d.chosen(r.Switch) {
		cfg := u.sw.Program().Config
		for i, w := range u.workers {
			var list []vswitch.Wait
			var at frame.Time
			if err := d.engine.Worker(w).Do(func(now frame.Time) { list, at = u.sw.Nodes[i].Waits(now, nil), now }); err != nil {
				return nil, err
			}
			for k := range list {
				v := &list[k]
				patience := cfg.Watchdog(v.Port).Detect
				if patience == 0 {
					patience = DefaultPatience
				}
				m := &api.Wait{Switch: u.name, Port: portName(cfg, v.Port), Number: uint32(v.Port), Class: uint32(v.Class), Since: base + uint64(v.Since),
					Patience: uint64(patience), Overdue: at-v.Since >= patience, Frames: v.Frames, Bytes: v.Bytes}
				if r.Port != "" && r.Port != m.Port {
					continue
				}
				for _, from := range v.From {
					m.From = append(m.From, portName(cfg, from))
					m.FromNumbers = append(m.FromNumbers, uint32(from))
				}
				out.Waits = append(out.Waits, m)
			}
		}
	}
	out.Now = base + uint64(d.engine.Now())
	return out, nil
}
