package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gswitch/fabric"
	"gswitch/wholefile"
)

// Progress is called with what is being done, one line at a time, without newline.
type Progress func(format string, args ...any)

// ErrUp says that a fabric is up and whole already.
var ErrUp = errors.New("is up already; take it down first")

// ErrNone says that there is no fabric at all.
var ErrNone = errors.New("no fabric is up; raise one with gfabric up")

// Up raises a fabric and returns when all its switches forward. program is
// the gswitch to run. What is left of an earlier fabric of the same name that
// is not whole is removed first. If anything fails, or ctx ends, everything
// that was made is removed again.
func Up(ctx context.Context, l *Layout, program string, say Progress) error {
	t := l.Plan.Topology
	lk, err := acquire(t.Name)
	if err != nil {
		return err
	}
	defer lk.release()
	if err := clearOld(t.Name, say); err != nil {
		return err
	}
	if err := checkProgram(program); err != nil {
		return err
	}
	if err := makeDir(t.Name); err != nil {
		return err
	}
	s := newState(l)
	if err := s.save(); err != nil {
		return err
	}
	began := time.Now()
	say("fabric %s: %s, %s", t.Name, t.Size(), t.Mode)
	err = s.raise(ctx, l, program, say)
	if err == nil {
		s.Phase = phaseUp
		err = s.save()
	}
	if err != nil {
		say("removing what was made")
		if cleanup := s.remove(say); cleanup != nil {
			err = fmt.Errorf("%w\nand it could not all be removed: %w", err, cleanup)
		}
		return err
	}
	say("up in %.1f s", time.Since(began).Seconds())
	return nil
}

// clearOld removes an earlier fabric of this name unless it is whole.
func clearOld(name string, say Progress) error {
	old, err := readState(name)
	if err != nil || old == nil {
		return err
	}
	if old.Phase == phaseUp && len(old.inspect().Problems) == 0 {
		return fmt.Errorf("fabric %q %w (gfabric down --name %s)", name, ErrUp, name)
	}
	say("removing what is left of an earlier fabric %s", name)
	return old.remove(say)
}

func checkProgram(program string) error {
	fi, err := os.Stat(program)
	if err != nil {
		return fmt.Errorf("cannot find gswitch: %w; build it, or name it with --gswitch", err)
	}
	if fi.IsDir() || fi.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not a program", program)
	}
	return nil
}

// raise makes everything of the layout.
func (s *state) raise(ctx context.Context, l *Layout, program string, say Progress) error {
	t := l.Plan.Topology
	if err := s.writeHosts(l.Plan); err != nil {
		return err
	}
	spaces, err := s.createNamespaces(ctx, l, func(n *Namespace) map[string]string {
		if n.Node >= 0 && t.Nodes[n.Node].Kind == fabric.Host {
			return l.sysctls
		}
		return switchSysctls
	})
	defer closeAll(spaces)
	if err != nil {
		return err
	}
	say("%s", fabric.Count(len(l.Namespaces), "namespace", "namespaces"))

	for i := range l.Veths {
		if err := ctx.Err(); err != nil {
			return err
		}
		v := &l.Veths[i]
		a, b := spaces[v.A.Namespace], spaces[v.B.Namespace]
		if err := wire(v, t.Links[v.Link].MTU, a, b); err != nil {
			return err
		}
		if err := dress(v.A, a, t.Nodes[v.A.Node].Kind == fabric.Host, &t.Links[v.Link]); err != nil {
			return err
		}
		if err := dress(v.B, b, t.Nodes[v.B.Node].Kind == fabric.Host, &t.Links[v.Link]); err != nil {
			return err
		}
	}
	for i, n := range l.Namespaces {
		if n.Node < 0 || t.Nodes[n.Node].Kind != fabric.Host {
			continue
		}
		if err := address(&l.Plan.Nodes[n.Node], spaces[i]); err != nil {
			return fmt.Errorf("host %s: %w", t.Nodes[n.Node].Name, err)
		}
	}
	say("%s, %s", fabric.Count(len(l.Veths), "veth pair", "veth pairs"), fabric.Count(len(t.Links)-len(l.Veths), "in-process link", "in-process links"))
	return s.startSwitches(ctx, l, program, say)
}

