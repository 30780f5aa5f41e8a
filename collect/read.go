package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Filter selects events.
type Filter struct {
	Kinds  []string  // empty: all
	Since  time.Time // when they were found; zero: all
	After  uint64    // after this number in the stream; 0: all
	Follow bool      // continue with new events
}

// Events calls f with events in the order in which they were found, until there are no
// more, or f or ctx ends it.
func (s *Store) Events(ctx context.Context, by Filter, f func(*Event) error) error {
	info, err := s.events.Info(ctx)
	if err != nil {
		return err
	}
	last := info.State.LastSeq
	c := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy}
	if !by.Since.IsZero() {
		c.DeliverPolicy, c.OptStartTime = jetstream.DeliverByStartTimePolicy, &by.Since
	}
	if by.After > 0 {
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, by.After+1
	}
	for _, k := range by.Kinds {
		c.FilterSubjects = append(c.FilterSubjects, "gswitch.event."+k+".>")
	}
	consumer, err := s.events.OrderedConsumer(ctx, c)
	if err != nil {
		return err
	}
	ci, err := consumer.Info(ctx)
	if err != nil {
		return err
	}
	left := ci.NumPending
	if left == 0 && !by.Follow {
		return nil
	}
	it, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer it.Stop()
	stop := context.AfterFunc(ctx, it.Stop)
	defer stop()
	for {
		msg, err := it.Next()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, jetstream.ErrMsgIteratorClosed) {
				return context.Cause(ctx)
			}
			return err
		}
		e := new(Event)
		if err := json.Unmarshal(msg.Data(), e); err != nil {
			return fmt.Errorf("an event of the stream: %w", err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		e.Seq = meta.Sequence.Stream
		if err := f(e); err != nil {
			return err
		}
		if !by.Follow && (meta.NumPending == 0 || meta.Sequence.Stream >= last) {
			return nil
		}
	}
}

// State is the state of the collectors.
type State struct {
	Reports    Stream      `json:"reports"` // reports in the stream
	Events     Stream      `json:"events"`
	Collectors []string    `json:"collectors"`
	Lanes      []LaneState `json:"lanes"`
	Exporters  []Exporter  `json:"exporters"`
}

// Stream is the content of a stream.
type Stream struct {
	Messages uint64    `json:"messages"`
	Bytes    uint64    `json:"bytes"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
}

// LaneState is the progress of a lane's analysis.
type LaneState struct {
	Lane   int       `json:"lane"`
	Owner  string    `json:"owner"`
	At     time.Time `json:"at"`     // of the last message analysed
	Behind uint64    `json:"behind"` // messages not yet analysed
}

// Exporter is the progress of the analysis for one exporter start.
type Exporter struct {
	Name   string    `json:"name"`
	Report uint64    `json:"report"` // number of the last one
	At     time.Time `json:"at"`
}

// State queries the state of the collectors.
func (s *Store) State(ctx context.Context) (*State, error) {
	st := &State{}
	for _, x := range []struct {
		js  jetstream.Stream
		out *Stream
	}{{s.reports, &st.Reports}, {s.events, &st.Events}} {
		i, err := x.js.Info(ctx)
		if err != nil {
			return nil, err
		}
		*x.out = Stream{i.State.Msgs, i.State.Bytes, i.State.FirstTime, i.State.LastTime}
	}
	keys, err := s.lanes.Keys(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil, err
	}
	for _, k := range keys {
		if id, ok := strings.CutPrefix(k, "collector."); ok {
			st.Collectors = append(st.Collectors, id)
		}
	}
	slices.Sort(st.Collectors)
	seen := map[string]Exporter{}
	for lane := range Lanes {
		p, _, err := s.position(ctx, lane)
		if err != nil {
			return nil, err
		}
		l := LaneState{Lane: lane, Owner: p.Owner, At: p.At}
		if l.Behind, err = s.behind(ctx, lane, p.Seq); err != nil {
			return nil, err
		}
		st.Lanes = append(st.Lanes, l)
		for name, at := range p.Seen {
			if at.Sequence > seen[name].Report {
				seen[name] = Exporter{name, at.Sequence, at.At}
			}
		}
	}
	for _, e := range seen {
		st.Exporters = append(st.Exporters, e)
	}
	slices.SortFunc(st.Exporters, func(a, b Exporter) int { return strings.Compare(a.Name, b.Name) })
	return st, nil
}

// behind counts the messages of a lane after a position.
func (s *Store) behind(ctx context.Context, lane int, seq uint64) (uint64, error) {
	c, err := s.reports.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{laneSubject(lane)}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: seq + 1, HeadersOnly: true})
	if err != nil {
		return 0, err
	}
	i, err := c.Info(ctx)
	if err != nil {
		return 0, err
	}
	return i.NumPending, nil
}
