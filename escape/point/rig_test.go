package point

import (
	"testing"

	"gswitch/buffer"
	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
)

// rig is a switch on a table whose frames may escape.
type rig struct{ *st.Rig }

func newRig(t testing.TB, cfg *vswitch.Config) *rig {
	t.Helper()
	return &rig{st.New(t, cfg)}
}

// all takes what a port sends within some microseconds.
func (r *rig) all(port uint16) (v [][]byte) {
	for range 20 {
		r.Advance(frame.Microsecond)
		v = append(v, r.Out(port)...)
	}
	return v
}

// exits is what a worker keeps for frames that escape.
func exits(n *vswitch.Node) *ports { return n.Feature(Name).(*ports) }

// with lets frames escape.
func with(cfg *vswitch.Config, c Config) { cfg.Options = cfg.Options.With(Name, c) }

// change changes how they do.
func change(cfg *vswitch.Config, f func(*Config)) {
	c, _ := Of(cfg)
	f(&c)
	with(cfg, c)
}

// takePart says whether the neighbour at a port understands tokens.
func takePart(p *vswitch.PortConfig, does bool) {
	if p.Options = nil; does {
		p.Options = vswitch.Options{Name: Neighbor{}}
	}
}

// buffered returns what a port and class hold of the buffer.
func buffered(n *vswitch.Node, port, class int) uint64 {
	var s buffer.Snapshot
	n.Buffer(&s, false)
	g := &s.Ports[port].Groups[class]
	return g.Reserved + g.Shared + g.Headroom
}
