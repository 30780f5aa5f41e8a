package host

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"gswitch/config"
	"gswitch/control"
	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/hostnic/agent"
	"gswitch/metrics"
	"gswitch/replay"
	"gswitch/wire"
)

// recordKind is the kind in the headers of hosts' records.
const recordKind = "host"

// record starts recording a host that has not been stepped yet and was made with a seed.
func (d *Daemon) record(u *unit, seed uint64) (err error) {
	if streamsOf(u.conf.Load()) != nil && d.opts.RecordOptions.Last > 0 {
		return control.Refused(errors.New("the last of a host with the section tcp cannot be kept, since there are no images of its connections: record it in full, without --record-last"))
	}
	pool, counts := u.worker.Pool(), u.agent.NIC().Counts()
	zero, _ := d.engine.Monotonic(0)
	u.recording, err = control.StartRecording(control.Subject{
		Name: u.name, Dir: d.opts.Record, Engine: d.engine, Worker: u.worker.Index(), Node: u.agent, Build: Rebuild, Log: d.log.With("host", u.name),
		Header: func() replay.Header {
			h, mac := *u.conf.Load(), config.MAC(u.mac)
			h.MAC = &mac
			return replay.Header{Build: d.opts.Version, Go: runtime.Version(), Kind: recordKind, Name: u.name, Document: string(document(&h)), Ports: []replay.Port{{Name: h.Interface}},
				Chunk: pool.ChunkSize(), Chunks: pool.Chunks(), Headroom: pool.Headroom(), Secret: seed, Epoch: d.engine.Epoch().UnixNano(), Monotonic: uint64(zero),
				Clock: control.RecordedClock(u.worker, u.agent.NIC().Timekeeper())}
		},
		Image: func() ([]byte, error) { return u.agent.AppendImage(nil, pool, replay.Kept, u.worker.Elsewhere) },
		Still: func(do func() error) (bool, error) {
			if !d.mu.TryLock() {
				return false, nil
			}
			defer d.mu.Unlock()
			return true, do()
		},
		Watch: d.opts.RecordOptions.On.WatchHost(&counts.Drops, &counts.Timeouts),
	}, d.opts.RecordOptions, false)
	return err
}

// SaveRecording writes out what has been recorded so far: to the files of the records or,
// for recordings kept in memory, to new files. Recording continues.
func (d *Daemon) SaveRecording(why string) error {
	d.mu.RLock()
	var all []*control.Recording
	for _, u := range d.units {
		if u.recording != nil {
			all = append(all, u.recording)
		}
	}
	d.mu.RUnlock() // an image may be due, which waits for changes to end
	if len(all) == 0 {
		return errors.New("nothing is recorded")
	}
	var errs []error
	for _, r := range all {
		errs = append(errs, r.Save(why))
	}
	return errors.Join(errs...)
}

// Recordings lists the active records of this daemon.
func (d *Daemon) Recordings() (list []control.RecordStatus) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, u := range d.units {
		if u.recording != nil {
			list = append(list, u.recording.Status()...)
		}
	}
	return list
}

// endRecording ends the record of a host and keeps it.
func (u *unit) endRecording() (err error) {
	if u.recording != nil {
		err = u.recording.End()
		u.recording = nil
	}
	return err
}

// Replayed is the host of a record. A replay.Player steps it.
type Replayed struct {
	*agent.Agent

	pool  *frame.Pool
	name  string
	mac   wire.MAC
	epoch int64
	ports []replay.Port
	conf  *config.Host // in force
	fixed bool         // the configuration of Fix is in force; others are ignored
}

// Rebuild rebuilds the host of a record. It is a replay.Build.
func Rebuild(h *replay.Header, pool *frame.Pool) (replay.Machine, error) {
	if h.Kind != recordKind {
		return nil, fmt.Errorf("the record is of a %s, not of a host", h.Kind)
	}
	conf, err := alone([]byte(h.Document))
	if err != nil {
		return nil, err
	}
	if conf.MAC == nil {
		return nil, errors.New("the document of the record has no MAC address")
	}
	r := &Replayed{pool: pool, name: h.Name, mac: wire.MAC(*conf.MAC), epoch: h.Epoch, ports: h.Ports, conf: conf}
	c := settings(conf, r.mac, h.Epoch)
	c.NIC.Seed, c.NIC.RandomNumbers = h.Secret, true
	r.Agent, err = agent.New(c, pool)
	return r, err
}

// RestoreImage implements replay.Resumer.
func (r *Replayed) RestoreImage(b []byte) error { return r.Agent.RestoreImage(b, r.pool) }

