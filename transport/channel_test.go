package transport

import (
	"container/heap"
	"fmt"
	"testing"

	"gswitch/frame"
)

// channel is a sender and a receiver with a bad network between them: both
// directions lose, duplicate, delay and so reorder.
type channel struct {
	now    frame.Time
	rnd    frame.Rand
	s      Sender
	r      Receiver
	queue  arrivals
	stamp  uint64
	events int

	total       uint64
	loss, dup   float64
	jitter      uint32 // ns
	rewind      float64
	got         []uint8
	completions uint32
	maxSpan     uint64
}

type arrival struct {
	at    frame.Time
	stamp uint64 // ties keep the order of sending
	data  bool
	seq   uint64
	ack   Ack
}

type arrivals []arrival

func (q arrivals) Len() int { return len(q) }
func (q arrivals) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].stamp < q[j].stamp
}
func (q arrivals) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *arrivals) Push(x any)   { *q = append(*q, x.(arrival)) }
func (q *arrivals) Pop() any {
	x := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return x
}

// kindOf makes messages of varied lengths, half of which consume a receive
// work request.
func (c *channel) kindOf(seq uint64) PacketKind {
	if seq%7 != 6 && seq+1 != c.total {
		return Middle
	}
	return Last + PacketKind(seq>>3&1)
}

func (c *channel) send(a arrival) {
	copies := 1
	if c.rnd.Float64() < c.loss {
		copies = 0
	} else if c.rnd.Float64() < c.dup {
		copies = 2
	}
	for range copies {
		a.at = c.now + 10*us + frame.Time(c.rnd.Uint32n(c.jitter+1))
		a.stamp = c.stamp
		c.stamp++
		heap.Push(&c.queue, a)
	}
}

// run steps until the sender has everything acknowledged. It fails if
// nothing is left to happen before.
func (c *channel) run(cfg *Config, total uint64) error {
	c.total, c.got = total, make([]uint8, total)
	c.s.Init(cfg)
	c.r.Init(cfg)
	const perPacket = 100 * frame.Nanosecond
	free := c.now
	for c.s.Cum() < total {
		c.events++
		// The link takes a packet each perPacket.
		if seq, rtx, ok := c.s.Peek(c.now, total); ok && free <= c.now {
			c.s.Sent(c.now, seq, 1000, rtx)
			free = c.now + perPacket
			c.send(arrival{data: true, seq: seq})
			continue
		} else if at := c.s.Deadline(); ok && (len(c.queue) == 0 || free <= c.queue[0].at) && free <= at {
			c.now = free
			continue
		}
		at := c.s.Deadline()
		if len(c.queue) == 0 || at < c.queue[0].at {
			if at == frame.Never {
				return fmt.Errorf("nothing is left to happen at cum %d of %d", c.s.Cum(), total)
			}
			c.now = max(c.now, at)
			c.s.Timeout(c.now)
			continue
		}
		a := heap.Pop(&c.queue).(arrival)
		c.now = max(c.now, a.at)
		if !a.data {
			c.s.Ack(c.now, a.ack)
			if c.rnd.Float64() < c.rewind { // the receiver was not ready
				c.s.Rewind(c.now, c.now+5*us)
			}
		} else if err := c.arrive(a.seq); err != nil {
			return err
		}
		if err := c.check(cfg); err != nil {
			return err
		}
	}
	return c.complete()
}

func (c *channel) arrive(seq uint64) error {
	v := c.r.Data(c.now, seq, c.kindOf(seq))
	if v.Deliver {
		c.got[seq]++
	}
	if v.Deliver && c.got[seq] != 1 || v.Duplicate && c.got[seq] != 1 {
		return fmt.Errorf("packet %d was delivered %d times", seq, c.got[seq])
	}
	c.completions += v.Completions
	switch v.Reply {
	case AckReply:
		c.send(arrival{ack: Ack{Cum: v.Cum}})
	case NakReply:
		c.send(arrival{ack: Ack{NAK: true, Cum: v.Cum, Sack: v.Sack}})
	}
	return nil
}

// check holds at all times.
func (c *channel) check(cfg *Config) error {
	span := c.s.Next() - c.s.Cum()
	c.maxSpan = max(c.maxSpan, span)
	switch {
	case span > cfg.limit():
		return fmt.Errorf("%d packets in flight, the cap is %d", span, cfg.limit())
	case c.r.Expected() < c.s.Cum() || c.r.Expected() > c.s.Next():
		return fmt.Errorf("the receiver expects %d, the sender is at %d to %d", c.r.Expected(), c.s.Cum(), c.s.Next())
	case c.s.BytesInFlight() > 1000*span:
		return fmt.Errorf("%d bytes in flight of %d packets", c.s.BytesInFlight(), span)
	case c.r.Stats().Beyond != 0 || c.s.Stats().BadAcks != 0:
		return fmt.Errorf("a correct peer was refused: %+v, %+v", c.r.Stats(), c.s.Stats())
	}
	return nil
}

