package vswitch_test

import (
	"bytes"
	"testing"

	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// wrapper is a feature that puts a tag before frames that leave by ports which have
// its options, and takes it off those that come in by them.
type wrapper struct {
	arena              *frame.Arena
	out                map[uint16]bool
	popped, seen, kept int
}

const wrapped = "test-wrapper"

func init() {
	vswitch.Register(vswitch.Feature{Name: wrapped, New: func(n *vswitch.Node) vswitch.Instance {
		w := &wrapper{arena: n.Arena(), out: map[uint16]bool{}}
		return vswitch.Instance{State: w, Wrapped: w.wrapped, Unwrap: w.unwrap, Forwards: w.forwards}
	}})
}

func (w *wrapper) wrapped(port uint16, c *vswitch.PortConfig) bool {
	w.out[port] = c.Options[wrapped] != nil
	return w.out[port]
}

func (w *wrapper) unwrap(_ frame.Time, _ uint16, v []frame.Ref) {
	for _, r := range v {
		if _, ok := wire.PopLinkTag(w.arena, r); ok {
			w.popped++
		}
	}
}

func (w *wrapper) forwards(_ frame.Time, v []frame.Ref) {
	for _, r := range v {
		m := w.arena.Meta(r)
		w.seen++
		if m.Flags&frame.ToLocal != 0 {
			w.kept++
		} else if w.out[m.OutPort] {
			wire.PushLinkTag(w.arena, r, wire.LinkTag{Batch: 1})
		}
	}
}

func wrapping(cfg *vswitch.Config, ports ...int) *vswitch.Config {
	for _, p := range ports {
		cfg.Ports[p].Options = vswitch.Options{wrapped: true}
	}
	return cfg
}

// What a feature puts before frames leaves with them, and the next switch forwards
// them as if it had not been there. A vector of more frames than are gathered at
// once keeps its order.
func TestFeatureWrapsFrames(t *testing.T) {
	a, b := st.New(t, wrapping(st.Star(), 1)), st.New(t, wrapping(st.Star(), 0))
	var sent [][]byte
	for i := range uint16(200) {
		sent = append(sent, wt.UDP4(st.HostMAC(2), st.HostMAC(1), "10.0.0.1", "10.0.0.2", i, 7, make([]byte, 30)))
	}
	a.In(0, sent...)
	var on, out [][]byte
	for range 200 {
		a.Advance(frame.Microsecond)
		on = append(on, a.Out(1)...)
	}
	for _, f := range on {
		if len(f) != len(sent[0])+wire.LinkTagLen {
			t.Fatalf("%d bytes on the link", len(f))
		}
		b.In(0, f)
	}
	for range 200 {
		b.Advance(frame.Microsecond)
		out = append(out, b.Out(1)...)
	}
	if len(out) != len(sent) {
		t.Fatalf("%d of %d came out", len(out), len(sent))
	}
	for i := range out {
		if !bytes.Equal(out[i], sent[i]) {
			t.Fatalf("frame %d: % x, want % x", i, out[i], sent[i])
		}
	}
	x, y := a.Switch.Nodes[0].Feature(wrapped).(*wrapper), b.Switch.Nodes[0].Feature(wrapped).(*wrapper)
	if x.seen != 200 || x.popped != 0 || y.seen != 200 || y.popped != 200 {
		t.Errorf("%+v, %+v", x, y)
	}
	// Without options nothing is put before them any more.
	a.Apply(st.Star())
	a.In(0, sent[0])
	a.Advance(frame.Microsecond)
	if f := a.Out(1); len(f) != 1 || !bytes.Equal(f[0], sent[0]) || x.seen != 200 {
		t.Errorf("after it was turned off: %v, %d seen", f, x.seen)
	}
}

// What the switch keeps for itself is shown, too, by the worker that it came to.
func TestFeatureSeesWhatIsKept(t *testing.T) {
	cfg := wrapping(st.Star(), 0)
	cfg.Ports[0].Addresses = st.Prefixes("10.0.1.1/24")
	r := st.New(t, cfg)
	r.In(0, wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(1)), wt.IPv4("10.0.1.2", "10.0.1.1"), wt.ICMP(8, 0, 1), wt.Zeros(8)))
	w := r.Switch.Nodes[0].Feature(wrapped).(*wrapper)
	if w.kept != 1 || w.seen != 2 { // and the answer
		t.Errorf("%+v", w)
	}
}
