package gfabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"gswitch/control"
	"gswitch/control/host"
	"gswitch/control/privilege"
	runner "gswitch/fabric/run"
	"gswitch/fabric/view"
	"gswitch/fabric/vnet"
	"gswitch/fabric/web"
	"gswitch/frame"
	"gswitch/replay"
)

// recordSite is a record that is shown in the browser. A replay goes on to a later instant
// and begins anew for an earlier one; that of a whole run always does.
type recordSite struct {
	flags  *replayFlags
	name   string
	length frame.Time
	layout *view.Layout
	run    bool

	mu   sync.Mutex
	file io.Closer
	r    *replayed // nil: none is under way
	at   frame.Time
	look *view.Instants
}

// site shows a record until the end of ctx.
func (f *replayFlags) site(ctx context.Context, name string) error {
	s, err := f.newSite(ctx, name)
	if err != nil {
		return err
	}
	defer s.close()
	if err := f.keep.Drop(slog.Default(), privilege.Need{Read: []string{name}}); err != nil {
		return err
	}
	site, err := serveAt(f.serve, "--serve", func(remote bool) *web.Server { return web.NewRecord(s, remote) })
	if err != nil {
		return err
	}
	defer site.close()
	<-ctx.Done()
	return nil
}

func (f *replayFlags) newSite(ctx context.Context, name string) (*recordSite, error) {
	file, in, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s := &recordSite{flags: f, name: name, run: in.Header.Kind == runner.RecordKind}
	if s.length, err = replay.Length(in); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := s.At(ctx, []time.Duration{0}); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *recordSite) close() {
	if s.file != nil {
		_ = s.file.Close() // it was read only
	}
	s.file, s.r = nil, nil
}

// Layout implements web.Record.
func (s *recordSite) Layout() *view.Layout { return s.layout }

// begin starts a replay of a switch or a host.
func (s *recordSite) begin() error {
	s.close()
	file, in, err := s.flags.open(s.name)
	if err != nil {
		return err
	}
	p, err := s.flags.player(in)
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", s.name, err), file.Close())
	}
	s.file, s.at = file, 0
	l, err := newLookout(&replayFlags{}, nil, io.Discard)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.r = newReplayed(l, p)
	switch x := p.Node.(type) {
	case *control.Replayed:
		s.look = view.SwitchAt(p.Header.Name, x.Node, x.Ports(), x.Rates())
	case *host.Replayed:
		s.look = view.HostAt(p.Header.Name, x.NIC(), x.Rate())
	}
	s.learn()
	return nil
}

// learn keeps the layout that is seen first.
func (s *recordSite) learn() {
	if s.layout == nil {
		s.layout = s.look.Layout()
		s.layout.Title, s.layout.Took, s.layout.End = s.name, s.length.Seconds(), s.length.Seconds()
	}
}

// to replays a switch or a host up to an instant.
func (s *recordSite) to(ctx context.Context, at frame.Time) error {
	if s.r == nil || at < s.at {
		if err := s.begin(); err != nil {
			return err
		}
	}
	if err := s.r.play(ctx, addTime(s.r.p.Header.Start, at)); !replay.Ended(err) {
		s.close()
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.at = at
	return nil
}

// At implements web.Record.
func (s *recordSite) At(ctx context.Context, at []time.Duration) (out []*view.Sample, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run {
		return out, s.again(ctx, at, func(n *vnet.Network, _ *replay.Header, now frame.Time) error {
			if len(out) == 0 {
				s.look = view.NetworkAt(n, view.NetworkOptions{})
				s.learn()
			}
			out = append(out, s.look.Sample(now, 0))
			return nil
		})
	}
	for _, t := range at {
		if err := s.to(ctx, frame.Time(t)); err != nil {
			return nil, err
		}
		begin := s.r.p.Header.Start
		out = append(out, s.look.Sample(addTime(begin, min(frame.Time(t), s.length)), begin))
	}
	return out, nil
}

// again makes a run happen again, and calls do at instants. The last one that there is in
// the record is a nanosecond before its end.
func (s *recordSite) again(ctx context.Context, at []time.Duration, do func(*vnet.Network, *replay.Header, frame.Time) error) error {
	file, in, err := s.flags.open(s.name)
	if err != nil {
		return err
	}
	defer file.Close()
	x := runner.Replay{At: func(n *vnet.Network, now frame.Time) error { return do(n, &in.Header, now) }}
	for _, t := range at {
		if i := max(0, min(frame.Time(t), s.length-1)); len(x.Instants) == 0 || i > x.Instants[len(x.Instants)-1] {
			x.Instants = append(x.Instants, i)
		}
	}
	if err := x.Again(ctx, in); !replay.Ended(err) {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// Serve implements web.Record.
func (s *recordSite) Serve(at time.Duration, node string, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.run {
		err = s.again(r.Context(), []time.Duration{at}, func(n *vnet.Network, h *replay.Header, _ frame.Time) error {
			api, err := nodeOfRun(n, node, "", h)
			if err == nil {
				api.ServeHTTP(w, r)
			}
			return err
		})
	} else if err = s.to(r.Context(), frame.Time(at)); err == nil && node != s.r.p.Header.Name {
		err = fmt.Errorf("the record is of %s, not of %s", s.r.p.Header.Name, node)
	} else if err == nil {
		var api http.Handler
		if api, err = s.r.sw.Handler(s.r.p.Header, s.r.now()); err == nil {
			api.ServeHTTP(w, r)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	}
}
