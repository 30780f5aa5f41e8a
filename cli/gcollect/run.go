package gcollect

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gswitch/collect"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/control/privilege"
	"gswitch/fabric"
	"gswitch/mirror"
	"gswitch/natsserver"
	"gswitch/units"
	"gswitch/wholefile"
)

// runFlags are the flags of run.
type runFlags struct {
	fabric  string
	reports string
	gre     string
	udp     string
	metrics string
	names   []string // by which metrics may be asked for
	server  string
	from    []string
	disk    string
	age     time.Duration
	idle    time.Duration
	sync    bool
	copies  int
	counts  []string
	take    uint64
	taken   string
	verbose bool
	keep    cli.Privileges
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "Collect and analyse",
		Long: `run takes reports (export in a switch's document) and copies of packets (sessions of
watch), keeps them in a stream, and makes events of them.

The stream lies in --data, in a NATS server within this process that only this
machine reaches. With --nats it lies in a cluster: every collector of the cluster
has a part of the work, and another one takes over the part of one that fails.

Reports are acknowledged when the stream has them: a switch sends again what was
not. If the stream may take no more bytes (--disk), reports wait in the switches.

--fabric is the network as gfabric up takes it: without it no link has two ends, and
it is not known where a packet should have gone on.

One line with the word ready is printed once it collects; before it, all capabilities
are dropped (unless --keep-privileges), and no other program can be run. SIGINT and SIGTERM end it.`,
		Example: `  gcollect run --fabric fabric.yaml
  gcollect run --fabric leaf-spine:2,4,2 --gre 10.9.0.1 --from 10.192.0.0/16
  gcollect run --fabric fabric.yaml --gre 10.9.0.1 \
    --count 'web=tcp.dstport == 443 && switch == leaf1'
  gcollect run --data /srv/gcollect --disk 200GiB --metrics :9478
  gcollect run --nats nats://n1:4222,nats://n2:4222 --replicas 3 \
    --fabric fabric.yaml`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c.Context(), a, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.fabric, "fabric", "", "the network: a file, or a generator such as leaf-spine:2,4,2")
	fl.StringVar(&f.reports, "reports", ":9477", "TCP address that takes reports; \"\": none")
	fl.StringVar(&f.gre, "gre", "", "IPv4 address of this machine that copies come to over GRE, 0.0.0.0 for all (needs CAP_NET_RAW)")
	fl.StringVar(&f.udp, "udp", "", "UDP address that copies come to as GRE in UDP (RFC 8086), such as :4754")
	fl.StringVar(&f.metrics, "metrics", "127.0.0.1:9478", "TCP address of /metrics and /healthz; \"\": none")
	fl.StringSliceVar(&f.names, "metrics-name", nil, "names by which /metrics may be asked for, beside addresses, localhost and the name of this machine")
	fl.StringVar(&f.server, "server", "127.0.0.1:0", "address of the NATS server in this process, which the other verbs use")
	fl.StringSliceVar(&f.from, "from", nil, "networks that reports and copies are taken from; all if left out")
	fl.StringVar(&f.disk, "disk", "10GiB", "most bytes of the streams: 3/4 for reports, 1/4 for events, of which the oldest go")
	fl.DurationVar(&f.age, "keep", 30*24*time.Hour, "how long events are kept")
	fl.DurationVar(&f.idle, "trace-idle", time.Second, "a packet of which no copy came for so long is judged by those that did: longer than the slowest way; the same at all collectors of a cluster")
	fl.StringArrayVar(&f.counts, "count", nil, "NAME=FILTER: count the traced packets that a filter chooses (gfabric traces --help), as gcollect_counted_packets_total; may be repeated. gcollect count adds more while it runs")
	fl.Uint64Var(&f.take, "most-copies", 0, "copies a second that this collector is to get at most: gcollect marks allows no more. 0: not known, and no marks are allowed")
	fl.StringVar(&f.taken, "most-copied", "", "the same as a rate, such as 10Gbps; not bounded if left out")
	fl.BoolVar(&f.sync, "sync", false, "acknowledge what is on the disk only, so that nothing is lost when the machine loses its power")
	fl.IntVar(&f.copies, "replicas", 1, "with --nats: servers that have each message, of streams that are made")
	f.keep.Flag(fl)
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log what NATS does, too")
	return c
}

