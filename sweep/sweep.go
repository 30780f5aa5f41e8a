package sweep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Sweep is what a coordinator has in the queue.
type Sweep struct {
	q       *Queue
	program string
	id      string
	file    string
	watcher jetstream.KeyWatcher
	started *nats.Subscription

	mu    sync.Mutex
	known map[string]outcome       // by fingerprint
	waits map[string]chan struct{} // closed when it is known
	began map[string]func()        // by fingerprint, called when a worker begins
}

// ID names a sweep: the same for the same words, such as the directory of the
// results, so that a coordinator which was killed finds what came meanwhile. With a
// random word it finds nothing.
func ID(words ...string) string {
	h := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(h[:12])
}

// Begin puts a scenario and the files beside it that it names into the queue.
// program is the build that is to run it.
func (q *Queue) Begin(ctx context.Context, id, program, scenario string, files []string) (*Sweep, error) {
	s := &Sweep{q: q, program: program, id: id, file: filepath.Base(scenario), known: map[string]outcome{}, waits: map[string]chan struct{}{}, began: map[string]func(){}}
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(pack(pw, filepath.Dir(scenario), append([]string{s.file}, files...))) }()
	if _, err := q.objects.Put(ctx, jetstream.ObjectMeta{Name: id + "/scenario"}, pr); err != nil {
		pr.CloseWithError(err)
		return nil, fmt.Errorf("the scenario cannot be given to workers: %w", err)
	}
	var err error
	if s.started, err = q.nc.Subscribe("gfabric.started."+id, func(m *nats.Msg) {
		s.mu.Lock()
		f := s.began[string(m.Data)]
		s.mu.Unlock()
		if f != nil {
			f()
		}
	}); err != nil {
		return nil, err
	}
	if s.watcher, err = q.outcomes.Watch(ctx, id+".*", jetstream.IgnoreDeletes()); err != nil {
		return nil, err
	}
	old := make(chan struct{})
	go s.learn(old)
	select {
	case <-old:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// learn notes outcomes as they come; old is closed when it has those that were
// there before.
func (s *Sweep) learn(old chan struct{}) {
	for e := range s.watcher.Updates() {
		if e == nil {
			close(old)
			continue
		}
		var o outcome
		if err := json.Unmarshal(e.Value(), &o); err != nil {
			o.Error = fmt.Sprintf("what came of it cannot be read: %v", err)
		}
		_, print, _ := strings.Cut(e.Key(), ".")
		s.mu.Lock()
		s.known[print] = o
		if c := s.waits[print]; c != nil {
			close(c)
			delete(s.waits, print)
		}
		s.mu.Unlock()
	}
}

// Run has a task executed by whichever worker takes it, and returns a new
// directory with its results, which is the caller's to remove. began is called
// when a worker begins, each time.
func (s *Sweep) Run(ctx context.Context, t Task, began func()) (dir string, err error) {
	t.Sweep, t.File = s.id, s.file
	s.mu.Lock()
	o, done := s.known[t.Print]
	wait := make(chan struct{})
	if !done {
		s.waits[t.Print], s.began[t.Print] = wait, began
	}
	s.mu.Unlock()
	if !done {
		if err := s.put(ctx, &t); err != nil {
			return "", err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		s.mu.Lock()
		o = s.known[t.Print]
		s.mu.Unlock()
	}
	if o.Error != "" {
		return "", fmt.Errorf("worker %s: %s", o.Worker, o.Error)
	}
	err = again(ctx, func() (err error) {
		dir, err = s.q.fetch(ctx, o.Object)
		return err
	})
	return dir, err
}

// put publishes a task, unless it waits in the queue already.
func (s *Sweep) put(ctx context.Context, t *Task) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return again(ctx, func() error {
		_, err := s.q.js.Publish(ctx, subject(s.program, t), data, jetstream.WithExpectLastSequencePerSubject(0))
		var api *jetstream.APIError
		if errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
			return nil
		}
		return err
	})
}

// fetch unpacks an archive into a new directory.
func (q *Queue) fetch(ctx context.Context, object string) (dir string, err error) {
	r, err := q.objects.Get(ctx, object)
	if err != nil {
		return "", err
	}
	defer r.Close()
	if dir, err = os.MkdirTemp(q.scratch, "unpacked-"); err != nil {
		return "", err
	}
	if err := errors.Join(unpack(r, dir), r.Error()); err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

// End takes everything of the sweep out of the queue: what waits, what is there,
// and, by a word to the workers, what they do.
func (s *Sweep) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	errs := []error{s.watcher.Stop(), s.started.Unsubscribe(),
		s.q.tasks.Purge(ctx, jetstream.WithPurgeSubject("gfabric.task."+build(s.program)+"."+s.id+".*")),
		s.q.nc.Publish("gfabric.cancel."+s.id, nil)}
	s.mu.Lock()
	for print := range s.known {
		errs = append(errs, s.q.outcomes.Purge(ctx, s.id+"."+print))
	}
	s.mu.Unlock()
	return errors.Join(append(errs, s.q.discard(ctx, s.id+"/"))...)
}

// discard deletes the archives whose names begin so, those of workers that died
// before they said what came of their tasks among them.
func (q *Queue) discard(ctx context.Context, prefix string) error {
	all, err := q.objects.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil
	}
	errs := []error{err}
	for _, o := range all {
		if strings.HasPrefix(o.Name, prefix) {
			errs = append(errs, q.objects.Delete(ctx, o.Name))
		}
	}
	return errors.Join(errs...)
}
