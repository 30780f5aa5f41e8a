package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"gswitch/fabric/view"
	"gswitch/units"
)

//go:embed page
var page embed.FS

// Server serves a source to browsers. It is made by New and must be closed.
type Server struct {
	mux http.ServeMux
	src interface{ Layout() *view.Layout }
	hub *hub // nil: of a record
	any bool // any name may be asked for

	patience time.Duration // a viewer that takes nothing for so long is sent away
}

// New returns a server that shows src. Without remote, requests by another
// name than that of this machine are refused: else a page from elsewhere could
// have its own name lead here, and read what is not meant for it.
func New(src view.Source, remote bool) *Server {
	s := &Server{src: src, hub: newHub(src), any: remote, patience: 15 * time.Second}
	s.files()
	s.mux.HandleFunc("GET /api/samples", s.samples)
	return s
}

func (s *Server) files() {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // it is embedded above
	}
	s.mux.Handle("GET /", http.FileServerFS(files))
	s.mux.HandleFunc("GET /api/layout", s.layout)
}

// Close ends all streams.
func (s *Server) Close() {
	if s.hub != nil {
		s.hub.close()
	}
}

// Viewers returns how many streams are open.
func (s *Server) Viewers() int { return s.hub.count() }

// FirstViewer is closed when the first stream is opened.
func (s *Server) FirstViewer() <-chan struct{} { return s.hub.first }

// policy lets the page load what this server has, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.any && !local(r.Host) {
		http.Error(w, fmt.Sprintf("this server is for this machine: ask for 127.0.0.1 or localhost, not for %q", r.Host), http.StatusForbidden)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

// local says whether a Host header names this machine itself.
func local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.IsLoopback()
}

func (s *Server) layout(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(s.src.Layout()); err != nil {
		return // the browser has gone
	}
}

// Bounds of the stream.
const (
	fastest = 100 * time.Millisecond // between samples
	beat    = 5 * time.Second        // a comment keeps what is between from closing an idle stream
)

func (s *Server) samples(w http.ResponseWriter, r *http.Request) {
	every := fastest
	if text := r.URL.Query().Get("every"); text != "" {
		d, err := units.Span(text)
		if err != nil || d <= 0 || d > time.Hour {
			http.Error(w, fmt.Sprintf("every=%s is not a time such as 500ms or 1s, up to 1h", text), http.StatusBadRequest)
			return
		}
		every = max(d, fastest)
	}
	c := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	v := s.hub.enter()
	defer s.hub.leave(v)
	tick := time.NewTicker(beat)
	defer tick.Stop()
	send := func(chunks ...[]byte) bool {
		if err := c.SetWriteDeadline(time.Now().Add(s.patience)); err != nil {
			return false
		}
		for _, b := range chunks {
			if _, err := w.Write(b); err != nil {
				return false
			}
		}
		return c.Flush() == nil
	}
	if !send([]byte("retry: 1000\n\n")) {
		return
	}
	var layout *view.Layout
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			if !send([]byte(":\n\n")) {
				return
			}
		case e, open := <-v.next:
			if !open {
				return
			}
			if e.layout != layout {
				layout = e.layout
				if !send(e.shape) {
					return
				}
			}
			if e.data != nil && !send(e.data) {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-time.After(every - fastest):
			}
		}
	}
}
