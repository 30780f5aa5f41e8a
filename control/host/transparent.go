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

	"gswitch/config"
	"gswitch/control"
	"gswitch/dataplane"
	"gswitch/hostnic/bump"
	"gswitch/metrics"
)

// TransparentOptions of a Transparent.
type TransparentOptions struct {
	Version string
	Source  string        // where the configuration came from: a file, or "flags"
	Wait    time.Duration // how long to wait for interfaces at the start
	Logger  *slog.Logger  // nil is slog.Default()

	// Override, if set, changes each configuration before it is used: settings of flags
	// stay in force over reloads.
	Override func(*config.Transparent)
}

// Transparent is the daemon of the transparent mode: it runs the bumps of a
// configuration. Any goroutine may call its methods.
type Transparent struct {
	opts   TransparentOptions
	start  time.Time
	engine *dataplane.Engine
	units  []metrics.BumpUnit
	mtus   []int // of the outer interfaces

	clients control.Clients

	mu    sync.RWMutex // guards what a reload changes
	conf  *config.Transparent
	state metrics.ConfigState
}

// framesABump is the number of chunks per bump besides those of its rings: queues of
// channels, frames that wait for the kernel, and frames on the link.
const framesABump = 8192

// NewTransparent makes a daemon with its ports open. Nothing is sent before Start. If ctx
// ends, it stops waiting for interfaces.
func NewTransparent(ctx context.Context, c *config.Transparent, opts TransparentOptions) (*Transparent, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.Override != nil {
		opts.Override(c)
	}
	t := &Transparent{opts: opts, conf: c, start: time.Now()}
	t.state = metrics.ConfigState{Version: opts.Version, Generation: 1, ReloadSuccess: true, ReloadTime: t.start}
	namespaces := false
	for i := range c.Bumps {
		namespaces = namespaces || c.Bumps[i].NetNS != "" || c.Bumps[i].InnerNetNS != ""
	}
	if err := control.Privileged(true, namespaces); err != nil {
		return nil, err
	}
	places, err := t.places(ctx)
	if err != nil {
		return nil, err
	}
	mtu, chunks := 0, 0
	for _, p := range places {
		mtu = max(mtu, p.outer.MTU, p.inner.MTU)
		chunks += framesAQueue*(p.outer.Queues+p.inner.Queues) + framesABump
	}
	ec := c.Engine(mtu)
	ec.Logger = opts.Logger
	if ec.Chunks == 0 {
		ec.Chunks = chunks
	}
	if t.engine, err = dataplane.New(ec); err != nil {
		return nil, control.ExplainSystem(err)
	}
	for i := range c.Bumps {
		if err := t.open(&c.Bumps[i], places[i]); err != nil {
			return nil, errors.Join(err, t.engine.Stop())
		}
	}
	return t, nil
}

// place holds the two interfaces of a bump.
type place struct{ outer, inner control.Interface }

// places finds the interfaces, and waits for those that do not exist yet.
func (t *Transparent) places(ctx context.Context) ([]place, error) {
	deadline := time.Now().Add(t.opts.Wait)
	out := make([]place, len(t.conf.Bumps))
	for i := range t.conf.Bumps {
		b := &t.conf.Bumps[i]
		for _, p := range []struct {
			name, netns string
			at          *control.Interface
		}{{b.Outer, b.NetNS, &out[i].outer}, {b.Inner, b.InnerNetNS, &out[i].inner}} {
			var err error
			if *p.at, err = control.AwaitInterface(ctx, p.name, p.netns, deadline); err != nil {
				return nil, fmt.Errorf("host %s: %w", b.Name, err)
			}
		}
	}
	return out, nil
}

// open makes a bump with its two ports.
func (t *Transparent) open(b *config.Bump, at place) error {
	if b.MTU > at.outer.MTU {
		return control.Refused(fmt.Errorf("host %s: mtu %d is above that of %s, %d: lower it, or raise the interface's", b.Name, b.MTU, b.Outer, at.outer.MTU))
	}
	// A new seed at each start: peers must not mistake this process for its predecessor.
	conf, err := b.Node(at.outer.MTU, rand.Uint64())
	if err != nil {
		return control.Refused(fmt.Errorf("host %s: %w", b.Name, err))
	}
	worker := t.engine.Worker(*b.Worker)
	node, err := bump.New(conf, worker.Pool())
	if err != nil {
		return control.Refused(fmt.Errorf("host %s: %w", b.Name, err))
	}
	if err := t.engine.AddNode(*b.Worker, node); err != nil {
		return fmt.Errorf("host %s: %w", b.Name, err)
	}
	outer, inner := b.Specs()
	for _, p := range []struct {
		number uint16
		spec   dataplane.PortSpec
		queues int
	}{{bump.Outer, outer, at.outer.Queues}, {bump.Inner, inner, at.inner.Queues}} {
		for q := range p.queues {
			p.spec.Queues = append(p.spec.Queues, q)
		}
		if _, err := t.engine.AddPort(*b.Worker, node, p.number, p.spec); err != nil {
			return fmt.Errorf("host %s: %w", b.Name, control.ExplainInterface(p.spec.Interface, p.spec.NetNS, err))
		}
	}
	t.units = append(t.units, metrics.BumpUnit{Name: b.Name, Bump: node, Worker: worker, Outer: outer.Name, Inner: inner.Name})
	t.mtus = append(t.mtus, conf.MTU)
	return nil
}

// Start starts the workers.
func (t *Transparent) Start() error { return t.engine.Start() }

// Stop ends the workers and closes the ports.
func (t *Transparent) Stop() error { return t.engine.Stop() }

// Serve answers on the listeners until ctx ends.
func (t *Transparent) Serve(ctx context.Context, listeners []net.Listener) error {
	return control.Serve(ctx, t.Handler(), listeners, &t.clients)
}

// Snapshot reads all counters.
func (t *Transparent) Snapshot() *metrics.Snapshot {
	t.mu.RLock()
	state := t.state
	t.mu.RUnlock()
	return metrics.TakeBumps(t.engine, t.units, state)
}

// Generation returns the number of configurations that have been in force, starting at 1.
func (t *Transparent) Generation() uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.state.Generation
}

// config returns the configuration in force.
func (t *Transparent) config() *config.Transparent {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.conf
}
