package deter

import (
	"slices"

	"gswitch/frame"
)

// The queues of switches can be replayed from the times at which hosts sent packets
// (dissertation, section 6.5; NSDI 2019, section 6): every packet is sent again at its
// time, whatever becomes of it. How long a queue is follows from the times of arrivals
// without jumps, so that small errors of clocks and of sampled times stay small. Which
// packet finds a full queue does not: so hosts tag those that were lost, and switches of
// the replay drop only these, where a queue is nearly full.

// TagMargin is how many full packets below its limit a queue drops a packet that is
// tagged.
const TagMargin = 5

// Packet is what the comparison of queues knows of a packet.
type Packet struct {
	Flow  uint32
	Bytes uint32
}

// Queue is the history of an egress queue whose packets leave in their order.
type Queue struct {
	Joined   []uint32 // packets, in the order in which they came
	Left     uint32   // how many of them have left
	Arrivals []Arrival
}

// Arrival is a packet that came to a queue: Joined[Head:Tail] was in it.
type Arrival struct {
	Packet     uint32
	Head, Tail uint32
	At         frame.Time
	Dropped    bool
}

// Arrive notes a packet that joins the queue, or is dropped.
func (q *Queue) Arrive(now frame.Time, packet uint32, dropped bool) {
	q.Arrivals = append(q.Arrivals, Arrival{packet, q.Left, uint32(len(q.Joined)), now, dropped})
	if !dropped {
		q.Joined = append(q.Joined, packet)
	}
}

// Flows adds up the bytes of each flow that a packet found in the queue.
func (q *Queue) Flows(a *Arrival, of []Packet, into map[uint32]int64, sign int64) {
	for _, p := range q.Joined[a.Head:a.Tail] {
		into[of[p].Flow] += sign * int64(of[p].Bytes)
	}
}

// Series returns by bins of time the mean length in bytes that packets found, and how many
// were dropped.
func (q *Queue) Series(of []Packet, bin frame.Time) (bytes []float64, drops []int) {
	before := make([]uint64, 1, len(q.Joined)+1) // bytes of the packets before each
	for _, p := range q.Joined {
		before = append(before, before[len(before)-1]+uint64(of[p].Bytes))
	}
	var n []float64
	for i := range q.Arrivals {
		a := &q.Arrivals[i]
		k := int(a.At / bin)
		for len(n) <= k {
			bytes, drops, n = append(bytes, 0), append(drops, 0), append(n, 0)
		}
		n[k]++
		bytes[k] += (float64(before[a.Tail]-before[a.Head]) - bytes[k]) / n[k]
		if a.Dropped {
			drops[k]++
		}
	}
	return bytes, drops
}

// QueueErrors is by how much the replay of queues differs from the run.
type QueueErrors struct {
	// Mean and P99 of what a packet finds: the bytes by which the queue has more or
	// less of each flow than it had, of all flows together.
	Mean, P99 float64
	Arrivals  int // of packets that came to the same queue in both

	Dropped     int // in the run
	FalseAccept int // dropped in the run, and not in the replay
	FalseDrop   int // dropped in the replay, and not in the run
	WrongPlace  int // dropped in both, by different queues
	Either      int // dropped in one of them

	// Longest is the queue that was the longest in the run, and when; Run and Replayed are
	// what it held.
	Longest  [2]int // switch, port
	At       frame.Time
	Run      map[uint32]int64 // bytes by flow
	Replayed map[uint32]int64
}

// DropError is the share of dropped packets whose drop the replay has wrong.
func (e *QueueErrors) DropError() float64 {
	return float64(e.FalseAccept+e.FalseDrop+e.WrongPlace) / float64(max(1, e.Either))
}

// CompareQueues compares the queues of switches, by switch and port, with their replay.
func CompareQueues(of []Packet, run, replayed [][]Queue) (e QueueErrors) {
	type place struct{ sw, port int }
	was, is := map[uint32]place{}, map[uint32]place{}
	var diffs []float64
	longest := int64(-1)
	flows := map[uint32]int64{}
	for sw := range run {
		for port := range run[sw] {
			a, b := &run[sw][port], &replayed[sw][port]
			at := make(map[uint32]int, len(b.Arrivals))
			for i := range b.Arrivals {
				x := &b.Arrivals[i]
				at[x.Packet] = i
				if x.Dropped {
					is[x.Packet] = place{sw, port}
				}
			}
			for i := range a.Arrivals {
				x := &a.Arrivals[i]
				if x.Dropped {
					was[x.Packet] = place{sw, port}
				}
				k, both := at[x.Packet]
				if !both {
					continue
				}
				clear(flows)
				a.Flows(x, of, flows, 1)
				length := int64(0)
				for _, n := range flows {
					length += n
				}
				b.Flows(&b.Arrivals[k], of, flows, -1)
				sum := int64(0)
				for _, n := range flows {
					sum += max(n, -n)
				}
				diffs = append(diffs, float64(sum))
				if length > longest {
					longest = length
					e.Longest, e.At, e.Run, e.Replayed = [2]int{sw, port}, x.At, map[uint32]int64{}, map[uint32]int64{}
					a.Flows(x, of, e.Run, 1)
					b.Flows(&b.Arrivals[k], of, e.Replayed, 1)
				}
			}
		}
	}
	e.Dropped, e.Arrivals = len(was), len(diffs)
	for p, at := range was {
		switch there, both := is[p]; {
		case !both:
			e.FalseAccept++
		case there != at:
			e.WrongPlace++
		}
	}
	for p := range is {
		if _, both := was[p]; !both {
			e.FalseDrop++
		}
	}
	e.Either = len(was) + e.FalseDrop
	slices.Sort(diffs)
	for _, d := range diffs {
		e.Mean += d / float64(len(diffs))
	}
	if n := len(diffs); n > 0 {
		e.P99 = diffs[min(n-1, n*99/100)]
	}
	return e
}

// Builder returns the flow with the most bytes, those, and the bytes of all.
func (e *QueueErrors) Builder(bytes map[uint32]int64) (flow uint32, most, all int64) {
	for f, n := range bytes {
		if all += n; n > most || n == most && f < flow {
			flow, most = f, n
		}
	}
	return flow, most, all
}
