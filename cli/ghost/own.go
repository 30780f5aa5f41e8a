package ghost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/control/host"
	"gswitch/section"
)

// own are the flags that make a host.
type own struct {
	file, port, netns, mode, poll           string
	addr, gateway, rate, rtt, cc, telemetry string
	links                                   []string
	listen                                  string
	payload, cpu                            int
	jitter                                  float64
	recovery                                string
	serve, noFastRetransmit                 bool
	record                                  cli.RecordFlags
	wait                                    time.Duration
	verbose                                 bool
}

// flags adds the flags. Those that have another meaning in a verb are left out
// there: transfer is set.
func (o *own) flags(c *cobra.Command, transfer bool) {
	f := c.Flags()
	f.StringVarP(&o.file, "config", "c", "", "configuration file")
	f.StringVarP(&o.port, "port", "p", "", "interface that the host takes over")
	f.StringVar(&o.addr, "addr", "", "IP address of the host with prefix length, such as 10.0.0.1/24")
	f.StringVar(&o.gateway, "gateway", "", "next hop of addresses that are not on the link")
	f.StringVar(&o.netns, "netns", "", "network namespace of the interface, a name or a path")
	f.StringVar(&o.mode, "mode", "", "AF_XDP mode: auto, zerocopy, native, generic")
	f.StringVar(&o.poll, "poll", "", "when the worker sleeps: spin, adaptive, sleep")
	f.IntVar(&o.cpu, "cpu", -1, "pin the worker to this CPU")
	f.StringVar(&o.rate, "link-rate", "", "speed of the emulated link (10Gbps)")
	f.StringVar(&o.rtt, "base-rtt", "", "T of congestion control (1ms)")
	f.StringArrayVar(&o.links, "link", nil, "rate of links of the network, for the units of telemetry (repeat)")
	f.IntVar(&o.payload, "payload", 0, "bytes of payload in a full frame (1000)")
	f.DurationVar(&o.wait, "wait", 0, "wait so long for an interface that is not there yet")
	if transfer {
		return
	}
	f.StringVar(&o.cc, "cc", "", "congestion control of transfers that choose none (hpcc)")
	f.StringVar(&o.telemetry, "int", "", "telemetry of transfers that choose none: "+formats+" (hpcc)")
	f.StringVar(&o.recovery, "recovery", "", "loss recovery of transfers that choose none: go-back-n, irn, tcp, newreno ... (go-back-n)")
	f.BoolVar(&o.noFastRetransmit, "no-fast-retransmit", false, "newreno: only the timeout repairs, for networks that reorder and lose nothing")
	f.Float64Var(&o.jitter, "pace-jitter", 0, "make each paced gap longer or shorter by up to this share (RoCC: 0.1)")
	f.StringVar(&o.listen, "listen", "", "serve /metrics and /healthz on this TCP address")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log more")
}

// wanted reports whether the command line makes a host.
func (o *own) wanted() bool { return o.file != "" || o.port != "" }

// said are the flags that a file has keys for, by key.
func (o *own) said(a *app) map[string]any {
	m := map[string]any{}
	put := func(key, value string) {
		if value != "" {
			m[key] = value
		}
	}
	put("name", a.name)
	put("interface", o.port)
	put("netns", o.netns)
	put("mode", o.mode)
	put("address", o.addr)
	put("gateway", o.gateway)
	put("rate", o.rate)
	put("base_rtt", o.rtt)
	put("congestion", o.cc)
	put("recovery", o.recovery)
	if o.noFastRetransmit {
		m["recovery_options"] = map[string]any{"fast_retransmit": false}
	}
	if o.jitter != 0 {
		m["pace_jitter"] = o.jitter
	}
	if o.payload != 0 {
		m["payload"] = o.payload
	}
	worker, telemetry := map[string]any{}, map[string]any{}
	if o.poll != "" {
		worker["poll"] = o.poll
	}
	if o.cpu >= 0 {
		worker["cpu"] = o.cpu
	}
	if o.telemetry != "" {
		telemetry["format"] = o.telemetry
	}
	if o.links != nil {
		telemetry["links"] = o.links
	}
	if len(worker) > 0 {
		m["worker"] = worker
	}
	if len(telemetry) > 0 {
		m["telemetry"] = telemetry
	}
	return m
}

// flagOf names the flags behind keys, for errors.
var flagOf = map[string]string{"interface": "--port", "address": "--addr", "rate": "--link-rate", "base_rtt": "--base-rtt", "congestion": "--cc", "recovery": "--recovery", "recovery_options": "--no-fast-retransmit", "pace_jitter": "--pace-jitter",
	"worker.poll": "--poll", "worker.cpu": "--cpu", "telemetry.format": "--int"}

// document is the file, or what the flags say.
func (o *own) document(a *app) (*config.Hosts, error) {
	said := o.said(a)
	if o.file != "" {
		if delete(said, "name"); len(said) > 0 {
			return nil, cli.Usage(errors.New("flags that describe the host do not go with -c: they are said in the file"))
		}
		doc, err := config.LoadHosts(o.file)
		if err != nil {
			return nil, cli.Input(err)
		}
		return doc, nil
	}
	if o.port == "" || o.addr == "" {
		return nil, cli.Usage(errors.New("a host needs an interface and an address: --port IF --addr 10.0.0.1/24, or -c FILE"))
	}
	said["version"] = 1
	text, err := yaml.Marshal(said)
	if err != nil {
		return nil, err
	}
	// The decoder knows what words and names are legal.
	doc, err := config.ParseHosts("flags", text)
	if err != nil {
		return nil, cli.Input(byFlag(err))
	}
	return doc, nil
}

