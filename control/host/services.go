package host

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gswitch/config"
	"gswitch/tcp/endpoint"
	"gswitch/units"
)

// services are the TCP services of a host (tcp.services).
type services struct {
	mu   sync.Mutex
	open map[endpoint.Service]*listener
}

// streamsOf returns the section tcp of a host, nil if it has none.
func streamsOf(h *config.Host) *endpoint.Section {
	s, _ := h.Features.Get(endpoint.Name).(*endpoint.Section)
	return s
}

// serveStreams updates the services of a host to match its document.
func (u *unit) serveStreams(h *config.Host) (err error) {
	x := &u.services
	x.mu.Lock()
	defer x.mu.Unlock()
	var want []endpoint.Service
	if s := streamsOf(h); s != nil {
		want = s.Services
	}
	for s, l := range x.open {
		if !slices.Contains(want, s) {
			delete(x.open, s)
			_ = l.Close() // without the section there are no listeners
		}
	}
	for _, s := range want {
		if x.open[s] != nil {
			continue
		}
		l, wrong := u.listen(uint16(s.Port))
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("host %s: service %s at port %d: %w", u.name, s.Kind, s.Port, wrong))
			continue
		}
		if x.open == nil {
			x.open = map[endpoint.Service]*listener{}
		}
		x.open[s] = l
		go serveOn(l, s.Kind, u.log)
	}
	return err
}

// headTime is how long to wait for a request, and how long to keep an idle connection.
const headTime = 30 * time.Second

// serveOn serves a port until its listener is closed.
func serveOn(l *listener, kind string, log *slog.Logger) {
	if kind == "http" {
		s := http.Server{Handler: http.HandlerFunc(page), ReadHeaderTimeout: headTime, IdleTimeout: headTime, MaxHeaderBytes: 64 << 10,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
		_ = s.Serve(l) // returns when the listener closes
		return
	}
	serve := func(c net.Conn) { answer(c, kind) }
	if kind == "iperf3" {
		serve = (&iperf{timeout: stepTimeout}).serve
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go serve(c)
	}
}

// piece is the number of bytes that services read and write at once.
const piece = 256 << 10

// answer serves a connection of echo or discard.
func answer(c net.Conn, kind string) {
	defer c.Close()
	var to io.Writer = io.Discard
	if kind == "echo" {
		to = c
	}
	// An error has ended the connection.
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{c}, make([]byte, piece))
}

// page answers a request: with the requested number of bytes, or with the number of bytes
// received.
func page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	switch r.Method {
	case http.MethodPut, http.MethodPost:
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, make([]byte, piece))
		if err != nil {
			return // the connection has ended
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "%d bytes\n", n)
		return
	case http.MethodGet, http.MethodHead:
	default:
		http.Error(w, "GET /SIZE, PUT or POST", http.StatusMethodNotAllowed)
		return
	}
	n, err := units.Bytes.Whole(strings.TrimPrefix(r.URL.Path, "/"), 1<<40)
	if err != nil {
		http.Error(w, "GET /SIZE gives so many bytes, as in /100MB; PUT and POST take what comes", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Length", strconv.FormatUint(uint64(n), 10))
	if r.Method == http.MethodHead {
		return
	}
	b := make([]byte, piece)
	for i := range b {
		b[i] = byte('a' + i%26)
	}
	for left := uint64(n); left > 0; {
		k, err := w.Write(b[:min(left, piece)])
		if err != nil {
			return
		}
		left -= uint64(k)
	}
}
