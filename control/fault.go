package control

import (
	"reflect"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/fault"
)

// setFaults replaces the faults of an open port. Only the worker that sends for the port
// has frames to lose.
func (d *Daemon) setFaults(u *unit, p *config.Port) error {
	o := u.ports[p.Name]
	if o == nil {
		return nil // not open
	}
	c, seed := p.Fault()
	for _, port := range o.open {
		if err := d.engine.SetFault(port, c, seed); err != nil {
			return err
		}
	}
	return nil
}

// faultText returns the faults of a port as configured.
func (d *Daemon) faultText(sw, port string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if s := switchOf(d.doc, sw); s != nil {
		if p, err := s.FindPort(port); err == nil {
			return p.Faults.String()
		}
	}
	return ""
}

func sameFaults(a, b *config.Port) bool { return reflect.DeepEqual(a.Faults, b.Faults) }

// editFaults applies a request to the faults of a port.
func editFaults(p *config.Port, faults map[string]string) error {
	if _, all := faults["none"]; all {
		p.Faults = nil
	}
	for key, text := range faults {
		if key == "none" {
			continue
		}
		if err := p.SetFault(key, text); err != nil {
			return err
		}
	}
	return nil
}

// faultsOf describes the present faults of a port and the counters of all; nil if there
// never were any.
func faultsOf(links []dataplane.PortStats, now, before *dataplane.PortCounters, set string) *api.Faults {
	active := false
	for i := range links {
		active = active || links[i].Faulty
	}
	f, was := &now.Faults, &before.Faults
	if !active && set == "" && *f == (dataplane.FaultCounters{}) {
		return nil
	}
	m := &api.Faults{Set: set, Lost: map[string]uint64{}, RxLost: since(f.RxLost, was.RxLost), Held: since(f.Held, was.Held), Duplicated: since(f.Duplicated, was.Duplicated),
		Uncopied: since(f.Uncopied, was.Uncopied), Flipped: since(f.Flipped, was.Flipped), Taken: since(now.TxTaken, before.TxTaken), Waiting: now.TxWaiting}
	for i := range f.Lost {
		if n := since(f.Lost[i], was.Lost[i]); n > 0 {
			m.Lost[faultReason(fault.Loss(i))] = n
		}
	}
	return m
}

// faultReason names a loss on a link in the style of drop reasons.
func faultReason(l fault.Loss) string {
	switch l {
	case fault.LossRandom:
		return "link-loss"
	case fault.LossLink:
		return l.String()
	}
	return "link-" + l.String()
}

// faultDrops reports the frames that were lost at a port because of configured faults.
func faultDrops(now, before *dataplane.PortCounters, drop func(reason string, n uint64)) {
	for i := range now.Faults.Lost {
		drop(faultReason(fault.Loss(i)), since(now.Faults.Lost[i], before.Faults.Lost[i]))
	}
	drop("link-rx-cut", since(now.Faults.RxLost, before.Faults.RxLost))
}
