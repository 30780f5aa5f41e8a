package host

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"gswitch/cc"
	"gswitch/config"
	"gswitch/control"
	"gswitch/dataplane"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	"gswitch/wire"
)

// unit is a running host.
type unit struct {
	name   string
	engine *dataplane.Engine
	mac    wire.MAC
	worker *dataplane.Worker
	agent  *agent.Agent
	port   *dataplane.Port
	queues int                         // of its interface
	conf   atomic.Pointer[config.Host] // in force
	gone   chan struct{}               // closed when the host is removed
	log    *slog.Logger

	measured measured

	page *control.ClockPage // nil: no clock

	recording *control.Recording // nil: not recorded

	// Used only by the exporter's goroutine.
	reporters []reporter
	sourcesAt time.Time

	mu     sync.Mutex // guards the fields below
	users  int        // number of callers that want the region served
	region *agent.Region
	// carried are the TCP connections of callers of the API, by number.
	carried map[uint64]*carried

	services services
}

// fits rejects a host that its interface cannot support.
func fits(h *config.Host, at control.Interface) error {
	if len(at.MAC) != len(wire.MAC{}) && h.MAC == nil {
		return control.Refused(fmt.Errorf("host %s: %s has no Ethernet address: set mac", h.Name, h.Interface))
	}
	if err := hostnic.FitMTU("payload", h.Payload, headers(h), h.Interface, at.MTU); err != nil {
		return control.Refused(fmt.Errorf("host %s: %w", h.Name, err))
	}
	if s := streamsOf(h); s != nil && s.MSS+wire.IPv4Len+wire.TCPLen > at.MTU {
		return control.Refused(fmt.Errorf("host %s: segments of TCP of %d bytes make packets of %d, and the MTU of %s is %d: lower tcp.mss, or raise the MTU", h.Name, s.MSS, s.MSS+wire.IPv4Len+wire.TCPLen, h.Interface, at.MTU))
	}
	return nil
}

// headers returns the most bytes that an IP packet of the host has besides its payload,
// before switches add to its telemetry.
func headers(h *config.Host) int {
	ip := wire.IPv4Len
	if h.Address.Addr().Is6() {
		ip = wire.IPv6Len
	}
	telemetry := 0
	if h.Telemetry.Format != "none" {
		telemetry = wire.LongestTelemetry
	}
	return h.Before() + ip + wire.UDPLen + telemetry + wire.BTHLen + wire.RETHLen + wire.ICRCLen
}

// open makes a host on its worker, with its port open. On failure it undoes all of it.
func (d *Daemon) open(h *config.Host, at control.Interface) (*unit, error) {
	u := &unit{name: h.Name, engine: d.engine, worker: d.engine.Worker(*h.Worker), gone: make(chan struct{}), log: d.log.With("host", h.Name)}
	copy(u.mac[:], at.MAC)
	if h.MAC != nil {
		u.mac = wire.MAC(*h.MAC)
	}
	conf := u.settings(h)
	// A new seed at each start: peers must not mistake this process for its predecessor.
	conf.NIC.Seed, conf.NIC.RandomNumbers = rand.Uint64(), true
	var err error
	if u.agent, err = agent.New(conf, u.worker.Pool()); err != nil {
		return nil, control.Refused(err)
	}
	u.conf.Store(h)
	u.measured.auto.Store(h.BaseRTT == config.AutoRTT)
	if err := d.engine.AddNode(*h.Worker, u.agent); err != nil {
		return nil, fmt.Errorf("host %s: %w", h.Name, err)
	}
	if d.opts.Record != "" {
		if err := d.record(u, conf.NIC.Seed); err != nil {
			return nil, errors.Join(fmt.Errorf("host %s: %w", h.Name, err), u.close())
		}
	}
	u.page = control.OpenClockPage(d.log, d.engine, *h.Worker, control.PagePath(d.doc.Control.Socket, h.Name), u.agent.NIC().Timekeeper())
	err = u.openPort(h, at.Queues)
	if err == nil && h.Serve {
		err = u.serve()
	}
	if err == nil {
		err = u.serveStreams(h)
	}
	if err != nil {
		return nil, errors.Join(err, u.close())
	}
	return u, nil
}

