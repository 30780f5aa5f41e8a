package control

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"gswitch/control/api"
)

// The limits of the log: enough for one message per port at a start or reload of many
// ports, and then a fixed rate. Events that a neighbour or a client can repeat are
// counted instead.
const (
	logBurst = 1000 // lines
	logRate  = 100  // lines per second
)

// NewLogger returns a logger that bounds its lines per second. Omitted lines are counted,
// and the count is logged once there is room again.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(&logHandler{slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}), &logRoom{room: logBurst}})
}

// logHandler bounds the lines of a handler.
type logHandler struct {
	slog.Handler
	*logRoom
}

// logRoom is a token bucket.
type logRoom struct {
	mu      sync.Mutex
	room    float64   // lines
	at      time.Time // time of room's value
	left    uint64    // lines omitted since the last one logged
	omitted uint64    // total
	second  time.Time // the second that is counted
	lines   uint64    // lines in it
	before  uint64    // lines in the previous second
}

// take reports whether there is room for a line, and how many were omitted before it.
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

// turn starts a new second.
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

// WithAttrs implements slog.Handler. The result shares the bound.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.Handler.WithAttrs(attrs), h.logRoom}
}

// WithGroup implements slog.Handler. The result shares the bound.
func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.Handler.WithGroup(name), h.logRoom}
}

// limit reports on the last full second.
func (l *logRoom) limit() *api.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(time.Now())
	return &api.Limit{Kind: "log", Name: "lines of the log in the last second", Unit: "lines", Used: l.before, Limit: logRate, Refused: l.omitted}
}
