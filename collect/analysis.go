package collect

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"gswitch/fabric/traces"
	"gswitch/frame"
	"gswitch/mirror"
	"gswitch/telemetry"
)

// Memory is how long an Analysis keeps anything about a message. Later messages are
// judged as if it had never existed.
const Memory = 60 * time.Second

// Stats are the counters of an analysis.
type Stats map[Stat]uint64

// Stat identifies a counter. For reports there are counters of analysed reports, by kind,
// and of problems: reports that cannot be read (bad), are of an unknown kind or port
// (foreign), arrived twice (again), arrived after their batch or slot was judged (late),
// are of a future instant (ahead), or do not have the shape of the other end's reports
// (different).
type Stat struct{ Family, Label string }

// Families of counters.
const (
	analysedReports = "reports"  // by kind
	reportProblems  = "problems" // by problem
	tracedPackets   = "traces"   // by outcome
	tracesEarly     = "early"
	eventsLeftOut   = "left out"     // by kind and cause
	tracedLinks     = "traced links" // packets, by link
	tracedBytes     = "traced bytes" // of these
	tracedFlows     = "traced flows" // flows that started, by link
	tracedDelays    = "delays"       // of these, by link and class
	countedPackets  = "counted"      // packets, by the id of a counter
	countedBytes    = "counted bytes"
	copies          = "copies" // traced; other: not of an IPv4 packet, or not a copy; cut: truncated within the telemetry
	linkSent        = "sent"   // packets, by link
	linkLost        = "lost"
	linkFound       = "found"
	linkUnknown     = "unknown" // batches, by link
	flowSlots       = "slots"   // of switches: whole; crowded, if not all flows are known; unknown
)

// minus returns the growth of the counters. For a counter that was reset it is 0 or more.
func (s Stats) minus(before Stats) Stats {
	v := Stats{}
	for k, n := range s {
		v[k] = n - min(before[k], n)
	}
	return v
}

// Analysis turns the messages of one lane into events.
type Analysis struct {
	network     *Network
	book        *traces.Book
	links       map[linkKey]*link
	digests     int                   // bytes of those that wait
	slots       map[frame.Time]*slots // by length
	nodes       map[string]*node
	seen        map[string]Seen // by exporter start: the last report
	now         time.Time       // of the last message
	lastReports time.Time       // when the last reports came
	resumed     time.Time       // since when they arrive without interruption of all exporters
	out         []Event
	stats       Stats
	most        bounds
	refused     refusals
	counters    *counters        // that last was counted for
	rates       map[string]*rate // of events caused by copies, by kind and cause
}

// refusals count what was left out for lack of memory.
type refusals struct{ judged, followed, digests, batches uint64 }

// bounds are the memory limits of an analysis.
type bounds struct {
	waiting, judged, digests, batches int // bytes
	followed                          int // entries
}

// NewAnalysis returns an analysis of a lane that can start with any message.
func NewAnalysis(n *Network) *Analysis {
	book := traces.New(n.plan)
	if n.TraceIdle > 0 {
		book.Idle(frame.Time(n.TraceIdle))
	}
	return &Analysis{network: n, book: book, links: map[linkKey]*link{}, slots: map[frame.Time]*slots{}, nodes: map[string]*node{}, seen: map[string]Seen{}, rates: map[string]*rate{},
		stats: Stats{}, most: bounds{waiting: mostWaiting, judged: mostJudged, digests: mostDigests, batches: mostBatches, followed: mostFollowed}}
}

// Stats returns the counters.
func (a *Analysis) Stats() Stats {
	b := a.book
	a.stats[Stat{copies, "traced"}], a.stats[Stat{copies, "other"}] = b.Copies-min(b.Other+b.Cut, b.Copies), b.Other
	a.stats[Stat{copies, "cut"}] = b.Cut
	a.stats[Stat{tracesEarly, ""}] = b.Early()
	return maps.Clone(a.stats)
}

func (a *Analysis) problem(what string) { a.stats[Stat{reportProblems, what}]++ }

// Resume adds what is known about exporters from messages that this analysis did not
// receive.
func (a *Analysis) Resume(seen map[string]Seen) {
	for _, from := range slices.Sorted(maps.Keys(seen)) {
		if s := seen[from]; s.Sequence > a.seen[from].Sequence {
			keepSeen(a.seen, from, s)
		}
	}
}

// mostSeen is the number of exporter starts whose last report a lane remembers: as many
// as there may be connections. Reports of other exporters may be analysed twice, which
// gives events that the stream already has.
const mostSeen = mostConnections

// keepSeen records the last report of an exporter. If there are too many exporters, the
// one with the oldest last report is removed.
func keepSeen(seen map[string]Seen, from string, s Seen) {
	if _, known := seen[from]; !known && len(seen) >= mostSeen {
		oldest := ""
		for k, o := range seen {
			if was := seen[oldest]; oldest == "" || o.At.Before(was.At) || o.At.Equal(was.At) && k < oldest {
				oldest = k
			}
		}
		delete(seen, oldest)
	}
	seen[from] = s
}

// Add processes a message that the stream received at an instant. It returns the events
// known by now, which are valid until the next call.
func (a *Analysis) Add(at time.Time, m *message) []Event {
	a.out = a.out[:0]
	switch {
	case at.After(a.now):
		a.now = at
	case a.now.Sub(at) > Memory:
		a.setBack(at)
	}
	if len(m.reports) > 0 {
		if a.now.Sub(a.lastReports) >= reportTimeout {
			a.resumed = a.now
		}
		a.lastReports = a.now
	}
	from := token(&m.Hello)
	for i := range m.reports {
		a.report(from, m, i)
	}
	a.judgeLinks()
	a.judgeSlots()
	a.judgeTraces()
	for i := range a.out {
		a.out[i].Known = a.now.UTC()
	}
	return a.out
}

