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

// Receiver takes reports of exporters over TCP.
type Receiver struct {
	Store   *Store
	Network *Network
	From    []netip.Prefix // networks that may send; empty: all
	Metrics *Metrics
	Log     *slog.Logger

	hello time.Duration // for which a connection may send no hello; 0: helloWait

	places *pool // connections
	hellos *pool // bytes of the hellos
	bodies *pool // bytes of the reports that are being read and stored
	mu     sync.Mutex
	open   map[string]*receiving // by the start of an exporter
}

// NewReceiver returns one that takes from those addresses, all if there are none.
func NewReceiver(s *Store, n *Network, from []netip.Prefix, m *Metrics, log *slog.Logger) *Receiver {
	return &Receiver{Store: s, Network: n, From: from, Metrics: m, Log: log, open: map[string]*receiving{},
		places: newPool(mostConnections, mostConnections/2), hellos: newPool(mostHellos, mostHellos/4), bodies: newPool(mostBodies, mostBodies/4)}
}

// receiving is a connection.
type receiving struct {
	conn net.Conn
	done chan struct{}
}

// What all connections have together at most, and one address a part of it. Who finds
// no place, or no memory in time, is refused: exporters keep their reports and try
// again.
const (
	mostConnections = 4096
	mostHellos      = 128 << 20 // bytes, as long as a connection is open
	mostBodies      = 256 << 20 // bytes, until they are stored

	firstBuffer = 4 << 10 // bytes, before the hello
	nextBuffer  = 64 << 10
)

const (
	// helloWait is far longer than an exporter takes to send its hello.
	helloWait = 10 * time.Second
	// bodyWait is for how long a report that has begun may come, how long one waits for
	// memory, and how long an acknowledgement waits for an exporter that does not read.
	bodyWait = 30 * time.Second
)

// Serve takes connections until ctx ends.
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

// allowed reports whether an address is one of those that may send.
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

// connection takes the reports of one connection.
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
		if last == 0 { // not before there is a report: it asks the store some forty times
			kept, err := k.begin(ctx)
			if err != nil {
				return err
			}
			if reports[0].Sequence > kept+1 {
				k.missed(reports[0].Sequence - 1) // they did not come over another connection
			}
		}
		if err := r.keep(ctx, c, k, reports, &last); err != nil {
			return err
		}
		bodies.release()
	}
}

// failed counts a connection that ends, by whose fault that is.
func (r *Receiver) failed(err error) {
	if errors.Is(err, errFull) {
		r.Metrics.refused.WithLabelValues("memory").Inc()
		return
	}
	r.Metrics.bad.Inc()
}

// introduction reads the hello of an exporter. One that does not send it soon holds the place
// of another one.
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
	type gap struct{ before, size uint64 } // which report
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
		// Each is counted once, whichever connections the reports around it came over. Those before
		// the first that this stream ever had may be in another one.
		if before := max(*last, k.had); n.Sequence > before+1 && before > 0 {
			gaps = append(gaps, gap{n.Sequence, n.Sequence - before - 1})
		}
		*last = n.Sequence
	}
	done, err := k.keep(ctx, reports)
	r.Metrics.received(done)
	for _, g := range gaps {
		if err == nil || g.before <= done.Last { // else it comes again
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

// enter makes a connection the only one of an exporter: the one before is broken, or
// will be in a moment, and must not store reports beside it.
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
	// mostAtOnce is how many bytes of reports are stored together, beside the last one.
	mostAtOnce = 512 << 10
	// reportCost is what a report takes beside its bytes.
	reportCost = 128
)

// some reads what there is of reports, at least one, for which it holds memory. One
// that is too large for the stream has no body, and will not get one.
func (r *Receiver) some(ctx context.Context, c net.Conn, b *bufio.Reader, held *part, most int) (v []telemetry.Report, err error) {
	// Who holds memory waits for no more than is there.
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
			// It is left out as it comes.
		case len(v) == 0:
			if err := held.take(ctx, room, bodyWait); err != nil {
				return nil, err
			}
		case !held.try(room):
			return v, nil // one that has some waits for no more
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

// report reads the next report, of which all must come soon.
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
