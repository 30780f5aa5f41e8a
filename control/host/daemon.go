package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/gswitch/gswitch/config"
	"github.com/gswitch/gswitch/control"
	"github.com/gswitch/gswitch/dataplane"
	"github.com/gswitch/gswitch/frame"
	"github.com/gswitch/gswitch/hostnic/agent"
	"github.com/gswitch/gswitch/metrics"
	"github.com/gswitch/gswitch/wire"
)

// Options of a Daemon.
type Options struct {
	Version string
	Wait    time.Duration // how long to wait for the interface at the start
	Logger  *slog.Logger  // nil is slog.Default()
}

// Daemon runs a host. Its methods may be called from any goroutine.
type Daemon struct {
	opts   Options
	conf   *config.Host
	mac    wire.MAC
	start  time.Time
	engine *dataplane.Engine
	worker *dataplane.Worker
	agent  *agent.Agent

	mu     sync.Mutex // guards what follows
	users  int        // who want others to be served
	region *agent.Region
	held   uint64 // bytes of transfers
}

// frames of the packet memory: the rings of the interface, and what may be on
// the emulated cable.
const (
	framesAQueue = 2 * 2048
	framesUnder  = 8192
)

// find looks at the interface, and waits for one that is not there until ctx
// ends.
func find(ctx context.Context, c *config.Host, wait time.Duration) (control.Interface, error) {
	for deadline := time.Now().Add(wait); ; {
		at, err := control.FindInterface(c.Interface, c.NetNS, 0)
		if err == nil || !time.Now().Before(deadline) {
			return at, err
		}
		select {
		case <-ctx.Done():
			return at, fmt.Errorf("no longer waited for: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// New makes a daemon with its port open. Nothing moves before Start. The end
// of ctx ends waiting for the interface.
func New(ctx context.Context, c *config.Host, opts Options) (*Daemon, error) {
	if err := control.Privileged(true, c.NetNS != ""); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	at, err := find(ctx, c, opts.Wait)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", c.Name, err)
	}
	if len(at.MAC) != len(wire.MAC{}) && c.MAC == nil {
		return nil, control.Refused(fmt.Errorf("host %s: %s has no Ethernet address: set mac", c.Name, c.Interface))
	}
	if need := c.Payload + headers(c); need > at.MTU {
		return nil, control.Refused(fmt.Errorf("host %s: a payload of %d bytes makes packets of %d with their headers, and the MTU of %s is %d: lower payload, or raise the MTU", c.Name, c.Payload, need, c.Interface, at.MTU))
	}
	d := &Daemon{opts: opts, conf: c, start: time.Now()}
	copy(d.mac[:], at.MAC)
	if c.MAC != nil {
		d.mac = wire.MAC(*c.MAC)
	}
	ec := c.Engine()
	ec.Logger, ec.Chunks = opts.Logger, framesAQueue*at.Queues+framesUnder
	if d.engine, err = dataplane.New(ec); err != nil {
		return nil, control.ExplainSystem(err)
	}
	if err := d.open(at.Queues); err != nil {
		return nil, errors.Join(control.ExplainInterface(c.Interface, c.NetNS, err), d.engine.Stop())
	}
	return d, nil
}

// headers returns the most bytes that an IP packet of the host has besides its
// payload, before switches add to its telemetry.
func headers(c *config.Host) int {
	ip := wire.IPv4Len
	if c.Address.Addr().Is6() {
		ip = wire.IPv6Len
	}
	telemetry := 0
	if c.Telemetry.Format != "none" {
		telemetry = wire.HPCCLen
	}
	return ip + wire.UDPLen + telemetry + wire.BTHLen + wire.RETHLen + wire.ICRCLen
}

func (d *Daemon) open(queues int) error {
	c := d.conf
	d.worker = d.engine.Worker(0)
	var err error
	nic := c.NIC(d.mac, agent.Port)
	// Another seed at each start: peers must not take this process for the one
	// before.
	nic.Seed = rand.Uint64()
	d.agent, err = agent.New(&agent.Config{NIC: nic, INT: c.Units(), Transport: c.Transport()}, d.worker.Pool())
	if err != nil {
		return control.Refused(err)
	}
	if err := d.engine.AddNode(0, d.agent); err != nil {
		return err
	}
	spec := c.Spec()
	for q := range queues {
		spec.Queues = append(spec.Queues, q)
	}
	if _, err := d.engine.AddPort(0, d.agent, 0, spec); err != nil {
		return err
	}
	if c.Serve {
		return d.serve()
	}
	return nil
}

// Start lets the worker run.
func (d *Daemon) Start() error { return d.engine.Start() }

// Stop ends the worker and closes the port.
func (d *Daemon) Stop() error { return d.engine.Stop() }

// Serve answers on the listeners until ctx ends. Transfers are given up then.
func (d *Daemon) Serve(ctx context.Context, listeners []net.Listener) error {
	return control.Serve(ctx, d.Handler(), listeners)
}

// Snapshot reads all counters.
func (d *Daemon) Snapshot() *metrics.Snapshot {
	return metrics.Take(metrics.Source{Engine: d.engine, Hosts: []metrics.HostUnit{{Agent: d.agent, Worker: d.worker, Port: d.conf.Interface}},
		Config: metrics.ConfigState{Version: d.opts.Version, Generation: 1, ReloadSuccess: true, ReloadTime: d.start}})
}

// serve lets others open queue pairs here, until as many calls of unserve.
func (d *Daemon) serve() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users++; d.users > 1 {
		return nil
	}
	if d.region == nil {
		d.region = &agent.Region{Data: make([]byte, d.conf.Region)}
		agent.Fill(d.region.Data)
	}
	var refused error
	err := d.worker.Do(func(frame.Time) { refused = d.agent.Serve(d.region) })
	if err = errors.Join(err, refused); err != nil {
		d.users--
	}
	return err
}

func (d *Daemon) unserve() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users--; d.users > 0 {
		return
	}
	// A worker that has ended serves nobody.
	_ = d.worker.Do(func(frame.Time) { _ = d.agent.Serve(nil) })
}
