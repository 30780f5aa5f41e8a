package host

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gswitch/config"
	"gswitch/control"
	"gswitch/frame"
	"gswitch/section"
)

// Apply makes next the configuration in force. It returns what changed, and further
// effects on hosts. If anything fails, the previous configuration stays in force. With
// dry nothing is changed. source says where next came from. next must not name other
// files than the daemon's own configuration does.
func (d *Daemon) Apply(next *config.Hosts, source string, dry bool) (changes []section.Change, consequences []string, err error) {
	return d.apply(next, source, dry, false)
}

func (d *Daemon) apply(next *config.Hosts, source string, dry, own bool) (changes []section.Change, consequences []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() {
		if err != nil && !dry {
			d.refused()
		}
	}()
	var p *plan
	err = control.CatchPanic(d.log, func() (err error) {
		next = d.overridden(next)
		changes = section.Diff(d.doc, next)
		if err := control.Fixed(changes); err != nil {
			return err
		}
		if !own {
			if err := control.Confined(next.Files(), d.files); err != nil {
				return err
			}
		}
		p, err = d.plan(next)
		return err
	})
	if err != nil {
		return changes, nil, err
	}
	if dry {
		return changes, p.consequences, nil
	}
	if len(changes) > 0 {
		if err := control.InSteps(d.log, func(step control.Stepper) error { return d.carryOut(p, step) }); err != nil {
			return changes, nil, control.ExplainSystem(err)
		}
		d.arrange(next)
		d.state.Generation++
	}
	d.doc, d.source = next, source
	d.reexport()
	if own {
		d.files = next.Files()
	}
	d.state.ReloadSuccess, d.state.ReloadTime = true, time.Now()
	for _, c := range changes {
		d.log.Debug("configuration changed", "change", c.String())
	}
	return changes, p.consequences, nil
}

// ReadFile reads the configuration file of a running daemon again.
func (d *Daemon) ReadFile(path string) ([]section.Change, []string, error) {
	var c *config.Hosts
	err := control.CatchPanic(d.log, func() (err error) { c, err = config.LoadHosts(path); return err })
	if err != nil {
		d.mu.Lock()
		d.refused()
		d.mu.Unlock()
		return nil, nil, err
	}
	return d.apply(c, path, false, true)
}

func (d *Daemon) refused() { d.state.ReloadSuccess, d.state.ReloadTime = false, time.Now() }

// move is a host that is removed, added, or changed.
type move struct {
	old, new *config.Host
	at       control.Interface // of an added host
}

// plan holds the changes from the hosts in force to others.
type plan struct {
	gone, come   []move // a host that is rebuilt is in both
	changed      []move // stay, with other settings
	consequences []string
}

// plan determines the changes, and rejects what would fail.
func (d *Daemon) plan(next *config.Hosts) (*plan, error) {
	if next.ChunkSize() > d.engine.Arena().ChunkSize() {
		return nil, errors.New("a payload of that size needs larger chunks of memory than this process was started with: restart it")
	}
	p, chunks := &plan{}, 0
	for i := range d.doc.Hosts {
		if old := &d.doc.Hosts[i]; next.Find(old.Name) == nil {
			p.gone = append(p.gone, move{old: old})
			p.note("- host %s: goes; %s", old.Name, d.openPairs(old.Name))
		}
	}
	for i := range next.Hosts {
		h := &next.Hosts[i]
		old := d.doc.Find(h.Name)
		var keys []string
		if old != nil {
			keys = rebuilt(old, h)
		}
		if old != nil && len(keys) == 0 {
			u, err := chosen(d.units, h.Name)
			if err != nil {
				return nil, err
			}
			chunks += framesAQueue*u.queues + framesUnder
			if err := p.change(old, h); err != nil {
				return nil, err
			}
			continue
		}
		at, err := find(context.Background(), h, time.Time{})
		if err != nil {
			return nil, err
		}
		chunks += framesAQueue*at.Queues + framesUnder
		if old != nil {
			p.gone = append(p.gone, move{old: old})
			p.note("! host %s: is built anew, since %s changes; %s", h.Name, strings.Join(keys, ", "), d.openPairs(h.Name))
		} else {
			p.note("+ host %s: comes, at %v on %s", h.Name, h.Address, h.Interface)
		}
		p.come = append(p.come, move{new: h, at: at})
	}
	if have := d.engine.Arena().Chunks(); len(p.come) > len(p.gone) && chunks > have {
		return nil, fmt.Errorf("these hosts want %d chunks of packet memory, and this process was started with %d: restart it, with memory.frames if more are to come", chunks, have)
	}
	return p, nil
}

