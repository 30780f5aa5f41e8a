package control

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/replay"
)

// RecordOptions configure the recording of nodes.
type RecordOptions struct {
	// Limit bounds the total size of a recording's files in bytes; 0: no limit.
	Limit uint64
	// Last is the number of bytes of the latest inputs that are kept in memory, until a
	// trigger or a request saves them to a file. 0: everything goes to a file.
	Last uint64
	// On lists the events that trigger a save.
	On Triggers
}

// saveEvery is the least time between the saves that triggers cause.
const saveEvery = time.Minute

// Subject is a node that is recorded.
type Subject struct {
	Name   string
	Dir    string // of the files
	Engine *dataplane.Engine
	Worker int
	Node   frame.Stepper
	Header func() replay.Header // describes the node as it is now, without Start
	Build  replay.Build         // rebuilds the node of a record
	Log    *slog.Logger

	// Image returns an image of the node, and is called on its worker; nil: the node can
	// be recorded from its start only.
	Image func() ([]byte, error)
	// Still runs do while no configuration changes. If one is changing, it returns false.
	// It is set together with Image.
	Still func(do func() error) (bool, error)
	// Watch is called on the worker. It returns why the recording should be saved now, or
	// "".
	Watch func() string
}

// Recording records a node.
type Recording struct {
	of    Subject
	o     RecordOptions
	start time.Time
	rec   *replay.Recorder
	feed  *replay.Feed

	// Everything goes to a file, or the last part stays in memory.
	file string
	out  *os.File
	w    *replay.Writer
	kept *replay.Keeper

	written    uint64    // bytes of the saved files
	savedUntil time.Time // triggers are ignored until then, since a file was saved

	stats atomic.Pointer[replay.WriterStats]
	saved atomic.Pointer[[]RecordStatus] // saved files
	ended atomic.Pointer[string]         // why recording has ended
	save  chan saving
	stop  chan struct{}
	done  chan struct{}
}

// saving is a request to save.
type saving struct {
	why  string
	done chan error
}

// fileName returns the file name of a record that is written at an instant.
func (r *Recording) fileName(at time.Time) string {
	return filepath.Join(r.of.Dir, fmt.Sprintf("%s-%s.grec", r.of.Name, at.UTC().Format("20060102T150405.000Z")))
}

// StartRecording starts recording a node. running says that the node has been stepped: the
// record then starts with an image of it.
func StartRecording(of Subject, o RecordOptions, running bool) (*Recording, error) {
	if o.Last > 0 && o.Last < leastKept {
		return nil, fmt.Errorf("%d bytes are too few to keep what %s was given last: say %d MiB or more", o.Last, of.Name, leastKept>>20)
	}
	if o.Last > 0 && o.Limit == 0 {
		o.Limit = startedLimit
	}
	if of.Watch == nil {
		of.Watch = func() string { return "" }
	}
	r := &Recording{of: of, o: o, start: time.Now(), feed: replay.NewFeed(recordSegments, of.Engine.Worker(of.Worker).Pool().ChunkSize()), save: make(chan saving), stop: make(chan struct{}), done: make(chan struct{})}
	if err := r.open(running); err != nil {
		return nil, err
	}
	go r.write()
	of.Log.Info("recording", "file", r.file)
	return r, nil
}

// End ends the recording, keeps it, and removes the recorder from the node.
func (r *Recording) End() error {
	err := r.of.Engine.Worker(r.of.Worker).Do(r.rec.End)
	close(r.stop)
	<-r.done
	if r.endedEarly() {
		return err // the writer has removed the recorder
	}
	return errors.Join(err, r.of.Engine.Uninterpose(r.of.Worker, r.of.Node))
}

