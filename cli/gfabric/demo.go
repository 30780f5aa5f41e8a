package gfabric

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control/cli"
	runner "gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/fabric/show"
)

// demoScenario is what the demo shows if nothing else is named.
const demoScenario = "scenarios/demo.yaml"

func demoCommand() *cobra.Command {
	var l liveFlags
	var f scenarioFlags
	var file, on, out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show congestion control at work on real frames, beside what virtual time predicts",
		Long: "demo lets eight hosts send to a ninth at once, with DCQCN and then with HPCC, on real\n" +
			"frames between network namespaces (root). Queues, rates, pauses and flows are drawn\n" +
			"meanwhile, or in a line a second where there is no terminal. A table puts both side\n" +
			"by side and beside the prediction of virtual time, which ran before, and report.html\n" +
			"has everything in one drawing. Everything that was raised is removed.\n\n" +
			"--on sim shows the half that needs no root: virtual time, slowed down so that one can\n" +
			"look on. Another scenario with variants can be shown with --scenario.\n\n" +
			"The exit code is 0 if all expectations of the scenario hold and every run kept time,\n" +
			"1 otherwise. gfabric demo fabric shows something else: a leaf-spine fabric of hosts\n" +
			"with the kernel's own stack.",
		Example: "  gfabric demo\n" +
			"  gfabric demo --on sim\n" +
			"  gfabric demo --scale 3000 --json > demo.json\n" +
			"  gfabric demo --scenario scenarios/agreement/incast2.yaml --short\n" +
			"  gfabric demo fabric",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if on != runner.Sim && on != runner.Netns {
				return usagef("--on: %q is not an engine; there are sim (virtual time) and netns (real frames)", on)
			}
			s, err := f.load(file)
			if errors.Is(err, os.ErrNotExist) && !c.Flags().Changed("scenario") {
				return fmt.Errorf("%w: run gfabric demo in the folder of the project, or name a scenario with --scenario", err)
			}
			if err != nil {
				return err
			}
			o := show.Options{Run: runner.Options{Version: version, Program: program(), On: on}, Out: out, To: os.Stderr}
			if on == runner.Netns {
				if os.Geteuid() != 0 {
					return errors.New("real frames need root, for network namespaces and AF_XDP sockets: run gfabric demo with sudo; gfabric demo --on sim shows the same in virtual time, without root")
				}
				live, err := l.live(s)
				if err != nil {
					return err
				}
				if o.Run.Live, err = l.choose(c.Context(), s, live); err != nil {
					return err
				}
			} else {
				o.Run.Pace = pace(s, &l)
			}
			if err := os.MkdirAll(out, 0o777); err != nil {
				return fmt.Errorf("results cannot be written: %w; give another directory with --out", err)
			}
			t, err := show.Scenario(c.Context(), s, o)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(t)
			} else {
				err = t.Text(&stdout)
			}
			if err != nil {
				return err
			}
			again(on, file, &f, t.Report, o.Run.Pace)
			return t.Err()
		},
	}
	l.add(c, true)
	c.Flags().StringVar(&file, "scenario", demoScenario, "scenario to show")
	c.Flags().BoolVar(&f.short, "short", false, "the short form of the scenario")
	c.Flags().StringVar(&on, "on", runner.Netns, "engine that is looked at: netns (real frames; root) or sim (virtual time)")
	c.Flags().StringVar(&out, "out", filepath.Join("results", "demo-show"), "directory of report.html and of the results of both engines")
	c.Flags().BoolVar(&asJSON, "json", false, "print the table as JSON")
	c.AddCommand(demoFabricCommand())
	return c
}

// usualPace is a millisecond of virtual time in a second.
const usualPace = 1e-3

// pace is how fast virtual time goes by: as on real frames.
func pace(s *scenario.Scenario, l *liveFlags) float64 {
	switch {
	case l.scale > 0:
		return 1 / float64(l.scale)
	case s.Doc.Scale > 0:
		return 1 / float64(s.Doc.Scale)
	}
	return usualPace
}

// again says where everything is, and how to repeat it by hand.
func again(on, file string, f *scenarioFlags, page string, pace float64) {
	if f.short {
		file += " --short"
	}
	how := " --on netns"
	if on == runner.Sim {
		how = fmt.Sprintf(" --pace %v", time.Duration(pace*1e9))
	}
	say("\nThe page with all drawings:  %s", page)
	say("The same by hand:            %s run %s%s --view", os.Args[0], file, how)
	say("The same in the browser:     %s run %s%s --serve %s", os.Args[0], file, how, defaultListen)
}
