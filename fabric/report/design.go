package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"gswitch/fabric/results"
)

// manyRuns is from where on runs of a sweep are drawn apart, one drawing for
// each value of the sweep's first parameter.
const manyRuns = 9

// design says which runs are drawn together, and how each looks everywhere.
type design struct {
	runs   []results.Run
	labels []string // of runs, unique
	look   []style  // of runs
	facets []facet
	kinds  []entry // what the looks stand for

	// A sweep: runs are groups[groupOf[i]] along axis, and kinds[kindOf[i]].
	axis    string
	groups  []string
	groupOf []int
	kindOf  []int
}

// facet is runs that share a drawing.
type facet struct {
	title string
	runs  []int
}

func newDesign(runs []results.Run) *design {
	d := &design{runs: runs, labels: results.Labels(runs)}
	kinds := d.sweep()
	d.look = make([]style, len(runs))
	if len(runs) < manyRuns || len(d.groups) < 2 {
		all := make([]int, len(runs))
		for i := range runs {
			all[i] = i
			d.look[i] = styleOf(i, "r"+strconv.Itoa(i))
			d.kinds = append(d.kinds, entry{look: d.look[i], name: d.labels[i]})
		}
		d.facets = []facet{{"", all}}
		return d
	}
	for k, name := range kinds {
		d.kinds = append(d.kinds, entry{look: styleOf(k, "r"+strconv.Itoa(k)), name: name})
	}
	for g, name := range d.groups {
		d.facets = append(d.facets, facet{title: d.axis + " " + name})
		for i := range runs {
			if d.groupOf[i] == g {
				d.facets[g].runs = append(d.facets[g].runs, i)
			}
		}
	}
	for i := range runs {
		d.look[i] = d.kinds[d.kindOf[i]].look
	}
	return d
}

// sweep finds the axis along which runs differ: the parameter with the most
// values that are numbers, or else the names of the runs. It returns the names
// of what differs besides.
func (d *design) sweep() []string {
	d.axis = d.sweptParam()
	var kinds []string
	for i := range d.runs {
		r := &d.runs[i]
		group, kind := r.Name, ""
		if d.axis != "" {
			group, kind = r.Params[d.axis], d.besides(r)
		}
		d.groupOf = append(d.groupOf, indexOf(&d.groups, group))
		d.kindOf = append(d.kindOf, indexOf(&kinds, kind))
	}
	return kinds
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
		for name, v := range d.runs[i].Params {
			list := values[name]
			indexOf(&list, v)
			values[name] = list
		}
	}
	return values
}

// besides names what a run differs in apart from the axis: the other
// parameters that vary.
func (d *design) besides(r *results.Run) string {
	values := d.paramValues()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if v := r.Params[name]; name != d.axis && len(values[name]) > 1 && name != "seed" {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, ", ")
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
