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
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gswitch/gswitch/capture"
	"github.com/gswitch/gswitch/config"
	"github.com/gswitch/gswitch/control/api"
	"github.com/gswitch/gswitch/dataplane"
	"github.com/gswitch/gswitch/metrics"
)

// Handler serves the API and /metrics.
func (d *Daemon) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(Endpoint(usage, func(opts ...connect.HandlerOption) (string, http.Handler) {
		return api.NewControlHandler(&server{d: d}, opts...)
	}))
	registry := metrics.NewRegistry(d.Snapshot)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, usage) })
	return mux
}

// Endpoint returns the path and the handler of an API, which tells people how
// to speak to it.
func Endpoint(usage string, serve func(...connect.HandlerOption) (string, http.Handler)) (string, http.Handler) {
	path, rpc := serve(connect.WithCodec(jsonCodec{}), connect.WithReadMaxBytes(maxRequest))
	return path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// What curl sends by itself is no content type of the API, whose own
		// answer to that is empty.
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

// usage tells people how to speak to the API.
const usage = `gswitch: GET /metrics are the metrics of Prometheus. The API takes POST with JSON (or Connect, or gRPC):
  curl -H 'Content-Type: application/json' -d '{}' http://HOST:PORT/gswitch.v1.Control/ListPorts
  curl --unix-socket /run/gswitch/NAME.sock -H 'Content-Type: application/json' -d '{}' http://gswitch/gswitch.v1.Control/ListPorts`

// maxRequest bounds a document that is applied: half a million routes take
// about 40 MB.
const maxRequest = 256 << 20

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

func (s *server) applied(changes []config.Change, dry bool, err error) (*api.ApplyResponse, error) {
	if wrong := (config.Errors)(nil); errors.As(err, &wrong) {
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
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := &api.FlushFDBResponse{}
	for u := range d.chosen(r.Switch) {
		out.Removed += uint64(u.sw.FDB().Flush(false))
	}
	return out, nil
}

// defaultInterval is how often Watch speaks if it is not told.
const (
	defaultInterval = time.Second
	minInterval     = 50 * time.Millisecond
)

func (s *server) Watch(ctx context.Context, r *api.WatchRequest, out *connect.ServerStream[api.Ports]) error {
	if err := s.d.known(r.Switch, ""); err != nil {
		return err
	}
	interval := time.Duration(r.IntervalMs) * time.Millisecond
	if interval == 0 {
		interval = defaultInterval
	}
	tick := time.NewTicker(max(interval, minInterval))
	defer tick.Stop()
	var last *metrics.Snapshot
	for {
		now := s.d.Snapshot()
		ports := s.ports(now, &api.ListRequest{Switch: r.Switch})
		if last != nil {
			rates(ports, s.ports(last, &api.ListRequest{Switch: r.Switch}), (now.Engine.Now - last.Engine.Now).Seconds())
		}
		if err := out.Send(ports); err != nil {
			return err
		}
		last = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// rates fills in how fast the counters of now grew since before.
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

func (s *server) Capture(ctx context.Context, r *api.CaptureRequest, out *connect.ServerStream[api.CaptureResponse]) error {
	spec := dataplane.CaptureSpec{In: r.In, Out: r.Out, Drops: r.Drops, SnapLen: int(r.Snap), Comment: "gswitch " + s.d.opts.Version}
	if r.Filter != "" {
		f, err := capture.ParseFilter(r.Filter)
		if err != nil {
			return connect.NewError(connect.CodeInvalidArgument, err)
		}
		spec.Filter = f
	}
	var err error
	if spec.Ports, err = s.d.enginePorts(r.Ports); err != nil {
		return connect.NewError(connect.CodeNotFound, err)
	}
	w := &captureWriter{out: out}
	c, err := s.d.engine.Capture(w, spec)
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

// captureWriter sends what is written to it, and how the capture fares: a
// client that ends it does not see the statistics at the end of the stream.
type captureWriter struct {
	out *connect.ServerStream[api.CaptureResponse]
	of  atomic.Pointer[dataplane.Capture] // not known for the first blocks
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

// enginePorts finds ports by "port" or "switch/port". No name is all of them.
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
