package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"connectrpc.com/connect"

	"gswitch/cc"
	"gswitch/config"
	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	inband "gswitch/int"
	"gswitch/transport"
)

// Limits of a transfer: the memory for its messages and for what is kept of each.
const (
	maxSize  = agent.MaxSize
	maxCount = agent.MaxCount
	maxDepth = 4096
	maxPings = 100_000 // each keeps its path

	maxInterval = frame.Time(24 * time.Hour)
)

// transfer makes the transfer that a request asks for, or returns what is wrong with the
// request.
func transfer(h *config.Host, r *api.TransferRequest) (*agent.Transfer, error) {
	to, err := netip.ParseAddr(r.To)
	if err != nil {
		return nil, fmt.Errorf("%q is not an IP address; write 10.0.0.2 or fd00::2", r.To)
	}
	t := &agent.Transfer{To: to, Size: r.Size, Count: int(r.Count), Depth: int(max(r.Depth, 1)), Interval: frame.Time(r.Interval), Limit: float64(r.Rate)}
	switch r.Operation {
	case "send":
	case "write":
		t.Service, t.Verb = agent.Memory, hostnic.Write
	case "read":
		t.Service, t.Verb = agent.Memory, hostnic.Read
	case "ping":
		t.Service, t.Trace = agent.Probe, true
	default:
		return nil, fmt.Errorf("operation %q: must be send, write, read or ping", r.Operation)
	}
	switch {
	case r.Size > maxSize:
		return nil, fmt.Errorf("messages of %d bytes are longer than %d", r.Size, maxSize)
	case r.Count == 0 || r.Count > maxCount:
		return nil, fmt.Errorf("%d messages are not between 1 and %d", r.Count, maxCount)
	case t.Trace && r.Count > maxPings:
		return nil, fmt.Errorf("%d pings are more than %d", r.Count, maxPings)
	case r.Depth > maxDepth:
		return nil, fmt.Errorf("%d messages at once are more than %d", r.Depth, maxDepth)
	case r.Interval > uint64(maxInterval):
		return nil, fmt.Errorf("an interval of %d ns is not between 0 and %v", int64(r.Interval), maxInterval.Duration())
	case r.Class > 7 || r.Class < -1:
		return nil, fmt.Errorf("class %d is not between 0 and 7", r.Class)
	}
	if t.Class = uint8(r.Class); r.Class < 0 {
		t.Class = uint8(h.Class)
	}
	if t.INT, err = config.ParseTelemetry(cmp.Or(r.Telemetry, h.Telemetry.Format)); err != nil {
		return nil, err
	}
	if t.Recovery, err = transport.Lookup(cmp.Or(r.Recovery, h.Recovery)); err != nil {
		return nil, err
	}
	if t.Recovery.Capped {
		t.Cap = h.Cap()
	}
	t.CC = cmp.Or(r.Congestion, h.Congestion)
	options := maps.Clone(h.OptionsOf(t.CC))
	if options == nil {
		options = map[string]string{}
	}
	maps.Copy(options, r.CongestionOptions)
	if t.CC == "none" && r.Rate > 0 && options["window"] == "" {
		// Only the rate limits it.
		options["window"] = "none"
	}
	t.Options = options
	if t.New, err = cc.Factory(t.CC, options); err != nil {
		return nil, err
	}
	if err := config.NeedsTelemetry(t.CC, t.INT.String()); err != nil {
		return nil, err
	}
	return t, nil
}

// progress is the interval at which a transfer is polled.
const progress = 10 * time.Millisecond

