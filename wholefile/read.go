package wholefile

import (
	"fmt"
	"io"
	"os"
)

// Read returns what is in a file, or comes out of a pipe, of so many bytes at most:
// what a name leads to may have no end.
func Read(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return All(name, f, most)
}

// All is Read of what is open. Errors carry the name.
func All(name string, r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes, which is what is read of such a file", name, most)
	}
	return b, err
}

// ReadPlain is Read of a file that a document names, rather than the user of the program.
func ReadPlain(name string, most int64) ([]byte, error) {
	f, err := OpenPlain(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes, %d are possible", name, fi.Size(), most)
	}
	return All(name, f, most)
}

// OpenPlain opens a file that is no device, and no pipe, at which opening it would wait.
func OpenPlain(name string) (*os.File, error) {
	if fi, err := os.Stat(name); err != nil {
		return nil, err
	} else if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no plain file", name)
	}
	return os.Open(name)
}
