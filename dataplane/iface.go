package dataplane

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
	"gswitch/frame"
)

// ifaceKey identifies an interface: a path or name of a network namespace, and the
// interface's name in it.
type ifaceKey struct{ netns, name string }

func (k ifaceKey) String() string {
	if k.netns == "" {
		return k.name
	}
	return k.name + " in network namespace " + k.netns
}

// iface is an interface of which ports of this engine each use some queues. It is guarded
// by Engine.mu.
type iface struct {
	key   ifaceKey
	ports []*Port
	port  *xsk.Port // nil while the interface is not open
	prep  *preparation
	peer  []string // settings of a veth's other end that break frames
	fill  int      // chunks for the fill rings of all its queues
	index int
	mac   string
	mtu   int
	why   string // why it is not open
	lost  bool   // it was open before and was not closed on purpose
	down  bool   // SetEnabled: it should be set down
}

// addShare gives p its queues of an interface. The interface is opened, or reopened with
// the queues of all its ports.
func (e *Engine) addShare(p *Port) error {
	k := ifaceKey{p.spec.NetNS, p.spec.Interface}
	i := e.interfaces[k]
	if i == nil {
		i = &iface{key: k}
	}
	for _, o := range i.ports {
		for _, q := range p.spec.Queues {
			if slices.Contains(o.spec.Queues, q) {
				return fmt.Errorf("queue %d of %s already belongs to port %s", q, k, o.spec.Name)
			}
		}
		if o.spec.Mode != p.spec.Mode || o.spec.RingSize != p.spec.RingSize || o.spec.BusyPoll != p.spec.BusyPoll || o.spec.Timing != p.spec.Timing || !reflect.DeepEqual(o.spec.Filter, p.spec.Filter) {
			return fmt.Errorf("mode, ring size, busy polling, filter and timing must be those of port %s, which uses %s too", o.spec.Name, k)
		}
	}
	if i.port != nil {
		// Do not restore the interface in between: the other end would see its link go
		// down.
		if err := e.closeSockets(i, "another port takes queues of it"); err != nil {
			e.log.Warn("interface not closed cleanly", "interface", k.name, "netns", k.netns, "err", err)
		}
	}
	i.ports, p.iface = append(i.ports, p), i
	e.interfaces[k] = i
	err := e.openIface(i)
	if err != nil && p.spec.Optional {
		e.log.Warn("port down until its interface can be opened", "port", p.spec.Name, "err", err)
		return nil
	}
	return err
}

// removeShare removes p from its interface, which is closed or continues without p's
// queues.
func (e *Engine) removeShare(p *Port) error {
	i := p.iface
	if i == nil {
		return nil
	}
	err := e.closeSockets(i, "removed")
	i.ports = slices.DeleteFunc(i.ports, func(o *Port) bool { return o == p })
	if len(i.ports) == 0 || e.stopped {
		err = errors.Join(err, e.restore(i))
	}
	if len(i.ports) == 0 {
		delete(e.interfaces, i.key)
		return err
	}
	if !e.stopped {
		if oerr := e.openIface(i); oerr != nil {
			e.log.Warn("port down", "interface", i.key.name, "netns", i.key.netns, "err", oerr)
		}
	}
	return err
}

