package sweep

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// scratchName begins the names of directories of programs that take part in sweeps.
const scratchName = "gfabric-sweep-"

// Scratch is a directory for what is under way. A program that is killed leaves its
// own, which the next one removes: a running one holds a lock on the file in it.
type Scratch struct {
	Dir  string
	lock *os.File
}

// NewScratch makes a directory below parent, that of temporary files if "", and
// removes those of programs that are gone.
func NewScratch(parent string) (*Scratch, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	left, err := filepath.Glob(filepath.Join(parent, scratchName+"*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range left {
		if f, err := lock(dir, os.O_RDWR); err == nil {
			os.RemoveAll(dir)
			f.Close()
		}
	}
	for try := 1; ; try++ {
		dir, err := os.MkdirTemp(parent, scratchName)
		if err != nil {
			return nil, err
		}
		f, err := lock(dir, os.O_RDWR|os.O_CREATE)
		if err == nil {
			return &Scratch{dir, f}, nil
		}
		os.RemoveAll(dir)
		if try == 3 { // not another program that cleaned up between the two
			return nil, err
		}
	}
}

// lock opens the file of a directory and locks it. It is an error if it is locked.
func lock(dir string, flags int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close removes the directory.
func (s *Scratch) Close() error {
	err := os.RemoveAll(s.Dir)
	s.lock.Close()
	return err
}
