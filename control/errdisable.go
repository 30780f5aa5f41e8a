package control

import (
	"time"

	"gswitch/metrics"
)

// disabledPoll is how often the log checks for ports that are err-disabled. It may miss a
// port that is disabled for a shorter time; the counters do not.
const disabledPoll = 250 * time.Millisecond

// portWatch logs when ports are err-disabled, and when they are enabled again, and when they
// lose frames of lossless classes.
type portWatch struct{ stop, done chan struct{} }

func (d *Daemon) watchPorts() *portWatch {
	w := &portWatch{make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(w.done)
		t := time.NewTicker(disabledPoll)
		defer t.Stop()
		was := map[string]string{} // by port; the value is the cause
		lost, next := map[string]lostFrames{}, time.Now()
		for {
			select {
			case <-w.stop:
				return
			case now := <-t.C:
				if d.logDisabled(was); now.After(next) {
					d.logLost(now, lost)
					next = now.Add(lostPoll)
				}
			}
		}
	}()
	return w
}

func (d *Daemon) logDisabled(was map[string]string) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, u := range d.units {
		for name, n := range u.numbers {
			port, by := metrics.PortName(u.name, name), u.sw.DisabledBy(uint16(n))
			switch {
			case by == was[port]:
			case by == "":
				d.log.Info("the port is open again", "port", port)
				delete(was, port)
			default:
				d.log.Warn("the port is err-disabled", "port", port, "by", by)
				was[port] = by
			}
		}
	}
}

func (w *portWatch) close() {
	if w != nil {
		close(w.stop)
		<-w.done
	}
}
