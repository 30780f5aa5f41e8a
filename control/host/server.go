package host

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gswitch/gswitch/control"
	"github.com/gswitch/gswitch/control/api"
	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/hostnic"
	"github.com/gswitch/gswitch/hostnic/agent"
	"github.com/gswitch/gswitch/metrics"
)

// usage tells people how to speak to the API.
const usage = `ghost: GET /metrics are the metrics of Prometheus. The API takes POST with JSON (or Connect, or gRPC):
  curl -H 'Content-Type: application/json' -d '{}' http://HOST:PORT/gswitch.v1.Host/GetHost
  curl --unix-socket /run/ghost/NAME.sock -H 'Content-Type: application/json' -d '{}' http://ghost/gswitch.v1.Host/GetHost`

// Handler serves the API and /metrics.
func (d *Daemon) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(control.Endpoint(usage, func(opts ...connect.HandlerOption) (string, http.Handler) {
		return api.NewHostHandler(&server{d}, opts...)
	}))
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.NewRegistry(d.Snapshot), promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, usage) })
	return mux
}

// server implements the API over a Daemon.
type server struct{ d *Daemon }

func (s *server) GetHost(context.Context, *api.GetHostRequest) (*api.HostStatus, error) {
	d, c := s.d, s.d.conf
	snap := d.Snapshot()
	h := &snap.Hosts[0]
	n := &h.Counts
	out := &api.HostStatus{
		Version: d.opts.Version, Pid: int64(os.Getpid()), Socket: c.Control.Socket, UptimeSeconds: time.Since(d.start).Seconds(),
		Name: c.Name, Interface: c.Interface, Netns: c.NetNS, Address: c.Address.String(), Mac: d.mac.String(), Rate: uint64(c.Rate), BaseRtt: uint64(c.BaseRTT),
		Payload: uint32(c.Payload), Congestion: c.Congestion, Telemetry: c.Telemetry.Format, Recovery: c.Recovery, Serving: h.Serving,
		RxFrames: n.RxFrames, RxBytes: n.RxBytes, TxFrames: n.TxFrames, TxBytes: n.TxBytes, Retransmissions: n.Retransmissions, Timeouts: n.Timeouts,
		MessagesSent: n.MessagesSent, MessagesReceived: n.MessagesReceived, QueuePairs: uint32(n.QPsOpen),
	}
	if c.Gateway.IsValid() {
		out.Gateway = c.Gateway.String()
	}
	for i := range h.Links {
		l := &h.Links[i]
		out.State, out.XdpMode, out.Warnings = l.State, l.Mode.String(), append(out.Warnings, l.Warnings...)
	}
	for reason, frames := range n.Drops {
		if frames > 0 {
			out.Drops = append(out.Drops, &api.HostDrop{Reason: frame.Reason(reason).String(), Frames: frames})
		}
	}
	configured := map[int]bool{}
	for _, class := range c.PFC.Classes {
		configured[class] = true
	}
	for class := range 8 {
		f := &h.Flow
		if !configured[class] && f.RxXOFF[class]|f.RxXON[class]|f.TxXOFF[class]|f.TxXON[class] == 0 {
			continue
		}
		out.Pfc = append(out.Pfc, &api.HostPFCClass{Class: uint32(class), Paused: h.Paused>>class&1 != 0, RxXoff: f.RxXOFF[class], RxXon: f.RxXON[class],
			TxXoff: f.TxXOFF[class], TxXon: f.TxXON[class], PausedSeconds: f.PausedTime[class].Seconds(), AskedSeconds: f.RequestTime[class].Seconds()})
	}
	out.Timing = timing(snap, h)
	return out, nil
}

func timing(snap *metrics.Snapshot, h *metrics.Host) *api.HostTiming {
	w := &snap.Engine.Workers[0]
	t := &api.HostTiming{Poll: w.Poll.String(), Cpu: -1, BusyRatio: w.BusyShare(),
		FrameLateP50: uint64(h.Late.Quantile(0.5)), FrameLateP99: uint64(h.Late.Quantile(0.99)), FrameLateMax: uint64(h.Late.Quantile(1)),
		TimerLateP50: w.Lateness.Quantile(0.5), TimerLateP99: w.Lateness.Quantile(0.99), TimerLateMax: w.Lateness.Max}
	if w.Pin {
		t.Cpu = int32(w.CPU)
	}
	return t
}