// change adds a host that stays to the plan if anything about it changes.
func (p *plan) change(old, h *config.Host) error {
	if reflect.DeepEqual(old, h) {
		return nil
	}
	p.changed = append(p.changed, move{old: old, new: h})
	if old.Mode != h.Mode {
		p.note("~ host %s: its interface is closed and opened again, since mode changes: frames under way are lost, queue pairs stay", h.Name)
	}
	// An interface that does not exist now is no obstacle.
	if at, err := control.FindInterface(h.Interface, h.NetNS); err == nil {
		return fits(h, at)
	}
	return nil
}

func (p *plan) note(format string, args ...any) {
	p.consequences = append(p.consequences, fmt.Sprintf(format, args...))
}

// openPairs describes the queue pairs that are lost with a host that is removed.
func (d *Daemon) openPairs(name string) string {
	open := 0
	if u, err := chosen(d.units, name); err == nil {
		_ = u.worker.Do(func(frame.Time) { open = u.agent.NIC().Counts().QPsOpen })
	}
	switch open {
	case 0:
		return "no queue pair is open"
	case 1:
		return "its queue pair ends"
	}
	return fmt.Sprintf("its %d queue pairs end", open)
}

// rebuilt returns the keys in which two hosts differ and that require a new NIC: its
// addresses are in the headers of open queue pairs, their packets have its payload size,
// and it belongs to its worker.
func rebuilt(old, h *config.Host) (keys []string) {
	for _, k := range []struct {
		name    string
		differs bool
	}{
		{"interface", old.Interface != h.Interface},
		{"netns", old.NetNS != h.NetNS},
		{"mac", !reflect.DeepEqual(old.MAC, h.MAC)},
		{"address", old.Address != h.Address},
		{"payload", old.Payload != h.Payload},
		{"clock", old.Timing() != h.Timing()},
		{"worker", *old.Worker != *h.Worker},
	} {
		if k.differs {
			keys = append(keys, k.name)
		}
	}
	return keys
}

// carryOut carries out a plan on the engine.
func (d *Daemon) carryOut(p *plan, step control.Stepper) error {
	for _, m := range p.gone {
		at, err := find(context.Background(), m.old, time.Time{})
		if err != nil {
			at = control.Interface{Queues: 1} // it is missing: the engine waits for it
		}
		err = step(
			func() error { return d.remove(m.old.Name) },
			func() error { return d.add(m.old, at) })
		if err != nil {
			return err
		}
	}
	for _, m := range p.changed {
		u, err := chosen(d.units, m.old.Name)
		if err != nil {
			return err
		}
		err = step(
			func() error { return u.configure(m.new) },
			func() error { return u.configure(m.old) })
		if err != nil {
			return err
		}
		if m.old.Mode == m.new.Mode {
			continue
		}
		err = step(
			func() error { return u.reopen(m.new) },
			func() error { return u.reopen(m.old) })
		if err != nil {
			return errors.Join(err, u.reopen(m.old))
		}
	}
	for _, m := range p.come {
		err := step(
			func() error { return d.add(m.new, m.at) },
			func() error { return d.remove(m.new.Name) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *Daemon) add(h *config.Host, at control.Interface) error {
	u, err := d.open(h, at)
	if err != nil {
		return err
	}
	d.units = append(d.units, u)
	return nil
}

func (d *Daemon) remove(name string) error {
	u, err := chosen(d.units, name)
	if err != nil {
		return err
	}
	d.units = slices.DeleteFunc(d.units, func(o *unit) bool { return o == u })
	return u.close()
}

// arrange puts the hosts in the order of the document.
func (d *Daemon) arrange(c *config.Hosts) {
	place := func(u *unit) int {
		return slices.IndexFunc(c.Hosts, func(h config.Host) bool { return h.Name == u.name })
	}
	slices.SortFunc(d.units, func(a, b *unit) int { return place(a) - place(b) })
}
