package e2e

import (
	"os/exec"
	"testing"
)

// need skips a test where a program is missing that it runs. In CI, where nothing may skip, that is a
// failure, and the tests that skipped without these programs are run again with them.
func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("there is no %s in PATH, which this test runs", p)
		}
	}
}
