package hostnic

import (
	"fmt"

	"gswitch/frame"
	"gswitch/pfc"
)

// Reconfigure changes, at once, the settings that may change while queue pairs are open:
// the link's rate, overhead and burst, the jitter of paces, Turn and First, the delay of
// notices, the classes under flow control, QuenchAfter, MarkAbove, notification packets,
// options of features, and the gateway and class of the stack. It also changes T, which
// affects queue pairs opened afterwards. Other differences are rejected, except Name,
// Seed and settings without meaning on a real link. On error nothing changes.
func (n *NIC) Reconfigure(now frame.Time, cfg *Config) error {
	next := *cfg
	next.defaults()
	if err := next.Validate(); err != nil {
		return err
	}
	old := &n.cfg
	switch {
	case next.MAC != old.MAC || next.Addr != old.Addr || (next.Stack == nil) != (old.Stack == nil):
		return fmt.Errorf("nic %s: its addresses stand in the frames of open queue pairs: they cannot change", old.Name)
	case next.Stack != nil && (next.Stack.Bits != old.Stack.Bits || next.Stack.Port != old.Stack.Port):
		return fmt.Errorf("nic %s: the link's prefix and the port of datagrams cannot change", old.Name)
	case next.Payload != old.Payload || next.Virtual != old.Virtual || next.DSCP != old.DSCP || next.Weights != old.Weights:
		return fmt.Errorf("nic %s: payload, DSCP and weights cannot change while queue pairs may be open", old.Name)
	}
	if next.Rate != old.Rate {
		n.clock.SetRate(next.Rate)
	}
	old.Rate, old.Overhead, old.Burst, old.BaseRTT, old.CNP = next.Rate, next.Overhead, next.Burst, next.BaseRTT, next.CNP
	old.PaceJitter, old.Turn, old.First, old.NoticeDelay = next.PaceJitter, next.Turn, next.First, next.NoticeDelay
	old.PFC, old.PFCClasses, old.PFCStages, old.PFCResponse, old.Pause = next.PFC, next.PFCClasses, next.PFCStages, next.PFCResponse, next.Pause
	if next.MarkAbove != old.MarkAbove {
		old.MarkAbove = next.MarkAbove
		n.weighAll()
	}
	if next.QuenchAfter != old.QuenchAfter {
		old.QuenchAfter = next.QuenchAfter
		n.watchQuenches(now)
	}
	n.flow.Configure(now, old.flow())
	old.Options = next.Options
	n.adoptFeatures()
	n.updatePaused(now)
	n.queueFlowControl(now)
	if s := n.stack; s != nil {
		s.cfg.Gateway, s.cfg.Class = next.Stack.Gateway, next.Stack.Class
		stack := s.cfg
		old.Stack = &stack
	}
	n.Offer(now)
	n.touch(now)
	return nil
}

// flow returns the configuration of the port's flow control.
func (c *Config) flow() pfc.Config {
	flow := pfc.Config{Rate: c.Rate, Source: c.MAC, Response: c.PFCResponse}
	switch {
	case c.PFC:
		flow.Mode, flow.Enable, flow.Stages = pfc.PFC, c.PFCClasses, c.PFCStages
	case c.Pause:
		flow.Mode = pfc.Pause
	}
	return flow
}

// defaults fills in what was left out.
func (c *Config) defaults() {
	if c.Payload == 0 {
		c.Payload = defaultPayload
	}
	if c.CNP.Interval == 0 {
		c.CNP.Interval = defaultCNP
	}
}