// openIface prepares the interface, attaches the program, opens the sockets and, if the
// link is up, brings the ports up.
func (e *Engine) openIface(i *iface) (err error) {
	defer func() {
		if err != nil {
			i.why = err.Error()
			for _, p := range i.ports {
				p.state = "down: " + i.why
			}
		}
	}()
	if err := e.supervisor.watch(i.key.netns); err != nil {
		return err
	}
	spec := &i.ports[0].spec
	var link netlink.Link
	err = xsk.InNetNS(i.key.netns, func() (err error) {
		if link, err = netlink.LinkByName(i.key.name); err != nil {
			return fmt.Errorf("interface %s: %w", i.key, err)
		}
		if i.prep == nil {
			if i.prep, err = prepare(link); err == nil && spec.Timing {
				i.prep.stamps(i.key.name)
			}
		}
		return err
	})
	if err != nil {
		return errors.Join(err, e.restore(i))
	}
	queues := 0
	for _, p := range i.ports {
		queues += len(p.spec.Queues)
	}
	fill, err := e.fillSize(queues, spec.RingSize)
	if err != nil {
		return errors.Join(fmt.Errorf("interface %s: %w", i.key, err), e.restore(i))
	}
	c := xsk.PortConfig{Interface: i.key.name, Filter: spec.Filter, Stamp: spec.Timing, Hardware: i.prep.nic != nil, Socket: xsk.Config{
		NetNS: i.key.netns, Mode: spec.Mode, RxSize: spec.RingSize, TxSize: spec.RingSize, FillSize: fill, BusyPoll: spec.BusyPoll,
		// Frames longer than a chunk come in several.
		Multibuffer: link.Attrs().MTU+maxLinkHeader > e.config.ChunkSize-frame.DefaultHeadroom,
	}}
	for _, p := range i.ports {
		c.Queues = append(c.Queues, p.spec.Queues...)
	}
	port, err := xsk.OpenPort(e.umem, c)
	if err != nil {
		if c.Socket.Multibuffer {
			err = fmt.Errorf("%w (its MTU of %d needs frames in several chunks; a smaller MTU may help)", err, link.Attrs().MTU)
		}
		return errors.Join(err, e.restore(i))
	}
	i.port, i.index, i.fill, i.why = port, port.IfIndex(), queues*fill, ""
	i.mac, i.mtu = link.Attrs().HardwareAddr.String(), link.Attrs().MTU
	sockets := port.Sockets()
	for _, p := range i.ports {
		n := len(p.spec.Queues)
		p.sockets, sockets = sockets[:n], sockets[n:]
		d := &xdpDevice{sockets: p.sockets, tx: p.sockets[0], txSize: spec.RingSize, report: e.supervisor.poke}
		if spec.Timing {
			d.clock, d.stats, d.nic = &e.clock, &p.line.stats, i.prep.nic
		}
		p.device = d
		p.state = "down: the link is not up yet"
	}
	e.log.Info("interface opened", "interface", i.key.name, "netns", i.key.netns, "mode", port.Mode(), "tried", rungs(port), "mtu", i.mtu)
	i.peer, _ = peerWarnings(i.key.netns, link, i.completes(), e.namespaces())
	for _, w := range slices.Concat(i.prep.warnings, i.peer) {
		e.log.Warn("interface", "interface", i.key.name, "netns", i.key.netns, "warning", w)
	}
	if i.lost {
		i.lost = false
		for _, p := range i.ports {
			p.reopened++
		}
	}
	if i.down { // only now: sockets can be opened only while the interface is up
		if err := e.setUp(i, false); err != nil {
			return err
		}
	}
	e.follow(i, i.linkState(e))
	return nil
}

// SetEnabled sets the interface of a port up or down, so that the other end sees its
// carrier come or go, as when a switch port is shut down. Ports that are not interfaces
// do not support it.
func (e *Engine) SetEnabled(p *Port, up bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := p.iface
	if i == nil || i.down == !up {
		return nil
	}
	i.down = !up
	if i.port == nil {
		return nil // openIface does it
	}
	if err := e.setUp(i, up); err != nil {
		return err
	}
	e.follow(i, i.linkState(e))
	return nil
}

func (e *Engine) setUp(i *iface, up bool) error {
	err := xsk.InNetNS(i.key.netns, func() error {
		if up {
			return netlink.LinkSetUp(i.link())
		}
		return netlink.LinkSetDown(i.link())
	})
	if err != nil {
		return fmt.Errorf("interface %s: set up or down: %w", i.key, err)
	}
	return nil
}

// link identifies the interface to the kernel.
func (i *iface) link() netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: i.index, Name: i.key.name}}
}

// fillSize returns the size, at most want, of the fill rings of n more queues. All fill
// rings together leave a quarter of the arena to frames in flight, and no interface takes
// more than a quarter of what is left, so that there is room for later ones.
func (e *Engine) fillSize(n, want int) (int, error) {
	const least = 256
	left := e.config.Chunks * 3 / 4
	for _, i := range e.interfaces {
		left -= i.fill
	}
	size := want
	for size > least && n*size > left/4 {
		size /= 2
	}
	if n*size > left {
		return 0, fmt.Errorf("the arena of %d frames is too small for %d more queues; raise it by %d", e.config.Chunks, n, (n*least-left)*4/3)
	}
	return size, nil
}

// maxLinkHeader is the number of bytes of a frame that its MTU does not count: Ethernet
// and one tag.
const maxLinkHeader = 14 + 4

// completes reports whether all nodes of the interface complete checksums.
func (i *iface) completes() bool {
	return !slices.ContainsFunc(i.ports, func(p *Port) bool { return !p.spec.Completes })
}

// lookAtPeer checks whether the other end of a veth still breaks frames.
func (e *Engine) lookAtPeer(i *iface) {
	link, err := e.supervisor.link(i.key.netns, i.index)
	if err != nil {
		return // it has been deleted; inspect finds that out
	}
	warnings, looked := peerWarnings(i.key.netns, link, i.completes(), e.namespaces())
	if looked {
		i.peer = warnings
		return
	}
	for k, w := range i.peer { // keep the last observation until it can be repeated
		if !strings.HasSuffix(w, unseen) {
			i.peer[k] = w + unseen
		}
	}
}

