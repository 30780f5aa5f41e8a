package dataplane

import (
	"cmp"
	"errors"
	"testing"

	"gswitch/frame"
)

// counted is a node around another, which counts what comes by.
type counted struct {
	frame.Node
	frames, advances, links, commands int
}

func (c *counted) Receive(now frame.Time, port uint16, v []frame.Ref) {
	c.frames += len(v)
	c.Node.Receive(now, port, v)
}

func (c *counted) Advance(now frame.Time) {
	c.advances++
	c.Node.Advance(now)
}

func (c *counted) SetLink(now frame.Time, port uint16, up bool) {
	c.links++
	c.Node.SetLink(now, port, up)
}

func (c *counted) Command(now frame.Time, cmd frame.Command) {
	c.commands++
	cmd.Do(now)
}

type note struct{ done *int }

func (n note) Do(frame.Time)          { *n.done++ }
func (n note) Encode(b []byte) []byte { return b }

// A node is wrapped while frames flow, and unwrapped again: no frame is lost,
// and between the two the wrapper sees all that the node gets.
func TestInterpose(t *testing.T) {
	e := mustEngine(t, Config{})
	w := e.Worker(0)
	b := newBridge(w)
	a, z := &tester{pool: w.Pool(), size: 100, toSend: 1 << 62}, &tester{pool: w.Pool()}
	mustNode(t, e, 0, b)
	mustNode(t, e, 0, a)
	mustNode(t, e, 0, z)
	mustPort(t, e, 0, a, 0, PortSpec{Name: "a", Kind: Wire, Wire: "left"})
	left := mustPort(t, e, 0, b, 0, PortSpec{Name: "b0", Kind: Wire, Wire: "left"})
	mustPort(t, e, 0, b, 1, PortSpec{Name: "b1", Kind: Wire, Wire: "right"})
	mustPort(t, e, 0, z, 0, PortSpec{Name: "z", Kind: Wire, Wire: "right"})
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, w, func() bool { return z.received > 100 })

	c := &counted{}
	wrap := func(_ frame.Time, n frame.Node) (frame.Node, error) { c.Node = n; return c, nil }
	refused := errors.New("no")
	if err := e.Interpose(0, b, func(frame.Time, frame.Node) (frame.Node, error) { return nil, refused }); err != refused {
		t.Errorf("the refusal came back as %v", err)
	}
	if err := e.Uninterpose(0, b); err == nil {
		t.Error("a node that is not wrapped was unwrapped")
	}
	if err := e.Interpose(0, b, wrap); err != nil {
		t.Fatal(err)
	}
	if err := e.Interpose(0, b, wrap); err == nil {
		t.Error("a node was wrapped twice")
	}
	var from uint64
	await(t, w, func() bool { from = b.received - uint64(c.frames); return c.frames > 1000 })
	for range 3 {
		if err := e.Advance(0, b); err != nil {
			t.Fatal(err)
		}
	}
	done := 0
	if err := e.Command(0, b, note{&done}); err != nil {
		t.Fatal(err)
	}
	for _, up := range []bool{false, true} {
		if err := e.SetLink(left, up); err != nil {
			t.Fatal(err)
		}
	}
	at := 0
	await(t, w, func() bool {
		at = cmp.Or(at, c.frames)
		return c.frames > at+1000
	})
	if err := e.Uninterpose(0, b); err != nil {
		t.Fatal(err)
	}
	if err := e.Command(0, b, note{&done}); err != nil {
		t.Fatal(err)
	}
	received, seen := uint64(0), uint64(c.frames)
	await(t, w, func() bool { received = b.received; return received > from+seen+1000 })
	if uint64(c.frames) != seen || c.links != 2 || c.commands != 1 || done != 2 || c.advances < 3 {
		t.Errorf("after it was taken out the wrapper saw %d frames more; %d links, %d commands of %d, %d advances",
			uint64(c.frames)-seen, c.links, c.commands, done, c.advances)
	}
	if err := e.Advance(0, &counted{}); err == nil {
		t.Error("an unknown node was advanced")
	}
	if err := e.RemoveNode(0, &counted{}); err != nil {
		t.Error(err)
	}
}
