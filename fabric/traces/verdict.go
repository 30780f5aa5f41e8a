package traces

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"gswitch/frame"
	"gswitch/mirror"
)

// Kind is what became of a packet.
type Kind string

// Kinds.
const (
	Delivered Kind = "delivered" // the last switch is one that hands it to its destination
	Dropped   Kind = "dropped"   // a switch says that it dropped it
	Lost      Kind = "lost"      // it was seen last where it should have gone on
	Looped    Kind = "looped"    // it came to a switch again
)

// Kinds are all kinds, in the order in which they are listed.
var Kinds = []Kind{Delivered, Dropped, Lost, Looped}

// Verdict is what is said of a trace.
type Verdict struct {
	Kind    Kind       `json:"kind"`
	Flow    string     `json:"flow"`
	Src     string     `json:"-"` // address, as in Flow
	Dst     string     `json:"-"`
	ID      uint16     `json:"id"` // identification of the IP packet
	First   frame.Time `json:"first_ns"`
	Path    []string   `json:"path"`
	Delay   frame.Time `json:"delay_ns"`                 // from the first switch to the last
	At      string     `json:"at,omitempty"`             // dropped: by whom; lost: where it was seen last
	Reason  string     `json:"reason,omitempty"`         // dropped: why
	Next    []string   `json:"next,omitempty"`           // lost: who should have seen it next, one of these
	Loop    []string   `json:"loop,omitempty"`           // looped: the switches that saw it again
	Missing int        `json:"missing_copies,omitempty"` // hops whose copy did not come
	Probe   uint32     `json:"probe,omitempty"`          // its series
}

// Verdict judges a trace.
func (b *Book) Verdict(t *mirror.Trace) Verdict {
	v := Verdict{Kind: Delivered, Flow: flow(&t.Key), Src: netip.AddrFrom4(t.Key.Src).String(), Dst: netip.AddrFrom4(t.Key.Dst).String(), ID: t.Key.ID, Missing: t.Gaps, Probe: t.Probe}
	hops := t.Hops
	if len(hops) == 0 {
		hops = t.Dropped
	}
	v.First = hops[0].At
	for i := range t.Hops {
		v.Path = append(v.Path, b.net.name(t.Hops[i].Switch))
		v.Delay = max(v.Delay, t.Hops[i].At-v.First)
	}
	switch {
	case len(t.Loop) > 0:
		v.Kind = Looped
		for _, s := range t.Loop {
			v.Loop = append(v.Loop, b.net.name(s))
		}
		slices.Sort(v.Loop)
	case len(t.Dropped) > 0:
		d := &t.Dropped[0]
		v.Kind, v.At, v.Reason = Dropped, b.net.name(d.Switch), d.Reason.String()
	case t.Lost:
		last := &t.Hops[len(t.Hops)-1]
		dst := last.OuterDst
		if t.Probe != 0 && last.Depth > 0 && b.net.Last(last.Switch, dst) {
			dst = last.Then // this switch has taken a header off
		}
		v.Kind, v.At, v.Next = Lost, b.net.name(last.Switch), b.net.next(last.Switch, dst)
	}
	return v
}

// Verdicts are those of all traces, by their beginning.
func (b *Book) Verdicts() []Verdict {
	v := make([]Verdict, 0, len(b.Done))
	for _, t := range b.Done {
		v = append(v, b.Verdict(t))
	}
	slices.SortStableFunc(v, func(a, b Verdict) int { return cmp.Compare(a.First, b.First) })
	return v
}

// Suspect is a place where packets end.
type Suspect struct {
	Name   string   `json:"name"`
	Reason string   `json:"reason,omitempty"` // that the switch itself reports
	Traces float64  `json:"traces"`           // packets that end here; shared among those that one may have gone to
	After  []string `json:"after,omitempty"`  // where they were seen last
	To     int      `json:"destinations"`     // of these packets
	Flow   string   `json:"example"`
}

