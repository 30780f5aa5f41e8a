package host

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"connectrpc.com/connect"

	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/frame"
)

// Parameters of the measurements of a worker's timing.
const (
	clockReads    = 10_000
	defaultProbes = 200
	maxProbes     = 2000
	startProbes   = 20
	// The pause between two probes, in which an adaptive worker goes to sleep. It varies,
	// so that probes do not synchronise with other periodic activity.
	probeGap = 500 * time.Microsecond
)

// clockRead measures the time to read the clock, in nanoseconds.
func clockRead(e *dataplane.Engine) float64 {
	from := time.Now()
	for range clockReads {
		e.Now()
	}
	return float64(time.Since(from)) / clockReads
}

// wakeUps measures the time from the wake-up call of a worker to the loop that notices
// it: the eventfd, the machine's scheduler, and whatever the worker is doing. A frame
// that arrives at an idle worker waits as long.
func wakeUps(ctx context.Context, e *dataplane.Engine, w *dataplane.Worker, probes int) ([]frame.Time, error) {
	spans := make([]frame.Time, 0, probes)
	for range probes {
		select {
		case <-ctx.Done():
			return spans, ctx.Err()
		case <-time.After(probeGap + rand.N(probeGap)):
		}
		var seen frame.Time
		rung := e.Now()
		if err := w.Do(func(frame.Time) { seen = e.Now() }); err != nil {
			return spans, err
		}
		spans = append(spans, seen-rung)
	}
	return spans, nil
}

func (s *server) Punctuality(ctx context.Context, r *api.PunctualityRequest) (*api.PunctualityReport, error) {
	u, err := s.d.host(r.Host)
	if err != nil {
		return nil, connect.NewError(connect.CodeNotFound, err)
	}
	probes := int(min(r.Probes, maxProbes))
	if probes == 0 {
		probes = defaultProbes
	}
	spans, err := wakeUps(ctx, u.engine, u.worker, probes)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	poll := u.engine.Stats().Workers[u.worker.Index()].Poll
	return &api.PunctualityReport{ClockRead: clockRead(u.engine), Wake: percentiles(spans), Poll: poll.String()}, nil
}

// logPunctuality logs at start-up how the machine affects the timing of the workers: the
// cheap part of a calibration.
func (d *Daemon) logPunctuality(ctx context.Context) {
	for i := range d.engine.Workers() {
		spans, err := wakeUps(ctx, d.engine, d.engine.Worker(i), startProbes)
		if err != nil {
			return // the daemon is ending
		}
		slices.Sort(spans)
		d.log.Info("punctuality", "worker", i, "wake_p50", spans[len(spans)/2].Duration(), "wake_max", spans[len(spans)-1].Duration(),
			"clock_read", time.Duration(clockRead(d.engine)), "poll", d.engine.Stats().Workers[i].Poll)
	}
}
