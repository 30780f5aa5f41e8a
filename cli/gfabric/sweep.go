package gfabric

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"gswitch/control"
	"gswitch/control/cli"
	"gswitch/fabric/results"
	runner "gswitch/fabric/run"
	"gswitch/natsserver"
	"gswitch/sweep"
)

// queueFlags say where the queue of tasks is.
type queueFlags struct {
	nats     string
	login    natsserver.Login
	replicas int
	cores    int
}

func (f *queueFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.nats, "nats", "", "URL of a NATS server or cluster with JetStream, such as nats://n1:4222,nats://n2:4222")
	c.Flags().StringVar(&f.login.Creds, "creds", "", "file of NATS credentials")
	c.Flags().StringVar(&f.login.Token, "token-file", "", "file with the token of the NATS server, or with USER:PASSWORD")
	c.Flags().IntVar(&f.replicas, "replicas", 1, "servers of a cluster that have each task and result, where the queue is made")
	c.Flags().IntVar(&f.cores, "cores", 1, "cores that step each run of this machine's workers")
}

// dial connects to the server or cluster.
func (f *queueFlags) dial() (*nats.Conn, error) {
	return natsserver.Dial(f.nats, "gfabric", f.login)
}

// worker makes a worker of this machine.
func (f *queueFlags) worker(q *sweep.Queue, jobs int, log io.Writer, level slog.Level) (*sweep.Worker, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	name, err := os.Hostname()
	if err != nil {
		name = "unnamed"
	}
	return &sweep.Worker{Queue: q, Program: program(), Name: fmt.Sprintf("%s/%d", name, os.Getpid()), Jobs: jobs, Log: control.NewLogger(log, level),
		Command: []string{path, "run", "--confined", "--jobs", "1", "--cores", fmt.Sprint(f.cores)}}, nil
}

func sweepCommand() *cobra.Command {
	var f scenarioFlags
	var q queueFlags
	var out, listen string
	var workers int
	var limit time.Duration
	var asJSON, fresh, quiet bool
	c := &cobra.Command{
		Use:   "sweep SCENARIO.yaml",
		Short: "Run a scenario by workers of this machine and of others",
		Long: "sweep does what run does in virtual time, and leaves the same results, but each run of\n" +
			"the scenario is a task in a work queue that workers empty. Without --nats the queue is\n" +
			"within this process, and --workers take tasks on this machine; with --listen workers of\n" +
			"other machines (gfabric worker) take some, too. With --nats it lies in a server or\n" +
			"cluster of NATS with JetStream, and sweep only waits unless --workers says otherwise.\n\n" +
			"A worker that fails loses the time of the runs that it had, and nothing else: after half\n" +
			"a minute another one has them. No run counts twice. A run that fails, takes longer than\n" +
			"--limit or kills five workers is set aside with its error, and the others go on.\n" +
			"Workers take runs of their own build only.\n\n" +
			"The files that a scenario names go to the workers with it; they lie beside it or below.\n" +
			"Whoever can reach the queue can have workers run scenarios: give a cluster credentials.\n" +
			"Interrupted, sweep takes its tasks back, and the same command goes on from there; killed,\n" +
			"it finds in a cluster what came meanwhile.\n\n" +
			"Exit codes are those of run.",
		Example: "  gfabric sweep scenarios/irn/tab4.2-load.yaml --seed 1,2,3,4,5\n" +
			"  gfabric sweep big.yaml --listen 10.0.0.5:4222 --token-file token\n" +
			"  gfabric sweep big.yaml --nats nats://n1:4222 --creds sweep.creds --limit 1h",
		Args: one("a scenario, such as scenarios/quickstart.yaml"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := f.load(args[0])
			if err != nil {
				return err
			}
			files, err := s.Files()
			if err != nil {
				return mistake(err)
			}
			if q.nats != "" && listen != "" {
				return usagef("--listen is about the queue within this process, --nats about one elsewhere; give one of them")
			}
			if !c.Flags().Changed("workers") && q.nats == "" {
				workers = runner.DefaultJobs()
			}
			if out == "" {
				out = resultsOf(s, f.short, "sim")
			}
			scratch, err := sweep.NewScratch("")
			if err != nil {
				return err
			}
			defer scratch.Close()
			nc, stop, err := q.connect(listen, scratch)
			if err != nil {
				return err
			}
			defer stop()
			id, err := sweepID(out, fresh)
			if err != nil {
				return err
			}
			queue, err := sweep.Open(c.Context(), nc, q.replicas, scratch)
			if err != nil {
				return err
			}
			o := runner.Options{Version: version, Program: program(), Out: out, Fresh: fresh}
			if !quiet {
				o.Progress = os.Stderr
			}
			sweeping, err := queue.Begin(c.Context(), id, program(), s.File, files)
			if err != nil {
				return err
			}
			o.Elsewhere = func(ctx context.Context, r runner.Order) (string, error) {
				return sweeping.Run(ctx, sweep.Task{Print: r.Print, Name: r.Run.Name, Seed: r.Run.Seed, Short: f.short, Set: f.set, Limit: int64(limit)}, r.Began)
			}
			file, err := q.divide(c.Context(), queue, sweeping, workers, func(ctx context.Context) (*results.File, error) { return runner.Scenario(ctx, s, o) })
			if file == nil {
				return err
			}
			if err := errors.Join(err, present(file, out, asJSON)); err != nil {
				return err
			}
			return unmet(file)
		},
	}
	f.add(c)
	q.add(c)
	c.Flags().StringVar(&listen, "listen", "", "host:port at which workers of other machines reach the queue within this process")
	c.Flags().IntVar(&workers, "workers", 0, "runs that this machine executes side by side; as many as there are processors, with --nats none, if left out")
	c.Flags().DurationVar(&limit, "limit", 0, "longest that a run may take, such as 2h; none if left out")
	c.Flags().StringVar(&out, "out", "", "directory of results; results/NAME if left out, with -short where that is asked for")
	c.Flags().BoolVar(&asJSON, "json", false, "print results.json in place of tables")
	c.Flags().BoolVar(&fresh, "fresh", false, "run again what the directory has already")
	c.Flags().BoolVar(&quiet, "quiet", false, "no progress on standard error")
	return c
}

