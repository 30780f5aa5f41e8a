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
func (sw *Switch) LearnedUse() (routes, prefixes int) { return len(sw.learned), sw.ids.routes.len() }

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

func (c *LearnRoutes) prepare(sw *Switch) (func(frame.Time), error) {
	if held := len(sw.learned); !c.Reset && held+len(c.Set) > MaxLearned || len(c.Set) > MaxLearned {
		return nil, fmt.Errorf("switch %s: %d learned routes and %d more are more than %d", sw.program.Load().Config.Name, held, len(c.Set), MaxLearned)
	}
	gone := c.Delete
	if c.Reset {
		again := make(map[netip.Prefix]bool, len(c.Set))
		for _, r := range c.Set {
			again[r.Prefix.Masked()] = true
		}
		gone = slices.DeleteFunc(slices.SortedFunc(maps.Keys(sw.learned), comparePrefixes), func(p netip.Prefix) bool { return again[p] })
	}
	commit, err := sw.update(func(p *Program) (err error) {
		c.Unused, c.Refused, err = p.learn(c.Set, gone, sw.ids.routes)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, prefix := range gone {
		delete(sw.learned, prefix.Masked())
	}
	for _, r := range c.Set {
		sw.learned[r.Prefix.Masked()] = r
	}
	return commit, nil
}

// learnAgain enters all learned routes into a program that was rebuilt.
func (sw *Switch) learnAgain(p *Program) error {
	if len(sw.learned) == 0 {
		return nil
	}
	set := make([]Route, 0, len(sw.learned))
	for _, prefix := range slices.SortedFunc(maps.Keys(sw.learned), comparePrefixes) {
		set = append(set, sw.learned[prefix])
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
