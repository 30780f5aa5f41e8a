package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"gswitch/config"
	"gswitch/control"
	"gswitch/dataplane"
	"gswitch/metrics"
)

// Options of a Daemon.
type Options struct {
	Version string
	Source  string        // where the configuration came from: a file, or "flags"
	Wait    time.Duration // how long to wait for interfaces at the start
	Logger  *slog.Logger  // nil is slog.Default()

	// Record is the directory in which every host is recorded from its start, "" for
	// none. RecordOptions configure the recordings.
	Record        string
	RecordOptions control.RecordOptions

	// Override applies the settings of the command line to a document. They stay in force
	// as long as the daemon runs. nil: none.
	Override func(*config.Hosts)
}

// Daemon runs the hosts of a configuration. Its methods may be called from any
// goroutine.
type Daemon struct {
	opts   Options
	log    *slog.Logger
	start  time.Time
	engine *dataplane.Engine

	clients control.Clients

	// mu guards the fields below: one change at a time, and no reader sees half a change.
	mu     sync.RWMutex
	doc    *config.Hosts // in force
	source string
	files  map[string]config.Use // paths that its own file has named
	units  []*unit               // in the order of doc
	state  metrics.ConfigState
	// exporting is nil if reports are not exported.
	exporting *control.Reporting

	memory sync.Mutex // guards held
	held   uint64     // bytes held by transfers
	unheld uint64     // transfers that were refused for lack of memory
}

// New makes a daemon with its ports open. Nothing is sent before Start. If ctx ends, New
// stops waiting for interfaces.
func New(ctx context.Context, c *config.Hosts, opts Options) (*Daemon, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	d := &Daemon{opts: opts, log: opts.Logger, start: time.Now(), source: opts.Source}
	d.doc = d.overridden(c)
	d.files = d.doc.Files()
	namespaces := false
	for i := range d.doc.Hosts {
		namespaces = namespaces || d.doc.Hosts[i].NetNS != ""
	}
	if err := control.Privileged(true, namespaces); err != nil {
		return nil, err
	}
	places, err := findAll(ctx, d.doc, opts.Wait)
	if err != nil {
		return nil, err
	}
	ec := d.doc.Engine()
	ec.Logger = d.log
	if ec.Chunks == 0 {
		ec.Chunks = chunksFor(places)
	}
	if d.engine, err = dataplane.New(ec); err != nil {
		return nil, control.ExplainSystem(err)
	}
	for i := range d.doc.Hosts {
		h := &d.doc.Hosts[i]
		u, err := d.open(h, places[h.Name])
		if err != nil {
			return nil, errors.Join(err, d.engine.Stop())
		}
		d.units = append(d.units, u)
	}
	d.state = metrics.ConfigState{Version: opts.Version, Generation: 1, ReloadSuccess: true, ReloadTime: d.start}
	return d, nil
}

// overridden returns the document with the settings of the command line.
func (d *Daemon) overridden(c *config.Hosts) *config.Hosts {
	c = c.Clone()
	if d.opts.Override != nil {
		d.opts.Override(c)
	}
	return c
}

// Frames of the packet memory: those in the rings of a queue, and those on the emulated
// cable of a host.
const (
	framesAQueue = 2 * 2048
	framesUnder  = 8192
)

// chunksFor computes the packet memory.
func chunksFor(places map[string]control.Interface) int {
	chunks := 0
	for _, at := range places {
		chunks += framesAQueue*at.Queues + framesUnder
	}
	return chunks
}

// find returns the interface of a host, and waits for it until the deadline or the end of
// ctx.
func find(ctx context.Context, h *config.Host, deadline time.Time) (control.Interface, error) {
	at, err := control.AwaitInterface(ctx, h.Interface, h.NetNS, deadline)
	if err != nil {
		return at, fmt.Errorf("host %s: %w", h.Name, err)
	}
	return at, fits(h, at)
}

// findAll finds the interfaces of hosts, by the names of the hosts.
func findAll(ctx context.Context, c *config.Hosts, wait time.Duration) (map[string]control.Interface, error) {
	places, deadline := map[string]control.Interface{}, time.Now().Add(wait)
	for i := range c.Hosts {
		at, err := find(ctx, &c.Hosts[i], deadline)
		if err != nil {
			return nil, err
		}
		places[c.Hosts[i].Name] = at
	}
	return places, nil
}

// Start starts the workers.
func (d *Daemon) Start() error {
	if err := d.engine.Start(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reexport()
	return nil
}

// Stop ends the workers and closes the ports.
func (d *Daemon) Stop() error {
	d.mu.Lock()
	exported := d.exporting.End()
	d.exporting = nil
	d.mu.Unlock()
	<-exported
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, u := range d.units {
		errs = append(errs, u.endRecording())
	}
	return errors.Join(append(errs, d.engine.Stop())...)
}

// Serve answers on the listeners until ctx ends, and then aborts the transfers.
func (d *Daemon) Serve(ctx context.Context, listeners []net.Listener) error {
	if d.log.Enabled(ctx, slog.LevelInfo) {
		go d.logPunctuality(ctx)
	}
	return control.Serve(ctx, d.Handler(), listeners, &d.clients)
}

// Config returns the configuration in force.
func (d *Daemon) Config() *config.Hosts {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.doc.Clone()
}

// Snapshot reads all counters.
func (d *Daemon) Snapshot() *metrics.Snapshot {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.snapshot()
}

func (d *Daemon) snapshot() *metrics.Snapshot {
	src := metrics.Source{Engine: d.engine, Config: d.state}
	if d.exporting != nil {
		c := d.exporting.Counts()
		src.Export = &c
	}
	for _, u := range d.units {
		src.Hosts = append(src.Hosts, metrics.HostUnit{Agent: u.agent, Worker: u.worker, Port: u.portName()})
	}
	return metrics.Take(src)
}

// host returns the host with a name, or the only one if name is empty.
func (d *Daemon) host(name string) (*unit, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return chosen(d.units, name)
}

// hosts returns the host with a name, or all if name is empty.
func (d *Daemon) hosts(name string) ([]*unit, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if name == "" {
		return append([]*unit(nil), d.units...), nil
	}
	u, err := chosen(d.units, name)
	return []*unit{u}, err
}

func chosen(units []*unit, name string) (*unit, error) {
	names := make([]string, len(units))
	for i, u := range units {
		if u.name == name || name == "" && len(units) == 1 {
			return u, nil
		}
		names[i] = u.name
	}
	if name == "" {
		return nil, fmt.Errorf("there are several hosts: choose one with --host: %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("there is no host %q; there are %s", name, strings.Join(names, ", "))
}