// startSwitches starts all processes and then waits for all.
func (s *state) startSwitches(ctx context.Context, l *Layout, program string, say Progress) error {
	began := time.Now()
	var waits []func() error
	for i := range l.Processes {
		p := &s.Processes[i]
		if err := wholefile.WriteBytes(p.Config, 0o644, l.Processes[i].Config.YAML()); err != nil {
			return err
		}
		cmd, err := s.start(p, program)
		if err != nil {
			return err
		}
		waits = append(waits, func() error { return awaitReady(ctx, cmd, p) })
	}
	for _, wait := range waits {
		if err := wait(); err != nil {
			return err
		}
	}
	say("%d gswitch ready after %.1f s", len(waits), time.Since(began).Seconds())
	return nil
}

// Down removes a fabric, whole or not. It reports whether there was one.
func Down(name string, say Progress) (bool, error) {
	if err := fabric.CheckName("fabric", name); err != nil {
		return false, err
	}
	lk, err := acquire(name)
	if err != nil {
		return false, err
	}
	defer lk.release()
	s, err := readState(name)
	if err != nil {
		return false, err
	}
	if s == nil {
		// Nothing but the folder can have been made before the state was.
		dir := filepath.Join(runDir, name)
		os.Remove(filepath.Join(dir, ".state.json"))
		err := os.Remove(dir)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}
	if err := s.remove(say); err != nil {
		return true, err
	}
	say("fabric %s is removed", name)
	return true, nil
}

// DownAll removes every fabric and returns their names. It goes on after an
// error.
func DownAll(say Progress) ([]string, error) {
	all, err := names()
	if err != nil {
		return nil, err
	}
	var done []string
	var errs []error
	for _, name := range all {
		was, err := Down(name, say)
		if err != nil {
			errs = append(errs, err)
		} else if was {
			done = append(done, name)
		}
	}
	return done, errors.Join(errs...)
}

// remove ends the fabric's processes and removes its namespaces and its
// folder. What cannot be removed is named, and the state stays, so that it can
// be tried again. What bears a name of the fabric and is not the fabric's is
// left alone.
func (s *state) remove(say Progress) error {
	s.Phase = phaseRemoving
	if err := s.save(); err != nil {
		say("%v: it is removed all the same", err) // a full disk: what is noted there is not whole either
	}
	if err := s.stopMembers(); err != nil {
		return err
	}
	var errs []error
	for _, n := range s.Namespaces {
		err := removeNamespace(n.Name, s.marker())
		if errors.Is(err, errForeign) {
			say("left alone: %v", err)
			continue
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.RemoveAll(s.dir())
}

// FindGswitch returns the gswitch to run: the named one, the one beside this
// program, or the one in PATH.
func FindGswitch(named string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	if me, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(me), "gswitch")
		if checkProgram(beside) == nil {
			return beside, nil
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if p := filepath.Join(dir, "gswitch"); dir != "" && checkProgram(p) == nil {
			return filepath.Abs(p)
		}
	}
	return "", errors.New("no gswitch beside gfabric nor in PATH; build it (make build), or name it with --gswitch")
}

// Resolve returns the name of the fabric that is meant: the named one, or the
// only one there is.
func Resolve(name string) (string, error) {
	all, err := names()
	if err != nil {
		return "", err
	}
	if name != "" {
		for _, n := range all {
			if n == name {
				return name, nil
			}
		}
		return "", fmt.Errorf("there is no fabric %q", name)
	}
	switch len(all) {
	case 0:
		return "", ErrNone
	case 1:
		return all[0], nil
	}
	return "", fmt.Errorf("there are several fabrics; choose one with --name: %s", strings.Join(all, ", "))
}
