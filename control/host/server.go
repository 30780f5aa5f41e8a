package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/hostnic/agent"
	"gswitch/metrics"
	"gswitch/section"
)

// usage explains how to call the API.
const usage = `ghost: GET /metrics are the metrics of Prometheus, /healthz says that the daemon answers, /readyz that its ports are open. The API takes POST with JSON (or Connect, or gRPC):
  curl --unix-socket /run/ghost/NAME.sock -H 'Content-Type: application/json' -d '{}' http://ghost/gswitch.v1.Host/GetHost
and over TCP only where control.api opens it (Authorization: Bearer, or a client's certificate).`

// Handler serves the API, /metrics, /healthz and /readyz.
func (d *Daemon) Handler() http.Handler {
	return control.Handler(usage, d.Snapshot, func(opts ...connect.HandlerOption) (string, http.Handler) {
		return api.NewHostHandler(&server{d}, opts...)
	})
}

// server implements the API over a Daemon.
type server struct{ d *Daemon }

func (s *server) ListHosts(_ context.Context, r *api.ListHostsRequest) (*api.HostList, error) {
	if _, err := s.d.hosts(r.Host); err != nil {
		return nil, connect.NewError(connect.CodeNotFound, err)
	}
	out := &api.HostList{}
	for _, h := range s.d.status() {
		if r.Host == "" || r.Host == h.Name {
			out.Hosts = append(out.Hosts, h)
		}
	}
	return out, nil
}

func (s *server) GetHost(_ context.Context, r *api.GetHostRequest) (*api.HostStatus, error) {
	u, err := s.d.host(r.Host)
	if err != nil {
		return nil, connect.NewError(connect.CodeNotFound, err)
	}
	for _, h := range s.d.status() {
		if h.Name == u.name {
			return h, nil
		}
	}
	return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("host %s has just been taken down", u.name))
}

func (s *server) GetConfig(context.Context, *api.GetConfigRequest) (*api.ConfigDocument, error) {
	d := s.d
	d.mu.RLock()
	defer d.mu.RUnlock()
	return &api.ConfigDocument{Yaml: string(d.doc.YAML()), Generation: d.state.Generation, Source: d.source}, nil
}

