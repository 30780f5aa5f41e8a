package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gswitch/fabric/traces"
)

// CountRequest is a request to a collector: the counter to add, the name of the one to
// remove or, with neither, a query.
type CountRequest struct {
	Add    *Counter `json:"add,omitempty"`
	Remove string   `json:"remove,omitempty"`
}

// CountState lists the counters.
type CountState struct {
	Counters []Counter `json:"counters"`
	// Refused says why a request was refused. Nothing has changed then.
	Refused string `json:"refused,omitempty"`
}

const (
	countSubject   = "gswitch.count"
	countedSubject = "gswitch.counted"
	countGroup     = "count"    // queue group of the collectors
	countKey       = "counters" // in the bucket of lanes
)

// AnswerCounted answers queries for what this collector has counted, until ctx ends.
func (s *Store) AnswerCounted(ctx context.Context, m *Metrics) error {
	return s.answer(ctx, countedSubject, "", m.counted)
}

// AnswerCount adds and removes counters on request until ctx ends. Each request is
// handled by one of the running collectors. Refusals are counted.
func (s *Store) AnswerCount(ctx context.Context, n *Network, m *Metrics) error {
	return s.answer(ctx, countSubject, countGroup, s.counter(n, m))
}

func (s *Store) counter(n *Network, m *Metrics) func(context.Context, []byte) any {
	return decided(m, "counters", func(ctx context.Context, r *CountRequest) (*CountState, error) { return s.changeCounters(ctx, n, r) })
}

func (st *CountState) refused() *string { return &st.Refused }

// AskCount sends a request to the running collectors. Repeating a request changes
// nothing.
func (s *Store) AskCount(ctx context.Context, r *CountRequest) (*CountState, error) {
	return ask[CountState](ctx, s, countSubject, r)
}

// changeCounters carries out a request.
func (s *Store) changeCounters(ctx context.Context, n *Network, r *CountRequest) (st *CountState, err error) {
	if r.Add != nil && r.Remove != "" {
		return nil, errors.New("a counter is added or removed: ask for one at a time")
	}
	// Before any change, so that an error means that nothing has changed.
	counted, err := askAll[[]Counter](ctx, s, countedSubject)
	if err != nil {
		return nil, err
	}
	var fixed []Counter // of all collectors
	for _, v := range counted {
		for _, c := range *v {
			if c.Since.IsZero() {
				fixed = append(fixed, c)
			}
		}
	}
	var all []Counter
	refused := ""
	err = amend(ctx, s, countKey, func(v *[]Counter) (changed bool, err error) {
		changed, err = n.change(v, fixed, r)
		refused, all = "", *v
		if err != nil {
			refused = err.Error()
		}
		return changed && err == nil, nil
	})
	if err != nil {
		return nil, err
	}
	st = &CountState{Refused: refused}
	for i := range all {
		st.add(&all[i])
	}
	for _, v := range counted {
		for i := range *v {
			// One that was just removed may still be counted.
			if c := &(*v)[i]; c.Since.IsZero() || slices.ContainsFunc(all, c.same) {
				st.add(c)
			}
		}
	}
	slices.SortFunc(st.Counters, func(a, b Counter) int { return strings.Compare(a.id(), b.id()) })
	return st, nil
}

// add adds the counts of a collector.
func (st *CountState) add(c *Counter) {
	i := slices.IndexFunc(st.Counters, func(o Counter) bool { return c.same(o) })
	if i < 0 {
		st.Counters = append(st.Counters, Counter{Name: c.Name, Filter: c.Filter, Since: c.Since})
		i = len(st.Counters) - 1
	}
	st.Counters[i].Packets += c.Packets
	st.Counters[i].Bytes += c.Bytes
}

// change adds a counter to the stored ones or removes one, or says why not. fixed are
// those of the collectors' command lines.
func (n *Network) change(v *[]Counter, fixed []Counter, r *CountRequest) (changed bool, err error) {
	named := func(name string) func(Counter) bool { return func(c Counter) bool { return c.Name == name } }
	switch {
	case r.Remove != "":
		at := slices.IndexFunc(*v, named(r.Remove))
		switch {
		case at < 0 && slices.ContainsFunc(fixed, named(r.Remove)):
			return false, fmt.Errorf("the counter %s is one of --count: start the collector without it", r.Remove)
		case at < 0:
			return false, fmt.Errorf("there is no counter %q", r.Remove)
		}
		*v = slices.Delete(*v, at, at+1)
		return true, nil
	case r.Add == nil:
		return false, nil
	}
	c := Counter{Name: r.Add.Name, Filter: r.Add.Filter, Since: time.Now().UTC()}
	if at := slices.IndexFunc(*v, named(c.Name)); at >= 0 {
		if (*v)[at].Filter == c.Filter {
			return false, nil
		}
		return false, fmt.Errorf("there is a counter %s already, of %q: remove it first", c.Name, (*v)[at].Filter)
	}
	if slices.ContainsFunc(fixed, named(c.Name)) {
		return false, fmt.Errorf("there are two counters %s: one is of --count of a collector", c.Name)
	}
	// Each collector has its fixed ones in addition.
	with := counters{all: *v}
	if now := n.counters.Load(); now != nil {
		with.all = slices.Concat(now.all[:now.fixed], *v)
	}
	if err := with.add(traces.New(n.plan), &c); err != nil {
		return false, err
	}
	*v = append(*v, c)
	return true, nil
}

// counted returns what was counted here.
func (m *Metrics) counted(context.Context, []byte) any {
	sum, now := m.sum()
	v := []Counter{}
	if now == nil {
		return v
	}
	for _, c := range now.all {
		c.Packets, c.Bytes = sum[Stat{countedPackets, c.key}], sum[Stat{countedBytes, c.key}]
		v = append(v, c)
	}
	return v
}

// adoptCounters adopts the stored counters for the network of this collector. An error
// with them does not stop anything.
func (w *Workers) adoptCounters(ctx context.Context) {
	v, revision, err := agreed[[]Counter](ctx, w.Store, countKey)
	if err != nil {
		if ctx.Err() == nil && err.Error() != w.unread {
			w.unread = err.Error()
			w.Log.Warn("the counters of gcollect count cannot be read; it is tried again", "error", err)
		}
		return
	}
	w.unread = ""
	// A server that lags behind may return an older state, or none.
	if revision <= w.counters {
		return
	}
	w.counters = revision
	if err = w.Network.SetCounters(*v); err == nil {
		w.unknown = ""
	} else if err.Error() != w.unknown {
		w.unknown = err.Error()
		w.Log.Warn("not all counters of gcollect count are counted here; their filters need the network that they were added with (--fabric)", "error", err)
	}
}
