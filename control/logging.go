package control

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"gswitch/control/api"
)

// What a log takes: what happens once at a start or a reload of many ports, and
// then so much a second. What a neighbour or a client can repeat is in counters.
const (
	logBurst = 1000 // lines
	logRate  = 100  // lines per second
)

// NewLogger returns a log whose lines per second are bounded: what is left out
// is counted, and said once there is room again.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(&logHandler{slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}), &logRoom{room: logBurst}})
}

// logHandler is a handler in front of which there is a bound.
type logHandler struct {
	slog.Handler
	*logRoom
}

// logRoom is a token bucket.
type logRoom struct {
	mu      sync.Mutex
	room    float64   // lines
	at      time.Time // when it was that
	left    uint64    // lines that were left out since the last one
	omitted uint64    // in all
	second  time.Time // that is counted
	lines   uint64    // in it
	before  uint64    // in the one before
}

// take reports whether there is room for a line, and how many were left out
// before it.
func (l *logRoom) take(now time.Time) (ok bool, left uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	if !l.at.IsZero() && now.After(l.at) {
		l.room = min(logBurst, l.room+logRate*now.Sub(l.at).Seconds())
	}
	l.at = now
	if l.room < 1 {
		l.left++
		l.omitted++
		return false, 0
	}
	l.room--
	l.lines++
	left, l.left = l.left, 0
	return true, left
}

// turn begins a second.
func (l *logRoom) turn(now time.Time) {
	if s := now.Truncate(time.Second); !s.Equal(l.second) {
		if l.before = 0; s.Sub(l.second) == time.Second {
			l.before = l.lines
		}
		l.second, l.lines = s, 0
	}
}

// Handle writes a line if there is room for it.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	ok, left := h.take(r.Time)
	if !ok {
		return nil
	}
	if left > 0 {
		said := slog.NewRecord(r.Time, slog.LevelWarn, "lines of the log were left out", 0)
		said.AddAttrs(slog.Uint64("lines", left), slog.Int("limit_per_second", logRate))
		if err := h.Handler.Handle(ctx, said); err != nil {
			return err
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs and WithGroup share the bound.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.Handler.WithAttrs(attrs), h.logRoom}
}

// WithGroup is WithAttrs for a group.
func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.Handler.WithGroup(name), h.logRoom}
}

// limit reports the last whole second.
func (l *logRoom) limit() *api.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(time.Now())
	return &api.Limit{Kind: "log", Name: "lines of the log in the last second", Unit: "lines", Used: l.before, Limit: logRate, Refused: l.omitted}
}