var serviceNames = [...]string{agent.Messages: "messages", agent.Memory: "memory", agent.Probe: "probe"}

func (s *server) ListQueuePairs(context.Context, *api.ListQueuePairsRequest) (*api.QueuePairs, error) {
	out := &api.QueuePairs{}
	err := s.d.worker.Do(func(frame.Time) {
		a := s.d.agent
		for _, t := range a.Transfers(nil) {
			if v, err := a.NIC().QP(t.Local); err == nil {
				q := queuePair(&v)
				q.Peer, q.Role, q.Service, q.Congestion = t.To.String(), "active", serviceNames[t.Service], t.CC
				out.QueuePairs = append(out.QueuePairs, q)
			}
		}
		for _, t := range a.Sessions(nil) {
			if v, err := a.NIC().QP(t.QPN); err == nil && !t.Closed {
				q := queuePair(&v)
				q.Peer, q.Role, q.Service, q.Congestion = t.Peer.String(), "passive", serviceNames[t.Service], t.CC
				out.QueuePairs = append(out.QueuePairs, q)
			}
		}
	})
	return out, err
}

func queuePair(v *hostnic.QPView) *api.QueuePair {
	q := &api.QueuePair{Number: v.QPN, Remote: v.Remote, Class: uint32(v.Class), State: v.State, Rate: v.Rate, Window: v.Window, InFlight: v.InFlight, Acked: v.Acked,
		TxFrames: v.Stats.TxFrames, TxBytes: v.Stats.TxBytes, RxFrames: v.Stats.RxFrames, RxBytes: v.Stats.RxBytes, Retransmitted: v.Retransmitted,
		Naks: v.Stats.Naks, Timeouts: v.Stats.Timeouts, Cnps: v.Stats.CNPs, Marks: v.Stats.CEs}
	v.Inspect(func(name string, value float64) {
		q.Internals = append(q.Internals, &api.Internal{Name: name, Value: value})
	})
	return q
}

// Intervals of reports.
const (
	defaultInterval = 200 * time.Millisecond
	minInterval     = 20 * time.Millisecond
)

func (s *server) Serve(ctx context.Context, r *api.ServeRequest, out *connect.ServerStream[api.Sessions]) error {
	if err := s.d.serve(); err != nil {
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	defer s.d.unserve()
	interval := time.Duration(r.IntervalMs) * time.Millisecond
	if interval == 0 {
		interval = defaultInterval
	}
	tick := time.NewTicker(max(interval, minInterval))
	defer tick.Stop()
	told, known := map[uint64]bool{}, map[uint64]bool{} // whether the end of a session was reported
	for {
		var list []agent.Session
		if err := s.d.worker.Do(func(frame.Time) { list = s.d.agent.Sessions(list) }); err != nil {
			return connect.NewError(connect.CodeUnavailable, err)
		}
		m := &api.Sessions{}
		clear(known) // of those that are remembered
		for i := range list {
			t := &list[i]
			if t.Service == agent.Probe {
				continue
			}
			if !told[t.ID] {
				m.Sessions = append(m.Sessions, session(t))
			}
			known[t.ID] = t.Closed
		}
		told, known = known, told
		if err := out.Send(m); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func session(t *agent.Session) *api.Session {
	m := &api.Session{Id: t.ID, Peer: t.Peer.String(), QueuePair: t.QPN, Service: serviceNames[t.Service], MessageSize: t.Size, Opened: uint64(t.Opened),
		Bytes: t.Bytes, Messages: t.Messages, Corrupt: t.Corrupt, Closed: t.Closed}
	if t.Last > t.First {
		m.Goodput = 8 * float64(t.Bytes) / (t.Last - t.First).Seconds()
	}
	return m
}
