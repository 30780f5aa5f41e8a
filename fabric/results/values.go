package results

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Variant names a run without what a sweep set: "hpcc" of "hpcc, load=0.5".
func (r *Run) Variant() string {
	var parts []string
	for part := range strings.SplitSeq(r.Name, ", ") {
		key, value, set := strings.Cut(part, "=")
		if v, swept := r.Params[key]; !set || !swept || v != value {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// values has a row for every value of every run: run (its place, from 0), name,
// variant, engine, seed, one column for each swept key, and measure, unit, value.
func values(runs []Run) *tidy {
	keys := sweptKeys(runs)
	t := &tidy{columns: slices.Concat([]column{whole("run"), text("name"), text("variant"), text("engine"), text("seed")}, texts(keys),
		[]column{text("measure"), text("unit"), real("value")})}
	for i := range runs {
		r := &runs[i]
		of := []any{int64(i), r.Name, r.Variant(), r.Engine, strconv.FormatUint(r.Seed, 10)} // a seed may be above int64
		for _, key := range keys {
			of = append(of, r.Params[key])
		}
		for _, name := range slices.Sorted(maps.Keys(r.Values)) {
			measure, unit := splitUnit(name)
			t.rows = append(t.rows, append(slices.Clone(of), measure, unit, r.Values[name]))
		}
	}
	return t
}

// summary has a row for every value of a variant over its seeds: variant,
// engine, one column for each swept key, measure, unit, seeds (how many), mean,
// the interval from low to high that holds the mean of all seeds with 95 %
// (none for fewer than three), min, max. A value that some of the runs do not
// have is of those that have it.
func summary(runs []Run) *tidy {
	keys := sweptKeys(runs)
	optional := func(c column) column { c.optional = true; return c }
	t := &tidy{columns: slices.Concat([]column{text("variant"), text("engine")}, texts(keys),
		[]column{text("measure"), text("unit"), whole("seeds"), real("mean"), optional(real("low")), optional(real("high")), real("min"), real("max")})}
	for _, same := range bySettings(runs, keys) {
		all := map[string][]float64{}
		for _, r := range same {
			for name, v := range r.Values {
				all[name] = append(all[name], v)
			}
		}
		of := []any{same[0].Variant(), same[0].Engine}
		for _, key := range keys {
			of = append(of, same[0].Params[key])
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			measure, unit := splitUnit(name)
			v := all[name]
			e := NewEstimate(name, v)
			var low, high any
			if e.Low != nil {
				low, high = *e.Low, *e.High
			}
			t.rows = append(t.rows, append(slices.Clone(of), measure, unit, int64(e.Seeds), e.Mean, low, high, slices.Min(v), slices.Max(v)))
		}
	}
	return t
}

// bySettings puts runs together that differ in their seeds alone, in the order
// of the first of each.
func bySettings(runs []Run, keys []string) (v [][]*Run) {
	at := map[string]int{}
	for i := range runs {
		r := &runs[i]
		id := []string{r.Variant(), r.Engine}
		for _, key := range keys {
			id = append(id, r.Params[key])
		}
		name := strings.Join(id, "\x00")
		k, ok := at[name]
		if !ok {
			k = len(v)
			at[name] = k
			v = append(v, nil)
		}
		v[k] = append(v[k], r)
	}
	return v
}

// splitUnit divides fct_p99_seconds into fct_p99 and seconds; values without a
// unit are ratios.
func splitUnit(name string) (measure, unit string) {
	i := strings.LastIndexByte(name, '_')
	if i >= 0 && slices.Contains([]string{"seconds", "bytes", "bps", "share", "total"}, name[i+1:]) {
		return name[:i], name[i+1:]
	}
	return name, ""
}