func (s *server) Apply(_ context.Context, r *api.ApplyRequest) (*api.ApplyResponse, error) {
	file := cmp.Or(r.File, "document")
	next, err := config.ParseHosts(file, []byte(r.Yaml))
	if err != nil {
		if !r.DryRun {
			s.d.mu.Lock()
			s.d.refused()
			s.d.mu.Unlock()
		}
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	changes, consequences, err := s.d.Apply(next, file, r.DryRun)
	if err != nil {
		return nil, applyFailed(err)
	}
	s.d.mu.RLock()
	defer s.d.mu.RUnlock()
	return applied(r.DryRun, s.d.state.Generation, changes, consequences), nil
}

func applyFailed(err error) error {
	if wrong := (control.ConfigError{}); errors.As(err, &wrong) {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	return connect.NewError(connect.CodeFailedPrecondition, err)
}

func applied(dry bool, generation uint64, changes []section.Change, consequences []string) *api.ApplyResponse {
	m := &api.ApplyResponse{DryRun: dry, Generation: generation, Consequences: consequences}
	for _, c := range changes {
		m.Changes = append(m.Changes, c.String())
	}
	return m
}

func (s *server) Watch(ctx context.Context, r *api.WatchHostsRequest, out *connect.ServerStream[api.Ports]) error {
	if _, err := s.d.hosts(r.Host); err != nil {
		return connect.NewError(connect.CodeNotFound, err)
	}
	return control.StreamPorts(ctx, r.IntervalMs, out, func() (*api.Ports, frame.Time) {
		snap, m := s.d.Snapshot(), &api.Ports{}
		for i := range snap.Hosts {
			if h := &snap.Hosts[i]; r.Host == "" || r.Host == h.Name {
				m.Ports = append(m.Ports, port(h))
			}
		}
		return m, snap.Engine.Now
	})
}

// port describes the port of a host as ports of switches are described.
func port(h *metrics.Host) *api.Port {
	m := control.LinkOf(h.Links)
	m.Switch, m.Enabled = h.Name, true
	m.RxFrames, m.RxBytes, m.TxFrames, m.TxBytes = h.Counts.RxFrames, h.Counts.RxBytes, h.Counts.TxFrames, h.Counts.TxBytes
	m.Name = m.Interface
	for _, n := range h.Counts.Drops {
		m.Drops += n
	}
	m.Drops += m.Xsk.TxDropped + m.Xsk.RxDropped + m.Xsk.RxRingFull
	return m
}

func (s *server) Capture(ctx context.Context, r *api.CaptureRequest, out *connect.ServerStream[api.CaptureResponse]) error {
	d := s.d
	names := r.Ports
	if len(names) == 0 {
		names = []string{""}
	}
	d.mu.RLock()
	var ports []*dataplane.Port
	stamps := control.Stamps{}
	var err error
	for _, name := range names {
		var u *unit
		if name == "" {
			for _, u := range d.units {
				ports = append(ports, u.port)
			}
		} else if u, err = chosen(d.units, name); err == nil {
			ports = append(ports, u.port)
		} else {
			break
		}
	}
	for _, u := range d.units {
		stamps.Add(u.port, u.worker, u.agent.NIC().Timekeeper())
	}
	d.mu.RUnlock()
	if err != nil {
		return connect.NewError(connect.CodeNotFound, err)
	}
	return control.StreamCapture(ctx, d.engine, ports, stamps, "ghost "+d.opts.Version, r, out)
}

// Intervals of reports of sessions.
const (
	defaultInterval = 200 * time.Millisecond
	minInterval     = 20 * time.Millisecond
)

func (s *server) Serve(ctx context.Context, r *api.ServeRequest, out *connect.ServerStream[api.Sessions]) error {
	u, err := s.d.host(r.Host)
	if err != nil {
		return connect.NewError(connect.CodeNotFound, err)
	}
	if err := u.serve(); err != nil {
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	defer u.unserve()
	interval := time.Duration(r.IntervalMs) * time.Millisecond
	if interval == 0 {
		interval = defaultInterval
	}
	tick := time.NewTicker(max(interval, minInterval))
	defer tick.Stop()
	reported, known := map[uint64]bool{}, map[uint64]bool{} // whether the end of a session has been reported
	for {
		var list []agent.Session
		if err := u.worker.Do(func(frame.Time) { list = u.agent.Sessions(list) }); err != nil {
			return connect.NewError(connect.CodeUnavailable, err)
		}
		m := &api.Sessions{}
		clear(known) // the sessions that still exist
		for i := range list {
			t := &list[i]
			if t.Service == agent.Probe {
				continue
			}
			if !reported[t.ID] {
				m.Sessions = append(m.Sessions, session(t))
			}
			known[t.ID] = t.Closed
		}
		reported, known = known, reported
		if err := out.Send(m); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-u.gone:
			return connect.NewError(connect.CodeUnavailable, fmt.Errorf("host %s was taken down by a change of the configuration", u.name))
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

// status describes all hosts.
func (d *Daemon) status() []*api.HostStatus {
	d.mu.RLock()
	defer d.mu.RUnlock()
	snap := d.snapshot()
	out := make([]*api.HostStatus, len(d.units))
	for i, u := range d.units {
		out[i] = describe(u, snap, &snap.Hosts[i])
		out[i].Version, out[i].Pid, out[i].Socket, out[i].UptimeSeconds = d.opts.Version, int64(os.Getpid()), d.doc.Control.Socket, time.Since(d.start).Seconds()
		out[i].Generation = d.state.Generation
	}
	return out
}
