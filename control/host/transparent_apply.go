package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"connectrpc.com/connect"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/hostnic/bump"
	"gswitch/section"
)

// Apply makes next the configuration in force, and returns what changed. Open channels
// keep the settings with which they were opened. If anything fails, the previous
// configuration stays in force. With dry nothing is changed.
func (t *Transparent) Apply(next *config.Transparent, dry bool) (changes []section.Change, consequences []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() {
		if err != nil && !dry {
			t.refused()
		}
	}()
	var moves []int
	err = control.CatchPanic(t.opts.Logger, func() (err error) {
		if t.opts.Override != nil {
			t.opts.Override(next)
		}
		changes = section.Diff(t.conf, next)
		if err := control.Fixed(changes); err != nil {
			return err
		}
		moves, err = t.changed(next)
		return err
	})
	if err != nil {
		return changes, nil, err
	}
	for _, i := range moves {
		consequences = append(consequences, fmt.Sprintf("~ host %s: open channels keep congestion control, telemetry and recovery until they are closed", next.Bumps[i].Name))
	}
	if dry {
		return changes, consequences, nil
	}
	if err := control.InSteps(t.opts.Logger, func(step control.Stepper) error {
		for _, i := range moves {
			if err := step(
				func() error { return t.configure(i, &next.Bumps[i]) },
				func() error { return t.configure(i, &t.conf.Bumps[i]) }); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return changes, nil, err
	}
	if len(changes) > 0 {
		t.state.Generation++
	}
	t.conf = next
	t.state.ReloadSuccess, t.state.ReloadTime = true, time.Now()
	return changes, consequences, nil
}

// ReadFile reads the configuration file of a running daemon again.
func (t *Transparent) ReadFile(path string) ([]section.Change, []string, error) {
	var next *config.Transparent
	err := control.CatchPanic(t.opts.Logger, func() (err error) { next, err = config.LoadTransparent(path); return err })
	if err != nil {
		t.mu.Lock()
		t.refused()
		t.mu.Unlock()
		return nil, nil, err
	}
	return t.Apply(next, false)
}

func (t *Transparent) refused() { t.state.ReloadSuccess, t.state.ReloadTime = false, time.Now() }

// changed returns the indices of the bumps that next changes, and rejects what cannot
// change while a bump runs.
func (t *Transparent) changed(next *config.Transparent) ([]int, error) {
	if len(next.Bumps) != len(t.conf.Bumps) {
		return nil, restart("hosts cannot come or go")
	}
	var out []int
	for i := range next.Bumps {
		old, b := &t.conf.Bumps[i], &next.Bumps[i]
		var keys []string
		for _, k := range []struct {
			name    string
			differs bool
		}{
			{"name", old.Name != b.Name},
			{"inner", old.Inner != b.Inner},
			{"outer", old.Outer != b.Outer},
			{"netns", old.NetNS != b.NetNS},
			{"inner_netns", old.InnerNetNS != b.InnerNetNS},
			{"mode", old.Mode != b.Mode},
			{"mac", !reflect.DeepEqual(old.MAC, b.MAC)},
			{"mtu", old.MTU != b.MTU},
			{"channels", old.Channels != b.Channels},
			{"worker", *old.Worker != *b.Worker},
		} {
			if k.differs {
				keys = append(keys, k.name)
			}
		}
		if keys != nil {
			return nil, restart(fmt.Sprintf("host %s: %s cannot change", old.Name, strings.Join(keys, ", ")))
		}
		if !reflect.DeepEqual(old, b) {
			out = append(out, i)
		}
	}
	return out, nil
}

func restart(what string) error {
	return errors.New(what + " while ghost runs: restart it, connections live through that")
}

// configure gives bump i the settings of b.
func (t *Transparent) configure(i int, b *config.Bump) error {
	conf, err := b.Node(t.mtus[i], 0) // the seed does not change
	if err != nil {
		return control.Refused(fmt.Errorf("host %s: %w", b.Name, err))
	}
	u := &t.units[i]
	change := &bump.Configure{Bump: u.Bump, Config: conf, Document: bumpDocument(b, t.mtus[i])}
	if stopped := t.engine.Command(u.Worker.Index(), u.Bump, change); stopped != nil {
		return stopped
	}
	if change.Refused != nil {
		return control.Refused(fmt.Errorf("host %s: %w", b.Name, change.Refused))
	}
	return nil
}

// bumpDocument returns a document with one bump, on the first worker, with the MTU of its
// interface.
func bumpDocument(b *config.Bump, mtu int) []byte {
	alone, first := *b, 0
	alone.Worker, alone.MTU = &first, mtu
	c := config.Transparent{Version: 1, Workers: make([]config.Worker, 1), Bumps: []config.Bump{alone}}
	return c.YAML()
}

// Apply implements the API.
func (s *transparentServer) Apply(_ context.Context, r *api.ApplyRequest) (*api.ApplyResponse, error) {
	next, err := config.ParseTransparent(cmp.Or(r.File, "document"), []byte(r.Yaml))
	if err != nil {
		if !r.DryRun {
			s.t.mu.Lock()
			s.t.refused()
			s.t.mu.Unlock()
		}
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	changes, consequences, err := s.t.Apply(next, r.DryRun)
	if err != nil {
		return nil, applyFailed(err)
	}
	return applied(r.DryRun, s.t.Generation(), changes, consequences), nil
}
