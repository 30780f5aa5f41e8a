package control

import "gswitch/config"

// carriers gives every port the carrier of the other end of its link: a disabled port
// takes the carrier of its neighbour down, as pulling a cable does, so that routes leave
// through other ports and no frame is sent in vain. An interface that is shared with the
// kernel (filter) stays up.
func (d *Daemon) carriers(c *config.Config) error {
	type end struct {
		u *unit
		p *config.Port
	}
	other := map[string]end{} // of each wire, the first end found
	for i := range c.Switches {
		u, err := d.unit(c.Switches[i].Name)
		if err != nil {
			return err
		}
		for k := range c.Switches[i].Ports {
			here := end{u, &c.Switches[i].Ports[k]}
			if o := u.ports[here.p.Name]; o != nil && here.p.Interface != "" && here.p.Filter == nil {
				for _, port := range o.open {
					if err := d.engine.SetEnabled(port, *here.p.Enabled); err != nil {
						return err
					}
				}
			}
			if here.p.Wire == "" {
				continue
			}
			far, both := other[here.p.Wire]
			if !both {
				other[here.p.Wire] = here
				continue
			}
			for _, pair := range [][2]end{{here, far}, {far, here}} {
				o := pair[0].u.ports[pair[0].p.Name]
				if o == nil {
					continue // not open
				}
				for _, port := range o.open {
					if err := d.engine.SetLink(port, *pair[1].p.Enabled); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}
