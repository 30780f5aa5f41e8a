package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"

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
	Serve(ctx context.Context, listeners []net.Listener) error
	Stop() error
}

// Serve says that a daemon is ready, on out and to systemd, and lets it serve
// until ctx ends. reload is called for each hangup.
func Serve(ctx context.Context, d Daemon, listeners []net.Listener, out io.Writer, ready string, hangup <-chan os.Signal, reload func()) error {
	fmt.Fprintf(out, "ready: %s\n", ready)
	control.Notify("READY=1")
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx, listeners) }()
	for {
		select {
		case <-hangup:
			reload()
		case err := <-served:
			control.Notify("STOPPING=1")
			return errors.Join(err, d.Stop())
		}
	}
}

// CloseAll closes listeners.
func CloseAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// loggedChanges is how many changes of a reload are logged one by one.
const loggedChanges = 32

// LogReload logs what came of reading a file again: what it changed, and what
// that did beyond it. On an error the old configuration is in force.
func LogReload(log *slog.Logger, file string, changes []section.Change, consequences []string, err error) {
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
