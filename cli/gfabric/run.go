package gfabric

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/control/privilege"
	"gswitch/fabric/measure"
	"gswitch/fabric/report"
	"gswitch/fabric/results"
	runner "gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/fabric/workload"
)

// scenarioFlags choose what is run of a scenario.
type scenarioFlags struct {
	short     bool
	set, only []string
	seeds     []string
	first     uint64
	confined  bool
}

func (f *scenarioFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.short, "short", false, "the short form of the scenario, as its section short says")
	c.Flags().StringArrayVar(&f.set, "set", nil, "path=value: set a key of the scenario, such as hosts.cc=dcqcn, which leaves out the options (hosts.params) of another algorithm; may be repeated")
	c.Flags().StringArrayVar(&f.only, "only", nil, "only this variant, or the run of this name; may be repeated")
	c.Flags().StringSliceVar(&f.seeds, "seed", nil, "seeds in place of those of the scenario")
	c.Flags().BoolVar(&f.confined, "confined", false, "read no file that does not lie beside the scenario or below: for scenarios of others")
	c.Flags().Uint64Var(&f.first, "first-seed", 0, "as many seeds as the scenario has, from this one on: whether what it claims depends on its seeds")
}

func (f *scenarioFlags) load(file string) (*scenario.Scenario, error) {
	o := scenario.Options{Short: f.short, Set: f.set, Only: f.only, First: f.first, Confined: f.confined}
	if f.first > 0 && len(f.seeds) > 0 {
		return nil, usagef("--seed names the seeds, so there is nothing for --first-seed to choose; give one of them")
	}
	for _, text := range f.seeds {
		var seed uint64
		if _, err := fmt.Sscanf(text, "%d", &seed); err != nil || fmt.Sprint(seed) != text {
			return nil, usagef("--seed: %q is not a number from 0 up", text)
		}
		o.Seeds = append(o.Seeds, seed)
	}
	s, err := scenario.Load(file, o)
	if err != nil {
		return nil, mistake(err)
	}
	return s, mistake(runner.Check(s))
}

