package report

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gswitch/fabric/results"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what page.html shows.
type page struct {
	Style     template.CSS
	File      *results.File
	Title     string
	Runs      []runRow
	Varied    []string // names of parameters that differ between runs
	Same      []results.Param
	Checks    []checkRow
	Failed    int
	Differs   int  // claims of the paper that are known not to hold
	Held      int  // expectations, those not counted
	Estimates bool // there are claims about the mean of several seeds
	Values    []valueRow
	Labels    []string
	Sections  []*section
	Invalid   []string // runs that did not keep time, and why
	Warnings  []string // what is seldom meant
	Timing    *timingPage
	Pauses    []pausesPage // of the runs that recorded them
}

// pausesPage is which port paused which in a run.
type pausesPage struct{ Label, Text string }

// mostPauses bounds the lines of the tree and of the table.
const mostPauses = 60

// timingPage is how well runs on real frames kept time.
type timingPage struct {
	Labels    []string
	Rows, Raw []valueRow
	Workers   []string
}

// runRow is a run in the table of runs.
type runRow struct {
	Label, Engine, Seed, Virtual, Wall, Hops, HopRate, Digest string
	Params                                                    []string
}

type checkRow struct {
	Run, Text, Got, Why, Deviates string
	OK                            bool
	Of                            []string // values with their intervals
}

// valueRow is a scalar of all runs.
type valueRow struct {
	Name, Label string
	Cells       []string
}

// HTML writes the results as one page that needs nothing else: no network, no
// other file. It shows what Text shows and draws distributions, slowdown by
// flow size, series and scalars.
func HTML(w io.Writer, f *results.File) error {
	d := newDesign(f.Runs)
	p := page{Style: template.CSS(pageStyle), File: f, Title: f.Title, Labels: d.labels}
	if p.Title == "" {
		p.Title = f.Scenario
	}
	p.params(d)
	for _, c := range checksOf(f) {
		p.Checks = append(p.Checks, checkRow{c.run, c.Text, c.got(), c.Why, c.Deviates, c.OK, c.estimates()})
		p.Estimates = p.Estimates || len(c.Values) > 0
		if c.Deviates != "" {
			p.Differs++
		}
		if !c.OK {
			p.Failed++
		}
	}
	p.Held = len(p.Checks) - p.Differs
	p.values(f.Runs)
	p.Invalid, p.Warnings = invalid(f.Runs), warnings(f.Runs)
	p.timing(f.Runs)
	if err := p.pauses(f.Runs); err != nil {
		return err
	}
	p.Sections = d.sections()
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// pauses fills in which port paused which.
func (p *page) pauses(runs []results.Run) error {
	for i := range runs {
		if runs[i].Pauses == nil {
			continue
		}
		var b strings.Builder
		if err := runs[i].Pauses.Text(&b, mostPauses); err != nil {
			return err
		}
		v := pausesPage{Text: b.String()}
		if len(runs) > 1 {
			v.Label = p.Labels[i]
		}
		p.Pauses = append(p.Pauses, v)
	}
	return nil
}

// params fills the tables of settings and runs.
func (p *page) params(d *design) {
	p.Same = p.File.Params
	values := d.paramValues()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(values[name]) == 1 && len(d.runs) > 1 {
			p.Same = append(slices.Clip(p.Same), results.Param{Name: name, Value: values[name][0]})
		} else {
			p.Varied = append(p.Varied, name)
		}
	}
	for i := range d.runs {
		r := &d.runs[i]
		row := runRow{
			Label: d.labels[i], Engine: r.Engine, Seed: strconv.FormatUint(r.Seed, 10), Virtual: quantity(r.VirtualTime, "s"), Wall: quantity(r.WallTime, "s"),
			Hops: quantity(float64(r.FrameHops), "count"), HopRate: hopRate(r), Digest: r.Digest,
		}
		for _, name := range p.Varied {
			row.Params = append(row.Params, r.Params[name])
		}
		p.Runs = append(p.Runs, row)
	}
}

// values fills the table of scalars.
func (p *page) values(runs []results.Run) {
	for _, m := range results.MeasuresOf(runs) {
		if !anyEnoughFlows(runs, m.Name) {
			continue
		}
		row := valueRow{Name: m.Name, Label: m.FullLabel()}
		for i := range runs {
			cell := "-"
			if v, ok := runs[i].Values[m.Name]; ok && enoughFlows(&runs[i], m.Name) {
				cell = quantity(v, unitOf(m.Name))
			}
			row.Cells = append(row.Cells, cell)
		}
		p.Values = append(p.Values, row)
	}
}

// timing fills the tables of runs on real frames.
func (p *page) timing(all []results.Run) {
	runs := timed(all)
	if len(runs) == 0 {
		return
	}
	t := &timingPage{Labels: results.Labels(runs)}
	for _, r := range rowsOf(runs) {
		row := valueRow{Label: r.label}
		for i := range runs {
			row.Cells = append(row.Cells, r.cell(runs[i].Timing))
		}
		t.Rows = append(t.Rows, row)
	}
	for _, m := range rawMeasures(runs) {
		row := valueRow{Name: m.Name, Label: m.FullLabel()}
		for i := range runs {
			row.Cells = append(row.Cells, raw(&runs[i], m.Name))
		}
		t.Raw = append(t.Raw, row)
	}
	for i := range runs {
		for k := range runs[i].Timing.Workers {
			t.Workers = append(t.Workers, t.Labels[i]+", "+workerLine(&runs[i].Timing.Workers[k], runs[i].Timing.Scale))
		}
	}
	p.Timing = t
}
