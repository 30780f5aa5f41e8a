package view

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
)

// Relay is a source that shows one source after the other, such as the runs
// of a scenario. It is made by NewRelay.
type Relay struct {
	cast   cast
	layout atomic.Pointer[Layout]
	ask    chan struct{} // somebody waits
	attach chan Source
	closed chan struct{}
	stop   context.CancelFunc
}

// NewRelay returns a relay that shows nothing yet; until then its layout is l.
func NewRelay(l *Layout) *Relay {
	ctx, stop := context.WithCancel(context.Background())
	r := &Relay{ask: make(chan struct{}, 1), attach: make(chan Source), closed: make(chan struct{}), stop: stop}
	r.layout.Store(l)
	r.cast.on = func() {
		select {
		case r.ask <- struct{}{}:
		default:
		}
	}
	go r.run(ctx)
	return r
}

// Show makes the relay show s from now on. The last sample of the previous source is
// shown if it had a viewer when it ended.
func (r *Relay) Show(s Source) {
	select {
	case r.attach <- s:
	case <-r.closed:
	}
}

// Close ends the relay.
func (r *Relay) Close() {
	r.stop()
	<-r.closed
}

// Layout and Sample make the relay a Source.
func (r *Relay) Layout() *Layout                             { return r.layout.Load() }
func (r *Relay) Sample(ctx context.Context) (*Sample, error) { return r.cast.wait(ctx) }

// run asks the source for a sample when one is requested.
func (r *Relay) run(ctx context.Context) {
	defer close(r.closed)
	defer r.cast.end(nil, nil)
	var src Source
	for {
		var ask chan struct{}
		if src != nil {
			ask = r.ask
		}
		select {
		case <-ctx.Done():
			return
		case s := <-r.attach:
			src = s
			r.layout.Store(s.Layout())
		case <-ask:
			next, over := r.fetch(ctx, src)
			if next != nil {
				src = next
				r.layout.Store(src.Layout())
			} else if over {
				src = nil
			}
		}
	}
}

// fetch shows the next sample of src. It returns the source that is to be
// shown instead, if there is one now, and whether src is at its end.
func (r *Relay) fetch(ctx context.Context, src Source) (next Source, over bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type result struct {
		s   *Sample
		err error
	}
	got := make(chan result, 1)
	go func() {
		s, err := src.Sample(ctx)
		got <- result{s, err}
	}()
	select {
	case v := <-got:
		if v.s != nil && (v.err == nil || errors.Is(v.err, io.EOF)) {
			r.layout.Store(src.Layout())
			r.cast.publish(v.s)
		} else {
			r.cast.on() // who waits is still to be served
		}
		return nil, v.err != nil
	case next = <-r.attach:
		stop()
		if v := <-got; v.s != nil && errors.Is(v.err, io.EOF) {
			r.cast.publish(v.s)
		} else {
			r.cast.on()
		}
		return next, false
	}
}
