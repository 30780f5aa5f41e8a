package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A document names plain files of policies that end, and no devices and pipes.
func TestNamedFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"/dev/zero": "is no plain file", pipe: "is no plain file", dir: "is no plain file", large: "bytes, 65536 are possible", "none": "no such file"} {
		doc := "version: 1\nswitches: [{name: s1, ports: [{interface: e1}], qos: {p: {queues: [{policy: {file: " + name + "}}]}}}]\n"
		if _, err := ParseBeside(filepath.Join(dir, "d.yaml"), []byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
