package control

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"gswitch/config"
	"gswitch/section"
	"gswitch/vswitch"
)

// Apply makes next the configuration in force and returns what changed. If anything
// fails, the previous configuration stays in force. With dry nothing is changed. source
// says where next came from. next must not name other files than the daemon's own
// configuration does.
func (d *Daemon) Apply(next *config.Config, source string, dry bool) ([]section.Change, error) {
	changes, err := d.apply(func(*config.Config) (*config.Config, error) { return next, nil }, source, dry, false)
	if err != nil && !dry {
		d.refused()
	}
	return changes, err
}

// Edit applies a changed copy of the configuration in force.
func (d *Daemon) Edit(change func(*config.Config) error, dry bool) ([]section.Change, error) {
	return d.apply(func(old *config.Config) (*config.Config, error) {
		next := old.Clone()
		return next, change(next)
	}, "", dry, false)
}

// apply makes what derive returns for the document in force the next one. own says that it
// comes from the daemon's own file, which may name files.
func (d *Daemon) apply(derive func(*config.Config) (*config.Config, error), source string, dry, own bool) ([]section.Change, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var next, resolved *config.Config
	var changes []section.Change
	err := CatchPanic(d.log, func() (err error) {
		if next, err = derive(d.doc); err != nil {
			return err
		}
		next = d.opts.Override(next)
		if next.Control.Socket == "" {
			next.Control.Socket = d.resolved.Control.Socket // the default may have another name by now
		}
		if err := next.Check(); err != nil {
			return err
		}
		if !own {
			if err := Confined(next.Files(), d.files); err != nil {
				return err
			}
		}
		resolved = next.Resolved()
		changes = section.Diff(d.resolved, resolved)
		if err := Fixed(changes); err != nil {
			return err
		}
		return d.tryChanged(resolved)
	})
	if err != nil {
		return changes, err
	}
	if source == "" {
		source = strings.TrimSuffix(d.source, edited) + edited
	}
	if dry {
		return changes, nil
	}
	if len(changes) > 0 {
		d.next = next
		if err := d.carryOut(resolved); err != nil {
			return changes, ExplainSystem(err)
		}
	}
	d.accept(next, resolved, source, len(changes) > 0)
	d.reexport()
	d.followKernels()
	if own {
		d.files = next.Files()
	}
	for _, c := range changes {
		d.log.Debug("configuration changed", "change", c.String())
	}
	return changes, nil
}

// tryChanged builds the switches of next in memory, except those that do not change and
// those in which only a few routes change, which the table itself checks.
func (d *Daemon) tryChanged(next *config.Config) error {
	for i := range next.Switches {
		s := &next.Switches[i]
		if old := switchOf(d.resolved, s.Name); old != nil {
			if _, few := routesOnly(old, s); few {
				continue
			}
		}
		if err := trySwitch(next, s); err != nil {
			return err
		}
	}
	return nil
}

// Confined rejects a document that came through the API and names other paths than the
// daemon's own file: otherwise users of the API could read and write any file that the
// daemon can.
func Confined(files, own map[string]config.Use) error {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if files[path]&^own[path] != 0 {
			return ConfigError{fmt.Errorf("%s: the API names no files of its own: write it into the file that the daemon was started with, and reload that (SIGHUP)", path)}
		}
	}
	return nil
}

const edited = " (edited)"

// Fixed rejects changes of settings that a process cannot change while it runs: its
// workers, its memory and its listening addresses.
func Fixed(changes []section.Change) error {
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

// carryOut brings the engine from the configuration in force to next.
func (d *Daemon) carryOut(next *config.Config) error {
	return InSteps(d.log, func(step Stepper) error { return d.steps(next, step) })
}

// steps takes the steps from the configuration in force to next.
func (d *Daemon) steps(next *config.Config, step Stepper) error {
	// Switches that are removed, or must be rebuilt because other workers run them, go
	// first, to free what they hold.
	for i := range d.resolved.Switches {
		old := &d.resolved.Switches[i]
		if s := switchOf(next, old.Name); s != nil && !rebuilt(old, s) {
			continue
		}
		err := step(
			func() error { return d.removeSwitch(old.Name) },
			func() error { return d.addSwitch(old) })
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
			func() error { return d.addSwitch(s) },
			func() error { return d.removeSwitch(s.Name) })
		if err != nil {
			return err
		}
	}
	before := d.resolved
	return step(
		func() error { return d.carriers(next) },
		func() error { return d.carriers(before) })
}

