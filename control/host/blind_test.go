package host

import (
	"strings"
	"testing"

	"gswitch/hostnic"
)

// A transfer that needs telemetry and gets none fails with an error, and no other does.
func TestBlind(t *testing.T) {
	n := hostnic.Counts{Blind: 7, AcksReceived: 10, NaksReceived: 2}
	if got := blind("hpcc", &n); !strings.HasPrefix(got, "hpcc needs telemetry, and 7 of 12 acknowledgements") {
		t.Error(got)
	}
	for _, name := range []string{"timely", "dctcp", "none", "nobody"} {
		if got := blind(name, &n); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := blind("hpcc", &hostnic.Counts{AcksReceived: 10}); got != "" {
		t.Error(got)
	}
}
