package scheduler

import "sync/atomic"

// MaxPorts is how many ports Loads can hold.
const MaxPorts = 256

// MaxTiers is how many thresholds a load can be judged by.
const MaxTiers = 4

// Loads are the drain bytes of a switch's ports as far as one worker knows
// them, in the form in which a path is chosen by them: for each queue and
// threshold the ports that are below. They are up to date after every frame
// that comes or goes; a bit changes when its threshold is crossed, so that
// ports and counters need no scan (DeTail: Zats et al., UCB/EECS-2012-33, section 4.3).
type Loads struct {
	Below [NumQueues][MaxTiers][MaxPorts / 64]uint64
	Bytes [NumQueues][MaxPorts]uint64 // of accounts that are exact
	shown *ShownLoads                 // nil: there is no other worker
}

// ShownLoads is what a worker shows the others of its own ports' loads. It has
// one writer. Ports of others are below every threshold in it.
type ShownLoads struct {
	below [NumQueues][MaxTiers][MaxPorts / 64]atomic.Uint64
	bytes [NumQueues][MaxPorts]atomic.Uint64
}

// NewLoads returns Loads of idle ports. What this worker showed before is
// cleared; shown is nil where no other worker looks.
func NewLoads(shown *ShownLoads) *Loads {
	if shown != nil {
		shown.clear()
	}
	l := &Loads{shown: shown}
	for q := range l.Below {
		for t := range l.Below[q] {
			for w := range l.Below[q][t] {
				l.Below[q][t][w] = ^uint64(0)
			}
		}
	}
	return l
}

// NewShownLoads returns ShownLoads of idle ports.
func NewShownLoads() *ShownLoads {
	s := &ShownLoads{}
	s.clear()
	return s
}

func (s *ShownLoads) clear() {
	for q := range s.below {
		for t := range s.below[q] {
			for w := range s.below[q][t] {
				s.below[q][t][w].Store(^uint64(0))
			}
		}
		for p := range s.bytes[q] {
			s.bytes[q][p].Store(0)
		}
	}
}

// Cut takes the ports that are not below each of the thresholds for the worker
// that shows s out of sets[t].
func (s *ShownLoads) Cut(queue uint8, sets [][MaxPorts / 64]uint64, words int) {
	below := &s.below[queue&7]
	for t := range sets {
		for w := range words {
			sets[t][w] &= below[t&(MaxTiers-1)][w].Load()
		}
	}
}

// Bytes returns what the worker that shows s has queued for a port, if its
// accounts are exact.
func (s *ShownLoads) Bytes(queue uint8, port uint16) uint64 {
	return s.bytes[queue&7][port%MaxPorts].Load()
}

// Drain counts the drain bytes of one port: for each queue the bytes in it and
// in all above it, which is what a frame that comes for it now must wait for
// under strict priority.
type Drain struct {
	bytes [NumQueues]uint64
	rise  [NumQueues]uint64 // the level is right below so many bytes
	fall  [NumQueues]uint64 // and from so many on
	level [NumQueues]uint8  // thresholds that are reached
	port  uint16
	exact bool // Loads.Bytes are kept
	early bool // what is expected counts, too
	owner bool // other workers go by it
	tiers int
	loads *Loads
	// In bytes, ascending.
	thresholds [MaxTiers]uint64
}

// NewDrain returns the empty account of a port by thresholds in bytes, of which
// the first MaxTiers count. owner says whether other workers are shown it;
// exact keeps Loads.Bytes, too, which choosing by thresholds does not need.
func NewDrain(l *Loads, port uint16, thresholds []uint64, owner, exact bool) *Drain {
	d := &Drain{loads: l, port: port % MaxPorts, tiers: min(len(thresholds), MaxTiers), owner: owner && l.shown != nil, exact: exact}
	copy(d.thresholds[:], thresholds)
	d.Reset()
	return d
}

// CountExpected makes d count what Port.Expect announces from then on. It is
// for accounts that no port has yet.
func (d *Drain) CountExpected() { d.early = true }

