package orders

import (
	"fmt"

	"gswitch/frame"
	"gswitch/scheduler"
)

// PACKS approximates Ranked, and its drops as well, by strict first-in first-out
// queues and a window of the ranks that came last: a frame joins the first queue
// that, with those before it, has room for its quantile, and is dropped if none
// has (Alcoz et al., "Everything Matters in Programmable Packet Scheduling", NSDI
// 2025, algorithm 1).
type PACKS struct {
	Queues int // 1 to MaxLevels
	Depth  int // frames in each of them
	Window int // ranks that are kept
	Sample int // of so many frames the rank of one is kept
	K      int // thousandths: how much burst is taken beyond the quantile, 0 to 999
}

// New implements scheduler.Order.
func (o PACKS) New(scheduler.Env) scheduler.Discipline {
	return &packs{levels: *newLevels(o.Queues), depth: max(o.Depth, 1), k: o.K, w: newWindow(o.Window, o.Sample)}
}

// String implements scheduler.Order.
func (o PACKS) String() string { return fmt.Sprintf("packs(%d x %d)", o.Queues, o.Depth) }

// Drops implements scheduler.Dropper: what has no queue is not admitted.
func (PACKS) Drops() bool { return true }

type packs struct {
	levels
	depth, k int
	w        window
	at       int // the queue of the frame that Admits let in
}

// Admits implements scheduler.Gate.
func (q *packs) Admits(_ frame.Time, m *frame.Meta, _ int, _ uint64) scheduler.Verdict {
	q.w.see(m.Rank)
	free, size := 0, q.depth*len(q.l)
	for i := range q.l {
		room := q.depth - q.l[i].Len()
		free += room
		if room > 0 && q.w.fits(m.Rank, free, size, q.k) {
			q.at = i
			return scheduler.Pass
		}
	}
	return scheduler.Drop
}

// Enqueue implements scheduler.Discipline.
func (q *packs) Enqueue(a *frame.Arena, now frame.Time, r frame.Ref) { q.put(a, now, r, q.at) }
