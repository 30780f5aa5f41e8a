package gfabric

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"gswitch/control"
	"gswitch/control/cli"
	"gswitch/control/privilege"
	runner "gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/fabric/view"
	"gswitch/fabric/web"
)

func siteCommand() *cobra.Command {
	var f scenarioFlags
	var l liveFlags
	var keep cli.Privileges
	var file, on, listen string
	var pace time.Duration
	var repeat bool
	c := &cobra.Command{
		Use:   "serve [NAME] | serve --scenario SCENARIO.yaml",
		Short: "Show a fabric in the browser while it runs",
		Long: "serve shows a fabric on a local web page: its topology, how loaded links are, where\n" +
			"queues are and which port pauses which; click a port or a flow for its history.\n\n" +
			"NAME is a fabric that gfabric up raised (root); it may be left out where there is one\n" +
			"only. With --scenario, the runs of a scenario are shown one after the other, in\n" +
			"virtual time or (--on netns, root) on real frames. They begin when the page is\n" +
			"opened, and no results are kept: that is what gfabric run SCENARIO --serve does.\n\n" +
			"The page loads nothing from elsewhere. What it draws is at /api/layout and, as\n" +
			"Server-Sent Events, at /api/samples. There is no password: with another\n" +
			"address than one of this machine itself, all who reach it can watch.\n" +
			"Privileges that this does not need are dropped before the first answer, unless\n" +
			"--keep-privileges or --on netns keeps them.",
		Example: "  gfabric serve\n" +
			"  gfabric serve ring --listen 127.0.0.1:9000\n" +
			"  gfabric serve --scenario scenarios/quickstart.yaml\n" +
			"  gfabric serve --scenario scenarios/quickstart.yaml --pace 100us --repeat\n" +
			"  gfabric serve --scenario scenarios/quickstart.yaml --on netns\n" +
			"  curl -N http://127.0.0.1:8080/api/samples?every=1s",
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if file == "" {
				if on != "sim" || pace != 0 || repeat || len(f.set)+len(f.only)+len(f.seeds) > 0 || f.short {
					return usagef("--on, --pace, --repeat, --set, --seed, --only and --short are about a scenario: name it with --scenario")
				}
				return serveLab(c.Context(), args, listen, &keep)
			}
			if len(args) > 0 {
				return usagef("%q and --scenario %s: give one of them", args[0], file)
			}
			if on != "sim" && on != "netns" {
				return usagef("--on: %q is not an engine; there are sim (virtual time) and netns (real frames)", on)
			}
			if pace < 0 {
				return usagef("--pace: %v is negative", pace)
			}
			s, err := f.load(file)
			if err != nil {
				return err
			}
			o := runner.Options{Version: version, Jobs: 1, On: on, Pace: pace.Seconds()}
			if pace == 0 {
				o.Pace = time.Duration(s.Runs[0].Doc.Duration).Seconds() / 60
			}
			if on == "netns" {
				live, err := l.live(s)
				if err != nil {
					return err
				}
				if o.Live, err = l.choose(c.Context(), s, live); err != nil {
					return err
				}
			}
			if on == "sim" {
				if err := keep.Drop(slog.Default(), privilege.Need{Read: []string{filepath.Dir(file)}}); err != nil {
					return err
				}
			}
			return serveScenario(c.Context(), s, o, listen, repeat)
		},
	}
	f.add(c)
	l.add(c, true)
	c.Flags().StringVar(&file, "scenario", "", "run this scenario and show it")
	c.Flags().StringVar(&on, "on", "sim", "engine of the scenario: sim (virtual time) or netns (real frames)")
	c.Flags().DurationVar(&pace, "pace", 0, "virtual time that may go by in a second, such as 200us; if left out, a run takes a minute. 1s does not slow it")
	c.Flags().BoolVar(&repeat, "repeat", false, "begin again when all runs are over")
	c.Flags().StringVar(&listen, "listen", defaultListen, "address of the page")
	keep.Flag(c.Flags())
	return c
}

const defaultListen = "127.0.0.1:8080"

