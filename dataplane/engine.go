package dataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
	"gswitch/frame"
)

// Engine is a group of workers that share one arena of frames. Its methods
// may be called from any goroutine except a worker's.
type Engine struct {
	config Config
	log    *slog.Logger
	clock  clock
	arena  *frame.Arena
	depot  *frame.Depot
	umem   *xsk.UMEM

	workers []*Worker

	// State of the control plane, guarded by mu. Workers never take the lock.
	mu         sync.Mutex
	running    bool
	stopped    bool
	ports      []*Port
	wires      map[string]*wire
	interfaces map[ifaceKey]*iface
	captures   []*Capture

	supervisor supervisor
}

// New allocates the memory of an engine and its workers, which do not run until Start.
// Nodes and ports may be added before Start, and should be: attaching a program beside a
// spinning worker can take seconds.
func New(config Config) (*Engine, error) {
	if config.Chunks == 0 {
		config.Chunks = 32768
	}
	if config.ChunkSize == 0 {
		config.ChunkSize = 2048
	}
	if len(config.Workers) == 0 {
		config.Workers = []WorkerConfig{{}}
	}
	if config.Supervise == 0 {
		config.Supervise = 250 * time.Millisecond
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if len(config.Workers) > 64 {
		return nil, fmt.Errorf("dataplane: %d workers, at most 64 are possible", len(config.Workers))
	}
	e := &Engine{
		config:     config,
		log:        config.Logger,
		wires:      map[string]*wire{},
		interfaces: map[ifaceKey]*iface{},
	}
	var err error
	if err = e.clock.init(&config); err != nil {
		return nil, err
	}
	if e.umem, err = xsk.NewUMEM(config.Chunks, config.ChunkSize, xsk.Options{HugePages: config.HugePages}); err != nil {
		return nil, fmt.Errorf("dataplane: %w", err)
	}
	if e.arena, err = frame.NewArena(e.umem.Bytes(), config.ChunkSize, frame.DefaultHeadroom); err != nil {
		e.umem.Close()
		return nil, fmt.Errorf("dataplane: %w", err)
	}
	e.depot = frame.NewDepot(e.arena)
	for i, c := range config.Workers {
		if err := e.addWorker(i, c); err != nil {
			return nil, errors.Join(fmt.Errorf("dataplane: worker %d: %w", i, err), e.close())
		}
	}
	e.supervisor.init(e)
	return e, nil
}

func (e *Engine) addWorker(i int, c WorkerConfig) error {
	if c.Name == "" {
		c.Name = fmt.Sprintf("gsw-%d", i)
	}
	if c.IdleSpin == 0 {
		c.IdleSpin = 100 * frame.Microsecond
	}
	if c.Pin {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err == nil && !set.IsSet(c.CPU) {
			return fmt.Errorf("cannot be pinned to CPU %d: this process may not run there", c.CPU)
		}
	}
	w := &Worker{engine: e, index: i, config: c, arena: e.arena, pool: e.depot.NewPool(e.arena), gone: make(chan struct{})}
	w.pace.init(&e.clock, c.IdleSpin)
	w.stats.Name, w.stats.Poll, w.stats.Pin, w.stats.CPU = c.Name, c.Poll, c.Pin, c.CPU
	if err := w.sleep.open(); err != nil {
		return err
	}
	e.workers = append(e.workers, w)
	return nil
}

// Arena returns the frames that the workers share.
func (e *Engine) Arena() *frame.Arena { return e.arena }

// Workers returns how many workers there are.
func (e *Engine) Workers() int { return len(e.workers) }

// Worker returns worker i.
func (e *Engine) Worker(i int) *Worker { return e.workers[i] }

// Pool returns the worker's pool of chunks, from which its nodes allocate and to which
// they free. Once the engine runs, only the worker may use it.
func (w *Worker) Pool() *frame.Pool { return w.pool }

// Index returns the worker's index in its engine.
func (w *Worker) Index() int { return w.index }

func (e *Engine) worker(i int) (*Worker, error) {
	if i < 0 || i >= len(e.workers) {
		return nil, fmt.Errorf("there is no worker %d: the engine has %d", i, len(e.workers))
	}
	return e.workers[i], nil
}

// AddNode puts a node on a worker. A node must be a pointer, and only that worker steps
// it.
func (e *Engine) AddNode(worker int, n frame.Node) error {
	w, err := e.worker(worker)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return ErrStopped
	}
	nd := &node{Node: n, id: n, wake: frame.Never}
	nd.handoff, _ = n.(Handoff)
	nd.backpressure, _ = n.(Backpressured)
	nd.posted, _ = n.(Posted)
	nd.changing, _ = n.(Changing)
	dup := false
	err = w.Do(func(frame.Time) {
		if dup = w.find(n) != nil; !dup {
			w.nodes = append(w.nodes, nd)
		}
	})
	if dup {
		return fmt.Errorf("the node is already on worker %d", worker)
	}
	return err
}

