package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/vswitch"
)

// RecordDir is where records are written if the daemon is not told.
const RecordDir = "/var/lib/gswitch/records"

const (
	// startedLimit is how many bytes a record may have that the API asked for,
	// of a daemon that was told neither where nor how much to record.
	startedLimit = 1 << 30
	// recordSegments is how many segments a recorder may be ahead of the disk.
	recordSegments = 64
	// recordPoll is how often the writer looks for segments: the worker does not
	// signal it, which would be a system call between frames.
	recordPoll = 20 * time.Millisecond
	// recordFlush is for how long what was recorded stays in memory at most.
	recordFlush = time.Second
)

// made is what a switch is made from, as records hold it: a document, and
// the numbers that its ports have.
type made struct {
	Document string        `json:"document"`
	Ports    []replay.Port `json:"ports"`
}

func madeFrom(doc *config.Config, s *config.Switch, numbers map[string]int) made {
	m := made{Document: string(doc.YAML())}
	for i := range s.Ports {
		name := s.Ports[i].Name
		m.Ports = append(m.Ports, replay.Port{Name: name, Number: numbers[name]})
	}
	return m
}

// document returns the document as it was written.
func (d *Daemon) document(s *config.Switch) *config.Config {
	if switchOf(d.resolved, s.Name) == s {
		return d.doc
	}
	return d.next
}

// config returns the document, and the switch of a name in it with its
// defaults.
func (m *made) config(name string) (*config.Config, *config.Switch, error) {
	c, err := config.Parse("document of the record", []byte(m.Document))
	if err != nil {
		return nil, nil, err
	}
	s := switchOf(c.Resolved(), name)
	if s == nil {
		return nil, nil, fmt.Errorf("the document of the record has no switch %s", name)
	}
	return c, s, nil
}

func (m *made) numbers() map[string]int {
	numbers := map[string]int{}
	for _, p := range m.Ports {
		numbers[p.Name] = p.Number
	}
	return numbers
}

// recording is a record that is written.
type recording struct {
	sw     string
	file   string
	start  time.Time
	node   *vswitch.Node
	worker int
	rec    *replay.Recorder
	feed   *replay.Feed
	out    *os.File
	w      *replay.Writer
	stats  atomic.Pointer[replay.WriterStats]
	ended  atomic.Pointer[string] // why nothing is written any more
	limit  uint64                 // bytes of the file, 0 none
	stop   chan struct{}
	done   chan struct{}
}

// record puts a recorder around the node of a switch that has not been stepped
// yet.
func (d *Daemon) record(u *unit, s *config.Switch) error {
	if n := len(u.workers); n != 1 {
		return fmt.Errorf("switch %s runs on %d workers, and what they read of each other is not recorded: give all its ports the same worker", u.name, n)
	}
	if err := os.MkdirAll(d.recordsIn, 0o700); err != nil {
		return err
	}
	now := time.Now()
	r := &recording{sw: u.name, start: now, limit: d.opts.RecordLimit, node: u.sw.Nodes[0], worker: u.workers[0], feed: replay.NewFeed(recordSegments), stop: make(chan struct{}), done: make(chan struct{})}
	if r.limit == 0 && d.opts.Record == "" {
		r.limit = startedLimit
	}
	r.file = filepath.Join(d.recordsIn, fmt.Sprintf("%s-%s.grec", u.name, now.UTC().Format("20060102T150405.000Z")))
	pool := d.engine.Worker(r.worker).Pool()
	m := madeFrom(d.document(s), s, u.numbers)
	h := replay.Header{Build: d.opts.Version, Go: runtime.Version(), Kind: "switch", Name: u.name, Document: m.Document, Ports: m.Ports,
		Chunk: pool.ChunkSize(), Chunks: pool.Chunks(), Headroom: pool.Headroom(), Epoch: d.engine.Epoch().UnixNano()}
	err := d.engine.Interpose(r.worker, r.node, func(now frame.Time, n frame.Node) (_ frame.Node, err error) {
		h.Start = now
		r.rec, err = replay.NewRecorder(now, r.node, pool, r.feed)
		return r.rec, err
	})
	if err != nil {
		return err
	}
	if r.out, err = os.OpenFile(r.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		r.w, err = replay.NewWriter(r.out, &h)
	}
	if err != nil {
		return errors.Join(err, d.engine.Uninterpose(r.worker, r.node))
	}
	r.publish()
	u.recording = r
	go r.write(d.engine, d.log)
	d.log.Info("recording", "switch", u.name, "file", r.file)
	return nil
}

