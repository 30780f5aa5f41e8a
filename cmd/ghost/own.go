package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/gswitch/gswitch/config"
	"github.com/gswitch/gswitch/control"
	"github.com/gswitch/gswitch/control/api"
	"github.com/gswitch/gswitch/control/host"
)

// own are the flags that make a host.
type own struct {
	file, port, netns, mode, poll           string
	addr, gateway, rate, rtt, cc, telemetry string
	links                                   []string
	listen                                  string
	payload, cpu                            int
	serve                                   bool
	wait                                    time.Duration
	verbose                                 bool
}

// flags adds the flags. Those that have another meaning in a verb are left out
// there: transfer is set.
func (o *own) flags(c *cobra.Command, transfer bool) {
	f := c.Flags()
	f.StringVarP(&o.file, "config", "c", "", "configuration file of the host")
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
	f.StringVar(&o.telemetry, "int", "", "telemetry of transfers that choose none: none, hpcc, hpcc-grow, int-md (hpcc)")
	f.StringVar(&o.listen, "listen", "", "serve the API and /metrics on this TCP address too")
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
var flagOf = map[string]string{"interface": "--port", "address": "--addr", "rate": "--link-rate", "base_rtt": "--base-rtt", "congestion": "--cc",
	"worker.poll": "--poll", "worker.cpu": "--cpu", "telemetry.format": "--int"}

// document is the file, or what the flags say.
func (o *own) document(a *app) (*config.Host, error) {
	said := o.said(a)
	var h *config.Host
	if o.file != "" {
		if delete(said, "name"); len(said) > 0 {
			return nil, usageError{errors.New("flags that describe the host do not go with -c: they are said in the file")}
		}
		var err error
		if h, err = config.LoadHost(o.file); err != nil {
			return nil, usageError{err}
		}
	} else {
		if o.port == "" || o.addr == "" {
			return nil, usageError{errors.New("a host needs an interface and an address: --port IF --addr 10.0.0.1/24, or -c FILE")}
		}
		said["version"] = 1
		text, err := yaml.Marshal(said)
		if err != nil {
			return nil, err
		}
		// The decoder knows what words and names are legal.
		if h, err = config.ParseHost("flags", text); err != nil {
			return nil, usageError{byFlag(err)}
		}
	}
	h.Serve = h.Serve || o.serve
	if o.listen != "" {
		h.Control.Listen = o.listen
	}
	if a.socket != "" {
		// A socket is named as seen from here.
		if abs, err := filepath.Abs(a.socket); err == nil {
			h.Control.Socket = abs
		}
	}
	return h, nil
}

// byFlag names the flags that errors are about in place of the document that
// was made of them, which nobody has seen.
func byFlag(err error) error {
	var errs config.Errors
	if !errors.As(err, &errs) {
		return err
	}
	said := make(config.Errors, len(errs))
	for i, e := range errs {
		said[i] = config.Error{Key: e.Key, Problem: e.Problem}
		switch flag := flagOf[e.Key]; {
		case flag != "":
			said[i].Key = flag
		case strings.HasPrefix(e.Key, "telemetry.links"):
			said[i].Key = "--link"
		default:
			said[i].Key = "--" + e.Key
		}
	}
	return said
}

// running is a host of this process.
type running struct {
	d      *host.Daemon
	conf   *config.Host
	cancel context.CancelFunc
	served chan error
}

// start makes a host, which serves its API until stop. The end of ctx ends
// waiting for the interface.
func (o *own) start(ctx context.Context, h *config.Host, stderr io.Writer) (*running, error) {
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	listeners, err := control.Listen(config.Control{Socket: h.Control.Socket, Listen: h.Control.Listen})
	if err != nil {
		return nil, err
	}
	d, err := host.New(ctx, h, host.Options{Version: version, Wait: o.wait, Logger: log})
	if err != nil {
		return nil, errors.Join(err, closeAll(listeners))
	}
	if err := d.Start(); err != nil {
		return nil, errors.Join(err, d.Stop(), closeAll(listeners))
	}
	r := &running{d: d, conf: h, served: make(chan error, 1)}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() { r.served <- d.Serve(ctx, listeners) }()
	return r, nil
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// stop ends it.
func (r *running) stop() error {
	r.cancel()
	return errors.Join(<-r.served, r.d.Stop())
}

// with calls f with a client of the host that runs, or of one that is made for
// it.
func (o *own) with(c *cobra.Command, a *app, f func(ctx context.Context, client api.HostClient) error) error {
	if !o.wanted() {
		if len(o.said(&app{})) > 0 {
			return usageError{errors.New("flags that describe a host need --port: without it, a running one is used as it is")}
		}
		address, err := a.address()
		if err != nil {
			return err
		}
		return control.Explain(address, f(c.Context(), control.DialHost(address)))
	}
	h, err := o.document(a)
	if err != nil {
		return err
	}
	// The signal that ends the verb ends the host after it.
	r, err := o.start(c.Context(), h, c.ErrOrStderr())
	if err != nil {
		return err
	}
	err = control.Explain(h.Control.Socket, f(c.Context(), control.DialHost(h.Control.Socket)))
	return errors.Join(err, r.stop())
}

func (a *app) runCommand() *cobra.Command {
	var o own
	c := &cobra.Command{
		Use:   "run [-c FILE | --port IF --addr ADDRESS/LENGTH]",
		Short: "Run a host",
		Long: `Run a host until a signal ends it.

It takes the interface over: its address is answered for here, and the kernel
sees no frame of it. One line with the word ready is printed once it runs.`,
		Example: `  ghost run --port veth0 --addr 10.0.0.1/24
  ghost run --port veth0 --addr 10.0.0.1/24 --link-rate 200Mbps --link 200Mbps --base-rtt 2ms --serve
  ghost run --netns h1 --port eth0 --addr fd00::1/64 --poll spin --cpu 1
  ghost run -c host.yaml --wait 30s`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := o.document(a)
			if err != nil {
				return err
			}
			r, err := o.start(c.Context(), h, c.ErrOrStderr())
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "ready: %s at %v on %s; control socket %s\n", h.Name, h.Address, h.Interface, h.Control.Socket)
			control.Notify("READY=1")
			defer context.AfterFunc(c.Context(), r.cancel)()
			err = <-r.served
			control.Notify("STOPPING=1")
			return errors.Join(err, r.d.Stop())
		},
	}
	o.flags(c, false)
	c.Flags().BoolVar(&o.serve, "serve", false, "let other hosts open queue pairs here")
	return c
}
