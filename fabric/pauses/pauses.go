// Package pauses makes sense of which port paused which in a network: from what
// switches log of pauses it makes the tree by which congestion spread,
// from the port where it began back to the hosts that had to stop, and from
// the queues that wait it finds those that wait for each other in a circle.
//
// It knows names and numbers only: runs of scenarios and running fabrics are
// looked at by the same code.
package pauses

import (
	"cmp"
	"fmt"
	"slices"
)

// End is a port of a node. Ports are numbered as in the topology.
type End struct {
	Node string `json:"node"`
	Port int    `json:"port"`
	// To is the neighbour behind the port.
	To string `json:"to"`
}

func (e End) String() string { return e.Node + ">" + e.To }

// same identifies a port by node and number.
func (e End) same(o End) bool { return e.Node == o.Node && e.Port == o.Port }

// Pause is one pause of a class without a break. Times are in seconds.
type Pause struct {
	By    End     `json:"by"` // the port that asked
	Of    End     `json:"of"` // the port at the other end, which had to stop
	Class int     `json:"class"`
	From  float64 `json:"from_seconds"`
	To    float64 `json:"to_seconds"` // while Lasts, when it was looked at
	Lasts bool    `json:"lasts,omitempty"`
	// Held is what By's port and class held when it asked, Causes the egress
	// ports of By.Node that these bytes waited for, most first, after those that
	// hold up the others: none where By is a host, or something else that does
	// not report.
	Held   uint64  `json:"held_bytes,omitempty"`
	Causes []Cause `json:"causes,omitempty"`
	// Short: By.Node ran out of memory for frames, whatever their bytes.
	Short bool `json:"short,omitempty"`
}

// Cause is an egress port and the bytes that waited for it.
type Cause struct {
	Port  End    `json:"port"`
	Bytes uint64 `json:"bytes"`
	// Stuck: a switch with a crossbar has one queue for what came by a port, and
	// Port had no room for the first frame there. What stood behind it waited
	// for Port as well, wherever it was to go.
	Stuck bool `json:"stuck,omitempty"`
}

func (p *Pause) seconds() float64 { return p.To - p.From }

// Sum adds pauses up.
type Sum struct {
	Count   int     `json:"count"`
	Seconds float64 `json:"seconds"`         // of all together
	Longest float64 `json:"longest_seconds"` // of one
	First   float64 `json:"first_seconds"`   // when the first began
	Lasting int     `json:"lasting"`         // that had not ended
	Held    uint64  `json:"held_bytes"`      // most of one
}

func (s *Sum) add(p *Pause) {
	if s.Count == 0 || p.From < s.First {
		s.First = p.From
	}
	s.Count++
	s.Seconds += p.seconds()
	s.Longest = max(s.Longest, p.seconds())
	s.Held = max(s.Held, p.Held)
	if p.Lasts {
		s.Lasting++
	}
}

// Edge is one port that paused another: a line of the table of pauses.
type Edge struct {
	By    End `json:"by"`
	Of    End `json:"of"`
	Class int `json:"class"`
	Sum
	// For are the egress ports of By.Node that the pauses were asked for, by
	// the number of pauses in which most bytes waited for them.
	For []Share `json:"for,omitempty"`
	// Behind are the egress ports whose frames stood behind one that was stuck,
	// with the most bytes of one pause: they filled the queue, or are held up
	// without fault.
	Behind []Cause `json:"behind,omitempty"`
}

// Share is how many of an edge's pauses an egress port was the main cause of.
type Share struct {
	Port  End `json:"port"`
	Count int `json:"count"`
}

// Branch is a part of the tree of propagation. The roots are the places where
// congestion began: an egress port that was not paused itself when frames for
// it filled a buffer, or a node that asked without saying why. Below stand the
// pauses that it led to, each with those that it led to in turn.
type Branch struct {
	At    End    `json:"at"` // root: the congested egress port, or the port that asked; else the port that was paused
	By    string `json:"by,omitempty"`
	Class int    `json:"class"`
	// Why says of a root what began there: congestion, asked, memory.
	Why string `json:"why,omitempty"`
	Sum
	// Again: pauses of this port led, through others, to more pauses of it.
	Again    bool      `json:"again,omitempty"`
	Branches []*Branch `json:"branches,omitempty"`

	up *Branch
}

