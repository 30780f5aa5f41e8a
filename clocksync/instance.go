package clocksync

import (
	"fmt"

	"gswitch/frame"
	"gswitch/wire"
)

// Options are what a node's clock is configured with.
type Options struct {
	Config
	Domain     uint8      // of PTP: messages of others are not looked at
	DelayEvery frame.Time // between measurements of the delays of the links; 0: 1 s
	// Plain are ports behind which are slaves that know PTP alone: their messages have
	// no fields of Sundial, which not every slave passes over, and each Announce there
	// is an Announce message; 0: 1 s.
	Plain    Ports
	Announce frame.Time
	// Unstamped is by how much a message may be late that came without a stamp of
	// the device or the link (frame.Meta.Stamp). 0: nodes get frames at the instant at
	// which they arrive, as in virtual time. Forever: such messages are not used.
	Unstamped frame.Time
	// Answers have the node's clock in answers to requests, by which neighbours measure what
	// a hop adds (Config.Measured).
	Answers bool
}

// Validate reports what is wrong with o.
func (o *Options) Validate() error {
	switch {
	case o.DelayEvery < 0 || o.Announce < 0 || o.Unstamped < 0:
		return fmt.Errorf("clock: a negative time between messages, or by which they are late")
	case max(o.DelayEvery, o.Announce) > longest:
		return fmt.Errorf("clock: %v and %v between messages: it is no more than %v", o.DelayEvery.Duration(), o.Announce.Duration(), longest.Duration())
	case o.Unstamped > longest && o.Unstamped != Forever:
		return fmt.Errorf("clock: messages that are late by %v: it is no more than %v", o.Unstamped.Duration(), longest.Duration())
	}
	return o.Config.Validate()
}

// DefaultDomain keeps Sundial's messages apart from those of the PTP domains that
// are in use: 0 to 127 are free to users (IEEE 1588-2019 table 2).
const DefaultDomain = 83

// quickRounds is how many measurements of the delays follow each other by the
// interval of messages, before they come each DelayEvery.
const quickRounds = 8

// MessageCounts are messages by what became of them, besides Counts.
type MessageCounts struct {
	Malformed  uint64 // that were no PTP messages, or damaged
	Foreign    uint64 // of other domains, or of types or kinds that are not used here
	Boundless  uint64 // from clocks without a bound of their own
	Requests   uint64 // for the delay of a link, that were answered
	Unanswered uint64 // and that were not: they come faster than a neighbour needs to send them
	Strays     uint64 // answers to no request, or invalid ones
	Unstamped  uint64 // that came without a stamp, where frames should have one
	Unsent     uint64 // for want of frames, or of a link
	Excess     uint64 // that came by a port beyond what a neighbour has reason to send: they were not read
}

// Instance is the clock of a node on its links: its Device, and the PTP messages
// that it exchanges with its neighbours (IEEE 1588-2019 annex E, one-step, peer
// delay). What is sent is stamped when it departs.
type Instance struct {
	Device
	Messages   MessageCounts
	opt        Options
	mac        wire.MAC
	send       func(port int, f *Packet) bool
	ports      Ports // in use
	answers    [MaxPorts]answer
	quotas     [MaxPorts]quota
	asked      asked
	rounds     int        // measurements of the delays so far
	delayAt    frame.Time // when the next is due
	announceAt frame.Time // when the next Announce is due
	in, out    Packet
}

// answer is that of a port to its neighbour's request.
type answer struct {
	waits bool       // it has not departed yet
	came  frame.Time // when the request began to arrive
	next  frame.Time // not before another is answered
	add   int64      // correction of the request
}

// NewInstance returns the clock of a node with a MAC address, which takes part in
// nothing before Configure. send puts a message out by a port, ahead of all data,
// and reports whether it could; Departs is called for it when it leaves.
func NewInstance(mac wire.MAC, send func(port int, f *Packet) bool) *Instance {
	return &Instance{Device: *NewDevice(Identity(mac)), mac: mac, send: send, announceAt: frame.Never}
}

// Identity is that of the clock, as others receive it.
func (n *Instance) Identity() uint64 { return n.id }

// Identity is the clock identity of a MAC address (IEEE 1588-2019 7.5.2.2.2).
func Identity(mac wire.MAC) uint64 {
	m := mac.Uint64()
	return m>>24<<40 | 0xfffe<<24 | m&0xffffff
}

// Configure takes new options.
func (n *Instance) Configure(now frame.Time, o Options) error {
	if o.DelayEvery == 0 {
		o.DelayEvery = frame.Second
	}
	if o.Announce == 0 {
		o.Announce = frame.Second
	}
	if err := o.Validate(); err != nil {
		return err
	}
	if err := n.Device.Configure(now, o.Config); err != nil {
		return err
	}
	n.opt = o
	if n.announceAt = frame.Never; o.Plain != (Ports{}) {
		n.announceAt = now
	}
	return nil
}

// Options returns those in force.
func (n *Instance) Options() Options { return n.opt }

