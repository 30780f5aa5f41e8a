package bump

import (
	"fmt"

	"gswitch/frame"
)

// Reconfigure changes what may change while channels are open: what
// hostnic.NIC.Reconfigure takes, queue, mark and idle time at once; rules,
// congestion control, telemetry and recovery for channels that are opened from
// now on. The seed stays. On an error nothing has changed.
func (b *Bump) Reconfigure(now frame.Time, cfg *Config) error {
	c, err := cfg.prepared()
	if err != nil {
		return err
	}
	if err := c.Transport.Validate(); err != nil {
		return err
	}
	old := &b.cfg
	switch {
	case c.Channels != old.Channels:
		return fmt.Errorf("bump %s: the number of channels cannot change: their memory is taken at the start", old.NIC.Name)
	case c.MTU != old.MTU || c.MAC != old.MAC:
		return fmt.Errorf("bump %s: MTU and MAC address stand in open channels: they cannot change", old.NIC.Name)
	}
	c.NIC.Seed = old.NIC.Seed
	if err := b.nic.Reconfigure(now, &c.NIC); err != nil {
		return err
	}
	b.cfg = c
	b.setSegments()
	b.wakeBy(now) // idle channels may be due
	return nil
}
