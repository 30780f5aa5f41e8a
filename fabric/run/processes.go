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

// Process is a process that was started to step nodes: it runs Node.
type Process struct {
	Conn io.ReadWriteCloser // to the process, which ends when this is closed
	PID  int                // 0 if it is not a child of this process
	Kill func()
	// Wait returns when the process has ended. Unless it succeeded, the error says how it
	// ended and includes its last output.
	Wait func() error
}

// group are the processes of a run.
type group struct {
	processes []*process
	inbox     chan received
	quit      chan struct{}
}

// process is a process of a group, as seen by the process that started it.
type process struct {
	name    string
	started *Process
	pipe    *pipe
	summary *summary
	pauses  []pauses.Pause
	ended   chan struct{}
	how     error // set when it has ended
}

// received is a report of a process, or the error that ended the reports.
type received struct {
	from   *process
	report *report
	err    error
}

// startAll starts a process for each of v and sends it its setup.
func startAll(v []live.Process, start func(name string) (*Process, error), setupOf func(*live.Process) *setup) (*group, error) {
	g := &group{inbox: make(chan received), quit: make(chan struct{})}
	for i := range v {
		p, err := start(v[i].Name)
		if err != nil {
			return g, fmt.Errorf("process %s: %w", v[i].Name, err)
		}
		h := &process{name: v[i].Name, started: p, pipe: newPipe(p.Conn), ended: make(chan struct{})}
		g.processes = append(g.processes, h)
		go func() {
			h.how = p.Wait()
			close(h.ended)
		}()
		if err := h.pipe.send(setupOf(&v[i])); err != nil {
			return g, g.lost(h, err)
		}
		go g.listen(h)
	}
	return g, nil
}

// listen passes on the reports of a process, up to its summary.
func (g *group) listen(h *process) {
	for {
		n := new(report)
		err := h.pipe.read(n)
		if err == nil && n.Error != "" {
			err = errors.New(n.Error)
		}
		select {
		case g.inbox <- received{h, n, err}:
		case <-g.quit:
			return
		}
		if err != nil || n.Last != nil {
			return
		}
	}
}

// ready waits until the ports of all processes are up.
func (g *group) ready(ctx context.Context) error {
	late := time.After(longestWait)
	for missing := len(g.processes); missing > 0; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return fmt.Errorf("%d of %d processes are not ready after %v", missing, len(g.processes), longestWait)
		case h := <-g.inbox:
			if h.err != nil {
				return g.lost(h.from, h.err)
			}
			if h.report.Ready {
				missing--
			}
		}
	}
	return nil
}

// begin sends all processes the instant at which time starts.
func (g *group) begin() (time.Time, error) {
	now, err := monotonic()
	if err != nil {
		return time.Time{}, err
	}
	at := now + int64(ahead)
	for _, h := range g.processes {
		if err := h.pipe.send(&order{Begin: at}); err != nil {
			return time.Time{}, g.lost(h, err)
		}
	}
	return instant(at)
}

// flush sends the buffered orders to the processes.
func (g *group) flush() error {
	for _, h := range g.processes {
		if h.pipe.out.Buffered() == 0 {
			continue
		}
		if err := h.pipe.flush(); err != nil && h.summary == nil {
			return g.lost(h, err)
		}
	}
	return nil
}

// exitTimeout is how long a process may take to end by itself.
const exitTimeout = 5 * time.Second

// lost returns the error of a process that ended too early.
func (g *group) lost(h *process, err error) error {
	if disconnected(err) {
		select {
		case <-h.ended:
			err = errors.New("it ended")
			if h.how != nil {
				err = h.how
			}
		case <-time.After(exitTimeout):
		}
	}
	if h.started.PID == 0 {
		return fmt.Errorf("node %s: %w", h.name, err)
	}
	return fmt.Errorf("process %s (%d): %w", h.name, h.started.PID, err)
}

// disconnected reports whether the other end of a socket is closed.
func disconnected(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, unix.EPIPE, unix.ECONNRESET} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// unreported returns the names of the processes without a summary.
func (g *group) unreported() (names string) {
	for _, h := range g.processes {
		if h.summary == nil {
			if names != "" {
				names += ", "
			}
			names += h.name
		}
	}
	return names
}

// stop ends all processes, and returns when they have ended.
func (g *group) stop() {
	close(g.quit)
	for _, h := range g.processes {
		h.started.Conn.Close()
	}
	deadline := time.Now().Add(exitTimeout)
	for _, h := range g.processes {
		select {
		case <-h.ended:
		case <-time.After(time.Until(deadline)):
			h.started.Kill()
			<-h.ended
		}
	}
}

// summaries returns the summaries of all processes.
func (g *group) summaries() (v []*summary) {
	for _, h := range g.processes {
		v = append(v, h.summary)
	}
	return v
}

// ended returns the latest time at which a process stopped.
func ended(v []*summary) (end frame.Time) {
	for _, a := range v {
		end = max(end, a.Timing.End)
	}
	return end
}
