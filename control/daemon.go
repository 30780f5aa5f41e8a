package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"gswitch/config"
	"gswitch/dataplane"
	"gswitch/metrics"
	"gswitch/section"
)

// Options of a Daemon.
type Options struct {
	Version string        // of the program, as GetVersion returns it
	Source  string        // where the configuration came from: a file, or "flags"
	Wait    time.Duration // how long to wait for interfaces at the start
	Record  string        // directory in which every switch is recorded from its start
	// RecordOptions configure recordings. Without a Limit, a record in Record may take as
	// many bytes as the disk has, and one that the API starts without Record 1 GiB.
	RecordOptions RecordOptions
	Logger        *slog.Logger // nil is slog.Default()

	// Control overrides the control section of every document: settings of the command
	// line stay in force as long as the daemon runs.
	Control config.Control
}

// Override returns the document with the settings of the options.
func (o *Options) Override(c *config.Config) *config.Config {
	c = c.Clone()
	c.Control.Socket = cmp.Or(o.Control.Socket, c.Control.Socket)
	c.Control.Listen = cmp.Or(o.Control.Listen, c.Control.Listen)
	return c
}

// Daemon runs the switches of a configuration. Its methods may be called from
// any goroutine.
type Daemon struct {
	opts   Options
	log    *slog.Logger
	start  time.Time
	engine *dataplane.Engine
	secret uint64 // seed of tables that frames fill, new at each start

	clients Clients

	// mu guards the fields below: one change at a time, and no reader sees half a change.
	mu                sync.RWMutex
	doc               *config.Config // in force, as written
	resolved          *config.Config // the same with its defaults
	next              *config.Config // during a change: the next configuration in force, as written
	source            string
	files             map[string]config.Use // paths that its own files have named
	units             []*unit
	state             metrics.ConfigState
	baseline          *metrics.Snapshot // what ClearCounters stored
	records           []*Recording      // that have ended
	recordsIn         string            // directory
	exporting         *Reporting        // nil: reports are not exported
	taking            sync.Mutex        // reports: an exporter that ends takes the last while the next one starts
	watch             *portWatch        // nil before Start and after Stop
	replayed          bool              // the switch is replayed from a record: nothing is below its ports
	recordedMonotonic uint64            // of a replay: the value of Daemon.monotonic during recording
}

// New makes a daemon with its ports open. Nothing is forwarded before Start. If ctx ends,
// New stops waiting for interfaces.
func New(ctx context.Context, c *config.Config, opts Options) (*Daemon, error) {
	c = opts.Override(c)
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := privileged(c); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	d := &Daemon{opts: opts, log: opts.Logger, start: time.Now(), doc: c, resolved: c.Resolved(), source: opts.Source,
		recordsIn: cmp.Or(opts.Record, RecordDir), secret: rand.Uint64()}
	if err := try(d.resolved); err != nil {
		return nil, ConfigError{err}
	}
	if opts.Wait > 0 {
		if err := awaitInterfaces(ctx, d.resolved, opts.Wait); err != nil {
			return nil, err
		}
	}
	ec := d.resolved.Engine()
	ec.Logger = d.log
	ec.Chunks = d.resolved.Frames()
	var err error
	if d.engine, err = dataplane.New(ec); err != nil {
		return nil, ExplainSystem(err)
	}
	for i := range d.resolved.Switches {
		if err := d.addSwitch(&d.resolved.Switches[i]); err != nil {
			return nil, errors.Join(ExplainSystem(err), d.engine.Stop())
		}
	}
	d.accept(c, d.resolved, opts.Source, true)
	d.files = c.Files()
	d.state.Version = opts.Version
	if err := d.carriers(d.resolved); err != nil {
		return nil, errors.Join(err, d.engine.Stop())
	}
	return d, nil
}

// Start starts the workers.
func (d *Daemon) Start() error {
	if err := d.engine.Start(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reexport()
	d.followKernels()
	d.watch = d.watchPorts()
	return nil
}

// Stop ends the workers and closes the ports.
func (d *Daemon) Stop() error {
	d.mu.Lock()
	exported, watch := d.exporting.End(), d.watch
	d.exporting, d.watch = nil, nil
	d.mu.Unlock()
	watch.close()
	<-exported
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, u := range d.units {
		errs = append(errs, d.endRecording(u))
	}
	return errors.Join(append(errs, d.engine.Stop())...)
}

// Config returns the configuration in force, as written.
func (d *Daemon) Config() *config.Config {
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
	src := metrics.Source{Engine: d.engine, Config: d.state, OnlyUsed: d.resolved.Metrics.Series == "used"}
	if d.exporting != nil {
		c := d.exporting.Counts()
		src.Export = &c
	}
	for _, u := range d.units {
		mu := metrics.Unit{Switch: u.sw}
		for _, w := range u.workers {
			mu.Workers = append(mu.Workers, d.engine.Worker(w))
		}
		src.Units = append(src.Units, mu)
	}
	return metrics.Take(src)
}

func (d *Daemon) accept(doc, resolved *config.Config, source string, changed bool) {
	d.doc, d.resolved, d.source = doc, resolved, source
	if changed {
		d.state.Generation++
		d.warn()
	}
	d.state.ReloadSuccess, d.state.ReloadTime = true, time.Now()
}

// warn logs if the packet memory is too small, or if the headroom of lossless classes is.
func (d *Daemon) warn() {
	for _, s := range d.resolved.Shortages() {
		d.log.Warn("packet memory", "at", s.Path, "error", s.Err)
	}
	for _, r := range d.resolved.Reserves() {
		d.log.Info("headroom of lossless classes", "switch", r.Switch, "ports", strings.Join(r.Ports, ","), "bytes", r.Bytes, "computed", r.Computed,
			"rate", r.Rate, "assumes", fmt.Sprintf("both ends of a link act on a pause within %v (buffer.lossless.response)", r.Response))
	}
}

// ConfigError is an error of New or of a call that is caused by the configuration or by
// the request, besides section.Errors.
type ConfigError struct{ error }

func (e ConfigError) Unwrap() error { return e.error }

// ReadFile reads the configuration of a running daemon anew. It returns what changed, and
// what that did beyond it, which for a switch is nothing.
func (d *Daemon) ReadFile(path string) ([]section.Change, []string, error) {
	var c *config.Config
	err := CatchPanic(d.log, func() (err error) { c, err = config.Load(path); return err })
	if err != nil {
		d.refused()
		return nil, nil, err
	}
	changes, err := d.apply(func(*config.Config) (*config.Config, error) { return c, nil }, path, false, true)
	if err != nil {
		d.refused()
	}
	return changes, nil, err
}

func (d *Daemon) refused() {
	d.mu.Lock()
	d.state.ReloadSuccess, d.state.ReloadTime = false, time.Now()
	d.mu.Unlock()
}

// kernelRelease is the release of the running kernel.
func kernelRelease() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// Refused marks an error as caused by the configuration or by the request.
func Refused(err error) error { return ConfigError{err} }
