package capture

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Options of a Session. The zero value captures whole frames without filter.
type Options struct {
	Filter    *Filter   // nil selects every frame
	SnapLen   int       // bytes kept of a frame; 0 is MaxSnapLen
	RingBytes int       // memory between a worker and the writer; 0 is 4 MiB
	Epoch     time.Time // the instant that is frame.Time zero
	// Zero is that instant in nanoseconds since 1970 by the clock of an interface, asked for
	// each frame, by the goroutine that writes; nil: that of Epoch.
	Zero    func(iface uint32, at int64) int64
	Comment string // section comment
}

// MaxSnapLen is the longest frame that a tap keeps whole.
const MaxSnapLen = 65535

// Stats of a Session: frames written to the stream, and frames selected by
// the filter that found the ring full.
type Stats struct{ Captured, Dropped uint64 }

// Session merges the taps of several workers by time into one pcapng stream.
// One goroutine writes; Close has it empty the rings and end.
type Session struct {
	opts Options
	w    *Writer
	taps []*Tap

	stop chan struct{}
	done chan struct{}
	once sync.Once
	err  error // set before done closes
}

// pollEvery is how often the writer looks into empty rings. The worker does
// not signal it: that would be a system call on the forwarding path.
const pollEvery = 2 * time.Millisecond

// NewSession prepares a capture of the named interfaces to w, with one tap
// for each of n workers. Interface i of the stream has the name ifaces[i].
// Nothing is written before Run, which is called once the taps are installed:
// who sees the stream begin may rely on it that every frame from then on is
// captured or counted as dropped.
func NewSession(w io.Writer, ifaces []string, n int, opts Options) (*Session, error) {
	if opts.SnapLen <= 0 || opts.SnapLen > MaxSnapLen {
		opts.SnapLen = MaxSnapLen
	}
	if opts.RingBytes <= 0 {
		opts.RingBytes = 4 << 20
	}
	// A ring that cannot hold one full frame would capture none of them.
	opts.RingBytes = max(opts.RingBytes, 4*(opts.SnapLen+recordHeader))
	s := &Session{opts: opts, w: NewWriter(w), stop: make(chan struct{}), done: make(chan struct{})}
	if err := s.w.Section(opts.Comment); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	for _, name := range ifaces {
		if _, err := s.w.Interface(name, "", opts.SnapLen); err != nil {
			return nil, fmt.Errorf("capture: %w", err)
		}
	}
	for range n {
		s.taps = append(s.taps, &Tap{
			ring:    NewRing(opts.RingBytes),
			filter:  opts.Filter,
			snap:    opts.SnapLen,
			scratch: make([]byte, 0, opts.SnapLen),
		})
	}
	return s, nil
}

// Tap returns the tap of worker i.
func (s *Session) Tap(i int) *Tap { return s.taps[i] }

// Run starts the goroutine that writes.
func (s *Session) Run() { go s.run() }

// Close ends the session, after the taps were removed from the workers: what
// is in the rings is written. It returns the first error of the writer.
func (s *Session) Close() error {
	s.once.Do(func() { close(s.stop) })
	<-s.done
	return s.err
}

// Done is closed when the session ended, by Close or because writing failed.
func (s *Session) Done() <-chan struct{} { return s.done }

// Stats may be called at any time.
func (s *Session) Stats() Stats {
	var st Stats
	for _, t := range s.taps {
		st.Captured += t.captured.Load()
		st.Dropped += t.dropped.Load()
	}
	return st
}

func (s *Session) run() {
	defer close(s.done)
	if err := s.w.Flush(); err != nil {
		s.err = fmt.Errorf("capture: %w", err)
		return
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		// Asked before draining: what came before the end is still written.
		ending := false
		select {
		case <-s.stop:
			ending = true
		default:
		}
		n, err := s.drain()
		if err == nil && n > 0 {
			err = s.w.Flush()
		}
		if err != nil {
			s.err = fmt.Errorf("capture: %w", err)
			return
		}
		if ending {
			s.err = s.finish()
			return
		}
		select {
		case <-s.stop:
		case <-tick.C:
		}
	}
}

// drain writes what is in the rings, the oldest record first.
func (s *Session) drain() (n int, err error) {
	for ; ; n++ {
		var oldest *Tap
		var rec Record
		var data []byte
		for _, t := range s.taps {
			if r, d, ok := t.ring.Next(); ok && (oldest == nil || r.Time < rec.Time) {
				oldest, rec, data = t, r, d
			}
		}
		if oldest == nil {
			return n, nil
		}
		rec.Time += s.zero(rec.Iface, rec.Time)
		if err := s.w.Packet(rec, data); err != nil {
			return n, err
		}
		oldest.ring.Release()
	}
}

// zero is what stands for frame.Time zero in stamps of an interface at an instant.
func (s *Session) zero(iface uint32, at int64) int64 {
	if s.opts.Zero == nil {
		return s.opts.Epoch.UnixNano()
	}
	return s.opts.Zero(iface, at)
}

// finish writes the interface statistics, so that the loss of the capture
// itself stands in the file.
func (s *Session) finish() error {
	st := s.Stats()
	if err := s.w.Statistics(0, time.Now().UnixNano(), st.Captured+st.Dropped, st.Dropped); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}
