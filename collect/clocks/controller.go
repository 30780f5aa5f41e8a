package clocks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gswitch/control/api"
	"gswitch/fabric"
	"gswitch/fabric/clock"
)

// bucket holds, under the name of the network, the leading controller and the last plan.
const bucket = "gswitch_clocks"

// Open opens the bucket of controllers, and creates it if necessary.
func Open(ctx context.Context, nc *nats.Conn, replicas int) (jetstream.KeyValue, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	kv, err := js.KeyValue(ctx, bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket, Description: "who plans the clocks of a network, and the last plan", Replicas: replicas})
	}
	return kv, err
}

// Record is the last plan of a network, as controllers store it.
type Record struct {
	Epoch      uint32    `json:"epoch"`
	Controller string    `json:"controller"` // that made the plan
	At         time.Time `json:"at"`
	Done       bool      `json:"done"` // every switch has adopted the plan
	Root       string    `json:"root"`
	Deputy     string    `json:"deputy,omitempty"` // becomes the root if that fails
	Switches   int       `json:"switches"`
	Changed    int       `json:"changed"`          // switches that had to change
	Bare       string    `json:"bare,omitempty"`   // why there are no second parents
	Failed     []string  `json:"failed,omitempty"` // switches that do not answer
	Error      string    `json:"error,omitempty"`  // why it is not done
}

func leaderKey(fabric string) string { return fabric + ".leader" }
func planKey(fabric string) string   { return fabric + ".plan" }

// Controller plans the clocks of a network's switches while it leads.
type Controller struct {
	Topology *fabric.Topology
	Spec     *clock.Spec
	Daemons  []Switch // by node; nil for a host
	ID       string
	KV       jetstream.KeyValue
	Lease    time.Duration
	Every    time.Duration // interval between polls of the switches
	Metrics  *Metrics
	Log      *slog.Logger

	lease    *Lease
	live     *live
	record   Record
	revision uint64 // of the record
	logged   string
}

