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
	"gswitch/hostnic/agent"
	"gswitch/wire"
)

// unit is a host at work.
type unit struct {
	name   string
	engine *dataplane.Engine
	mac    wire.MAC
	worker *dataplane.Worker
	agent  *agent.Agent
	port   *dataplane.Port
	queues int                         // of its interface
	conf   atomic.Pointer[config.Host] // in force
	gone   chan struct{}               // closed when the host is taken down
	log    *slog.Logger

	measured measured

	page *control.ClockPage // nil: it has no clock

	recording *control.Record // nil: it is not recorded

	// What the exporter's goroutine alone uses.
	reporters []reporter
	sourcesAt time.Time

	mu     sync.Mutex // guards what follows
	users  int        // who want others to be served
	region *agent.Region
	// carried are the connections of TCP of callers of the API, by number.
	carried map[uint64]*carried

	services services
}

// fits refuses a host that its interface cannot carry.
func fits(h *config.Host, at control.Interface) error {
	if len(at.MAC) != len(wire.MAC{}) && h.MAC == nil {
		return control.Refused(fmt.Errorf("host %s: %s has no Ethernet address: set mac", h.Name, h.Interface))
	}
	if need := h.Payload + headers(h); need > at.MTU {
		return control.Refused(fmt.Errorf("host %s: a payload of %d bytes makes packets of %d with their headers, and the MTU of %s is %d: lower payload, or raise the MTU", h.Name, h.Payload, need, h.Interface, at.MTU))
	}
	if s := streamsOf(h); s != nil && s.MSS+wire.IPv4Len+wire.TCPLen > at.MTU {
		return control.Refused(fmt.Errorf("host %s: segments of TCP of %d bytes make packets of %d, and the MTU of %s is %d: lower tcp.mss, or raise the MTU", h.Name, s.MSS, s.MSS+wire.IPv4Len+wire.TCPLen, h.Interface, at.MTU))
	}
	return nil
}

// headers returns the most bytes that an IP packet of the host has besides its
// payload, before switches add to its telemetry.
func headers(h *config.Host) int {
	ip := wire.IPv4Len
	if h.Address.Addr().Is6() {
		ip = wire.IPv6Len
	}
	telemetry := 0
	if h.Telemetry.Format != "none" {
		telemetry = wire.HPCCLen
	}
	return h.Before() + ip + wire.UDPLen + telemetry + wire.BTHLen + wire.RETHLen + wire.ICRCLen
}

// open makes a host on its worker, with its port open. What fails is taken
// back.
func (d *Daemon) open(h *config.Host, at control.Interface) (*unit, error) {
	u := &unit{name: h.Name, engine: d.engine, worker: d.engine.Worker(*h.Worker), gone: make(chan struct{}), log: d.log.With("host", h.Name)}
	copy(u.mac[:], at.MAC)
	if h.MAC != nil {
		u.mac = wire.MAC(*h.MAC)
	}
	conf := u.settings(h)
	// Another seed at each start: peers must not take this process for the one
	// before.
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

// settings returns what the agent of a host is made from.
func (u *unit) settings(h *config.Host) *agent.Config {
	return settings(h, u.mac, u.engine.Epoch().UnixNano())
}

// settings returns what an agent is made from whose time began at epoch, in nanoseconds
// since 1970.
func settings(h *config.Host, mac wire.MAC, epoch int64) *agent.Config {
	nic := h.NIC(mac, agent.Port)
	nic.Epoch = epoch
	return &agent.Config{NIC: nic, INT: h.Units(), Transport: h.Transport(), Algorithm: func(name string) (func(*cc.Env) cc.Algorithm, error) {
		return cc.Factory(name, h.OptionsOf(name))
	}}
}

// command has the worker change the host, between two steps.
func (u *unit) command(c agent.Change) error {
	return u.engine.Command(u.worker.Index(), u.agent, u.agent.Command(c))
}

// document is a host as it stands in a document of its own, on the first worker.
func document(h *config.Host) []byte {
	alone, first := *h, 0
	alone.Worker = &first
	c := config.Hosts{Version: 1, Workers: make([]config.Worker, 1), Hosts: []config.Host{alone}}
	return c.YAML()
}

// openPort opens the port over all queues of its interface: it sends through
// the first.
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

// portName is the engine's name of the port, "" where there is none: of a record.
func (u *unit) portName() string {
	if u.port == nil {
		return ""
	}
	return u.port.Name()
}

// close takes a host down. Its transfers fail, and their other ends are notified
// as far as the port still can.
func (u *unit) close() error {
	close(u.gone)
	_ = u.command(agent.Shutdown{}) // a worker that has ended runs none
	err := errors.Join(u.endRecording(), u.page.Close())
	if u.port != nil {
		err = errors.Join(err, u.engine.RemovePort(u.port))
	}
	return errors.Join(err, u.engine.RemoveNode(u.worker.Index(), u.agent))
}

// reopen closes the port of a host and opens it anew. Queue pairs stay.
func (u *unit) reopen(h *config.Host) error {
	if err := u.engine.RemovePort(u.port); err != nil {
		return err
	}
	return u.openPort(h, u.queues)
}

// configure brings a host that stays in line with what h says. Queue pairs
// that are open keep what they were opened with.
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

// serve lets others open queue pairs here, until as many calls of unserve.
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
	// A worker that has ended serves nobody.
	_ = u.command(&agent.ServeRegion{})
}

// resize serves a region of the size that is configured now. Whoever is
// connected keeps the one before until the end.
func (u *unit) resize() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.region = nil
	if u.users == 0 {
		return nil
	}
	return u.offer()
}

// offer serves the region, which it makes where there is none. The caller
// holds mu.
func (u *unit) offer() error {
	change := &agent.ServeRegion{Region: u.region, Again: u.region != nil}
	if u.region == nil {
		u.region = agent.NewRegion(int(u.conf.Load().Region))
		change.Region = u.region
	}
	err := u.command(change)
	return errors.Join(err, change.Refused)
}
