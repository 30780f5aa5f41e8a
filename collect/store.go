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

// Names in JetStream.
const (
	reportStream = "GSWITCH_REPORTS"
	eventStream  = "GSWITCH_EVENTS"
	laneBucket   = "gswitch_lanes"
)

// Limits bound the size and the age of the streams.
type Limits struct {
	Reports  int64         // bytes; reports that do not fit are not acknowledged
	Events   int64         // bytes; the oldest are deleted
	Age      time.Duration // of events
	Replicas int           // servers of a cluster that store each message
}

// Store holds the streams.
type Store struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	reports jetstream.Stream
	events  jetstream.Stream
	lanes   jetstream.KeyValue
	// patience is how long collectors may take to answer.
	patience time.Duration
}

// Open opens the streams, and creates those that do not exist.
func Open(ctx context.Context, nc *nats.Conn, l Limits) (*Store, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	s := &Store{nc: nc, js: js, patience: askWait}
	if s.reports, err = ensure(ctx, js, jetstream.StreamConfig{Name: reportStream, Subjects: []string{"gswitch.report.>"}, Description: "reports of switches that are not analysed yet",
		Discard: jetstream.DiscardNew, MaxBytes: l.Reports, Replicas: l.Replicas, AllowDirect: true}); err != nil {
		return nil, err
	}
	if s.events, err = ensure(ctx, js, jetstream.StreamConfig{Name: eventStream, Subjects: []string{"gswitch.event.>"}, Description: "what happened in the network",
		MaxBytes: l.Events, MaxAge: l.Age, Replicas: l.Replicas, AllowDirect: true}); err != nil {
		return nil, err
	}
	s.lanes, err = js.KeyValue(ctx, laneBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		s.lanes, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: laneBucket, Description: "how far reports are analysed, and by whom", Replicas: l.Replicas})
	}
	return s, err
}

// ensure opens a stream. An existing one keeps its configuration except for the limits of
// size and age.
func ensure(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, c.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return js.CreateStream(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	have := s.CachedInfo().Config
	if have.MaxBytes != c.MaxBytes || have.MaxAge != c.MaxAge {
		have.MaxBytes, have.MaxAge = c.MaxBytes, c.MaxAge
		return js.UpdateStream(ctx, have)
	}
	return s, nil
}

// errConflict reports that another collector wrote to a subject.
var errConflict = errors.New("another collector takes the reports of this exporter")

// taken reports whether a publication was rejected because the subject's last message is
// not the expected one.
func taken(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// publishWait is how long to wait for an acknowledgement of the stream. If it does not
// arrive, because the server that led the stream has failed, the wait must be short
// enough that the reports behind it are not too late to be useful.
const publishWait = reportTimeout / 3

// publish puts a message into the stream of reports, after the message with a number,
// which must be the last of its subject.
func (s *Store) publish(ctx context.Context, subject string, data []byte, last uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, publishWait)
	defer cancel()
	ack, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data}, jetstream.WithExpectLastSequencePerSubject(last), jetstream.WithRetryAttempts(0))
	if taken(err) {
		return 0, errConflict
	}
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// Publish puts events into their stream, and returns how many it already had.
func (s *Store) Publish(ctx context.Context, v []Event) (again int, err error) {
	ctx, cancel := context.WithTimeout(ctx, publishWait)
	defer cancel()
	var futures []jetstream.PubAckFuture
	for i := range v {
		data, err := json.Marshal(&v[i])
		if err != nil {
			return 0, err
		}
		// The name of an event is its subject, which holds one message.
		f, err := s.js.PublishMsgAsync(&nats.Msg{Subject: "gswitch.event." + v[i].Kind + "." + v[i].ID, Data: data}, jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithRetryAttempts(0))
		if err != nil {
			return 0, err
		}
		futures = append(futures, f)
	}
	for _, f := range futures {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			if !taken(err) {
				return again, fmt.Errorf("an event is not kept: %w", err)
			}
			again++
		case <-ctx.Done():
			return again, ctx.Err()
		}
	}
	return again, nil
}

// position is how far a lane has been analysed, and by which collector.
type position struct {
	Owner string    `json:"owner"` // "": none
	Seq   uint64    `json:"seq"`   // of the last message whose events are stored
	At    time.Time `json:"at"`    // of that message
	// Seen is the last report of each exporter start, for messages that may have been
	// deleted from the stream.
	Seen map[string]Seen `json:"seen,omitempty"`
}

// Seen is the progress of an exporter's reports.
type Seen struct {
	Sequence uint64    `json:"sequence"`
	At       time.Time `json:"at"`
}

func laneKey(lane int) string { return fmt.Sprintf("lane.%d", lane) }

// position reads the position of a lane, and its revision, 0 if there is none yet.
func (s *Store) position(ctx context.Context, lane int) (p position, revision uint64, err error) {
	e, err := s.lanes.Get(ctx, laneKey(lane))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return p, 0, nil
	}
	if err != nil {
		return p, 0, err
	}
	return p, e.Revision(), json.Unmarshal(e.Value(), &p)
}

// setPosition writes it if it has not been written since.
func (s *Store) setPosition(ctx context.Context, lane int, p position, revision uint64) (uint64, error) {
	text, err := json.Marshal(&p)
	if err != nil {
		return 0, err
	}
	if revision == 0 {
		return s.lanes.Create(ctx, laneKey(lane), text)
	}
	return s.lanes.Update(ctx, laneKey(lane), text, revision)
}

// lastOf returns the last report of an exporter in a lane, and the number of its message,
// 0 if the stream no longer has it.
func (s *Store) lastOf(ctx context.Context, lane int, token string) (e laneEnd, err error) {
	// Read the position first: whatever is purged after that is in it.
	p, _, err := s.position(ctx, lane)
	if err != nil {
		return e, err
	}
	e.report = p.Seen[token].Sequence
	raw, err := s.reports.GetLastMsgForSubject(ctx, reportSubject(lane, token))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		p, _, err := s.position(ctx, lane)
		e.report = max(e.report, p.Seen[token].Sequence)
		return e, err
	}
	if err != nil {
		return e, err
	}
	m, err := decode(raw.Data)
	if err != nil {
		return e, err
	}
	e.seq, e.missed = raw.Sequence, m.Missed
	for i := range m.reports {
		e.report = max(e.report, m.reports[i].Sequence)
	}
	return e, nil
}

// Find opens the streams of collectors, which must exist.
func Find(ctx context.Context, nc *nats.Conn) (*Store, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	s := &Store{nc: nc, js: js, patience: askWait}
	if s.reports, err = js.Stream(ctx, reportStream); err != nil {
		return nil, err
	}
	if s.events, err = js.Stream(ctx, eventStream); err != nil {
		return nil, err
	}
	s.lanes, err = js.KeyValue(ctx, laneBucket)
	return s, err
}
