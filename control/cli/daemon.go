package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/privilege"
	"gswitch/dataplane/xsk"
	"gswitch/section"
)

// Privileges is whether a daemon keeps what it was started with.
type Privileges struct{ keep bool }

// Flag adds the flag.
func (p *Privileges) Flag(f *pflag.FlagSet) {
	f.BoolVar(&p.keep, "keep-privileges", false, "keep all privileges of the start, such as for ports of other network namespaces that are added later (docs/SECURITY.md)")
}

// Drop drops the privileges that a daemon does not need once it runs.
func (p *Privileges) Drop(log *slog.Logger, need privilege.Need) error {
	if p.keep {
		return nil
	}
	control.OpenNotify()
	for _, ns := range need.NetNS {
		// Who closed files to itself sees into no other processes, by which these are named.
		if strings.HasPrefix(ns, "/proc/") {
			if err := xsk.HoldNetNS(ns); err != nil {
				log.Warn("a network namespace cannot be entered again", "netns", ns, "err", err)
			}
		}
	}
	left, err := privilege.Drop(need)
	if err != nil {
		return fmt.Errorf("privileges that are not needed cannot be dropped: %w; --keep-privileges goes without that", err)
	}
	if left.Calls != "" {
		log.Warn("system calls that are not needed were not given up", "since", left.Calls)
	}
	if left.Files != "" {
		log.Warn("files that are not needed can be written", "since", left.Files)
	}
	log.Debug("privileges that are not needed were given up", "left", strings.Join(left.Capabilities, ","))
	return nil
}

// Daemon is what a verb runs until a signal ends it.
type Daemon interface {
	Start() error
	Need() privilege.Need
	Serve(ctx context.Context, listeners []net.Listener) error
	Stop() error
	// ReadFile reads the configuration anew. It returns what changed, and what that did beyond it.
	ReadFile(path string) ([]section.Change, []string, error)
}

// Run is a daemon from its start to its end.
type Run struct {
	Log     *slog.Logger
	Control config.Control // where it listens
	File    string         // of its configuration, "" if it runs from flags

	// Open makes the daemon. It may wait for interfaces until ctx ends.
	Open func(ctx context.Context) (Daemon, error)
	// Save writes out what is recorded. nil: nothing is.
	Save func(why string) error

	daemon    Daemon
	listeners []net.Listener
}

// Start opens the sockets and starts the daemon, which does not serve its API yet.
func (r *Run) Start(ctx context.Context) (err error) {
	if r.listeners, err = control.Listen(r.Control); err != nil {
		return err
	}
	if r.daemon, err = r.Open(ctx); err != nil {
		return errors.Join(err, r.closeAll())
	}
	if err := r.daemon.Start(); err != nil {
		return r.fail(err)
	}
	// What setting up took is not needed again; the packet memory lies apart.
	debug.FreeOSMemory()
	return nil
}

// fail ends a daemon that does not come to serve.
func (r *Run) fail(err error) error { return errors.Join(err, r.daemon.Stop(), r.closeAll()) }

func (r *Run) closeAll() error {
	var errs []error
	for _, l := range r.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Serve serves the API of a daemon that was started until ctx ends, and stops it.
func (r *Run) Serve(ctx context.Context) error {
	return errors.Join(r.daemon.Serve(ctx, r.listeners), r.daemon.Stop())
}

// UntilSignal starts a daemon, drops what privileges it does not need, says on out and to systemd that what is
// ready, and serves until ctx ends or a signal comes. At each hangup the file is read again.
func (r *Run) UntilSignal(ctx context.Context, keep *Privileges, out io.Writer, what string) error {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM)
	defer stop()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, unix.SIGHUP)
	defer signal.Stop(hangup)
	err := r.Start(ctx)
	if errors.Is(err, context.Canceled) {
		r.Log.Info("asked to end while it waited for an interface", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	if err := keep.Drop(r.Log, r.daemon.Need()); err != nil {
		return r.fail(err)
	}
	if r.Save != nil {
		go saveOnSignal(ctx, r.Save, r.Log)
	}
	fmt.Fprintf(out, "ready: %s; control socket %s\n", what, r.Control.Socket)
	control.Notify("READY=1")
	served := make(chan error, 1)
	go func() { served <- r.daemon.Serve(ctx, r.listeners) }()
	for {
		select {
		case <-hangup:
			r.reload()
		case err := <-served:
			control.Notify("STOPPING=1")
			return errors.Join(err, r.daemon.Stop())
		}
	}
}

// reload reads the file again.
func (r *Run) reload() {
	if r.File == "" {
		r.Log.Warn("reload: there is no file; this daemon runs from flags")
		return
	}
	changes, consequences, err := r.daemon.ReadFile(r.File)
	logReload(r.Log, r.File, changes, consequences, err)
}

// loggedChanges is how many changes of a reload are logged one by one.
const loggedChanges = 32

// logReload logs what came of reading a file again: what it changed, and what
// that did beyond it. On an error the old configuration is in force.
func logReload(log *slog.Logger, file string, changes []section.Change, consequences []string, err error) {
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			log.Error("reload: nothing was changed", "err", strings.TrimSpace(line))
		}
		return
	}
	log.Info("reloaded", "file", file, "changes", len(changes))
	for i, c := range changes {
		if i == loggedChanges {
			log.Info("changed", "and more", len(changes)-i)
			break
		}
		log.Info("changed", "what", c.String())
	}
	for _, c := range consequences {
		log.Warn("changed", "consequence", c)
	}
}
