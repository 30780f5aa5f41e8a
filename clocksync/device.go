package clocksync

import (
	"fmt"
	"math/bits"

	"gswitch/feature"
	"gswitch/frame"
)

// MaxPorts is how many ports a device has at most.
const MaxPorts = feature.MaxPorts

// NoPort stands where no port is accepted: at the root.
const NoPort = -1

// Ports is a set of ports.
type Ports [MaxPorts / 64]uint64

// Add puts a port into the set.
func (s *Ports) Add(p int) { s[p/64] |= 1 << (p % 64) }

// Remove takes a port out of the set.
func (s *Ports) Remove(p int) { s[p/64] &^= 1 << (p % 64) }

// Has reports whether a port is in the set.
func (s *Ports) Has(p int) bool { return p >= 0 && s[p/64]&(1<<(p%64)) != 0 }

// Each calls f for every port of the set, in order.
func (s *Ports) Each(f func(p int)) {
	for w, b := range s {
		for ; b != 0; b &= b - 1 {
			f(w*64 + bits.TrailingZeros64(b))
		}
	}
}

// Config is what a controller gives a device (section 3.4).
type Config struct {
	Epoch    uint32 // of the plan, carried by the root's messages; a device that has received a later one takes no earlier one
	Root     bool
	Idle     bool  // it waits for a plan: it accepts no port, and sends by none
	Accept   int   // port towards the parent in the primary tree; NoPort at the root
	Backup   int   // port towards the second parent; NoPort if there is none, as at a host with one link
	Transmit Ports // towards children in the primary tree and in the backup graph

	EpsBase   frame.Time // uncertainty of a clock that was just synchronised by the primary tree: 5 ns for each hop
	EpsBackup frame.Time // the same by the backup graph, for the longest way that a failure may make
	// Hop is the uncertainty of one hop. A clock is never less uncertain than the hops
	// that its message made: while parents follow another plan, or several things
	// have failed, these are more than its own plan says. 0: the plan alone counts.
	Hop frame.Time
	// Measured says that what hops add is not known beforehand: it is found by what the
	// parent answers to requests (bounds), and Hop, EpsBase and EpsBackup are 0.
	Measured bool

	Interval frame.Time // between messages of the root
	Timeout1 frame.Time // without a message, after which a device turns to its second parent; 0: it never does
	Timeout2 frame.Time // behind that, after which the backup root becomes root; 0 at all others
	Drift    int64      // parts in 10^9; 0 = Drift

	// Origin is what a root's clock says at its own time 0, unless it was set by another root.
	Origin frame.Time

	// Of schemes that Sundial is compared with (section 3.6).
	Free     bool       // every device sends by a timer of its own, as PTP's boundary clocks do, and not only in reaction
	Recovery frame.Time // for so long a device may follow a parent that is cut off itself: it counts as cut off from the root since. Children of the root see a failure themselves
}

// Times of the paper's evaluation (section 3.6). One message in a row may be lost
// without effect; the backup root, which waits for both timeouts, has two
// chances to receive from a root that still works.
const (
	DefaultInterval = 90 * frame.Microsecond
	DefaultTimeout1 = 185 * frame.Microsecond
	DefaultTimeout2 = 180 * frame.Microsecond
)

// EpsHop is the uncertainty that each hop adds with stamps made in hardware.
const EpsHop = 5 * frame.Nanosecond

// Limits of what a clock is configured with: sums of its times do not overflow.
const (
	longest   = 3600 * frame.Second
	mostDrift = 1e9
)

