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

	"gswitch/config"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/vswitch"
)

// Recorder says how switches are recorded.
type Recorder struct {
	// Limit is how many bytes the files of a recording may have together, 0: as many
	// as there are.
	Limit uint64
	// Last is how many bytes of the last inputs are kept in memory, until something
	// asks for a file with them. 0: all go to a file.
	Last uint64
	// On says what asks for one by itself.
	On Triggers
}

// saveEvery is how long a trigger waits after the file that the last one asked for.
const saveEvery = time.Minute

// recording is a recording of a switch.
type recording struct {
	d      *Daemon
	u      *unit
	o      Recorder
	start  time.Time
	node   *vswitch.Node
	worker int
	rec    *replay.Recorder
	feed   *replay.Feed
	log    *slog.Logger

	// To a file as it comes, or the last part in memory.
	file string
	out  *os.File
	w    *replay.Writer
	kept *replay.Keeper

	watch   func() string // called on the worker: why what is kept should be saved now, or ""
	written uint64        // bytes of files of what was kept
	quiet   time.Time     // until when no trigger is heard

	stats atomic.Pointer[replay.WriterStats]
	saved atomic.Pointer[[]Recording] // files of what was kept
	ended atomic.Pointer[string]      // why nothing is recorded any more
	save  chan saving
	stop  chan struct{}
	done  chan struct{}
}

// saving asks for a file of what is kept.
type saving struct {
	why  string
	done chan error
}

// fileName is where a record of a switch goes that is written at an instant.
func (r *recording) fileName(at time.Time) string {
	return filepath.Join(r.d.recordsIn, fmt.Sprintf("%s-%s.grec", r.u.name, at.UTC().Format("20060102T150405.000Z")))
}

