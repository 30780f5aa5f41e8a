package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/fabric/live"
	"gswitch/fabric/pauses"
	"gswitch/frame"
)

// Process is one that was started to step nodes: it runs Node.
type Process struct {
	Conn io.ReadWriteCloser // to it; it ends when this is closed
	PID  int
	Kill func()
	// Wait returns when it has ended, with an error that says how and what it
	// said last unless it did well.
	Wait func() error
}

// crew are the processes of a run.
type crew struct {
	members []*hand
	news    chan news
	quit    chan struct{}
}

// hand is a process, as the one that started it knows it.
type hand struct {
	name    string
	process *Process
	pipe    *pipe
	account *account
	pauses  []pauses.Pause
	ended   chan struct{}
	how     error // when it has ended
}

// news is what a process says, or that it says no more.
type news struct {
	from   *hand
	notice *notice
	err    error
}

// muster starts a process for each of v and tells it what is its own.
func muster(v []live.Process, start func(name string) (*Process, error), tell func(*live.Process) *setup) (*crew, error) {
	c := &crew{news: make(chan news), quit: make(chan struct{})}
	for i := range v {
		p, err := start(v[i].Name)
		if err != nil {
			return c, fmt.Errorf("process %s: %w", v[i].Name, err)
		}
		h := &hand{name: v[i].Name, process: p, pipe: newPipe(p.Conn), ended: make(chan struct{})}
		c.members = append(c.members, h)
		go func() {
			h.how = p.Wait()
			close(h.ended)
		}()
		if err := h.pipe.tell(tell(&v[i])); err != nil {
			return c, c.lost(h, err)
		}
		go c.listen(h)
	}
	return c, nil
}

// listen hands on what a process says, until it has given its account.
func (c *crew) listen(h *hand) {
	for {
		n := new(notice)
		err := h.pipe.read(n)
		if err == nil && n.Error != "" {
			err = errors.New(n.Error)
		}
		select {
		case c.news <- news{h, n, err}:
		case <-c.quit:
			return
		}
		if err != nil || n.Last != nil {
			return
		}
	}
}

// ready waits until the ports of all processes are up.
func (c *crew) ready(ctx context.Context) error {
	late := time.After(longestWait)
	for missing := len(c.members); missing > 0; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return fmt.Errorf("%d of %d processes are not ready after %v", missing, len(c.members), longestWait)
		case h := <-c.news:
			if h.err != nil {
				return c.lost(h.from, h.err)
			}
			if h.notice.Ready {
				missing--
			}
		}
	}
	return nil
}

// begin tells all when time begins.
func (c *crew) begin() (time.Time, error) {
	now, err := monotonic()
	if err != nil {
		return time.Time{}, err
	}
	at := now + int64(ahead)
	for _, h := range c.members {
		if err := h.pipe.tell(&order{Begin: at}); err != nil {
			return time.Time{}, c.lost(h, err)
		}
	}
	return instant(at)
}

// flush sends what was written.
func (c *crew) flush() error {
	for _, h := range c.members {
		if h.pipe.out.Buffered() == 0 {
			continue
		}
		if err := h.pipe.flush(); err != nil && h.account == nil {
			return c.lost(h, err)
		}
	}
	return nil
}

// grace is for how long a process that has been told to end may go on.
const grace = 5 * time.Second

// lost says how a process was lost that is needed.
func (c *crew) lost(h *hand, err error) error {
	if hungUp(err) {
		select {
		case <-h.ended:
			err = errors.New("it ended")
			if h.how != nil {
				err = h.how
			}
		case <-time.After(grace):
		}
	}
	return fmt.Errorf("process %s (%d): %w", h.name, h.process.PID, err)
}

// hungUp tells that the other end of a socket is no more.
func hungUp(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, unix.EPIPE, unix.ECONNRESET} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// silent names those that have not given an account.
func (c *crew) silent() (names string) {
	for _, h := range c.members {
		if h.account == nil {
			if names != "" {
				names += ", "
			}
			names += h.name
		}
	}
	return names
}

// dismiss ends all processes, and returns when they have.
func (c *crew) dismiss() {
	close(c.quit)
	for _, h := range c.members {
		h.process.Conn.Close()
	}
	deadline := time.Now().Add(grace)
	for _, h := range c.members {
		select {
		case <-h.ended:
		case <-time.After(time.Until(deadline)):
			h.process.Kill()
			<-h.ended
		}
	}
}

// accounts are what all told in the end.
func (c *crew) accounts() (v []*account) {
	for _, h := range c.members {
		v = append(v, h.account)
	}
	return v
}

// ended is when time ended where it went on for longest.
func ended(v []*account) (end frame.Time) {
	for _, a := range v {
		end = max(end, a.Told.End)
	}
	return end
}
