package crossbar

import (
	"fmt"

	"gswitch/frame"
)

// MaxPorts is how many ports a crossbar can join.
const MaxPorts = 64

// Config describes a crossbar. Bytes are those of frames, without link
// overhead.
type Config struct {
	Ingress uint32 // bytes of the queue of each ingress port
	Egress  uint32 // bytes of the queue of each egress port
	// A class may fill Egress with bytes of itself and the classes above it.
	// What waits of lower classes, which may be paused, counts against
	// Egress + Reserve only. With TotalCap it counts like everything else and
	// there is no reserve: a paused class locks out those above it.
	Reserve  uint32
	TotalCap bool
	// SkipBlocked lets the next class of an ingress port cross while the egress
	// queue of the class above is full.
	SkipBlocked bool

	Rate     uint64     // bit/s of a transfer: speed-up times that of a link
	Overhead uint32     // bytes added to each frame for the time of a transfer
	Latency  frame.Time // from arrival until a frame can cross: the forwarding engine

	// Lossless classes are paused at the ingress port whose drain bytes of the
	// class reach Pause, until they fall to Unpause.
	Lossless       uint8
	Pause, Unpause uint32
	// Lossy is what classes that are not lossless, and copies, may hold of an
	// ingress queue: the rest is for what comes after a pause. 0 = all of it.
	Lossy  uint32
	Chunks Chunks // of memory; they count beside all these bytes
}

// Time is how long n bytes are on the crossbar: at least a nanosecond.
func (c *Config) Time(n uint32) frame.Time {
	return max(1, frame.Time(uint64(n+c.Overhead)*8e9/c.Rate))
}

// Validate reports the first setting that cannot be meant. Whether the
// thresholds lose nothing depends on links: see buffer.InputQueue.
func (c *Config) Validate() error {
	switch {
	case c.Ingress == 0 || c.Egress == 0:
		return fmt.Errorf("ingress and egress queues of %d and %d bytes: both must hold a frame", c.Ingress, c.Egress)
	case c.Ingress > maxBytes || c.Egress > maxBytes || c.Reserve > maxBytes:
		return fmt.Errorf("queues of %d, %d and reserve of %d bytes: at most %d", c.Ingress, c.Egress, c.Reserve, maxBytes)
	case c.Rate == 0 || c.Rate > maxRate:
		return fmt.Errorf("a crossbar of %d bit/s is not within 1 and %d", c.Rate, uint64(maxRate))
	case c.Overhead > maxOverhead:
		return fmt.Errorf("overhead of %d bytes is above %d", c.Overhead, maxOverhead)
	case c.Latency < 0 || c.Latency > frame.Second:
		return fmt.Errorf("latency %v is not within 0 and a second", c.Latency.Duration())
	case c.Lossy > c.Ingress:
		return fmt.Errorf("lossy classes may hold %d bytes of an ingress queue of %d", c.Lossy, c.Ingress)
	case c.Lossless != 0 && (c.Pause == 0 || c.Pause > c.Ingress):
		return fmt.Errorf("pause at %d bytes is not within 1 and the ingress queue of %d", c.Pause, c.Ingress)
	case c.Lossless != 0 && c.Unpause >= c.Pause:
		return fmt.Errorf("a pause that begins at %d bytes cannot end at %d", c.Pause, c.Unpause)
	}
	return c.Chunks.validate()
}

const (
	maxBytes    = 1 << 30 // so that sums of two stay within 32 bits
	maxRate     = 1e15
	maxOverhead = 1 << 10
)
