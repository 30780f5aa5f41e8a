package live

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestAvailable(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:       8000 kB\nMemFree:  100 kB\nMemAvailable:    4096 kB\nBuffers: 1 kB\n": 4 << 20,
		"MemTotal:       8000 kB\n":              0,
		"MemAvailable: many kB\n":                0,
		"MemAvailable: -1 kB\n":                  0,
		"MemAvailable: 9223372036854775807 kB\n": 0,
		"":                                       0,
	} {
		if got := available(strings.NewReader(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if a := allowance(); a < 0 || a > most {
		t.Errorf("the heap may grow by %d", a)
	}
}

// Afterwards the collector is as it was.
func TestCollectorIsPutBack(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer debug.SetGCPercent(percent)
	var c collector
	c.hold(1)
	if now := debug.SetGCPercent(-1); now != -1 {
		t.Errorf("while it is held it runs at %d %%", now)
	}
	c.release()
	if now := debug.SetGCPercent(100); now != 100 {
		t.Errorf("it ran at 100 %%, then at %d %%", now)
	}
	if now := debug.SetMemoryLimit(-1); now != limit {
		t.Errorf("its limit was %d, then %d", limit, now)
	}
}