// setBack continues at an instant long before the last one: the stream's clock was wrong
// and has been set. Exporters count as seen now.
func (a *Analysis) setBack(now time.Time) {
	a.now, a.lastReports, a.resumed = now, now, now
	for _, n := range a.nodes {
		n.lastSeen = now
	}
	for _, s := range a.slots {
		for _, t := range s.reporters {
			t.lastSeen = now
		}
		for _, w := range s.waiting {
			w.since = now
		}
	}
}

func (a *Analysis) report(from string, m *message, i int) {
	r := &m.reports[i]
	if r.Sequence <= a.seen[from].Sequence {
		a.problem("again")
		return
	}
	keepSeen(a.seen, from, Seen{r.Sequence, a.now})
	a.stats[Stat{analysedReports, kindOf(r)}]++
	switch r.Kind {
	case Mirrored:
		if len(r.Body) < 8 {
			a.problem("bad")
			return
		}
		a.book.Add(frame.Time(binary.BigEndian.Uint64(r.Body)), r.Body[8:])
	case lossKind:
		a.digest(m, r)
	case flowKind:
		a.flowReport(m, r)
	default:
		a.problem("foreign")
	}
}

// kindOf returns the kind of a report, or other if the kind is not analysed: kinds that
// strangers make up must not become labels of a metric.
func kindOf(r *telemetry.Report) string {
	switch r.Kind {
	case Mirrored, lossKind, flowKind:
		return r.Kind
	}
	return "other"
}

// judgeTraces turns complete traces into events.
func (a *Analysis) judgeTraces() {
	a.book.Advance(frame.Time(a.now.UnixNano()))
	for _, t := range a.book.Done {
		v := a.book.Verdict(t)
		a.stats[Stat{tracedPackets, string(v.Kind)}]++
		a.count(t)
		if v.Kind == traces.Delivered && !t.Debug && t.Probe == 0 {
			continue // only counted
		}
		if a.may(Trace, string(v.Kind)) {
			a.out = append(a.out, traceEvent(t, &v))
		}
	}
	a.book.Done = a.book.Done[:0]
	for i := range a.book.Pauses {
		if p := &a.book.Pauses[i]; a.may(Pause, pauseOf(p)) {
			a.out = append(a.out, pauseEvent(p))
		}
	}
	a.book.Pauses = a.book.Pauses[:0]
}

// mostOfCopies is the number of events per second, for each kind and cause, that copies
// may lead to in a lane. Any host can send packets that are marked, dropped or loop, and
// pauses; without a limit their events would push all others out of the stream.
const mostOfCopies = 1000

// may reports whether copies may lead to another event, and counts it otherwise.
func (a *Analysis) may(kind, what string) bool {
	label := kind + " " + what
	r := a.rates[label]
	if r == nil {
		r = new(rate)
		a.rates[label] = r
	}
	if r.take(a.now) {
		return true
	}
	a.stats[Stat{eventsLeftOut, label}]++
	return false
}

// rate is a token bucket of mostOfCopies, in the lane's time.
type rate struct {
	tokens time.Duration // one token is a second divided by mostOfCopies
	at     time.Time
}

// take reports whether there may be another event.
func (b *rate) take(now time.Time) bool {
	if passed := now.Sub(b.at); b.at.IsZero() || passed >= time.Second || passed < -Memory {
		b.tokens, b.at = time.Second, now
	} else if passed > 0 {
		b.tokens, b.at = min(b.tokens+passed, time.Second), now
	}
	if b.tokens < time.Second/mostOfCopies {
		return false
	}
	b.tokens -= time.Second / mostOfCopies
	return true
}

func traceEvent(t *mirror.Trace, v *traces.Verdict) Event {
	e := Event{Kind: Trace, What: string(v.Kind), Where: v.At, Reason: v.Reason, Toward: strings.Join(v.Next, " "), Path: strings.Join(v.Path, " "), Packets: 1,
		Src: netip.AddrFrom4(t.Key.Src), Dst: netip.AddrFrom4(t.Key.Dst), SrcPort: t.Key.SrcPort, DstPort: t.Key.DstPort, Protocol: t.Key.Proto}
	if v.Kind == traces.Looped {
		e.Where = strings.Join(v.Loop, " ")
	}
	var times []string
	for i := range t.Hops {
		times = append(times, strconv.FormatInt(int64(t.Hops[i].At-v.First), 10))
	}
	e.Times = strings.Join(times, " ")
	e.At, e.Until = wall(v.First), wall(v.First+v.Delay)
	e.name(t.Key, v.First)
	return e
}

// pauseOf returns what a neighbour was asked to do.
func pauseOf(p *traces.Pause) string {
	if p.Classes == 0 {
		return "resume"
	}
	return "pause"
}

func pauseEvent(p *traces.Pause) Event {
	e := Event{Kind: Pause, What: pauseOf(p), Where: p.Port, Toward: p.Switch, Classes: p.Classes}
	if p.Sent {
		e.Where, e.Toward = p.Switch, p.Port
	}
	if p.Classes == 0 {
		e.Classes = p.Resumed
	}
	e.At, e.Until = wall(p.At), wall(p.At)
	e.name(*p)
	return e
}

// wall converts an instant to the wall clock.
func wall(t frame.Time) time.Time { return time.Unix(0, int64(t)).UTC() }

// byName sorts events found in the order of a map.
func byName(v []Event) {
	slices.SortFunc(v, func(a, b Event) int { return strings.Compare(a.ID, b.ID) })
}