// open begins the recording.
func (r *recording) open(s *config.Switch, running bool) error {
	e, pool := r.d.engine, r.d.engine.Worker(r.worker).Pool()
	h := r.d.header(r.u, s)
	epoch := &replay.Epoch{Header: h}
	err := e.Interpose(r.worker, r.node, func(now frame.Time, n frame.Node) (_ frame.Node, err error) {
		h.Start = now
		if r.rec, err = replay.NewRecorder(now, r.node, pool, r.feed); err == nil && (running || r.o.Last > 0) {
			err = r.begin(now, epoch)
		}
		r.watch() // from now on
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
		if err = os.MkdirAll(r.d.recordsIn, 0o700); err == nil {
			r.out, err = os.OpenFile(r.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		}
		if err == nil {
			r.w, err = replay.NewWriter(r.out, &h)
		}
	}
	if err != nil {
		return errors.Join(err, e.Worker(r.worker).Do(r.rec.End), e.Uninterpose(r.worker, r.node))
	}
	r.publish()
	return nil
}

// begin lets the record begin here, with an image of the switch. It runs on the
// worker, while no configuration changes.
func (r *recording) begin(now frame.Time, e *replay.Epoch) (err error) {
	if e.Image, err = r.u.sw.AppendImage(nil, replay.Kept); err == nil {
		r.rec.Begin(now, e)
	}
	return err
}

// try restores an image as a replay will: a recording that could not be replayed
// is none.
func (r *recording) try(e *replay.Epoch) error {
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
	m, err := Rebuild(h, frame.NewPool(arena))
	if err == nil {
		err = m.(*Replayed).RestoreImage(e.Image)
	}
	if err != nil {
		return fmt.Errorf("this switch can be recorded from its start only (run --record): %w", err)
	}
	return nil
}

func (r *recording) publish() {
	var s replay.WriterStats
	if r.kept != nil {
		s = r.kept.Stats()
	} else {
		s = r.w.Stats()
	}
	r.stats.Store(&s)
}

// write takes segments until the recording ends. It never holds the worker up:
// what cannot be written ends the record.
func (r *recording) write() {
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
			r.flush() // of an engine that was stopped there is nothing more
		case <-tick.C:
		}
		err := r.drain()
		if why := r.feed.Lost(); err == nil && why != "" {
			if err = errors.Join(r.drain(), r.lost(why)); err == nil {
				err = errors.New(why)
			}
		}
		if ask.done != nil {
			ask.done <- r.keepFile(ask.why) // status tells of err
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
			if why := r.flush(); why != "" && r.kept != nil && now.After(r.quiet) {
				r.quiet = now.Add(saveEvery)
				if err := errors.Join(r.drain(), r.keepFile(why)); err != nil {
					r.log.Warn("what is kept was not saved", "why", why, "error", err)
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

// lost writes why nothing follows.
func (r *recording) lost(why string) error {
	if r.w == nil {
		return nil // it stands in the status, and the log
	}
	return r.w.Lost(why)
}

// flush has the worker give away what it has, and asks whether to save it.
func (r *recording) flush() (why string) {
	_ = r.d.engine.Worker(r.worker).Do(func(now frame.Time) {
		r.rec.Flush(now)
		why = r.watch()
	})
	return why
}

// renew lets the next epoch begin, unless the configuration is being changed.
func (r *recording) renew() error {
	if !r.d.mu.TryLock() {
		return nil // next time
	}
	defer r.d.mu.Unlock()
	e := &replay.Epoch{Header: r.d.header(r.u, switchOf(r.d.resolved, r.u.name))}
	var err error
	stopped := r.d.engine.Worker(r.worker).Do(func(now frame.Time) { err = r.begin(now, e) })
	if stopped != nil {
		return stopped
	}
	if err == nil {
		err = r.try(e)
	}
	return err
}

// keepFile writes what is kept to a file.
func (r *recording) keepFile(why string) error {
	if r.kept == nil {
		return nil
	}
	if s := r.kept.Stats(); r.o.Limit > 0 && r.written+s.Bytes > r.o.Limit {
		return fmt.Errorf("the files have %d bytes, %d more would be beyond the limit of %d", r.written, s.Bytes, r.o.Limit)
	}
	now := time.Now()
	name := r.fileName(now)
	if err := os.MkdirAll(r.d.recordsIn, 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(r.kept.Save(out, why), out.Close()); err != nil {
		return errors.Join(err, os.Remove(name)) // a part of it is worth nothing to a full disk
	}
	s := r.kept.Stats()
	r.written += s.Bytes
	all := append(r.files(), Recording{Switch: r.u.name, File: name, Start: now, Stats: s, Ended: "saved: " + why})
	if n := len(all); n > keptRecords {
		all = all[n-keptRecords:]
	}
	r.saved.Store(&all)
	r.log.Info("what is kept was saved", "file", name, "why", why)
	return nil
}

func (r *recording) files() []Recording {
	if v := r.saved.Load(); v != nil {
		return append([]Recording(nil), *v...)
	}
	return nil
}

// saveNow asks for a file, or that the one there is has all.
func (r *recording) saveNow(why string) error {
	s := saving{why, make(chan error, 1)}
	select {
	case r.save <- s:
		return <-s.done
	case <-r.done:
		return nil // status tells why it ended
	}
}

// early ends a record that was to go on, and gives the node back to the engine
// without its recorder. The switch goes on.
func (r *recording) early(why string) {
	e := r.d.engine
	if e.Worker(r.worker).Do(r.rec.End) == nil {
		_ = e.Uninterpose(r.worker, r.node) // it is wrapped, by this recorder
	}
	r.log.Warn("the record ended early", "file", r.file, "why", why)
	r.end(why)
}

func (r *recording) drain() error {
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
			return fmt.Errorf("it has %d bytes, and its limit is %d", n, r.o.Limit)
		}
	}
	return nil
}

func (r *recording) end(why string) {
	if r.out != nil {
		if err := r.out.Close(); err != nil {
			why = err.Error()
		}
	}
	r.publish()
	r.kept = nil // and with it the memory
	r.ended.Store(&why)
}

// stopped is why a record ends that was to end.
const stopped = "stopped"

func (r *recording) endedEarly() bool {
	why := r.ended.Load()
	return why != nil && *why != stopped
}

// status tells of the files of what was kept, and of the recording.
func (r *recording) status() []Recording {
	s := Recording{Switch: r.u.name, File: r.file, Start: r.start, Stats: *r.stats.Load(), On: true}
	if why := r.ended.Load(); why != nil {
		s.On, s.Ended = false, *why
	}
	return append(r.files(), s)
}
