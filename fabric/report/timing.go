package report

import (
	"fmt"
	"slices"
	"strings"

	"gswitch/fabric/results"
)

// timingRow is a line of the table that says how well time was kept.
type timingRow struct {
	label string
	cell  func(t *results.Timing) string
}

// timingRows show lateness in the time of the nodes, as all results are, and
// in real time.
var timingRows = []timingRow{
	{"scale", func(t *results.Timing) string { return significant(t.Scale) }},
	{"kept time", func(t *results.Timing) string {
		if t.Valid {
			return "yes"
		}
		return "INVALID"
	}},
	{"late p50", func(t *results.Timing) string { return quantity(t.LateP50, "s") }},
	{"  p99", func(t *results.Timing) string { return quantity(t.LateP99, "s") }},
	{"  may be", func(t *results.Timing) string { return quantity(t.Bound, "s") }},
	{"  max", func(t *results.Timing) string { return quantity(t.LateMax, "s") }},
	{"node to node p50", func(t *results.Timing) string { return quantity(t.TransitP50, "s") }},
	{"  p99", func(t *results.Timing) string { return quantity(t.TransitP99, "s") }},
	{"  max", func(t *results.Timing) string { return quantity(t.TransitMax, "s") }},
	{"one frame", func(t *results.Timing) string { return quantity(t.Frame, "s") }},
	{"  late by more", func(t *results.Timing) string { return quantity(t.OverFrame, "%") }},
	{"T", func(t *results.Timing) string { return quantity(t.BaseRTT, "s") }},
	{"  late by more", func(t *results.Timing) string { return quantity(t.OverRTT, "%") }},
	{"real late p50", func(t *results.Timing) string { return quantity(t.LateP50*t.Scale, "s") }},
	{"  p99", func(t *results.Timing) string { return quantity(t.LateP99*t.Scale, "s") }},
	{"  max", func(t *results.Timing) string { return quantity(t.LateMax*t.Scale, "s") }},
	{"clock stopped", func(t *results.Timing) string { return quantity(t.StoppedShare, "%") }},
	{"  at once, real", func(t *results.Timing) string { return quantity(t.StoppedMax, "s") }},
	{"clock read", func(t *results.Timing) string { return quantity(t.ClockRead, "s") }},
	{"ring drops", func(t *results.Timing) string { return quantity(float64(t.RingDrops), "count") }},
	{"workers", func(t *results.Timing) string { return fmt.Sprint(len(t.Workers)) }},
}

// dividedRows follow where nodes of a run were in several processes.
var dividedRows = []timingRow{
	{"processes", func(t *results.Timing) string { return fmt.Sprint(max(1, t.Processes)) }},
	{"posted late p50", func(t *results.Timing) string { return quantity(t.PostP50, "s") }},
	{"  p99", func(t *results.Timing) string { return quantity(t.PostP99, "s") }},
	{"  max", func(t *results.Timing) string { return quantity(t.PostMax, "s") }},
	{"loops wait for", func(t *results.Timing) string { return quantity(t.Reaction, "s") }},
}

// rowsOf are the rows for the given runs.
func rowsOf(runs []results.Run) []timingRow {
	for i := range runs {
		if t := runs[i].Timing; t != nil && t.Processes > 0 {
			return slices.Concat(timingRows, dividedRows)
		}
	}
	return timingRows
}

// invalid lists what is wrong with the runs that did not keep time, and what
// helps.
func invalid(runs []results.Run) (lines []string) {
	labels := results.Labels(runs)
	for i := range runs {
		t := runs[i].Timing
		if t == nil || t.Valid {
			continue
		}
		why, remedies := "", ""
		if len(t.Why) > 0 {
			why = ": " + strings.Join(t.Why, "; ")
		}
		if len(t.Remedies) > 0 {
			remedies = ". What helps: " + strings.Join(t.Remedies, "; ")
		}
		lines = append(lines, labels[i]+" is INVALID, its numbers are no result"+why+remedies+".")
	}
	return lines
}

// workerLine describes a worker.
func workerLine(w *results.Worker, scale float64) string {
	cpu := "any CPU"
	if w.CPU >= 0 {
		cpu = fmt.Sprintf("CPU %d", w.CPU)
	}
	return fmt.Sprintf("%s: %d nodes, %s, %s, busy %s, late p50 %s, p99 %s, max %s (real %s, %s, %s)", w.Name, w.Nodes, cpu, w.Poll, quantity(w.Busy, "%"),
		quantity(w.LateP50, "s"), quantity(w.LateP99, "s"), quantity(w.LateMax, "s"),
		quantity(w.LateP50*scale, "s"), quantity(w.LateP99*scale, "s"), quantity(w.LateMax*scale, "s"))
}

