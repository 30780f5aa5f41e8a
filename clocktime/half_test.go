package clocktime

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// A daemon is killed in the middle of a write. Readers in Go and in C get an error, and do not
// look for ever; when the daemon starts again, they go on by the page that they have open.
func TestWriterIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h1.clock")
	killed, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	killed.Write(&Image{Time: 1000, Eps: 5, Root: 1})
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	atomic.AddUint64(&killed.p.turn, 1)
	atomic.StoreInt64(&killed.p.time, 77)
	if m, err := c.Image(); !errors.Is(err, ErrHalfWritten) || m != (Image{}) {
		t.Errorf("%+v, %v", m, err)
	}
	if _, _, err := c.Now(); !errors.Is(err, ErrHalfWritten) {
		t.Error(err)
	}
	if _, err := c.Sample(); !errors.Is(err, ErrHalfWritten) {
		t.Error(err)
	}
	out, err := exec.Command(now(t), path, "1000").CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "half written") {
		t.Errorf("in C: %v, %s", err, out)
	}
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Now(); !errors.Is(err, ErrUnknown) {
		t.Errorf("of a daemon that has just started: %v", err)
	}
	want := Image{At: 5, Time: 2000, Eps: 6, Drift: 7, State: Backup, Epoch: 8, Root: 9}
	w.Write(&want)
	if m, err := c.Image(); err != nil || m != want {
		t.Errorf("%+v, %v, want %+v", m, err, want)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// What others could have put in the place of a page is not written to.
func TestPagesOfOthers(t *testing.T) {
	for name, put := range map[string]func(path, other string) error{
		"a link":      func(path, other string) error { return os.Symlink(other, path) },
		"two names":   func(path, other string) error { return os.Link(other, path) },
		"writable":    func(path, other string) error { return errors.Join(os.Rename(other, path), os.Chmod(path, 0o666)) },
		"too short":   func(path, other string) error { return errors.Join(os.Rename(other, path), os.Truncate(path, 72)) },
		"no page":     func(path, _ string) error { return os.WriteFile(path, make([]byte, pageSize), 0o644) },
		"a directory": func(path, _ string) error { return os.Mkdir(path, 0o755) },
	} {
		dir := t.TempDir()
		path, other := filepath.Join(dir, "h1.clock"), filepath.Join(dir, "other")
		w, err := Create(other)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(&Image{Time: 1000, Eps: 5, Root: 1})
		if err := put(path, other); err != nil {
			t.Fatal(err)
		}
		turn := atomic.LoadUint64(&w.p.turn)
		fresh, err := Create(path)
		if name == "a directory" {
			if err == nil {
				t.Error("a directory is replaced by a page")
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name != "too short" && atomic.LoadUint64(&w.p.turn) != turn {
			t.Errorf("%s: the page was written to", name)
		}
		if st, err := os.Lstat(path); err != nil || st.Mode() != 0o644 || st.Size() != pageSize {
			t.Errorf("%s: %v, %v", name, st, err)
		}
		if fresh.p == w.p {
			t.Error(name)
		}
	}
}
