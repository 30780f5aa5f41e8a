package orders

import (
	"fmt"

	"gswitch/frame"
	"gswitch/scheduler"
)

// AIFO approximates Ranked on a single first-in first-out queue by the frames that it lets
// in: a frame whose rank is among the least of those that came last, the fewer
// the fuller the queue is (Yu et al., "Programmable Packet Scheduling with a
// Single Queue", SIGCOMM 2021).
type AIFO struct {
	Size   int // C, frames that the queue holds
	Window int // |W|, ranks that are kept
	Sample int // of so many frames the rank of one is kept
	K      int // thousandths: how much burst is taken beyond the quantile, 0 to 999
}

// New implements scheduler.Admission.
func (o AIFO) New(scheduler.Env) scheduler.Gate { return &aifo{o, newWindow(o.Window, o.Sample)} }

// String implements scheduler.Admission.
func (o AIFO) String() string { return fmt.Sprintf("aifo(%d, %d, %d)", o.Size, o.Window, o.Sample) }

type aifo struct {
	AIFO
	w window
}

func (q *aifo) Admits(_ frame.Time, m *frame.Meta, frames int, _ uint64) scheduler.Verdict {
	q.w.see(m.Rank)
	if frames >= q.Size || !q.w.fits(m.Rank, q.Size-frames, q.Size, q.K) {
		return scheduler.Drop
	}
	return scheduler.Pass
}
