package control

import (
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gswitch/clocktime"
	"gswitch/dataplane"
	"gswitch/feature"
	"gswitch/frame"
)

// ClockPage keeps the page of shared memory by which programs read a clock (package
// clocktime).
type ClockPage struct {
	w    *clocktime.Writer
	stop chan struct{}
	done sync.WaitGroup
}

// pagePeriod is between two looks at the clock. What a page says in between holds: its
// interval widens, only faster than the clock's own.
const pagePeriod = 10 * time.Millisecond

// PagePath is the page of a switch or host of a daemon with an API socket: beside
// that.
func PagePath(socket, name string) string {
	return filepath.Join(filepath.Dir(socket), strings.ReplaceAll(name, "/", "_")+".clock")
}

// OpenClockPage makes the page at a path of a clock on a worker; nil without a clock.
// Without the right to there is none either, and the log says so.
func OpenClockPage(log *slog.Logger, e *dataplane.Engine, worker int, path string, c feature.Timekeeper) *ClockPage {
	if c == nil {
		return nil
	}
	w, err := clocktime.Create(path)
	if err != nil {
		log.Warn("programs cannot read the clock", "err", err)
		return nil
	}
	p := &ClockPage{w: w, stop: make(chan struct{})}
	p.done.Go(func() {
		t := time.NewTicker(pagePeriod)
		defer t.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-t.C:
			}
			var m clocktime.Image
			if err := e.Worker(worker).Do(func(now frame.Time) { m = image(e, c, now) }); err != nil {
				return
			}
			w.Write(&m)
		}
	})
	return p
}

// image is what a clock says now.
func image(e *dataplane.Engine, c feature.Timekeeper, now frame.Time) clocktime.Image {
	t := c.Tell(int64(now))
	at, within := e.Monotonic(now)
	if t.Eps >= 0 {
		t.Eps += within
	}
	return clocktime.Image{At: at, Time: t.Time, Eps: t.Eps, Drift: t.Drift, State: clocktime.State(t.State), Epoch: t.Epoch, Root: t.Root}
}

// Close removes the page; nil has none.
func (p *ClockPage) Close() error {
	if p == nil {
		return nil
	}
	close(p.stop)
	p.done.Wait()
	return p.w.Close()
}