func (f *runFlags) run(ctx context.Context, a *app, stdout, stderr io.Writer) error {
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	log := control.NewLogger(stderr, level)
	network, err := f.network()
	if err != nil {
		return err
	}
	if f.idle < time.Millisecond || f.idle > time.Duration(mirror.OldestTrace) {
		return cli.Usage(fmt.Errorf("--trace-idle %v: between 1ms and %v is possible", f.idle, time.Duration(mirror.OldestTrace)))
	}
	from, err := prefixes(f.from)
	if err != nil {
		return err
	}
	disk, err := units.Bytes.Whole(f.disk, 1<<60)
	if err != nil {
		return cli.Usage(fmt.Errorf("--disk: %w", err))
	}
	capacity := mirror.Rate{Copies: f.take}
	if f.taken != "" {
		bits, err := units.Bits.Whole(f.taken, 1<<60)
		if err != nil {
			return cli.Usage(fmt.Errorf("--most-copied: %w", err))
		}
		capacity.Bytes = uint64(bits) / 8
	}
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM)
	defer stop()
	id, err := identity(a.data)
	if err != nil {
		return err
	}
	nc, server, err := f.connect(a, int64(disk), log)
	if err != nil {
		return err
	}
	if server != nil {
		defer server.Close()
	}
	defer nc.Close()
	limits := collect.Limits{Reports: int64(disk) / 4 * 3, Events: int64(disk) / 4, Age: f.age, Replicas: f.copies}
	opening, cancel := context.WithTimeout(ctx, time.Minute)
	store, err := collect.Open(opening, nc, limits)
	cancel()
	if err != nil {
		return fmt.Errorf("the streams cannot be opened: %w", err)
	}
	p := newProcess(log)
	return f.serve(ctx, stdout, &parts{process: p, id: id, data: a.data, network: network, from: from, capacity: capacity, store: store, server: server, metrics: collect.NewMetrics(p.registry)})
}

// parts are what runs.
type parts struct {
	*process
	id       string
	data     string // directory
	network  *collect.Network
	from     []netip.Prefix
	store    *collect.Store
	server   *natsserver.Server // nil: the streams are in a cluster
	metrics  *collect.Metrics
	bounded  []interface{ Limits() []*api.Limit }
	capacity mirror.Rate // of copies
	copies   []*collect.Copies
}

// budget says what this collector takes of copies, and what comes.
func (p *parts) budget() mirror.Budget {
	b := mirror.Budget{Capacity: p.capacity}
	for _, c := range p.copies {
		marked, others := c.Load()
		b.Marked, b.Others = b.Marked.Plus(marked), b.Others.Plus(others)
	}
	return b
}

// limits says what is bounded of this collector.
func (p *parts) limits(ctx context.Context) (*api.Limits, error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	v := control.ProgramLimits(m.HeapAlloc, &p.clients, p.log.Handler())
	for _, b := range p.bounded {
		v = append(v, b.Limits()...)
	}
	streams, err := p.store.Limits(ctx)
	if err != nil {
		return nil, err
	}
	v = append(v, streams...)
	if p.server != nil {
		v = append(v, &api.Limit{Kind: "connections", Name: "connections of the NATS server", Unit: "connections", Used: uint64(p.server.NumClients()), Limit: natsserver.MaxConnections})
	}
	for _, l := range v {
		l.Switch = p.id
	}
	return &api.Limits{Limits: v}, nil
}

