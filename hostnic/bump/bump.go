package bump

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/hostnic"
	"gswitch/wire"
)

// vector is how many frames are parsed together.
const vector = 64

// Bump is the node. Like every node it is stepped by one goroutine, which also
// calls its other methods.
type Bump struct {
	cfg    Config
	nic    *hostnic.NIC
	arena  *frame.Arena
	pool   *frame.Pool
	parser *wire.Parser
	draws  hostnic.Draws // of numbers that others see

	starts  hostnic.Secret // of this start, as each peer gets it
	mac     uint64         // of the host, 0 while it has sent nothing
	macSeen frame.Time
	segment [2]uint16 // largest TCP segments: IPv4, IPv6

	up      frame.FIFO // towards the kernel
	upMost  int
	innerUp bool

	channels []channel
	free     []int32
	byKey    table
	byQP     []int32 // channel + 1 by the low bits of a queue pair's number
	tuples   int     // channels for tuples; the others are for hosts
	peers    []peer
	byAddr   table

	due     frame.Time
	scanAt  frame.Time
	tooBigs allowance
	resets  allowance
	ipID    uint16 // of the last IPv4 header beside the channels' own

	arrived [vector]hostnic.Arrived
	out     [messageLen]byte

	// Late is how long after its instant on the emulated link each frame left.
	Late  histogram.Buckets
	count Counts
}

// New returns a bump without peers.
func New(cfg *Config, pool *frame.Pool) (*Bump, error) {
	c, err := cfg.prepared()
	if err != nil {
		return nil, err
	}
	nic, err := hostnic.New(&c.NIC, pool)
	if err != nil {
		return nil, err
	}
	if err := c.Transport.Validate(); err != nil {
		return nil, err
	}
	b := &Bump{cfg: c, nic: nic, arena: pool.Arena, pool: pool, parser: wire.NewParser(wire.NewHasher(c.NIC.Seed, false)),
		draws: hostnic.NewDraws("numbers of channels", c.NIC.Seed), starts: hostnic.NewSecret("incarnations of a bump", c.NIC.Seed), innerUp: true, upMost: max(64, pool.Chunks()/4), due: frame.Never, scanAt: frame.Never,
		byQP: make([]int32, 1<<max(8, bits.Len(uint(c.NIC.MaxQPs-1)))), channels: make([]channel, 0, c.NIC.MaxQPs), peers: make([]peer, 0, MaxPeers),
		tooBigs: allowance{every: 10 * frame.Millisecond, most: 10}, resets: allowance{every: frame.Millisecond, most: 32}}
	b.byKey, b.byAddr = newTable(c.NIC.MaxQPs, b.draws.Next()), newTable(MaxPeers, b.draws.Next())
	b.mac = c.MAC.Uint64()
	b.up.Init()
	b.setSegments()
	return b, nil
}

// setSegments finds the largest TCP segments that fit into channels of every
// rule, with headers that have no options (RFC 9293 section 3.7.1).
func (b *Bump) setSegments() {
	for i, v4 := range []bool{true, false} {
		least := b.cfg.packet(v4, b.cfg.Default.Telemetry)
		for _, r := range b.cfg.Rules {
			if r.Flows != Pass {
				least = min(least, b.cfg.packet(v4, r.Telemetry))
			}
		}
		b.segment[i] = uint16(least - wire.IPv4Len - wire.TCPLen)
		if !v4 {
			b.segment[i] = uint16(least - wire.IPv6Len - wire.TCPLen)
		}
	}
}

// NIC returns the NIC of the outer side, to be read.
func (b *Bump) NIC() *hostnic.NIC { return b.nic }

// Config returns the configuration, with defaults filled in.
func (b *Bump) Config() Config { return b.cfg }

// Receive implements frame.Node.
func (b *Bump) Receive(now frame.Time, port uint16, v []frame.Ref) {
	for len(v) > 0 {
		k := min(len(v), vector)
		b.parser.Parse(b.arena, v[:k])
		if port == Inner {
			for _, r := range v[:k] {
				b.fromKernel(now, r)
			}
		} else {
			for _, r := range v[:k] {
				b.fromFabric(now, r)
			}
			b.deliver(now)
		}
		v = v[k:]
	}
}

// Transmit implements frame.Node.
func (b *Bump) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	if port == Outer {
		n := b.nic.Transmit(now, port, out)
		for _, r := range out[:n] {
			b.Late.Observe(now - b.arena.Meta(r).Depart)
		}
		return n
	}
	n := 0
	for n < len(out) && b.up.Len() > 0 {
		r := b.up.Pop(b.arena)
		b.count.ToKernel.add(b.arena.Meta(r))
		out[n] = r
		n++
	}
	return n
}

// Advance implements frame.Node.
func (b *Bump) Advance(now frame.Time) {
	b.nic.Advance(now)
	if now < b.due {
		return
	}
	b.due = frame.Never
	b.advancePeers(now)
	b.advanceChannels(now)
}

// Wake implements frame.Node.
func (b *Bump) Wake(now frame.Time) frame.Time {
	if b.up.Len() > 0 {
		return now
	}
	return min(b.nic.Wake(now), max(now, b.due))
}

// wakeBy makes Advance look again at the given instant.
func (b *Bump) wakeBy(t frame.Time) { b.due = min(b.due, t) }

// SetLink implements frame.Node.
func (b *Bump) SetLink(now frame.Time, port uint16, up bool) {
	if port == Outer {
		b.nic.SetLink(now, port, up)
		return
	}
	if b.innerUp = up; !up {
		b.flushInner()
	}
}

func (b *Bump) flushInner() {
	for r := b.up.Pop(b.arena); r != frame.Nil; r = b.up.Pop(b.arena) {
		b.drop(r, frame.QueueFlush)
	}
}

// Flush frees all frames: the node ends.
func (b *Bump) Flush(now frame.Time) {
	b.nic.SetLink(now, Outer, false)
	b.flushInner()
	for i := range b.channels {
		if b.channels[i].state != unused {
			b.dropChannel(now, i)
		}
	}
}

func (b *Bump) drop(r frame.Ref, why frame.Reason) {
	b.count.Drops[why]++
	b.pool.Free(r)
}

// toKernel queues a frame for the inner port.
func (b *Bump) toKernel(r frame.Ref) {
	switch {
	case !b.innerUp:
		b.drop(r, frame.EgressPortDown)
	case b.up.Len() >= b.upMost:
		b.drop(r, frame.QueueTail)
	default:
		b.up.Push(b.arena, r)
	}
}

// allowance is a token bucket of answers.
type allowance struct {
	every frame.Time
	most  int64
	at    frame.Time // when the bucket is full again
}

func (a *allowance) take(now frame.Time) bool {
	full := max(a.at, now)
	if full-now > frame.Time(a.most-1)*a.every {
		return false
	}
	a.at = full + a.every
	return true
}