func serveLab(ctx context.Context, args []string, listen string, keep *cli.Privileges) error {
	src, err := openLab(args, 0)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := keep.Drop(slog.Default(), privilege.Need{Sockets: true}); err != nil {
		return err
	}
	site, err := open(src, listen)
	if err != nil {
		return err
	}
	defer site.close()
	<-ctx.Done()
	return nil
}

func serveScenario(ctx context.Context, s *scenario.Scenario, o runner.Options, listen string, repeat bool) error {
	relay := view.NewRelay(view.NewLayout(s.Runs[0].Topology))
	defer relay.Close()
	site, err := open(relay, listen)
	if err != nil {
		return err
	}
	defer site.close()
	select {
	case <-ctx.Done():
		return nil
	case <-site.web.FirstViewer():
	}
	o.Watch = func(src view.Source) {
		say("%s", "a run begins")
		relay.Show(src)
	}
	for {
		_, err := runner.Scenario(ctx, s, o)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !repeat {
			break
		}
	}
	say("all runs are over; the page stays until Ctrl-C")
	<-ctx.Done()
	return nil
}

// site is a page that is served.
type site struct {
	web  *web.Server
	stop func() // ends the server, and waits for it
}

// open serves a source and says where.
func open(src view.Source, address string) (*site, error) {
	return serveAt(address, "--listen", func(remote bool) *web.Server { return web.New(src, remote) })
}

// serveAt serves what made makes at an address that a flag names.
func serveAt(address, flag string, made func(remote bool) *web.Server) (*site, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usagef("%s: %q is not an address such as %s: %w", flag, address, defaultListen, err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w; choose another address with %s, 127.0.0.1:0 takes a port that is free", address, err, flag)
	}
	local := host == "localhost"
	if a, err := netip.ParseAddr(host); err == nil && a.IsLoopback() {
		local = true
	}
	if !local {
		say("warning: %s is not for this machine alone: all who reach it can watch the fabric", address)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s := &site{web: made(!local), stop: func() { cancel(); <-ended }}
	go func() {
		defer close(ended)
		// It bounds who looks on as daemons bound who asks them.
		if err := control.Serve(ctx, s.web, []net.Listener{l}, new(control.Clients)); ctx.Err() == nil {
			say("the page is gone: %v", err)
		}
	}()
	say("open http://%s", l.Addr())
	return s, nil
}

func (s *site) close() {
	s.web.Close()
	s.stop()
}

// watchFlags are those of gfabric run by which one looks at it.
type watchFlags struct {
	serve string
	view  bool
	pace  time.Duration
	keep  cli.Privileges
}

func (f *watchFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.serve, "serve", "", "show the runs in the browser meanwhile, at an address such as "+defaultListen)
	c.Flags().BoolVar(&f.view, "view", false, "show the runs in this terminal meanwhile")
	c.Flags().DurationVar(&f.pace, "pace", 0, "with --serve or --view: virtual time that may go by in a second, such as 200us; not slowed if left out")
}

// start shows the runs of s that o will make, until what it returns is called.
func (f *watchFlags) start(ctx context.Context, s *scenario.Scenario, o *runner.Options) (end func(), err error) {
	switch {
	case f.pace < 0:
		return nil, usagef("--pace: %v is negative", f.pace)
	case f.serve == "" && !f.view && f.pace > 0:
		return nil, usagef("--pace is for those who look on: give --serve or --view too")
	case f.serve == "" && !f.view:
		return func() {}, nil
	}
	relay := view.NewRelay(view.NewLayout(s.Runs[0].Topology))
	stops := []func(){relay.Close}
	end = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	if f.serve != "" {
		site, err := open(relay, f.serve)
		if err != nil {
			end()
			return nil, err
		}
		stops = append(stops, site.close)
	}
	if f.view {
		ctx, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := view.Terminal(ctx, os.Stderr, relay, view.TerminalOptions{}); err != nil {
				say("no view: %v", err)
			}
		}()
		o.Progress = nil // it would write between the lines
		stops = append(stops, func() { stop(); <-done })
	}
	// What the directory of results has already could not be looked at.
	o.Watch, o.Pace, o.Jobs, o.Fresh = relay.Show, f.pace.Seconds(), 1, true
	return end, nil
}
