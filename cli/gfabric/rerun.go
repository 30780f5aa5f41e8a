package gfabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	runner "gswitch/fabric/run"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/replay"
)

// errUntil ends the replay of a run where what --until names has come.
var errUntil = errors.New("what --until names has come")

// again makes the run of a record happen again.
func (f *replayFlags) again(ctx context.Context, name string, in *replay.Reader, until *condition, end frame.Time, words []string, stdout, stderr io.Writer) error {
	if end != frame.Never || len(words) > 0 && until == nil {
		last, err := f.last(name)
		switch {
		case err != nil:
			return err
		case end == frame.Never:
			end = last
		case end > last:
			return usagef("%v: the record ends at %v", end.Duration(), last.Duration())
		}
	}
	l, err := newLookout(f, until, stdout)
	if err != nil {
		return err
	}
	look := &runLookout{lookout: l, words: words}
	x := runner.Replay{Instants: []frame.Time{end}, Built: look.watch}
	if end != frame.Never {
		x.At = func(*vnet.Network, frame.Time) error { return nil }
	}
	began := time.Now()
	err = x.Again(ctx, in)
	if closed := l.close(); closed != nil {
		return closed
	}
	if err != nil && !errors.Is(err, errUntil) && !errors.Is(err, replay.ErrCut) {
		return fmt.Errorf("%s: %w", name, err)
	}
	l.untraced(stderr)
	at := x.Player.Now().Duration()
	if until != nil && look.at < 0 {
		return fmt.Errorf("%s: %s did not come up to the end, %v", name, f.until, at)
	}
	cut := ""
	if x.Cut != nil {
		cut = "; " + x.Cut.Error()
	}
	frames, sums := x.Player.Sent()
	fmt.Fprintf(stderr, "replayed %v of %s in %v: %d calls, %d frames sent, %d hashes compared: %s%s\n", at.Round(time.Microsecond), in.Header.Name,
		time.Since(began).Round(time.Millisecond), x.Player.Steps(), frames, sums, sameness(frames, sums), cut)
	if until != nil {
		fmt.Fprintf(stderr, "%s comes at %v, at %s\n", f.until, at, look.sights[look.at].name)
	}
	if len(words) == 0 {
		return nil
	}
	node := f.node
	if node == "" && until != nil {
		node = shownNode(look.n.Topology, look.sights[look.at].name, words[0])
	}
	handler, err := nodeOfRun(look.n, node, words[0], &in.Header)
	if err != nil {
		return err
	}
	return shown(ctx, handler, words, stdout, stderr)
}

// runLookout is what is looked at in all nodes of a run.
type runLookout struct {
	*lookout
	words  []string // verb that shows a node
	n      *vnet.Network
	sights []*sight // by the numbers of the engine
	of     []int    // switch or host by the same number: as in n.Switches, or -1 - as in n.Hosts
	values []float64
	total  float64
	at     int // where what --until names came; -1: nowhere
}

// watch looks at a network from its first step on.
func (l *runLookout) watch(n *vnet.Network, p *replay.NetworkPlayer) error {
	l.n, l.at, l.wide = n, -1, 16
	if err := l.chosen(); err != nil {
		return err
	}
	count := len(n.Topology.Nodes)
	l.sights, l.of, l.values = make([]*sight, count), make([]int, count), make([]float64, count)
	for node := range n.Topology.Nodes {
		x := &sight{lookout: l.lookout, name: n.Topology.Nodes[node].Name, arena: p.Pool().Arena, ports: map[uint16]string{}, epoch: p.Header().Epoch}
		for port, name := range n.Topology.PortNames(node) {
			x.ports[uint16(port)] = name
		}
		k := n.EngineNode(node)
		l.sights[k] = x
		if s, is := n.SwitchByName(x.name); is {
			l.of[k] = s
		} else if h, is := n.HostByName(x.name); is {
			l.of[k] = -1 - h
		}
	}
	if l.frames() {
		p.Seen = func(now frame.Time, node int, port uint16, v []frame.Ref) { l.sights[node].came(now, port, v) }
		p.Left = func(now frame.Time, node int, port uint16, v []frame.Ref) { l.sights[node].left(now, port, v) }
	}
	if l.drops() {
		p.Dropped = func(now frame.Time, node int, v []frame.Ref) { l.sights[node].dropped(now, v) }
	}
	c := l.until
	if c == nil {
		return nil
	}
	if _, known := n.Topology.Lookup(c.node); c.node != "" && !known {
		return usagef("--until %s: the run has no node %s", c.text, c.node)
	}
	if !c.drop {
		for k := range l.sights {
			l.values[k] = l.value(k)
			l.total += l.values[k]
		}
	}
	p.Stepped = l.stepped
	return nil
}

// chosen refuses, before anything is replayed, a node that the run does not have, and one that the
// verb cannot show.
func (l *runLookout) chosen() error {
	node := l.flags.node
	if len(l.words) > 0 && (node != "" || l.until == nil) {
		_, err := chosenNode(l.n, node, l.words[0])
		return err
	}
	if node == "" {
		return nil
	}
	_, err := chosenNode(l.n, node, "")
	return err
}

// value is that of a node.
func (l *runLookout) value(k int) float64 {
	x, c := l.sights[k], l.until
	switch {
	case c.node != "" && c.node != x.name:
		return 0
	case l.of[k] >= 0:
		return c.of(l.n.Switches[l.of[k]].Nodes[0], x.ports)
	}
	return c.ofNIC(l.n.Hosts[-1-l.of[k]])
}

// stepped looks, behind a call of a node, whether what --until names has come.
func (l *runLookout) stepped(_ frame.Time, k int) error {
	come := l.sights[k].stopped
	if c := l.until; !c.drop {
		v := l.value(k)
		l.total += v - l.values[k]
		l.values[k] = v
		come = c.holds(l.total)
	}
	if !come {
		return nil
	}
	l.at = k
	return errUntil
}

// last is the last instant at which one can look at the run of a record.
func (f *replayFlags) last(name string) (frame.Time, error) {
	file, in, err := f.open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	length, err := replay.Length(in)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return max(0, length-1), nil
}