func runCommand() *cobra.Command {
	var f scenarioFlags
	var l liveFlags
	var w watchFlags
	var on, out string
	var jobs, cores int
	var asJSON, fresh, quiet, pauses, record bool
	c := &cobra.Command{
		Use:   "run SCENARIO.yaml",
		Short: "Run a scenario and compare what comes out with what it expects",
		Long: "run executes every run that a scenario asks for - its variants, its sweep, its\n" +
			"seeds - and writes what they measured to a directory: results.json, flows.csv,\n" +
			"series/ and cdf/ as CSV, and report.html. A run that the directory has already,\n" +
			"from the same program with the same settings, is not executed again; others that it\n" +
			"has are replaced. Give --out to keep results with other settings beside it.\n\n" +
			"--on sim runs in virtual time, at any rate and size. Runs go side by side on all cores\n" +
			"(--jobs), and one run of 32 hosts or more takes those that are left (--cores); neither\n" +
			"changes a bit of what comes out. --on netns (root) runs the same\n" +
			"nodes in real time: each link is a veth pair between network namespaces with AF_XDP\n" +
			"sockets, and the nodes' clock is slowed by --scale, so that rates are divided, times\n" +
			"multiplied, and results need no scaling back. The report says how late workers were;\n" +
			"a run that was too late is INVALID. gfabric fit finds the smallest scale. Results go\n" +
			"to results/NAME-netns. --processes hosts gives each host a process of its own, and\n" +
			"--processes each every switch, too; without it one process, and often one thread,\n" +
			"has all nodes, and their clock may stand while it is late. A run of one thread that\n" +
			"is INVALID, or of a scenario of which an expectation does not hold, keeps its record\n" +
			"in records/, for gfabric replay; --record keeps that of every run. Interrupted, it removes all\n" +
			"that it made; what a killed one leaves, the next run of the scenario or gfabric down\n" +
			"removes.\n\n" +
			"Exit codes: 0 all expectations hold, 1 one does not or a run failed, 2 the\n" +
			"scenario or the command line is wrong, 3 a run on real frames did not keep time.\n\n" +
			"Distributions of sizes: " + strings.Join(workload.Names(), ", ") + ".\n" +
			"gfabric schema scenario prints the format, gfabric schema values what can be expected.",
		Example: "  gfabric run scenarios/quickstart.yaml\n" +
			"  gfabric run scenarios/hpcc/fig2.13-reaction.yaml --only hpcc --seed 1,2,3\n" +
			"  gfabric run scenarios/quickstart.yaml --set hosts.params.eta=0.9 --out eta\n" +
			"  gfabric run scenarios/agreement/incast2.yaml --on netns\n" +
			"  gfabric run scenarios/quickstart.yaml --on netns --scale 2000 --poll spin\n" +
			"  gfabric run scenarios/agreement/incast8.yaml --on netns --processes hosts\n" +
			"  gfabric run scenarios/agreement/incast2.yaml --on netns --record\n" +
			"  gfabric run scenarios/quickstart.yaml --serve 127.0.0.1:8080 --pace 500us",
		Args: one("a scenario, such as scenarios/quickstart.yaml"),
		RunE: func(c *cobra.Command, args []string) error {
			if on != "sim" && on != "netns" {
				return usagef("--on: %q is not an engine; there are sim (virtual time) and netns (real frames)", on)
			}
			if on == "sim" {
				if err := unused(c); err != nil {
					return err
				}
			}
			s, err := f.load(args[0])
			if err != nil {
				return err
			}
			if out == "" {
				out = resultsOf(s, f.short, on)
			}
			if jobs < 0 || cores < 0 {
				return usagef("--jobs and --cores are counted from 1; left out, they follow the number of processors")
			}
			if jobs == 0 {
				jobs = runner.DefaultJobs()
			}
			o := runner.Options{Version: version, Program: program(), Jobs: jobs, Cores: coresOf(cores, jobs, len(s.Runs)), Out: out, Fresh: fresh, On: on}
			if o.Record = record; record && on == "sim" {
				return usagef("--record is about real frames, a run in virtual time is the same each time: add --on netns")
			}
			if pauses {
				o.Pauses = pausesKept
			}
			if !quiet {
				o.Progress = os.Stderr
			}
			execute := runner.Scenario
			if on == "netns" {
				execute = onNetns
				live, err := l.live(s)
				if err != nil {
					return err
				}
				if o.Live, err = l.choose(c.Context(), s, live); err != nil {
					return err
				}
			}
			if (w.serve != "" || f.confined) && on == "sim" { // strangers look on, or have written what is run
				if err := os.MkdirAll(out, 0o777); err != nil {
					return err
				}
				if err := w.keep.Drop(slog.Default(), privilege.Need{Read: []string{filepath.Dir(args[0])}, Dirs: []string{out}}); err != nil {
					return err
				}
			}
			unwatch, err := w.start(c.Context(), s, &o)
			if err != nil {
				return err
			}
			file, err := execute(c.Context(), s, o)
			unwatch()
			if err != nil {
				if c.Context().Err() != nil {
					say("runs that are done are kept in %s; the same command goes on from there", out)
				}
				return err
			}
			if err := present(file, out, asJSON); err != nil {
				return err
			}
			for _, hint := range []string{neverSentAgain(s, file), outOfMemory(file)} {
				if hint != "" {
					say("%s", hint)
				}
			}
			for i := range file.Runs {
				if r := &file.Runs[i]; r.Record != "" {
					say("the record of %s is in %s: gfabric replay makes it happen again", r.Name, r.Record)
				}
			}
			if err := kept(file); err != nil {
				return err
			}
			return unmet(file)
		},
	}
	f.add(c)
	w.add(c)
	w.keep.Flag(c.Flags())
	c.Flags().StringVar(&on, "on", "sim", "engine: sim (virtual time) or netns (real frames between network namespaces; root)")
	l.add(c, true)
	c.Flags().StringVar(&out, "out", "", "directory of results; results/NAME if left out, with -short and -netns where these are asked for")
	c.Flags().IntVar(&jobs, "jobs", 0, "runs side by side; as many as there are processors if left out")
	c.Flags().IntVar(&cores, "cores", 0, "cores that step each run in virtual time; those that --jobs leaves if left out. What comes out is the same to the bit")
	c.Flags().BoolVar(&asJSON, "json", false, "print results.json in place of tables")
	c.Flags().BoolVar(&fresh, "fresh", false, "run again what the directory has already")
	c.Flags().BoolVar(&pauses, "pauses", false, "record which port paused which, for the report (see gfabric pfc trace)")
	c.Flags().BoolVar(&record, "record", false, "keep the record of every run on real frames, and run none that cannot be recorded (gfabric replay)")
	c.Flags().BoolVar(&quiet, "quiet", false, "no progress on standard error")
	return c
}

// present writes the page of results and shows them, as JSON or as tables.
func present(file *results.File, out string, asJSON bool) error {
	page := filepath.Join(out, "report.html")
	err := report.WritePage(page, file)
	if asJSON {
		err = errors.Join(err, results.Encode(&stdout, file))
	} else {
		err = errors.Join(err, report.Text(&stdout, headlines(file), report.TextOptions{}))
	}
	if err == nil {
		say("results are in %s, a page with drawings in %s", out, page)
	}
	return err
}

// coresOf returns how many cores step each run: what was asked for, or those that
// runs side by side leave.
func coresOf(asked, jobs, runs int) int {
	if asked > 0 {
		return asked
	}
	return max(1, runner.DefaultJobs()/max(1, min(jobs, runs)))
}

