package control

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What says the same without end is left out, and that is said; what comes at
// a bearable pace is all there.
func TestLogIsBounded(t *testing.T) {
	var out bytes.Buffer
	log := NewLogger(&out, slog.LevelInfo)
	h := log.With("port", "p1").Handler().(*logHandler)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	say := func(n int, every time.Duration) {
		for range n {
			r := slog.NewRecord(now, slog.LevelInfo, "again", 0)
			if err := h.Handle(context.Background(), r); err != nil {
				t.Fatal(err)
			}
			now = now.Add(every)
		}
	}
	say(10_000, 0)
	if n := strings.Count(out.String(), "msg=again port=p1"); n != logBurst {
		t.Errorf("%d lines of a flood, not %d", n, logBurst)
	}
	out.Reset()
	now = now.Add(3 * time.Second)
	say(1, 0)
	if s := out.String(); !strings.Contains(s, `msg="lines of the log were left out" port=p1 lines=9000`) || strings.Count(s, "msg=again") != 1 {
		t.Errorf("after it:\n%s", s)
	}
	out.Reset()
	say(2000, time.Second/logRate)
	if n := strings.Count(out.String(), "msg=again"); n != 2000 {
		t.Errorf("%d of 2000 lines at the pace that is allowed", n)
	}
	if l := h.limit(); l.Refused != 9000 || l.Limit != logRate {
		t.Errorf("%v", l)
	}
	// The bound is one for all that is derived of a log.
	out.Reset()
	h.take(now)
	for range 2 * logBurst {
		log.Info("other")
	}
	if n := strings.Count(out.String(), "msg=other"); n > logBurst+logRate*60 {
		t.Errorf("%d lines of another", n)
	}
}
