package wholefile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func content(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names are what a directory has.
func names(t *testing.T, dir string) (v []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		v = append(v, e.Name())
	}
	return v
}

// What is there stays until the new one is whole, and after a failure.
func TestWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.txt")
	if err := WriteBytes(name, 0o640, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm()&^0o640 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	failure := errors.New("what came was wrong")
	if err := Write(name, 0o640, func(w io.Writer) error {
		io.WriteString(w, strings.Repeat("two", 10000))
		if content(t, name) != "one" {
			t.Error("it changed before it was whole")
		}
		return failure
	}); !errors.Is(err, failure) {
		t.Error(err)
	}
	if got := names(t, dir); content(t, name) != "one" || len(got) != 1 {
		t.Errorf("%q, files %v", content(t, name), got)
	}
	begun, err := Create(name, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	begun.Discard()
	if got := names(t, dir); content(t, name) != "one" || len(got) != 1 {
		t.Errorf("%q, files %v", content(t, name), got)
	}
	if err := WriteBytes(name, 0o640, []byte("three")); err != nil || content(t, name) != "three" {
		t.Errorf("%v, %q", err, content(t, name))
	}
}

// Links go on to lead where they led, and devices stay devices.
func TestLinksAndDevices(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "a.txt"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(name, []byte("one"), 0o644), os.Symlink("a.txt", link), WriteBytes(link, 0o644, []byte("two"))); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != "a.txt" || content(t, name) != "two" {
		t.Errorf("%s, %v, %q", to, err, content(t, name))
	}
	null := filepath.Join(dir, "null")
	if err := errors.Join(os.Symlink("/dev/null", null), WriteBytes(null, 0o644, []byte("x"))); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if err := WriteBytes("/dev/full", 0o644, []byte("x")); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "/dev/full") {
		t.Error(err)
	}
}

// A disk that fills up leaves what was there, an error that names the file, and
// nothing beside it.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a disk that is small")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, 0)
	name := filepath.Join(dir, "a.txt")
	if err := WriteBytes(name, 0o644, []byte("one")); err != nil {
		t.Fatal(err)
	}
	err := WriteBytes(name, 0o644, bytes.Repeat([]byte{'x'}, 1<<20))
	if !errors.Is(err, unix.ENOSPC) || !strings.HasPrefix(err.Error(), name+": ") {
		t.Error(err)
	}
	if got := names(t, dir); content(t, name) != "one" || len(got) != 1 {
		t.Errorf("%.10q, files %v", content(t, name), got)
	}
	// The same where the caller ignores the error of Write.
	err = Write(name, 0o644, func(w io.Writer) error {
		w.Write(bytes.Repeat([]byte{'x'}, 1<<20))
		return nil
	})
	if !errors.Is(err, unix.ENOSPC) || content(t, name) != "one" {
		t.Errorf("%v, %.10q", err, content(t, name))
	}
	if err := WriteBytes(filepath.Join(dir, "none", "b.txt"), 0o644, nil); err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, "none", "b.txt")+": ") {
		t.Error(err)
	}
}