// RemoveNode removes a node from its worker. Its ports must be removed first. A Flusher
// is asked to free the frames it holds.
func (e *Engine) RemoveNode(worker int, n frame.Node) error {
	w, err := e.worker(worker)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.ports {
		if p.node == n && p.worker == w {
			return fmt.Errorf("the node still has port %s: remove its ports first", p.spec.Name)
		}
	}
	return w.Do(func(now frame.Time) { w.removeNode(now, n) })
}

func (w *Worker) find(n frame.Node) *node {
	for _, nd := range w.nodes {
		if nd.id == n {
			return nd
		}
	}
	return nil
}

func (w *Worker) removeNode(now frame.Time, n frame.Node) {
	nd := w.find(n)
	if nd == nil {
		return
	}
	w.untapDrops(nd, nil)
	if f, ok := n.(Flusher); ok {
		f.Flush(now)
	}
	w.nodes = slices.DeleteFunc(w.nodes, func(o *node) bool { return o == nd })
}

// Start starts the workers.
func (e *Engine) Start() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.stopped:
		return ErrStopped
	case e.running:
		return errors.New("the engine already runs")
	}
	e.running = true
	// A spinning worker occupies a processor of the Go scheduler. The rest of the process
	// must keep as many as it had, or every call of the control plane would wait for a
	// time slice of 10 ms.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + len(e.workers))
	for _, w := range e.workers {
		w.mail.mu.Lock()
		w.mail.running = true
		w.mail.mu.Unlock()
		go w.run()
	}
	e.supervisor.start()
	return nil
}

// Halt ends the workers for good and does nothing else. After that, Worker.Do runs its
// function on the caller, and nodes stay as they are. Call Stop after it.
func (e *Engine) Halt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.workers {
		w.halt()
	}
}

// Stop ends the workers and the engine's goroutines, closes the ports and frees the
// frames of the nodes. It returns an error if frames are missing at the end, because a
// node kept or lost them.
func (e *Engine) Stop() error {
	e.supervisor.stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil
	}
	e.stopped = true
	for _, c := range slices.Clone(e.captures) {
		e.endCapture(c)
	}
	var errs []error
	for _, w := range e.workers {
		w.halt()
	}
	if e.running {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - len(e.workers))
	}
	// The workers have ended; everything below runs here.
	for _, p := range slices.Clone(e.ports) {
		if err := e.removePort(p); err != nil {
			errs = append(errs, fmt.Errorf("port %s: %w", p.spec.Name, err))
		}
	}
	for _, w := range e.workers {
		for len(w.nodes) > 0 {
			w.removeNode(e.Now(), w.nodes[0].id)
		}
	}
	for _, w := range e.workers {
		w.pool.Drain()
		w.mail.mu.Lock()
		w.mail.closed = true
		w.mail.mu.Unlock()
	}
	if lost := e.arena.Chunks() - e.depot.Free(); lost != 0 {
		errs = append(errs, fmt.Errorf("%d of %d frames are still held by nodes or lost", lost, e.arena.Chunks()))
	}
	errs = append(errs, e.close())
	return errors.Join(errs...)
}

// Run starts the engine, unless it is running, and stops it when ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	return e.Stop()
}

func (e *Engine) close() error {
	for _, w := range e.workers {
		w.sleep.close()
	}
	return e.umem.Close()
}

// wakeWorkers wakes the sleeping workers of a bitmap.
func (e *Engine) wakeWorkers(bitmap uint64) {
	for i, w := range e.workers {
		if bitmap&(1<<i) != 0 {
			w.sleep.wake()
		}
	}
}

// Stats takes a snapshot. Each worker copies its counters once, between two loops.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	st := Stats{Now: e.Now(), Chunks: e.arena.Chunks(), ChunkSize: e.arena.ChunkSize(), Captures: len(e.captures), FreeChunks: e.depot.Free(), HugePages: e.umem.HugePages(), GC: readGC()}
	counters := make([]PortCounters, len(e.ports))
	for _, w := range e.workers {
		var ws WorkerStats
		w.Do(func(now frame.Time) {
			ws = w.stats
			ws.Running, ws.Last = w.last-w.stats.Running, w.last
			ws.FreeChunks, ws.NoChunk = w.pool.Available(), w.pool.Failed()
			ws.Nodes, ws.Ports = len(w.nodes), len(w.ports)
			for i, p := range e.ports {
				if p.worker == w {
					counters[i] = p.line.stats
					counters[i].TxWaiting = uint64(p.line.waiting())
				}
			}
		})
		st.FreeChunks += ws.FreeChunks
		st.Workers = append(st.Workers, ws)
	}
	for i, p := range e.ports {
		ps := p.status()
		ps.PortCounters = counters[i]
		if p.spec.Kind == XDP {
			p.addSocketCounters(&ps.PortCounters)
		}
		ps.TxDropped += p.tapRefused
		if p.tap != nil {
			ps.TxDropped += p.tap.refused.Load()
		}
		st.Workers[ps.Worker].Kicks += ps.Kicks
		st.Workers[ps.Worker].KickFrames += ps.KickFrames
		st.Ports = append(st.Ports, ps)
	}
	return st
}