// What a root is.
const (
	Congestion = "congestion" // more came for the port than it could send
	Asked      = "asked"      // a host or a foreign device asked for itself
	Memory     = "memory"     // the switch ran out of memory for frames
)

// Trace is what is known of the pauses of a network.
type Trace struct {
	From      float64   `json:"from_seconds"` // what it covers, as far as nothing is missing
	To        float64   `json:"to_seconds"`
	Forgotten uint64    `json:"forgotten"`               // pauses that switches did not keep, older than what they did
	Slack     float64   `json:"slack_seconds,omitempty"` // by how much clocks may differ
	Pauses    []Pause   `json:"pauses,omitempty"`        // in the order in which they began
	Edges     []Edge    `json:"edges"`                   // those that paused longest first
	Roots     []*Branch `json:"roots"`                   // those that led to most first
	Circles   []Ring    `json:"circles,omitempty"`       // pauses that were not over and held each other
}

// New makes a trace of pauses. slack is by how much the clocks of the nodes
// may differ.
func New(v []Pause, from, to, slack float64, forgotten uint64) *Trace {
	t := &Trace{From: from, To: to, Forgotten: forgotten, Slack: slack, Pauses: v, Edges: []Edge{}, Roots: []*Branch{}}
	slices.SortStableFunc(v, func(a, b Pause) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.By.Node, b.By.Node), cmp.Compare(a.By.Port, b.By.Port), cmp.Compare(a.Class, b.Class))
	})
	t.edges()
	t.grow(slack)
	t.Circles = t.rings()
	return t
}

// Between returns the trace of the pauses that lasted some time between two
// instants, whole ones.
func (t *Trace) Between(from, to float64) *Trace {
	var v []Pause
	for i := range t.Pauses {
		if p := &t.Pauses[i]; p.From < to && p.To > from {
			v = append(v, *p)
		}
	}
	return New(v, max(from, t.From), min(to, t.To), t.Slack, t.Forgotten)
}

// edge is what distinguishes edges.
type edge struct {
	by, of End
	class  int
}

func (t *Trace) edges() {
	at := map[edge]int{}
	for i := range t.Pauses {
		p := &t.Pauses[i]
		k := edge{p.By, p.Of, p.Class}
		e, known := at[k]
		if !known {
			e = len(t.Edges)
			at[k] = e
			t.Edges = append(t.Edges, Edge{By: p.By, Of: p.Of, Class: p.Class})
		}
		t.Edges[e].add(p)
		if len(p.Causes) > 0 {
			t.Edges[e].blame(p.Causes[0].Port)
			t.Edges[e].queued(p.Causes)
		}
	}
	for i := range t.Edges {
		slices.SortStableFunc(t.Edges[i].For, func(a, b Share) int { return b.Count - a.Count })
		slices.SortStableFunc(t.Edges[i].Behind, func(a, b Cause) int { return cmp.Compare(b.Bytes, a.Bytes) })
	}
	slices.SortStableFunc(t.Edges, func(a, b Edge) int { return cmp.Compare(b.Seconds, a.Seconds) })
}

func (e *Edge) blame(port End) {
	for i := range e.For {
		if e.For[i].Port.same(port) {
			e.For[i].Count++
			return
		}
	}
	e.For = append(e.For, Share{port, 1})
}

// queued notes what stood behind frames that were stuck.
func (e *Edge) queued(v []Cause) {
	if !v[0].Stuck {
		return
	}
	for _, c := range v {
		if c.Stuck {
			continue
		}
		i := slices.IndexFunc(e.Behind, func(b Cause) bool { return b.Port.same(c.Port) })
		if i < 0 {
			e.Behind = append(e.Behind, c)
		} else {
			e.Behind[i].Bytes = max(e.Behind[i].Bytes, c.Bytes)
		}
	}
}