// alone decodes what document writes.
func alone(text []byte) (*config.Host, error) {
	c, err := config.ParseHosts("document of the record", text)
	if err != nil {
		return nil, err
	}
	if n := len(c.Hosts); n != 1 {
		return nil, fmt.Errorf("the document of the record has %d hosts, not one", n)
	}
	return &c.Hosts[0], nil
}

// Do implements replay.Machine. A command that was refused is refused again.
func (r *Replayed) Do(now frame.Time, command []byte) error {
	c, err := agent.DecodeChange(command)
	if err != nil {
		return err
	}
	set, configures := c.(*agent.Configure)
	if configures && r.fixed {
		return nil
	}
	if configures {
		conf, err := alone(set.Document)
		if err != nil {
			return err
		}
		set.Config = settings(conf, r.mac, r.epoch)
		defer func() {
			if set.Refused == nil {
				r.conf = conf
			}
		}()
	}
	if err := agent.Allocate(c); err != nil {
		return err
	}
	r.Command(c).Do(now)
	return nil
}

// Fix sets the host's configuration from another document for the whole replay: no other
// one replaces it.
func (r *Replayed) Fix(doc *config.Hosts) error {
	found := doc.Find(r.name)
	if found == nil {
		return fmt.Errorf("the document has no host %s", r.name)
	}
	at := *found
	conf := &at // without the settings of where it runs
	conf.Interface, conf.NetNS, conf.MAC, conf.Worker = r.conf.Interface, r.conf.NetNS, r.conf.MAC, r.conf.Worker
	if keys := rebuilt(r.conf, conf); len(keys) > 0 {
		return fmt.Errorf("host %s: %s cannot be changed in a host that is replayed", r.name, strings.Join(keys, ", "))
	}
	if err := r.Agent.Reconfigure(0, settings(conf, r.mac, r.epoch)); err != nil {
		return fmt.Errorf("host %s: %w", r.name, err)
	}
	r.conf, r.fixed = conf, true
	return nil
}

// Rated returns the ports with a rate of their own, since hosts pace what they send.
func (r *Replayed) Rated() (ports []uint16) {
	for _, p := range r.ports {
		ports = append(ports, uint16(p.Number))
	}
	return ports
}

// Rate returns the rate of the host's link in bit/s.
func (r *Replayed) Rate() float64 { return float64(r.conf.Rate) }

// CommandName returns the name of a command of a record, as the program uses it.
func CommandName(b []byte) string {
	c, err := agent.DecodeChange(b)
	switch c := c.(type) {
	case *agent.StartTransfer:
		return fmt.Sprintf("transfer of %d messages of %d bytes to %v", c.Transfer.Count, c.Transfer.Size, c.Transfer.To)
	case agent.EndTransfer:
		return fmt.Sprintf("end of transfer %d", c.Number)
	case *agent.ServeRegion:
		return "serve"
	case *agent.Configure:
		return "apply"
	case agent.OfNIC:
		return c.String()
	case agent.Shutdown:
		return "shutdown"
	}
	return fmt.Sprintf("unknown (%v)", err)
}

// Ports returns the names of the ports by their numbers.
func (r *Replayed) Ports() map[uint16]string {
	names := map[uint16]string{}
	for _, p := range r.ports {
		names[uint16(p.Number)] = p.Name
	}
	return names
}

// Handler serves the API of a daemon with the host of a record, as it was at an instant
// of the record. The player must not continue meanwhile.
func (r *Replayed) Handler(h *replay.Header, at frame.Time) (http.Handler, error) {
	engine, err := dataplane.New(dataplane.Config{Chunks: 1, ChunkSize: 2048, Held: true, At: at})
	if err != nil {
		return nil, err
	}
	u := &unit{name: r.name, engine: engine, mac: r.mac, worker: engine.Worker(0), agent: r.Agent, queues: 1, gone: make(chan struct{})}
	u.conf.Store(r.conf)
	d := &Daemon{opts: Options{Version: h.Build}, start: time.Now().Add(-time.Duration(at - h.Start)), engine: engine, source: "a record", log: slog.New(slog.DiscardHandler),
		doc: &config.Hosts{Version: 1, Workers: make([]config.Worker, 1), Hosts: []config.Host{*r.conf}}, units: []*unit{u}}
	d.state = metrics.ConfigState{Version: h.Build, Generation: 1, ReloadSuccess: true}
	return control.ReadOnly(d.Handler()), nil
}
