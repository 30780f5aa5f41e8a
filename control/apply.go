package control

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gswitch/gswitch/config"
	"github.com/gswitch/gswitch/vswitch"
)

// Apply makes next the configuration in force and returns what changed. If
// anything fails, what was in force stays so. With dry nothing is touched.
// source says where next came from.
func (d *Daemon) Apply(next *config.Config, source string, dry bool) ([]config.Change, error) {
	changes, err := d.apply(func(*config.Config) (*config.Config, error) { return next, nil }, source, dry)
	if err != nil && !dry {
		d.refused()
	}
	return changes, err
}

// Edit applies a changed copy of the configuration in force.
func (d *Daemon) Edit(change func(*config.Config) error, dry bool) ([]config.Change, error) {
	return d.apply(func(old *config.Config) (*config.Config, error) {
		next := old.Clone()
		return next, change(next)
	}, "", dry)
}

func (d *Daemon) apply(make func(*config.Config) (*config.Config, error), source string, dry bool) ([]config.Change, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, err := make(d.doc)
	if err != nil {
		return nil, err
	}
	next = d.opts.Override(next)
	if next.Control.Socket == "" {
		next.Control.Socket = d.resolved.Control.Socket // the default may have another name by now
	}
	if err := next.Check(); err != nil {
		return nil, err
	}
	if source == "" {
		source = strings.TrimSuffix(d.source, edited) + edited
	}
	resolved := next.Resolved()
	changes := config.Diff(d.doc, next)
	if err := fixed(changes); err != nil {
		return changes, err
	}
	if err := try(resolved); err != nil {
		return changes, err
	}
	if dry {
		return changes, nil
	}
	if len(changes) > 0 {
		if err := d.carryOut(resolved); err != nil {
			return changes, explain(err)
		}
	}
	d.accept(next, resolved, source)
	for _, c := range changes {
		d.log.Info("configuration changed", "change", c.String())
	}
	return changes, nil
}

const edited = " (edited)"

// fixed refuses changes of what a process is made from.
func fixed(changes []config.Change) error {
	var lines []string
	for _, c := range changes {
		for _, part := range []string{"workers", "memory", "control"} {
			if strings.HasPrefix(c.Path, part) {
				lines = append(lines, c.String())
			}
		}
	}
	if lines == nil {
		return nil
	}
	return fmt.Errorf("workers, memory and control cannot change while the daemon runs; restart it for\n  %s", strings.Join(lines, "\n  "))
}

// carryOut brings the engine from the configuration in force to next. Each
// step leaves behind how to take it back.
func (d *Daemon) carryOut(next *config.Config) error {
	var undo []func() error
	step := func(do, back func() error) error {
		if err := do(); err != nil {
			return err
		}
		undo = append(undo, back)
		return nil
	}
	err := d.steps(next, step)
	if err == nil {
		return nil
	}
	for _, back := range slices.Backward(undo) {
		if uerr := back(); uerr != nil {
			// Nothing better can be done than to say so and go on.
			d.log.Error("taking a change back", "err", uerr)
		}
	}
	return err
}

type stepper func(do, back func() error) error

func (d *Daemon) steps(next *config.Config, step stepper) error {
	// Switches that go, or that must be built anew since other workers run
	// them, go first: what they hold is free then.
	for i := range d.resolved.Switches {
		old := &d.resolved.Switches[i]
		if s := switchOf(next, old.Name); s != nil && !rebuilt(old, s) {
			continue
		}
		err := step(
			func() error { return d.removeSwitch(old.Name) },
			func() error { return d.addSwitch(old, 0) })
		if err != nil {
			return err
		}
	}
	var ports []func() error
	for i := range next.Switches {
		s := &next.Switches[i]
		old := switchOf(d.resolved, s.Name)
		if old == nil || rebuilt(old, s) || reflect.DeepEqual(old, s) {
			continue
		}
		open, err := d.changeSwitch(old, s, step)
		if err != nil {
			return err
		}
		ports = append(ports, open...)
	}
	for _, open := range ports {
		if err := open(); err != nil {
			return err
		}
	}
	for i := range next.Switches {
		s := &next.Switches[i]
		if old := switchOf(d.resolved, s.Name); old != nil && !rebuilt(old, s) {
			continue
		}
		err := step(
			func() error { return d.addSwitch(s, 0) },
			func() error { return d.removeSwitch(s.Name) })
		if err != nil {
			return err
		}
	}
	return nil
}

func switchOf(c *config.Config, name string) *config.Switch {
	i := slices.IndexFunc(c.Switches, func(s config.Switch) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Switches[i]
}

// rebuilt reports whether a switch cannot change in place: its nodes belong
// to workers, its queues to one of them, and tables have the size and its
// seeds the value that they were made with.
func rebuilt(old, s *config.Switch) bool {
	if !slices.Equal(old.WorkersUsed(), s.WorkersUsed()) || old.FDB.Max != s.FDB.Max || old.Seed != s.Seed || old.Hash != s.Hash {
		return true
	}
	for i := range s.Ports {
		if p := portOf(old, s.Ports[i].Name); p != nil && p.Workers[0] != s.Ports[i].Workers[0] {
			return true
		}
	}
	return false
}

func portOf(s *config.Switch, name string) *config.Port {
	i := slices.IndexFunc(s.Ports, func(p config.Port) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Ports[i]
}

// reopened reports whether a port must be closed and opened again.
func reopened(a, b *config.Port) bool {
	return a.Interface != b.Interface || a.Wire != b.Wire || !reflect.DeepEqual(a.Pcap, b.Pcap) || a.NetNS != b.NetNS || a.Mode != b.Mode ||
		a.Queues != b.Queues || !slices.Equal(a.Workers, b.Workers) || !reflect.DeepEqual(a.Filter, b.Filter) || a.Delay != b.Delay
}

// changeSwitch closes the ports of a switch that go and gives it its new
// program. It returns what opens the ports that come: they may want what
// another switch gives up.
func (d *Daemon) changeSwitch(old, s *config.Switch, step stepper) (open []func() error, err error) {
	u, err := d.unit(s.Name)
	if err != nil {
		return nil, err
	}
	for i := range old.Ports {
		was := &old.Ports[i]
		if p := portOf(s, was.Name); p != nil && !reopened(was, p) {
			continue
		}
		err := step(
			func() error { return d.closePort(u, was.Name) },
			func() error { return d.openPort(u, was, 0) })
		if err != nil {
			return nil, err
		}
	}
	before := u.sw.Program().Config
	numbers, nextNumber := maps.Clone(u.numbers), u.next
	err = step(
		func() error { u.number(s); return d.program(u, s.VSwitch(u.numbers)) },
		func() error { u.numbers, u.next = numbers, nextNumber; return d.program(u, before) })
	if err != nil {
		u.numbers, u.next = numbers, nextNumber
		return nil, err
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if was := portOf(old, p.Name); was != nil && !reopened(was, p) {
			continue
		}
		open = append(open, func() error {
			return step(
				func() error { return d.openPort(u, p, 0) },
				func() error { return d.closePort(u, p.Name) })
		})
	}
	return open, nil
}

func (d *Daemon) program(u *unit, cfg *vswitch.Config) error {
	if err := u.sw.Apply(cfg); err != nil {
		return err
	}
	return d.adopt(u)
}
