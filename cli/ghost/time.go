package ghost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gswitch/clocktime"
	"gswitch/control"
	"gswitch/control/cli"
	"gswitch/table"
)

// timeNow is what time prints.
type timeNow struct {
	Host     string    `json:"host"`
	State    string    `json:"state"`
	Earliest time.Time `json:"earliest"`
	Latest   time.Time `json:"latest"`
	Root     string    `json:"root"` // identity of the clock that is followed
}

func (a *app) timeCommand() *cobra.Command {
	var page string
	unit := -1
	c := &cobra.Command{
		Use:   "time",
		Short: "The synchronised time: the interval in which the root's lies",
		Long: "time reads the page of shared memory of each host whose document has clock, as any\n" +
			"program can (Go package clocktime, gswitch_clock.h in C): the root's time lies between\n" +
			"earliest and latest. The page is the file NAME.clock beside the daemon's socket;\n" +
			"--page names another one, such as that of a switch.\n\n" +
			"With --ntp-shm it goes on until it is interrupted and hands a sample each second to\n" +
			"chronyd (refclock SHM UNIT) or ntpd, which then set the machine's clock by it.",
		Example: "  ghost time\n  ghost time --host h3 --json\n  ghost time --page /run/gswitch/s1.clock\n  ghost time --host h1 --ntp-shm 2",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			pages := []string{page}
			if page == "" {
				var err error
				if pages, err = a.pages(c.Context()); err != nil {
					return err
				}
			}
			if unit >= 0 {
				if len(pages) > 1 {
					return cli.Usage(fmt.Errorf("--ntp-shm: say whose time by --host: there are %s", strings.Join(pages, ", ")))
				}
				return handOver(c.Context(), c.OutOrStdout(), pages[0], unit)
			}
			var all []timeNow
			for _, path := range pages {
				v, err := readTime(path)
				if err != nil {
					return err
				}
				all = append(all, v)
			}
			if a.json {
				e := json.NewEncoder(c.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(all)
			}
			printTimes(c.OutOrStdout(), all)
			return nil
		},
	}
	c.Flags().StringVar(&page, "page", "", "page of shared memory to read")
	c.Flags().IntVar(&unit, "ntp-shm", -1, "unit of NTP's shared memory to hand samples over by")
	return c
}

func printTimes(w io.Writer, all []timeNow) {
	t := table.New("HOST", "STATE", "EARLIEST", "LATEST", ">UNCERTAINTY", "ROOT")
	for _, v := range all {
		if v.Latest.IsZero() {
			t.Row(v.Host, v.State, "-", "-", "-", "-")
			continue
		}
		t.Row(v.Host, v.State, v.Earliest.UTC().Format(time.RFC3339Nano), v.Latest.UTC().Format(time.RFC3339Nano), v.Latest.Sub(v.Earliest)/2, v.Root)
	}
	t.Print(w)
}

// pages are those of the hosts of the daemon, or of the one that --host names.
func (a *app) pages(ctx context.Context) ([]string, error) {
	_, socket, err := a.client(ctx)
	if err != nil {
		return nil, err
	}
	name := a.host
	if name == "" {
		name = "*"
	}
	pages, _ := filepath.Glob(control.PagePath(socket, name))
	if len(pages) == 0 {
		return nil, fmt.Errorf("there is no %s: the document of a host that has clock makes one", control.PagePath(socket, name))
	}
	return pages, nil
}

// readTime reads a page. A clock that is not synchronised has no times.
func readTime(path string) (v timeNow, err error) {
	c, err := clocktime.Open(path)
	if err != nil {
		return v, err
	}
	defer c.Close()
	m, err := c.Image()
	if err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	v = timeNow{Host: strings.TrimSuffix(filepath.Base(path), ".clock"), State: m.State.String()}
	if earliest, latest, err := c.Now(); err == nil {
		v.Earliest, v.Latest, v.Root = earliest, latest, fmt.Sprintf("%016x", m.Root)
	}
	return v, nil
}

// sample reads a page anew: a daemon that ended and was started again has made another.
func sample(path string) (s clocktime.Sample, err error) {
	c, err := clocktime.Open(path)
	if err != nil {
		return s, err
	}
	defer c.Close()
	return c.Sample()
}

// handOver hands a sample to NTP's programs each second until ctx ends. While the clock
// is not synchronised, or its daemon away, there are none.
func handOver(ctx context.Context, w io.Writer, path string, unit int) error {
	if _, err := sample(path); err != nil && !errors.Is(err, clocktime.ErrUnknown) {
		return err
	}
	to, err := clocktime.OpenNTPSegment(unit)
	if err != nil {
		return err
	}
	defer to.Close()
	fmt.Fprintf(w, "samples of %s go to unit %d of NTP's shared memory; chrony.conf: refclock SHM %d refid GSW\n", path, unit, unit)
	for t := time.NewTicker(time.Second); ; {
		if s, err := sample(path); err == nil {
			eps := s.Latest.Sub(s.Earliest) / 2
			to.Write(s.Earliest.Add(eps), s.Machine, eps)
		}
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}
