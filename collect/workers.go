package collect

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gswitch/natsserver"
	"gswitch/telemetry"
)

const (
	beat = time.Second
	// dead is the time without a sign of a collector after which others take its lanes.
	dead = 5 * time.Second
	// idleWait is the time without a message after which a message says that time has
	// passed; onward is for how long after the last report such messages are sent.
	idleWait = 250 * time.Millisecond
	onward   = reportTimeout + 5*time.Second
	// keptFor is how long the progress of an exporter is kept after it has gone.
	keptFor = 24 * time.Hour
	// mostAhead is the number of bytes of a lane's messages that are read ahead.
	mostAhead = 2 * natsserver.MaxPayload
)

// Workers analyse lanes: those assigned to this collector by a hash of its name and of
// the names of the other active collectors.
type Workers struct {
	Store   *Store
	Network *Network
	ID      string // of this collector, unchanged over restarts
	Metrics *Metrics
	Log     *slog.Logger

	mine     map[int]*worker
	watch    map[string]*watched
	counters uint64 // revision of the counters that the network has
	unknown  string // why it lacks some of them, as logged
	unread   string // why they could not be read
}

// watched is a value that its owner renews while it is up.
type watched struct {
	revision uint64
	since    time.Time // when it was first seen, by our clock
}

// worker analyses one lane.
type worker struct {
	stop context.CancelFunc
	done chan struct{}
}

// Run analyses until ctx ends, and then gives the lanes up.
func (w *Workers) Run(ctx context.Context) error {
	w.mine, w.watch = map[int]*worker{}, map[string]*watched{}
	w.Metrics.have(w.Network)
	t := time.NewTicker(beat)
	defer t.Stop()
	logged := ""
	for {
		if err := w.share(ctx); err != nil && ctx.Err() == nil && err.Error() != logged {
			logged = err.Error()
			w.Log.Warn("lanes cannot be shared; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			for lane := range w.mine {
				w.leave(lane)
			}
			bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			return ignore(w.Store.lanes.Delete(bye, "collector."+w.ID), jetstream.ErrKeyNotFound)
		case <-t.C:
		}
	}
}

func ignore(err, one error) error {
	if errors.Is(err, one) {
		return nil
	}
	return err
}

// share determines which collectors are up, and takes or gives up lanes.
func (w *Workers) share(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := w.Store.lanes.Put(ctx, "collector."+w.ID, []byte(time.Now().UTC().Format(time.RFC3339Nano))); err != nil {
		return err
	}
	w.adoptCounters(ctx) // before a lane is taken, whose last minute is read again
	keys, err := w.Store.lanes.Keys(ctx)
	if err != nil {
		return err
	}
	up := []string{w.ID}
	for _, k := range keys {
		id, ok := strings.CutPrefix(k, "collector.")
		if !ok || id == w.ID {
			continue
		}
		e, err := w.Store.lanes.Get(ctx, k)
		if err != nil {
			continue // it has just been removed
		}
		if w.isUp(k, e.Revision()) {
			up = append(up, id)
		} else if time.Since(w.watch[k].since) > 10*dead {
			_ = w.Store.lanes.Delete(ctx, k) // gone for a long time
		}
	}
	for lane := range Lanes {
		select {
		case <-w.ended(lane):
			w.leave(lane)
		default:
		}
		wanted := best(lane, up) == w.ID
		switch has := w.mine[lane] != nil; {
		case has && !wanted:
			w.leave(lane)
		case !has && wanted:
			if err := w.take(ctx, lane, up); err != nil {
				return err
			}
		}
	}
	w.Metrics.lanes.Set(float64(len(w.mine)))
	return nil
}

// isUp reports whether a value has been renewed recently.
func (w *Workers) isUp(key string, revision uint64) bool {
	v := w.watch[key]
	if v == nil || v.revision != revision {
		w.watch[key] = &watched{revision, time.Now()}
		return true
	}
	return time.Since(v.since) < dead
}