// Validate reports what is wrong with c.
func (c *Config) Validate() error {
	switch {
	case c.Idle && (c.Root || c.Accept != NoPort || c.Transmit != Ports{}):
		return fmt.Errorf("clock: one that waits for a plan is no root, accepts no port and sends by none")
	case !c.Idle && c.Root != (c.Accept == NoPort):
		return fmt.Errorf("clock: the root accepts no port, and all others accept one (root %t, port %d)", c.Root, c.Accept)
	case c.Accept >= MaxPorts || c.Backup >= MaxPorts:
		return fmt.Errorf("clock: ports %d and %d: there are %d at most", c.Accept, c.Backup, MaxPorts)
	case c.Accept < NoPort || c.Backup < NoPort:
		return fmt.Errorf("clock: ports %d and %d: the lowest is 0, and %d stands for none", c.Accept, c.Backup, NoPort)
	case max(c.Interval, c.Timeout1, c.Timeout2, c.Recovery) > longest:
		return fmt.Errorf("clock: an interval of %v, and timeouts of %v, %v and %v: none is longer than %v", c.Interval.Duration(), c.Timeout1.Duration(), c.Timeout2.Duration(), c.Recovery.Duration(), longest.Duration())
	case max(c.Hop, c.EpsBase, c.EpsBackup) > longest:
		return fmt.Errorf("clock: uncertainties of %v, %v and %v: none is more than %v", c.Hop.Duration(), c.EpsBase.Duration(), c.EpsBackup.Duration(), longest.Duration())
	case c.Drift > mostDrift:
		return fmt.Errorf("clock: a drift of %d parts in 10^9: it is no more than %d", c.Drift, int64(mostDrift))
	case c.Origin < 0 || c.Origin > maxSeconds*frame.Second:
		return fmt.Errorf("clock: a root that begins at %v: it is from 0 to %d s", c.Origin.Duration(), int64(maxSeconds))
	case c.Interval <= 0:
		return fmt.Errorf("clock: an interval of %v: it must be positive", c.Interval.Duration())
	case c.Free && c.Timeout1 != 0:
		return fmt.Errorf("clock: where all send by a timer of their own a timeout finds no failure: there can be none")
	case c.Timeout1 < 0 || c.Timeout2 < 0 || c.Recovery < 0:
		return fmt.Errorf("clock: a negative time")
	case c.Timeout1 == 0 && c.Timeout2 != 0:
		return fmt.Errorf("clock: the backup root waits for %v behind a timeout that does not exist", c.Timeout2.Duration())
	case c.Timeout1 != 0 && c.Timeout1 <= 2*c.Interval:
		return fmt.Errorf("clock: a timeout of %v, with a message each %v: one lost message would be a failure; take more than two intervals", c.Timeout1.Duration(), c.Interval.Duration())
	case c.Timeout2 != 0 && c.Timeout1+c.Timeout2 <= 4*c.Interval:
		return fmt.Errorf("clock: the backup root waits %v and %v, with a message each %v: two roots could be at once; take more than four intervals for both", c.Timeout1.Duration(), c.Timeout2.Duration(), c.Interval.Duration())
	case c.Measured && (c.Hop != 0 || c.EpsBase != 0 || c.EpsBackup != 0 || c.Free):
		return fmt.Errorf("clock: what hops add is measured where messages are reactions, or is given: not both")
	case c.EpsBase < 0 || c.EpsBackup < 0 || c.Hop < 0 || c.Drift < 0:
		return fmt.Errorf("clock: a negative uncertainty or drift")
	}
	return nil
}

// Message is a synchronisation message as a device sees it.
type Message struct {
	Time     frame.Time // synchronised time of its sender when it was sent
	Epoch    uint32
	Root     uint64 // identity of the root that began it
	Sequence uint16 // the root's count, passed on: one interval can be followed down the tree
	Depth    uint8  // hops from the root
	// Late is by how much the message may be wrong beyond what its hops are allowed:
	// for stamps that are known to be inexact, and for what the oscillators on the
	// way may have drifted while it waited there.
	Late frame.Time
	Eps  frame.Time // uncertainty of its sender's clock when it was sent
}

// State is the state of a device.
type State uint8

const (
	Unsynced State = iota // no valid message since it was configured
	Primary               // synchronised by the primary tree
	Backup                // turned to its second parent
	Holdover              // received nothing since it turned
	Root                  // is the root, or became it
	Evicted               // its own clock is broken
)

var stateNames = [...]string{"unsynchronised", "primary", "backup", "holdover", "root", "evicted"}

