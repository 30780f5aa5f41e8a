package sweep

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"gswitch/natsserver"
)

// The program that workers start is this test binary.
func TestMain(m *testing.M) {
	if os.Getenv("SWEEP_TEST_RUN") != "" {
		os.Exit(pretend(os.Args[1:]))
	}
	os.Setenv("SWEEP_TEST_RUN", "1")
	os.Exit(m.Run())
}

// pretend is gfabric run: the scenario says what it does.
func pretend(args []string) int {
	value := func(flag string) string { return args[slices.Index(args, flag)+1] }
	scenario, err := os.ReadFile(args[len(args)-1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	out, name := value("--out"), value("--only")
	switch {
	case args[0] == "--full":
		fmt.Fprintln(os.Stderr, "write flows.csv: no space left on device")
		return 1
	case strings.Contains(name, "hangs"):
		time.Sleep(time.Hour)
	case strings.Contains(name, "panics"):
		panic("of the run " + name)
	}
	if err := os.MkdirAll(filepath.Join(out, "series"), 0o777); err != nil {
		return 2
	}
	text := fmt.Sprintf("%s %s %s", scenario, name, value("--seed"))
	if os.WriteFile(filepath.Join(out, "series", "a.csv"), nil, 0o666) != nil || os.WriteFile(filepath.Join(out, "results.json"), []byte(text), 0o666) != nil {
		return 2
	}
	return 1 // an expectation does not hold: there are results all the same
}

// broker is a NATS server that can be killed and come back.
type broker struct {
	t    *testing.T
	dir  string
	port string
	s    *natsserver.Server

	scratch string
}

func newBroker(t *testing.T) *broker {
	b := &broker{t: t, dir: t.TempDir(), port: "0", scratch: t.TempDir()}
	b.start()
	t.Cleanup(func() { b.s.Close() })
	return b
}

func (b *broker) start() {
	b.t.Helper()
	var err error
	if b.s, err = natsserver.New(natsserver.Options{Program: "test", Dir: b.dir, Listen: "127.0.0.1:" + b.port, Limit: 1 << 30, Token: "secret", Log: discard}); err != nil {
		b.t.Fatal(err)
	}
	b.port = b.s.ClientURL()[strings.LastIndexByte(b.s.ClientURL(), ':')+1:]
}

var discard = slog.New(slog.NewTextHandler(io.Discard, nil))

func (b *broker) queue() *Queue {
	b.t.Helper()
	nc, err := nats.Connect("nats://127.0.0.1:"+b.port, nats.Token("secret"), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	scratch, err := NewScratch(b.scratch)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { scratch.Close() })
	q, err := Open(b.t.Context(), nc, 1, scratch)
	if err != nil {
		b.t.Fatal(err)
	}
	return q
}

// worker begins to work, until the test ends or stop is called. kill cuts it off
// as a power cut would: it neither finishes nor says anything.
func (b *broker) worker(program string, log *slog.Logger) (stop, kill func()) {
	b.t.Helper()
	q := b.queue()
	path, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	w := &Worker{Queue: q, Program: program, Name: "w", Command: []string{path}, Jobs: 2, Wait: 500 * time.Millisecond, Tries: 3, Log: log}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			b.t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	b.t.Cleanup(stop)
	return stop, func() { q.nc.Close(); stop() }
}

func (b *broker) begin(id, program string) *Sweep {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte("the scenario"), 0o666); err != nil {
		b.t.Fatal(err)
	}
	s, err := b.queue().Begin(b.t.Context(), id, program, file, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// all runs tasks and returns what came of each, by fingerprint.
func all(t *testing.T, s *Sweep, names []string) map[string]string {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	came := map[string]string{}
	for i, name := range names {
		group.Go(func() {
			print := fmt.Sprintf("%04d", i)
			dir, err := s.Run(t.Context(), Task{Print: print, Name: name, Seed: uint64(i), Limit: int64(2 * time.Second)}, func() {})
			text := fmt.Sprint(err)
			if err == nil {
				data, e := os.ReadFile(filepath.Join(dir, "results.json"))
				if text = string(data); e != nil {
					text = e.Error()
				}
				os.RemoveAll(dir)
			}
			mu.Lock()
			defer mu.Unlock()
			came[print] = text
		})
	}
	group.Wait()
	return came
}

func names(n int, of string) (v []string) {
	for range n {
		v = append(v, of)
	}
	return v
}

func same(t *testing.T, came map[string]string, n int) {
	t.Helper()
	if len(came) != n {
		t.Errorf("%d of %d runs came to an end", len(came), n)
	}
	for print, text := range came {
		var i int
		fmt.Sscanf(print, "%d", &i)
		if want := fmt.Sprintf("the scenario fine %d", i); text != want {
			t.Errorf("run %s: %q, want %q", print, text, want)
		}
	}
}

// Two workers share the runs; one is cut off in the middle, and the server is
// killed and comes back. Every run comes out, and the queue is empty at the end.
func TestWorkerAndServerAreKilled(t *testing.T) {
	b := newBroker(t)
	s := b.begin(ID("a"), "build")
	var begins atomic.Int64
	cut := make(chan struct{})
	count := slog.New(counter{func() {
		if begins.Add(1) == 3 {
			close(cut)
		}
	}})
	_, kill := b.worker("build", count)
	came := make(chan map[string]string)
	go func() { came <- all(t, s, names(40, "fine")) }()
	<-cut
	kill()
	b.s.Close()
	b.start()
	b.worker("build", discard)
	same(t, <-came, 40)
	if err := s.End(t.Context()); err != nil {
		t.Error(err)
	}
	info, err := s.q.tasks.Info(t.Context())
	if err != nil || info.State.Msgs != 0 {
		t.Errorf("%d tasks are left: %v", info.State.Msgs, err)
	}
	if l, err := s.q.objects.List(t.Context()); len(l) != 0 {
		t.Errorf("%d archives are left: %v", len(l), err)
	}
}

// counter is a log that calls a function for each run that begins.
type counter struct{ begins func() }

func (c counter) Enabled(context.Context, slog.Level) bool { return true }
func (c counter) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "begins" {
		c.begins()
	}
	return nil
}
func (c counter) WithAttrs([]slog.Attr) slog.Handler { return c }
func (c counter) WithGroup(string) slog.Handler      { return c }

// Runs that panic or never end are set aside with what they said, and so is one
// that kills every worker which takes it; the others come out.
func TestPoison(t *testing.T) {
	b := newBroker(t)
	b.worker("build", discard)
	s := b.begin(ID("a"), "build")
	came := all(t, s, []string{"fine", "panics", "hangs", "fine"})
	if came["0000"] != "the scenario fine 0" || came["0003"] != "the scenario fine 3" {
		t.Errorf("%q", came)
	}
	if !strings.Contains(came["0001"], "no results") || !strings.Contains(came["0001"], "of the run panics") {
		t.Errorf("a run that panics: %q", came["0001"])
	}
	if !strings.Contains(came["0002"], "was not done after 2s") {
		t.Errorf("a run that never ends: %q", came["0002"])
	}
}

func TestKillsWorkers(t *testing.T) {
	b := newBroker(t)
	s := b.begin(ID("a"), "build")
	came := make(chan map[string]string, 1)
	go func() { came <- all(t, s, []string{"hangs"}) }()
	for range 3 {
		cut := make(chan struct{})
		_, kill := b.worker("build", slog.New(counter{sync.OnceFunc(func() { close(cut) })}))
		<-cut
		kill()
	}
	b.worker("build", discard)
	if text := (<-came)["0000"]; !strings.Contains(text, "3 workers took this run and none of them came to its end") {
		t.Error(text)
	}
}

// A worker whose disk is full gives runs back, and rests: others have them, before
// they count as runs that no worker can execute.
func TestFullDisk(t *testing.T) {
	b := newBroker(t)
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	given, ctx := make(chan struct{}), t.Context()
	once := sync.OnceFunc(func() { close(given) })
	full := &Worker{Queue: b.queue(), Program: "build", Name: "full", Command: []string{path, "--full"}, Jobs: 1, Wait: time.Hour, Tries: 3,
		Log: slog.New(slog.NewTextHandler(writer(func(line []byte) {
			if log.Write(line); bytes.Contains(line, []byte("is given back")) {
				once()
			}
		}), nil))}
	ended := make(chan error, 1)
	stop, cancel := context.WithCancel(ctx)
	go func() { ended <- full.Run(stop) }()
	s := b.begin(ID("a"), "build")
	came := make(chan map[string]string, 1)
	go func() { came <- all(t, s, names(6, "fine")) }()
	<-given
	b.worker("build", discard)
	same(t, <-came, 6)
	cancel()
	<-ended
	if n := strings.Count(log.String(), "is given back"); n != 1 || !strings.Contains(log.String(), "no space left") {
		t.Errorf("it gave %d runs back:\n%s", n, log.String())
	}
}

// writer is a function as an io.Writer.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

// A task that names a file elsewhere is not run.
func TestFileElsewhere(t *testing.T) {
	b := newBroker(t)
	b.worker("build", discard)
	s := b.begin(ID("a"), "build")
	for i, file := range []string{"../s.yaml", "/etc/passwd", ".."} {
		s.file = file
		if _, err := s.Run(t.Context(), Task{Print: fmt.Sprintf("%04d", i), Name: "fine"}, func() {}); err == nil || !strings.Contains(err.Error(), "is none of the files that came with it") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// What is done twice counts once: the second outcome is refused.
func TestOnce(t *testing.T) {
	b := newBroker(t)
	q := b.queue()
	task := &Task{Sweep: "s", Print: "p"}
	for i, want := range []bool{true, false} {
		if first, err := q.conclude(t.Context(), task, outcome{Worker: fmt.Sprint(i)}); err != nil || first != want {
			t.Errorf("outcome %d: first %v, %v", i, first, err)
		}
	}
	e, err := q.outcomes.Get(t.Context(), "s.p")
	if err != nil || !strings.Contains(string(e.Value()), `"worker":"0"`) {
		t.Errorf("%s, %v", e.Value(), err)
	}
}

// A task that is delivered twice is run twice and counts once: the results of the slower of two workers are deleted.
func TestDeliveredTwice(t *testing.T) {
	b := newBroker(t)
	s := b.begin(ID("a"), "build")
	task := Task{Sweep: s.id, Print: "0000", Name: "fine", File: s.file, Limit: int64(time.Minute)}
	data, err := json.Marshal(task)
	for range 2 {
		if err == nil {
			_, err = s.q.js.Publish(t.Context(), subject(s.program, &task), data)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var begins atomic.Int64
	count := slog.New(counter{func() { begins.Add(1) }})
	one, _ := b.worker("build", count)
	two, _ := b.worker("build", count)
	same(t, all(t, s, names(1, "fine")), 1)
	for {
		info, err := s.q.tasks.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.State.Msgs == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	var ends sync.WaitGroup
	ends.Go(one)
	ends.Go(two)
	ends.Wait()
	if n := begins.Load(); n < 2 { // more where a worker was late to say that it goes on
		t.Errorf("it began %d times, want 2", n)
	}
	if l, err := s.q.objects.List(t.Context()); len(l) != 2 {
		t.Errorf("%d archives are there, want the scenario and one of results: %v", len(l), err)
	}
}

// A task that is there already is not put a second time, and a coordinator that
// comes back finds what is known.
func TestCoordinatorComesBack(t *testing.T) {
	b := newBroker(t)
	id := ID("here", "/results")
	s := b.begin(id, "build")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	for i := range 5 {
		go func() {
			_, err := s.Run(ctx, Task{Print: fmt.Sprintf("%04d", i), Name: "fine", Seed: uint64(i)}, func() {})
			gone <- err
		}()
	}
	for {
		info, err := s.q.tasks.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.State.Msgs == 5 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel() // as if killed: it takes nothing out
	for range 5 {
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	stop, _ := b.worker("build", discard)
	again := b.begin(id, "build")
	same(t, all(t, again, names(5, "fine")), 5)
	stop() // no workers: what is known is enough
	third := b.begin(id, "build")
	same(t, all(t, third, names(5, "fine")), 5)
	if err := third.End(t.Context()); err != nil {
		t.Error(err)
	}
}

// Workers of another build take nothing, and say how much waits.
func TestOtherBuild(t *testing.T) {
	b := newBroker(t)
	s := b.begin(ID("a"), "one")
	came := make(chan map[string]string, 1)
	go func() { came <- all(t, s, names(3, "fine")) }()
	for {
		if info, err := s.q.tasks.Info(t.Context()); err == nil && info.State.Msgs == 3 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	var said bytes.Buffer
	stop, _ := b.worker("two", slog.New(slog.NewTextHandler(&said, nil)))
	b.worker("one", discard)
	same(t, <-came, 3)
	stop()
	if text := said.String(); !strings.Contains(text, "runs=3 build=one this=two") || strings.Contains(text, "begins") {
		t.Error(text)
	}
}

// What a program leaves that was killed goes with the next one; what belongs to
// those that run stays.
func TestScratchOfKilledPrograms(t *testing.T) {
	parent := t.TempDir()
	running, err := NewScratch(parent)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := NewScratch(parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Scratch{running, dead} {
		if err := os.WriteFile(filepath.Join(s.Dir, "archive"), []byte("text"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	dead.lock.Close() // as the kernel does
	next, err := NewScratch(parent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(running.Dir, "archive")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dead.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the dead left is there: %v", err)
	}
	if err := errors.Join(running.Close(), next.Close()); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("%d directories are left", len(left))
	}
}

// An archive writes below its directory and nowhere else.
func TestUnpack(t *testing.T) {
	for name, kind := range map[string]byte{"../a": tar.TypeReg, "/a": tar.TypeReg, "a": tar.TypeSymlink, "b/../../a": tar.TypeReg, "d": tar.TypeDir} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: name, Linkname: "/etc/passwd", Typeflag: kind}), w.Close()); err != nil {
			t.Fatal(err)
		}
		if err := unpack(&b, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no plain file below") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var many bytes.Buffer
	w := tar.NewWriter(&many)
	for i := range maxEntries + 1 { // which all are of nothing
		if err := w.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Mode: int64(i & 0o777)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := unpackInto(&many, func(string, io.Reader) error { return nil }); err == nil || !strings.Contains(err.Error(), "more than 65536 files") {
		t.Errorf("very many files: %v", err)
	}
	from, to := t.TempDir(), t.TempDir()
	os.MkdirAll(filepath.Join(from, "x", "y"), 0o777)
	os.WriteFile(filepath.Join(from, "x", "y", "z"), []byte("text"), 0o666)
	var b bytes.Buffer
	if err := errors.Join(pack(&b, from, nil), unpack(&b, to)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "x", "y", "z")); string(text) != "text" {
		t.Error(string(text), err)
	}
}

func FuzzUnpack(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: "a/b", Size: 1, Typeflag: tar.TypeReg})
	w.Write([]byte("x"))
	w.Close()
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		root := t.TempDir()
		dir := filepath.Join(root, "in")
		if os.Mkdir(dir, 0o777) != nil {
			return
		}
		unpack(bytes.NewReader(b), dir)
		if v, _ := os.ReadDir(root); len(v) != 1 {
			t.Error("it wrote beside its directory")
		}
	})
}
