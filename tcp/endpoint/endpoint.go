// Package endpoint gives hosts connections of TCP beside their queue pairs: it steps
// a tcp/stack with the NIC. Importing it registers the feature.
package endpoint

import (
	"encoding/binary"
	"fmt"

	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/tcp"
	"gswitch/tcp/stack"
	"gswitch/wire"
)

// Name is the key of a stack.Config in hostnic.Config.Options: its delays and its
// seed. The rest of it is the NIC's.
const Name = "tcp"

func init() {
	hostnic.Register(hostnic.Feature{Name: Name, Check: check, New: newEndpoint, Takes: []hostnic.Protocol{{IP: wire.ProtoTCP}},
		Section: func() hostnic.Section { return new(Section) }, Daemons: true, Decode: decode,
		Unimaged: "connections of TCP are recorded from their beginning only",
		Doc:      "Connections of TCP beside the queue pairs: services, and what ghost tcp opens."})
}

func check(cfg *hostnic.Config) error {
	o, ok := cfg.Options[Name].(stack.Config)
	if !ok {
		return fmt.Errorf("options of another kind")
	}
	o = complete(o, cfg)
	return o.Validate()
}

// Endpoint is the stack of a host. After each call of the Stack that may have
// something sent, or change when something is due, Kick notifies the NIC.
type Endpoint struct {
	*stack.Stack
	nic    *hostnic.NIC
	secret hostnic.Secret
	unmade uint64 // segments that the NIC has counted as not made
}

// Of returns the endpoint of a host, nil if it has none.
func Of(n *hostnic.NIC) *Endpoint {
	e, _ := n.Feature(Name).(*Endpoint)
	return e
}

func newEndpoint(n *hostnic.NIC) hostnic.Instance {
	e := &Endpoint{nic: n, secret: hostnic.NewSecret("initial sequence numbers of TCP", n.Config().Seed)}
	return hostnic.Instance{State: e, Adopt: e.adopt, Receive: e.receive, Ready: e.ready, Next: e.next, Advance: e.advance}
}

// adopt makes the stack when the options come for the first time. What holds for streams
// may change later.
func (e *Endpoint) adopt(options any) hostnic.Stages {
	o, on := options.(stack.Config)
	if o.Streams != nil {
		streams := *o.Streams
		streams.ISS = e.iss
		o.Streams = &streams
	}
	if e.Stack != nil {
		e.SetStreams(o.Streams)
	}
	if !on || e.Stack != nil {
		return 0
	}
	cfg := e.nic.Config()
	o.Verdicts = e.nic.Verdicts()
	var err error
	if e.Stack, err = stack.New(complete(o, &cfg), e.nic.Pool()); err != nil {
		panic(err) // check has seen it
	}
	return 0
}

// complete fills in what the NIC has.
func complete(o stack.Config, cfg *hostnic.Config) stack.Config {
	o.Name, o.Addr, o.MAC, o.Virtual = cfg.Name, cfg.Addr, cfg.MAC, cfg.Virtual
	return o
}

// Kick notifies the NIC that the stack was given something.
func (e *Endpoint) Kick(now frame.Time) {
	e.nic.Arm(e.Due())
	e.nic.Offer(now)
}

func (e *Endpoint) receive(now frame.Time, v []frame.Ref) {
	for _, r := range v {
		e.Receive(now, r)
	}
	e.countUnmade()
	e.nic.Arm(e.Due())
}

func (e *Endpoint) ready() uint8 { return e.Stack.Ready() }

func (e *Endpoint) next(now frame.Time, classes uint8) frame.Ref {
	r := e.Next(now, classes)
	e.countUnmade()
	e.nic.Arm(e.Due())
	return r
}

// countUnmade has the NIC count the segments that found no memory.
func (e *Endpoint) countUnmade() {
	if k := e.Unmade(); k != e.unmade {
		e.nic.Unmade(k - e.unmade)
		e.unmade = k
	}
}

func (e *Endpoint) advance(now frame.Time) frame.Time {
	if e.Due() <= now {
		e.Advance(now)
	}
	return e.Due()
}

// iss returns an initial sequence number that others cannot predict (RFC 6528), from the
// flow and a clock with a period of 4 us.
func (e *Endpoint) iss(now frame.Time, f tcp.Flow) uint32 {
	be := binary.BigEndian
	return uint32(now/(4*frame.Microsecond)) + uint32(e.secret.Of(uint64(be.Uint32(f.Src[:]))<<32|uint64(be.Uint32(f.Dst[:])), uint64(f.SrcPort)<<16|uint64(f.DstPort)))
}
