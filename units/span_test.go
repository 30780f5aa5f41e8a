package units

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{"500us": 500 * time.Microsecond, "500 us": 500 * time.Microsecond, "10min": 10 * time.Minute, "10m": 10 * time.Minute,
		"1h30m": 90 * time.Minute, "-5m": -5 * time.Minute, "1.5h": 90 * time.Minute, ".5s": 500 * time.Millisecond, "0": 0, "0s": 0, "0.5ns": 0} {
		if d, err := Span(text); err != nil || d != want {
			t.Errorf("Span(%q) = %v, %v, want %v", text, d, err, want)
		}
	}
	for _, text := range []string{"", "5", "5 parsecs", "s", "3000000h"} {
		if d, err := Span(text); err == nil {
			t.Errorf("%q is read as %v", text, d)
		}
	}
}

// Whatever time.ParseDuration reads, Span reads as the same.
func TestSpanIsNoNarrower(t *testing.T) {
	part := rapid.StringMatching(`[0-9]{0,4}\.?[0-9]{0,4}(ns|us|µs|μs|ms|s|m|h)?`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "-", "+"}).Draw(t, "sign") + part.Draw(t, "a") + part.Draw(t, "b")
		want, err := time.ParseDuration(text)
		if err != nil {
			return
		}
		if got, err := Span(text); err != nil || got != want {
			t.Errorf("Span(%q) = %v, %v, want %v", text, got, err, want)
		}
	})
}
