package results

import (
	"encoding/csv"
	"io"
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

// EncodeValues writes every value of every run in the long form that data
// frames take: a line is one value, its columns are run (the place of the run,
// from 0), name, variant, engine, seed, one column for each swept key, and
// measure, unit, value.
func EncodeValues(w io.Writer, runs []Run) error {
	swept := map[string]bool{}
	for i := range runs {
		for key := range runs[i].Params {
			swept[key] = true
		}
	}
	keys := slices.Sorted(maps.Keys(swept))
	c := csv.NewWriter(w)
	header := append(append([]string{"run", "name", "variant", "engine", "seed"}, keys...), "measure", "unit", "value")
	if err := c.Write(header); err != nil {
		return err
	}
	for i := range runs {
		r := &runs[i]
		of := []string{strconv.Itoa(i), r.Name, r.Variant(), r.Engine, strconv.FormatUint(r.Seed, 10)}
		for _, key := range keys {
			of = append(of, r.Params[key])
		}
		for _, name := range slices.Sorted(maps.Keys(r.Values)) {
			measure, unit := splitUnit(name)
			if err := c.Write(append(slices.Clone(of), measure, unit, strconv.FormatFloat(r.Values[name], 'g', -1, 64))); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
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