// override says what the command line has in place of what a document says.
func (o *own) override(a *app) func(*config.Hosts) {
	socket := ""
	if abs, err := filepath.Abs(a.socket); err == nil && a.socket != "" {
		socket = abs // a socket is named as seen from here
	}
	first := "" // the default may have another name after a reload
	return func(c *config.Hosts) {
		for i := range c.Hosts {
			c.Hosts[i].Serve = c.Hosts[i].Serve || o.serve
		}
		if first == "" {
			first = c.DefaultSocket()
		}
		if c.Control.Socket == c.DefaultSocket() {
			c.Control.Socket = first
		}
		c.Control.Socket = cmp.Or(socket, c.Control.Socket)
		c.Control.Listen = cmp.Or(o.listen, c.Control.Listen)
	}
}

// byFlag names the flags that errors are about in place of the document that
// was made of them, which the user has not seen.
func byFlag(err error) error {
	return section.Rename(err, func(key string) string {
		switch flag := flagOf[key]; {
		case flag != "":
			return flag
		case strings.HasPrefix(key, "telemetry.links"):
			return "--link"
		}
		return "--" + key
	})
}

// prepared is a daemon of hosts that is yet to start.
func (o *own) prepared(a *app, stderr io.Writer, level slog.Level) (*cli.Run, *config.Hosts, error) {
	doc, err := o.document(a)
	if err != nil {
		return nil, nil, err
	}
	if o.verbose {
		level = slog.LevelDebug
	}
	log := control.NewLogger(stderr, level)
	opts := host.Options{Version: version, Source: cmp.Or(o.file, "flags"), Wait: o.wait, Logger: log, Override: o.override(a)}
	opts.Record = o.record.Dir
	if opts.RecordOptions, err = o.record.Options(); err != nil {
		return nil, nil, cli.Usage(err)
	}
	shown := doc.Clone()
	opts.Override(shown)
	r := &cli.Run{Log: log, Control: config.Control(shown.Control), File: o.file}
	r.Open = func(ctx context.Context) (cli.Daemon, error) {
		d, err := host.New(ctx, doc, opts)
		if err == nil {
			r.Save = d.SaveRecording
		}
		return d, err
	}
	return r, shown, nil
}

// with runs f on the running host that was chosen, or on one that the flags
// make for as long as f runs.
func (o *own) with(c *cobra.Command, a *app, f func(context.Context, api.HostClient) error) error {
	if !o.wanted() {
		if len(o.said(&app{})) > 0 {
			return cli.Usage(errors.New("flags that describe a host need --port: without it, a running one is used as it is"))
		}
		client, address, err := a.client(c.Context())
		if err != nil {
			return err
		}
		return control.Explain(address, f(c.Context(), client))
	}
	r, _, err := o.prepared(a, c.ErrOrStderr(), slog.LevelWarn)
	if err != nil {
		return err
	}
	if err := r.Start(c.Context()); err != nil {
		return err
	}
	// The signal that ends the verb ends the hosts after it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context()))
	served := make(chan error, 1)
	go func() { served <- r.Serve(ctx) }()
	socket := r.Control.Socket
	err = control.Explain(socket, f(c.Context(), control.DialHost(socket)))
	cancel()
	return errors.Join(err, <-served)
}

// summary names the hosts of a document.
func summary(doc *config.Hosts) string {
	var parts []string
	for i := range doc.Hosts {
		h := &doc.Hosts[i]
		if i == 4 {
			parts = append(parts, fmt.Sprintf("and %d more", len(doc.Hosts)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s at %v on %s", h.Name, h.Address, h.Interface))
	}
	return strings.Join(parts, ", ")
}

func (a *app) runCommand() *cobra.Command {
	var o own
	c := &cobra.Command{
		Use:   "run [-c FILE | --port IF --addr ADDRESS/LENGTH]",
		Short: "Run a daemon",
		Long: `Run a host, or the hosts of a file, until a signal ends them.

A host takes its interface over: its address is answered for here, and the
kernel sees no frame of it. One line with the word ready is printed once all
run. SIGHUP reads the file again; SIGINT and SIGTERM end it.

Before that line it drops all capabilities but those that its configuration
needs, and may run no other program from then on. A configuration that names
other network namespaces for the first time is then refused, unless it runs
with --keep-privileges.`,
		Example: `  ghost run --port veth0 --addr 10.0.0.1/24
  ghost run --port veth0 --addr 10.0.0.1/24 --link-rate 200Mbps \
    --link 200Mbps --base-rtt 2ms --serve
  ghost run --netns h1 --port eth0 --addr fd00::1/64 --poll spin --cpu 1
  ghost run -c host.yaml --wait 30s
  ghost run -c host.yaml --record records
  ghost run -c host.yaml --record records --record-last 64MiB \
    --record-on timeout`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			r, doc, err := o.prepared(a, c.ErrOrStderr(), slog.LevelInfo)
			if err != nil {
				return err
			}
			return r.UntilSignal(c.Context(), &a.keep, c.OutOrStdout(), summary(doc))
		},
	}
	o.flags(c, false)
	a.keep.Flag(c.Flags())
	c.Flags().BoolVar(&o.serve, "serve", false, "let other hosts open queue pairs here")
	o.record.Flags(c.Flags(), "host", "SIGUSR1", control.HostTriggers, control.ParseHostTriggers)
	return c
}