// String returns the state in words.
func (s State) String() string { return stateNames[s] }

// Counts are those of a device.
type Counts struct {
	Valid       uint64     // messages that set the clock, or ended the timeout
	Ignored     uint64     // by ports that are not accepted, or by the root
	Early       uint64     // that came sooner behind another than any root sends
	OtherRoot   uint64     // of an earlier plan, or of another root than the one before
	Invalid     uint64     // that were further from the clock than its uncertainty
	SecondRoot  uint64     // by any port, that name another root than the one that is followed
	Sent        uint64     // times that messages were sent, to all ports of Transmit
	FlipTimeout uint64     // turned to the second parent at a timeout, or as the backup root to the other one
	FlipInvalid uint64     // for invalid messages
	Elected     uint64     // became root
	Evicted     uint64     // found its own clock broken
	Gaps        uint64     // times that nothing came from the root for longer than one lost message explains, or by timers (Config.Free) for as long, or until a controller acts
	Impacted    frame.Time // the length of these
}

// Device is one node's part of the protocol: the message engine, which the paper
// has in hardware, and the failure handler, which it has in firmware. One
// goroutine owns it. Timeouts run on the node's own time, as a counter of its
// oscillator's ticks would.
type Device struct {
	Clock
	Counts       Counts
	id           uint64
	cfg          Config
	accept       int
	flipped      bool
	doubted      bool // the first parent has sent invalid messages
	root         bool
	evicted      bool
	following    bool       // a valid message since the device was configured, has turned, or received nothing for a time
	epoch        uint32     // the highest received, or of the own plan at the root
	next         frame.Time // of the root
	timeoutAt    frame.Time // when Timeout1 ends
	electAt      frame.Time
	invalid      int // in a row
	sequence     uint16
	depth        uint8
	rootID       uint64
	late         frame.Time // of the message that set the clock
	came         frame.Time // when it did, by the node's time: residence counts from here
	syncedAt     frame.Time // the same, of any message since the device was made
	recent       recent
	bounds       bounds
	waits        bool // waiting waits for an answer of the parent
	waiting      Message
	wrongAnswers int // in a row
	rivals       rivals
	delays       [MaxPorts]Delay
}

// NewDevice returns a device that takes part in nothing before Configure. id is
// its identity, for example from its MAC address.
func NewDevice(id uint64) *Device {
	return &Device{id: id, accept: NoPort, timeoutAt: frame.Never, electAt: frame.Never, next: frame.Never}
}

// Configure takes a plan. The clock goes on as it is; only its uncertainty
// follows the new place in the tree. A device that was the root and is no
// longer is unsynchronised until it receives from the new one: it may have been cut off from
// all others while they had another.
func (d *Device) Configure(now frame.Time, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.Drift == 0 {
		c.Drift = Drift
	}
	if !c.Measured || d.evicted {
		d.bounds = bounds{}
	}
	wasRoot, next := d.root, d.next
	// Of the old and the new way the more uncertain one counts until a message has
	// come by the new one.
	if d.synced && !c.Root {
		d.base = max(d.base, c.EpsBase)
	}
	d.cfg, d.drift = c, c.Drift
	d.accept, d.root, d.exact = c.Accept, c.Root, c.Root
	d.flipped, d.doubted, d.evicted, d.following, d.waits, d.invalid, d.wrongAnswers = false, false, false, false, false, 0, 0
	d.electAt, d.next, d.timeoutAt = frame.Never, frame.Never, frame.Never
	if c.Free && d.synced { // a plan does not put the timer back
		d.next = min(next, now+c.Interval)
	}
	if d.synced && !wasRoot && !c.Idle {
		d.listen(now) // else there is nothing to lose yet
	}
	if c.Root {
		d.reign(now)
		if wasRoot {
			d.next = now + c.Interval
		}
	} else if wasRoot {
		d.synced = false // and it has no bounds: reign cleared them
	}
	return nil
}