// Run waits until this controller leads, and then plans, until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	c.lease = NewLease(c.KV, leaderKey(c.Topology.Name), c.ID, c.Lease)
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.lease.Run(ctx, func(held bool, err error) {
			c.Metrics.leads(held)
			switch {
			case held:
				c.Log.Info("this controller leads", "fabric", c.Topology.Name)
			case err != nil:
				c.Log.Warn("the lease cannot be asked for; it is tried again", "error", err)
			default:
				c.Log.Info("another controller leads", "fabric", c.Topology.Name)
			}
		})
	}()
	defer func() { stop(); <-ended }()
	t := time.NewTicker(c.Every)
	defer t.Stop()
	for {
		if !c.lease.Held() {
			c.live = nil // what is known gets stale
		} else if err := c.step(ctx); err != nil && ctx.Err() == nil {
			c.warn(err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// warn logs an obstacle, once.
func (c *Controller) warn(why string) {
	if why != c.logged {
		c.logged = why
		if why != "" {
			c.Log.Warn("the clocks are not as they should be; it is tried again", "why", why)
		}
	}
}

// step polls the switches and, if something is not as it should be, brings them to a new
// plan.
func (c *Controller) step(ctx context.Context) error {
	if c.live == nil {
		if err := c.read(ctx); err != nil {
			return err
		}
		c.live = newLive(c.Topology)
	}
	c.live.look(ctx, c.Daemons)
	if !c.live.known() {
		return nil
	}
	w, err := c.live.plan(c.Spec)
	if err != nil {
		return err
	}
	failed := c.live.failures()
	c.Metrics.unreachable.Set(float64(len(failed)))
	var changed []part
	for _, level := range w.levels {
		for _, p := range level {
			if c.live.differs(&p) {
				changed = append(changed, p)
			}
		}
	}
	if len(changed) == 0 && c.record.Done && slices.Equal(failed, c.record.Failed) {
		c.warn("")
		return nil
	}
	if len(changed) == 0 && c.record.Done {
		c.record.Failed = failed // otherwise unchanged
		return c.write(ctx)
	}
	return c.change(ctx, w, failed, len(changed))
}

// failures returns the names of the switches that do not answer.
func (l *live) failures() (v []string) {
	for _, i := range l.t.Switches() {
		if !l.Node(i) {
			v = append(v, l.t.Nodes[i].Name)
		}
	}
	return v
}

// change assigns an epoch to a plan, and gives the switches their parts.
func (c *Controller) change(ctx context.Context, w *wanted, failed []string, changed int) error {
	name := func(i int) string {
		if i < 0 {
			return ""
		}
		return c.Topology.Nodes[i].Name
	}
	c.record = Record{Epoch: max(c.record.Epoch, c.live.promised()) + 1, Controller: c.ID, At: time.Now().UTC(), Root: name(w.root), Deputy: name(w.deputy), Switches: w.size(), Changed: changed, Failed: failed}
	if w.bare != nil {
		c.record.Bare = w.bare.Error()
	}
	// Only the controller that succeeds in writing the epoch may use it.
	if err := c.write(ctx); err != nil {
		return err
	}
	err := c.push(ctx, w)
	c.Metrics.pushed(c.record.Epoch, err)
	if c.record.Done = err == nil; err != nil {
		c.record.Error = err.Error()
	} else {
		c.warn("")
		c.Log.Info("the clocks follow a new plan", "epoch", c.record.Epoch, "root", c.record.Root, "switches", c.record.Switches, "changed", changed, "failed", strings.Join(failed, ","))
	}
	if e := c.write(ctx); e != nil {
		return errors.Join(err, e)
	}
	return err
}

// read reads what the previous controller has done.
func (c *Controller) read(ctx context.Context) error {
	e, err := c.KV.Get(ctx, planKey(c.Topology.Name))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		c.record, c.revision = Record{}, 0
		return nil
	}
	if err != nil {
		return err
	}
	c.record, c.revision = Record{}, e.Revision()
	if err := json.Unmarshal(e.Value(), &c.record); err != nil {
		return fmt.Errorf("the plan that is kept cannot be read: %w", err)
	}
	return nil
}

// errReplaced reports that another controller is planning.
var errReplaced = errors.New("another controller has taken over")

// write stores the record if it has not been written since it was read.
func (c *Controller) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Lease)
	defer cancel()
	data, err := json.Marshal(&c.record)
	if err != nil {
		return err
	}
	revision, err := c.KV.Update(ctx, planKey(c.Topology.Name), data, c.revision)
	if err != nil {
		c.live = nil // the next leader reads it again
		if ignoreConflict(err) == nil {
			return errReplaced
		}
		return err
	}
	c.revision = revision
	return nil
}

// State is the state of a network as controllers report it.
type State struct {
	Fabric string  `json:"fabric"`
	Leader string  `json:"leader,omitempty"` // empty: there is none
	Plan   *Record `json:"plan,omitempty"`   // nil: no plan yet
}

// States returns the states of all networks, by name.
func States(ctx context.Context, kv jetstream.KeyValue) ([]State, error) {
	keys, err := kv.ListKeys(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]*State{}
	for k := range keys.Keys() {
		name, what, _ := strings.Cut(k, ".")
		e, err := kv.Get(ctx, k)
		if err != nil {
			continue // it has just been removed
		}
		s := found[name]
		if s == nil {
			s = &State{Fabric: name}
			found[name] = s
		}
		switch what {
		case "leader":
			s.Leader = string(e.Value())
		case "plan":
			s.Plan = &Record{}
			if err := json.Unmarshal(e.Value(), s.Plan); err != nil {
				return nil, fmt.Errorf("the plan of %s cannot be read: %w", name, err)
			}
		}
	}
	var out []State
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[name])
	}
	return out, nil
}

var _ Switch = api.ControlClient(nil)
