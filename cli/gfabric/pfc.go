package gfabric

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control/cli"
	"gswitch/fabric/pauses"
	runner "gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/units"
)

func pfcCommand() *cobra.Command {
	return cli.Group("pfc", "Find which port paused which, and which queues wait for each other for ever",
		"  gfabric pfc trace scenarios/agreement/pfc.yaml\n"+
			"  gfabric pfc trace ring\n"+
			"  gfabric pfc deadlock ring",
		pfcTraceCommand(), pfcDeadlockCommand())
}

// traceFlags say what of a trace is shown.
type traceFlags struct {
	scenarioFlags
	live     liveFlags
	on       string
	from, to string
	last     time.Duration
	keep     int
	all      bool
	json     bool
}

// Lines of the tree and of the table that are shown at most, unless all are.
const mostPauseLines = 40

func pfcTraceCommand() *cobra.Command {
	var f traceFlags
	c := &cobra.Command{
		Use:   "trace [SCENARIO.yaml|FABRIC]",
		Short: "Show where congestion began, and which ports were paused for it",
		Long: "trace shows how pauses spread: first the places where it began - an egress port that\n" +
			"more came for than it could send, while it was not paused, or a host that asked by\n" +
			"itself - and below each the ports that were paused for it, back to the hosts. A\n" +
			"switch asks a neighbour to pause because frames that came from there wait for some\n" +
			"egress port; if that port is paused itself, the pause followed from that one.\n" +
			"A table lists which port paused which. HELD is the most that the port and class which asked\n" +
			"held when it asked. In a switch with a crossbar all frames that came by a port wait\n" +
			"in one queue: FOR is the egress port that had no room for the first one, and behind\n" +
			"it stand those that the others are for.\n\n" +
			"Of a scenario it runs one run, in virtual time or with --on netns on real frames\n" +
			"(root), and keeps no results. Of a fabric that gfabric up raised it asks the\n" +
			"switches for their logs of pauses (pfc.log of their configuration); without an argument,\n" +
			"of the only fabric that is up. Times are those before now then.",
		Example: "  gfabric pfc trace scenarios/agreement/pfc.yaml\n" +
			"  gfabric pfc trace scenarios/agreement/pfc.yaml --to 300us --json\n" +
			"  gfabric pfc trace scenarios/agreement/pfc.yaml --on netns --processes each\n" +
			"  gfabric pfc trace scenarios/escape/fig4.7-ring.yaml --short\n" +
			"  gfabric pfc trace lab --last 10s",
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			from, to, err := f.window()
			if err != nil {
				return err
			}
			var t *pauses.Trace
			if len(args) == 1 && isFile(args[0]) {
				t, err = f.scenario(c.Context(), args[0])
			} else {
				if f.from != "" || f.to != "" {
					return usagef("--from and --to are times of a scenario; of a fabric --last says how far back")
				}
				if name := ofScenarios(c); name != "" {
					return usagef("--%s is for scenarios: name a file, or leave it out", name)
				}
				t, err = fabricTrace(c.Context(), args)
			}
			if err != nil {
				return err
			}
			switch {
			case f.last > 0:
				t = t.Between(t.To-f.last.Seconds(), t.To)
			case f.from != "" || f.to != "":
				t = t.Between(from, to)
			}
			if f.json {
				return writeJSON(t)
			}
			most := mostPauseLines
			if f.all {
				most = 0
			}
			return t.Text(&stdout, most)
		},
	}
	f.scenarioFlags.add(c)
	c.Flags().StringVar(&f.on, "on", "sim", "engine of a scenario: sim (virtual time) or netns (real frames between network namespaces; root)")
	f.live.add(c, true)
	c.Flags().StringVar(&f.from, "from", "", "of a scenario: only pauses that lasted after this time, such as 1ms")
	c.Flags().StringVar(&f.to, "to", "", "of a scenario: only pauses that had begun by this time")
	c.Flags().DurationVar(&f.last, "last", 0, "only pauses of so much time before the end, or before now")
	c.Flags().IntVar(&f.keep, "keep", 20_000, "of a scenario: pauses that each switch keeps, the last ones")
	c.Flags().BoolVar(&f.all, "all", false, "all lines")
	c.Flags().BoolVar(&f.json, "json", false, "write JSON, with every single pause")
	return c
}

// ofScenarios returns a flag that was given and means nothing of a fabric that
// is up, "" if there is none.
func ofScenarios(c *cobra.Command) string {
	for _, name := range []string{"on", "keep", "short", "set", "only", "seed", "first-seed", "scale", "poll", "workers", "cpus", "processes", "late-bound"} {
		if c.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// isFile reports whether a word names a scenario and not a fabric.
func isFile(arg string) bool {
	if strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") || strings.Contains(arg, "/") {
		return true
	}
	st, err := os.Stat(arg)
	return err == nil && st.Mode().IsRegular()
}

func (f *traceFlags) window() (from, to float64, err error) {
	to = math.Inf(1)
	for _, v := range []struct {
		flag, text string
		s          *float64
	}{{"--from", f.from, &from}, {"--to", f.to, &to}} {
		if v.text == "" {
			continue
		}
		var d units.Duration
		if err := d.UnmarshalText([]byte(v.text)); err != nil {
			return 0, 0, usagef("%s: %w", v.flag, err)
		}
		*v.s = float64(d) / 1e9
	}
	if to <= from {
		return 0, 0, usagef("--to %s is not after --from %s", f.to, f.from)
	}
	if f.last < 0 || f.last > 0 && (f.from != "" || f.to != "") {
		return 0, 0, usagef("--last is a time by itself, without --from and --to")
	}
	if f.keep < 1 || f.keep > 10_000_000 {
		return 0, 0, usagef("--keep: %d is not from 1 to 10000000", f.keep)
	}
	return from, to, nil
}

// scenario runs one run of a scenario and returns which port paused which in it.
func (f *traceFlags) scenario(ctx context.Context, file string) (*pauses.Trace, error) {
	if f.on != "sim" && f.on != "netns" {
		return nil, usagef("--on: %q is not an engine; there are sim (virtual time) and netns (real frames)", f.on)
	}
	s, err := f.load(file)
	if err != nil {
		return nil, err
	}
	chosen := -1
	for i := range s.Runs {
		if s.Runs[i].Doc.PFC.Enabled {
			chosen = i
			break
		}
	}
	if chosen < 0 {
		return nil, inputf("%s: no port sends pauses without pfc.enabled: true", file)
	}
	if len(s.Runs) > 1 {
		say("run %q, the first one of %d with PFC; --only and --seed choose another", s.Runs[chosen].Name, len(s.Runs))
	}
	s.Runs, s.Expect = []scenario.Run{s.Runs[chosen]}, nil
	o := runner.Options{Version: version, Jobs: 1, On: f.on, Pauses: f.keep, Progress: os.Stderr}
	execute := runner.Scenario
	if f.on == "netns" {
		execute = onNetns
		l, err := f.live.live(s)
		if err != nil {
			return nil, err
		}
		if o.Live, err = f.live.choose(ctx, s, l); err != nil {
			return nil, err
		}
	}
	out, err := execute(ctx, s, o)
	if err != nil {
		return nil, err
	}
	if err := kept(out); err != nil {
		say("WARNING: %v", err)
	}
	if len(out.Runs) == 0 || out.Runs[0].Pauses == nil {
		return nil, fmt.Errorf("%s: the run recorded nothing", file)
	}
	return out.Runs[0].Pauses, nil
}
