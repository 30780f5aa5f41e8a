package dut

import (
	"bufio"
	"bytes"
	"regexp"
	"testing"
)

// The configuration with everything on must have what its description says,
// once each: a repeated prefix or rule would be refused, or cost nothing.
func TestFullConfiguration(t *testing.T) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	writeFull(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	distinct := func(pattern string) int {
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(pattern).FindAllString(b.String(), -1) {
			seen[m] = true
		}
		return len(seen)
	}
	if n := distinct(`prefix: [0-9./]+`); n != fullRoutes {
		t.Errorf("%d routes, want %d", n, fullRoutes)
	}
	if n := distinct(`match: \{[^}]*\}`); n != fullRules {
		t.Errorf("%d rules, want %d", n, fullRules)
	}
	if !bytes.Contains(b.Bytes(), []byte("prefix: 20.77.77.0/24")) {
		t.Errorf("no route leads to %s", routedIP)
	}
}
