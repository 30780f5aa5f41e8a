// Package feature is what additions to switches and to hosts have in common:
// options by name, and counters that describe themselves.
package feature

import (
	"maps"
	"strings"
)

// Counter is a number that a feature counts, or a measure that it takes.
type Counter struct {
	Name   string   // as it is exported, without the prefix of the exporter
	Help   string   // one sentence
	Labels []string // besides those of the place: switch and port, or host
	Values []string // of the last label, where it distinguishes kinds of what is counted
	Gauge  bool     // a measure, which may fall
	// Was is what Name was in the last version: both are reported for one version.
	Was string
	// Known has by kind the names of Key that are not made of Name; by "" that of a counter without kinds.
	Known map[string]string
}

// Key names the counter where several are summed up: of the kinds that the last
// label distinguishes each has its own, "" is for those that have none.
func (c *Counter) Key(kind string) string {
	switch known := c.Known[kind]; {
	case known != "":
		return known
	case kind == "":
		return c.Name
	}
	name, total := strings.CutSuffix(c.Name, "_total")
	name += "_" + strings.ReplaceAll(kind, "-", "_")
	if total {
		name += "_total"
	}
	return name
}

// Keys returns the names under which the counter is summed up.
func (c *Counter) Keys() []string {
	if c.Values == nil {
		return []string{c.Key("")}
	}
	keys := make([]string, len(c.Values))
	for i, kind := range c.Values {
		keys[i] = c.Key(kind)
	}
	return keys
}

// Sum enters a value with its labels in a sum by Keys; of a gauge the largest
// counts.
func (c *Counter) Sum(sum map[string]float64, v float64, labels []string) {
	kind := ""
	if c.Values != nil {
		kind = labels[len(labels)-1]
	}
	c.Add(sum, c.Key(kind), v)
}

// Add enters a value at one of the Keys.
func (c *Counter) Add(sum map[string]float64, key string, v float64) {
	if c.Gauge {
		sum[key] = max(sum[key], v)
	} else {
		sum[key] += v
	}
	if c.Was != "" && key == c.Name {
		sum[c.Was] = sum[key]
	}
}

// Options are the options of features, by the name of each, in a type of its
// package.
type Options map[string]any

// With returns the options with those of one feature set to v.
func (o Options) With(name string, v any) Options {
	o = maps.Clone(o)
	if o == nil {
		o = Options{}
	}
	o[name] = v
	return o
}
