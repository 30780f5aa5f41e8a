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
	From    []netip.Prefix // who may send; empty: all may
	Metrics *Metrics
	Log     *slog.Logger

	hello time.Duration // for which a connection may not say who it is; 0: helloWait

	mu   sync.Mutex
	open map[string]*receiving // by the start of an exporter
}

// receiving is a connection.
type receiving struct {
	conn net.Conn
	done chan struct{}
}

// mostConnections bounds the memory of connections. What is beyond is refused:
// exporters try again.
const mostConnections = 4096

// helloWait is far longer than an exporter takes to say who it is.
const helloWait = 10 * time.Second

// Serve takes connections until ctx ends.
func (r *Receiver) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	r.open = map[string]*receiving{}
	room := make(chan struct{}, mostConnections)
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
		select {
		case room <- struct{}{}:
		default:
			r.Metrics.refused.WithLabelValues("full").Inc()
			c.Close()
			continue
		}
		all.Add(1)
		go func() {
			defer func() { <-room; all.Done() }()
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
	b := bufio.NewReaderSize(c, 64<<10)
	// Whoever does not say soon who it is holds the place of an exporter.
	if err := c.SetReadDeadline(time.Now().Add(cmp.Or(r.hello, helloWait))); err != nil {
		return err
	}
	h, err := telemetry.ReadHello(b)
	if err == nil {
		err = c.SetReadDeadline(time.Time{})
	}
	if err != nil {
		r.Metrics.bad.Inc()
		return err
	}
	leave := r.enter(token(h), c)
	defer leave()
	r.Metrics.exporters.Inc()
	defer r.Metrics.exporters.Dec()
	r.Log.Info("an exporter is connected", "exporter", h.Name, "from", c.RemoteAddr())
	k := newKeeper(r.Store, r.Network, *h)
	last := uint64(0)
	for {
		reports, err := r.some(b, k.most)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			r.Metrics.bad.Inc()
			return err
		}
		if err := r.keep(ctx, c, k, reports, &last); err != nil {
			return err
		}
	}
}

// keep stores reports and acknowledges them.
func (r *Receiver) keep(ctx context.Context, c net.Conn, k *keeper, reports []telemetry.Report, last *uint64) error {
	for i := range reports {
		n := &reports[i]
		if n.Boot != k.hello.Boot || n.Sequence <= *last {
			r.Metrics.bad.Inc()
			return fmt.Errorf("exporter %s: report %d of boot %x follows report %d of boot %x", k.hello.Name, n.Sequence, n.Boot, *last, k.hello.Boot)
		}
		if *last > 0 {
			r.Metrics.missing.Add(float64(n.Sequence - *last - 1))
		}
		*last = n.Sequence
	}
	done, err := k.keep(ctx, reports)
	r.Metrics.received(done)
	if err != nil {
		return err
	}
	_, err = c.Write(binary.BigEndian.AppendUint64(nil, *last))
	return err
}

// enter makes a connection the only one of an exporter: the one before is dead, or
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

// mostAtOnce is how many bytes of reports are stored together, beside the last one.
const mostAtOnce = 512 << 10

// some reads what there is of reports, at least one. One that is too large for the
// stream has no body, and nobody will ever have it.
func (r *Receiver) some(b *bufio.Reader, most int) (v []telemetry.Report, err error) {
	for size := 0; len(v) == 0 || b.Buffered() > 0 && size < mostAtOnce; {
		n, err := telemetry.ReadReport(b, most)
		switch {
		case errors.Is(err, telemetry.ErrLarge):
			r.Metrics.reports.WithLabelValues("too-large").Inc()
			n.Kind = ""
		case err != nil:
			return nil, err
		}
		size += n.Size()
		v = append(v, n)
	}
	return v, nil
}
