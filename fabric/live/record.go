package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gswitch/frame"
	"gswitch/replay"
)

// Record says where a run is recorded.
type Record struct {
	File   string
	Must   bool          // fail rather than run without a record
	Header replay.Header // without the fields that the engine fills in
}

// tape is the recording of a run.
type tape struct {
	*replay.NetworkRecorder
	feed *replay.Feed
	out  *os.File
	w    *replay.Writer
	stop chan struct{}
	done chan error
}

const (
	// tapeSegments is how many segments the recorder may be ahead of the disk.
	tapeSegments = 64
	// tapePoll is how often the writer looks for segments.
	tapePoll = 20 * time.Millisecond
)

// ErrSeveral reports that a run cannot be recorded because several workers step its
// nodes.
var ErrSeveral = errors.New("several workers step the nodes of this run, and what they see of each other is not recorded: run it with --workers 1")

// record starts recording, before any node is added.
func (e *Engine) record(r *Record) error {
	if len(e.ctl) != 1 || e.cfg.Part != nil {
		return ErrSeveral
	}
	pool := e.dp.Worker(0).Pool()
	h := r.Header
	h.Chunk, h.Chunks, h.Headroom, h.Epoch = pool.ChunkSize(), pool.Chunks(), pool.Headroom(), e.dp.Epoch().UnixNano()
	t := &tape{feed: replay.NewFeed(tapeSegments, h.Chunk), stop: make(chan struct{}), done: make(chan error, 1)}
	var err error
	if t.NetworkRecorder, err = replay.NewNetworkRecorder(0, pool, t.feed); err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(r.File), 0o777); err == nil {
		t.out, err = fresh(r.File)
	}
	if err == nil {
		if t.w, err = replay.NewWriter(t.out, &h); err != nil {
			t.out.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("the record of the run: %w", err)
	}
	e.tape, e.ctl[0].tape = t, t
	go t.write()
	return nil
}

// fresh creates a file that only its owner can read. It removes an existing file first,
// whose mode would otherwise remain.
func fresh(name string) (*os.File, error) {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// write writes segments until the recording ends. A write error ends the record, but not
// the run.
func (t *tape) write() {
	tick := time.NewTicker(tapePoll)
	defer tick.Stop()
	var err error
	for stopping := false; !stopping; {
		select {
		case <-t.stop:
			stopping = true
		case <-tick.C:
		}
		for s := t.feed.Next(); s != nil && err == nil; s = t.feed.Next() {
			if err = t.w.Write(s); err == nil {
				t.feed.Return(s)
			}
		}
	}
	if why := t.feed.Lost(); err == nil && why != "" {
		err = errors.Join(errors.New(why), t.w.Lost(why))
	}
	t.done <- errors.Join(err, t.out.Close())
}

// end ends the recording after the workers have stopped. It returns why the record is
// incomplete.
func (t *tape) end(now frame.Time) error {
	t.End(now)
	close(t.stop)
	return <-t.done
}

// Recorded returns nil if the whole run is in its record, and otherwise why it is not.
// Call it after Halt.
func (e *Engine) Recorded() error { return e.untaped }
