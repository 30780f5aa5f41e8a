package sweep

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"
)

// Worker takes tasks and executes them, each in a process of its own.
type Worker struct {
	Queue   *Queue
	Program string        // names the build
	Name    string        // names the worker
	Command []string      // what runs a scenario: gfabric run, and flags that all runs get
	Jobs    int           // at once
	Wait    time.Duration // without a word after which another worker gets the task; Lease if 0
	Tries   int           // after which a task counts as what kills workers; 5 if 0
	Log     *slog.Logger
}

// Lease is after how long without a word of a worker another one gets its task.
const Lease = 30 * time.Second

// Run takes tasks until ctx ends. What it has not finished then is another's at once.
func (w *Worker) Run(ctx context.Context) error {
	if w.Wait == 0 {
		w.Wait = Lease
	}
	if w.Tries == 0 {
		w.Tries = 5
	}
	w.others(ctx)
	c, err := w.Queue.js.CreateOrUpdateConsumer(ctx, taskStream, jetstream.ConsumerConfig{Durable: "build-" + build(w.Program), FilterSubject: "gfabric.task." + build(w.Program) + ".>",
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: w.Wait, MaxAckPending: -1, InactiveThreshold: kept})
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	for range w.Jobs {
		group.Go(func() {
			failed := 0 // in a row
			for ctx.Err() == nil {
				m, err := c.Next(jetstream.FetchMaxWait(5 * time.Second))
				switch {
				case err == nil:
					if w.take(ctx, m) {
						failed = 0
						continue
					}
					// Each time that a task is given back counts as a try of it.
					rest(ctx, w.Wait<<min(failed, 4))
					failed++
				case !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, jetstream.ErrNoMessages):
					w.Log.Warn("no task can be had", "error", err)
					rest(ctx, time.Second) // the server may be back soon
				}
			}
		})
	}
	group.Wait()
	return nil
}

// rest waits, unless ctx ends.
func rest(ctx context.Context, wait time.Duration) {
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}

// others says what waits for workers of another build.
func (w *Worker) others(ctx context.Context) {
	info, err := w.Queue.tasks.Info(ctx, jetstream.WithSubjectFilter("gfabric.task.>"))
	if err != nil {
		return // the next request shows
	}
	builds := map[string]int{}
	for s := range info.State.Subjects {
		if parts := strings.Split(s, "."); len(parts) == 5 && parts[2] != build(w.Program) {
			builds[parts[2]]++
		}
	}
	for b, n := range builds {
		w.Log.Warn("runs wait for workers of another build, and are not for this one", "runs", n, "build", b, "this", build(w.Program))
	}
}

// take executes a task, and takes it out of the queue when its outcome is there. It
// returns false if this worker could not, for want of disk or of the server: others
// may, and it is not to take and give back all that waits.
func (w *Worker) take(ctx context.Context, m jetstream.Msg) (able bool) {
	var t Task
	if err := json.Unmarshal(m.Data(), &t); err != nil {
		w.Log.Error("a task cannot be read, and is dropped", "error", err)
		m.Term()
		return true
	}
	log := w.Log.With("run", t.Name, "seed", t.Seed)
	meta, err := m.Metadata()
	if err != nil {
		log.Error("a task has no metadata", "error", err)
		return true
	}
	var o outcome
	switch {
	case !filepath.IsLocal(t.File):
		o.Error = fmt.Sprintf("the scenario %q is none of the files that came with it", t.File)
	case meta.NumDelivered > uint64(w.Tries):
		o.Error = fmt.Sprintf("%d workers took this run and none of them came to its end", w.Tries)
	default:
		log.Info("begins", "try", meta.NumDelivered)
		began := time.Now()
		o, err = w.execute(ctx, m, &t)
		if err != nil { // of this worker, not of the run
			if errors.Is(err, errCancelled) {
				return true
			}
			level := slog.LevelWarn
			if ctx.Err() != nil {
				level = slog.LevelInfo // this worker is to end
			}
			log.Log(context.Background(), level, "is given back", "error", err)
			m.Nak()
			return false
		}
		log.Info("is done", "took", time.Since(began).Round(time.Millisecond), "error", o.Error)
	}
	o.Worker = w.Name
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	first, err := w.Queue.conclude(end, &t, o)
	if err != nil {
		log.Warn("what came of it cannot be written", "error", err)
		return false // it comes again
	}
	if !first && o.Object != "" {
		w.Queue.objects.Delete(end, o.Object) // another worker was quicker
	}
	if err := m.DoubleAck(end); err != nil {
		log.Warn("the queue does not know that it is done, so that it may be done again, for nothing", "error", err)
	}
	return true
}

