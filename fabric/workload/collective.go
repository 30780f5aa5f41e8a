package workload

import (
	"fmt"

	"gswitch/frame"
)

// Operation is what a collective does with the data of its ranks.
type Operation uint8

// Operations, with the bytes of nccl-tests: a vector of Bytes that is cut into
// a part for each rank.
const (
	AllReduce     Operation = iota // every rank has a vector, and gets the sum of all
	ReduceScatter                  // every rank has a vector, and gets its part of the sum
	AllGather                      // every rank has its part, and gets the whole vector
	AllToAll                       // every rank has a part for every other
)

// CollectiveConfig describes operations in which a group of hosts takes part,
// as jobs of machine learning do: what a rank sends waits for what it receives.
type CollectiveConfig struct {
	Ranks  []int32 // in the order of the ring
	Op     Operation
	Trees  bool       // all-reduce by two trees in place of a ring
	Bytes  uint64     // of the vector
	Pieces int        // messages that a rank's part (with trees: half of the vector) is sent as, each forwarded when it is there; at least 1
	Count  int        // operations; 0: until Stop
	Think  frame.Time // from the end of an operation at its last rank to the beginning of the next

	Start, Stop frame.Time
}

// Collective is a Source. Each pair of ranks that exchanges data has a
// connection that stays open, on which messages arrive in order.
type Collective struct {
	pending
	cfg   CollectiveConfig
	place map[int32]int // of a host among the ranks
	steps steps
	n     int    // operations that began
	event uint32 // number of the present one
	left  int    // its messages that have not arrived
}

// steps is the order of the messages of an operation.
type steps interface {
	// begin sends what waits for nothing, and returns how many messages the operation has.
	begin(c *Collective, now frame.Time) int
	// arrived sends what waited for a message on a connection between two ranks.
	arrived(c *Collective, now frame.Time, src, dst int, conn int32)
}

// maxRanks bounds the memory of all-to-all, a bit for each pair.
const maxRanks = 1 << 14

// NewCollective checks cfg.
func NewCollective(cfg CollectiveConfig) (*Collective, error) {
	n := len(cfg.Ranks)
	switch {
	case n < 2 || n > maxRanks:
		return nil, fmt.Errorf("%d hosts take part; a collective has 2 to %d", n, maxRanks)
	case cfg.Pieces < 1:
		return nil, fmt.Errorf("a part is sent as %d messages; that is 1 at least", cfg.Pieces)
	case cfg.Trees && cfg.Op != AllReduce:
		return nil, fmt.Errorf("only all-reduce goes by trees; the others go by a ring")
	case cfg.Op == AllToAll && cfg.Pieces > 1:
		return nil, fmt.Errorf("all-to-all forwards nothing, so its parts have no pieces")
	}
	parts := n
	if cfg.Trees {
		parts = 2
	}
	if cfg.Bytes/uint64(parts) < uint64(cfg.Pieces) {
		return nil, fmt.Errorf("%d bytes cannot be sent as %d parts of %d messages; make them larger, or the pieces fewer", cfg.Bytes, parts, cfg.Pieces)
	}
	if err := checkPosted(n, "hosts", cfg.Pieces, "messages"); err != nil {
		return nil, err
	}
	c := &Collective{cfg: cfg, place: make(map[int32]int, n)}
	for i, h := range cfg.Ranks {
		if _, twice := c.place[h]; twice {
			return nil, fmt.Errorf("host %d is among the hosts twice", h)
		}
		c.place[h] = i
	}
	switch {
	case cfg.Trees:
		c.steps = newTrees(n)
	case cfg.Op == AllToAll:
		c.steps = newExchange(n)
	default:
		c.steps = &ring{received: make([]int, n)}
	}
	c.begin(cfg.Start)
	return c, nil
}

func (c *Collective) begin(now frame.Time) {
	if now < c.cfg.Stop && (c.cfg.Count == 0 || c.n < c.cfg.Count) {
		c.event = uint32(c.n)
		c.n++
		c.left = c.steps.begin(c, now)
	}
}

// send posts a message from one rank to another.
func (c *Collective) send(now frame.Time, src, dst int, bytes uint64, conn int32) {
	c.push(Flow{At: now, Src: c.cfg.Ranks[src], Dst: c.cfg.Ranks[dst], Bytes: bytes, Conn: conn, Event: c.event})
}

// Done implements Source.
func (c *Collective) Done(now frame.Time, f *Flow) {
	c.steps.arrived(c, now, c.place[f.Src], c.place[f.Dst], f.Conn)
	if c.left--; c.left == 0 {
		c.begin(now + c.cfg.Think)
	}
}

// share returns the bytes of the i-th of n shares of total.
func share(total uint64, i, n int) uint64 {
	at := func(i int) uint64 { return total/uint64(n)*uint64(i) + min(uint64(i), total%uint64(n)) }
	return at(i+1) - at(i)
}