// settings returns the configuration of the host's agent.
func (u *unit) settings(h *config.Host) *agent.Config {
	return settings(h, u.mac, u.engine.Epoch().UnixNano())
}

// settings returns the configuration of an agent whose time 0 is epoch, in nanoseconds
// since 1970.
func settings(h *config.Host, mac wire.MAC, epoch int64) *agent.Config {
	nic := h.NIC(mac, agent.Port)
	nic.Epoch = epoch
	return &agent.Config{NIC: nic, INT: h.Units(), Transport: h.Transport(), Algorithm: func(name string) (func(*cc.Env) cc.Algorithm, error) {
		return cc.Factory(name, h.OptionsOf(name))
	}}
}

// command makes the worker change the host, between two steps.
func (u *unit) command(c agent.Change) error {
	return u.engine.Command(u.worker.Index(), u.agent, u.agent.Command(c))
}

// document returns a document with one host, on the first worker.
func document(h *config.Host) []byte {
	alone, first := *h, 0
	alone.Worker = &first
	c := config.Hosts{Version: 1, Workers: make([]config.Worker, 1), Hosts: []config.Host{alone}}
	return c.YAML()
}

// openPort opens the port over all queues of its interface. It sends through the first
// queue.
func (u *unit) openPort(h *config.Host, queues int) error {
	spec := h.Spec()
	for q := range queues {
		spec.Queues = append(spec.Queues, q)
	}
	port, err := u.engine.AddPort(*h.Worker, u.agent, 0, spec)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.Name, control.ExplainInterface(h.Interface, h.NetNS, err))
	}
	u.port, u.queues = port, queues
	return nil
}

// portName returns the engine's name of the port, or "" if there is none, as in a replay.
func (u *unit) portName() string {
	if u.port == nil {
		return ""
	}
	return u.port.Name()
}

// close removes a host. Its transfers fail, and their other ends are notified as far as
// the port still works.
func (u *unit) close() error {
	close(u.gone)
	_ = u.command(agent.Shutdown{}) // fails if the worker has ended
	err := errors.Join(u.endRecording(), u.page.Close())
	if u.port != nil {
		err = errors.Join(err, u.engine.RemovePort(u.port))
	}
	return errors.Join(err, u.engine.RemoveNode(u.worker.Index(), u.agent))
}

// reopen closes and reopens the port of a host. Its queue pairs stay.
func (u *unit) reopen(h *config.Host) error {
	if err := u.engine.RemovePort(u.port); err != nil {
		return err
	}
	return u.openPort(h, u.queues)
}

// configure updates a host that stays to the settings of h. Open queue pairs keep the
// settings with which they were opened.
func (u *unit) configure(h *config.Host) error {
	u.measured.auto.Store(h.BaseRTT == config.AutoRTT)
	h = u.measured.in(h)
	old := u.conf.Load()
	change := &agent.Configure{Config: u.settings(h), Document: document(h)}
	if err := u.command(change); err != nil {
		return err
	}
	if change.Refused != nil {
		return change.Refused
	}
	u.conf.Store(h)
	var err error
	switch {
	case h.Serve && !old.Serve:
		err = u.serve()
	case old.Serve && !h.Serve:
		u.unserve()
	}
	if h.Region != old.Region {
		err = errors.Join(err, u.resize())
	}
	return errors.Join(err, u.serveStreams(h))
}

// serve allows other hosts to open queue pairs here, until unserve has been called as
// often.
func (u *unit) serve() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.users++; u.users > 1 {
		return nil
	}
	err := u.offer()
	if err != nil {
		u.users--
	}
	return err
}

func (u *unit) unserve() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.users--; u.users > 0 {
		return
	}
	// If the worker has ended, it serves nobody.
	_ = u.command(&agent.ServeRegion{})
}

// resize serves a region with the size that is configured now. Existing connections keep
// the old one until they end.
func (u *unit) resize() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.region = nil
	if u.users == 0 {
		return nil
	}
	return u.offer()
}

// offer serves the region, and makes it if there is none. The caller holds mu.
func (u *unit) offer() error {
	change := &agent.ServeRegion{Region: u.region, Again: u.region != nil}
	if u.region == nil {
		u.region = agent.NewRegion(int(u.conf.Load().Region))
		change.Region = u.region
	}
	err := u.command(change)
	return errors.Join(err, change.Refused)
}