// Suspects says where packets are lost, most first (section 5.2 of the paper): what
// a switch reports itself is certain; of the others the hop behind the last that saw a
// packet is suspected, and where there are several, each with its share.
func (b *Book) Suspects() []Suspect {
	type key struct{ name, reason string }
	at := map[key]*Suspect{}
	dsts := map[key]map[[4]byte]bool{}
	add := func(k key, share float64, t *mirror.Trace, v *Verdict, after string) {
		s := at[k]
		if s == nil {
			s = &Suspect{Name: k.name, Reason: k.reason, Flow: v.Flow}
			at[k], dsts[k] = s, map[[4]byte]bool{}
		}
		s.Traces += share
		dsts[k][t.Key.Dst] = true
		if after != "" && !slices.Contains(s.After, after) {
			s.After = append(s.After, after)
		}
	}
	for _, t := range b.Done {
		v := b.Verdict(t)
		switch v.Kind {
		case Dropped:
			add(key{v.At, v.Reason}, 1, t, &v, "")
		case Lost:
			for _, n := range v.Next {
				add(key{n, ""}, 1/float64(len(v.Next)), t, &v, v.At)
			}
		}
	}
	var out []Suspect
	for k, s := range at {
		s.To = len(dsts[k])
		slices.Sort(s.After)
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(b.Traces, a.Traces), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// Circle is switches that packets come to again.
type Circle struct {
	Switches []string `json:"switches"`
	Traces   int      `json:"traces"`
	Visits   float64  `json:"visits"` // to each of them, of a packet, in the mean
	Flow     string   `json:"example"`
}

// Circles are the loops, those of most packets first.
func (b *Book) Circles() []Circle {
	at := map[string]*Circle{}
	for _, t := range b.Done {
		v := b.Verdict(t)
		if v.Kind != Looped {
			continue
		}
		name := strings.Join(v.Loop, " ")
		c := at[name]
		if c == nil {
			c = &Circle{Switches: v.Loop, Flow: v.Flow}
			at[name] = c
		}
		visits := 0
		for _, s := range v.Path {
			if slices.Contains(v.Loop, s) {
				visits++
			}
		}
		c.Traces++
		c.Visits += (float64(visits)/float64(len(v.Loop)) - c.Visits) / float64(c.Traces)
	}
	var out []Circle
	for _, c := range at {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Circle) int {
		return cmp.Or(cmp.Compare(b.Traces, a.Traces), slices.Compare(a.Switches, b.Switches))
	})
	return out
}

// Link is one direction of a link, as traces saw it.
type Link struct {
	From    string     `json:"from"`
	To      string     `json:"to"`
	Packets int        `json:"packets"`
	Mean    frame.Time `json:"mean_ns"` // from the arrival at one switch to that at the next
	Max     frame.Time `json:"max_ns"`
	Spread  frame.Time `json:"spread_ns"` // the largest beyond the least
}

// passages are the links between two switches that a packet passed: its hop at either end.
func passages(t *mirror.Trace) iter.Seq2[*mirror.Hop, *mirror.Hop] {
	return func(yield func(x, y *mirror.Hop) bool) {
		for i := 1; i < len(t.Hops); i++ {
			x, y := &t.Hops[i-1], &t.Hops[i]
			if x.Depth != y.Depth || x.TTL != y.TTL+1 {
				continue // there was one between
			}
			if !yield(x, y) {
				return
			}
		}
	}
}

// Passage is a packet on a link between two switches.
type Passage struct {
	From, To string
	Bytes    uint16     // of its IP packet
	Opens    bool       // a connection of TCP
	Took     frame.Time // from the arrival at one switch to that at the other, by their stamps; < 0 without
}

// Passages calls f with each link between two switches of the network that a packet passed.
func (b *Book) Passages(t *mirror.Trace, f func(Passage)) {
	for x, y := range passages(t) {
		if !b.net.linked(x.Switch, y.Switch) {
			continue
		}
		p := Passage{From: b.net.name(x.Switch), To: b.net.name(y.Switch), Bytes: y.Bytes, Opens: y.Opens, Took: -1}
		if x.At > 0 && y.At > 0 {
			p.Took = max(y.At-x.At, 0) // clocks may be apart by more than a link takes
		}
		f(p)
	}
}

// Links are the links between switches, the slowest first. Times compare the stamps
// of two switches: they are right where their clocks are.
func (b *Book) Links() []Link {
	type key struct{ from, to netip.Addr }
	type sums struct {
		n             int
		sum, low, top frame.Time
	}
	at := map[key]*sums{}
	for _, t := range b.Done {
		for x, y := range passages(t) {
			d := y.At - x.At
			s := at[key{x.Switch, y.Switch}]
			if s == nil {
				s = &sums{low: d, top: d}
				at[key{x.Switch, y.Switch}] = s
			}
			s.n, s.sum, s.low, s.top = s.n+1, s.sum+d, min(s.low, d), max(s.top, d)
		}
	}
	var out []Link
	for k, s := range at {
		out = append(out, Link{b.net.name(k.from), b.net.name(k.to), s.n, s.sum / frame.Time(s.n), s.top, s.top - s.low})
	}
	slices.SortFunc(out, func(a, b Link) int {
		return cmp.Or(cmp.Compare(b.Spread, a.Spread), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return out
}

// Share is how a switch's packets divide among the ways to other switches that it
// has for them.
type Share struct {
	Switch  string  `json:"switch"`
	Ways    int     `json:"ways"`
	Packets int     `json:"packets"`
	Ratio   float64 `json:"most_to_mean"`
	Most    string  `json:"most"`
	Least   string  `json:"least"`
}

// Shares judges, of each switch that has several next hops for packets, how evenly
// they take them (section 5.4 of the paper), the most uneven first. Packets that
// have one next hop do not count.
func (b *Book) Shares() []Share {
	taken := map[string]map[string]int{}
	for _, t := range b.Done {
		for i := 1; i < len(t.Hops); i++ {
			x, y := &t.Hops[i-1], &t.Hops[i]
			ways := b.net.next(x.Switch, x.OuterDst)
			if x.Depth != y.Depth || x.TTL != y.TTL+1 || len(ways) < 2 {
				continue
			}
			from := b.net.name(x.Switch)
			if taken[from] == nil {
				taken[from] = map[string]int{}
			}
			for _, w := range ways {
				taken[from][w] += 0 // it could have been taken
			}
			taken[from][b.net.name(y.Switch)]++
		}
	}
	var out []Share
	for name, ways := range taken {
		s := Share{Switch: name, Ways: len(ways)}
		names := slices.Sorted(maps.Keys(ways))
		s.Most, s.Least = names[0], names[0]
		for _, w := range names {
			s.Packets += ways[w]
			if ways[w] > ways[s.Most] {
				s.Most = w
			}
			if ways[w] < ways[s.Least] {
				s.Least = w
			}
		}
		s.Ratio = float64(ways[s.Most]) * float64(s.Ways) / float64(s.Packets)
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Share) int { return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), cmp.Compare(a.Switch, b.Switch)) })
	return out
}

// Pauser says which port pauses which.
type Pauser struct {
	Who     string     `json:"who"`
	Whom    string     `json:"whom"`
	Pauses  int        `json:"pauses"`
	Resumes int        `json:"resumes"`
	First   frame.Time `json:"first_ns"`
	Last    frame.Time `json:"last_ns"`
}

// Pausers says which port paused which, those with most pauses first. A pause that one
// switch sent and the next one saw counts where it was seen.
func (b *Book) Pausers() []Pauser {
	type key struct {
		who, whom string
		sent      bool
	}
	at := map[key]*Pauser{}
	for _, p := range b.Pauses {
		k := key{p.Port, p.Switch, p.Sent}
		if p.Sent {
			k.who, k.whom = p.Switch, p.Port
		}
		x := at[k]
		if x == nil {
			x = &Pauser{Who: k.who, Whom: k.whom, First: p.At}
			at[k] = x
		}
		if p.Classes != 0 {
			x.Pauses++
		}
		if p.Resumed != 0 && p.Classes == 0 {
			x.Resumes++
		}
		x.First, x.Last = min(x.First, p.At), max(x.Last, p.At)
	}
	var out []Pauser
	for k, p := range at {
		if k.sent && at[key{k.who, k.whom, false}] != nil {
			continue
		}
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b Pauser) int {
		return cmp.Or(cmp.Compare(b.Pauses, a.Pauses), cmp.Compare(a.Who, b.Who), cmp.Compare(a.Whom, b.Whom))
	})
	return out
}
