package dataplane

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
)

// supervisor watches the interfaces of an engine. When an interface or its namespace is
// deleted, its ports are taken down; when it returns, they are reopened. It runs on a
// goroutine of its own, makes changes under Engine.mu and passes them to the workers.
type supervisor struct {
	engine  *Engine
	look    chan struct{} // something has changed
	stopped chan struct{}
	once    sync.Once
	wg      sync.WaitGroup

	monitors     map[string]*monitor // by namespace, guarded by Engine.mu
	ended        bool                // nothing is watched any more; guarded by Engine.mu
	checkedPeers time.Time           // when the other ends of veths were last checked
}

// monitor is a subscription to the links of one network namespace.
type monitor struct {
	handle *netlink.Handle
	inode  uint64 // of the namespace, to detect that its name refers to another one
	done   chan struct{}
}

func (s *supervisor) init(e *Engine) {
	s.engine = e
	s.look, s.stopped = make(chan struct{}, 1), make(chan struct{})
	s.monitors = map[string]*monitor{}
}

// poke makes the supervisor check the interfaces soon. It never blocks.
func (s *supervisor) poke() {
	select {
	case s.look <- struct{}{}:
	default:
	}
}

func (s *supervisor) start() {
	s.wg.Go(func() {
		tick := time.NewTicker(s.engine.config.Supervise)
		defer tick.Stop()
		for {
			changed := false
			select {
			case <-s.stopped:
				return
			case <-s.look:
				changed = true
			case <-tick.C:
			}
			s.engine.mu.Lock()
			if !s.ended { // otherwise a lost subscription would be renewed forever
				s.engine.inspect(changed)
			}
			s.engine.mu.Unlock()
		}
	})
}

// stop ends the goroutine and the subscriptions.
func (s *supervisor) stop() {
	s.once.Do(func() { close(s.stopped) })
	s.engine.mu.Lock()
	s.ended = true
	for ns := range s.monitors {
		s.unwatch(ns)
	}
	s.engine.mu.Unlock()
	s.wg.Wait()
}

// watch subscribes to the links of a namespace.
func (s *supervisor) watch(ns string) error {
	if s.ended {
		return ErrStopped
	}
	if s.monitors[ns] != nil {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Stat(xsk.NetNSPath(ns), &st); err != nil {
		return fmt.Errorf("network namespace %s: %w", ns, err)
	}
	m := &monitor{inode: st.Ino, done: make(chan struct{})}
	updates := make(chan netlink.LinkUpdate, 64)
	// A socket stays in the namespace in which it was opened. If the process's own were
	// passed to the library, the library would enter it, which needs CAP_SYS_ADMIN; ports
	// in the process's own namespace do not need that privilege.
	err := xsk.InNetNS(ns, func() (err error) {
		if m.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return fmt.Errorf("netlink: %w", err)
		}
		err = netlink.LinkSubscribeWithOptions(updates, m.done, netlink.LinkSubscribeOptions{
			// At worst an overrun of the socket: check then, too.
			ErrorCallback: func(error) { s.poke() },
		})
		if err != nil {
			m.handle.Close()
			return fmt.Errorf("watch links: %w", err)
		}
		return nil
	})
	if err != nil {
		if ns != "" {
			return fmt.Errorf("network namespace %s: %w", ns, err)
		}
		return err
	}
	s.monitors[ns] = m
	s.wg.Go(func() {
		// All state is read again, so an update only says that something changed. The
		// channel closes after m.done, or when the kernel ends it.
		for range updates {
			s.poke()
		}
	})
	return nil
}

func (s *supervisor) unwatch(ns string) {
	if m := s.monitors[ns]; m != nil {
		close(m.done)
		m.handle.Close()
		delete(s.monitors, ns)
	}
}

// link reads the state of an interface in a watched namespace.
func (s *supervisor) link(ns string, index int) (netlink.Link, error) {
	m := s.monitors[ns]
	if m == nil {
		return nil, fmt.Errorf("network namespace %s is not watched", ns)
	}
	return m.handle.LinkByIndex(index)
}

// gone reports whether the name of a watched namespace no longer refers to it. The
// sockets inside would keep a deleted namespace alive forever.
func (s *supervisor) gone(ns string) bool {
	m := s.monitors[ns]
	if m == nil {
		return true
	}
	var st unix.Stat_t
	err := unix.Stat(xsk.NetNSPath(ns), &st)
	return err != nil || st.Ino != m.inode
}

// inspect checks every interface and acts on its state. It reads links only if something
// changed, but namespaces, and interfaces that are not open, every time.
func (e *Engine) inspect(changed bool) {
	s := &e.supervisor
	for ns := range s.monitors {
		if ns == "" || !s.gone(ns) {
			continue
		}
		for _, i := range e.interfaces {
			if i.key.netns == ns {
				e.lose(i, "network namespace "+ns+" was deleted")
			}
		}
		s.unwatch(ns)
	}
	for _, i := range e.interfaces {
		switch {
		case i.port == nil:
			e.retry(i)
		case changed:
			_, err := s.link(i.key.netns, i.index)
			if errors.As(err, &netlink.LinkNotFoundError{}) || errors.Is(err, unix.ENODEV) {
				e.lose(i, "interface was deleted")
				e.retry(i)
				continue
			}
			e.follow(i, i.linkState(e))
		}
	}
	for _, p := range e.ports {
		if p.spec.Kind == Tap {
			e.restoreTap(p)
		}
	}
	if now := time.Now(); now.Sub(s.checkedPeers) >= peerCheckInterval {
		s.checkedPeers = now
		for _, i := range e.interfaces {
			if len(i.peer) > 0 {
				e.lookAtPeer(i)
			}
		}
	}
}

// peerCheckInterval is how often the other end of a veth is checked while it breaks
// frames: a repair there causes no notification in this namespace.
const peerCheckInterval = time.Second

// lose closes an interface that has disappeared.
func (e *Engine) lose(i *iface, why string) {
	if i.port == nil {
		return
	}
	i.lost = true
	for _, p := range i.ports {
		e.log.Warn("port down", "port", p.spec.Name, "interface", i.key.name, "netns", i.key.netns, "reason", why)
	}
	if err := e.closeIface(i, why); err != nil {
		e.log.Debug("close of a lost interface", "interface", i.key.name, "netns", i.key.netns, "err", err)
	}
}

// retry opens an interface that is not open, if it exists. A reason other than absence is
// logged when it changes.
func (e *Engine) retry(i *iface) {
	if _, err := os.Stat(xsk.NetNSPath(i.key.netns)); err != nil {
		return
	}
	before := i.why
	err := e.openIface(i)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		// The reason why it disappeared says more.
		if before != "" {
			i.why = before
			for _, p := range i.ports {
				p.state = "down: " + before
			}
		}
		return
	}
	if err != nil && err.Error() != before {
		e.log.Warn("interface cannot be opened, trying again", "interface", i.key.name, "netns", i.key.netns, "err", err)
	}
}
