package agent

import (
	"gswitch/cc"
	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/hostnic"
	inband "gswitch/int"
)

// Watch is what was measured by the acknowledgements of a queue pair.
type Watch struct {
	RTT     histogram.Buckets // without the serialisation time of the frame on the first link
	MinRTT  frame.Time
	MaxRTT  frame.Time
	LastRTT frame.Time
	Path    inband.Path // of the last acknowledgement with telemetry
	Queues  [inband.MaxHops]QueueWatch
	CEs     uint64
}

// QueueWatch is the length of the queue at one hop of the path when frames left it.
type QueueWatch struct {
	Bytes histogram.Buckets // in bytes, not nanoseconds
	Max   uint64
}

// watched wraps a congestion control. It records the feedback and limits the rate.
type watched struct {
	cc.Algorithm
	watch *Watch
	limit float64         // bit/s, 0 for none
	link  *hostnic.Config // of the first link
}

func (w *watched) OnAck(f *cc.Feedback) {
	o := w.watch
	if f.RTT > 0 {
		rtt := max(0, f.RTT-frame.Time(float64(f.Bytes)*8e9/float64(w.link.Rate)))
		o.RTT.Observe(rtt)
		if o.LastRTT = rtt; o.MinRTT == 0 || rtt < o.MinRTT {
			o.MinRTT = rtt
		}
		o.MaxRTT = max(o.MaxRTT, rtt)
	}
	if f.CE {
		o.CEs++
	}
	if p := f.Path; p != nil {
		o.Path = *p
		for i := range p.N {
			q := &o.Queues[i]
			q.Bytes.Observe(frame.Time(p.Hops[i].Q))
			q.Max = max(q.Max, p.Hops[i].Q)
		}
	}
	w.Algorithm.OnAck(f)
}

func (w *watched) Rate() float64 {
	if r := w.Algorithm.Rate(); w.limit == 0 || r < w.limit {
		return r
	}
	return w.limit
}

// Unwrap implements cc.Wrapper.
func (w *watched) Unwrap() cc.Algorithm { return w.Algorithm }

// Inspect implements cc.Inspector.
func (w *watched) Inspect(yield func(name string, v float64)) {
	if i, ok := w.Algorithm.(cc.Inspector); ok {
		i.Inspect(yield)
	}
}
