// Package capturetest lets tests write captures, and look at frames as Wireshark does.
package capturetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Dissect returns the fields that tshark finds in frames: a line for each frame, the
// fields separated by |, values of one field by commas. It skips the test where there
// is no tshark.
func Dissect(t *testing.T, frames [][]byte, fields ...string) []string {
	t.Helper()
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		if os.Getenv("GSWITCH_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("tshark is not installed")
	}
	path := filepath.Join(t.TempDir(), "frames.pcapng")
	f := Create(t, path, "test")
	for _, b := range frames {
		f.Add(0, b)
	}
	f.Close()
	args := []string{"-n", "-r", path, "-T", "fields", "-E", "separator=|"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command(tshark, args...).Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, out)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