func (c *channel) complete() error {
	var msgs, cqes uint32
	for seq, n := range c.got {
		if n != 1 {
			return fmt.Errorf("packet %d was delivered %d times", seq, n)
		}
		if k := c.kindOf(uint64(seq)); k != Middle {
			msgs++
			if k == LastCQE {
				cqes++
			}
		}
	}
	if c.r.MSN() != msgs || c.completions != cqes {
		return fmt.Errorf("MSN %d and %d completions, want %d and %d", c.r.MSN(), c.completions, msgs, cqes)
	}
	if c.s.BytesInFlight() != 0 || c.s.InFlight() != 0 || c.s.InRecovery() || c.s.timer.armed {
		return fmt.Errorf("all is acknowledged, but %d bytes are in flight, recovery %v", c.s.BytesInFlight(), c.s.InRecovery())
	}
	return nil
}

// Over any network everything arrives exactly once and every sender comes to
// an end, in each mode and with every option.
func TestEverythingArrivesOnce(t *testing.T) {
	configs := map[string]Config{
		"go-back-n":           {Recovery: GoBackN, RTOHigh: 100 * us},
		"go-back-n interval":  {Recovery: GoBackN, Cap: 30, RTOHigh: 400 * us, NakInterval: 50 * us, AckEvery: 4},
		"go-back-n every nak": {Recovery: GoBackN, Cap: 20, RTOHigh: 400 * us, NakEvery: true},
		"irn":                 *irn(110),
		"irn small cap":       *irn(3),
		"irn without cap":     *irn(0),
		"irn options":         {Recovery: IRN, Cap: 100, RTOLow: 50 * us, RTOHigh: 200 * us, N: 3, NackThreshold: 4, PartialAck: true, RetransmitDelay: 2 * us, AckEvery: 3},
		"irn dynamic":         {Recovery: IRN, Cap: 100, RTOLow: 50 * us, RTOHigh: 200 * us, DynamicRTO: true},
		"irn go-back-n":       {Recovery: IRNGoBackN, Cap: 110, RTOLow: 100 * us, RTOHigh: 320 * us, N: 3},
		"irn no sack":         {Recovery: IRNNoSACK, Cap: 110, RTOLow: 100 * us, RTOHigh: 320 * us, N: 3},
		"irn no sack delay":   {Recovery: IRNNoSACK, Cap: 110, RTOLow: 100 * us, RTOHigh: 320 * us, N: 3, RetransmitDelay: 2 * us},
		"tcp":                 {Recovery: TCP, Cap: 200, RTOLow: 50 * us, RTOHigh: 200 * us},
		"newreno":             {Recovery: NewReno, Cap: 200, RTOLow: 50 * us, RTOHigh: 200 * us},
		"newreno without cap": {Recovery: NewReno, RTOLow: 50 * us, RTOHigh: 200 * us, AckEvery: 2},
		"newreno timeouts":    {Recovery: NewReno, Cap: 50, RTOLow: 50 * us, RTOHigh: 200 * us, NoFastRetransmit: true},
	}
	networks := map[string]channel{
		"perfect":    {},
		"loss":       {loss: 0.03},
		"heavy loss": {loss: 0.3},
		"reordering": {jitter: 5000},
		"duplicates": {dup: 0.2},
		"all":        {loss: 0.05, dup: 0.1, jitter: 20000},
		"not ready":  {loss: 0.02, dup: 0.02, jitter: 2000, rewind: 0.01},
	}
	events := 0
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			if err := cfg.Validate(); err != nil {
				t.Fatal(err)
			}
			var old channel
			for net, c := range networks {
				c.rnd = frame.NewRand(uint64(len(name) + len(net)))
				c.s, c.r = old.s, old.r // recycled: nothing of the last direction may show
				if err := c.run(&cfg, 3000); err != nil {
					t.Errorf("%s: %v", net, err)
				}
				if net == "perfect" && c.s.Retransmissions() != 0 {
					t.Errorf("%d retransmissions without loss", c.s.Retransmissions())
				}
				events += c.events
				old = c
			}
		})
	}
	if events < 1_000_000 {
		t.Errorf("only %d events", events)
	}
}
