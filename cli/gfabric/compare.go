package gfabric

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/fabric/report"
	"gswitch/fabric/results"
)

// loadResults reads results; what is wrong with them is the caller's mistake.
func loadResults(path string) (*results.File, error) {
	f, err := results.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, inputf("%s: there are no results; gfabric run writes them to results/NAME, or where --out says", path)
	}
	return f, mistake(err)
}

// textOptions suit standard output: plain text of 100 columns unless it is a
// terminal.
func textOptions() report.TextOptions {
	size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return report.TextOptions{}
	}
	return report.TextOptions{Width: max(60, int(size.Col)), Color: os.Getenv("NO_COLOR") == ""}
}

func reportCommand() *cobra.Command {
	var html, figures string
	var text bool
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Show the results of a run: a table here, or a page with drawings",
		Long: "report shows what gfabric run left in a directory. Without flags it prints the\n" +
			"table; with --html it writes a page that needs no network; with --figures each\n" +
			"drawing of the page becomes a file for a paper, as SVG and as PDF.",
		Example: "  gfabric report results/incast\n" +
			"  gfabric report results/incast --html incast.html\n" +
			"  gfabric report results/incast --figures figures/",
		Args: one("a directory of results, such as results/quickstart"),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := loadResults(args[0])
			if err != nil {
				return err
			}
			if html != "" {
				if err := report.WritePage(html, f); err != nil {
					return err
				}
			}
			if figures != "" {
				n, err := report.WriteFigures(figures, f)
				if err != nil {
					return err
				}
				say("%d drawings are in %s, each as SVG and PDF", n, figures)
			}
			if text || html == "" && figures == "" {
				return report.Text(&stdout, f, textOptions())
			}
			return nil
		},
	}
	c.Flags().StringVar(&html, "html", "", "write the page to this file")
	c.Flags().StringVar(&figures, "figures", "", "write every drawing to this directory, as SVG and PDF")
	c.Flags().BoolVar(&text, "text", false, "print the table even with --html or --figures")
	return c
}

func compareCommand() *cobra.Command {
	var engines engineFlags
	var asJSON, all bool
	var tolerance, value string
	c := &cobra.Command{
		Use:   "compare A B [C...] | --sim --netns SCENARIO.yaml...",
		Short: "Put results side by side; judge the distance between virtual time and real frames",
		Long: "compare matches the runs of several results by name and parameters and shows\n" +
			"their values side by side, the distance between their distributions (KS), and\n" +
			"which expectations flipped. Differences are against the first. Values that are the\n" +
			"same everywhere are only counted, unless --all is given.\n\n" +
			"With --sim --netns the arguments are scenarios (root): each is run in virtual time and\n" +
			"on real frames, where that is not done already (results/NAME, results/NAME-netns), and\n" +
			"what comes out is judged: percentiles 50, 95 and 99 of the slowdown of flows within\n" +
			"15 %, percentiles 50 and 95 of queue depths within 0.15 bandwidth-delay products, and\n" +
			"runs that virtual time separates by more than that in the same order. Runs that did\n" +
			"not keep time are not judged.\n\n" +
			"Exit codes: 0 within the tolerance or the bounds, 1 beyond them, 2 the command line or\n" +
			"a file is wrong, 3 nothing is beyond, but runs did not keep time.",
		Example: "  gfabric compare results/before results/after\n" +
			"  gfabric compare a b --tolerance 10% --value 'slowdown_*'\n" +
			"  gfabric compare --sim --netns scenarios/agreement/*.yaml\n" +
			"  gfabric compare --sim --netns scenarios/agreement/incast8.yaml --html 8.html",
		RunE: func(c *cobra.Command, args []string) error {
			if both, err := engines.both(); err != nil {
				return err
			} else if both {
				return engines.engines(c.Context(), args, asJSON)
			}
			if len(args) < 2 {
				return usagef("name two directories of results or more, such as results/before results/after")
			}
			var files []*results.File
			for _, path := range args {
				f, err := loadResults(path)
				if err != nil {
					return err
				}
				files = append(files, f)
			}
			cmp := report.Compare(args, files)
			o := textOptions()
			o.Equal = all
			write := func() error { return cmp.Text(&stdout, o) }
			if asJSON {
				write = func() error { return writeJSON(cmp) }
			}
			if err := write(); err != nil {
				return err
			}
			if tolerance == "" {
				return nil
			}
			return judge(os.Stderr, cmp, value, tolerance)
		},
	}
	engines.addAll(c)
	c.Flags().BoolVar(&all, "all", false, "show values that do not differ, too")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	c.Flags().StringVar(&tolerance, "tolerance", "", "fail if a value differs from the first by more, such as 10%")
	c.Flags().StringVar(&value, "value", "*", "pattern of the names of values that --tolerance judges")
	return c
}

// judge fails if values differ by more than the tolerance, and says which.
func judge(w io.Writer, c *report.Comparison, pattern, tolerance string) error {
	share, err := parseShare(tolerance)
	if err != nil {
		return err
	}
	beyond, err := c.Beyond(pattern, share)
	if err != nil {
		return usagef("--value: %w", err)
	}
	for _, line := range beyond {
		fmt.Fprintln(w, line)
	}
	if len(beyond) > 0 {
		return fmt.Errorf("%d values differ by more than %s", len(beyond), tolerance)
	}
	return nil
}

// parseShare reads 10% or 0.1.
func parseShare(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v >= 0) || v > 1e6 {
		return 0, usagef("--tolerance: %q is not a share such as 10%%", s)
	}
	if percent {
		v /= 100
	}
	return v, nil
}