func (s *server) Transfer(ctx context.Context, r *api.TransferRequest, out *connect.ServerStream[api.TransferReport]) error {
	d := s.d
	u, err := d.host(r.Host)
	if err != nil {
		return connect.NewError(connect.CodeNotFound, err)
	}
	d.learn(ctx, u, r)
	h := u.conf.Load()
	t, err := transfer(h, r)
	if err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	release, err := d.allocate(t)
	if err != nil {
		return connect.NewError(connect.CodeResourceExhausted, err)
	}
	defer release()
	begin := &agent.StartTransfer{Transfer: t}
	if err := u.command(begin); err != nil {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	if begin.Refused != nil {
		return connect.NewError(connect.CodeInvalidArgument, begin.Refused)
	}
	// If the worker has ended, it has aborted the transfer.
	defer func() { _ = u.command(agent.EndTransfer{Number: t.Number}) }()
	tick := time.NewTicker(progress)
	defer tick.Stop()
	sent := 0
	for first := true; ; first = false {
		var m *api.TransferReport
		// What has been written does not change any more, so it is read without a copy.
		var samples []agent.Sample
		var paths []inband.Path
		err := u.worker.Do(func(frame.Time) {
			m = &api.TransferReport{State: t.State.String(), Done: t.State == agent.Ended, LocalQp: t.Local, RemoteQp: t.Remote}
			if !r.Summary {
				samples = t.Samples[sent:]
			}
			if t.Trace {
				paths = t.Paths[sent:]
			}
		})
		if err != nil {
			return connect.NewError(connect.CodeUnavailable, err)
		}
		for i, e := range samples {
			sample := &api.TransferSample{Message: uint32(sent + i), Start: uint64(e.Start), End: uint64(e.End), Rtt: uint64(e.RTT)}
			if paths != nil {
				sample.Hops = hops(h, &paths[i])
			}
			m.Samples = append(m.Samples, sample)
		}
		sent += len(samples)
		if m.Done {
			// Nothing else accesses it any more.
			m.Result = result(h, t)
			if t.Err != nil {
				m.Error = t.Err.Error()
			}
		}
		if first || m.Done || len(m.Samples) > 0 {
			if err := out.Send(m); err != nil || m.Done {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return connect.NewError(connect.CodeCanceled, errors.New("the transfer was given up"))
		case <-tick.C:
		}
	}
}

// hops returns the telemetry that frames collected along their path.
func hops(h *config.Host, p *inband.Path) (out []*api.Hop) {
	for i := range p.N {
		out = append(out, hop(h, &p.Hops[i]))
	}
	return out
}

// hop describes one hop. If the format does not carry the rate of a link, it takes the
// rate that the configuration states for all links.
func hop(h *config.Host, at *inband.Hop) *api.Hop {
	m := &api.Hop{Switch: at.Node, Port: uint32(at.Port), Rate: at.Rate, Queue: at.Q, Timestamp: at.TS}
	if links := h.Telemetry.Links; m.Rate == 0 && len(links) == 1 {
		m.Rate = uint64(links[0])
	}
	if m.Rate > 0 {
		m.QueueDelay = uint64(float64(at.Q) * 8e9 / float64(m.Rate))
	}
	return m
}

// result summarises a transfer that has ended.
func result(h *config.Host, t *agent.Transfer) *api.TransferResult {
	r := &api.TransferResult{Congestion: t.CC, Telemetry: t.INT.String(), Recovery: t.Recovery.String(), Bytes: uint64(len(t.Samples)) * t.Size,
		Retransmitted: t.Rtx, Timeouts: t.Sent.Timeouts, Marks: t.Watch.CEs,
		VerifiedBytes: t.Received.Bytes, ReceivedMessages: t.Received.Messages, Corrupt: t.Received.Corrupt}
	if t.Opened > t.Asked {
		r.Handshake = uint64(t.Opened - t.Asked)
	}
	if t.Service == agent.Memory && t.Verb == hostnic.Read && t.Err == nil {
		if r.VerifiedBytes = t.Size; !agent.Matches(t.Data, 0) {
			r.Corrupt = 1
		}
	}
	if n := len(t.Samples); n > 0 {
		spans := make([]frame.Time, n)
		first, last := t.Samples[0].Start, frame.Time(0)
		for i, s := range t.Samples {
			spans[i], last = s.End-s.Start, max(last, s.End)
		}
		if last > first {
			r.Elapsed, r.Goodput = uint64(last-first), 8*float64(r.Bytes)/(last-first).Seconds()
		}
		r.Completion = percentiles(spans)
	}
	w := &t.Watch
	if n := w.RTT.Total(); n > 0 {
		bound := func(p float64) uint64 { return uint64(min(w.RTT.Quantile(p), w.MaxRTT)) }
		r.Rtt = &api.Percentiles{Count: n, Min: uint64(w.MinRTT), Mean: w.RTT.Mean(), P50: bound(0.5), P95: bound(0.95), P99: bound(0.99), Max: uint64(w.MaxRTT)}
	}
	slowest := uint64(h.Rate)
	for i := range w.Path.N {
		q := &w.Queues[i]
		last := hop(h, &w.Path.Hops[i])
		if last.Rate > 0 {
			slowest = min(slowest, last.Rate)
		}
		bound := func(p float64) uint64 { return min(uint64(q.Bytes.Quantile(p)), q.Max) }
		r.Path = append(r.Path, &api.HopQueue{Last: last, QueueP50: bound(0.5), QueueP95: bound(0.95), QueueP99: bound(0.99), QueueMax: q.Max})
	}
	r.Bdp = uint64(float64(slowest) / 8 * float64(h.T()) / 1e9)
	return r
}

// percentiles sorts spans and returns their percentiles.
func percentiles(spans []frame.Time) *api.Percentiles {
	slices.Sort(spans)
	sum := 0.0
	for _, s := range spans {
		sum += float64(s)
	}
	n := len(spans)
	at := func(p float64) uint64 { return uint64(spans[min(n-1, int(p*float64(n)))]) }
	return &api.Percentiles{Count: uint64(n), Min: uint64(spans[0]), Mean: sum / float64(n), P50: at(0.5), P95: at(0.95), P99: at(0.99), Max: uint64(spans[n-1])}
}