// errCancelled says that the results of a task are no longer wanted.
var errCancelled = errors.New("the sweep has ended")

// execute runs a task and keeps it as long as that takes. The error is one of the
// worker; those of the run are in the outcome.
func (w *Worker) execute(ctx context.Context, m jetstream.Msg, t *Task) (o outcome, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sub, err := w.Queue.nc.Subscribe("gfabric.cancel."+t.Sweep, func(*nats.Msg) {
		m.Ack()
		cancel(errCancelled)
	})
	if err != nil {
		return o, err
	}
	defer sub.Unsubscribe()
	go func() {
		tick := time.NewTicker(w.Wait / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				m.InProgress()
			}
		}
	}()
	w.Queue.nc.Publish("gfabric.started."+t.Sweep, []byte(t.Print))
	dir, err := w.Queue.fetch(ctx, t.Sweep+"/scenario")
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		m.Ack() // its coordinator took everything out
		return o, errCancelled
	}
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	results := filepath.Join(dir, ".results")
	if o.Error, err = w.run(ctx, t, filepath.Join(dir, t.File), results); ctx.Err() != nil {
		return o, context.Cause(ctx)
	}
	if err != nil || o.Error != "" {
		return o, err
	}
	o.Object = t.Sweep + "/" + t.Print + "/" + rand.Text()
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(pack(pw, results, nil)) }()
	_, err = w.Queue.objects.Put(ctx, jetstream.ObjectMeta{Name: o.Object}, pr)
	pr.CloseWithError(err)
	return o, err
}

// errFullDisk says that a run had no room for its results on this machine.
var errFullDisk = errors.New("no room for the results of a run")

// run executes a scenario's run in a process of its own, which dies with this one,
// and returns what was wrong with it. The error is one of the worker.
func (w *Worker) run(ctx context.Context, t *Task, scenario, results string) (string, error) {
	limited, cancel := context.WithCancel(ctx)
	if t.Limit > 0 {
		limited, cancel = context.WithTimeout(ctx, time.Duration(t.Limit))
	}
	defer cancel()
	args := append(append([]string{}, w.Command[1:]...), "--only", t.Name, "--seed", strconv.FormatUint(t.Seed, 10), "--out", results, "--quiet")
	if t.Short {
		args = append(args, "--short")
	}
	for _, set := range t.Set {
		args = append(args, "--set", set)
	}
	c := exec.CommandContext(limited, w.Command[0], append(args, "--", scenario)...)
	var said tail
	c.Stderr, c.WaitDelay = &said, 10*time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	err := c.Run()
	if limited.Err() != nil {
		return fmt.Sprintf("was not done after %v", time.Duration(t.Limit)), nil
	}
	if _, missing := os.Stat(filepath.Join(results, "results.json")); missing != nil {
		text := said.text()
		if strings.Contains(text, unix.ENOSPC.Error()) || strings.Contains(text, unix.EDQUOT.Error()) {
			return "", fmt.Errorf("%w: %s", errFullDisk, text)
		}
		return fmt.Sprintf("no results: %v: %s", err, text), nil
	}
	return "", nil
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

const tailKept = 2000

func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if len(t.b) > 2*tailKept {
		t.b = append([]byte(nil), t.b[len(t.b)-tailKept:]...)
	}
	return len(b), nil
}

func (t *tail) text() string { return string(bytes.TrimSpace(t.b[max(0, len(t.b)-tailKept):])) }