// open begins the recording.
func (r *Recording) open(running bool) error {
	e, pool := r.of.Engine, r.of.Engine.Worker(r.of.Worker).Pool()
	h := r.of.Header()
	epoch := &replay.Epoch{Header: h}
	err := e.Interpose(r.of.Worker, r.of.Node, func(now frame.Time, n frame.Node) (_ frame.Node, err error) {
		h.Start = now
		if r.rec, err = replay.NewRecorder(now, r.of.Node, pool, r.feed); err == nil && (running || r.o.Last > 0) {
			err = r.begin(now, epoch)
		}
		r.of.Watch() // resets it
		return r.rec, err
	})
	if err != nil {
		return err
	}
	if epoch.Image != nil {
		err = r.try(epoch)
	}
	if r.o.Last > 0 {
		r.kept = replay.NewKeeper(r.o.Last)
		r.file = "the last of it in memory"
	} else if err == nil {
		r.file = r.fileName(r.start)
		if err = os.MkdirAll(r.of.Dir, 0o700); err == nil {
			r.out, err = os.OpenFile(r.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		}
		if err == nil {
			r.w, err = replay.NewWriter(r.out, &h)
		}
	}
	if err != nil {
		return errors.Join(err, e.Worker(r.of.Worker).Do(r.rec.End), e.Uninterpose(r.of.Worker, r.of.Node))
	}
	r.publish()
	return nil
}

// begin starts the record here, with an image of the node. It runs on the worker, while
// no configuration changes.
func (r *Recording) begin(now frame.Time, e *replay.Epoch) (err error) {
	if e.Image, err = r.of.Image(); err == nil {
		r.rec.Begin(now, e)
	}
	return err
}

// try restores an image as a replay will: a recording that cannot be replayed is useless.
func (r *Recording) try(e *replay.Epoch) error {
	h := &e.Header
	mem, err := unix.Mmap(-1, 0, h.Chunks*h.Chunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("address space for %d chunks of %d bytes: %w", h.Chunks, h.Chunk, err)
	}
	defer unix.Munmap(mem)
	arena, err := frame.NewArena(mem, h.Chunk, h.Headroom)
	if err != nil {
		return err
	}
	m, err := r.of.Build(h, frame.NewPool(arena))
	if err == nil {
		err = m.(replay.Resumer).RestoreImage(e.Image)
	}
	if err != nil {
		return fmt.Errorf("it can be recorded from its start only (run --record): %w", err)
	}
	return nil
}

func (r *Recording) publish() {
	var s replay.WriterStats
	if r.kept != nil {
		s = r.kept.Stats()
	} else {
		s = r.w.Stats()
	}
	r.stats.Store(&s)
}

// write writes segments until the recording ends. It never delays the worker: an error
// ends the record.
func (r *Recording) write() {
	defer close(r.done)
	tick := time.NewTicker(recordPoll)
	defer tick.Stop()
	flushed := time.Now()
	for {
		stopping := false
		ask := saving{}
		select {
		case <-r.stop:
			stopping = true
		case ask = <-r.save:
			r.flush() // if the engine was stopped there is nothing more
		case <-tick.C:
		}
		err := r.drain()
		if why := r.feed.Lost(); err == nil && why != "" {
			if err = errors.Join(r.drain(), r.lost(why)); err == nil {
				err = errors.New(why)
			}
		}
		if ask.done != nil {
			ask.done <- r.keepFile(ask.why) // the status reports err
		}
		if err != nil {
			r.early(err.Error())
			return
		}
		if stopping {
			r.end(stopped)
			return
		}
		if now := time.Now(); now.Sub(flushed) >= recordFlush {
			flushed = now
			if why := r.flush(); why != "" && r.kept != nil && now.After(r.savedUntil) {
				r.savedUntil = now.Add(saveEvery)
				if err := errors.Join(r.drain(), r.keepFile(why)); err != nil {
					r.of.Log.Warn("what is kept was not saved", "why", why, "error", err)
				}
			}
		}
		if r.kept != nil && r.kept.Due() {
			if err := r.renew(); err != nil {
				r.early(err.Error())
				return
			}
		}
	}
}

// lost returns why the record ends here.
func (r *Recording) lost(why string) error {
	if r.w == nil {
		return nil // the status and the log say it
	}
	return r.w.Lost(why)
}

// flush makes the worker hand over its data, and asks whether to save.
func (r *Recording) flush() (why string) {
	_ = r.of.Engine.Worker(r.of.Worker).Do(func(now frame.Time) {
		r.rec.Flush(now)
		why = r.of.Watch()
	})
	return why
}

// renew starts the next epoch, unless the configuration is being changed.
func (r *Recording) renew() error {
	_, err := r.of.Still(func() error { // otherwise at the next attempt
		e := &replay.Epoch{Header: r.of.Header()}
		var err error
		stopped := r.of.Engine.Worker(r.of.Worker).Do(func(now frame.Time) { err = r.begin(now, e) })
		if stopped != nil {
			return stopped
		}
		if err == nil {
			err = r.try(e)
		}
		return err
	})
	return err
}

// keepFile saves the recording that is kept in memory to a file.
func (r *Recording) keepFile(why string) error {
	if r.kept == nil {
		return nil
	}
	if s := r.kept.Stats(); r.o.Limit > 0 && r.written+s.Bytes > r.o.Limit {
		return fmt.Errorf("the files have %d bytes, %d more would be beyond the limit of %d", r.written, s.Bytes, r.o.Limit)
	}
	now := time.Now()
	name := r.fileName(now)
	if err := os.MkdirAll(r.of.Dir, 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(r.kept.Save(out, why), out.Close()); err != nil {
		return errors.Join(err, os.Remove(name)) // do not leave a partial file on a full disk
	}
	s := r.kept.Stats()
	r.written += s.Bytes
	all := append(r.files(), RecordStatus{Switch: r.of.Name, File: name, Start: now, Stats: s, Ended: "saved: " + why})
	if n := len(all); n > keptRecords {
		all = all[n-keptRecords:]
	}
	r.saved.Store(&all)
	r.of.Log.Info("what is kept was saved", "file", name, "why", why)
	return nil
}

func (r *Recording) files() []RecordStatus {
	if v := r.saved.Load(); v != nil {
		return append([]RecordStatus(nil), *v...)
	}
	return nil
}

// Save saves the recording to a file, or completes its file.
func (r *Recording) Save(why string) error {
	s := saving{why, make(chan error, 1)}
	select {
	case r.save <- s:
		return <-s.done
	case <-r.done:
		return nil // the status says why it ended
	}
}

// early ends a record prematurely, and removes the recorder from the node. The switch
// continues.
func (r *Recording) early(why string) {
	e := r.of.Engine
	if e.Worker(r.of.Worker).Do(r.rec.End) == nil {
		_ = e.Uninterpose(r.of.Worker, r.of.Node) // it is wrapped by this recorder
	}
	r.of.Log.Warn("the record ended early", "file", r.file, "why", why)
	r.end(why)
}

func (r *Recording) drain() error {
	for s := r.feed.Next(); s != nil; s = r.feed.Next() {
		var err error
		if r.kept != nil {
			err = r.kept.Add(s)
		} else {
			err = r.w.Write(s)
		}
		if err != nil {
			return err
		}
		r.feed.Return(s)
		r.publish()
		if n := r.stats.Load().Bytes; r.kept == nil && r.o.Limit > 0 && n >= r.o.Limit {
			why := fmt.Errorf("it has %d bytes, and its limit is %d", n, r.o.Limit)
			return errors.Join(why, r.lost(why.Error()))
		}
	}
	return nil
}

func (r *Recording) end(why string) {
	if r.out != nil {
		if err := r.out.Close(); err != nil {
			why = err.Error()
		}
	}
	r.publish()
	r.kept = nil // frees the memory
	r.ended.Store(&why)
}

// stopped is the reason of a record that was ended on request.
const stopped = "stopped"

func (r *Recording) endedEarly() bool {
	why := r.ended.Load()
	return why != nil && *why != stopped
}

// Status describes the saved files and the recording.
func (r *Recording) Status() []RecordStatus {
	s := RecordStatus{Switch: r.of.Name, File: r.file, Start: r.start, Stats: *r.stats.Load(), On: true}
	if why := r.ended.Load(); why != nil {
		s.On, s.Ended = false, *why
	}
	return append(r.files(), s)
}
