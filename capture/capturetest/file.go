package capturetest

import (
	"errors"
	"os"
	"testing"

	"gswitch/capture"
)

// File is a capture that a test writes.
type File struct {
	t    testing.TB
	file *os.File
	w    *capture.Writer
}

// Create makes a file with these interfaces.
func Create(t testing.TB, path string, interfaces ...string) *File {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &File{t, file, capture.NewWriter(file)}
	err = f.w.Section("")
	for _, name := range interfaces {
		_, ierr := f.w.Interface(name, "", capture.MaxSnapLen)
		err = errors.Join(err, ierr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Add adds a whole frame of the first interface at an instant in nanoseconds.
func (f *File) Add(at int64, frame []byte) {
	f.t.Helper()
	f.Packet(capture.Record{Time: at}, frame)
}

// Packet adds a whole frame with what else is known of it.
func (f *File) Packet(r capture.Record, frame []byte) {
	f.t.Helper()
	r.Wire = uint32(len(frame))
	if err := f.w.Packet(r, frame); err != nil {
		f.t.Fatal(err)
	}
}

// Close ends the file.
func (f *File) Close() {
	f.t.Helper()
	if err := errors.Join(f.w.Flush(), f.file.Close()); err != nil {
		f.t.Fatal(err)
	}
}
