package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Names in JetStream.
const (
	taskStream    = "GFABRIC_TASKS"
	objectBucket  = "gfabric"
	outcomeBucket = "gfabric_outcomes"

	// kept is for how long scenarios and results are kept that no sweep
	// removes, as of a coordinator that was killed.
	kept = 7 * 24 * time.Hour
)

// Task is one run.
type Task struct {
	Sweep string   `json:"sweep"`
	Print string   `json:"print"` // fingerprint of the run
	File  string   `json:"file"`  // the scenario among its files
	Name  string   `json:"name"`  // of the run
	Seed  uint64   `json:"seed"`
	Short bool     `json:"short,omitempty"`
	Set   []string `json:"set,omitempty"`
	Limit int64    `json:"limit_ns,omitempty"` // 0: none
}

// outcome is what came of a task.
type outcome struct {
	Object string `json:"object,omitempty"` // with the results
	Worker string `json:"worker"`
	Error  string `json:"error,omitempty"`
}

// Queue is where tasks wait, in a NATS server or cluster.
type Queue struct {
	scratch  string // directory that archives are unpacked in
	nc       *nats.Conn
	js       jetstream.JetStream
	tasks    jetstream.Stream
	objects  jetstream.ObjectStore
	outcomes jetstream.KeyValue
}

// Open opens the queue, and makes it if it is not there, on so many servers of a
// cluster. What is under way here lies in a directory.
func Open(ctx context.Context, nc *nats.Conn, replicas int, scratch *Scratch) (*Queue, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	q := &Queue{scratch: scratch.Dir, nc: nc, js: js}
	q.tasks, err = js.Stream(ctx, taskStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		q.tasks, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: taskStream, Subjects: []string{"gfabric.task.>"}, Retention: jetstream.WorkQueuePolicy, MaxAge: kept, Replicas: replicas})
	}
	if err != nil {
		return nil, fmt.Errorf("the stream of tasks: %w", err)
	}
	q.objects, err = js.ObjectStore(ctx, objectBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		q.objects, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: objectBucket, TTL: kept, Replicas: replicas})
	}
	if err != nil {
		return nil, fmt.Errorf("the store of scenarios and results: %w", err)
	}
	q.outcomes, err = js.KeyValue(ctx, outcomeBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		q.outcomes, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: outcomeBucket, TTL: kept, Replicas: replicas})
	}
	if err != nil {
		return nil, fmt.Errorf("what came of tasks: %w", err)
	}
	return q, nil
}

// subject is that of a task: one message at most has it.
func subject(program string, t *Task) string {
	return "gfabric.task." + build(program) + "." + t.Sweep + "." + t.Print
}

// build is the part of a program's name that subjects carry.
func build(program string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, program)
	return clean[:min(len(clean), 24)]
}

// patience is for how long a server may be away before what is asked of it fails.
const patience = 2 * time.Minute

// again asks until there is an answer: servers die and come back, and clients that
// wait for one of them learn nothing but that time is over.
func again(ctx context.Context, ask func() error) error {
	for end := time.Now().Add(patience); ; {
		err := ask()
		if err == nil || ctx.Err() != nil || errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, jetstream.ErrObjectNotFound) || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// conclude writes what came of a task, unless that was done before: then first is false.
func (q *Queue) conclude(ctx context.Context, t *Task, o outcome) (first bool, err error) {
	data, err := json.Marshal(o)
	if err != nil {
		return false, err
	}
	err = again(ctx, func() error {
		_, err := q.outcomes.Create(ctx, t.Sweep+"."+t.Print, data)
		if !errors.Is(err, jetstream.ErrKeyExists) {
			first = err == nil
			return err
		}
		// It may be our own, of which the answer was lost.
		e, err := q.outcomes.Get(ctx, t.Sweep+"."+t.Print)
		first = err == nil && bytes.Equal(e.Value(), data)
		return err
	})
	return first, err
}