// listen begins to wait for the next message.
func (d *Device) listen(now frame.Time) {
	d.timeoutAt = frame.Never
	if d.cfg.Timeout1 != 0 {
		d.timeoutAt = now + d.cfg.Timeout1
	}
}

// reign makes the device the root from now on.
func (d *Device) reign(now frame.Time) {
	if !d.synced {
		d.offset = d.cfg.Origin
	}
	d.root, d.exact, d.synced = true, true, true
	d.last, d.base, d.depth, d.rootID, d.late, d.came = now, 0, 0, d.id, 0, now
	d.epoch, d.bounds = max(d.epoch, d.cfg.Epoch), bounds{}
	d.next, d.timeoutAt, d.electAt = now, frame.Never, frame.Never
}

// invalidInARow is how many invalid messages make a device turn: one may
// be a single damaged frame.
const invalidInARow = 2

// Sync takes a message that came by a port, which began to arrive at the node's
// time stamp. It reports whether the device is to send Out on the ports of
// Transmit now: that, and the root's timer, is the only reason to send. Delay of the
// port must be known.
func (d *Device) Sync(now, stamp frame.Time, port int, m Message) (forward bool) {
	if m.Root != d.rootID && (d.root || d.following) {
		d.rival(stamp, &m)
	}
	delay, known := d.delays[port&(MaxPorts-1)].Value()
	switch {
	case d.root || d.evicted || port != d.accept || !known && !d.cfg.Measured:
		d.Counts.Ignored++
		return false
	case m.Epoch < d.epoch || d.following && m.Epoch == d.epoch && m.Root != d.rootID:
		d.Counts.OtherRoot++
		return false
	case d.following && stamp < d.syncedAt+d.cfg.Interval/2:
		// Each message may move the clock by its uncertainty: a parent that sends many
		// would move it without limit, and those below with it.
		d.Counts.Early++
		return false
	}
	if d.cfg.Measured {
		return d.measured(now, stamp, m)
	}
	to := m.Time + delay
	if m.Epoch > d.epoch && m.Root != d.rootID {
		d.synced = false // another root by a new plan, to which this clock never was synchronised
	}
	if off := to - d.At(stamp); d.synced && (off > d.Uncertainty(now)+m.Late || -off > d.Uncertainty(now)+m.Late) {
		d.wrong(now, &d.invalid)
		return false // the timeout goes on
	}
	d.invalid = 0
	base := d.cfg.EpsBase
	if d.flipped {
		base = d.cfg.EpsBackup
	}
	base = max(base, (frame.Time(m.Depth)+1)*d.cfg.Hop)
	m.Late += d.recent.behind(stamp, to, port, &m, base+m.Late, &d.Clock)
	// A message that is less certain than the clock shows that its root is there, and
	// no more. Else a parent that claims that it is late by a second, and then that it
	// is not, could set the clock by a second.
	if base += m.Late; !d.synced || m.Root != d.rootID || base <= d.Uncertainty(stamp) {
		d.correct(stamp, to)
		d.base, d.late, d.came = base, m.Late, stamp
		if d.cfg.Recovery != 0 && m.Depth > 0 {
			d.last -= d.cfg.Recovery
		}
	}
	return d.accepted(now, stamp, m)
}

// accepted follows a message that set the clock, or that is too uncertain for that.
func (d *Device) accepted(now, stamp frame.Time, m Message) (forward bool) {
	d.noteGap(stamp)
	d.following, d.epoch, d.rootID, d.sequence, d.depth = true, m.Epoch, m.Root, m.Sequence, m.Depth+1
	d.electAt = frame.Never
	d.listen(now)
	d.Counts.Valid++
	if d.cfg.Free {
		if d.next == frame.Never {
			d.next = now
		}
		return false
	}
	d.Counts.Sent++
	return true
}

// Adjust sets the clock to what another scheme found, of a bound and a root that is so many
// hops away: those that Sundial is compared with which do without its messages.
func (d *Device) Adjust(now, to, base frame.Time, root uint64, hops uint8) {
	d.correct(now, to)
	d.base, d.late, d.came = base, 0, now
	d.following, d.rootID, d.depth = true, root, hops
}

