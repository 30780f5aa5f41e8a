package hostnic

import (
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// supply is a feature for tests that has frames of one class to send.
type supply struct {
	n     *NIC
	class uint8
	left  int
}

const supplyType = 0x88b7

func init() {
	Register(Feature{Name: "supply", New: func(n *NIC) Instance {
		s := &supply{n: n}
		return Instance{State: s, Ready: s.ready, Next: s.next, Adopt: func(options any) Stages {
			s.class, _ = options.(uint8)
			return 0
		}}
	}})
}

func (s *supply) ready() uint8 {
	if s.left == 0 {
		return 0
	}
	return 1 << s.class
}

func (s *supply) next(_ frame.Time, classes uint8) frame.Ref {
	if classes != 1<<s.class {
		panic("asked for another class")
	}
	s.left--
	r := s.n.Pool().Alloc()
	m := s.n.Arena().Reset(r)
	m.Len, m.Wire, m.Class = wire.MinFrame, 1000, s.class
	b := s.n.Arena().Bytes(r)
	clear(b)
	e := wire.EthernetFields{Dst: wire.MAC{1, 0, 0, 0, 0, 7}, Src: s.n.Config().MAC, EtherType: supplyType}
	e.Encode(b)
	return r
}

// supplied sends 20 packets of class 3 and 20 frames of a feature of another
// class, and returns which of the 40 were the feature's.
func supplied(t *testing.T, class uint8, during func(p *pair)) (order []bool) {
	p := newPair(t, func(i int, c *Config) {
		c.PFC, c.PFCClasses = true, 0xff
		if i == 0 {
			c.Options = c.Options.With("supply", class)
		}
	})
	p.seen = func(from int, m *frame.Meta, b []byte) {
		if from == 0 && m.Wire >= 1000 {
			order = append(order, be.Uint16(b[12:]) == supplyType)
		}
	}
	q, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, q, 20_000, 0))
	p.a.Feature("supply").(*supply).left = 20
	p.a.Offer(0)
	if during != nil {
		during(p)
	}
	p.run(frame.Millisecond)
	if len(order) != 40 {
		t.Fatalf("%d of 40 frames left", len(order))
	}
	p.drained()
	return order
}

// Frames of a feature leave by class, and in a class in turn with data.
func TestFramesOfFeaturesGoByClass(t *testing.T) {
	if v := supplied(t, 4, nil); slices.Contains(v[20:], true) {
		t.Errorf("frames of a higher class waited for data: %v", v)
	}
	if v := supplied(t, 2, nil); slices.Contains(v[:20], true) {
		t.Errorf("frames of a lower class left before data: %v", v)
	}
	v := supplied(t, 3, nil)
	for i := 1; i < len(v); i++ {
		if v[i] == v[i-1] {
			t.Fatalf("no turns: %v", v)
		}
	}
	v = supplied(t, 4, func(p *pair) {
		p.a.flow.Receive(0, 1<<4, [8]uint16{4: 0xffff})
		p.a.updatePaused(0)
	})
	if slices.Contains(v[:20], true) {
		t.Errorf("frames left while their class was paused: %v", v)
	}
}

// Replies leave before the data of their class and of the classes that share a
// weight with it, and behind that of higher classes.
func TestRepliesGoByClass(t *testing.T) {
	for _, c := range []struct {
		name    string
		replies uint8
		weights [8]uint32
		first   bool // replies do not wait for the data, which is of class 5
	}{
		{"lower", 3, [8]uint32{}, false},
		{"same", 5, [8]uint32{}, true},
		{"higher", 6, [8]uint32{}, true},
		{"beside by weight", 4, [8]uint32{4: 1, 5: 3}, true},
		{"below a weight", 3, [8]uint32{4: 1, 5: 3}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, func(_ int, cfg *Config) { cfg.Weights = c.weights })
			before, replies, data := 0, 0, 0
			p.seen = func(from int, m *frame.Meta, b []byte) {
				switch {
				case from == 0:
				case m.Wire >= 1000:
					data++
					before = replies
				default:
					replies++
				}
			}
			qa, _ := p.connect(func(q *QPConfig) { q.Class = c.replies })
			_, qb := p.connect(func(q *QPConfig) { q.Class = 5 })
			must(t, p.b.SendMessage(0, qb, 500_000, 0))
			must(t, p.a.SendMessage(0, qa, 20_000, 0))
			p.run(frame.Millisecond)
			if data != 500 || replies < 20 {
				t.Fatalf("%d of 500 packets and %d of 20 replies left", data, replies)
			}
			if c.first && before < 20 || !c.first && before != 0 {
				t.Errorf("%d replies left before the last packet of class 5", before)
			}
			p.drained()
		})
	}
}
