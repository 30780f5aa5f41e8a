// Package query gets from the switches of a running fabric what they logged of
// pauses and what waits in them, and joins the answers.
package query

import (
	"context"
	"fmt"
	"sync"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/fabric"
	"gswitch/fabric/pauses"
	"gswitch/frame"
)

// Daemon is a gswitch of the fabric.
type Daemon struct {
	Socket string
	Client api.ControlClient
}

// Dial returns the daemons behind control sockets.
func Dial(sockets []string) []Daemon {
	var v []Daemon
	for _, s := range sockets {
		v = append(v, Daemon{s, control.Dial(s)})
	}
	return v
}

// all asks every daemon at once.
func all[M any](ctx context.Context, v []Daemon, call func(api.ControlClient, context.Context, *api.ListRequest) (M, error)) ([]M, error) {
	out, errs := make([]M, len(v)), make([]error, len(v))
	var group sync.WaitGroup
	for i := range v {
		group.Go(func() { out[i], errs[i] = call(v[i].Client, ctx, &api.ListRequest{}) })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, control.Explain(v[i].Socket, err)
		}
	}
	return out, nil
}

// network finds names and other ends of ports in the topology of a fabric.
type network struct{ *fabric.Topology }

// end is a port of a node by its number, which is that of the topology.
func (t network) end(node string, port uint32) (pauses.End, bool) {
	i, ok := t.Lookup(node)
	if !ok || int(port) >= len(t.Nodes[i].Links) {
		return pauses.End{}, false
	}
	return pauses.End{Node: node, Port: int(port), To: t.Nodes[t.Peer(i, int(port)).Node].Name}, true
}

// peer is the other end of a port's link.
func (t network) peer(e pauses.End) pauses.End {
	i, ok := t.Lookup(e.Node)
	if !ok {
		return pauses.End{}
	}
	far := t.Peer(i, e.Port)
	return pauses.End{Node: t.Nodes[far.Node].Name, Port: far.Port, To: e.Node}
}

func (t network) isSwitch(node string) bool {
	i, ok := t.Lookup(node)
	return ok && t.Nodes[i].Kind == fabric.Switch
}

// clocks is by how much the instants of two daemons of a machine may differ:
// each reads its own clock and the machine's one after the other, and may be
// interrupted in between.
const clocks = 100e-6

// Trace asks the daemons of a fabric for pauses. Times are those before now:
// -2.5 is two and a half seconds ago.
func Trace(ctx context.Context, t *fabric.Topology, v []Daemon) (*pauses.Trace, error) {
	answers, err := all(ctx, v, api.ControlClient.ListPauses)
	if err != nil {
		return nil, err
	}
	slack := 0.0
	if len(v) > 1 {
		slack = clocks
	}
	return join(network{t}, answers, slack), nil
}

// join makes a trace of what daemons answered.
func join(t network, answers []*api.Pauses, slack float64) *pauses.Trace {
	var now, forgotten uint64
	for _, a := range answers {
		now = max(now, a.Now)
		forgotten += a.Forgotten
	}
	ago := func(at uint64) float64 { return -float64(int64(now-at)) / 1e9 }
	var list []pauses.Pause
	from := 0.0
	for _, a := range answers {
		for _, m := range a.Pauses {
			at, ok := t.end(m.Switch, m.Number)
			if !ok {
				continue // a port that is not of the fabric
			}
			p := pauses.Pause{By: at, Of: t.peer(at), Class: int(m.Class), From: ago(m.From), To: ago(m.To), Held: m.Held, Short: m.Short}
			if m.To == 0 {
				p.Lasts, p.To = true, ago(a.Now)
			}
			if !m.Asked {
				if t.isSwitch(p.Of.Node) {
					continue // it reports itself
				}
				p.By, p.Of = p.Of, p.By
			}
			for _, c := range m.Causes {
				if e, ok := t.end(m.Switch, c.Number); ok {
					p.Causes = append(p.Causes, pauses.Cause{Port: e, Bytes: c.Bytes, Stuck: c.Stuck})
				}
			}
			from = min(from, p.From)
			list = append(list, p)
		}
	}
	return pauses.New(list, from, 0, slack, forgotten)
}

// Wait is an egress queue that is held back.
type Wait struct {
	pauses.Wait
	Names   []string   `json:"from_names"` // the neighbours behind From
	For     frame.Time `json:"for_ns"`     // so far
	Bytes   uint64     `json:"bytes"`
	Overdue bool       `json:"overdue"`
}

// Waiting is what waits in a fabric, and in which circles.
type Waiting struct {
	Waits   []Wait   `json:"waits"`
	Circles []Circle `json:"circles"`
}

// Circle is a deadlock, if it lasts.
type Circle struct {
	pauses.Circle
	For frame.Time `json:"for_ns"` // none of its queues has moved for so long
}

// Waits asks the daemons of a fabric what waits.
func Waits(ctx context.Context, t *fabric.Topology, v []Daemon) (*Waiting, error) {
	answers, err := all(ctx, v, api.ControlClient.ListWaits)
	if err != nil {
		return nil, err
	}
	return joinWaits(network{t}, answers), nil
}

func joinWaits(t network, answers []*api.Waits) *Waiting {
	out := &Waiting{Waits: []Wait{}, Circles: []Circle{}}
	var now uint64
	var graph []pauses.Wait
	for _, a := range answers {
		now = max(now, a.Now)
		for _, m := range a.Waits {
			at, ok := t.end(m.Switch, m.Number)
			if !ok {
				continue
			}
			w := pauses.Wait{At: at, Class: int(m.Class), Since: frame.Time(m.Since)}
			names := []string{}
			for _, p := range m.FromNumbers {
				w.From = append(w.From, int(p))
				if e, ok := t.end(m.Switch, p); ok {
					names = append(names, e.To)
				} else {
					names = append(names, fmt.Sprint("port ", p))
				}
			}
			graph = append(graph, w)
			out.Waits = append(out.Waits, Wait{Wait: w, Names: names, For: frame.Time(a.Now - m.Since), Bytes: m.Bytes, Overdue: m.Overdue})
		}
	}
	for _, c := range pauses.Circles(graph, t.peer) {
		out.Circles = append(out.Circles, Circle{c, frame.Time(now) - c.Since})
	}
	return out
}

// String names the ports of a circle: each is held back by the node of the
// next, or of another one of them.
func (c *Circle) String() string {
	text := ""
	for i, p := range c.Ports {
		if i > 0 {
			text += ", "
		}
		text += p.String()
	}
	return fmt.Sprintf("class %d: %s", c.Class, text)
}