// noteGap counts the time for which no sync message was received, where it was more than
// one lost message explains. Where all send by timers a lost message is not made up for:
// each counts (figure 3.20), but not what it takes until a new plan's parents agree on it.
func (d *Device) noteGap(stamp frame.Time) {
	most := 2*d.cfg.Interval + d.cfg.Interval/20
	if d.cfg.Free {
		most = max(2*d.cfg.Interval, d.cfg.Recovery)
		most -= most / 20
	}
	if gap := stamp - d.syncedAt; d.Counts.Valid > 0 && gap > most {
		d.Counts.Gaps++
		d.Counts.Impacted += gap
	}
	d.syncedAt = stamp
}

// SinceMessage is for how long the device has received no valid message, 0 at the root
// and before the first.
func (d *Device) SinceMessage(now frame.Time) frame.Time {
	if d.root || d.Counts.Valid == 0 {
		return 0
	}
	return max(now-d.syncedAt, 0)
}

// Due is when Advance is to be called next.
func (d *Device) Due() frame.Time { return min(d.next, d.timeoutAt, d.electAt) }

// Advance runs the timers. It reports whether the device is to send Out on the
// ports of Transmit: only the root ever does so without having been sent
// something. An instant that was missed is not made up for.
func (d *Device) Advance(now frame.Time) (send bool) {
	if now >= d.timeoutAt {
		d.timeoutAt, d.following = frame.Never, false
		d.turn(now, &d.Counts.FlipTimeout)
	}
	if now >= d.electAt {
		d.Counts.Elected++
		d.reign(now)
	}
	if now >= d.next {
		d.next += d.cfg.Interval
		if d.next <= now {
			d.next = now + d.cfg.Interval
		}
		if d.root {
			d.sequence++
		}
		d.came = now
		d.Counts.Sent++
		return true
	}
	return false
}

// Out is the message that the device sends; it leaves at the node's time depart.
// What the oscillator may have drifted since the device had reason to send
// counts, in whole nanoseconds: what is left of one is part of EpsHop.
func (d *Device) Out(depart frame.Time) Message {
	m := Message{Time: d.At(depart), Epoch: d.epoch, Root: d.rootID, Sequence: d.sequence, Depth: d.depth, Late: d.late}
	if d.root {
		m.Late = 0
	} else if d.cfg.Measured {
		m.Late = d.Uncertainty(depart)
	} else if wait := depart - d.came; wait > 0 {
		m.Late += wait / frame.Second * frame.Time(d.drift)
		m.Late += wait % frame.Second * frame.Time(d.drift) / 1e9
	}
	return m
}

// Widen has messages go to more ports, before neighbours accept those.
func (d *Device) Widen(more *Ports) {
	for i := range d.cfg.Transmit {
		d.cfg.Transmit[i] |= more[i]
	}
}

// Narrow has them go to no others.
func (d *Device) Narrow(to Ports) { d.cfg.Transmit = to }

// Turned reports whether the device has left its first parent since it was
// configured.
func (d *Device) Turned() bool { return d.flipped }

// Transmit are the ports that messages go to.
func (d *Device) Transmit() *Ports { return &d.cfg.Transmit }

// State returns the state of the device.
func (d *Device) State() State {
	switch {
	case d.evicted:
		return Evicted
	case d.root:
		return Root
	case d.flipped && d.following:
		return Backup
	case d.flipped:
		return Holdover
	case d.following:
		return Primary
	}
	return Unsynced
}

// Place returns the epoch of the plan that the device belongs to, the identity of
// its root, and the hops from there.
func (d *Device) Place() (epoch uint32, root uint64, depth uint8) {
	return d.epoch, d.rootID, d.depth
}

// Parent returns the port that the device accepts messages from, NoPort at the
// root.
func (d *Device) Parent() int {
	if d.root {
		return NoPort
	}
	return d.accept
}

// Delay returns the delay of a port's link.
func (d *Device) Delay(port int) *Delay { return &d.delays[port&(MaxPorts-1)] }
