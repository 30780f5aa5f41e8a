package control

import (
	"fmt"
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

// ClockPage maintains the page of shared memory from which programs read a clock (package
// clocktime).
type ClockPage struct {
	w    *clocktime.Writer
	stop chan struct{}
	done sync.WaitGroup
}

// pagePeriod is the interval between updates of a page. A page stays valid in between,
// since its uncertainty grows with time, but it grows faster than the clock's own.
const pagePeriod = 10 * time.Millisecond

// PagePath returns the path of the page of a switch or host, which is beside the API
// socket of its daemon.
func PagePath(socket, name string) string {
	return filepath.Join(filepath.Dir(socket), strings.ReplaceAll(name, "/", "_")+".clock")
}

// OpenClockPage creates the page of a worker's clock at path. It returns nil if there is
// no clock. If the process may not create the page, it logs that and returns nil.
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
		var r rival
		var tick time.Time
		var now frame.Time
		var reading feature.Time
		t := time.NewTicker(pagePeriod)
		defer t.Stop()
		for {
			select {
			case <-p.stop:
				return
			case tick = <-t.C:
			}
			if err := e.Worker(worker).Do(func(at frame.Time) { now, reading = at, c.ReadTime(int64(at)) }); err != nil {
				return
			}
			m := image(e, reading, now)
			w.Write(&m)
			r.look(log, path, tick, &reading)
		}
	})
	return p
}

// rival remembers what was logged about a second root.
type rival struct {
	messages uint64
	said     time.Time
}

// look logs that there is a second root, and repeats it once a minute while there is. A
// counter says how often it announced itself.
func (r *rival) look(log *slog.Logger, page string, now time.Time, t *feature.Time) {
	if t.SecondRoots > r.messages && (r.said.IsZero() || now.Sub(r.said) >= time.Minute) {
		log.Warn("another clock claims to be the root: look for two documents with a root, two controllers, or a host that forges messages",
			"page", page, "root", fmt.Sprintf("%016x", t.Root), "other", fmt.Sprintf("%016x", t.Rival), "messages", t.SecondRoots)
		r.said = now
	}
	r.messages = t.SecondRoots
}

// image returns what a clock shows at an instant of the nodes.
func image(e *dataplane.Engine, t feature.Time, now frame.Time) clocktime.Image {
	at, within := e.Monotonic(now)
	if t.Eps >= 0 {
		t.Eps += within
	}
	return clocktime.Image{At: at, Time: t.Time, Eps: t.Eps, Drift: t.Drift, State: clocktime.State(t.State), Epoch: t.Epoch, Root: t.Root}
}

// Close removes the page. It may be called on nil.
func (p *ClockPage) Close() error {
	if p == nil {
		return nil
	}
	close(p.stop)
	p.done.Wait()
	return p.w.Close()
}