// Use says that a port has a link, of which the delay is to be measured, or that
// it has none any more.
func (n *Instance) Use(now frame.Time, port int, use bool) {
	switch {
	case use && !n.ports.Has(port):
		n.ports.Add(port)
		n.answers[port], n.quotas[port] = answer{}, quota{}
		n.Delay(port).Renew()
		n.rounds, n.delayAt = 0, now
	case !use:
		n.ports.Remove(port)
	}
}

// Receive takes a frame of EtherType 0x88F7 that came by a port. Its last bit came at the
// node's time whole, or, where it has no stamp of a device, up to Options.Unstamped before
// that, and the first one span earlier, by the rate that the port's link is said to have.
func (n *Instance) Receive(now, whole, span frame.Time, stamped bool, port int, b []byte) {
	f, stamp := &n.in, whole-span
	if uint(port) < MaxPorts && !n.reads(stamp, port) {
		n.Messages.Excess++
		return
	}
	late := frame.Time(0)
	if !stamped && n.opt.Unstamped != 0 {
		n.Messages.Unstamped++
		if late = n.opt.Unstamped; late == Forever {
			return
		}
	}
	if _, ok := f.Decode(b); !ok || f.Time.Seconds > maxSeconds || uint(port) >= MaxPorts {
		n.Messages.Malformed++
		return
	}
	if f.Domain != n.opt.Domain {
		n.Messages.Foreign++
		return
	}
	switch f.Type {
	case wire.PTPSync:
		if n.opt.Measured {
			stamp = whole
		}
		n.sync(now, stamp, late, port, f)
	case wire.PTPPdelayReq:
		n.request(now, stamp, whole+late, port, f)
	case wire.PTPPdelayResp:
		n.response(now, stamp, whole, late, port, f)
	default:
		n.Messages.Foreign++
	}
}

// maxSeconds keeps times of the nodes, 64 bits of nanoseconds, from overflowing.
const maxSeconds = 1 << 32

const boundless = 1<<32 - 1

func (n *Instance) sync(now, stamp, late frame.Time, port int, f *Packet) {
	s := &f.Sundial
	switch {
	case !f.HasSundial || f.Flags&wire.PTPTwoStep != 0 || s.Depth == 255:
		n.Messages.Foreign++
		return
	case s.Late == boundless || s.Uncertainty == boundless:
		n.Messages.Boundless++
		return
	}
	m := Message{Time: timeOf(f) + frame.Time(f.Correction>>16),
		Epoch: s.Epoch, Root: s.Root, Sequence: f.Sequence, Depth: s.Depth, Late: frame.Time(s.Late) + late + n.Delay(port).Late() + n.Delay(port).Moved()}
	if n.opt.Measured {
		m.Eps = frame.Time(s.Uncertainty) + late + n.drifted(frame.Time(f.Correction>>16))
	}
	if n.Sync(now, stamp, port, m) {
		n.sendSync(now)
	}
	if n.opt.Measured && port == n.Parent() {
		n.ask(now, port)
	}
}

// mostMessages is how many messages of a port are read in an interval. Neighbours
// send three, and a few more while they measure the link.
const mostMessages = 32

// quota is what came by a port in an interval.
type quota struct {
	until frame.Time
	n     int
}

// reads reports whether another message of a port, which came at the node's time
// stamp, is read. When it is read does not matter: a node that was late reads all.
func (n *Instance) reads(stamp frame.Time, port int) bool {
	q := &n.quotas[port]
	if stamp >= q.until {
		*q = quota{until: stamp + n.opt.Interval}
	}
	q.n++
	return q.n <= mostMessages
}

// request answers a neighbour that measures the delay of the link: one at a
// time, and not more often than a neighbour needs. It came at the node's time
// stamp, and in whole not behind latest.
func (n *Instance) request(now, stamp, latest frame.Time, port int, f *Packet) {
	a := &n.answers[port]
	if now < a.next || a.waits && now < a.next+4*n.opt.Interval { // one that was dropped with its link waits no more
		n.Messages.Unanswered++
		return
	}
	n.head(wire.PTPPdelayResp, port, f.Sequence)
	n.out.RequestClock, n.out.RequestPort = f.Clock, f.Port
	if n.opt.Answers && !n.opt.Plain.Has(port) {
		n.answerTime(latest, frame.Time(f.Correction>>16))
	}
	*a = answer{waits: true, came: stamp, next: now + n.opt.Interval/2, add: f.Correction}
	if !n.send(port, &n.out) {
		a.waits = false
		n.Messages.Unsent++
		return
	}
	n.Messages.Requests++
}

// answerTime writes the clock at the node's time at into an answer, less what the request
// says that it waited since its stamp: what the clock had not passed when that was made.
func (n *Instance) answerTime(at, waited frame.Time) {
	at, waited = max(at, n.last), min(max(waited, 0), frame.Second) // it was not set since
	m := n.Device.Out(at)
	n.setTime(m.Time - waited)
	n.out.HasSundial = true
	n.setFields(m, n.Uncertainty(at))
	if s := &n.out.Sundial; s.Uncertainty != boundless {
		s.Uncertainty = saturate(frame.Time(s.Uncertainty) + n.drifted(waited))
	}
}

