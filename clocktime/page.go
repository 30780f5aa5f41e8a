package clocktime

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page is the layout, in the byte order of the machine. gswitch_clock.h has the same.
type page struct {
	magic uint64
	turn  uint64 // odd while the rest is written
	at    int64  // CLOCK_MONOTONIC in nanoseconds
	time  int64  // synchronised time then, in nanoseconds since 1970
	eps   int64  // its uncertainty then, in nanoseconds; -1: it is not known
	drift int64  // by how many parts in 10^9 eps grows
	state uint64
	epoch uint64
	root  uint64
}

const (
	magic    = 0x314b434f4c435347 // "GSCLOCK1"
	pageSize = 4096
)

// State is what the clock takes itself for.
type State uint8

// States, by the numbers in the page.
const (
	Unsynchronised State = iota
	Primary              // receives the root's time by its first parent
	Backup               // by its second
	Holdover             // receives no sync messages
	Root                 // is the root
	Evicted              // found itself broken
)

var states = [...]string{"unsynchronised", "primary", "backup", "holdover", "root", "evicted"}

// String returns the state in words.
func (s State) String() string {
	if int(s) < len(states) {
		return states[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Image is what a page holds: synchronised time at an instant, and how uncertain it
// becomes behind that.
type Image struct {
	At    int64 // CLOCK_MONOTONIC in nanoseconds
	Time  int64 // synchronised time then, in nanoseconds since 1970
	Eps   int64 // its uncertainty then, in nanoseconds; -1: it is not known
	Drift int64 // by how many parts in 10^9 Eps grows
	State State
	Epoch uint32 // of the plan that the root announces
	Root  uint64 // identity of the root: two times can be compared if it is the same
}

// ErrUnknown is the error of a clock that was not set by a root yet, or knows that it
// is broken.
var ErrUnknown = errors.New("the clock is not synchronised")

// Between returns the interval in which the root's time lies at an instant of
// CLOCK_MONOTONIC, in nanoseconds since 1970. Instants before At are taken for At.
func (m *Image) Between(monotonic int64) (earliest, latest int64, err error) {
	if m.Eps < 0 {
		return 0, 0, ErrUnknown
	}
	span := max(0, monotonic-m.At)
	eps := m.Eps + span/1e9*m.Drift + (span%1e9*m.Drift+1e9-1)/1e9
	return m.Time + span - eps, m.Time + span + eps, nil
}

func mapped(f *os.File, prot int) (*page, []byte, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, pageSize, prot, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return (*page)(unsafe.Pointer(&b[0])), b, nil
}

// Writer has a page. One goroutine writes it.
type Writer struct {
	path string
	p    *page
	b    []byte
}

// create makes a file that everybody may read, whatever the process's umask is. It does so by
// that, for a daemon that runs gives no file to others any more (chmod; package privilege).
func create(path string) (*os.File, error) {
	defer unix.Umask(unix.Umask(0o022))
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
}

// Create makes the page at a path, for everybody to read. The page of a daemon that was killed
// is written on, so that its readers get the new one's clock; until that is set
// it is unknown.
func Create(path string) (*Writer, error) {
	if w := goOn(path); w != nil {
		return w, nil
	}
	f, err := create(filepath.Join(filepath.Dir(path), ".clock-"+strings.ToLower(rand.Text()[:8])))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w := &Writer{path: path}
	// Written, and not a hole: on a full disk that would end who touches it (SIGBUS).
	if _, err = f.Write(make([]byte, pageSize)); err == nil {
		w.p, w.b, err = mapped(f, unix.PROT_READ|unix.PROT_WRITE)
	}
	if err == nil {
		w.p.eps, w.p.magic = -1, magic
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return nil, fmt.Errorf("clock page %s: %w", path, err)
	}
	return w, nil
}

// goOn takes over the page that a daemon of the same user left, nil if there is none. One
// that another user could have made, or may write to, is not touched.
func goOn(path string) *Writer {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Mode != unix.S_IFREG|0o644 || int(st.Uid) != os.Geteuid() || st.Nlink != 1 || st.Size != pageSize {
		return nil
	}
	p, b, err := mapped(f, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return nil
	}
	if p.magic != magic {
		unix.Munmap(b)
		return nil
	}
	w := &Writer{path: path, p: p, b: b}
	w.Write(&Image{Eps: -1})
	return w
}

// Write puts an image into the page, also where one that was killed has left half of another.
func (w *Writer) Write(m *Image) {
	p := w.p
	turn := atomic.LoadUint64(&p.turn) | 1
	atomic.StoreUint64(&p.turn, turn)
	atomic.StoreInt64(&p.at, m.At)
	atomic.StoreInt64(&p.time, m.Time)
	atomic.StoreInt64(&p.eps, m.Eps)
	atomic.StoreInt64(&p.drift, m.Drift)
	atomic.StoreUint64(&p.state, uint64(m.State))
	atomic.StoreUint64(&p.epoch, uint64(m.Epoch))
	atomic.StoreUint64(&p.root, m.Root)
	atomic.StoreUint64(&p.turn, turn+1)
}

// Close removes the page. Who has it open goes on with what it says.
func (w *Writer) Close() error {
	return errors.Join(os.Remove(w.path), unix.Munmap(w.b))
}
