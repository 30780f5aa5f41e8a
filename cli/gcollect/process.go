package gcollect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gswitch/control"
	"gswitch/control/cli"
	"gswitch/control/privilege"
)

// process is what runs until its context or one of its jobs ends.
type process struct {
	log      *slog.Logger
	registry *prometheus.Registry
	clients  control.Clients // of /metrics
	jobs     []func(context.Context) error
}

func newProcess(log *slog.Logger) *process {
	p := &process{log: log, registry: prometheus.NewRegistry()}
	p.registry.MustRegister(collectors.NewGoCollector())
	return p
}

// add adds jobs.
func (p *process) add(jobs ...func(context.Context) error) { p.jobs = append(p.jobs, jobs...) }

// serveMetrics opens an address for /metrics and /healthz, and adds what answers there: so many connections, for as
// long, as daemons do. It returns where that is.
func (p *process) serveMetrics(address string, names []string) (string, error) {
	l, err := control.ListenMetrics(address, names, "--metrics-name")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", control.Metrics(p.registry))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	p.add(func(ctx context.Context) error { return control.Serve(ctx, mux, []net.Listener{l}, &p.clients) })
	return l.Addr().String(), nil
}

// run drops the privileges that are not needed, says on out and to systemd that name is ready, and runs the jobs until
// one of them or ctx ends. It waits for all of them.
func (p *process) run(ctx context.Context, keep *cli.Privileges, need privilege.Need, out io.Writer, name, what string) error {
	if err := keep.Drop(p.log, need); err != nil {
		return err
	}
	fmt.Fprintf(out, "gcollect %s: ready; %s\n", name, what)
	control.Notify("READY=1")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(p.jobs))
	for _, j := range p.jobs {
		go func() {
			err := j(ctx)
			cancel()
			ended <- err
		}()
	}
	<-ctx.Done()
	control.Notify("STOPPING=1")
	var errs []error
	for range p.jobs {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}