// timed are the runs on real frames.
func timed(runs []results.Run) (v []results.Run) {
	for i := range runs {
		if runs[i].Timing != nil {
			v = append(v, runs[i])
		}
	}
	return v
}

// rawMeasures are the values that differ between the time of the nodes and
// that of the machine, which reports know by name.
func rawMeasures(runs []results.Run) (v []results.Measure) {
	for _, m := range results.MeasuresOf(runs) {
		if u := unitOf(m.Name); (u == "s" || u == "b/s") && known(m.Name) != m.Name {
			v = append(v, m)
		}
	}
	return v
}

// raw is a value in real time.
func raw(r *results.Run, name string) string {
	x, ok := r.Values[name]
	if !ok {
		return "-"
	}
	unit := unitOf(name)
	if unit == "s" {
		return quantity(x*r.Timing.Scale, unit)
	}
	return quantity(x/r.Timing.Scale, unit)
}

// timing writes how well time was kept, and the values in real time.
func (t *text) timing(runs []results.Run) {
	live := timed(runs)
	if len(live) == 0 {
		return
	}
	for _, p := range t.split(live) {
		t.b.WriteByte('\n')
		t.columns("time on real frames", p.labels)
		for _, row := range rowsOf(live) {
			t.row(row.label, len(p.runs), func(i int) string { return row.cell(p.runs[i].Timing) })
		}
	}
	for i := range live {
		for k := range live[i].Timing.Workers {
			line := printable(results.Labels(live)[i] + ", " + workerLine(&live[i].Timing.Workers[k], live[i].Timing.Scale))
			for n, l := range wrap(line, t.o.Width-4) {
				t.b.WriteString("  " + strings.Repeat("  ", min(n, 1)) + l + "\n")
			}
		}
	}
	for _, p := range t.split(live) {
		t.b.WriteByte('\n')
		t.columns("not scaled back (raw)", p.labels)
		for _, m := range rawMeasures(live) {
			t.row(m.FullLabel(), len(p.runs), func(i int) string { return raw(&p.runs[i], m.Name) })
		}
		t.row("run", len(p.runs), func(i int) string { return quantity(p.runs[i].VirtualTime*p.runs[i].Timing.Scale, "s") })
	}
}

// warn writes which runs did not keep time, before anything else.
func (t *text) warn(runs []results.Run) {
	for _, line := range invalid(runs) {
		t.b.WriteByte('\n')
		for _, l := range wrap(printable(line), t.o.Width) {
			t.b.WriteString(t.paint(red, l) + "\n")
		}
	}
	for _, line := range warnings(runs) {
		t.b.WriteByte('\n')
		for _, l := range wrap(printable("WARNING: "+line), t.o.Width) {
			t.b.WriteString(t.paint(yellow, l) + "\n")
		}
	}
}

// warnings are those of all runs.
func warnings(runs []results.Run) (v []string) {
	for i := range runs {
		for _, w := range runs[i].Warnings {
			v = append(v, runs[i].Name+": "+w)
		}
	}
	return v
}

// What Beside adds to the names of runs.
const (
	simSuffix   = ", sim"
	netnsSuffix = ", netns"
)

// onBoth is the name of a run before Beside.
func onBoth(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, simSuffix), netnsSuffix)
}

// Beside puts runs of virtual time and of real frames into one file, so that
// every drawing has both.
func Beside(sim, live *results.File) *results.File {
	f := *sim
	f.Title = sim.Title
	if f.Title == "" {
		f.Title = sim.Scenario
	}
	f.Title += ": virtual time beside real frames"
	f.Runs, f.Checks = nil, nil
	for i := range sim.Runs {
		a := sim.Runs[i]
		name := a.Name
		a.Name = name + simSuffix
		f.Runs = append(f.Runs, a)
		for k := range live.Runs {
			if b := live.Runs[k]; b.Name == name && b.Seed == a.Seed {
				b.Name = name + netnsSuffix
				f.Runs = append(f.Runs, b)
			}
		}
	}
	return &f
}
