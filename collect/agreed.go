package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// attempts is how often a change is tried if others change the value at the same time.
const attempts = 16

// betweenAttempts is the pause before the second attempt. It grows by the same amount for
// each later one.
const betweenAttempts = 5 * time.Millisecond

// amend applies change to the value that collectors share under a key, if change says so.
// If another collector changes it at the same time, change is called again with the new
// value.
func amend[T any](ctx context.Context, s *Store, key string, change func(v *T) (bool, error)) error {
	for i := range attempts {
		if i > 0 {
			// A read may lag a little behind the last write (jetstream.KeyValue).
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(i) * betweenAttempts):
			}
		}
		v, revision, err := agreed[T](ctx, s, key)
		if err != nil {
			return err
		}
		if changed, err := change(v); !changed || err != nil {
			return err
		}
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if revision == 0 {
			_, err = s.lanes.Create(ctx, key, text)
		} else {
			_, err = s.lanes.Update(ctx, key, text, revision)
		}
		switch {
		case err == nil:
			return nil
		case !taken(err) && !errors.Is(err, jetstream.ErrKeyExists):
			return fmt.Errorf("whether it is kept is not known: ask what there is now (%w)", err)
		}
	}
	return fmt.Errorf("others change %s all the time: ask again", key)
}

// agreed reads the value of a key and its revision, which is 0 if there is no value yet.
func agreed[T any](ctx context.Context, s *Store, key string) (v *T, revision uint64, err error) {
	v = new(T)
	e, err := s.lanes.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return v, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(e.Value(), v); err != nil {
		return nil, 0, fmt.Errorf("what is kept of %s: %w", key, err)
	}
	return v, e.Revision(), nil
}

// refusing is an answer to a request that can say why the request was refused.
type refusing[S any] interface {
	*S
	refused() *string
}

// decided answers requests for a change on behalf of all collectors. It counts refusals.
func decided[R, S any, P refusing[S]](m *Metrics, what string, decide func(context.Context, *R) (P, error)) func(context.Context, []byte) any {
	return func(ctx context.Context, text []byte) any {
		r, st := new(R), P(nil)
		err := json.Unmarshal(text, r)
		if err != nil {
			err = fmt.Errorf("it is no request about %s: %w", what, err)
		} else {
			st, err = decide(ctx, r)
		}
		if err != nil {
			st = P(new(S))
			*st.refused() = err.Error()
		}
		if *st.refused() != "" {
			m.refused.WithLabelValues(what).Inc()
		}
		return st
	}
}

// ask asks any one of the running collectors.
func ask[A any](ctx context.Context, s *Store, subject string, request any) (*A, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*s.patience)
	defer cancel()
	m, err := s.nc.RequestWithContext(ctx, subject, text)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, errors.New("no collector runs that could decide: start gcollect run")
	}
	if err != nil {
		return nil, fmt.Errorf("no collector answered in time, and one may have done it nevertheless: ask again; then what was added or allowed changes nothing, and what was removed or ended is refused, as it is not there (%w)", err)
	}
	a := new(A)
	if err := json.Unmarshal(m.Data, a); err != nil {
		return nil, fmt.Errorf("what a collector says at %s: %w", subject, err)
	}
	return a, nil
}
