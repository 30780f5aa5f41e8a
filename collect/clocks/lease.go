package clocks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Lease is a value in JetStream that its holder renews while it runs. A candidate that
// has not seen it renewed for its term, by its own clock, takes it over. The holder
// counts its term from the time of its request, so its term ends first.
type Lease struct {
	kv   jetstream.KeyValue
	key  string
	id   string
	term time.Duration

	revision uint64    // of the value, when it was last seen
	since    time.Time // when that revision was first seen
	mu       sync.Mutex
	until    time.Time // end of our own lease
}

// NewLease returns a lease that is not held.
func NewLease(kv jetstream.KeyValue, key, id string, term time.Duration) *Lease {
	return &Lease{kv: kv, key: key, id: id, term: term}
}

// Held reports whether the lease is held now.
func (l *Lease) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.until)
}

// Run renews the lease, or waits for it, until ctx ends, and then releases it. report is
// called when the lease was taken or lost, or when a request fails.
func (l *Lease) Run(ctx context.Context, report func(held bool, err error)) {
	t := time.NewTicker(l.term / 4)
	defer t.Stop()
	held, reported := false, ""
	for {
		err := l.beat(ctx)
		why := ""
		if err != nil {
			why = err.Error()
		}
		if now := l.Held(); ctx.Err() == nil && (now != held || why != reported) {
			held, reported = now, why
			report(held, err)
		}
		select {
		case <-ctx.Done():
			l.leave(ctx)
			return
		case <-t.C:
		}
	}
}

// beat renews the lease, or takes it if it is free.
func (l *Lease) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.term/4)
	defer cancel()
	began := time.Now()
	if l.Held() {
		return l.take(ctx, began)
	}
	e, err := l.kv.Get(ctx, l.key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		// Create knows the revision of a deleted value.
		if l.revision, err = l.kv.Create(ctx, l.key, []byte(l.id)); err == nil {
			l.have(began)
		}
		return ignoreConflict(err)
	case err != nil:
		return err
	case e.Revision() != l.revision || l.since.IsZero():
		l.revision, l.since = e.Revision(), time.Now()
		return nil
	case time.Since(l.since) < l.term:
		return nil
	}
	return l.take(ctx, began)
}

// take writes the value if it has not changed since it was seen.
func (l *Lease) take(ctx context.Context, began time.Time) error {
	revision, err := l.kv.Update(ctx, l.key, []byte(l.id), l.revision)
	if err != nil {
		if ignoreConflict(err) == nil {
			l.have(time.Time{}) // another candidate has it
			l.since = time.Time{}
		}
		return ignoreConflict(err)
	}
	l.revision = revision
	l.have(began)
	return nil
}

func (l *Lease) have(from time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until = (time.Time{}); !from.IsZero() {
		l.until = from.Add(l.term)
	}
}

// leave releases the lease, so that others need not wait for its term.
func (l *Lease) leave(ctx context.Context) {
	if !l.Held() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = l.kv.Delete(ctx, l.key, jetstream.LastRevision(l.revision)) // if this fails the lease expires
	l.have(time.Time{})
}

// ignoreConflict treats a changed value as no error.
func ignoreConflict(err error) error {
	var api *jetstream.APIError
	if errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
		return nil
	}
	return err
}
