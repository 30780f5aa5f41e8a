package collect

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"gswitch/fabric/traces"
	"gswitch/frame"
	"gswitch/mirror"
)

// Counter counts the traced packets that match a filter (AddCounter in table 2 of
// Everflow).
type Counter struct {
	Name   string    `json:"name"`
	Filter string    `json:"filter"`         // mirror.ParseFilter, with the names of the network's switches
	Since  time.Time `json:"since,omitzero"` // UTC; zero: a fixed one, from the command line (--count) of its collector
	// Packets and Bytes are the totals of the running collectors.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`

	filter *mirror.Filter
	key    string // its id
}

// id identifies a counter: one that is added again under the same name starts at zero.
func (c *Counter) id() string {
	if c.Since.IsZero() {
		return c.Name
	}
	return fmt.Sprintf("%s@%d", c.Name, c.Since.UnixNano())
}

// same reports whether two counters are the same.
func (c *Counter) same(o Counter) bool {
	return c.Name == o.Name && c.Filter == o.Filter && c.Since.Equal(o.Since)
}

// counterName returns the labels of a metric.
func counterName(id string) []string {
	name, _, _ := strings.Cut(id, "@")
	return []string{name}
}

// counters are the counters of a network. Analyses see a change with the next packet.
type counters struct {
	fixed int // number of those from --count, which come first
	all   []Counter
}

// has reports whether there is a counter with an id.
func (v *counters) has(id string) bool {
	return v != nil && slices.ContainsFunc(v.all, func(c Counter) bool { return c.key == id })
}

// gone reports whether a count belongs to a counter that was removed.
func (v *counters) gone(k Stat) bool {
	return (k.Family == countedPackets || k.Family == countedBytes) && !v.has(k.Label)
}

const (
	// mostCounters is the largest number of counters: each examines every trace.
	mostCounters = 256
	// mostFilter is the largest length of a filter in bytes.
	mostFilter = 1 << 10
)

var isName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// check parses the filter of a counter, with the switch names of the network.
func check(book *traces.Book, c *Counter) (err error) {
	switch {
	case !isName.MatchString(c.Name):
		return fmt.Errorf("the counter %q: its name has letters, digits, _ and -, at most 64", c.Name)
	case len(c.Filter) > mostFilter:
		return fmt.Errorf("the counter %s: a filter of more than %d bytes", c.Name, mostFilter)
	}
	if c.filter, err = book.Filter(c.Filter); err != nil {
		return fmt.Errorf("the counter %s: %w", c.Name, err)
	}
	return nil
}

// Count adds a fixed counter. It must be called before SetCounters.
func (n *Network) Count(name, filter string) error {
	v := counters{}
	if now := n.counters.Load(); now != nil {
		v = *now
	}
	c := Counter{Name: name, Filter: filter}
	if err := v.add(traces.New(n.plan), &c); err != nil {
		return err
	}
	v.fixed++
	n.counters.Store(&v)
	return nil
}

// add adds a counter.
func (v *counters) add(book *traces.Book, c *Counter) error {
	switch err := check(book, c); {
	case err != nil:
		return err
	case len(v.all) >= mostCounters:
		return fmt.Errorf("the counter %s: there may be %d", c.Name, mostCounters)
	case slices.ContainsFunc(v.all, func(o Counter) bool { return o.Name == c.Name }):
		return fmt.Errorf("there are two counters %s", c.Name)
	}
	c.key = c.id()
	v.all = append(slices.Clip(v.all), *c)
	return nil
}

// SetCounters replaces all counters but the fixed ones. The error names those that this
// collector cannot have, since it was started with another network or with a fixed
// counter of the same name.
func (n *Network) SetCounters(list []Counter) error {
	v, errs := counters{}, []error(nil)
	if now := n.counters.Load(); now != nil {
		v.fixed, v.all = now.fixed, now.all[:now.fixed]
	}
	book := traces.New(n.plan)
	for _, c := range list {
		errs = append(errs, v.add(book, &c))
	}
	n.counters.Store(&v)
	return errors.Join(errs...)
}

// count adds a packet to the counters of the links that it passed, and to those whose
// filter it matches (Everflow section 4.2.2: analyzers count the copied packets by link
// and by filter).
func (a *Analysis) count(t *mirror.Trace) {
	a.book.Passages(t, func(p traces.Passage) {
		link := p.From + ">" + p.To
		a.stats[Stat{tracedLinks, link}]++
		a.stats[Stat{tracedBytes, link}] += uint64(p.Bytes)
		if p.Opens {
			a.stats[Stat{tracedFlows, link}]++
		}
		if p.Took >= 0 {
			a.stats[Stat{tracedDelays, link + " " + delayClass(p.Took)}]++
		}
	})
	now := a.network.counters.Load()
	if now != a.counters {
		a.counters = now
		maps.DeleteFunc(a.stats, func(k Stat, _ uint64) bool { return now.gone(k) })
	}
	if now == nil {
		return
	}
	for i := range now.all {
		if c := &now.all[i]; c.filter.Match(t) {
			a.stats[Stat{countedPackets, c.key}]++
			a.stats[Stat{countedBytes, c.key}] += uint64(bytesOf(t))
		}
	}
}

// bytesOf returns the length of a packet where it was first seen.
func bytesOf(t *mirror.Trace) uint16 {
	for _, v := range [][]mirror.Hop{t.Hops, t.Dropped} {
		if len(v) > 0 {
			return v[0].Bytes
		}
	}
	return 0
}

// delayClass returns one of the four delay classes of a link. The paper has four and does
// not define them.
func delayClass(d frame.Time) string {
	switch {
	case d < 100*frame.Microsecond:
		return "100us"
	case d < 500*frame.Microsecond:
		return "500us"
	case d < frame.Millisecond:
		return "1ms"
	}
	return "more"
}
