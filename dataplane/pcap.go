package dataplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/capture"
	"gswitch/frame"
)

const (
	pcapIn   = 1 << 20 // bytes of the ring between a file's goroutine and the worker
	pcapOut  = 2 * vector * maxFrame
	pcapPoll = time.Millisecond
	maxFrame = 65535
)

// pcapPort is the device of a Pcap port. Goroutines read and write the files; the worker
// accesses only rings.
type pcapPort struct {
	// Input; nil without an input file.
	in      *capture.Ring
	begin   frame.Time // engine time of the first frame
	first   int64      // file time of the first frame
	started bool
	max     bool
	read    chan struct{} // closed when the reader has ended; nil before it starts
	quit    chan struct{}
	whole   atomic.Bool // the reader has put everything into the ring

	// Output; nil without an output file.
	out  *capture.Tap
	sess *capture.Session
	file *os.File
}

func (e *Engine) openPcap(p *Port) error {
	d := &pcapPort{max: p.spec.MaxSpeed, quit: make(chan struct{})}
	p.pcap = d
	if p.spec.Out != "" {
		f, err := os.Create(p.spec.Out)
		if err != nil {
			return fmt.Errorf("output: %w", err)
		}
		d.file = f
		if d.sess, err = capture.NewSession(f, []string{p.spec.Name}, 1, capture.Options{RingBytes: pcapOut, Epoch: e.Epoch()}); err != nil {
			return fmt.Errorf("output %s: %w", p.spec.Out, err)
		}
		d.out = d.sess.Tap(0)
		d.sess.Run()
		go e.watchOutput(p, d)
	}
	if p.spec.In == "" {
		return e.bringUp(p, d)
	}
	f, err := os.Open(p.spec.In)
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	r, err := capture.NewReader(f)
	if err != nil {
		return fmt.Errorf("input %s: %w", p.spec.In, errors.Join(err, f.Close()))
	}
	d.in = capture.NewRing(pcapIn)
	if err := e.bringUp(p, d); err != nil {
		return errors.Join(err, f.Close())
	}
	d.read = make(chan struct{})
	go func() {
		defer close(d.read)
		defer f.Close()
		if err := d.feed(r, p.worker); err != nil {
			e.log.Error("port input ends early", "port", p.spec.Name, "file", p.spec.In, "err", err)
		}
		d.whole.Store(true)
		p.worker.sleep.wake()
	}()
	return nil
}

// watchOutput takes a port down whose file cannot be written any more, for instance
// because the disk is full: frames would otherwise wait there forever.
func (e *Engine) watchOutput(p *Port, d *pcapPort) {
	select {
	case <-d.quit:
		return
	case <-d.sess.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.pcap != d {
		return // it was removed
	}
	err := d.sess.Close()
	d.sess = nil // its error has been reported here
	e.log.Error("port output ends: the port is down", "port", p.spec.Name, "file", p.spec.Out, "err", err)
	e.takeDown(p, fmt.Sprintf("%s: %v", p.spec.Out, err))
}

// feed moves the file into the ring, as fast as the worker takes it.
func (d *pcapPort) feed(r *capture.Reader, w *Worker) error {
	for {
		rec, data, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if l := r.Interfaces()[rec.Iface].Link; l != capture.LinkEthernet {
			return fmt.Errorf("link type %d: only Ethernet frames (link type %d) can be received", l, capture.LinkEthernet)
		}
		if len(data) == 0 || len(data) > maxFrame {
			return fmt.Errorf("frame of %d bytes: from 1 to %d are possible", len(data), maxFrame)
		}
		for !d.in.Put(rec, data) {
			w.sleep.wake()
			select {
			case <-d.quit:
				return nil
			case <-time.After(pcapPoll):
			}
		}
		w.sleep.wake()
	}
}

// ended reports whether every frame of the input file has been received.
func (d *pcapPort) ended() bool {
	return d != nil && d.in != nil && d.whole.Load() && d.in.Empty()
}

// closePcap takes the port down and completes its files.
func (e *Engine) closePcap(p *Port) error {
	e.takeDown(p, "removed")
	d := p.pcap
	if d == nil {
		return nil
	}
	close(d.quit)
	if d.read != nil {
		<-d.read
	}
	var err error
	if d.sess != nil {
		err = d.sess.Close()
	}
	if d.file != nil {
		err = errors.Join(err, d.file.Close())
	}
	p.pcap = nil
	return err
}

// due returns when a record may be received.
func (d *pcapPort) due(rec capture.Record) frame.Time {
	if d.max {
		return 0
	}
	return d.begin + frame.Time(rec.Time-d.first)
}

func (d *pcapPort) receive(now frame.Time, p *frame.Pool, out []frame.Ref) int {
	if d.in == nil {
		return 0
	}
	n := 0
	for n < len(out) {
		rec, data, ok := d.in.Next()
		if !ok {
			break
		}
		if !d.started {
			d.started, d.begin, d.first = true, now, rec.Time
		}
		if d.due(rec) > now {
			break
		}
		r := load(p, data)
		if r == frame.Nil {
			break // no free chunk: try again
		}
		p.Meta(r).Wire = max(rec.Wire, uint32(len(data)))
		out[n] = r
		n++
		d.in.Release()
	}
	return n
}

// load allocates a frame with the content b, in several chunks if needed. Like the
// kernel, it leaves headroom only in the first chunk.
func load(p *frame.Pool, b []byte) frame.Ref {
	if r := p.New(b); r != frame.Nil || len(b) <= p.Room() {
		return r
	}
	first, last := frame.Nil, frame.Nil
	for len(b) > 0 {
		n := min(len(b), p.Room())
		r := p.New(b[:n])
		if r == frame.Nil {
			p.Free(first)
			return frame.Nil
		}
		if first == frame.Nil {
			first = r
		} else {
			m := p.Meta(last)
			m.Next = r
			m.Flags |= frame.Chained
		}
		last, b = r, b[n:]
	}
	return first
}

func (d *pcapPort) room(depth int) int {
	if d.out == nil || d.out.Room(vector) {
		return depth
	}
	// A slow disk loses nothing: frames queue in the node.
	return 0
}

func (d *pcapPort) transmit(now frame.Time, p *frame.Pool, v []frame.Ref) int {
	if d.out != nil {
		d.out.Frames(now, p.Arena, 0, capture.DirOut, v)
	}
	for _, r := range v {
		p.Free(r)
	}
	return len(v)
}

func (d *pcapPort) wake(now frame.Time) frame.Time {
	if d.in == nil {
		return frame.Never
	}
	rec, _, ok := d.in.Next()
	switch {
	case !ok:
		return frame.Never // the reader wakes the worker
	case !d.started:
		return now
	}
	return d.due(rec)
}

func (d *pcapPort) note()                                   {}
func (d *pcapPort) complete(*frame.Pool)                    {}
func (d *pcapPort) fill(*frame.Pool)                        {}
func (d *pcapPort) kick() bool                              { return false }
func (d *pcapPort) release(*frame.Pool)                     {}
func (d *pcapPort) eachHeld(*frame.Arena, func(frame.Ref))  {}
func (d *pcapPort) pollFDs(fds []unix.PollFd) []unix.PollFd { return fds }
