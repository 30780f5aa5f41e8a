// Package ordinary gives hosts a synchronised clock (package clocksync): an
// ordinary clock in PTP's words, with one port. Importing it registers the feature.
package ordinary

import (
	"fmt"

	"gswitch/clocksync"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/scheduler"
	"gswitch/wire"
)

// Name is the key of clocksync.Options in hostnic.Config.Options.
const Name = "clock"

func init() {
	hostnic.Register(hostnic.Feature{Name: Name, Check: check, New: newClock, Takes: []hostnic.Protocol{{EtherType: wire.EtherTypePTP}}, Counters: clocksync.Counters("host_"), Decode: clocksync.DecodeCall,
		Section: func() hostnic.Section { return &Section{} }, Daemons: true, Stamps: true,
		Doc: "A synchronised clock with a bound on its error (Sundial), in PTP (IEEE 1588) with the neighbour."})
}

func check(cfg *hostnic.Config) error {
	o, ok := cfg.Options[Name].(clocksync.Options)
	if !ok {
		return fmt.Errorf("options of another kind")
	}
	return o.Validate()
}

// Clock is the clock of a host.
type Clock struct {
	*clocksync.Instance
	nic       *hostnic.NIC
	requested clocksync.Options // by the configuration
	rate      scheduler.RateClock
	under     int // messages that have not departed
	now       frame.Time
}

// Of returns the clock of a host, nil if it has none. Like every reader of a
// node's state it is called between two steps of it.
func Of(n *hostnic.NIC) *Clock {
	c, _ := n.Feature(Name).(*Clock)
	return c
}

func newClock(n *hostnic.NIC) hostnic.Instance {
	c := &Clock{nic: n}
	c.Instance = clocksync.NewInstance(n.Config().MAC, c.send)
	return hostnic.Instance{State: c, Adopt: c.adopt, Receive: c.receive, Departs: c.departs, Advance: c.advance, Link: c.link,
		Read: func(emit func(counter int, value float64, labels ...string)) { c.Instance.Read(c.now, emit) }}
}

func (c *Clock) adopt(options any) hostnic.Stages {
	cfg := c.nic.Config()
	c.rate = scheduler.RateClock{}
	c.rate.SetRate(cfg.Rate)
	c.rate.WholeNs(cfg.WholeNs)
	o, on := options.(clocksync.Options)
	c.Use(c.now, 0, on)
	if !on {
		c.nic.Lead(0, false)
		return 0
	}
	if o != c.requested {
		c.requested = o
		_ = c.Configure(c.now, o) // Check tried it
	}
	return hostnic.AtDeparts
}

func (c *Clock) link(now frame.Time, up bool) {
	c.now, c.under = now, 0
	c.Use(now, 0, up)
	c.set()
}

// receive takes messages. A frame is handed over when its last bit has come; its
// stamp is the first's.
func (c *Clock) receive(now frame.Time, v []frame.Ref) {
	c.now = now
	cfg := c.nic.Config()
	for _, r := range v {
		m := c.nic.Arena().Meta(r)
		came := now
		if m.Stamp != 0 {
			came = m.Stamp
		}
		c.Receive(now, came, c.rate.Span(m.Wire+cfg.Overhead), m.Stamp != 0, 0, c.nic.Arena().Bytes(r))
		c.nic.Pool().Free(r)
	}
	c.set()
}

// maxWaiting is how many messages wait for the link at most.
const maxWaiting = 8

// send makes a frame of a message.
func (c *Clock) send(_ int, f *clocksync.Packet) bool {
	r := c.nic.Alloc()
	if r == frame.Nil {
		return false
	}
	m := c.nic.Arena().Meta(r)
	m.Len = clocksync.MaxPacket
	k := f.Encode(c.nic.Arena().Bytes(r))
	m.Len, m.Wire, m.EtherType, m.Class = uint16(k), uint32(k), wire.EtherTypePTP, 7
	if !c.nic.QueueFrame(c.now, r, true, maxWaiting) {
		return false
	}
	c.under++
	return true
}

// departs stamps the messages of the clock among the frames that leave.
func (c *Clock) departs(_ frame.Time, v []frame.Ref) {
	for i := 0; c.under > 0 && i < len(v); i++ {
		if m := c.nic.Arena().Meta(v[i]); m.EtherType == wire.EtherTypePTP {
			c.under--
			c.Departs(m.Depart, 0, c.nic.Arena().Bytes(v[i]))
		}
	}
}

// set follows what a message or the configuration has changed.
func (c *Clock) set() {
	c.nic.Lead(c.Lead())
	c.nic.Arm(c.Due())
}

func (c *Clock) advance(now frame.Time) frame.Time {
	c.now = now
	c.Advance(now)
	c.nic.Lead(c.Lead())
	return c.Due()
}

// Set gives the clock other options than the configuration, as a controller does
// while it moves the network to another plan.
func (c *Clock) Set(now frame.Time, o clocksync.Options) error {
	c.now = now
	err := c.Configure(now, o)
	c.set()
	return err
}
