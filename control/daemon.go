package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/config"
	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/metrics"
	"gswitch/section"
	"gswitch/vswitch"
)

// Options of a Daemon.
type Options struct {
	Version string        // of the program, as GetVersion returns it
	Source  string        // where the configuration came from: a file, or "flags"
	Wait    time.Duration // how long to wait for interfaces at the start
	Record  string        // directory in which every switch is recorded from its start
	// Recorder configures recordings. Without a Limit, a record in Record may take as
	// many bytes as the disk has, and one that the API starts without Record 1 GiB.
	Recorder Recorder
	Logger   *slog.Logger // nil is slog.Default()

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
	records           []*Record         // that have ended
	recordsIn         string            // directory
	exporting         *Reporting        // nil: reports are not exported
	taking            sync.Mutex        // reports: an exporter that ends takes the last while the next one starts
	disabled          *disabledWatch    // nil before Start and after Stop
	replayed          bool              // the switch is replayed from a record: nothing is below its ports
	recordedMonotonic uint64            // of a replay: the value of Daemon.monotonic during recording
}

// unit is a running switch.
type unit struct {
	name    string
	sw      *vswitch.Switch
	workers []int // of Nodes
	numbers map[string]int
	next    int  // next port number to assign
	timing  bool // its ports time-stamp frames
	page    *ClockPage
	ports   map[string]*openPort
	kernel  *kernelRoutes // nil: no port has an interface in the kernel

	recording *Record // nil: not recorded

	// Used only by the exporter: the reporters, and the program that they belong to.
	reporters []reporter
	sourcesOf uint32
	sourcesAt time.Time
	report    []byte // buffer for a report on its way to the exporter
}

// openPort is a port of the engine; there is one for each worker that has some of its
// queues.
type openPort struct {
	conf config.Port
	open []*dataplane.Port
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
	d.disabled = d.watchDisabled()
	return nil
}