func switchOf(c *config.Config, name string) *config.Switch {
	i := slices.IndexFunc(c.Switches, func(s config.Switch) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Switches[i]
}

// rebuilt reports whether a switch cannot change in place: its nodes belong to workers
// and its queues to one of them, and the sizes and seeds of its tables are fixed when
// they are made.
func rebuilt(old, s *config.Switch) bool {
	if old.Timing() != s.Timing() || !slices.Equal(old.WorkersUsed(), s.WorkersUsed()) || old.FDB.Max != s.FDB.Max || old.Seed != s.Seed || old.Hash != s.Hash {
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

// reopened reports whether a port must be closed and reopened.
func reopened(a, b *config.Port) bool {
	return a.Interface != b.Interface || a.Wire != b.Wire || !reflect.DeepEqual(a.Pcap, b.Pcap) || a.NetNS != b.NetNS || a.Mode != b.Mode ||
		a.Queues != b.Queues || a.BusyPoll != b.BusyPoll || !slices.Equal(a.Workers, b.Workers) || !reflect.DeepEqual(a.Filter, b.Filter) || a.Delay != b.Delay
}

// changeSwitch closes the removed ports of a switch and gives it its new program. It
// returns functions that open the added ports, which may need resources that another
// switch still has to release.
func (d *Daemon) changeSwitch(old, s *config.Switch, step Stepper) (open []func() error, err error) {
	u, err := d.unit(s.Name)
	if err != nil {
		return nil, err
	}
	for i := range old.Ports {
		was := &old.Ports[i]
		if p := portOf(s, was.Name); p != nil && !reopened(was, p) && sameTwin(old, s, was, p) {
			continue
		}
		err := step(
			func() error { return d.closePort(u, was.Name) },
			func() error { return d.openPort(u, old, was) })
		if err != nil {
			return nil, err
		}
	}
	if changes, ok := routesOnly(old, s); ok {
		return nil, d.changeRoutes(u, changes, step)
	}
	numbers, nextNumber := maps.Clone(u.numbers), u.next
	err = step(
		func() error { u.number(s); return d.program(u, s) },
		func() error { u.numbers, u.next = numbers, nextNumber; return d.program(u, old) })
	if err != nil {
		u.numbers, u.next = numbers, nextNumber
		return nil, err
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if was := portOf(old, p.Name); was != nil && !reopened(was, p) && sameTwin(old, s, was, p) {
			if (was.Rate == 0) != (p.Rate == 0) {
				err := step(
					func() error { return d.setRated(u, p) },
					func() error { return d.setRated(u, was) })
				if err != nil {
					return nil, err
				}
			}
			if !sameFaults(was, p) {
				err := step(
					func() error { return d.setFaults(u, p) },
					func() error { return d.setFaults(u, was) })
				if err != nil {
					return nil, err
				}
			}
			continue
		}
		open = append(open, func() error {
			return step(
				func() error { return d.openPort(u, s, p) },
				func() error { return d.closePort(u, p.Name) })
		})
	}
	return open, nil
}

// setRated tells the port below a node whether the node gives it a rate.
func (d *Daemon) setRated(u *unit, p *config.Port) error {
	o := u.ports[p.Name]
	if o == nil {
		return nil // not open
	}
	spec := p.Spec()
	for _, port := range o.open {
		if err := d.engine.SetRated(port, spec.Rated, spec.TxDepth); err != nil {
			return err
		}
	}
	return nil
}

// program puts the configuration s of a switch in force.
func (d *Daemon) program(u *unit, s *config.Switch) error {
	a, err := d.applyOf(u, s)
	if err != nil {
		return err
	}
	if err := d.change(u, a); err != nil {
		return err
	}
	return d.adopt(u)
}

// change makes a worker of a switch carry out a change.
func (d *Daemon) change(u *unit, c vswitch.Change) error {
	command, err := u.sw.Prepare(c)
	if err != nil {
		return err
	}
	return d.engine.Command(u.workers[0], u.sw.Nodes[0], command)
}

// routeChange is the removal, the addition or the replacement of a route.
type routeChange struct{ old, new *config.Route }

// fewRoutes is the largest number of routes that are changed one by one: each such table
// shares all but one path with the previous table, while a new program builds everything
// again.
const fewRoutes = 1000

// routesOnly returns the routes in which two switches differ, if they differ in nothing
// else.
func routesOnly(old, s *config.Switch) ([]routeChange, bool) {
	a, b := *old, *s
	a.Routes, b.Routes = nil, nil
	if !reflect.DeepEqual(a, b) {
		return nil, false
	}
	was := make(map[netip.Prefix]*config.Route, len(old.Routes))
	for i := range old.Routes {
		was[old.Routes[i].Prefix] = &old.Routes[i]
	}
	var changes []routeChange
	for i := range s.Routes {
		r := &s.Routes[i]
		o := was[r.Prefix]
		delete(was, r.Prefix)
		if o == nil || !reflect.DeepEqual(o, r) {
			changes = append(changes, routeChange{o, r})
		}
	}
	for i := range old.Routes { // do not range over the map: the order of commands must be fixed
		if o := &old.Routes[i]; was[o.Prefix] == o {
			changes = append(changes, routeChange{old: o})
		}
	}
	return changes, len(changes) <= fewRoutes
}

func (d *Daemon) changeRoutes(u *unit, changes []routeChange, step Stepper) error {
	put := func(r *config.Route, prefix netip.Prefix) error {
		if r == nil {
			return d.change(u, vswitch.DeleteRoute{Prefix: prefix})
		}
		return d.change(u, vswitch.SetRoute{Route: r.VSwitch()})
	}
	for _, c := range changes {
		prefix := cmp.Or(c.old, c.new).Prefix
		err := step(
			func() error { return put(c.new, prefix) },
			func() error { return put(c.old, prefix) })
		if err != nil {
			return err
		}
	}
	return d.adopt(u)
}
