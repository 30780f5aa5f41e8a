package collect

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"gswitch/telemetry"
)

// Receiver receives reports of exporters over TCP.
type Receiver struct {
	Store   *Store
	Network *Network
	From    []netip.Prefix // networks that may send; empty: any
	Metrics *Metrics
	Log     *slog.Logger

	hello time.Duration // time for a connection to send its hello; 0: helloWait

	places *pool // connections
	hellos *pool // bytes of hellos
	bodies *pool // bytes of reports that are being read and stored
	mu     sync.Mutex
	open   map[string]*receiving // by exporter start
}

// NewReceiver returns a receiver that accepts connections from the networks in from, or
// from any if it is empty.
func NewReceiver(s *Store, n *Network, from []netip.Prefix, m *Metrics, log *slog.Logger) *Receiver {
	return &Receiver{Store: s, Network: n, From: from, Metrics: m, Log: log, open: map[string]*receiving{},
		places: newPool(mostConnections, mostConnections/2), hellos: newPool(mostHellos, mostHellos/4), bodies: newPool(mostBodies, mostBodies/4)}
}

// receiving is a connection.
type receiving struct {
	conn net.Conn
	done chan struct{}
}

// Limits of all connections together; an address may have a part of each. A connection
// that finds no room, or no memory in time, is refused: exporters keep their reports and
// try again.
const (
	mostConnections = 4096
	mostHellos      = 128 << 20 // bytes, as long as the connection is open
	mostBodies      = 256 << 20 // bytes, until they are stored

	firstBuffer = 4 << 10 // bytes, before the hello
	nextBuffer  = 64 << 10
)

const (
	// helloWait is far longer than an exporter takes to send its hello.
	helloWait = 10 * time.Second
	// bodyWait is how long a report may take to arrive once it has started, how long to
	// wait for memory, and how long an acknowledgement waits for an exporter that does
	// not read.
	bodyWait = 30 * time.Second
)

// Serve accepts connections until ctx ends.
func (r *Receiver) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if !allowed(r.From, c.RemoteAddr()) {
			r.Metrics.refused.WithLabelValues("reports").Inc()
			c.Close()
			continue
		}
		place := r.places.of(peerOf(c.RemoteAddr()))
		if !place.try(1) {
			r.places.refuse()
			r.Metrics.refused.WithLabelValues("full").Inc()
			c.Close()
			continue
		}
		all.Add(1)
		go func() {
			defer func() { place.release(); all.Done() }()
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			err := r.connection(ctx, c)
			c.Close()
			if err != nil && ctx.Err() == nil {
				r.Log.Warn("a connection of an exporter ends; it will send again what was not acknowledged", "from", c.RemoteAddr(), "error", err)
			}
		}()
	}
}

// allowed reports whether an address may send.
func allowed(from []netip.Prefix, a net.Addr) bool {
	if len(from) == 0 {
		return true
	}
	var ip netip.Addr
	switch a := a.(type) {
	case *net.TCPAddr:
		ip = a.AddrPort().Addr()
	case *net.UDPAddr:
		ip = a.AddrPort().Addr()
	case *net.IPAddr:
		ip, _ = netip.AddrFromSlice(a.IP)
	}
	for _, p := range from {
		if p.Contains(ip.Unmap()) {
			return true
		}
	}
	return false
}

// connection receives the reports of one connection.
func (r *Receiver) connection(ctx context.Context, c net.Conn) error {
	peer := peerOf(c.RemoteAddr())
	said, bodies := r.hellos.of(peer), r.bodies.of(peer)
	defer said.release()
	defer bodies.release()
	first := bufio.NewReaderSize(c, firstBuffer)
	h, err := r.introduction(ctx, c, first, said)
	if err != nil {
		r.failed(err)
		return err
	}
	leave := r.enter(token(h), c)
	defer leave()
	r.Metrics.exporters.Inc()
	defer r.Metrics.exporters.Dec()
	r.Log.Info("an exporter is connected", "exporter", h.Name, "from", c.RemoteAddr())
	b := bufio.NewReaderSize(first, nextBuffer)
	k := newKeeper(r.Store, r.Network, *h)
	last := uint64(0)
	for {
		reports, err := r.some(ctx, c, b, bodies, k.most)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			r.failed(err)
			return err
		}
		if last == 0 { // only when there is a report: it asks the store some forty times
			kept, err := k.begin(ctx)
			if err != nil {
				return err
			}
			if reports[0].Sequence > kept+1 {
				k.missed(reports[0].Sequence - 1) // they did not arrive over another connection
			}
		}
		if err := r.keep(ctx, c, k, reports, &last); err != nil {
			return err
		}
		bodies.release()
	}
}

