package gfabric

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"gswitch/fabric/agree"
	"gswitch/fabric/report"
	"gswitch/fabric/results"
	runner "gswitch/fabric/run"
	"gswitch/fabric/scenario"
)

// engineFlags are those of compare --sim --netns.
type engineFlags struct {
	scenarioFlags
	liveFlags
	sim, netns      bool
	fresh, finished bool
	quiet           bool
	html            string
}

func (f *engineFlags) addAll(c *cobra.Command) {
	f.scenarioFlags.add(c)
	f.liveFlags.add(c, true)
	c.Flags().BoolVar(&f.sim, "sim", false, "with --netns: run scenarios on both engines and judge the distance")
	c.Flags().BoolVar(&f.netns, "netns", false, "with --sim: see there")
	c.Flags().BoolVar(&f.fresh, "fresh", false, "with --sim --netns: run again what has results already")
	c.Flags().BoolVar(&f.finished, "finished", false, "with --sim --netns: run nothing, judge the results that are there")
	c.Flags().BoolVar(&f.quiet, "quiet", false, "with --sim --netns: no progress on standard error")
	c.Flags().StringVar(&f.html, "html", "", "with --sim --netns and one scenario: write a page with both in each drawing")
}

// both says that scenarios are to be compared on both engines.
func (f *engineFlags) both() (bool, error) {
	if f.sim != f.netns {
		return false, usagef("--sim and --netns go together, with scenarios, as in gfabric compare --sim --netns scenarios/agreement/incast2.yaml")
	}
	return f.sim, nil
}

// engines runs scenarios on both engines, or takes what is finished, and
// judges the distance.
func (f *engineFlags) engines(ctx context.Context, files []string, asJSON bool) error {
	if len(files) == 0 {
		return usagef("name a scenario, such as scenarios/agreement/incast2.yaml")
	}
	if f.html != "" && len(files) > 1 {
		return usagef("--html takes one scenario")
	}
	all := []*agree.Comparison{}
	for i, path := range files {
		s, err := f.load(path)
		if err != nil {
			return err
		}
		c, err := f.one(ctx, s)
		if err != nil {
			return err
		}
		all = append(all, c)
		if asJSON {
			continue
		}
		if i > 0 {
			fmt.Fprintln(&stdout)
		}
		if err := c.Text(&stdout); err != nil {
			return err
		}
	}
	if asJSON {
		if err := writeJSON(all); err != nil {
			return err
		}
	}
	return disagreement(all)
}

func (f *engineFlags) one(ctx context.Context, s *scenario.Scenario) (*agree.Comparison, error) {
	sim, err := f.results(ctx, s, "sim")
	if err != nil {
		return nil, err
	}
	live, err := f.results(ctx, s, "netns")
	if err != nil {
		return nil, err
	}
	if f.html != "" {
		if err := report.WritePage(f.html, report.Beside(sim, live)); err != nil {
			return nil, err
		}
	}
	return agree.Compare(s, sim, live), nil
}

// results runs the scenario on an engine where that is not done already, into
// the directory that gfabric run uses.
func (f *engineFlags) results(ctx context.Context, s *scenario.Scenario, on string) (*results.File, error) {
	out := resultsOf(s, f.short, on)
	if f.finished {
		return loadResults(out)
	}
	o := runner.Options{Version: version, Program: program(), Jobs: runner.DefaultJobs(), Out: out, Fresh: f.fresh, On: on}
	if !f.quiet {
		o.Progress = os.Stderr
		say("%s on %s, results in %s", s.Doc.Name, on, out)
	}
	if on == "netns" {
		live, err := f.live(s)
		if err != nil {
			return nil, err
		}
		if o.Live, err = f.choose(ctx, s, live); err != nil {
			return nil, err
		}
		return onNetns(ctx, s, o)
	}
	return runner.Scenario(ctx, s, o)
}

// disagreement is an error unless everything agrees: values beyond their bounds
// count more than runs that could not be judged.
func disagreement(all []*agree.Comparison) error {
	beyond, judged, invalid, missing := 0, 0, 0, 0
	for _, c := range all {
		beyond, judged = beyond+c.Beyond, judged+c.Judged
		invalid, missing = invalid+c.Invalid, missing+len(c.Missing)
	}
	switch {
	case beyond > 0:
		return fmt.Errorf("%d of %d values and orders are beyond their bounds", beyond, judged)
	case missing > 0:
		return fmt.Errorf("%d runs have no results on real frames", missing)
	case invalid > 0:
		return invalidError{fmt.Errorf("%d runs did not keep time and were not judged; take a larger --scale (gfabric fit finds one)", invalid)}
	}
	return nil
}
