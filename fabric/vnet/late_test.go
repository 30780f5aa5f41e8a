package vnet

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gswitch/buffer"
	"gswitch/config"
	crossbar "gswitch/crossbar/point"
	"gswitch/frame"
	"gswitch/gfc/point"
	"gswitch/hostnic"
	"gswitch/vswitch"
)

// realTime is an engine that says that its frames are real.
type realTime struct{ Engine }

func (realTime) Virtual() bool { return false }

// lates is a network of exact nodes whose switches have the headroom of those on
// real frames, and whose nodes are late again and again, by up to the quarter of
// T that a run on real frames is allowed. Stages are in place of pauses, and input
// queues in place of the shared buffer, where their options are given.
func lates(t *testing.T, expr string, rate uint64, delay time.Duration, wholes []Whole, headroom bool, seed uint64) (lost uint64, pauses uint64) {
	t.Helper()
	topo := topology(t, expr, rate, rate, delay)
	cfg := Config{Topology: topo, Seed: seed, BaseRTT: 100 * us, PFC: PFC{On: true}, Buffer: config.NetworkBuffer{Size: 16 << 20, LosslessRoom: config.LosslessRoom{XOFF: 30_000}, XONOffset: 3000}, Wholes: wholes}
	exact := build(t, &cfg)
	real := &Network{Engine: realTime{exact.Engine}, Topology: topo, Derived: exact.Derived, cfg: cfg}
	T := exact.Derived.BaseRTT
	cfg.AdjustHost = func(_ string, c *hostnic.Config) { c.Burst = T }
	cfg.AdjustSwitch = func(_ string, c *vswitch.Config) {
		for p := range c.Ports {
			c.Ports[p].Scheduler.Burst = T
			if headroom {
				c.Buffer.Size += real.lateBytes(&topo.Links[0])
			}
		}
		if headroom {
			c.Buffer.Lateness = real.lateness()
		}
	}
	n := build(t, &cfg)
	r := rand.New(rand.NewPCG(seed, 1))
	e := n.Engine.(virtual).Engine
	var late func(node int) func(frame.Time)
	late = func(node int) func(frame.Time) {
		return func(now frame.Time) {
			by := frame.Time(r.Int64N(int64(T/4))) + 1
			if err := e.Pause(n.EngineNode(node), now+by); err != nil {
				n.Engine.Stop(err)
			}
			n.Engine.At(now+by+frame.Time(r.Int64N(int64(T))), late(node))
		}
	}
	for node := range topo.Nodes {
		n.Engine.At(frame.Time(r.Int64N(int64(T))), late(node))
	}
	hosts := len(n.hostNode)
	for s := range hosts - 1 {
		start(t, n, Flow{ID: uint64(s), Src: s, Dst: hosts - 1, Bytes: 400_000})
	}
	if err := n.Engine.Run(frame.Time(hosts) * 4 * 400_000 * 8e9 / frame.Time(rate)); err != nil {
		t.Fatal(err)
	}
	return n.Drops()[frame.HeadroomFull], n.Pauses(n.Engine.Now()).Requests
}

// tight is input queues that hold what exact nodes can send to them, and no byte
// more than they need for whole links.
func tight(cfg *vswitch.Config) (any, error) {
	if len(cfg.Ports) == 0 {
		return crossbar.Config{}, nil // asked whether there are any
	}
	q := buffer.InputQueue{Size: crossbar.MaxQueue, Classes: 1, Link: cfg.Ports[0].Link(&cfg.Buffer)}
	q.Batch = 2 * uint64(q.Link.MaxFrame)
	th, err := q.Thresholds()
	return crossbar.Config{Ingress: uint32(th.Enough)}, err
}

// Nodes that are late by no more than a run on real frames may be lose no frame of
// a lossless class, whatever the network, by pauses, by the stages of GFC and from
// input queues; with the headroom of exact nodes they do.
func TestLateNodesLoseNothing(t *testing.T) {
	for what, wholes := range map[string][]Whole{
		"pauses":       nil,
		"stages":       {{Name: point.Name, Options: func(*vswitch.Config) (any, error) { return point.Config{Stages: 15}, nil }}},
		"input queues": {{Name: crossbar.Name, Options: tight}},
	} {
		t.Run(what, func(t *testing.T) { losesNothing(t, wholes) })
	}
}

func losesNothing(t *testing.T, wholes []Whole) {
	without := uint64(0)
	for i, expr := range []string{"star(9)", "line(3, 3)", "dumbbell(4, 4)", "leaf-spine(2, 2, 3)"} {
		for j, rate := range []uint64{10 * gig, 40 * gig, 100 * gig} {
			for k, delay := range []time.Duration{time.Microsecond, 5 * time.Microsecond} {
				seed := uint64(i*100 + j*10 + k)
				t.Run(fmt.Sprintf("%s/%dG/%v", expr, rate/gig, delay), func(t *testing.T) {
					lost, pauses := lates(t, expr, rate, delay, wholes, true, seed)
					if lost != 0 || pauses == 0 {
						t.Errorf("%d frames lost with %d pauses", lost, pauses)
					}
					lost, _ = lates(t, expr, rate, delay, wholes, false, seed)
					without += lost
				})
			}
		}
	}
	if without == 0 {
		t.Error("with the headroom of exact nodes nothing is lost either: the nodes are not late")
	}
	t.Logf("%d frames lost with the headroom of exact nodes", without)
}
