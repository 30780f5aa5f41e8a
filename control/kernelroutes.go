package control

import (
	"errors"
	"maps"
	"reflect"

	"gswitch/config"
	"gswitch/control/kernel"
	"gswitch/vswitch"
)

// kernelRoutes gets the routes of the kernel in which the ports of a switch have twins.
type kernelRoutes struct {
	netns   string
	ports   map[string]string // by interface
	watcher *kernel.Watcher
}

func (k *kernelRoutes) stop() {
	if k != nil {
		k.watcher.Stop()
	}
}

var errNotFollowed = errors.New("the switch no longer follows this kernel")

// followKernels makes every switch whose ports have twins track the kernel's routes. mu
// is held.
func (d *Daemon) followKernels() {
	if d.replayed {
		return
	}
	for _, u := range d.units {
		netns, ports := twins(switchOf(d.resolved, u.name))
		old := u.kernel
		if old != nil && old.netns == netns && maps.Equal(old.ports, ports) || old == nil && len(ports) == 0 {
			continue
		}
		old.stop()
		if u.kernel = nil; len(ports) == 0 {
			if err := d.change(u, &vswitch.LearnRoutes{Reset: true}); err != nil {
				d.log.Error("routes of the kernel", "switch", u.name, "err", err)
			}
			continue
		}
		k := &kernelRoutes{netns: netns, ports: ports}
		u.kernel = k
		k.watcher = kernel.Watch(netns, ports, func(c *vswitch.LearnRoutes) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			if u.kernel != k {
				return errNotFollowed
			}
			if err := d.change(u, c); err != nil {
				return err
			}
			return d.adopt(u)
		}, d.log.With("switch", u.name))
	}
}

// twins returns the names of ports by the interface that is their twin, and the namespace
// of these interfaces.
func twins(s *config.Switch) (netns string, ports map[string]string) {
	ports = map[string]string{}
	for i := range s.Ports {
		if p := &s.Ports[i]; p.Tap != nil {
			netns, ports[p.Tap.Name] = p.NetNS, p.Tap.Of
		}
	}
	return netns, ports
}

// sameTwin reports whether the interface that a port makes in the kernel stays as it is.
func sameTwin(old, s *config.Switch, was, p *config.Port) bool {
	a, b := old.Twin(was, nil), s.Twin(p, nil)
	return reflect.DeepEqual(a, b) && (a == nil || was.Tap.Name == p.Tap.Name && was.Tap.Of == p.Tap.Of)
}
