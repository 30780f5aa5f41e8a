package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"connectrpc.com/connect"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/feature"
	"gswitch/replay"
	"gswitch/vswitch"
)

// RecordDir is the default directory of records.
const RecordDir = "/var/lib/gswitch/records"

const (
	// startedLimit is the limit in bytes of a record that the API starts in a daemon
	// without recording options, and of one kept in memory.
	startedLimit = 1 << 30
	// leastKept is the minimum of RecordOptions.Last in bytes: several images of a switch.
	leastKept = 4 << 20
	// recordSegments is how many segments a recorder may be ahead of the disk.
	recordSegments = 64
	// recordPoll is the interval at which the writer polls for segments: the worker does
	// not signal it, since that would be a system call between frames.
	recordPoll = 20 * time.Millisecond
	// recordFlush is how long recorded data stays in memory at most.
	recordFlush = time.Second
)

// made is what a switch is made from, in the form that records hold: a document, and the
// numbers of its ports.
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

// document returns the document as written.
func (d *Daemon) document(s *config.Switch) *config.Config {
	if switchOf(d.resolved, s.Name) == s {
		return d.doc
	}
	return d.next
}

// config returns the document, and the switch with a name in it, with its defaults.
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

// record starts recording the node of a switch. running says that the node has been
// stepped: the record then starts with an image of it.
func (d *Daemon) record(u *unit, s *config.Switch, o RecordOptions, running bool) error {
	if err := recordable(u); err != nil {
		return err
	}
	n, first := u.sw.Nodes[0], s
	r, err := StartRecording(Subject{
		Name: u.name, Dir: d.recordsIn, Engine: d.engine, Worker: u.workers[0], Node: n, Build: Rebuild, Log: d.log.With("switch", u.name), Watch: o.On.watch(n),
		Header: func() replay.Header {
			is := first
			if first = nil; is == nil {
				is = switchOf(d.resolved, u.name)
			}
			return d.header(u, is)
		},
		Image: func() ([]byte, error) {
			return u.sw.AppendImage(nil, replay.Kept, d.engine.Worker(u.workers[0]).Elsewhere)
		},
		Still: func(do func() error) (bool, error) {
			if !d.mu.TryLock() {
				return false, nil
			}
			defer d.mu.Unlock()
			return true, do()
		},
	}, o, running)
	if err == nil {
		u.recording = r
	}
	return err
}

// recordable rejects what cannot be recorded.
func recordable(u *unit) error {
	if n := len(u.workers); n != 1 {
		return fmt.Errorf("switch %s runs on %d workers, and what they read of each other is not recorded: give all its ports the same worker", u.name, n)
	}
	return nil
}

// header returns the header of a record of the switch in its present state.
func (d *Daemon) header(u *unit, s *config.Switch) replay.Header {
	pool := d.engine.Worker(u.workers[0]).Pool()
	m := madeFrom(d.document(s), s, u.numbers)
	h := replay.Header{Build: d.opts.Version, Go: runtime.Version(), Kind: "switch", Name: u.name, Document: m.Document, Ports: m.Ports,
		Chunk: pool.ChunkSize(), Chunks: pool.Chunks(), Headroom: pool.Headroom(), Epoch: d.engine.Epoch().UnixNano(), Secret: d.secret, Monotonic: d.monotonic()}
	if k, ok := u.clockOf(); ok {
		h.Clock = RecordedClock(d.engine.Worker(u.workers[k.at]), k)
	}
	return h
}

// RecordedClock returns the synchronised time in the form of a record's header, or nil if
// there is no clock or it does not know the time.
func RecordedClock(w *dataplane.Worker, k feature.Timekeeper) *replay.Clock {
	c := &stampClock{worker: w, clock: k}
	if k == nil || !c.look() {
		return nil
	}
	return &replay.Clock{Zero: c.zero.Stamp(0), Eps: c.last.Eps, Root: c.last.Root}
}

