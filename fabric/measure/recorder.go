package measure

import (
	"cmp"

	"gswitch/frame"
)

// Config says what is measured.
type Config struct {
	Groups []string
	// Streams says of each group that its messages are no flows but pieces of
	// connections that always have something to send.
	Streams []bool
	Frame   uint64 // payload of a full frame: messages up to it count as single frames
	Sample  frame.Time
	Bin     frame.Time
	Warmup  frame.Time
	End     frame.Time // of the run, at the latest

	Queues []Queue // those that are sampled
	Links  []Link  // those whose utilisation is measured
	Low    float64 // bit/s
	Series int     // connections with series of their own, of each group

	Buckets []uint64
	Sizes   []Sizes
	Windows []Window
	Events  []Event
}

// Queue is an egress queue.
type Queue struct {
	Name  string
	Trace bool // its depth is recorded over time
}

// Link is one direction of a link, or of several that count as one.
type Link struct {
	Name string
	Rate float64 // bit/s
}

// Sizes is a range of flow sizes with values of its own: from From up to, but
// not including, To bytes; To = 0 is no bound.
type Sizes struct {
	Name     string
	From, To uint64
}

func (s *Sizes) has(bytes uint64) bool { return bytes >= s.From && (s.To == 0 || bytes < s.To) }

// Window is a span of time with values of its own.
type Window struct {
	Name     string
	From, To frame.Time
}

// Event is an instant from which something is timed. Starts, Ends and Goodput
// are groups, -1 for none.
type Event struct {
	Name         string
	At           frame.Time
	Starts, Ends int
	Below        uint64 // of the first queue
	Drains       bool   // Below means something
	Goodput      int
	Share        float64
	Reaches      float64 // bit/s of Goodput, 0: not asked
	Before       Window  // zero: from the warm-up to the event
}

// Recorder takes what is seen during a run. Its methods are called with time
// never decreasing.
type Recorder struct {
	cfg    Config
	scopes []scope // the run, then the windows
	flows  flows
	queue  queues
	link   links
	good   goodput
	closed frame.Time // after that nothing counts
}

// Span is a span of time that has values: the run after its warm-up, or a window.
type Span struct {
	Prefix   string // of its values
	From, To frame.Time
}

// Has reports whether the span has an instant.
func (s *Span) Has(now frame.Time) bool { return now >= s.From && now < s.To }

// scope is a span with what is measured in it.
type scope struct {
	Span
	queue    Hist
	low      frame.Time // time in bins with little on the first link
	linkMin  float64
	linkBits []float64 // of each link
	linkTime frame.Time
	good     spans
	groups   []spans
	rtt      Hist   // ns
	rtts     []Hist // of each group
}

// New returns a recorder.
func New(cfg Config) *Recorder {
	r := &Recorder{cfg: cfg, closed: frame.Never}
	add := func(prefix string, from, to frame.Time) {
		r.scopes = append(r.scopes, scope{Span: Span{prefix, from, to}, linkBits: make([]float64, len(cfg.Links)), groups: make([]spans, len(cfg.Groups)), rtts: make([]Hist, len(cfg.Groups))})
	}
	add("", cfg.Warmup, cfg.End)
	for _, w := range cfg.Windows {
		add(w.Name+".", w.From, cmp.Or(w.To, cfg.End))
	}
	r.flows.init(&r.cfg)
	r.queue.init(&r.cfg)
	r.link.init(&r.cfg)
	r.good.init(&r.cfg)
	return r
}

// Close says that nothing counts after now: the run is over.
func (r *Recorder) Close(now frame.Time) {
	r.closed = now
	for i := range r.scopes {
		r.scopes[i].To = min(r.scopes[i].To, now)
	}
}

// Closed returns when the run was over, frame.Never before.
func (r *Recorder) Closed() frame.Time { return r.closed }

// Spans returns how many spans have values: the run, then the windows.
func (r *Recorder) Spans() int { return len(r.scopes) }

// Span returns one of them. It ends when the run is over.
func (r *Recorder) Span(i int) Span { return r.scopes[i].Span }

// in says whether the span (from, to] lies in the scope.
func (s *scope) in(from, to frame.Time) bool { return from >= s.From && to <= s.To }