// failed counts a connection that ended, by cause.
func (r *Receiver) failed(err error) {
	if errors.Is(err, errFull) {
		r.Metrics.refused.WithLabelValues("memory").Inc()
		return
	}
	r.Metrics.bad.Inc()
}

// introduction reads the hello of an exporter. One that does not send it soon must not
// occupy the place of another.
func (r *Receiver) introduction(ctx context.Context, c net.Conn, b *bufio.Reader, said *part) (*telemetry.Hello, error) {
	wait := cmp.Or(r.hello, helloWait)
	if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	size, err := telemetry.HelloSize(b)
	if err != nil {
		return nil, err
	}
	if err := said.take(ctx, size, wait); err != nil {
		return nil, err
	}
	if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	h, err := telemetry.ReadHello(b)
	if err != nil {
		return nil, err
	}
	return h, c.SetReadDeadline(time.Time{})
}

// keep stores reports and acknowledges them.
func (r *Receiver) keep(ctx context.Context, c net.Conn, k *keeper, reports []telemetry.Report, last *uint64) error {
	type gap struct{ before, size uint64 } // before which report
	var gaps []gap
	for i := range reports {
		n := &reports[i]
		if n.Boot != k.hello.Boot || n.Sequence <= *last {
			r.Metrics.bad.Inc()
			return fmt.Errorf("exporter %s: report %d of boot %x follows report %d of boot %x", k.hello.Name, n.Sequence, n.Boot, *last, k.hello.Boot)
		}
		if n.Sequence > *last+1 && *last > 0 {
			k.missed(n.Sequence - 1)
		}
		// Each missing report is counted once, whichever connections the reports around
		// it arrived over. Those before the first that this stream ever had may be in
		// another stream.
		if before := max(*last, k.had); n.Sequence > before+1 && before > 0 {
			gaps = append(gaps, gap{n.Sequence, n.Sequence - before - 1})
		}
		*last = n.Sequence
	}
	done, err := k.keep(ctx, reports)
	r.Metrics.received(done)
	for _, g := range gaps {
		if err == nil || g.before <= done.Last { // otherwise it is sent again
			r.Metrics.missing.Add(float64(g.size))
		}
	}
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(bodyWait)); err != nil {
		return err
	}
	_, err = c.Write(binary.BigEndian.AppendUint64(nil, *last))
	return err
}

// enter makes a connection the only one of an exporter: the previous one is broken, or
// will be soon, and must not store reports at the same time.
func (r *Receiver) enter(token string, c net.Conn) (leave func()) {
	me := &receiving{c, make(chan struct{})}
	r.mu.Lock()
	before := r.open[token]
	r.open[token] = me
	r.mu.Unlock()
	if before != nil {
		before.conn.Close()
		<-before.done
	}
	return func() {
		r.mu.Lock()
		if r.open[token] == me {
			delete(r.open, token)
		}
		r.mu.Unlock()
		close(me.done)
	}
}

const (
	// mostAtOnce is the number of bytes of reports that are stored together, in addition
	// to the last one.
	mostAtOnce = 512 << 10
	// reportCost is the memory of a report besides its bytes.
	reportCost = 128
)

// some reads the reports that are available, at least one, and charges their memory to
// held. A report that is too large for the stream has no body, and will not get one.
func (r *Receiver) some(ctx context.Context, c net.Conn, b *bufio.Reader, held *part, most int) (v []telemetry.Report, err error) {
	// A connection that holds memory does not wait for more reports.
	for len(v) == 0 || b.Buffered() >= telemetry.ReportHeader && held.n < mostAtOnce {
		size, err := telemetry.ReportSize(b)
		if err != nil {
			return nil, err
		}
		room := size + reportCost
		switch {
		case size > most && len(v) > 0:
			return v, nil
		case size > most:
			// It is skipped as it arrives.
		case len(v) == 0:
			if err := held.take(ctx, room, bodyWait); err != nil {
				return nil, err
			}
		case !held.try(room):
			return v, nil // do not wait for more memory
		}
		n, err := r.report(c, b, size, most)
		switch {
		case errors.Is(err, telemetry.ErrLarge):
			r.Metrics.reports.WithLabelValues("too-large").Inc()
			n.Kind = ""
		case err != nil:
			return nil, err
		}
		v = append(v, n)
	}
	return v, nil
}

// report reads the next report, which must arrive completely within a time.
func (r *Receiver) report(c net.Conn, b *bufio.Reader, size, most int) (telemetry.Report, error) {
	if size > most || b.Buffered() >= size {
		return telemetry.ReadReport(b, most)
	}
	if err := c.SetReadDeadline(time.Now().Add(bodyWait)); err != nil {
		return telemetry.Report{}, err
	}
	n, err := telemetry.ReadReport(b, most)
	if err != nil {
		return n, err
	}
	return n, c.SetReadDeadline(time.Time{})
}
