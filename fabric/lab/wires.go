package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gswitch/fabric"
)

// Wires are the namespaces and veth pairs of a topology, for nodes that are in
// the calling process: no daemons, no addresses. Every host has a namespace of
// its own, the switches share one.
type Wires struct {
	s    *state
	ends [][]Dev // by node and port
	say  Progress
}

// WireMTU is the MTU of wires whose links ask for less: the most that a veth
// with an XDP program takes is 3498 (a page less XDP's headroom, the header and
// skb_shared_info, drivers/net/veth.c). It leaves room for payload, headers and
// telemetry, whatever the frames' size in the scenario; frames that a link may
// not carry are the nodes' affair.
const WireMTU = 3400

// RaiseWires makes the wires of a plan, which bear the lab's marks: what a
// process that was killed left of them is removed by the next RaiseWires of the
// same topology's name, or by Down, and shown by List. It needs root. If it
// fails, or ctx ends, everything that was made is removed again. say is called with
// what is done.
func RaiseWires(ctx context.Context, p *fabric.Plan, say Progress) (*Wires, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("real frames need root, for network namespaces and AF_XDP sockets: run it with sudo")
	}
	name := p.Topology.Name
	if err := fabric.CheckName("fabric", name); err != nil {
		return nil, err
	}
	lk, err := acquire(name)
	if err != nil {
		return nil, err
	}
	defer lk.release()
	if err := clearOld(name, say); errors.Is(err, ErrUp) {
		return nil, fmt.Errorf("fabric %q is up already: another run of it is under way, or it was raised by gfabric up; wait for it, or remove it with gfabric down %s", name, name)
	} else if err != nil {
		return nil, err
	}
	if err := makeDir(name); err != nil {
		return nil, err
	}
	l := wireLayout(p)
	w := &Wires{s: newState(l), ends: make([][]Dev, len(p.Topology.Nodes)), say: say}
	if err := w.s.save(); err != nil {
		return nil, err
	}
	began := time.Now()
	err = w.s.stretch(ctx, l)
	if err == nil {
		w.s.Phase = phaseUp
		err = w.s.save()
	}
	if err != nil {
		if cleanup := w.s.remove(say); cleanup != nil {
			err = fmt.Errorf("%w\nand it could not all be removed: %w", err, cleanup)
		}
		return nil, err
	}
	w.index(l)
	say("%s, %s in %.1f s", fabric.Count(len(l.Namespaces), "namespace", "namespaces"), fabric.Count(len(l.Veths), "veth pair", "veth pairs"), time.Since(began).Seconds())
	return w, nil
}

// wireLayout lays out a veth pair for each link.
func wireLayout(p *fabric.Plan) *Layout {
	t := p.Topology
	l := &Layout{Plan: p, owned: true}
	space := make([]int, len(t.Nodes))
	for _, h := range t.Hosts() {
		space[h] = l.addNamespace(t.Nodes[h].Name, h)
	}
	all := l.addNamespace(switchSpace, -1)
	for _, s := range t.Switches() {
		space[s] = all
	}
	names := deviceNames{t: t, used: map[Dev]bool{}}
	for i := range t.Links {
		li := &t.Links[i]
		v := Veth{Link: i, A: names.dev(li.A, li.B, space), B: names.dev(li.B, li.A, space)}
		v.A.mac, v.B.mac = l.deviceMAC(li.A), l.deviceMAC(li.B)
		l.Veths = append(l.Veths, v)
	}
	return l
}

// stretch makes everything of the layout.
func (s *state) stretch(ctx context.Context, l *Layout) error {
	spaces, err := s.createNamespaces(ctx, l, func(*Namespace) map[string]string { return switchSysctls })
	defer closeAll(spaces)
	if err != nil {
		return err
	}
	for i := range l.Veths {
		if err := ctx.Err(); err != nil {
			return err
		}
		v := &l.Veths[i]
		link := &l.Plan.Topology.Links[v.Link]
		if err := wire(v, max(link.MTU, WireMTU), spaces[v.A.Namespace], spaces[v.B.Namespace]); err != nil {
			return err
		}
		for _, d := range []Dev{v.A, v.B} {
			// Both ends are AF_XDP's: finished frames, and a plain queue.
			if err := dress(d, spaces[d.Namespace], false, link); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Wires) index(l *Layout) {
	t := l.Plan.Topology
	for i := range t.Nodes {
		w.ends[i] = make([]Dev, len(t.Nodes[i].Links))
	}
	for _, v := range l.Veths {
		li := &t.Links[v.Link]
		w.ends[li.A.Node][li.A.Port], w.ends[li.B.Node][li.B.Port] = v.A, v.B
	}
}

// End returns the interface that a port of a node of the topology is, and the
// name of the namespace that it is in.
func (w *Wires) End(node, port int) (netns, iface string) {
	d := w.ends[node][port]
	return w.s.Namespaces[d.Namespace].Name, d.Name
}

// Env is what processes that step nodes on the wires have in their environment:
// by it they are found and ended when the wires are removed.
func (w *Wires) Env() string { return markerEnv + "=" + w.s.marker() }

// Close removes the wires.
func (w *Wires) Close() error {
	lk, err := acquire(w.s.Name)
	if err != nil {
		return err
	}
	defer lk.release()
	// Somebody else may have taken them down already.
	now, err := readState(w.s.Name)
	if err != nil || now == nil || now.Token != w.s.Token {
		return err
	}
	return w.s.remove(w.say)
}
