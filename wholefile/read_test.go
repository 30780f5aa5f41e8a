package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What has no end, or more than was to be expected, is refused by name, and a pipe that
// a document names is not waited for.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, []byte("12345678"), 0o600), unix.Mkfifo(pipe, 0o600), os.Symlink("/dev/zero", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, read := range []func(string, int64) ([]byte, error){Read, ReadPlain} {
		if b, err := read(file, 8); err != nil || string(b) != "12345678" {
			t.Errorf("%q, %v", b, err)
		}
		for _, name := range []string{file, "/dev/zero", filepath.Join(dir, "link")} {
			if b, err := read(name, 7); b != nil || err == nil || !strings.Contains(err.Error(), name+" ") {
				t.Errorf("%s: %d bytes, %v", name, len(b), err)
			}
		}
		if _, err := read(filepath.Join(dir, "none"), 8); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	for _, name := range []string{pipe, "/dev/null", dir} {
		if _, err := ReadPlain(name, 8); err == nil || !strings.Contains(err.Error(), name+" is no plain file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	written := make(chan error)
	go func() { written <- os.WriteFile(pipe, []byte("x"), 0o600) }()
	if b, err := Read(pipe, 8); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
