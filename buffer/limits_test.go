package buffer_test

import (
	"errors"
	"testing"

	"gswitch/buffer"
	"gswitch/frame"
)

func lossy(wire uint32) *frame.Meta { return &frame.Meta{InPort: 0, OutPort: 1, Wire: wire} }

// An alpha that is smaller than what can be distinguished is the smallest one, not
// none: a queue with it holds next to nothing.
func TestSmallestAlphaLimits(t *testing.T) {
	c := buffer.Config{Size: 1 << 20, Ports: make([]buffer.PortConfig, 2)}
	c.Ports[1].Queues[0].Limit.Alpha = 1e-9
	b, err := buffer.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if why := b.Admit(lossy(100)); why != frame.QueueTail {
		t.Errorf("a queue that may hold a billionth of what is free takes 100 bytes: %v", why)
	}
}

// A frame is charged whole cells.
func TestCellsAreCharged(t *testing.T) {
	b, err := buffer.New(buffer.Config{Size: 1 << 20, Cell: 208, Ports: make([]buffer.PortConfig, 2)})
	if err != nil {
		t.Fatal(err)
	}
	for wire, want := range map[uint32]uint32{1: 208, 208: 208, 209: 416, 1500: 1664} {
		m := lossy(wire)
		if why := b.Admit(m); why != frame.Keep || m.Cost != want {
			t.Errorf("%d bytes are charged %d, %v; want %d", wire, m.Cost, why, want)
		}
	}
	var s buffer.Snapshot
	if b.Snapshot(&s, false); s.Held != 208+208+416+1664 {
		t.Errorf("%d bytes are held", s.Held)
	}
}

// The span that an error calls safe is taken, a byte less is not.
func TestSafeSpanIsTaken(t *testing.T) {
	c := buffer.Config{Size: 1 << 20, Ports: make([]buffer.PortConfig, 2)}
	c.Ports[0].Link = buffer.Link{Rate: 10e9, Delay: 500, MaxFrame: 1514, Overhead: 24, Response: 500}
	stages := func(span uint64) error {
		c.Ports[0].Groups[3] = buffer.Group{Lossless: true, Limit: buffer.Threshold{Bytes: 50_000}, Stages: 5, Span: span}
		_, err := buffer.New(c)
		return err
	}
	var e *buffer.Error
	if !errors.As(stages(1), &e) || e.Safe == 0 {
		t.Fatalf("a span of one byte: %v", e)
	}
	if err := stages(e.Safe); err != nil {
		t.Errorf("the safe span: %v", err)
	}
	if stages(e.Safe-1) == nil {
		t.Errorf("%d bytes are taken, %d are safe", e.Safe-1, e.Safe)
	}
}