// pausesKept is how many pauses each switch keeps for a report.
const pausesKept = 5000

// resultsOf is where the results of a scenario go.
func resultsOf(s *scenario.Scenario, short bool, on string) string {
	out := filepath.Join("results", s.Doc.Name)
	if short {
		out += "-short"
	}
	if on != "sim" {
		out += "-" + on
	}
	return out
}

// headlines is f without the values of groups, windows and events, which would
// make a table of pages: the report and results.json have them.
func headlines(f *results.File) *results.File {
	short := *f
	short.Runs = slices.Clone(f.Runs)
	for i := range short.Runs {
		values := map[string]float64{}
		for k, v := range short.Runs[i].Values {
			if !strings.Contains(strings.ReplaceAll(k, "p99.9", ""), ".") {
				values[k] = v
			}
		}
		short.Runs[i].Values = values
	}
	return &short
}

// neverSentAgain explains flows that cannot end: their last frame was lost,
// and there is no timer.
func neverSentAgain(s *scenario.Scenario, f *results.File) string {
	for i := range f.Runs {
		t, v := &s.Runs[i].Doc.Hosts.Transport, f.Runs[i].Values
		if v["flows_unfinished_total"] > 0 && v["drops_total"]+v["faults_total"] > 0 && t.RTOHigh == 0 && !t.AutoRTO && !s.Runs[i].Doc.Streams() {
			return fmt.Sprintf("%s: flows that did not end: %.0f; frames were lost, and hosts have no retransmission timer: set hosts.transport.rto_high", f.Runs[i].Name, v["flows_unfinished_total"])
		}
	}
	return ""
}

// outOfMemory warns of runs that lost frames which no real network would.
func outOfMemory(f *results.File) string {
	for i := range f.Runs {
		if k := f.Runs[i].Values["arena_exhausted_total"]; k > 0 {
			return fmt.Sprintf("WARNING: %s: %.0f frames were lost because the memory set aside for frames was used up: its results are not to be trusted; take less switch.buffer.size, fewer flows at once or a smaller topology", f.Runs[i].Name, k)
		}
	}
	return ""
}

// program names the very build, so that results of another are not taken for
// those of this one.
func program() string {
	h := sha256.New()
	path, err := os.Executable()
	if err != nil {
		return version
	}
	file, err := os.Open(path)
	if err != nil {
		return version
	}
	defer file.Close()
	if _, err := io.Copy(h, file); err != nil {
		return version
	}
	return hex.EncodeToString(h.Sum(nil))
}

// unmet is an error if an expectation does not hold.
func unmet(f *results.File) error {
	n, all := 0, len(f.Checks)
	count := func(v []results.Check) {
		for _, c := range v {
			if !c.OK {
				n++
			}
		}
	}
	count(f.Checks)
	for i := range f.Runs {
		all += len(f.Runs[i].Checks)
		count(f.Runs[i].Checks)
	}
	if n > 0 {
		return fmt.Errorf("%d of %d expectations do not hold", n, all)
	}
	return nil
}

func checkCommand() *cobra.Command {
	var f scenarioFlags
	var values bool
	c := &cobra.Command{
		Use:   "check SCENARIO.yaml",
		Short: "Check a scenario without running it, and list its runs",
		Long: "check reads a scenario, says what is wrong with it, and lists its runs. With\n" +
			"--values it lists the names that its expectations can use; gfabric schema values\n" +
			"says what they mean.",
		Example: "  gfabric check scenarios/quickstart.yaml\n" +
			"  gfabric check scenarios/quickstart.yaml --values",
		Args: one("a scenario, such as scenarios/quickstart.yaml"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := f.load(args[0])
			if err != nil {
				return err
			}
			if values {
				for _, k := range s.Doc.Keys() {
					fmt.Fprintln(&stdout, k)
				}
				return nil
			}
			fmt.Fprintf(&stdout, "%s: %s, %d expectations, %d runs:\n", args[0], s.Runs[0].Topology.Size(), len(s.Expect), len(s.Runs))
			for i := range s.Runs {
				fmt.Fprintf(&stdout, "  %s (seed %d)\n", s.Runs[i].Name, s.Runs[i].Seed)
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().BoolVar(&values, "values", false, "list the values that expectations can name")
	return c
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema scenario|values",
		Short: "Print the format of scenarios as JSON Schema, or what the values of results mean",
		Example: "  gfabric schema scenario > scenario.json\n" +
			"  gfabric schema values",
		Args: one("what to print: scenario or values"),
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains([]string{"scenario", "values"}, args[0]) {
				return usagef("%q is neither scenario nor values", args[0])
			}
			if args[0] == "values" {
				return measure.WriteKeys(&stdout)
			}
			_, err := stdout.Write(scenario.Schema())
			return err
		},
	}
}
