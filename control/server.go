package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/dataplane"
	"gswitch/frame"
	"gswitch/metrics"
	"gswitch/section"
	"gswitch/vswitch"
)

// Handler serves the API, /metrics, /healthz and /readyz.
func (d *Daemon) Handler() http.Handler {
	return Handler(usage, d.Snapshot, func(opts ...connect.HandlerOption) (string, http.Handler) {
		return api.NewControlHandler(&server{d: d}, opts...)
	})
}

// Endpoint returns the path and the handler of an API. To a person who calls it with the
// wrong content type it explains how to use it.
func Endpoint(usage string, serve func(...connect.HandlerOption) (string, http.Handler)) (string, http.Handler) {
	path, rpc := serve(connect.WithCodec(jsonCodec{}), connect.WithReadMaxBytes(maxDocument), connect.WithCompression("gzip", nil, nil))
	return path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// curl's default content type is none of the API's, whose own answer to it would
		// be empty.
		kind := r.Header.Get("Content-Type")
		switch {
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, usage, http.StatusMethodNotAllowed)
		case kind == "" || strings.HasPrefix(kind, "application/x-www-form-urlencoded"):
			http.Error(w, usage, http.StatusUnsupportedMediaType)
		default:
			rpc.ServeHTTP(w, r)
		}
	})
}

// usage explains how to call the API.
const usage = `gswitch: GET /metrics are the metrics of Prometheus, /healthz says that the daemon answers, /readyz that its ports are open. The API takes POST with JSON (or Connect, or gRPC):
  curl --unix-socket /run/gswitch/NAME.sock -H 'Content-Type: application/json' -d '{}' http://gswitch/gswitch.v1.Control/ListPorts
and over TCP only where control.api opens it (Authorization: Bearer, or a client's certificate).`

// server implements the API over a Daemon.
type server struct{ d *Daemon }

func (s *server) GetVersion(context.Context, *api.GetVersionRequest) (*api.Version, error) {
	d := s.d
	d.mu.RLock()
	defer d.mu.RUnlock()
	v := &api.Version{Version: d.opts.Version, Go: runtime.Version(), Kernel: kernelRelease(), Pid: int64(os.Getpid()),
		Socket: d.resolved.Control.Socket, UptimeSeconds: time.Since(d.start).Seconds(), Generation: d.state.Generation}
	for _, u := range d.units {
		v.Switches = append(v.Switches, u.name)
	}
	return v, nil
}

func (s *server) GetConfig(_ context.Context, r *api.GetConfigRequest) (*api.ConfigDocument, error) {
	d := s.d
	d.mu.RLock()
	defer d.mu.RUnlock()
	c := d.doc
	if r.Defaults {
		c = d.resolved
	}
	return &api.ConfigDocument{Yaml: string(c.YAML()), Generation: d.state.Generation, Source: d.source}, nil
}

func (s *server) Apply(_ context.Context, r *api.ApplyRequest) (*api.ApplyResponse, error) {
	file := cmp.Or(r.File, "document")
	c, err := config.Parse(file, []byte(r.Yaml))
	if err != nil {
		if !r.DryRun {
			s.d.refused()
		}
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	changes, err := s.d.Apply(c, file, r.DryRun)
	return s.applied(changes, r.DryRun, err)
}

func (s *server) applied(changes []section.Change, dry bool, err error) (*api.ApplyResponse, error) {
	if wrong := (section.Errors)(nil); errors.As(err, &wrong) {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err != nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, err)
	}
	r := &api.ApplyResponse{DryRun: dry}
	for _, c := range changes {
		r.Changes = append(r.Changes, c.String())
	}
	s.d.mu.RLock()
	r.Generation = s.d.state.Generation
	s.d.mu.RUnlock()
	return r, nil
}

func (s *server) Edit(_ context.Context, r *api.EditRequest) (*api.ApplyResponse, error) {
	changes, err := s.d.Edit(func(c *config.Config) error {
		sw, err := c.Find(r.Switch)
		if err != nil {
			return err
		}
		switch e := r.Edit.(type) {
		case *api.EditRequest_SetPort:
			return setPort(sw, e.SetPort)
		case *api.EditRequest_Set:
			if e.Set.Create {
				return sw.Add(e.Set.Table, e.Set.Acl, e.Set.Yaml)
			}
			return sw.Set(e.Set.Table, e.Set.Acl, e.Set.Yaml)
		case *api.EditRequest_Delete:
			return sw.Delete(e.Delete.Table, e.Delete.Acl, e.Delete.Key)
		}
		return errors.New("the request has none of set_port, set, delete")
	}, r.DryRun)
	return s.applied(changes, r.DryRun, err)
}

func setPort(sw *config.Switch, e *api.SetPort) error {
	p, err := sw.FindPort(e.Port)
	if err != nil {
		return err
	}
	if e.Enabled != nil {
		p.Enabled = e.Enabled
	}
	if err := editFaults(p, e.Faults); err != nil {
		return err
	}
	if e.Rate != nil {
		return p.Rate.UnmarshalText([]byte(*e.Rate))
	}
	return nil
}

func (s *server) ClearCounters(context.Context, *api.ClearCountersRequest) (*api.ClearCountersResponse, error) {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	d.baseline = d.snapshot()
	return &api.ClearCountersResponse{}, nil
}

func (s *server) FlushFDB(_ context.Context, r *api.FlushFDBRequest) (*api.FlushFDBResponse, error) {
	d := s.d
	if err := d.known(r.Switch, ""); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	out := &api.FlushFDBResponse{}
	for u := range d.chosen(r.Switch) {
		flush := &vswitch.FlushFDB{}
		if err := d.change(u, flush); err != nil {
			return nil, connect.NewError(connect.CodeFailedPrecondition, err)
		}
		out.Removed += uint64(flush.Removed)
	}
	return out, nil
}

func (s *server) Watch(ctx context.Context, r *api.WatchRequest, out *connect.ServerStream[api.Ports]) error {
	if err := s.d.known(r.Switch, ""); err != nil {
		return err
	}
	return StreamPorts(ctx, r.IntervalMs, out, func() (*api.Ports, frame.Time) {
		now := s.d.Snapshot()
		return s.ports(now, &api.ListRequest{Switch: r.Switch}), now.Engine.Now
	})
}

func (s *server) Capture(ctx context.Context, r *api.CaptureRequest, out *connect.ServerStream[api.CaptureResponse]) error {
	ports, err := s.d.enginePorts(r.Ports)
	if err != nil {
		return connect.NewError(connect.CodeNotFound, err)
	}
	return StreamCapture(ctx, s.d.engine, ports, s.d.stamps(), "gswitch "+s.d.opts.Version, r, out)
}

// enginePorts finds ports by "port" or "switch/port". No name means all ports.
func (d *Daemon) enginePorts(names []string) ([]*dataplane.Port, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var all []string
	var out []*dataplane.Port
	found := map[string]bool{}
	for _, u := range d.units {
		for name, p := range u.ports {
			full := metrics.PortName(u.name, name)
			all = append(all, full)
			if len(names) == 0 || slices.Contains(names, name) || slices.Contains(names, full) {
				found[name], found[full] = true, true
				out = append(out, p.open...)
			}
		}
	}
	for _, n := range names {
		if !found[n] {
			slices.Sort(all)
			return nil, fmt.Errorf("there is no port %q; there are %s", n, strings.Join(all, ", "))
		}
	}
	slices.SortFunc(out, func(a, b *dataplane.Port) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Number(), b.Number()))
	})
	return out, nil
}
