package run

import (
	"context"
	"encoding/json"
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
	c, err := l.command(b)
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
	c, err := l.command(b)
	if err != nil {
		return fmt.Sprintf("unknown (%v)", err)
	}
	return l.name(c)
}

func (l *Lone) name(c *vnet.Command) string {
	switch c.Kind {
	case vnet.CommandOpen:
		return fmt.Sprintf("open of connection %d from %s to %s", c.Ends.Conn, l.Network.HostName(c.Flow.Src), l.Network.HostName(c.Flow.Dst))
	case vnet.CommandSend:
		return fmt.Sprintf("message of %d bytes on connection %d", c.Bytes, c.Ends.Conn)
	case vnet.CommandReports:
		return "reports of " + c.Of
	case vnet.CommandCall:
		return "call of " + c.Of
	case vnet.CommandInject:
		return fmt.Sprintf("frame of %d bytes", len(c.Frame))
	}
	return fmt.Sprintf("close of connection %d", c.Ends.Conn)
}

// noted is a vnet.Command as records hold it. What it lacks of a flow follows from the
// entry of the workload.
type noted struct {
	Kind  vnet.CommandKind
	Ends  vnet.Ends
	Group int
	Src   int
	Dst   int
	Flow  uint64 `json:",omitempty"`
	NoECN bool   `json:",omitempty"`
	Port  uint16 `json:",omitempty"`
	Bytes uint64 `json:",omitempty"`
	ID    uint64 `json:",omitempty"`
	Frame []byte `json:",omitempty"`
	Class uint8  `json:",omitempty"`
	Of    string `json:",omitempty"`
}

// carriedOut is a command that has been carried out by the time it is recorded.
type carriedOut struct{ c *vnet.Command }

// Do implements frame.Command.
func (carriedOut) Do(frame.Time) {}

// Encode implements frame.Command.
func (d carriedOut) Encode(b []byte) []byte {
	c, f := d.c, &d.c.Flow
	text, err := json.Marshal(&noted{c.Kind, c.Ends, f.Group, f.Src, f.Dst, f.ID, f.NoECN, f.SrcPort, c.Bytes, c.ID, c.Frame, c.Class, c.Of})
	if err != nil {
		panic(err) // cannot happen: it has only numbers
	}
	return append(b, text...)
}

// command decodes what Encode wrote.
func (l *Lone) command(b []byte) (*vnet.Command, error) {
	var d noted
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, err
	}
	switch d.Kind {
	case vnet.CommandInject, vnet.CommandReports, vnet.CommandCall:
		return &vnet.Command{Kind: d.Kind, Frame: d.Frame, Class: d.Class, Of: d.Of}, nil
	}
	hosts := len(l.Network.Hosts)
	if d.Group < 0 || d.Group >= len(l.flows) || d.Src < 0 || d.Src >= hosts || d.Dst < 0 || d.Dst >= hosts {
		return nil, fmt.Errorf("connection %d of entry %d from host %d to host %d: there is none of them", d.Ends.Conn, d.Group, d.Src, d.Dst)
	}
	f := l.flows[d.Group][d.Src]
	f.ID, f.Src, f.Dst, f.NoECN, f.SrcPort = d.Flow, d.Src, d.Dst, d.NoECN, d.Port
	return &vnet.Command{Kind: d.Kind, Ends: d.Ends, Flow: f, Bytes: d.Bytes, ID: d.ID}, nil
}
