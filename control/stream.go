package control

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"gswitch/capture"
	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/frame"
)

// Interval of StreamPorts: the default, and the minimum.
const (
	defaultInterval = time.Second
	minInterval     = 50 * time.Millisecond
)

// StreamPorts sends ports periodically until ctx ends, from the second time on with the
// rates at which their counters grow. read returns the ports and the time of reading.
func StreamPorts(ctx context.Context, intervalMs uint32, out *connect.ServerStream[api.Ports], read func() (*api.Ports, frame.Time)) error {
	interval := time.Duration(intervalMs) * time.Millisecond
	if interval == 0 {
		interval = defaultInterval
	}
	tick := time.NewTicker(max(interval, minInterval))
	defer tick.Stop()
	var last *api.Ports
	var lastAt frame.Time
	for {
		ports, at := read()
		if last != nil {
			rates(ports, last, (at - lastAt).Seconds())
		}
		if err := out.Send(ports); err != nil {
			return err
		}
		last, lastAt = ports, at
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// rates fills in how fast the counters in now have grown since before.
func rates(now, before *api.Ports, seconds float64) {
	if seconds <= 0 {
		return
	}
	for _, p := range now.Ports {
		i := slices.IndexFunc(before.Ports, func(o *api.Port) bool { return o.Switch == p.Switch && o.Name == p.Name })
		if i < 0 {
			continue
		}
		o := before.Ports[i]
		per := func(a, b uint64) float64 { return max(0, float64(a)-float64(b)) / seconds }
		p.RxFramesPerSecond, p.RxBitsPerSecond = per(p.RxFrames, o.RxFrames), 8*per(p.RxBytes, o.RxBytes)
		p.TxFramesPerSecond, p.TxBitsPerSecond = per(p.TxFrames, o.TxFrames), 8*per(p.TxBytes, o.TxBytes)
		p.DropsPerSecond = per(p.Drops, o.Drops)
	}
}

// StreamCapture captures at ports of an engine until ctx ends, with time stamps from
// their clocks.
func StreamCapture(ctx context.Context, e *dataplane.Engine, ports []*dataplane.Port, stamps Stamps, comment string, r *api.CaptureRequest, out *connect.ServerStream[api.CaptureResponse]) error {
	spec := dataplane.CaptureSpec{Ports: ports, In: r.In, Out: r.Out, Drops: r.Drops, SnapLen: int(r.Snap), Comment: comment}
	stamps.use(&spec, e)
	if r.Filter != "" {
		f, err := capture.ParseFilter(r.Filter)
		if err != nil {
			return connect.NewError(connect.CodeInvalidArgument, err)
		}
		spec.Filter = f
	}
	w := &captureWriter{out: out}
	c, err := e.Capture(w, spec)
	if err != nil {
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	w.of.Store(c)
	select {
	case <-ctx.Done():
	case <-c.Done():
	}
	if err := c.Close(); err != nil && ctx.Err() == nil {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return nil
}

// captureWriter sends what is written to it, together with the statistics of the capture:
// a client that ends it does not see those at the end of the stream.
type captureWriter struct {
	out *connect.ServerStream[api.CaptureResponse]
	of  atomic.Pointer[dataplane.Capture] // unknown for the first blocks
}

func (w *captureWriter) Write(b []byte) (int, error) {
	m := &api.CaptureResponse{Pcapng: b}
	if c := w.of.Load(); c != nil {
		m.Dropped = c.Stats().Dropped
	}
	if err := w.out.Send(m); err != nil {
		return 0, err
	}
	return len(b), nil
}
