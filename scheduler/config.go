package scheduler

import (
	"cmp"
	"fmt"
	"reflect"

	"gswitch/frame"
)

// NumQueues is the number of queues of a port.
const NumQueues = 8

// ECN says when a frame that leaves is marked: by the bytes that stay behind
// in its queue. At or below KMin never, above KMax always, between them with a
// probability that rises linearly from 0 to PMax (RFC 3168 frames only, that
// is ECT(0) or ECT(1)). KMin equal to KMax is step marking, as DCTCP uses
// (RFC 8257 section 3.1). The zero value marks nothing.
type ECN struct {
	KMin, KMax uint32  // bytes
	PMax       float64 // 0 to 1; not used for step marking
	PI         PI      // replaces the law above if it has a reference
}

// QueueConfig configures one queue of a port.
type QueueConfig struct {
	// Weight 0 makes the queue strict. Other weights share a level with the
	// neighbouring weighted queues; see the package comment.
	Weight uint32

	// MaxRate is a limit in bit/s, 0 for none, counted like the link's rate.
	// Burst is how many bytes the queue may send ahead of it after an idle time, at most
	// MaxBurst.
	MaxRate uint64
	Burst   uint32

	ECN ECN

	// Order replaces first-in first-out; nil keeps it. Rank says what it goes
	// by, Admission what the queue drops of itself; nil drops nothing.
	Order     Order
	Rank      RankBy
	Admission Admission
	// Inversions counts frames that leave while one of smaller rank waits.
	Inversions bool

	// Discipline is a queue that the caller made and keeps access to, in place
	// of Order. An instance serves exactly one queue.
	Discipline Discipline
}

// PortConfig configures a port.
type PortConfig struct {
	Rate     uint64     // bit/s of the emulated link, 0 = unlimited
	Overhead uint32     // bytes added to each frame on the wire: 24 = preamble 8, FCS 4, gap 12 (IEEE 802.3 clause 4.4.2)
	Burst    frame.Time // how far behind now the link may catch up: the tolerated lateness of the caller; 0 in virtual time
	WholeNs  bool       // each frame takes whole nanoseconds; see RateClock.WholeNs
	Queues   [NumQueues]QueueConfig
	PushOut  PushOut
	Shared   *Shared // with other ports of the caller; nil: nothing
}

// EthernetOverhead is what a frame occupies on an Ethernet link beyond its
// bytes without FCS: preamble and start delimiter 8, FCS 4, inter-frame gap 12.
const EthernetOverhead = 24

// MaxBurst bounds QueueConfig.Burst: at 1 bit/s it lasts for 272 years, about as long as a
// frame.Time can say.
const MaxBurst = 1 << 30

// MaxWeight bounds QueueConfig.Weight: beyond it the turn of a queue would
// last for gigabytes.
const MaxWeight = 10000

// Validate reports the first setting that cannot be meant. NewPort and
// Configure take such settings too, by the nearest sensible meaning.
func (c *PortConfig) Validate() error {
	if c.Burst < 0 {
		return fmt.Errorf("burst %v is negative", c.Burst.Duration())
	}
	for i := range c.Queues {
		q := &c.Queues[i]
		switch {
		case q.Weight > MaxWeight:
			return fmt.Errorf("queue %d: weight %d is above %d", i, q.Weight, MaxWeight)
		case q.ECN.KMin > q.ECN.KMax:
			return fmt.Errorf("queue %d: ECN kmin %d is above kmax %d", i, q.ECN.KMin, q.ECN.KMax)
		case !(q.ECN.PMax >= 0 && q.ECN.PMax <= 1):
			return fmt.Errorf("queue %d: ECN pmax %v is not within 0 and 1", i, q.ECN.PMax)
		case q.ECN.KMin < q.ECN.KMax && q.ECN.PMax == 0:
			return fmt.Errorf("queue %d: ECN with kmin %d below kmax %d needs a pmax above 0", i, q.ECN.KMin, q.ECN.KMax)
		case q.Burst != 0 && q.MaxRate == 0:
			return fmt.Errorf("queue %d: burst %d without a max rate", i, q.Burst)
		case q.Burst > MaxBurst:
			return fmt.Errorf("queue %d: burst %d is above %d", i, q.Burst, MaxBurst)
		}
		switch {
		case q.Order != nil && q.Discipline != nil:
			return fmt.Errorf("queue %d: an order beside a discipline", i)
		case !comparable(q.Order) || !comparable(q.Admission):
			return fmt.Errorf("queue %d: an order or admission that cannot be compared", i)
		}
		if err := cmp.Or(checked(q.Order), checked(q.Admission)); err != nil {
			return fmt.Errorf("queue %d: %w", i, err)
		}
		if err := q.ECN.PI.Validate(); err != nil {
			return fmt.Errorf("queue %d: %w", i, err)
		}
	}
	return nil
}

func comparable(v any) bool { return v == nil || reflect.TypeOf(v).Comparable() }
