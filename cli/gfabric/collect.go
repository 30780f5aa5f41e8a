package gfabric

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"gswitch/dataplane"
	"gswitch/fabric"
	"gswitch/fabric/export"
	"gswitch/fabric/lab"
	"gswitch/fabric/live"
	runner "gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/frame"
)

func collectCommand() *cobra.Command {
	var f scenarioFlags
	var out, poll string
	var scale int
	var bound, wait time.Duration
	var asJSON, fresh, quiet bool
	c := &cobra.Command{
		Use:   "collect DIR",
		Short: "Run a scenario on its containers, and collect the results",
		Long: "collect runs the scenario that gfabric export wrote to a directory, on the containers\n" +
			"that were made of it: each node is a process in one of them, and frames go by the\n" +
			"links between them. The containers run on this machine, whose clock they share.\n" +
			"Results are those of gfabric run, in results/NAME-containers if --out names no other\n" +
			"place; gfabric compare puts them beside those of other engines.\n\n" +
			"Exit codes are those of gfabric run.",
		Example: "  gfabric export compose scenarios/agreement/incast2.yaml --dir lab\n" +
			"  (cd lab && docker compose up -d && sudo ./wire.sh)\n" +
			"  gfabric collect lab --scale 4000",
		Args: one("a directory that gfabric export wrote"),
		RunE: func(c *cobra.Command, args []string) error {
			mode, err := dataplane.ParsePollMode(poll)
			switch {
			case err != nil:
				return usagef("--poll: %w", err)
			case scale < 0 || scale > largestScale:
				return usagef("--scale: %d is not from 1 to %d", scale, largestScale)
			case bound < 0:
				return usagef("--late-bound: %v is negative", bound)
			}
			program := program() // before the working directory changes
			// Containers have the scenario's files at other paths: those that name one
			// another hold from the directory.
			s, err := f.loadIn(args[0], &out)
			if err != nil {
				return err
			}
			if _, err := export.Of(s); err != nil {
				return mistake(err)
			}
			o := runner.Options{Version: version, Program: program, Jobs: 1, Out: out, Fresh: fresh, On: runner.Containers,
				Live: runner.Live{Division: live.Each, Dilation: int64(scale), Bound: frame.Time(bound), Poll: mode,
					Wires: func(context.Context, *fabric.Plan) (runner.Wires, error) { return containers{}, nil },
					Start: func(name, _ string) (*runner.Process, error) { return reach(c.Context(), name, wait) }}}
			if !quiet {
				o.Progress = os.Stderr
			}
			defer lab.GoFirst()()
			file, err := runner.Scenario(c.Context(), s, o)
			if err != nil {
				return err
			}
			if err := present(file, out, asJSON); err != nil {
				return err
			}
			if err := kept(file); err != nil {
				return err
			}
			return unmet(file)
		},
	}
	f.add(c)
	c.Flags().StringVar(&out, "out", "", "directory of results; results/NAME-containers if left out")
	c.Flags().IntVar(&scale, "scale", 0, "rates are divided and times multiplied by it; that of the scenario, or 1000, if left out")
	c.Flags().StringVar(&poll, "poll", "sleep", "poll mode of the nodes' workers: sleep (before all other programs), adaptive or spin")
	c.Flags().DurationVar(&bound, "late-bound", 0, "99th percentile of lateness, in the time of the nodes, up to which a run is valid; a quarter of T if left out")
	c.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long to wait for a node that takes no runs yet")
	c.Flags().BoolVar(&asJSON, "json", false, "print results.json in place of tables")
	c.Flags().BoolVar(&fresh, "fresh", false, "run again what the directory has already")
	c.Flags().BoolVar(&quiet, "quiet", false, "no progress on standard error")
	return c
}

// loadIn loads the scenario of containers from where it lies, which becomes the
// working directory. out is made absolute, or one below the directory that was it.
func (f *scenarioFlags) loadIn(dir string, out *string) (*scenario.Scenario, error) {
	was, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	m, err := export.ReadManifest(dir)
	if err != nil {
		return nil, mistake(err)
	}
	if err := os.Chdir(filepath.Join(dir, export.Files)); err != nil {
		return nil, mistake(err)
	}
	f.set = append(m.Set, f.set...)
	if f.only == nil {
		f.only = m.Only
	}
	s, err := f.load(m.Scenario)
	if err != nil {
		return nil, err
	}
	if *out == "" {
		*out = resultsOf(s, f.short, runner.Containers)
	}
	if !filepath.IsAbs(*out) {
		*out = filepath.Join(was, *out)
	}
	return s, nil
}

// containers are the links of nodes that are containers: each node knows its own
// interfaces by their names.
type containers struct{}

// End implements live.Wires.
func (containers) End(_, port int) (netns, iface string) { return "", export.Interface(port) }

// Env implements runner.Wires.
func (containers) Env() string { return "" }

// Close implements runner.Wires: the links belong to the containers.
func (containers) Close() error { return nil }

// reach connects to the node of a name.
func reach(ctx context.Context, name string, wait time.Duration) (*runner.Process, error) {
	path := filepath.Join("..", export.Socket(name))
	var d net.Dialer
	for deadline := time.Now().Add(wait); ; {
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			r := &remote{Conn: conn, gone: make(chan struct{})}
			return &runner.Process{Conn: r, Kill: func() { r.Close() }, Wait: func() error { <-r.gone; return nil }}, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("it takes no runs at %s: %w; does its container run, and has it its links?", filepath.Clean(path), err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// remote is a connection to a node in a container: it has ended when one of both ends
// closes it.
type remote struct {
	net.Conn
	once sync.Once
	gone chan struct{}
}

// Read implements io.Reader.
func (r *remote) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	if err != nil {
		r.end()
	}
	return n, err
}

// Close implements io.Closer.
func (r *remote) Close() error {
	err := r.Conn.Close()
	r.end()
	return err
}

func (r *remote) end() { r.once.Do(func() { close(r.gone) }) }