// sweepID names a sweep by where its results go: the same command finds what came
// while it did not run, unless everything is to be run again.
func sweepID(out string, fresh bool) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	here, err := filepath.Abs(out)
	if err != nil {
		return "", err
	}
	if fresh {
		return sweep.ID(host, here, rand.Text()), nil
	}
	return sweep.ID(host, here), nil
}

// connect connects to the queue, and makes the server if it is within.
func (f *queueFlags) connect(listen string, scratch *sweep.Scratch) (nc *nats.Conn, stop func(), err error) {
	if f.nats != "" {
		nc, err := f.dial()
		if err != nil {
			return nil, nil, err
		}
		return nc, nc.Close, nil
	}
	if listen != "" && f.login.Token == "" {
		return nil, nil, usagef("--listen lets other machines in: name a file with a token that they must have, too (--token-file)")
	}
	token := ""
	if f.login.Token != "" {
		if token, err = natsserver.ReadToken(f.login.Token); err != nil {
			return nil, nil, err
		}
	}
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	server, err := natsserver.New(natsserver.Options{Program: "gfabric", Dir: filepath.Join(scratch.Dir, "queue"), Listen: listen, Limit: 64 << 30, Token: token, Log: control.NewLogger(os.Stderr, slog.LevelError)})
	if err != nil {
		return nil, nil, err
	}
	if nc, err = server.Connect(); err != nil {
		server.Close()
		return nil, nil, err
	}
	return nc, func() { nc.Close(); server.Close() }, nil
}

// divide does what is to be done while workers of this machine empty the queue, and
// takes out what is left of it at the end.
func (f *queueFlags) divide(ctx context.Context, q *sweep.Queue, w *sweep.Sweep, workers int, do func(context.Context) (*results.File, error)) (*results.File, error) {
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	if workers > 0 {
		worker, err := f.worker(q, workers, os.Stderr, slog.LevelWarn)
		if err != nil {
			return nil, err
		}
		go func() { ended <- worker.Run(working) }()
	} else {
		ended <- nil
	}
	file, err := do(ctx)
	err = errors.Join(err, w.End(ctx))
	cancel()
	return file, errors.Join(err, <-ended)
}

func workerCommand() *cobra.Command {
	var q queueFlags
	var jobs int
	c := &cobra.Command{
		Use:   "worker",
		Short: "Take runs of sweeps from a queue, and execute them",
		Long: "worker takes runs that gfabric sweep puts into a queue of NATS JetStream, executes each\n" +
			"in a process of its own, and gives their results back, until it is interrupted: what it\n" +
			"has not finished then goes to another worker at once. It takes runs of its own build\n" +
			"only, and says how many wait for others. Runs read the files that came with their\n" +
			"scenario, and no others.",
		Example: "  gfabric worker --nats nats://10.0.0.5:4222 --token-file token\n" +
			"  gfabric worker --nats nats://n1:4222 --creds worker.creds --jobs 8",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if q.nats == "" {
				return usagef("say where the queue is: --nats nats://HOST:PORT")
			}
			nc, err := q.dial()
			if err != nil {
				return err
			}
			defer nc.Close()
			scratch, err := sweep.NewScratch("")
			if err != nil {
				return err
			}
			defer scratch.Close()
			queue, err := sweep.Open(c.Context(), nc, q.replicas, scratch)
			if err != nil {
				return err
			}
			if jobs < 0 {
				return usagef("--jobs is counted from 1; left out, it follows the number of processors")
			}
			if jobs == 0 {
				jobs = max(1, runner.DefaultJobs()/max(1, q.cores))
			}
			w, err := q.worker(queue, jobs, os.Stderr, slog.LevelInfo)
			if err != nil {
				return err
			}
			return w.Run(c.Context())
		},
	}
	q.add(c)
	c.Flags().IntVar(&jobs, "jobs", 0, "runs side by side; as many as the processors allow if left out")
	return c
}