func (r *recording) publish() {
	s := r.w.Stats()
	r.stats.Store(&s)
}

// write writes segments until the recording ends. It never holds the worker
// up: what cannot be written ends the record.
func (r *recording) write(e *dataplane.Engine, log *slog.Logger) {
	defer close(r.done)
	tick := time.NewTicker(recordPoll)
	defer tick.Stop()
	flushed := time.Now()
	for {
		stopping := false
		select {
		case <-r.stop:
			stopping = true
		case <-tick.C:
		}
		if err := r.drain(); err != nil {
			r.early(e, log, err.Error())
			return
		}
		if why := r.feed.Lost(); why != "" {
			if err := errors.Join(r.drain(), r.w.Lost(why)); err != nil {
				why = err.Error()
			}
			r.early(e, log, why)
			return
		}
		if stopping {
			r.end(stopped)
			return
		}
		if now := time.Now(); now.Sub(flushed) >= recordFlush {
			flushed = now
			_ = e.Worker(r.worker).Do(r.rec.Flush) // of an engine that was stopped there is nothing more
		}
	}
}

// early ends a record that was to go on, and gives the node back to the engine
// without its recorder. The switch goes on.
func (r *recording) early(e *dataplane.Engine, log *slog.Logger, why string) {
	if e.Worker(r.worker).Do(r.rec.End) == nil {
		_ = e.Uninterpose(r.worker, r.node) // it is wrapped, by this recorder
	}
	log.Warn("the record ended early", "switch", r.sw, "file", r.file, "why", why)
	r.end(why)
}

func (r *recording) drain() error {
	for s := r.feed.Next(); s != nil; s = r.feed.Next() {
		if err := r.w.Write(s); err != nil {
			return err
		}
		r.feed.Return(s)
		r.publish()
		if n := r.w.Stats().Bytes; r.limit > 0 && n >= r.limit {
			return fmt.Errorf("it has %d bytes, and its limit is %d", n, r.limit)
		}
	}
	return nil
}

func (r *recording) end(why string) {
	if err := r.out.Close(); err != nil {
		why = err.Error()
	}
	r.publish()
	r.ended.Store(&why)
}

// endRecording ends the record of a switch, and keeps it.
func (d *Daemon) endRecording(u *unit) error {
	r := u.recording
	if r == nil {
		return nil
	}
	u.recording = nil
	err := d.engine.Worker(r.worker).Do(r.rec.End)
	close(r.stop)
	<-r.done
	d.records = append(d.records, r)
	if n := len(d.records); n > keptRecords {
		d.records = slices.Delete(d.records, 0, n-keptRecords)
	}
	if r.endedEarly() {
		return err // the writer gave the node back
	}
	return errors.Join(err, d.engine.Uninterpose(r.worker, r.node))
}

// stopped is why a record ends that was to end.
const stopped = "stopped"

func (r *recording) endedEarly() bool {
	why := r.ended.Load()
	return why != nil && *why != stopped
}

// keptRecords is how many records that ended are listed.
const keptRecords = 16

// Recording tells of a record.
type Recording struct {
	Switch, File string
	On           bool
	Start        time.Time
	Stats        replay.WriterStats
	Ended        string // why, if it is not on
}

func (r *recording) status() Recording {
	s := Recording{Switch: r.sw, File: r.file, Start: r.start, Stats: *r.stats.Load(), On: true}
	if why := r.ended.Load(); why != nil {
		s.On, s.Ended = false, *why
	}
	return s
}

// Recordings lists the records of this daemon.
func (d *Daemon) Recordings() []Recording {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.recordings()
}