// best returns the owner of a lane by highest random weight (Thaler, Ravishankar 1998):
// when a collector goes, only its own lanes move to others.
func best(lane int, ids []string) string {
	return slices.MaxFunc(ids, func(a, b string) int {
		if x, y := weight(lane, a), weight(lane, b); x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
}

func weight(lane int, id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	h.Write([]byte{byte(lane)})
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// ended returns a channel that is closed when the worker of a lane has ended; nil without
// a worker.
func (w *Workers) ended(lane int) <-chan struct{} {
	if m := w.mine[lane]; m != nil {
		return m.done
	}
	return nil
}

// take starts with a lane that has no owner, or that its owner has given up.
func (w *Workers) take(ctx context.Context, lane int, up []string) error {
	p, rev, err := w.Store.position(ctx, lane)
	if err != nil {
		return err
	}
	if p.Owner != w.ID && slices.Contains(up, p.Owner) {
		return nil
	}
	p.Owner = w.ID
	if rev, err = w.Store.setPosition(ctx, lane, p, rev); err != nil {
		return nil // another one was faster
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &worker{stop, make(chan struct{})}
	w.mine[lane] = m
	go func() {
		defer close(m.done)
		defer w.Metrics.leftLane(lane)
		if err := w.analyse(ctx, lane, p, rev); err != nil && ctx.Err() == nil {
			w.Metrics.failed.Inc()
			w.Log.Warn("the analysis of a lane ends; it is begun again", "lane", lane, "error", err)
		}
	}()
	return nil
}

// leave ends the worker of a lane.
func (w *Workers) leave(lane int) {
	m := w.mine[lane]
	delete(w.mine, lane)
	m.stop()
	<-m.done
}

// run is the analysis of a lane.
type run struct {
	*Workers
	lane     int
	analysis *Analysis
	position position
	revision uint64
	written  uint64    // Seq of the stored position
	lastReal time.Time // of the last message with reports, by the stream's clock
	last     time.Time // of the last message
	marks    []mark
	resumed  bool  // all that had to be read again has been
	before   Stats // counters at that point
}

// mark is the position of the stream at an instant.
type mark struct {
	seq uint64
	at  time.Time
}

// analyse reads a lane from a little before its position, to restore the state of the
// analysis, and stores the events that follow.
func (w *Workers) analyse(ctx context.Context, lane int, p position, rev uint64) error {
	r := &run{Workers: w, lane: lane, analysis: NewAnalysis(w.Network), position: p, revision: rev, written: p.Seq}
	c := jetstream.OrderedConsumerConfig{FilterSubjects: []string{laneSubject(lane)}, DeliverPolicy: jetstream.DeliverAllPolicy}
	if p.Seq > 0 {
		from := p.At.Add(-Memory)
		c.DeliverPolicy, c.OptStartTime = jetstream.DeliverByStartTimePolicy, &from
	}
	consumer, err := w.Store.reports.OrderedConsumer(ctx, c)
	if err != nil {
		return err
	}
	it, err := consumer.Messages(jetstream.PullMaxBytes(mostAhead))
	if err != nil {
		return err
	}
	defer it.Stop()
	stop := context.AfterFunc(ctx, it.Stop)
	defer stop()
	next := time.Now().Add(beat)
	for ctx.Err() == nil {
		msg, err := it.Next(jetstream.NextMaxWait(idleWait))
		switch {
		case err == nil:
			if err := r.message(ctx, msg); err != nil {
				return err
			}
		case ctx.Err() != nil:
		case errors.Is(err, nats.ErrTimeout):
			if err := r.onward(ctx); err != nil {
				return err
			}
		default:
			return err
		}
		if time.Now().After(next) {
			if err := r.keepPosition(ctx); err != nil {
				return err
			}
			next = time.Now().Add(beat)
		}
	}
	bye, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r.position.Owner = ""
	return r.keepPosition(bye)
}

// message processes the next message.
func (r *run) message(ctx context.Context, msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	seq := meta.Sequence.Stream
	m, err := decode(msg.Data())
	if err != nil {
		r.Log.Warn("a message of the stream of reports cannot be read", "lane", r.lane, "message", seq, "error", err)
		m = new(message)
	}
	if seq > r.position.Seq && !r.resumed {
		r.resumed, r.before = true, r.analysis.Stats()
		r.analysis.Resume(r.position.Seen)
	}
	r.last = meta.Timestamp
	if len(m.reports) > 0 {
		r.lastReal = meta.Timestamp
	}
	events := r.analysis.Add(meta.Timestamp, m)
	if seq <= r.position.Seq {
		return nil // its events are stored
	}
	r.Metrics.messages.Inc()
	if len(events) > 0 {
		again, err := r.Store.Publish(ctx, events)
		if err != nil {
			return err
		}
		r.Metrics.again.Add(float64(again))
		for i := range events {
			r.Metrics.events.WithLabelValues(events[i].Kind, events[i].What).Inc()
		}
	}
	r.position.Seq, r.position.At = seq, meta.Timestamp
	r.see(m, meta.Timestamp)
	if n := len(r.marks); n == 0 || meta.Timestamp.Sub(r.marks[n-1].at) >= beat {
		r.marks = append(r.marks, mark{seq, meta.Timestamp})
	}
	return nil
}

// see records the progress of an exporter.
func (r *run) see(m *message, at time.Time) {
	if len(m.reports) == 0 {
		return
	}
	if r.position.Seen == nil {
		r.position.Seen = map[string]Seen{}
	}
	keepSeen(r.position.Seen, token(&m.Hello), Seen{m.reports[len(m.reports)-1].Sequence, at})
	for k, s := range r.position.Seen {
		if at.Sub(s.At) > keptFor {
			delete(r.position.Seen, k)
		}
	}
}

// onward writes a message to the lane that says that time has passed, while something may
// wait for that.
func (r *run) onward(ctx context.Context) error {
	if r.lastReal.IsZero() || r.last.Sub(r.lastReal) > onward {
		return nil
	}
	data, err := encode(&telemetry.Hello{Version: telemetry.HelloVersion, Name: tick, Boot: 1}, nil)
	if err != nil {
		return err
	}
	_, err = r.Store.js.Publish(ctx, reportSubject(r.lane, tick), data)
	return err
}

// keepPosition stores how far the lane has been analysed, and deletes from the stream
// what is no longer needed.
func (r *run) keepPosition(ctx context.Context) error {
	counted := Stats{}
	if r.resumed {
		counted = r.analysis.Stats().minus(r.before)
	}
	r.Metrics.analysed(r.lane, counted, r.analysis.uses())
	if r.position.Seq == r.written && r.position.Owner != "" {
		return nil
	}
	rev, err := r.Store.setPosition(ctx, r.lane, r.position, r.revision)
	if err != nil {
		return err // another collector has the lane
	}
	r.revision, r.written = rev, r.position.Seq
	old := r.position.At.Add(-2 * Memory)
	n := 0
	for n < len(r.marks) && r.marks[n].at.Before(old) {
		n++
	}
	if n == 0 {
		return nil
	}
	seq := r.marks[n-1].seq
	r.marks = slices.Delete(r.marks, 0, n)
	return r.Store.reports.Purge(ctx, jetstream.WithPurgeSubject(laneSubject(r.lane)), jetstream.WithPurgeSequence(seq))
}