// Reset empties the account.
func (d *Drain) Reset() {
	for q := range d.level {
		d.bytes[q] = 0
		d.judge(q, 0)
		d.show(q)
		for t := range MaxTiers {
			d.mark(q, t, true)
		}
	}
}

// Bytes returns the drain bytes of a queue.
func (d *Drain) Bytes(queue int) uint64 { return d.bytes[queue&7] }

// Add counts a frame of n bytes that waits in a queue.
func (d *Drain) Add(queue int, n uint32) {
	for q := queue & 7; q >= 0; q-- {
		b := d.bytes[q] + uint64(n)
		d.bytes[q] = b
		if b >= d.rise[q] {
			d.cross(q, b)
		}
	}
	if d.exact {
		d.showAll(queue & 7)
	}
}

// Remove counts a frame that waits there no longer.
func (d *Drain) Remove(queue int, n uint32) {
	for q := queue & 7; q >= 0; q-- {
		b := d.bytes[q] - uint64(n)
		d.bytes[q] = b
		if b < d.fall[q] {
			d.cross(q, b)
		}
	}
	if d.exact {
		d.showAll(queue & 7)
	}
}

// cross brings the bits of a queue in line with its level.
func (d *Drain) cross(q int, b uint64) {
	was := int(d.level[q])
	d.judge(q, b)
	for t := min(was, int(d.level[q])); t < max(was, int(d.level[q])); t++ {
		d.mark(q, t, was > int(d.level[q]))
	}
}

// judge finds the level of b bytes: a threshold is reached by as many bytes as
// it says.
func (d *Drain) judge(q int, b uint64) {
	k := 0
	for k < d.tiers && b >= d.thresholds[k] {
		k++
	}
	d.level[q], d.fall[q], d.rise[q] = uint8(k), 0, ^uint64(0)
	if k > 0 {
		d.fall[q] = d.thresholds[k-1]
	}
	if k < d.tiers {
		d.rise[q] = d.thresholds[k]
	}
}

// mark notes whether the port is below a threshold.
func (d *Drain) mark(q, t int, below bool) {
	w, bit := d.port/64, uint64(1)<<(d.port%64)
	mine := &d.loads.Below[q][t][w]
	if below {
		*mine |= bit
	} else {
		*mine &^= bit
	}
	if d.owner {
		// One writer: a load and a store do.
		all := &d.loads.shown.below[q][t][w]
		if below {
			all.Store(all.Load() | bit)
		} else {
			all.Store(all.Load() &^ bit)
		}
	}
}

func (d *Drain) showAll(queue int) {
	for q := 0; q <= queue; q++ {
		d.show(q)
	}
}

// show writes the bytes of a queue where others read them.
func (d *Drain) show(q int) {
	d.loads.Bytes[q][d.port] = d.bytes[q]
	if d.owner {
		d.loads.shown.bytes[q][d.port].Store(d.bytes[q])
	}
}

// Watch lets d count what waits in the queues of the port, from now on and
// with what waits already; nil ends it.
func (p *Port) Watch(d *Drain) {
	p.drain = d
	if d == nil {
		return
	}
	d.Reset()
	for i := range p.q {
		b := p.q[i].bytes
		if d.early {
			b += p.expected[i]
		}
		for b > 0 {
			n := uint32(min(b, 1<<31))
			d.Add(i, n)
			b -= uint64(n)
		}
	}
}

// Expect announces a frame of n bytes that the port will get for a queue, and
// waits elsewhere until then.
func (p *Port) Expect(queue int, n uint32) {
	p.expected[queue&7] += uint64(n)
	if p.drain != nil && p.drain.early {
		p.drain.Add(queue, n)
	}
}

// Expected says that a frame which was announced is here, or will not come. It
// may have been announced to a port that was in this one's place before, which
// this one has no count of.
func (p *Port) Expected(queue int, n uint32) {
	n = uint32(min(uint64(n), p.expected[queue&7]))
	p.expected[queue&7] -= uint64(n)
	if p.drain != nil && p.drain.early {
		p.drain.Remove(queue, n)
	}
}
