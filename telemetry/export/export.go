// Package export brings the reports of a daemon to a collector: it keeps them until
// the collector has acknowledged them, sends them again over another connection,
// and counts what becomes of each.
package export

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"gswitch/telemetry"
)

// Counts is what became of reports: Made is the sum of the others.
type Counts struct {
	Made         uint64 // by the nodes
	Acknowledged uint64 // the collector keeps them
	Lost         uint64 // there was no memory for them
	Waiting      uint64 // not acknowledged yet
	Bytes        uint64 // of those that wait
	Connects     uint64 // connections that were made
	Connected    bool
}

// Origin is what makes reports.
type Origin struct {
	Node uint16
	Kind string
}

// Status is where reports go, and how far they are.
type Status struct {
	Counts
	Name     string // of the exporter
	To       string
	Memory   uint64            // bytes that may wait
	Sequence uint64            // of the last report that was made
	Origins  map[Origin]uint64 // reports that each made
}

// Exporter keeps reports and sends them. Its methods may be called from any
// goroutine.
type Exporter struct {
	log *slog.Logger

	mu     sync.Mutex
	wake   *sync.Cond // there is something to send, or to leave
	to     string
	memory uint64
	hello  telemetry.Hello
	queue  []parcel // not acknowledged, by sequence
	sent   int      // of queue, over the connection that is there
	conn   net.Conn
	last   uint64 // sequence
	made   map[Origin]uint64
	counts Counts
	closed bool
	done   chan struct{}
}

// parcel is a report in its wire form.
type parcel struct {
	sequence uint64
	wire     []byte
}

// New starts an exporter to an address, which keeps as many bytes of reports.
func New(log *slog.Logger, to string, memory uint64, hello telemetry.Hello) *Exporter {
	e := &Exporter{log: log, to: to, memory: memory, hello: hello, made: map[Origin]uint64{}, done: make(chan struct{})}
	e.wake = sync.NewCond(&e.mu)
	go e.run()
	return e
}

// Add takes a report, whose Boot and Sequence it sets. It keeps no part of it.
func (e *Exporter) Add(r telemetry.Report) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	e.counts.Made++
	e.made[Origin{r.Node, r.Kind}]++
	r.Boot, r.Sequence = e.hello.Boot, e.last
	size := r.Size()
	// What waits was perhaps sent: only what never was can be called lost.
	if e.closed || e.counts.Bytes+uint64(size) > e.memory {
		e.counts.Lost++
		return
	}
	e.queue = append(e.queue, parcel{e.last, r.Append(make([]byte, 0, size))})
	e.counts.Waiting++
	e.counts.Bytes += uint64(size)
	e.wake.Signal()
}

// Change has reports sent elsewhere, or changes what is said of the nodes.
func (e *Exporter) Change(to string, memory uint64, hello telemetry.Hello) {
	e.mu.Lock()
	defer e.mu.Unlock()
	hello.Boot = e.hello.Boot
	same := to == e.to && hello.Name == e.hello.Name && slices.Equal(hello.Nodes, e.hello.Nodes)
	e.to, e.memory, e.hello = to, memory, hello
	if !same && e.conn != nil {
		e.conn.Close() // the next one says it
	}
}

// Counts returns what became of reports so far.
func (e *Exporter) Counts() Counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counts
}

// Status returns where reports go, and how far they are.
func (e *Exporter) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Status{Counts: e.counts, Name: e.hello.Name, To: e.to, Memory: e.memory, Sequence: e.last, Origins: maps.Clone(e.made)}
}

// Close ends the exporter, after what waits has been acknowledged, if that takes no
// longer than patience.
func (e *Exporter) Close(patience time.Duration) {
	late := time.AfterFunc(patience, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.counts.Lost += e.counts.Waiting
		e.counts.Waiting, e.counts.Bytes, e.queue = 0, 0, nil
		if e.conn != nil {
			e.conn.Close()
		}
		e.wake.Broadcast()
	})
	defer late.Stop()
	e.mu.Lock()
	e.closed = true
	e.wake.Broadcast()
	e.mu.Unlock()
	<-e.done
}

// Waits between two connections that failed.
const (
	firstWait = 20 * time.Millisecond
	lastWait  = 2 * time.Second
)

// run keeps a connection while there is something to send.
func (e *Exporter) run() {
	defer close(e.done)
	wait := firstWait
	logged := ""
	for e.pending() {
		before := e.Counts().Acknowledged
		err := e.connection()
		if err == nil {
			continue
		}
		if text := err.Error(); text != logged {
			e.log.Warn("reports cannot be sent; they are kept, and it is tried again", "to", e.address(), "error", err)
			logged = text
		}
		if e.Counts().Acknowledged > before {
			wait, logged = firstWait, ""
		}
		time.Sleep(wait)
		wait = min(2*wait, lastWait)
	}
}

// pending waits for something to send; false: there will be nothing.
func (e *Exporter) pending() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) == 0 && !e.closed {
		e.wake.Wait()
	}
	return len(e.queue) > 0
}

func (e *Exporter) address() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.to
}

// connection sends over one connection until it ends, or the exporter does.
func (e *Exporter) connection() error {
	c, err := net.DialTimeout("tcp", e.address(), 5*time.Second)
	if err != nil {
		return err
	}
	e.mu.Lock()
	hello := e.hello
	e.conn, e.sent = c, 0
	e.counts.Connected = true
	e.counts.Connects++
	e.mu.Unlock()
	read := make(chan error, 1)
	go func() { read <- e.acknowledged(c) }()
	werr := e.send(c, &hello)
	c.Close()
	rerr := <-read
	e.mu.Lock()
	e.conn, e.counts.Connected = nil, false
	over := e.closed && len(e.queue) == 0
	e.mu.Unlock()
	if over {
		return nil
	}
	return cmp.Or(rerr, werr)
}

// send writes reports as they come. It returns when the connection is gone, or all
// of a closed exporter is acknowledged.
func (e *Exporter) send(c net.Conn, hello *telemetry.Hello) error {
	w := bufio.NewWriterSize(c, 256<<10)
	if err := hello.Write(w); err != nil {
		return err
	}
	for {
		v, ok := e.next(c)
		if !ok {
			return w.Flush()
		}
		for _, p := range v {
			if _, err := w.Write(p.wire); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

// next waits for reports that were not sent over this connection.
func (e *Exporter) next(c net.Conn) ([]parcel, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		switch {
		case e.conn != c, e.closed && len(e.queue) == 0:
			return nil, false
		case e.sent < len(e.queue):
			v := slices.Clone(e.queue[e.sent:])
			e.sent = len(e.queue)
			return v, true
		}
		e.wake.Wait()
	}
}

// acknowledged reads what the collector keeps, until the connection ends.
func (e *Exporter) acknowledged(c net.Conn) error {
	defer func() {
		e.mu.Lock()
		if e.conn == c {
			e.conn = nil
		}
		e.wake.Broadcast()
		e.mu.Unlock()
		c.Close()
	}()
	var b [8]byte
	for {
		if _, err := io.ReadFull(c, b[:]); err != nil {
			return err
		}
		e.discard(binary.BigEndian.Uint64(b[:]))
	}
}

// discard takes the reports up to a sequence number out of the queue.
func (e *Exporter) discard(upTo uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for n < e.sent && e.queue[n].sequence <= upTo {
		e.counts.Bytes -= uint64(len(e.queue[n].wire))
		n++
	}
	clear(e.queue[:n])
	e.queue = e.queue[n:]
	e.sent -= n
	e.counts.Waiting -= uint64(n)
	e.counts.Acknowledged += uint64(n)
	e.wake.Broadcast()
}