// endRecording ends the record of a switch and keeps it.
func (d *Daemon) endRecording(u *unit) error {
	r := u.recording
	if r == nil {
		return nil
	}
	u.recording = nil
	err := r.End()
	d.records = append(d.records, r)
	if n := len(d.records); n > keptRecords {
		d.records = slices.Delete(d.records, 0, n-keptRecords)
	}
	return err
}

// keptRecords is how many ended records are listed.
const keptRecords = 16

// RecordStatus reports how far a record is.
type RecordStatus struct {
	Switch, File string
	On           bool
	Start        time.Time
	Stats        replay.WriterStats
	Ended        string // why it has ended; "" if it is active
}

// Recordings lists the records of this daemon.
func (d *Daemon) Recordings() []RecordStatus {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.recordings()
}

func (d *Daemon) recordings() (list []RecordStatus) {
	for _, r := range d.records {
		list = append(list, r.Status()...)
	}
	for _, u := range d.units {
		if u.recording != nil {
			list = append(list, u.recording.Status()...)
		}
	}
	return list
}

// StartRecording starts recording the switch with a name, or all. The record of a running
// switch starts with an image of it.
func (d *Daemon) StartRecording(name string, o RecordOptions) ([]RecordStatus, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for u := range d.chosen(name) {
		if u.recording != nil && !u.recording.endedEarly() {
			return nil, fmt.Errorf("switch %s is recorded already, to %s", u.name, u.recording.file)
		}
		if err := recordable(u); err != nil {
			return nil, err
		}
	}
	if o.Limit = d.opts.RecordOptions.Limit; o.Limit == 0 && d.opts.Record == "" {
		o.Limit = startedLimit
	}
	for u := range d.chosen(name) {
		if err := errors.Join(d.endRecording(u), d.record(u, switchOf(d.resolved, u.name), o, true)); err != nil {
			return nil, fmt.Errorf("switch %s: %w", u.name, err)
		}
	}
	return d.recordings(), nil
}

// StopRecording ends the records of the switch with a name, or of all.
func (d *Daemon) StopRecording(name string) ([]RecordStatus, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	stopped := false
	for u := range d.chosen(name) {
		stopped = stopped || u.recording != nil
		errs = append(errs, d.endRecording(u))
	}
	if !stopped {
		return nil, errors.New("nothing is recorded")
	}
	return d.recordings(), errors.Join(errs...)
}

// SaveRecording writes out what has been recorded so far: to the file of the record or,
// for a recording kept in memory, to a new file. Recording continues.
func (d *Daemon) SaveRecording(name, why string) ([]RecordStatus, error) {
	d.mu.RLock()
	var chosen []*Recording
	for u := range d.chosen(name) {
		if u.recording != nil {
			chosen = append(chosen, u.recording)
		}
	}
	d.mu.RUnlock() // an image may be due, which waits for changes to end
	if len(chosen) == 0 {
		return nil, errors.New("nothing is recorded")
	}
	var errs []error
	for _, r := range chosen {
		errs = append(errs, r.Save(why))
	}
	return d.Recordings(), errors.Join(errs...)
}

// applyOf returns the change that puts the configuration s in force, with what a record
// needs to repeat it.
func (d *Daemon) applyOf(u *unit, s *config.Switch) (vswitch.Apply, error) {
	a := vswitch.Apply{Config: d.vswitch(u, s)}
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
	var list []RecordStatus
	var err error
	switch r.Action {
	case api.RecordRequest_STATUS:
		list = s.d.Recordings()
	case api.RecordRequest_START:
		o := RecordOptions{Last: r.Last}
		if o.On, err = ParseTriggers(r.On); err == nil {
			list, err = s.d.StartRecording(r.Switch, o)
		}
	case api.RecordRequest_STOP:
		list, err = s.d.StopRecording(r.Switch)
	case api.RecordRequest_SAVE:
		list, err = s.d.SaveRecording(r.Switch, "asked for")
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
