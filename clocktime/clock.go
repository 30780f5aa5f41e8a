package clocktime

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Clock reads a page. Its methods may be called from any goroutine.
type Clock struct {
	p *page
	b []byte

	mu    sync.Mutex
	root  uint64
	known bool
	floor int64 // the greatest earliest that was given out, of that root
}

// Open opens the page of a daemon, such as /run/ghost/h1.clock.
func Open(path string) (*Clock, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() < pageSize {
		return nil, fmt.Errorf("%s: is no clock page", path)
	}
	c := &Clock{}
	if c.p, c.b, err = mapped(f, unix.PROT_READ); err != nil {
		return nil, err
	}
	if c.p.magic != magic {
		unix.Munmap(c.b)
		return nil, fmt.Errorf("%s: is no clock page of this version", path)
	}
	return c, nil
}

// A writer is done within a microsecond. One that has no processor is waited for, a
// hundred times as long as it has to write again; one that was killed is not.
const (
	looks  = 1100                 // at a page that is half written, at most
	atOnce = 100                  // of these
	pause  = 1 * time.Millisecond // between the others
)

// ErrHalfWritten is the error of a page that remained half written: its daemon was killed,
// or stopped, while it wrote. One that starts again by the same name repairs the page.
var ErrHalfWritten = errors.New("the clock page remains half written: the daemon that writes it is gone, or is stopped; start it again")

// Image returns what the page says. It waits for who writes to be done, a second or so at
// most.
func (c *Clock) Image() (m Image, err error) {
	p := c.p
	for look := range looks {
		if look >= atOnce {
			time.Sleep(pause)
		}
		turn := atomic.LoadUint64(&p.turn)
		m = Image{At: atomic.LoadInt64(&p.at), Time: atomic.LoadInt64(&p.time), Eps: atomic.LoadInt64(&p.eps), Drift: atomic.LoadInt64(&p.drift),
			State: State(atomic.LoadUint64(&p.state)), Epoch: uint32(atomic.LoadUint64(&p.epoch)), Root: atomic.LoadUint64(&p.root)}
		if turn&1 == 0 && atomic.LoadUint64(&p.turn) == turn {
			return m, nil
		}
	}
	return Image{}, ErrHalfWritten
}

// Now returns the interval in which the root's time lies now. Its beginning never goes back
// while the root is the same: what was once past remains so.
func (c *Clock) Now() (earliest, latest time.Time, err error) {
	now, err := clock(unix.CLOCK_MONOTONIC)
	if err != nil {
		return earliest, latest, err
	}
	m, err := c.Image()
	if err != nil {
		return earliest, latest, err
	}
	from, to, err := c.between(&m, now)
	if err != nil {
		return earliest, latest, err
	}
	return time.Unix(0, from), time.Unix(0, to), nil
}

// between is Image.Between, but the beginning of the interval is not before one that was
// given out.
func (c *Clock) between(m *Image, monotonic int64) (earliest, latest int64, err error) {
	if earliest, latest, err = m.Between(monotonic); err != nil {
		return 0, 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && c.root == m.Root {
		earliest = max(earliest, c.floor)
	}
	c.known, c.root, c.floor = true, m.Root, earliest
	return earliest, max(earliest, latest), nil
}

// Close ends the reading.
func (c *Clock) Close() error { return unix.Munmap(c.b) }