// Stop ends the workers and closes the ports.
func (d *Daemon) Stop() error {
	d.mu.Lock()
	exported, disabled := d.exporting.End(), d.disabled
	d.exporting, d.disabled = nil, nil
	d.mu.Unlock()
	disabled.close()
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

// try builds every switch in ordinary memory, to find out what the nodes would reject
// before anything is changed.
func try(c *config.Config) error {
	for i := range c.Switches {
		if err := trySwitch(c, &c.Switches[i]); err != nil {
			return err
		}
	}
	return nil
}

func trySwitch(c *config.Config, s *config.Switch) error {
	chunks := c.Frames()
	// The arena is as large as the engine's, since buffers are checked against it. It is
	// never touched, so it costs no memory.
	mem, err := unix.Mmap(-1, 0, chunks*c.Memory.Chunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("address space for %d chunks of %d bytes: %w", chunks, c.Memory.Chunk, err)
	}
	defer unix.Munmap(mem)
	arena, err := frame.NewArena(mem, c.Memory.Chunk, frame.DefaultHeadroom)
	if err != nil {
		return err
	}
	depot := frame.NewDepot(arena)
	var pools []*frame.Pool
	for range s.WorkersUsed() {
		pools = append(pools, depot.NewPool(arena))
	}
	if _, err = vswitch.New(s.VSwitch(nil), pools); err != nil {
		return namePorts{err, s}
	}
	return nil
}

// namePorts is an error of a node, which knows only the numbers of ports.
type namePorts struct {
	error
	s *config.Switch
}

var portNumber = regexp.MustCompile(`\bport (\d+)\b`)

func (e namePorts) Error() string {
	return portNumber.ReplaceAllStringFunc(e.error.Error(), func(m string) string {
		n, err := strconv.Atoi(m[len("port "):])
		if err != nil || n >= len(e.s.Ports) {
			return m
		}
		return "port " + e.s.Ports[n].Name
	})
}

func (e namePorts) Unwrap() error { return e.error }

// ConfigError is an error of New or of a call that is caused by the configuration or by
// the request, besides section.Errors.
type ConfigError struct{ error }

func (e ConfigError) Unwrap() error { return e.error }

// Check returns what would prevent a configuration from working, without using any
// interface.
func Check(c *config.Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	return try(c.Resolved())
}

// addSwitch makes a switch and opens its ports. On failure it undoes all of it.
func (d *Daemon) addSwitch(s *config.Switch) error {
	u := &unit{name: s.Name, timing: s.Timing(), workers: s.WorkersUsed(), numbers: map[string]int{}, ports: map[string]*openPort{}}
	u.number(s)
	var pools []*frame.Pool
	for _, w := range u.workers {
		pools = append(pools, d.engine.Worker(w).Pool())
	}
	var err error
	if u.sw, err = vswitch.New(d.vswitch(u, s), pools); err != nil {
		return err
	}
	for i, w := range u.workers {
		if err := d.engine.AddNode(w, u.sw.Nodes[i]); err != nil {
			return fmt.Errorf("switch %s: %w", s.Name, err)
		}
	}
	if d.opts.Record != "" {
		if err := d.record(u, s, d.opts.Recorder, false); err != nil {
			return errors.Join(err, d.closeSwitch(u))
		}
	}
	for i := range s.Ports {
		if err := d.openPort(u, s, &s.Ports[i]); err != nil {
			return errors.Join(err, d.closeSwitch(u))
		}
	}
	if len(s.Ports) > 0 {
		w := s.Ports[0].Workers[0] // a switch with a clock has all ports on one worker
		u.page = OpenClockPage(d.log, d.engine, w, PagePath(d.resolved.Control.Socket, s.Name), u.sw.Nodes[slices.Index(u.workers, w)].Timekeeper())
	}
	d.units = append(d.units, u)
	return nil
}

// vswitch returns the configuration of the switch node of s.
func (d *Daemon) vswitch(u *unit, s *config.Switch) *vswitch.Config {
	c := s.VSwitch(u.numbers)
	c.Epoch, c.Secret = d.engine.Epoch().UnixNano(), d.secret
	return c
}

// removeSwitch takes a switch down with its ports.
func (d *Daemon) removeSwitch(name string) error {
	u, err := d.unit(name)
	if err != nil {
		return err
	}
	d.units = slices.DeleteFunc(d.units, func(o *unit) bool { return o == u })
	return d.closeSwitch(u)
}

func (d *Daemon) closeSwitch(u *unit) error {
	u.kernel.stop()
	u.kernel = nil
	errs := []error{u.page.Close()}
	for name := range u.ports {
		errs = append(errs, d.closePort(u, name))
	}
	errs = append(errs, d.endRecording(u))
	for i, w := range u.workers {
		errs = append(errs, d.engine.RemoveNode(w, u.sw.Nodes[i]))
	}
	return errors.Join(errs...)
}

// number assigns a number to every port of s. A port keeps its number as long as a port
// with its name exists. Numbers are reused only when all have been used.
func (u *unit) number(s *config.Switch) {
	used := make([]bool, vswitch.MaxPorts)
	names := map[string]bool{}
	for i := range s.Ports {
		names[s.Ports[i].Name] = true
	}
	for name, n := range u.numbers {
		if !names[name] {
			delete(u.numbers, name)
		} else {
			used[n] = true
		}
	}
	for i := range s.Ports {
		name := s.Ports[i].Name
		if _, has := u.numbers[name]; has {
			continue
		}
		n := u.next
		if n >= vswitch.MaxPorts {
			n = slices.Index(used, false)
		} else {
			u.next++
		}
		u.numbers[name], used[n] = n, true
	}
}

// openPort assigns the queues of a port to the workers of its switch.
func (d *Daemon) openPort(u *unit, s *config.Switch, p *config.Port) error {
	o := &openPort{conf: *p}
	u.ports[p.Name] = o
	shares, err := shareQueues(p)
	if err != nil {
		return fmt.Errorf("port %s: %w", metrics.PortName(u.name, p.Name), err)
	}
	if err := harmless(p); err != nil {
		return fmt.Errorf("port %s: %w", metrics.PortName(u.name, p.Name), err)
	}
	for i, queues := range shares {
		spec := p.Spec()
		spec.Name, spec.Queues, spec.Timing = metrics.PortName(u.name, p.Name), queues, u.timing
		spec.Tap = s.Twin(p, u.numbers)
		k := slices.Index(u.workers, p.Workers[i])
		port, err := d.engine.AddPort(p.Workers[i], u.sw.Nodes[k], uint16(u.numbers[p.Name]), spec)
		if err != nil {
			return errors.Join(nearInterfaces(p, err), d.closePort(u, p.Name))
		}
		o.open = append(o.open, port)
	}
	return d.setFaults(u, p)
}

func (d *Daemon) closePort(u *unit, name string) error {
	o := u.ports[name]
	if o == nil {
		return nil
	}
	delete(u.ports, name)
	var errs []error
	for _, p := range o.open {
		errs = append(errs, d.engine.RemovePort(p))
	}
	return errors.Join(errs...)
}

// adopt makes the workers of a switch adopt its program, so that the ports that it adds
// are known when they are opened.
func (d *Daemon) adopt(u *unit) error {
	for i, w := range u.workers {
		if err := d.engine.Advance(w, u.sw.Nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *Daemon) unit(name string) (*unit, error) {
	names := make([]string, len(d.units))
	for i, u := range d.units {
		if u.name == name || name == "" && len(d.units) == 1 {
			return u, nil
		}
		names[i] = u.name
	}
	if name == "" {
		return nil, fmt.Errorf("there are several switches: name one of %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("there is no switch %q; there are %s", name, strings.Join(names, ", "))
}

// chosen yields the switch with a name, or all if name is empty.
func (d *Daemon) chosen(name string) iter.Seq[*unit] {
	return func(yield func(*unit) bool) {
		for _, u := range d.units {
			if (name == "" || name == u.name) && !yield(u) {
				return
			}
		}
	}
}

// ReadFile reads the configuration of a running daemon anew. It returns what changed, and
// what that did beyond it, which for a switch is nothing.
func (d *Daemon) ReadFile(path string) ([]section.Change, []string, error) {
	var c *config.Config
	err := Prepare(d.log, func() (err error) { c, err = config.Load(path); return err })
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