func (d *Daemon) recordings() (list []Recording) {
	for _, r := range d.records {
		list = append(list, r.status())
	}
	for _, u := range d.units {
		if u.recording != nil {
			list = append(list, u.recording.status())
		}
	}
	return list
}

// StartRecording records the switches of a name, or all. Since a record begins
// with a switch that nothing has happened to, they begin anew: what they hold
// and have learned is lost, and their counters start from 0.
func (d *Daemon) StartRecording(name string) ([]Recording, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var chosen []string
	for u := range d.chosen(name) {
		if u.recording != nil && !u.recording.endedEarly() {
			return nil, fmt.Errorf("switch %s is recorded already, to %s", u.name, u.recording.file)
		}
		if len(u.workers) != 1 {
			return nil, fmt.Errorf("switch %s runs on %d workers, and what they read of each other is not recorded: give all its ports the same worker", u.name, len(u.workers))
		}
		chosen = append(chosen, u.name)
	}
	for _, name := range chosen {
		s := switchOf(d.resolved, name)
		if err := d.removeSwitch(name); err != nil {
			return nil, err
		}
		d.recorded[name] = true
		if err := d.addSwitch(s, 0); err != nil {
			delete(d.recorded, name)
			return nil, errors.Join(err, d.addSwitch(s, 0))
		}
	}
	return d.recordings(), nil
}

// StopRecording ends the records of the switches of a name, or of all.
func (d *Daemon) StopRecording(name string) ([]Recording, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	stopped := false
	for u := range d.chosen(name) {
		stopped = stopped || u.recording != nil
		delete(d.recorded, u.name)
		errs = append(errs, d.endRecording(u))
	}
	if !stopped {
		return nil, errors.New("nothing is recorded")
	}
	return d.recordings(), errors.Join(errs...)
}

// SaveRecording writes out what was recorded up to now. The records go on.
func (d *Daemon) SaveRecording(name string) ([]Recording, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	saved := false
	for u := range d.chosen(name) {
		r := u.recording
		if r == nil {
			continue
		}
		saved = true
		steps := uint64(0)
		if err := d.engine.Worker(r.worker).Do(func(now frame.Time) { r.rec.Flush(now); steps = r.rec.Steps() }); err != nil {
			return nil, err
		}
		for r.ended.Load() == nil && r.stats.Load().Steps < steps {
			time.Sleep(recordPoll) // by the writer, which looks this often
		}
	}
	if !saved {
		return nil, errors.New("nothing is recorded")
	}
	return d.recordings(), nil
}

// applied is the change to the configuration of s, with what a record needs to
// make the same of it.
func (d *Daemon) applied(u *unit, s *config.Switch) (vswitch.Apply, error) {
	a := vswitch.Apply{Config: s.VSwitch(u.numbers)}
	if u.recording == nil {
		return a, nil
	}
	var err error
	a.Document, err = json.Marshal(madeFrom(d.document(s), s, u.numbers))
	return a, err
}

// Record implements the API.
func (s *server) Record(_ context.Context, r *api.RecordRequest) (*api.Recordings, error) {
	if err := s.d.known(r.Switch, ""); err != nil {
		return nil, err
	}
	var list []Recording
	var err error
	switch r.Action {
	case api.RecordRequest_STATUS:
		list = s.d.Recordings()
	case api.RecordRequest_START:
		list, err = s.d.StartRecording(r.Switch)
	case api.RecordRequest_STOP:
		list, err = s.d.StopRecording(r.Switch)
	case api.RecordRequest_SAVE:
		list, err = s.d.SaveRecording(r.Switch)
	default:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("there is no action %d", r.Action))
	}
	if err != nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, err)
	}
	out := &api.Recordings{}
	for _, x := range list {
		if r.Switch == "" || r.Switch == x.Switch {
			out.Recordings = append(out.Recordings, &api.Recording{Switch: x.Switch, File: x.File, On: x.On, Seconds: x.Stats.Last.Duration().Seconds(),
				Steps: x.Stats.Steps, Bytes: x.Stats.Bytes, EntryBytes: x.Stats.Raw, Ended: x.Ended})
		}
	}
	return out, nil
}