// serve opens the ports, says that it is ready, and runs until ctx or a part ends.
func (f *runFlags) serve(ctx context.Context, stdout io.Writer, p *parts) error {
	var where []string
	if f.reports != "" {
		l, err := net.Listen("tcp", f.reports)
		if err != nil {
			return err
		}
		r := collect.NewReceiver(p.store, p.network, p.from, p.metrics, p.log)
		p.add(func(ctx context.Context) error { return r.Serve(ctx, l) })
		p.bounded = append(p.bounded, r)
		where = append(where, "reports at "+l.Addr().String())
	}
	for i, open := range []func() (net.PacketConn, error){
		func() (net.PacketConn, error) { return collect.ListenGRE(f.gre) },
		func() (net.PacketConn, error) { return net.ListenPacket("udp4", f.udp) },
	} {
		over := [...]string{"gre", "udp"}[i]
		if [...]string{f.gre, f.udp}[i] == "" {
			continue
		}
		conn, err := open()
		if err != nil {
			return err
		}
		c := &collect.Copies{Store: p.store, Network: p.network, From: p.from, Name: p.id + "-" + over, Metrics: p.metrics, Log: p.log}
		p.add(func(ctx context.Context) error { return c.Serve(ctx, conn) })
		p.bounded, p.copies = append(p.bounded, c), append(p.copies, c)
		where = append(where, "copies over "+over+" at "+conn.LocalAddr().String())
	}
	if f.metrics != "" {
		at, err := p.serveMetrics(f.metrics, f.names)
		if err != nil {
			return err
		}
		where = append(where, "metrics at "+at)
	}
	w := &collect.Workers{Store: p.store, Network: p.network, ID: p.id, Metrics: p.metrics, Log: p.log}
	p.bounded = append(p.bounded, p.metrics)
	p.add(w.Run, func(ctx context.Context) error {
		return p.store.AnswerLimits(ctx, p.limits)
	}, func(ctx context.Context) error { return p.store.AnswerLoad(ctx, p.budget) },
		func(ctx context.Context) error { return p.store.AnswerMarks(ctx, p.metrics) },
		func(ctx context.Context) error { return p.store.AnswerCounted(ctx, p.metrics) },
		func(ctx context.Context) error { return p.store.AnswerCount(ctx, p.network, p.metrics) })
	if p.server != nil {
		p.add(func(ctx context.Context) error { return supervise(ctx, p.server) })
	}
	return p.run(ctx, &f.keep, privilege.Need{Dirs: []string{p.data}}, stdout, p.id, strings.Join(where, ", "))
}

// supervise returns an error when the server can no longer store streams, for instance
// because the disk is full: a supervisor such as systemd then restarts the process.
func supervise(ctx context.Context, s *natsserver.Server) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.Failed():
		return errors.New("the disk is full, or cannot be written: nothing more can be kept. What was acknowledged is there; make room, and start gcollect again")
	}
}

// connect opens the connection to the streams, and the server if it is within.
func (f *runFlags) connect(a *app, disk int64, log *slog.Logger) (*nats.Conn, *natsserver.Server, error) {
	if a.nats != "" {
		nc, err := collect.Dial(a.nats, a.login, "")
		return nc, nil, err
	}
	server, err := collect.NewServer(filepath.Clean(a.data), f.server, disk, f.sync, log)
	if err != nil {
		return nil, nil, err
	}
	nc, err := server.Connect()
	if err != nil {
		server.Close()
		return nil, nil, err
	}
	return nc, server, nil
}

func (f *runFlags) network() (*collect.Network, error) {
	var t *fabric.Topology
	if f.fabric != "" {
		var err error
		if t, err = fabric.Load(f.fabric, fabric.Spec{}); err != nil {
			return nil, cli.Input(err)
		}
	}
	n, err := collect.NewNetwork(t)
	if err != nil {
		return nil, err
	}
	n.TraceIdle = f.idle
	for _, c := range f.counts {
		name, filter, ok := strings.Cut(c, "=")
		if !ok {
			return nil, cli.Usage(fmt.Errorf("--count %q: write NAME=FILTER, such as web='tcp.dstport == 443'", c))
		}
		if err := n.Count(name, filter); err != nil {
			return nil, cli.Usage(fmt.Errorf("--count: %w", err))
		}
	}
	return n, nil
}

func prefixes(v []string) (out []netip.Prefix, err error) {
	for _, s := range v {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			a, aerr := netip.ParseAddr(s)
			if aerr != nil {
				return nil, cli.Usage(fmt.Errorf("--from %q is neither a network, such as 10.0.0.0/8, nor an address", s))
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// identity is the name of this collector among others: that of the machine and
// something by which it knows its own lanes after a restart.
func identity(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w; run it as root, or choose another directory with --data", err)
		}
		return "", err
	}
	file := filepath.Join(dir, "id")
	text, err := os.ReadFile(file)
	if err == nil && len(strings.TrimSpace(string(text))) > 0 {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	host, _, _ = strings.Cut(host, ".")
	id := host + "-" + strings.ToLower(rand.Text()[:8])
	return id, wholefile.WriteBytes(file, 0o600, []byte(id+"\n"))
}
