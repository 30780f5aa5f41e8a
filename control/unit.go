package control

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"gswitch/config"
	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/metrics"
	"gswitch/vswitch"
)

// unit is a running switch.
type unit struct {
	name    string
	sw      *vswitch.Switch
	workers []int // of Nodes
	numbers map[string]int
	next    int  // next port number to assign
	timing  bool // its ports time-stamp frames
	page    *ClockPage
	ports   map[string]*openPort
	kernel  *kernelRoutes // nil: no port has an interface in the kernel

	recording *Recording // nil: not recorded

	// Used only by the exporter: the reporters, and the program that they belong to.
	reporters []reporter
	sourcesOf uint32
	sourcesAt time.Time
	report    []byte // buffer for a report on its way to the exporter
}

// openPort is a port of the engine; there is one for each worker that has some of its
// queues.
type openPort struct {
	conf config.Port
	open []*dataplane.Port
}

// addSwitch makes a switch and opens its ports. On failure it undoes all of it.
func (d *Daemon) addSwitch(s *config.Switch) error {
	u := &unit{name: s.Name, timing: s.Timing(), workers: s.WorkersUsed(), numbers: map[string]int{}, ports: map[string]*openPort{}}
	u.number(s)
	var pools []*frame.Pool
	for _, w := range u.workers {
		pools = append(pools, d.engine.Worker(w).Pool())
	}
	var err error
	if u.sw, err = vswitch.New(d.vswitch(u, s), pools); err != nil {
		return err
	}
	for i, w := range u.workers {
		if err := d.engine.AddNode(w, u.sw.Nodes[i]); err != nil {
			return fmt.Errorf("switch %s: %w", s.Name, err)
		}
	}
	if d.opts.Record != "" {
		if err := d.record(u, s, d.opts.RecordOptions, false); err != nil {
			return errors.Join(err, d.closeSwitch(u))
		}
	}
	for i := range s.Ports {
		if err := d.openPort(u, s, &s.Ports[i]); err != nil {
			return errors.Join(err, d.closeSwitch(u))
		}
	}
	if len(s.Ports) > 0 {
		w := s.Ports[0].Workers[0] // a switch with a clock has all ports on one worker
		u.page = OpenClockPage(d.log, d.engine, w, PagePath(d.resolved.Control.Socket, s.Name), u.sw.Nodes[slices.Index(u.workers, w)].Timekeeper())
	}
	d.units = append(d.units, u)
	return nil
}

// vswitch returns the configuration of the switch node of s.
func (d *Daemon) vswitch(u *unit, s *config.Switch) *vswitch.Config {
	c := s.VSwitch(u.numbers)
	c.Epoch, c.Secret = d.engine.Epoch().UnixNano(), d.secret
	return c
}

// removeSwitch takes a switch down with its ports.
func (d *Daemon) removeSwitch(name string) error {
	u, err := d.unit(name)
	if err != nil {
		return err
	}
	d.units = slices.DeleteFunc(d.units, func(o *unit) bool { return o == u })
	return d.closeSwitch(u)
}

func (d *Daemon) closeSwitch(u *unit) error {
	u.kernel.stop()
	u.kernel = nil
	errs := []error{u.page.Close()}
	for name := range u.ports {
		errs = append(errs, d.closePort(u, name))
	}
	errs = append(errs, d.endRecording(u))
	for i, w := range u.workers {
		errs = append(errs, d.engine.RemoveNode(w, u.sw.Nodes[i]))
	}
	return errors.Join(errs...)
}

// number assigns a number to every port of s. A port keeps its number as long as a port
// with its name exists. Numbers are reused only when all have been used.
func (u *unit) number(s *config.Switch) {
	used := make([]bool, vswitch.MaxPorts)
	names := map[string]bool{}
	for i := range s.Ports {
		names[s.Ports[i].Name] = true
	}
	for name, n := range u.numbers {
		if !names[name] {
			delete(u.numbers, name)
		} else {
			used[n] = true
		}
	}
	for i := range s.Ports {
		name := s.Ports[i].Name
		if _, has := u.numbers[name]; has {
			continue
		}
		n := u.next
		if n >= vswitch.MaxPorts {
			n = slices.Index(used, false)
		} else {
			u.next++
		}
		u.numbers[name], used[n] = n, true
	}
}

// openPort opens a port of a switch: on each worker that has some of its queues a port of
// the engine.
func (d *Daemon) openPort(u *unit, s *config.Switch, p *config.Port) error {
	o := &openPort{conf: *p}
	u.ports[p.Name] = o
	shares, err := shareQueues(p)
	if err != nil {
		return fmt.Errorf("port %s: %w", metrics.PortName(u.name, p.Name), err)
	}
	if err := harmless(p); err != nil {
		return fmt.Errorf("port %s: %w", metrics.PortName(u.name, p.Name), err)
	}
	for i, queues := range shares {
		spec := p.Spec()
		spec.Name, spec.Queues, spec.Timing = metrics.PortName(u.name, p.Name), queues, u.timing
		spec.Tap = s.Twin(p, u.numbers)
		k := slices.Index(u.workers, p.Workers[i])
		port, err := d.engine.AddPort(p.Workers[i], u.sw.Nodes[k], uint16(u.numbers[p.Name]), spec)
		if err != nil {
			return errors.Join(nearInterfaces(p, err), d.closePort(u, p.Name))
		}
		o.open = append(o.open, port)
	}
	return d.setFaults(u, p)
}

func (d *Daemon) closePort(u *unit, name string) error {
	o := u.ports[name]
	if o == nil {
		return nil
	}
	delete(u.ports, name)
	var errs []error
	for _, p := range o.open {
		errs = append(errs, d.engine.RemovePort(p))
	}
	return errors.Join(errs...)
}

// adopt makes the workers of a switch adopt its program, so that the ports that it adds
// are known when they are opened.
func (d *Daemon) adopt(u *unit) error {
	for i, w := range u.workers {
		if err := d.engine.Advance(w, u.sw.Nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *Daemon) unit(name string) (*unit, error) {
	names := make([]string, len(d.units))
	for i, u := range d.units {
		if u.name == name || name == "" && len(d.units) == 1 {
			return u, nil
		}
		names[i] = u.name
	}
	if name == "" {
		return nil, fmt.Errorf("there are several switches: name one of %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("there is no switch %q; there are %s", name, strings.Join(names, ", "))
}

// chosen yields the switch with a name, or all if name is empty.
func (d *Daemon) chosen(name string) iter.Seq[*unit] {
	return func(yield func(*unit) bool) {
		for _, u := range d.units {
			if (name == "" || name == u.name) && !yield(u) {
				return
			}
		}
	}
}
