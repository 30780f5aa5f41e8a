package kernel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
	"gswitch/vswitch"
)

const (
	batch   = 16384                 // routes passed to a switch at once
	gather  = 10 * time.Millisecond // how long to collect changes
	again   = time.Second           // between attempts while the kernel does not answer
	pending = 64 << 20              // bytes of changes that the kernel buffers
)

// Watcher passes the routes through the twins of a switch's ports to the switch.
type Watcher struct {
	netns string
	ports map[string]string // by interface
	put   func(*vswitch.LearnRoutes) error
	log   *slog.Logger
	done  chan struct{}
}

// Watch tracks the routes in a network namespace (a name, a path, or "" for that of the
// process) until Stop. ports maps the interfaces that are twins to the names of their
// ports. put is called on a goroutine of its own.
func Watch(netns string, ports map[string]string, put func(*vswitch.LearnRoutes) error, log *slog.Logger) *Watcher {
	w := &Watcher{netns: netns, ports: ports, put: put, log: log, done: make(chan struct{})}
	go w.run()
	return w
}

// Stop ends the watcher soon: put may still be running.
func (w *Watcher) Stop() { close(w.done) }

func (w *Watcher) run() {
	table := NewTable()
	for before := ""; ; {
		err := w.follow(table)
		if err == nil {
			return
		}
		if err.Error() != before {
			before = err.Error()
			w.log.Warn("routes of the kernel cannot be followed, trying again", "netns", w.netns, "err", err)
		}
		select {
		case <-w.done:
			return
		case <-time.After(again):
		}
	}
}

// feed is a netlink subscription.
type feed struct {
	handle *netlink.Handle
	routes chan netlink.RouteUpdate
	links  chan netlink.LinkUpdate
	end    chan struct{}
}

func (w *Watcher) subscribe() (f *feed, err error) {
	f = &feed{routes: make(chan netlink.RouteUpdate, 4096), links: make(chan netlink.LinkUpdate, 64), end: make(chan struct{})}
	// A socket stays in the namespace in which it was opened.
	err = xsk.InNetNS(w.netns, func() (err error) {
		if f.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return fmt.Errorf("netlink: %w", err)
		}
		// A failed receive closes the channels, and we subscribe again.
		ignore := func(error) {}
		if err := netlink.RouteSubscribeWithOptions(f.routes, f.end, netlink.RouteSubscribeOptions{ErrorCallback: ignore, ReceiveBufferSize: pending, ReceiveBufferForceSize: true}); err != nil {
			return fmt.Errorf("watch routes: %w", err)
		}
		if err := netlink.LinkSubscribeWithOptions(f.links, f.end, netlink.LinkSubscribeOptions{ErrorCallback: ignore}); err != nil {
			return fmt.Errorf("watch links: %w", err)
		}
		return nil
	})
	if err != nil {
		f.close()
	}
	return f, err
}

func (f *feed) close() {
	close(f.end)
	if f.handle != nil {
		f.handle.Close()
	}
	go func() { // the receiving goroutines may be blocked on us
		for range f.routes {
		}
	}()
	go func() {
		for range f.links {
		}
	}()
}

// follow keeps the switch in line with the kernel. It returns nil after Stop.
func (w *Watcher) follow(t *Table) error {
	f, err := w.subscribe()
	if err != nil {
		return err
	}
	defer f.close()
	if err := w.list(f, t); err != nil {
		return err
	}
	if err := w.install(t); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	armed, stale := false, false
	for {
		select {
		case <-w.done:
			return nil
		case u, ok := <-f.routes:
			if !ok {
				return errors.New("the kernel had more changes than its buffer holds")
			}
			t.update(&u)
		case u, ok := <-f.links:
			if !ok {
				return errors.New("the kernel had more changes of links than its buffer holds")
			}
			// Routes over a link that goes down may disappear without a message.
			stale = stale || w.ports[u.Attrs().Name] != ""
		case <-timer.C:
			armed = false
			if stale {
				stale = false
				if err := w.list(f, t); err != nil {
					return err
				}
			}
			if err := w.install(t); err != nil {
				return err
			}
			continue
		}
		if t.Waiting() >= batch {
			if err := w.install(t); err != nil {
				return err
			}
		}
		if !armed && (stale || t.Waiting() > 0) {
			armed = true
			timer.Reset(gather)
		}
	}
}

func (t *Table) update(u *netlink.RouteUpdate) {
	if u.Type == unix.RTM_DELROUTE {
		t.Delete(&u.Route)
		return
	}
	t.Set(&u.Route)
}

// list reads all routes. Changes in the meantime are received after it.
func (w *Watcher) list(f *feed, t *Table) error {
	links, err := f.handle.LinkList()
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	ports := map[int]string{}
	for _, l := range links {
		if name, ours := w.ports[l.Attrs().Name]; ours {
			ports[l.Attrs().Index] = name
		}
	}
	t.Ports(ports)
	t.Begin()
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		err := f.handle.RouteListFilteredIter(family, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE, func(r netlink.Route) bool {
			t.Set(&r)
			return true
		})
		if err != nil {
			return fmt.Errorf("list routes: %w", err)
		}
	}
	t.End()
	return nil
}

// install passes the changes to the switch.
func (w *Watcher) install(t *Table) error {
	c := t.Take()
	if c == nil {
		return nil
	}
	began := time.Now()
	select {
	case <-w.done:
		return nil
	default:
	}
	if err := w.put(c); err != nil {
		t.all = true
		return err
	}
	level := slog.LevelDebug
	if c.Reset {
		level = slog.LevelInfo
	}
	if c.Refused > 0 {
		w.log.Warn("routes are refused: the switch has met as many different prefixes as it counts; start it anew to clear those that are gone", "refused", c.Refused)
	}
	w.log.Log(context.Background(), level, "routes of the kernel", "netns", w.netns, "set", len(c.Set), "deleted", len(c.Delete), "unused", c.Unused, "took", time.Since(began))
	return nil
}
