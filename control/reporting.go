package control

import (
	"log/slog"
	"time"

	"gswitch/config"
	"gswitch/telemetry"
	"gswitch/telemetry/export"
)

const (
	// reportPoll is the interval at which reports are taken from the nodes, whose
	// outboxes have room for several batches.
	reportPoll = 2 * time.Millisecond
	// reportPatience is how long a daemon that is ending waits for its last reports to be
	// acknowledged.
	reportPatience = 2 * time.Second
)

// Reporting exports the reports of all nodes of a daemon to a collector.
type Reporting struct {
	*export.Exporter
	log        *slog.Logger
	stop, done chan struct{}
}

// Report updates the export of reports to match the document. now is the present one, nil
// for none; the result is likewise. take passes the reports that are ready to the
// exporter.
func Report(now *Reporting, log *slog.Logger, c *config.Export, hello func() telemetry.Hello, take func(*export.Exporter)) *Reporting {
	switch {
	case c == nil:
		now.End()
		return nil
	case now != nil:
		now.Change(c.To, uint64(c.Memory), hello())
		return now
	}
	x := &Reporting{Exporter: export.New(log, c.To, uint64(c.Memory), hello()), log: log, stop: make(chan struct{}), done: make(chan struct{})}
	go x.run(take)
	return x
}

// End takes the remaining reports and waits briefly for their acknowledgement. The
// returned channel is closed then.
func (x *Reporting) End() <-chan struct{} {
	if x == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	close(x.stop)
	return x.done
}

// run takes reports until it is stopped, and then once more.
func (x *Reporting) run(take func(*export.Exporter)) {
	defer close(x.done)
	t := time.NewTicker(reportPoll)
	defer t.Stop()
	for last := false; ; {
		take(x.Exporter)
		if last {
			break
		}
		select {
		case <-x.stop:
			last = true
		case <-t.C:
		}
	}
	x.Close(reportPatience)
	if n := x.Counts().Lost; n > 0 {
		x.log.Warn("reports were lost", "reports", n)
	}
}
