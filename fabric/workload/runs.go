package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// runColumns are those of flows.csv that say which run a flow is of.
var runColumns = []string{"run", "name", "seed"}

// runs chooses among the runs of a trace with the column run: by their place in
// results.json, which stands there, or by their name, which runs of several seeds share.
type runs struct {
	want           string // a number is a place
	at, name, seed int    // columns, -1 if there is none
	all            []tracedRun
	index          map[string]int // of all, by place
}

type tracedRun struct {
	at, name, seed string
	taken          bool
}

func newRuns(head []string, want string) (*runs, error) {
	r := &runs{want: want, at: slices.Index(head, "run"), name: slices.Index(head, "name"), seed: slices.Index(head, "seed"), index: map[string]int{}}
	if r.at < 0 && want != "" {
		return nil, fmt.Errorf("has no column run, so that run: %s means nothing", want)
	}
	return r, nil
}

// take reports whether the flow of a row is one of those that are wanted.
func (r *runs) take(row []string) bool {
	if r.at < 0 {
		return true
	}
	if i, ok := r.index[row[r.at]]; ok {
		return r.all[i].taken
	}
	field := func(column int) string {
		if column < 0 {
			return ""
		}
		return strings.Clone(row[column]) // without the rest of the line
	}
	x := tracedRun{at: field(r.at), name: field(r.name), seed: field(r.seed)}
	switch _, err := strconv.Atoi(r.want); {
	case r.want == "":
		x.taken = true
	case err == nil:
		x.taken = x.at == r.want
	default:
		x.taken = x.name == r.want
	}
	r.index[x.at] = len(r.all)
	r.all = append(r.all, x)
	return x.taken
}

// check refuses to send the flows of several runs at once, and of none.
func (r *runs) check() error {
	var taken []tracedRun
	for _, x := range r.all {
		if x.taken {
			taken = append(taken, x)
		}
	}
	switch {
	case len(taken) > 1 && r.want == "":
		return fmt.Errorf("has the flows of %d runs, %s; write which are sent, such as run: %s", len(taken), list(taken), taken[0].at)
	case len(taken) > 1:
		return fmt.Errorf("run: %s is the name of %d runs, %s; write the place of one, such as run: %s", r.want, len(taken), list(taken), taken[0].at)
	case len(taken) == 0 && len(r.all) > 0:
		return fmt.Errorf("there is no run %s; there are %s", r.want, list(r.all))
	}
	return nil
}

// mostListed bounds the runs that an error names.
const mostListed = 12

// list names runs: 0 (hpcc, seed 1), 1 (hpcc, seed 2).
func list(v []tracedRun) string {
	var names []string
	for _, x := range v[:min(len(v), mostListed)] {
		var of []string
		if x.name != "" {
			of = append(of, x.name)
		}
		if x.seed != "" {
			of = append(of, "seed "+x.seed)
		}
		text := x.at
		if len(of) > 0 {
			text += " (" + strings.Join(of, ", ") + ")"
		}
		names = append(names, text)
	}
	if more := len(v) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
