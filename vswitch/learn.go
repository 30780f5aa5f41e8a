package vswitch

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"gswitch/command"
	"gswitch/frame"
	"gswitch/pipeline"
)

// MaxLearned is how many routes a switch learns: more than the Internet has in both
// families together.
const MaxLearned = 2 << 20

// MaxPrefixes is how many different prefixes a switch learns during its lifetime: each
// has counters, which remain when the prefix is withdrawn, so that announcements of ever
// new prefixes could exhaust memory.
const MaxPrefixes = 2 * MaxLearned

// LearnedUse returns how many routes are learned now, and how many different prefixes
// have had routes, including those of the configuration. It must not run concurrently
// with changes of the switch.
func (sw *Switch) LearnedUse() (routes, prefixes int) {
	if l := sw.learning; l != nil {
		return l.held, sw.ids.routes.len()
	}
	return len(sw.learned), sw.ids.routes.len()
}

// LearnRoutes adds routes that routing daemons found, and withdraws others, all in one
// build of the table. A configured route hides the learned one with the same prefix.
// Learned routes survive an Apply.
type LearnRoutes struct {
	Reset  bool // withdraw everything that was learned before
	Set    []Route
	Delete []netip.Prefix // prefixes that were not learned are ignored

	// Unused is set when the change is prepared: the number of routes in Set that lead
	// nowhere, because no network of the switch has their next hop.
	Unused int
	// Refused is set when the change is prepared: the number of routes in Set that exceed
	// MaxPrefixes.
	Refused int
}

// learning is a change of learned routes that was carried out, and is not yet in the map
// of them: a worker has no time to enter thousands of routes there.
type learning struct {
	gone []netip.Prefix
	set  []Route
	held int // routes that are learned with it
}

// learnedRoutes returns all learned routes. Only preparations of changes may call it.
func (sw *Switch) learnedRoutes() map[netip.Prefix]Route {
	if l := sw.learning; l != nil {
		for _, prefix := range l.gone {
			delete(sw.learned, prefix.Masked())
		}
		for _, r := range l.set {
			sw.learned[r.Prefix.Masked()] = r
		}
		sw.learning = nil
	}
	return sw.learned
}

// newLearning returns the change that withdraws some of the learned routes and sets
// others.
func newLearning(learned map[netip.Prefix]Route, gone []netip.Prefix, set []Route) *learning {
	l := &learning{slices.Clone(gone), slices.Clone(set), len(learned)}
	after := make(map[netip.Prefix]bool, len(gone)+len(set)) // whether it is learned then
	change := func(prefix netip.Prefix, held bool) {
		was, ok := after[prefix]
		if !ok {
			_, was = learned[prefix]
		}
		if after[prefix] = held; was && !held {
			l.held--
		} else if held && !was {
			l.held++
		}
	}
	for _, prefix := range gone {
		change(prefix.Masked(), false)
	}
	for _, r := range set {
		change(r.Prefix.Masked(), true)
	}
	return l
}

func (c *LearnRoutes) prepare(sw *Switch) (func(frame.Time), error) {
	learned := sw.learnedRoutes()
	if held := len(learned); !c.Reset && held+len(c.Set) > MaxLearned || len(c.Set) > MaxLearned {
		return nil, fmt.Errorf("switch %s: %d learned routes and %d more are more than %d", sw.program.Load().Config.Name, held, len(c.Set), MaxLearned)
	}
	gone := c.Delete
	if c.Reset {
		again := make(map[netip.Prefix]bool, len(c.Set))
		for _, r := range c.Set {
			again[r.Prefix.Masked()] = true
		}
		gone = slices.DeleteFunc(slices.SortedFunc(maps.Keys(learned), comparePrefixes), func(p netip.Prefix) bool { return again[p] })
	}
	commit, err := sw.update(func(p *Program) (err error) {
		c.Unused, c.Refused, err = p.learn(c.Set, gone, sw.ids.routes)
		return err
	})
	if err != nil {
		return nil, err
	}
	next := newLearning(learned, gone, c.Set)
	return func(now frame.Time) {
		commit(now)
		sw.learning = next
	}, nil
}

// learnAgain enters all learned routes into a program that was rebuilt.
func (sw *Switch) learnAgain(p *Program) error {
	learned := sw.learnedRoutes()
	if len(learned) == 0 {
		return nil
	}
	set := make([]Route, 0, len(learned))
	for _, prefix := range slices.SortedFunc(maps.Keys(learned), comparePrefixes) {
		set = append(set, learned[prefix])
	}
	_, _, err := p.learn(set, nil, sw.ids.routes)
	return err
}

func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// learn changes learned routes in one build of the table. It returns how many routes of
// set lead nowhere, and how many exceed the limit of prefixes.
func (p *Program) learn(set []Route, gone []netip.Prefix, ids *idSet) (unused, refused int, err error) {
	p.dropUnusedSets()
	rt := &p.routing
	// Copy once for all of them: workers read the slices and maps of earlier programs.
	rt.entries, rt.sets, rt.fresh = slices.Clone(rt.entries), maps.Clone(rt.sets), true
	defer func() { rt.fresh = false }()
	var in []pipeline.Route
	var out []netip.Prefix
	withdraw := func(prefix netip.Prefix) {
		if id, ok := rt.table.Get(prefix); ok && rt.entries[id].learned {
			out = append(out, prefix)
		}
	}
	for _, r := range set {
		prefix := r.Prefix.Masked()
		if id, ok := rt.table.Get(prefix); ok && !rt.entries[id].learned {
			continue // the switch's own, or configured
		}
		e, err := p.resolve(r)
		if err != nil {
			unused++
			withdraw(prefix)
			continue
		}
		e.learned = true
		name := prefix.String()
		if ids.full(name) {
			refused++
			continue // it has no such route to remove
		}
		id := ids.get(name)
		for len(rt.entries) <= int(id) {
			rt.entries = append(rt.entries, routeEntry{})
		}
		rt.entries[id] = e
		in = append(in, pipeline.Route{Prefix: prefix, Value: id})
	}
	for _, prefix := range gone {
		withdraw(prefix.Masked())
	}
	table, err := rt.table.Update(in, out)
	if err != nil {
		return unused, refused, fmt.Errorf("switch %s: %w", p.Config.Name, err)
	}
	rt.table = table
	return unused, refused, nil
}

// Encode implements Change.
func (c *LearnRoutes) Encode(b []byte) []byte {
	b = append(b, learnRoutesKind, 0)
	if c.Reset {
		b[len(b)-1] = 1
	}
	b = binary.AppendUvarint(b, uint64(len(c.Set)))
	for i := range c.Set {
		b = appendRoute(b, &c.Set[i])
	}
	b = binary.AppendUvarint(b, uint64(len(c.Delete)))
	for _, p := range c.Delete {
		b = command.AppendPrefix(b, p)
	}
	return b
}

func decodeLearnRoutes(d *command.Decoder) Change {
	c := &LearnRoutes{Reset: d.Byte(1) == 1}
	for n := d.Uvarint(MaxLearned); n > 0 && !d.Bad(); n-- {
		c.Set = append(c.Set, decodeRoute(d))
	}
	for n := d.Uvarint(MaxLearned); n > 0 && !d.Bad(); n-- {
		c.Delete = append(c.Delete, d.Prefix())
	}
	return c
}
