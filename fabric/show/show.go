// Package show runs a scenario so that one sees it: virtual time predicts what
// will come out, then each variant runs on real frames (or in virtual time,
// slowed down) while its ports and flows are drawn, and a table puts what was
// measured beside the prediction.
package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"gswitch/fabric/lab"
	"gswitch/fabric/report"
	"gswitch/fabric/results"
	"gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/fabric/view"
)

// Options of a show.
type Options struct {
	// Run says on which engine the runs are that one looks at, run.Netns or
	// run.Sim, and how. In virtual time Pace slows them. Its Out, Jobs, Fresh,
	// Progress and Watch are set here.
	Run run.Options
	Out string    // directory: report.html, and results of both engines in sim and netns
	To  io.Writer // what is seen meanwhile
}

// lineEvery is the time between lines where there is no terminal.
const lineEvery = time.Second

// show is one of them.
type show struct {
	Options
	s *scenario.Scenario
}

// Scenario shows a scenario and returns the table of what came out. Runs that
// did not keep time are in it, marked. If ctx ends, everything that was raised
// is removed, and the error is that of ctx.
func Scenario(ctx context.Context, s *scenario.Scenario, o Options) (*Table, error) {
	w := &show{o, s}
	w.open()
	sim := &results.File{}
	var err error
	if w.real() {
		if sim, err = w.predict(ctx); err != nil {
			return nil, err
		}
	}
	seen, err := w.look(ctx)
	if err != nil {
		return nil, err
	}
	page := seen
	if w.real() {
		page = report.Beside(sim, seen)
	} else {
		sim, seen = seen, nil
	}
	t := newTable(s, sim, seen)
	t.Report = filepath.Join(o.Out, "report.html")
	return t, report.WritePage(t.Report, page)
}

func (w *show) real() bool { return w.Run.On == run.Netns }

func (w *show) say(format string, args ...any) { fmt.Fprintf(w.To, format+"\n", args...) }

// open says what will be seen.
func (w *show) open() {
	d := w.s.Doc
	w.say("%s: %s", w.s.Runs[0].Topology.Size(), d.Title)
	if d.Paper != nil && d.Paper.Text != "" {
		w.say("%s", d.Paper.Text)
	}
	if w.real() {
		w.say("\nEvery link is a veth pair between network namespaces, every frame a real one,\n"+
			"sent and received over AF_XDP. The clock of hosts and switches goes %d times\n"+
			"slower than that on the wall: times and rates that are shown are theirs.", w.Run.Live.Dilation)
	} else {
		w.say("\nThis is virtual time, at %s in a second so that one can look on.\n", view.Seconds(w.Run.Pace))
	}
}

// predict runs everything in virtual time, as fast as it goes.
func (w *show) predict(ctx context.Context) (*results.File, error) {
	began := time.Now()
	o := w.Run
	o.On, o.Live, o.Pace = run.Sim, run.Live{}, 0
	o.Out, o.Jobs = filepath.Join(w.Out, run.Sim), run.DefaultJobs()
	f, err := run.Scenario(ctx, w.s, o)
	if err == nil {
		w.say("Virtual time has predicted what comes out, in %.1f s.\n", time.Since(began).Seconds())
	}
	return f, err
}

// look runs everything while it is drawn.
func (w *show) look(ctx context.Context) (*results.File, error) {
	v := &viewer{show: w, ctx: ctx}
	o := w.Run
	o.Out, o.Jobs, o.Fresh, o.Watch = filepath.Join(w.Out, o.On), 1, true, v.begin
	if w.real() {
		defer lab.GoFirst()()
	}
	f, err := run.Scenario(ctx, w.s, o)
	return f, errors.Join(err, v.wait())
}

// viewer draws one run after the other.
type viewer struct {
	*show
	ctx  context.Context
	next int        // run that begins
	done chan error // of the run that is drawn
}

// begin is called for each run when it begins. The picture of the one before
// stays above.
func (v *viewer) begin(src view.Source) {
	if err := v.wait(); err != nil {
		v.say("no view: %v", err)
	}
	on := "in virtual time"
	if v.real() {
		on = "on real frames"
	}
	v.say("== %s %s", v.s.Runs[v.next].Title, on)
	v.next++
	o := view.TerminalOptions{End: true}
	if columns, rows, ok := view.Size(v.To); !ok || columns < view.MinWidth || rows < view.MinHeight {
		o.Every, o.Plain = lineEvery, true
	}
	v.done = make(chan error, 1)
	go func() { v.done <- view.Terminal(v.ctx, v.To, src, o) }()
}

// wait waits until the picture is drawn to its end.
func (v *viewer) wait() error {
	if v.done == nil {
		return nil
	}
	err := <-v.done
	v.done = nil
	return err
}