// unseen is appended to a warning about an interface in a namespace that a daemon without
// CAP_SYS_ADMIN can no longer enter.
const unseen = " (seen when the port opened; gswitch doctor looks again)"

// closeIface closes an interface and restores its original settings.
func (e *Engine) closeIface(i *iface, why string) error {
	return errors.Join(e.closeSockets(i, why), e.restore(i))
}

// closeSockets takes the ports down, detaches the program and frees the frames.
func (e *Engine) closeSockets(i *iface, why string) error {
	i.why = why
	for _, p := range i.ports {
		e.takeDown(p, why)
	}
	if i.port == nil {
		return nil
	}
	for _, p := range i.ports {
		var c PortCounters
		p.addSocketCounters(&c)
		p.closed = c
	}
	err := i.port.Close()
	for _, p := range i.ports {
		if d := p.device; d != nil {
			err = errors.Join(err, p.worker.Do(func(frame.Time) { d.release(p.worker.pool) }))
		}
		p.device, p.sockets = nil, nil
	}
	i.port, i.fill, i.peer = nil, 0, nil
	return err
}

// restore restores the original settings of the interface, if it still exists.
func (e *Engine) restore(i *iface) error {
	if i.prep == nil {
		return nil
	}
	undo := i.prep.undo
	i.prep = nil
	if i.down {
		undo = append(undo, func() error { return netlink.LinkSetUp(i.link()) }) // as prepare left it
	}
	if len(undo) == 0 {
		return nil
	}
	err := xsk.InNetNS(i.key.netns, func() error {
		var errs []error
		for _, f := range slices.Backward(undo) {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	})
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// linkState returns "" if the link is up, and otherwise why it is not.
func (i *iface) linkState(e *Engine) string {
	l, err := e.supervisor.link(i.key.netns, i.index)
	if err != nil {
		return err.Error()
	}
	switch f := l.Attrs().RawFlags; {
	case f&unix.IFF_UP == 0:
		return "interface is set down"
	case f&unix.IFF_RUNNING == 0:
		return "no carrier: the other end is down"
	}
	return ""
}

// follow notifies the nodes when the link changes. why is empty if it is up.
func (e *Engine) follow(i *iface, why string) {
	for _, p := range i.ports {
		switch {
		case why == "" && !p.up:
			if d, ok := p.device.(*xdpDevice); ok {
				d.lost.Store(false)
			}
			if err := e.bringUp(p, p.device); err != nil {
				continue
			}
			e.log.Info("port up", "port", p.spec.Name, "interface", i.key.name, "netns", i.key.netns, "mode", i.port.Mode())
		case why != "" && p.up:
			e.takeDown(p, why)
			e.log.Warn("port down", "port", p.spec.Name, "interface", i.key.name, "netns", i.key.netns, "reason", why)
		case why != "":
			p.state = "down: " + why
		}
	}
}

// describe fills in what PortStats says about the interface.
func (i *iface) describe(s *PortStats) {
	if i == nil {
		return
	}
	s.IfIndex, s.MAC, s.MTU = i.index, i.mac, i.mtu
	if i.prep != nil {
		s.Setup, s.Warnings = i.prep.setup(), slices.Concat(i.prep.warnings, i.peer)
	}
	if i.port != nil {
		s.Mode, s.ModeWhy = i.port.Mode(), rungs(i.port)
		first := i.port.Sockets()[0]
		s.TxBudget, s.MultiBuffer = first.TxBudget(), first.MultiBuffer()
		for _, sock := range i.port.Sockets() {
			s.BusyPoll = s.BusyPoll || sock.BusyPoll()
		}
	}
}

func rungs(p *xsk.Port) string {
	var s []string
	for _, r := range p.Rungs() {
		s = append(s, r.String())
	}
	return strings.Join(s, "; ")
}

// await waits until the interface of spec exists.
func (e *Engine) await(spec PortSpec) error {
	deadline := time.Now().Add(spec.Wait)
	for {
		err := xsk.InNetNS(spec.NetNS, func() error {
			_, err := netlink.LinkByName(spec.Interface)
			return err
		})
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("interface %s did not appear within %v: %w", ifaceKey{spec.NetNS, spec.Interface}, spec.Wait, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// namespaces returns the network namespaces of the engine's interfaces.
func (e *Engine) namespaces() []string {
	var names []string
	for k := range e.interfaces {
		if !slices.Contains(names, k.netns) {
			names = append(names, k.netns)
		}
	}
	return names
}