// setTime writes the time of a message. There is none before 1970.
func (n *Instance) setTime(t frame.Time) {
	t = max(t, 0)
	n.out.Time = wire.PTPTime{Seconds: uint64(t / frame.Second), Nanoseconds: uint32(t % frame.Second)}
}

// setFields writes the fields of Sundial.
func (n *Instance) setFields(m Message, eps frame.Time) {
	n.out.Sundial = Fields{Epoch: m.Epoch, Uncertainty: saturate(eps), Depth: m.Depth, Root: m.Root, Late: saturate(m.Late)}
}

// head begins a message.
func (n *Instance) head(t wire.PTPType, port int, sequence uint16) {
	n.out = Packet{PTPFields: wire.PTPFields{Src: n.mac, Type: t, Domain: n.opt.Domain, Clock: n.id, Port: uint16(port) + 1, Sequence: sequence, LogInterval: 0x7f}}
}

// sendSync sends to the ports of Transmit. What the messages say is written when
// they depart.
func (n *Instance) sendSync(now frame.Time) {
	n.Transmit().Each(func(p int) { n.sendEvent(now, p, wire.PTPSync) })
	n.opt.Plain.Each(func(p int) {
		if !n.Transmit().Has(p) {
			n.sendEvent(now, p, wire.PTPSync)
		}
	})
}

// sendEvent sends a Sync or Announce.
func (n *Instance) sendEvent(now frame.Time, port int, t wire.PTPType) {
	n.fill(now, port, t)
	n.out.Unsealed = t == wire.PTPSync // Departs writes it anew
	if !n.send(port, &n.out) {
		n.Messages.Unsent++
	}
}

// fill writes a Sync or Announce message that departs at the node's time depart.
func (n *Instance) fill(depart frame.Time, port int, t wire.PTPType) {
	m := n.Device.Out(depart)
	n.head(t, port, m.Sequence)
	n.setTime(m.Time)
	n.out.HasSundial = !n.opt.Plain.Has(port)
	n.setFields(m, n.Uncertainty(depart))
	if t == wire.PTPAnnounce {
		n.out.Grandmaster, n.out.Steps, n.out.Class, n.out.Accuracy = m.Root, uint16(m.Depth), 248, accuracy(n.Uncertainty(depart))
		n.out.Variance, n.out.Priority1, n.out.Priority2, n.out.Source = 0xffff, 128, 128, 0xa0
	}
}

func saturate(t frame.Time) uint32 { return uint32(min(max(t, 0), boundless)) }

// accuracy is how exact a clock is, by IEEE 1588-2019 table 5.
func accuracy(eps frame.Time) uint8 {
	for i, bound := range [...]frame.Time{25, 100, 250, 1000, 2500, 10_000, 25_000, 100_000, 250_000, 1_000_000, 2_500_000, 10_000_000, 25_000_000, 100_000_000, 250_000_000, 1_000_000_000} {
		if eps <= bound {
			return 0x20 + uint8(i)
		}
	}
	return 0xfe // unknown
}

// Departs is called for a message that leaves by a port, at the node's time
// depart: the start of the frame on the link. It stamps the frame in place.
func (n *Instance) Departs(depart frame.Time, port int, b []byte) {
	switch wire.PTPType(b[wire.EthernetLen] & 0xf) {
	case wire.PTPSync:
		n.fill(depart, port, wire.PTPSync)
		n.out.Encode(b)
	case wire.PTPPdelayReq:
		n.Delay(port).Left(depart)
		n.asked.left(port, wire.PTPSequence(b), depart)
	case wire.PTPPdelayResp:
		a := &n.answers[port]
		wire.SetPTPCorrection(b, int64(depart-a.came)<<16+a.add)
		a.waits = false
	}
}

// Due is when Advance is to be called next.
func (n *Instance) Due() frame.Time {
	due := min(n.Device.Due(), n.announceAt)
	if n.ports != (Ports{}) && n.opt.Interval > 0 {
		due = min(due, n.delayAt)
	}
	return due
}

// Advance runs what is due.
func (n *Instance) Advance(now frame.Time) {
	if n.opt.Interval == 0 {
		return // not configured
	}
	if now >= n.delayAt {
		n.measure(now)
	}
	if n.Device.Advance(now) {
		n.sendSync(now)
	}
	if now >= n.announceAt {
		n.announceAt = now + n.opt.Announce
		if n.Uncertainty(now) != Forever {
			n.opt.Plain.Each(func(p int) { n.sendEvent(now, p, wire.PTPAnnounce) })
		}
	}
}

// measure sends requests to all neighbours, to know the delay of each link before the device
// turns to it.
func (n *Instance) measure(now frame.Time) {
	n.delayAt = now + n.opt.DelayEvery
	if n.rounds++; n.rounds < quickRounds {
		n.delayAt = now + min(n.opt.Interval, n.opt.DelayEvery)
	}
	n.ports.Each(func(p int) { n.ask(now, p) })
}
