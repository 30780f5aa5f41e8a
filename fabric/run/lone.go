package run

import (
	"context"
	"errors"
	"fmt"

	"gswitch/fabric/live"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	records "gswitch/replay"
	"gswitch/vswitch"
)

// Lone is a single node of a run.
type Lone struct {
	frame.Stepper
	Network *vnet.Network
	Node    int // number in the topology

	// Refused is the number of commands that failed because settings differ, and
	// FirstRefused the error of the first of them.
	Refused      int
	FirstRefused error

	flows [][]vnet.Flow // by entry of the workload and sender: what the entry's flows have in common
	other bool          // settings differ from those of the record
}

// NewLone builds the network of a record that Extract wrote, with other settings
// (path=value of the scenario). It returns the node of the record, which is stepped alone
// and allocates from pool.
func NewLone(h *records.Header, set []string, pool *frame.Pool) (*Lone, error) {
	s, err := scenarioOf(h, set)
	if err != nil {
		return nil, err
	}
	r, l := &s.Runs[0], &Lone{other: len(set) > 0}
	var nodes []frame.Stepper
	at := &host{o: &Options{Version: h.Build, On: Netns}, again: live.Idle(pool, &nodes), built: func(n *vnet.Network) { l.Network = n }}
	if _, err := one(context.Background(), s, r, at, new(progress)); !errors.Is(err, live.ErrStopAt) {
		return nil, err
	}
	n := l.Network
	// The consequences of the end of a message are in the record.
	n.OnDone(nil)
	n.OnArrival(nil)
	n.OnRTT(nil)
	if l.Node, err = nodeOf(n, h.Name); err != nil {
		return nil, err
	}
	l.Stepper = nodes[n.EngineNode(l.Node)]
	for i := range r.Doc.Workload {
		flows, err := common(n, r, i)
		if err != nil {
			return nil, err
		}
		l.flows = append(l.flows, flows)
	}
	return l, nil
}

// Do implements replay.Machine. With other settings some commands may fail that did not, as
// where a queue pair is not open any more, a switch has no port to a next hop, or a feature
// refuses a call: these are counted.
func (l *Lone) Do(now frame.Time, b []byte) error {
	if sw := l.Network.SwitchAt(l.Node); sw >= 0 {
		c, err := vswitch.DecodeChange(b)
		if err != nil {
			return err
		}
		if _, is := c.(vswitch.Apply); is {
			return errors.New("the switches of a run get no other configuration")
		}
		return l.may(l.Network.Change(now, sw, c))
	}
	c, err := l.change(b)
	if err != nil {
		return err
	}
	if err := l.Network.Carry(now, l.Network.HostAt(l.Node), c); err != nil {
		return l.may(fmt.Errorf("%s: %w", l.name(c), err))
	}
	return nil
}

// may counts why a command failed, where settings are others, and else returns it.
func (l *Lone) may(err error) error {
	if err == nil || !l.other {
		return err
	}
	if l.Refused++; l.Refused == 1 {
		l.FirstRefused = err
	}
	return nil
}

// CommandName says what a command of a host is.
func (l *Lone) CommandName(b []byte) string {
	c, err := l.change(b)
	if err != nil {
		return fmt.Sprintf("unknown (%v)", err)
	}
	return l.name(c)
}

func (l *Lone) name(c vnet.HostChange) string {
	switch c := c.(type) {
	case *vnet.OpenEnd:
		return fmt.Sprintf("open of connection %d from %s to %s", c.Conn, l.Network.HostName(c.Flow.Src), l.Network.HostName(c.Flow.Dst))
	case *vnet.Post:
		return fmt.Sprintf("message of %d bytes on connection %d", c.Bytes, c.Conn)
	case *vnet.CloseEnd:
		return fmt.Sprintf("close of connection %d", c.Conn)
	}
	return c.(vnet.OfNIC).String()
}

// change decodes a change of a host. What a flow lacks follows from the entry of the
// workload.
func (l *Lone) change(b []byte) (vnet.HostChange, error) {
	c, err := vnet.DecodeHostChange(b)
	open, is := c.(*vnet.OpenEnd)
	if err != nil || !is {
		return c, err
	}
	d, hosts := &open.Flow, len(l.Network.Hosts)
	if d.Group >= len(l.flows) || d.Src >= hosts || d.Dst >= hosts {
		return nil, fmt.Errorf("connection %d of entry %d from host %d to host %d: there is none of them", open.Conn, d.Group, d.Src, d.Dst)
	}
	f := l.flows[d.Group][d.Src]
	f.ID, f.Src, f.Dst, f.NoECN, f.SrcPort, f.AckPort = d.ID, d.Src, d.Dst, d.NoECN, d.SrcPort, d.AckPort
	*d = f
	return open, nil
}
