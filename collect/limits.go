package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"gswitch/control/api"
	"gswitch/mirror"
)

// uses is the memory use of an analysis.
type uses struct {
	seen, flows, judged, followed, digests, batches, hops int
	refused                                               refusals
}

func (a *Analysis) uses() uses {
	u := uses{seen: len(a.seen), flows: a.waitingBytes(), digests: a.digests, batches: a.batchBytes(), hops: a.book.Hops(), refused: a.refused}
	for _, s := range a.slots {
		for _, w := range s.watchers {
			u.followed = max(u.followed, w.Len())
		}
		for _, w := range s.waiting {
			u.judged = max(u.judged, w.cost)
		}
	}
	return u
}

// Limits returns the limits and uses of the lanes' analyses.
func (m *Metrics) Limits() []*api.Limit {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sum uses
	for _, u := range m.uses {
		sum.seen += u.seen
		sum.flows += u.flows
		sum.judged = max(sum.judged, u.judged)
		sum.followed = max(sum.followed, u.followed)
		sum.digests += u.digests
		sum.batches += u.batches
		sum.hops += u.hops
		sum.refused.judged += u.refused.judged
		sum.refused.followed += u.refused.followed
		sum.refused.digests += u.refused.digests
		sum.refused.batches += u.refused.batches
	}
	lanes := uint64(len(m.uses))
	return []*api.Limit{
		{Kind: "table", Name: "lanes that are analysed here", Unit: "lanes", Used: lanes, Limit: Lanes},
		{Kind: "table", Name: "starts of exporters that are kept", Unit: "entries", Used: uint64(sum.seen), Limit: lanes * mostSeen},
		{Kind: "memory", Name: "slots of flows that are not judged", Unit: "bytes", Used: uint64(sum.flows), Limit: lanes * mostWaiting},
		{Kind: "memory", Name: "a slot of flows while it is judged", Unit: "bytes", Used: uint64(sum.judged), Limit: mostJudged, Refused: sum.refused.judged},
		{Kind: "table", Name: "flows that are followed", Unit: "entries", Used: uint64(sum.followed), Limit: mostFollowed, Refused: sum.refused.followed},
		{Kind: "memory", Name: "digests that wait for the other end", Unit: "bytes", Used: uint64(sum.digests), Limit: lanes * mostDigests, Refused: sum.refused.digests},
		{Kind: "memory", Name: "batches that are not decided", Unit: "bytes", Used: uint64(sum.batches), Limit: lanes * mostBatches, Refused: sum.refused.batches},
		{Kind: "table", Name: "hops of traces that are not whole", Unit: "hops", Used: uint64(sum.hops), Limit: lanes * mirror.MostHops},
	}
}

// Limits returns the limits and uses of connections.
func (r *Receiver) Limits() []*api.Limit {
	v := []*api.Limit{
		{Kind: "connections", Name: "connections of exporters", Unit: "connections"},
		{Kind: "memory", Name: "what exporters said they are", Unit: "bytes"},
		{Kind: "memory", Name: "reports that are being read", Unit: "bytes"},
	}
	for i, p := range []*pool{r.places, r.hellos, r.bodies} {
		v[i].Used, v[i].Refused = p.use()
		v[i].Limit = uint64(p.most)
	}
	return v
}

// Limits returns the limit and use of the queue for the stream.
func (c *Copies) Limits() []*api.Limit {
	return []*api.Limit{{Kind: "memory", Name: "copies that wait for the stream", Unit: "bytes", Used: uint64(c.waiting.Load()), Limit: mostCopyBytes, Refused: c.overrun.Load()}}
}

// Limits returns how full the streams are.
func (s *Store) Limits(ctx context.Context) ([]*api.Limit, error) {
	reports, err := s.reports.Info(ctx)
	if err != nil {
		return nil, err
	}
	events, err := s.events.Info(ctx)
	if err != nil {
		return nil, err
	}
	return []*api.Limit{
		{Kind: "disk", Name: "stream of reports", Unit: "bytes", Used: reports.State.Bytes, Limit: uint64(max(0, reports.Config.MaxBytes)), Key: "--disk"},
		{Kind: "disk", Name: "stream of events, of which the oldest go", Unit: "bytes", Used: events.State.Bytes, Limit: uint64(max(0, events.Config.MaxBytes)), Key: "--disk, --keep"},
	}, nil
}

// limitsSubject is the subject for queries of limits.
const limitsSubject = "gswitch.limits"

// AnswerLimits answers queries from the server or cluster until ctx ends.
func (s *Store) AnswerLimits(ctx context.Context, take func(context.Context) (*api.Limits, error)) error {
	return s.answer(ctx, limitsSubject, "", func(ctx context.Context, _ []byte) any {
		v, err := take(ctx)
		if err != nil {
			v = &api.Limits{Limits: []*api.Limit{{Name: "cannot be known: " + err.Error()}}}
		}
		return v
	})
}

// answer answers requests until ctx ends; in a group, one member answers each.
func (s *Store) answer(ctx context.Context, subject, group string, take func(context.Context, []byte) any) error {
	sub, err := s.subscribe(ctx, subject, group, take)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return ignore(sub.Unsubscribe(), nats.ErrConnectionClosed)
}

// subscribe answers requests until the subscription ends.
func (s *Store) subscribe(ctx context.Context, subject, group string, take func(context.Context, []byte) any) (*nats.Subscription, error) {
	return s.nc.QueueSubscribe(subject, group, func(m *nats.Msg) {
		ctx, cancel := context.WithTimeout(ctx, 2*s.patience)
		defer cancel()
		if text, err := json.Marshal(take(ctx, m.Data)); err == nil {
			_ = m.Respond(text) // the client may have gone away
		}
	})
}

// askWait is how long collectors may take to answer, in a Store that was opened.
const askWait = 2 * time.Second

// AskLimits queries all running collectors.
func (s *Store) AskLimits(ctx context.Context) (*api.Limits, error) {
	v, err := askAll[api.Limits](ctx, s, limitsSubject)
	if err != nil {
		return nil, err
	}
	out := &api.Limits{}
	for _, one := range v {
		out.Limits = append(out.Limits, one.Limits...)
	}
	slices.SortStableFunc(out.Limits, func(a, b *api.Limit) int { return strings.Compare(a.Switch, b.Switch) })
	return out, nil
}

// askAll queries all running collectors, of which at least one must answer.
func askAll[T any](ctx context.Context, s *Store, subject string) (v []*T, err error) {
	keys, err := s.lanes.Keys(ctx)
	if err != nil {
		return nil, err
	}
	left := 0
	for _, k := range keys {
		if strings.HasPrefix(k, "collector.") {
			left++
		}
	}
	inbox := s.nc.NewRespInbox()
	sub, err := s.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe()
	if err := s.nc.PublishRequest(subject, inbox, nil); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for ; left > 0; left-- {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break // one has just ended
		}
		one := new(T)
		if err := json.Unmarshal(m.Data, one); err != nil {
			return nil, fmt.Errorf("what a collector says at %s: %w", subject, err)
		}
		v = append(v, one)
	}
	if len(v) == 0 {
		return nil, fmt.Errorf("no collector answers within %v", s.patience)
	}
	return v, nil
}
