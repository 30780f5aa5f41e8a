package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gswitch/metrics"
	"gswitch/section"
)

// Limits of what the control plane holds for its clients. They are far above the needs of
// people, scripts and Prometheus.
const (
	maxConnections = 128                 // of a listener; more are closed immediately
	maxRequests    = 64                  // in progress on one connection (HTTP/2)
	maxHeaders     = 16 << 10            // bytes
	maxRequest     = 1 << 20             // bytes
	maxDocument    = section.MaxDocument // bytes of a document to apply

	headerTimeout = 10 * time.Second // for the header of a request
	bodyTimeout   = 60 * time.Second // for the rest of it
	idleTimeout   = 60 * time.Second // between two requests
	writeTimeout  = 30 * time.Second // for a peer that does not read (HTTP/2)

	stopTimeout = 500 * time.Millisecond // for calls in progress when the daemon ends, within a second in total
)

// Handler serves an API, and /metrics from the results of take, /healthz and /readyz.
// usage explains how to call the API.
func Handler(usage string, take func() *metrics.Snapshot, serve func(...connect.HandlerOption) (string, http.Handler)) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(Endpoint(usage, serve))
	mux.Handle("GET /metrics", Metrics(metrics.NewRegistry(take)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if missing := take().Missing(); missing != nil {
			http.Error(w, strings.Join(missing, "\n"), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, usage) })
	return mux
}

// Metrics serves the metrics of a registry, at most four requests at once. A peer that
// does not read its answer occupies one no longer than a peer of HTTP/2 could.
func Metrics(r *prometheus.Registry) http.Handler {
	return taken(promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4}), writeTimeout)
}

// taken bounds how long the peers of a handler may take to read their answers. After that
// the connection is closed. This affects no stream of the API, since those never share a
// connection with a request for metrics.
func taken(next http.Handler, wait time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait))
		if err != nil && !errors.Is(err, http.ErrNotSupported) { // from what is not a connection
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Serve answers on the listeners until ctx ends, and then cuts off streams.
func (d *Daemon) Serve(ctx context.Context, listeners []net.Listener) error {
	return Serve(ctx, d.Handler(), listeners, &d.clients)
}

// Serve makes a handler answer on listeners until ctx ends. A TCP listener of Listen
// rejects what it does not open. Clients are counted in clients.
func Serve(ctx context.Context, handler http.Handler, listeners []net.Listener, clients *Clients) error {
	return serve(ctx, handler, listeners, clients, patient)
}

// limits bounds how long a peer may take or be silent.
type limits struct{ header, body, idle time.Duration }

var patient = limits{headerTimeout, bodyTimeout, idleTimeout}

func serve(ctx context.Context, handler http.Handler, listeners []net.Listener, clients *Clients, wait limits) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, len(listeners))
	handler = clients.bounded(handler, wait.body)
	var servers []*http.Server
	for _, l := range listeners {
		bound, srv := clients.limit(l), newServer(ctx, handler, wait)
		servers = append(servers, srv)
		if t, ok := l.(*tcpListener); ok {
			srv.Handler, srv.TLSConfig = t.guard.protect(srv.Handler), t.secure
		}
		go func() {
			if srv.TLSConfig != nil {
				failed <- srv.ServeTLS(bound, "", "")
			} else {
				failed <- srv.Serve(bound)
			}
		}()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	cancel()
	stop, done := context.WithTimeout(context.Background(), stopTimeout)
	defer done()
	for _, srv := range servers {
		if serr := srv.Shutdown(stop); serr != nil {
			err = errors.Join(err, srv.Close())
		}
	}
	return err
}

func newServer(ctx context.Context, h http.Handler, wait limits) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true) // gRPC without TLS
	return &http.Server{Handler: h, Protocols: protocols, MaxHeaderBytes: maxHeaders, ReadHeaderTimeout: wait.header, IdleTimeout: wait.idle,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: maxRequests, WriteByteTimeout: writeTimeout},
		BaseContext: func(net.Listener) context.Context { return ctx }}
}

// bounded limits the body of a request, in bytes and in time. The answer may take as long
// as the client reads. Documents are read one at a time, since they may be large.
func (c *Clients) bounded(next http.Handler, wait time.Duration) http.Handler {
	documents := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		defer c.requests.Add(-1)
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		most := int64(maxRequest)
		if strings.HasSuffix(r.URL.Path, "/Apply") {
			most = maxDocument
			c.documents.Add(1)
			defer c.documents.Add(-1)
			select {
			case documents <- struct{}{}:
				defer func() { <-documents }()
			case <-r.Context().Done():
				return
			}
		}
		control := http.NewResponseController(w)
		if err := control.SetReadDeadline(time.Now().Add(wait)); err != nil {
			http.Error(w, "cannot bound the time of a request: "+err.Error(), http.StatusInternalServerError)
			return
		}
		r.Body = &timedBody{http.MaxBytesReader(w, r.Body, most), control}
		next.ServeHTTP(w, r)
	})
}

// timedBody is a body that must be complete before a deadline.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		// It is complete: the answer may be a stream.
		if cerr := b.control.SetReadDeadline(time.Time{}); cerr != nil {
			return n, cerr
		}
	}
	return n, err
}

// limited closes connections beyond maxConnections immediately: otherwise they would wait
// for others that may never end.
type limited struct {
	net.Listener
	mu      sync.Mutex
	open    int
	refused uint64
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		room := l.open < maxConnections
		if room {
			l.open++
		} else {
			l.refused++
		}
		l.mu.Unlock()
		if room {
			return &counted{Conn: c, of: l}, nil
		}
		c.Close()
	}
}

// counted is a connection of a limited listener.
type counted struct {
	net.Conn
	of   *limited
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() {
		c.of.mu.Lock()
		c.of.open--
		c.of.mu.Unlock()
	})
	return c.Conn.Close()
}
