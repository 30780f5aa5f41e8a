package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"gswitch/fabric/view"
	"gswitch/units"
)

// Record is a record of which any instant can be looked at. Instants are since its
// beginning.
type Record interface {
	Layout() *view.Layout
	// At returns the samples of instants, which ascend.
	At(ctx context.Context, at []time.Duration) ([]*view.Sample, error)
	// Serve answers a request to the daemon of a node as it was at an instant. All of
	// the request is there.
	Serve(at time.Duration, node string, w http.ResponseWriter, r *http.Request)
}

// mostSamples bounds what is asked for at once.
const mostSamples = 1000

// NewRecord returns a server that shows a record: the page has a slider. remote is that
// of New.
func NewRecord(rec Record, remote bool) *Server {
	s := &Server{src: rec, any: remote}
	s.files()
	s.mux.HandleFunc("GET /api/at", func(w http.ResponseWriter, r *http.Request) { at(rec, w, r) })
	call := func(w http.ResponseWriter, r *http.Request) {
		t, err := instant("instant", r.PathValue("instant"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked := r.Clone(r.Context())
		asked.URL.Path, asked.URL.RawPath = "/"+r.PathValue("call"), ""
		if err := whole(w, asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a := &answer{header: w.Header()}
		rec.Serve(t, r.PathValue("node"), a, asked)
		w.WriteHeader(cmp.Or(a.code, http.StatusOK))
		_, _ = w.Write(a.body.Bytes()) // the browser may have gone
	}
	s.mux.HandleFunc("GET /at/{instant}/{node}/{call...}", call)
	s.mux.HandleFunc("POST /at/{instant}/{node}/{call...}", call)
	return s
}

// mostAsked bounds the body of a request, and askTime how long it may take: one instant
// is looked at after the other, so that who is slow would keep all others waiting.
const (
	mostAsked = 1 << 20
	askTime   = 10 * time.Second
)

// whole reads the body of a request.
func whole(w http.ResponseWriter, r *http.Request) error {
	c := http.NewResponseController(w)
	if err := c.SetReadDeadline(time.Now().Add(askTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostAsked))
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := c.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// answer keeps what is answered, so that a slow reader keeps no other waiting.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) { a.code = cmp.Or(a.code, code) }

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

func instant(name, text string) (time.Duration, error) {
	t, err := units.Span(text)
	if err != nil || t < 0 {
		return 0, fmt.Errorf("%s=%s is not a time such as 12.304s or 300us", name, text)
	}
	return t, nil
}

// at answers with the samples of the time before an instant.
func at(rec Record, w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	t, err := instant("t", q.Get("t"))
	span := time.Duration(0)
	if text := q.Get("span"); text != "" && err == nil {
		span, err = instant("span", text)
	}
	n := 1
	if text := q.Get("n"); text != "" && err == nil {
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > mostSamples {
			err = fmt.Errorf("n=%s is not a number of samples from 1 to %d", text, mostSamples)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	span = min(span, t)
	// One more, before them: rates are since the sample before.
	var instants []time.Duration
	for i := n; i >= 0; i-- {
		if k := t - span/time.Duration(n)*time.Duration(i); len(instants) == 0 || k > instants[len(instants)-1] {
			instants = append(instants, k)
		}
	}
	samples, err := rec.At(r.Context(), instants)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	if len(samples) > 1 {
		samples = samples[1:]
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(samples); err != nil {
		return // the browser has gone
	}
}
