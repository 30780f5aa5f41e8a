package report

import (
	"maps"
	"slices"
	"strings"

	"gswitch/fabric/results"
)

// togetherRuns is how many differently named runs share a drawing; beyond that
// there is one for each value of the sweep, or for so many runs.
const togetherRuns = 8

// design says which runs are drawn together, and how each looks everywhere.
// Runs that differ in the seed alone have one name and one look.
type design struct {
	runs   []results.Run
	labels []string // of runs, unique
	look   []style  // of runs
	facets []facet

	// Runs are groups[groupOf[i]] along axis, and kinds[kindOf[i]] besides: a
	// kind is a variant with what else was swept. Without an axis there is one
	// kind, and the groups are the names of the runs.
	axis    string
	groups  []string
	groupOf []int
	kinds   []string
	kindOf  []int
}

// facet is runs that share a drawing.
type facet struct {
	title  string
	runs   []int
	legend []entry
}

func newDesign(runs []results.Run) *design {
	d := &design{runs: runs, labels: results.Labels(runs), look: make([]style, len(runs))}
	d.sweep()
	var names []string
	for i := range runs {
		indexOf(&names, runs[i].Name)
	}
	if len(names) > togetherRuns && len(d.groups) > 1 && len(d.kinds) > 1 {
		for g, name := range d.groups {
			d.facets = append(d.facets, facet{title: d.axis + " " + name})
			for i := range runs {
				if d.groupOf[i] == g {
					d.put(&d.facets[g], i, d.kindOf[i], d.kinds[d.kindOf[i]])
				}
			}
		}
		return d
	}
	for i := range runs {
		k := slices.Index(names, runs[i].Name)
		at := 0
		if len(names) > 2*togetherRuns {
			at = k / togetherRuns
		}
		if at == len(d.facets) {
			d.facets = append(d.facets, facet{})
		}
		d.put(&d.facets[at], i, k, runs[i].Name)
	}
	if len(d.facets) > 1 {
		for f := range d.facets {
			r := d.facets[f].runs
			d.facets[f].title = runs[r[0]].Name + " ... " + runs[r[len(r)-1]].Name
		}
	}
	if len(d.facets) == 0 {
		d.facets = []facet{{}}
	}
	return d
}

// put draws a run in a facet, with look k under a name.
func (d *design) put(f *facet, run, k int, name string) {
	d.look[run] = styleOf(k)
	f.runs = append(f.runs, run)
	if e := (entry{look: d.look[run], name: name}); !slices.ContainsFunc(f.legend, func(o entry) bool { return o.name == e.name }) {
		f.legend = append(f.legend, e)
	}
}

// sweep finds the axis along which runs differ: the parameter with the most
// values that are numbers, or else the names of the runs.
func (d *design) sweep() {
	d.axis = d.sweptParam()
	for i := range d.runs {
		r := &d.runs[i]
		group, kind := r.Name, ""
		if d.axis != "" {
			group, kind = r.Params[d.axis], d.besides(r)
		}
		d.groupOf = append(d.groupOf, indexOf(&d.groups, group))
		d.kindOf = append(d.kindOf, indexOf(&d.kinds, kind))
	}
}

// besides names a run without its place on the axis.
func (d *design) besides(r *results.Run) string {
	var parts []string
	for part := range strings.SplitSeq(r.Name, ", ") {
		if part != d.axis+"="+r.Params[d.axis] {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// sweptParam returns the parameter that bars and facets are put along; "" if
// none has several values that are all numbers.
func (d *design) sweptParam() string {
	best, most := "", 1
	for name, values := range d.paramValues() {
		numbers := true
		for _, v := range values {
			numbers = numbers && startsAsNumber(v)
		}
		if numbers && (len(values) > most || len(values) == most && best != "" && name < best) {
			best, most = name, len(values)
		}
	}
	return best
}

// paramValues returns the values of each parameter, in the order of the runs.
func (d *design) paramValues() map[string][]string {
	values := map[string][]string{}
	for i := range d.runs {
		for _, name := range slices.Sorted(maps.Keys(d.runs[i].Params)) {
			list := values[name]
			indexOf(&list, d.runs[i].Params[name])
			values[name] = list
		}
	}
	return values
}

// startsAsNumber accepts 0.5, 50%, 100Gbps, 64KB.
func startsAsNumber(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && (s[0] >= '0' && s[0] <= '9' || len(s) > 1 && (s[0] == '.' || s[0] == '-') && s[1] >= '0' && s[1] <= '9')
}

// indexOf returns the place of s in list, which gets it if it is new.
func indexOf(list *[]string, s string) int {
	if i := slices.Index(*list, s); i >= 0 {
		return i
	}
	*list = append(*list, s)
	return len(*list) - 1
}
