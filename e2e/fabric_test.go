package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// raiseFabric raises a fabric for the time of the test.
func raiseFabric(t *testing.T, name, topology string, flags ...string) {
	t.Helper()
	args := slices.Concat([]string{"up", topology, "--name", name, "--gswitch", gswitch}, flags)
	if out, err := exec.Command(gfabric, args...).CombinedOutput(); err != nil {
		t.Fatalf("gfabric up: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(gfabric, "down", name).CombinedOutput(); err != nil {
			t.Errorf("gfabric down: %v\n%s", err, out)
		}
	})
}

// withoutRoot makes a directory with gfabric and files. It returns the directory, and what runs gfabric there as a user
// without privileges.
func withoutRoot(t *testing.T, files map[string][]byte) (dir string, run func(args ...string) (out string, code int)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	// That of the test lies where others may not look.
	dir, err := os.MkdirTemp("/tmp", "e2e-noroot-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program, err := os.ReadFile(gfabric)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, data []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("gfabric", program)
	for name, data := range files {
		put(name, data)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir, func(args ...string) (string, int) {
		c := exec.Command(filepath.Join(dir, "gfabric"), args...)
		c.Dir = dir
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := c.CombinedOutput()
		return string(out), c.ProcessState.ExitCode()
	}
}
