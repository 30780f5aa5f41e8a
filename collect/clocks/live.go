package clocks

import (
	"context"
	"slices"
	"sync"
	"time"

	"gswitch/control/api"
	"gswitch/fabric"
)

const (
	// answerWait is how long to wait for a daemon's answer.
	answerWait = time.Second
	// missed is the number of missing answers in a row after which a switch counts as
	// failed.
	missed = 3
	// A link is avoided for a while if, within some time, a clock has often received no
	// sync messages over it although both ends report it up and its parent received those
	// of the root. timeouts is how often.
	timeouts  = 2
	suspicion = 30 * time.Second
)

// Switch asks the daemon of a switch about its clock, and gives it its part of a plan.
type Switch interface {
	ListClocks(context.Context, *api.ListRequest) (*api.Clocks, error)
	PlanClock(context.Context, *api.PlanClockRequest) (*api.Clock, error)
}

// live is what is known about the switches of a network. It implements interface Live of
// package fabric/clock.
type live struct {
	t        *fabric.Topology
	ports    [][]string          // names, by node
	clocks   []*api.Clock        // by node: the last report; nil if none
	failed   []int               // missing answers in a row
	why      []error             // the last error
	timedOut map[int][]time.Time // by link that is up: when clocks timed out on it
	trusting bool                // use such links like any other
}

func newLive(t *fabric.Topology) *live {
	n := len(t.Nodes)
	l := &live{t: t, clocks: make([]*api.Clock, n), failed: make([]int, n), why: make([]error, n), timedOut: map[int][]time.Time{}}
	for i := range t.Nodes {
		l.ports = append(l.ports, t.PortNames(i))
	}
	return l
}

// look polls all switches concurrently.
func (l *live) look(ctx context.Context, daemons []Switch) {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	var all sync.WaitGroup
	for i, d := range daemons {
		if d == nil {
			continue
		}
		all.Go(func() {
			m, err := d.ListClocks(ctx, &api.ListRequest{Switch: l.t.Nodes[i].Name})
			switch {
			case err == nil && len(m.Clocks) == 1 && m.Clocks[0].Controlled:
				l.clocks[i], l.failed[i], l.why[i] = m.Clocks[0], 0, nil
				return
			case err == nil:
				err = errNotControlled
			}
			l.failed[i]++
			l.why[i] = err
		})
	}
	all.Wait()
	l.suspect(time.Now())
}

// suspect records links over which no sync messages arrive although they are up.
func (l *live) suspect(now time.Time) {
	for i, c := range l.clocks {
		if c == nil || !c.Turned || c.Plan.GetParent() == "" || !l.Node(i) {
			continue
		}
		p := l.port(i, c.Plan.Parent)
		if p < 0 {
			continue
		}
		up := l.clocks[l.t.Peer(i, p).Node]
		if up != nil && !up.Turned && l.Node(l.t.Peer(i, p).Node) && (up.State == "primary" || up.State == "root") {
			k := l.t.Nodes[i].Links[p]
			l.timedOut[k] = append(l.timedOut[k], now)
		}
	}
	for k, v := range l.timedOut {
		if v = slices.DeleteFunc(v, func(t time.Time) bool { return now.Sub(t) > suspicion }); len(v) == 0 {
			delete(l.timedOut, k)
		} else {
			l.timedOut[k] = v
		}
	}
}

// known reports whether it is known of every switch whether it works.
func (l *live) known() bool {
	for i := range l.t.Nodes {
		if l.t.Nodes[i].Kind == fabric.Switch && l.clocks[i] == nil && l.failed[i] < missed {
			return false
		}
	}
	return true
}

// port returns the number of a port, -1 if there is none of that name.
func (l *live) port(node int, name string) int {
	for p, n := range l.ports[node] {
		if n == name {
			return p
		}
	}
	return -1
}

// Node reports whether a node works. Hosts count as working: no clock follows them.
func (l *live) Node(i int) bool {
	return l.t.Nodes[i].Kind == fabric.Host || l.clocks[i] != nil && l.failed[i] < missed
}

// Link reports whether both ends of a link report it up. Links to hosts count as up:
// messages to a host that is missing are lost without harm.
func (l *live) Link(k int) bool {
	e := &l.t.Links[k]
	if l.t.Nodes[e.A.Node].Kind == fabric.Host || l.t.Nodes[e.B.Node].Kind == fabric.Host {
		return true
	}
	return (l.trusting || len(l.timedOut[k]) < timeouts) && l.up(e.A) && l.up(e.B)
}

func (l *live) up(e fabric.End) bool {
	if l.clocks[e.Node] == nil {
		return false
	}
	name := l.ports[e.Node][e.Port]
	for _, p := range l.clocks[e.Node].Ports {
		if p.Port == name {
			return p.Up
		}
	}
	return false
}

// root returns the node to plan from: of the nodes that are root, the one with the most
// followers, or -1.
func (l *live) root() int {
	best, most := -1, 0
	for i, c := range l.clocks {
		if c == nil || !l.Node(i) || c.State != "root" {
			continue
		}
		n := 0
		for k, o := range l.clocks {
			if o != nil && l.Node(k) && o.Root == c.Identity {
				n++
			}
		}
		if n > most {
			best, most = i, n
		}
	}
	return best
}

// promised returns the highest epoch of a plan of which any switch has received a stage.
func (l *live) promised() (epoch uint32) {
	for _, c := range l.clocks {
		epoch = max(epoch, c.GetPromised())
	}
	return epoch
}
