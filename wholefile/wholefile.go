// Package wholefile writes files that appear whole or not at all: a disk that
// fills up, or a program that is killed, leaves what was there before. It reads them
// whole up to a size.
package wholefile

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is a file that is written beside the one that it becomes.
type File struct {
	file   *os.File
	name   string // as it was given
	target string // what it replaces; empty: it is written in place
	failed error
	closed bool
}

// Create begins the file name, with perm before umask. A file of that name
// stays as it is until Close; where the name is that of a device, a pipe or a
// socket, it is written at once.
func Create(name string, perm fs.FileMode) (*File, error) {
	target := name
	if t, err := filepath.EvalSymlinks(name); err == nil {
		target = t // a link goes on to name what it names
	}
	if info, err := os.Stat(target); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return nil, named(name, err)
		}
		return &File{file: f, name: name}, nil
	}
	dir, base := filepath.Split(target)
	beside := filepath.Join(dir, "."+base+"-"+strings.ToLower(rand.Text()[:8]))
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, named(name, err)
	}
	return &File{file: f, name: name, target: target}, nil
}

// named says of an error which file it is about.
func named(name string, err error) error {
	if path := new(fs.PathError); errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Write writes to the file. Once it has failed it goes on to.
func (f *File) Write(b []byte) (int, error) {
	if f.failed != nil {
		return 0, f.failed
	}
	n, err := f.file.Write(b)
	if err != nil {
		f.failed = named(f.name, err)
	}
	return n, f.failed
}

// Close gives the file its name, if all of it was written and err is nil, and
// else removes it. It returns err, or what went wrong in writing.
func (f *File) Close(err error) error {
	f.closed = true
	if err == nil {
		err = f.failed
	}
	if f.target == "" {
		return errors.Join(err, f.file.Close())
	}
	if err == nil {
		err = f.file.Sync() // before the name: a crash leaves the old file or the new one
	}
	if e := f.file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.file.Name(), f.target)
	}
	if err == nil {
		return nil
	}
	os.Remove(f.file.Name())
	if link, path := new(os.LinkError), new(fs.PathError); errors.As(err, &link) {
		return fmt.Errorf("%s: %w", f.name, link.Err)
	} else if errors.As(err, &path) && path.Path == f.file.Name() {
		return fmt.Errorf("%s: %w", f.name, path.Err)
	}
	return err
}

// Discard removes what was written, unless Close was called before.
func (f *File) Discard() {
	if f != nil && !f.closed {
		_ = f.Close(errDiscarded)
	}
}

var errDiscarded = errors.New("discarded")

// Write writes the file name by fill.
func Write(name string, perm fs.FileMode, fill func(io.Writer) error) error {
	f, err := Create(name, perm)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err = fill(w); err == nil {
		err = w.Flush()
	}
	return f.Close(err)
}

// WriteBytes writes b to the file name.
func WriteBytes(name string, perm fs.FileMode, b []byte) error {
	return Write(name, perm, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
