package results

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Measure is a value of Run.Values that every report knows.
type Measure struct {
	Name  string // key in Values; the unit is its last part
	Label string
}

// Measures are the values that reports show first, in this order, those of registered
// systems included. Runs may have others; reports show them after these, under their own
// names.
var Measures = []Measure{
	{"flows_total", "flows"},
	{"flows_unfinished_total", "  unfinished"},
	{"slowdown_mean", "slowdown mean"},
	{"slowdown_p50", "  p50"},
	{"slowdown_p95", "  p95"},
	{"slowdown_p99", "  p99"},
	{"slowdown_p99.9", "  p99.9"},
	{"slowdown_max", "  max"},
	{"fct_mean_seconds", "completion mean"},
	{"fct_bytes_mean_seconds", "  mean over bytes"},
	{"fct_p50_seconds", "  p50"},
	{"fct_p95_seconds", "  p95"},
	{"fct_p99_seconds", "  p99"},
	{"fct_p99.9_seconds", "  p99.9"},
	{"fct_max_seconds", "  max"},
	{"rtt_p50_seconds", "network RTT p50"},
	{"rtt_p95_seconds", "  p95"},
	{"rtt_p99_seconds", "  p99"},
	{"rtt_p99.9_seconds", "  p99.9"},
	{"rtt_max_seconds", "  max"},
	{"queue_mean_bytes", "queue mean"},
	{"queue_p50_bytes", "  p50"},
	{"queue_p95_bytes", "  p95"},
	{"queue_p99_bytes", "  p99"},
	{"queue_p99.9_bytes", "  p99.9"},
	{"queue_max_bytes", "  max"},
	{"queue_busy_share", "  not empty"},
	{"goodput_bps", "goodput"},
	{"goodput_min_bps", "  least bin"},
	{"jain_index", "Jain index"},
	{"utilisation_share", "utilisation"},
	{"link_bps", "link carries"},
	{"link_min_bps", "  least bin"},
	{"link_low_seconds", "  time below low"},
	{"pauses_total", "PFC pauses"},
	{"pause_frames_total", "pause frames"},
	{"pause_seconds", "paused time"},
	{"pause_share", "paused share of time"},
	{"host_pause_share", "  of hosts"},
	{"deadlocks_total", "deadlocks"},
	{"paths_choices_total", "adaptive choices"},
	{"paths_tier1_share", "  first tier"},
	{"paths_tier2_share", "  second tier"},
	{"paths_any_share", "  no tier"},
	{"flowlets_total", "flowlets"},
	{"marks_total", "congestion marks"},
	{"data_frames_total", "data frames"},
	{"drops_total", "drops"},
	{"drop_share", "  of data frames"},
	{"arena_exhausted_total", "  for want of memory"},
	{"late_frames_total", "late frames"},
	{"faults_total", "lost by faults"},
	{"retransmissions_total", "retransmissions"},
	{"timeouts_total", "timeouts"},
	{"timeout_share", "  flows with one"},
	{"quenches_total", "long pauses of hosts"},
	{"notices_total", "notices to senders"},
}

// Register adds what reports show of a system, behind the measure after. It panics if there
// is none of that name, or one of the others is there already.
func Register(after string, all ...Measure) {
	index := func(name string) int {
		return slices.IndexFunc(Measures, func(m Measure) bool { return m.Name == name })
	}
	at := index(after)
	if at < 0 {
		panic(fmt.Sprintf("results: %q, behind which %v are to stand, is no measure", after, all))
	}
	for i, m := range all {
		if index(m.Name) >= 0 {
			panic(fmt.Sprintf("results: %s is registered already", m.Name))
		}
		Measures = slices.Insert(Measures, at+1+i, m)
	}
}

// MeasuresOf returns the measures that any of the runs has: first those of
// Measures, then the others by name.
func MeasuresOf(runs []Run) []Measure {
	have := map[string]bool{}
	for i := range runs {
		for name := range runs[i].Values {
			have[name] = true
		}
	}
	var out []Measure
	for _, m := range Measures {
		if have[m.Name] {
			out = append(out, m)
			delete(have, m.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		out = append(out, Measure{name, name})
	}
	return out
}

// FullLabel returns the label of a measure where it stands alone, such as
// "slowdown p99".
func (m Measure) FullLabel() string {
	if !strings.HasPrefix(m.Label, " ") {
		return m.Label
	}
	head := ""
	for _, k := range Measures {
		if !strings.HasPrefix(k.Label, " ") {
			head = strings.TrimSuffix(strings.TrimSuffix(k.Label, " mean"), " p50")
		}
		if k.Name == m.Name {
			break
		}
	}
	return head + " " + strings.TrimSpace(m.Label)
}

// Labels returns a name for each run, its seed added where the name alone
// would not do.
func Labels(runs []Run) []string {
	count := map[string]int{}
	for i := range runs {
		count[runs[i].Name]++
	}
	labels := make([]string, len(runs))
	for i := range runs {
		labels[i] = runs[i].Name
		if count[runs[i].Name] > 1 {
			labels[i] += " #" + strconv.FormatUint(runs[i].Seed, 10)
		}
	}
	return labels
}