// grow makes the tree: each pause hangs below the pause that it followed from.
func (t *Trace) grow(slack float64) {
	// Pauses by the port that had to stop, in the order in which they began.
	type key struct {
		node        string
		port, class int
	}
	stopped := map[key][]int{}
	for i := range t.Pauses {
		p := &t.Pauses[i]
		k := key{p.Of.Node, p.Of.Port, p.Class}
		stopped[k] = append(stopped[k], i)
	}
	// before is the last pause of a port that had begun by the time, and had
	// not ended.
	before := func(at End, class int, from float64, than int) int {
		v := stopped[key{at.Node, at.Port, class}]
		k, _ := slices.BinarySearchFunc(v, from+slack, func(i int, until float64) int {
			if t.Pauses[i].From <= until {
				return -1
			}
			return 1
		})
		for k--; k >= 0; k-- {
			// What began later is not followed from, whatever the clocks say:
			// the order of pauses is the order of the list.
			if i := v[k]; i < than && (t.Pauses[i].Lasts || t.Pauses[i].To+slack > from) {
				return i
			}
		}
		return -1
	}
	on := make([]*Branch, len(t.Pauses)) // where each pause hangs
	for i := range t.Pauses {
		p := &t.Pauses[i]
		from := t.root
		above := -1
		for _, c := range p.Causes {
			// A queue that holds less than half of what the largest one does is
			// not why the buffer is full, nor one behind a frame that is stuck.
			if !c.Stuck && (p.Causes[0].Stuck || 2*c.Bytes < p.Causes[0].Bytes) {
				break
			}
			if above = before(c.Port, p.Class, p.From, i); above >= 0 {
				break
			}
		}
		var b *Branch
		if above >= 0 {
			b = on[above]
		} else {
			b = from(p)
		}
		on[i] = b.grow(p)
	}
	weigh(t.Roots)
}

// root is the place where a pause began that followed from no other.
func (t *Trace) root(p *Pause) *Branch {
	b := Branch{At: p.By, Class: p.Class, Why: Asked}
	switch {
	case p.Short:
		b.Why, b.At.Port, b.At.To = Memory, 0, ""
	case len(p.Causes) > 0:
		b.Why, b.At = Congestion, p.Causes[0].Port
	}
	for _, r := range t.Roots {
		if r.At.same(b.At) && r.Class == b.Class && r.Why == b.Why {
			return r
		}
	}
	t.Roots = append(t.Roots, &b)
	return &b
}

// grow adds a pause below b and returns where it hangs. One that is there
// further up closes a circle: it is counted there.
func (b *Branch) grow(p *Pause) *Branch {
	for up := b; up != nil; up = up.up {
		if up.up != nil && up.At.same(p.Of) && up.By == p.By.String() {
			up.Again = true
			up.add(p)
			return up
		}
	}
	for _, c := range b.Branches {
		if c.At.same(p.Of) && c.By == p.By.String() {
			c.add(p)
			return c
		}
	}
	c := &Branch{At: p.Of, By: p.By.String(), Class: p.Class, up: b}
	c.add(p)
	b.Branches = append(b.Branches, c)
	return c
}

// weigh gives roots the sum of what began there, and sorts.
func weigh(roots []*Branch) {
	for _, r := range roots {
		for i, c := range r.Branches {
			if i == 0 || c.First < r.First {
				r.First = c.First
			}
			r.Count += c.Count
			r.Seconds += c.Seconds
			r.Longest = max(r.Longest, c.Longest)
			r.Lasting += c.Lasting
			r.Held = max(r.Held, c.Held)
		}
		sortBranches(r.Branches)
	}
	slices.SortStableFunc(roots, func(a, b *Branch) int { return cmp.Compare(b.all(), a.all()) })
}

func sortBranches(v []*Branch) {
	slices.SortStableFunc(v, func(a, b *Branch) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for _, b := range v {
		sortBranches(b.Branches)
	}
}

// all is the time of all pauses below b.
func (b *Branch) all() float64 {
	sum := 0.0
	for _, c := range b.Branches {
		sum += c.Seconds + c.all()
	}
	return sum
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Size is how many pauses and how many ports a trace has, for messages.
func (t *Trace) Size() string {
	return fmt.Sprintf("%s between %s of ports", count(len(t.Pauses), "pause", "pauses"), count(len(t.Edges), "pair", "pairs"))
}
