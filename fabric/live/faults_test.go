package live

import (
	"slices"
	"testing"

	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/sim"
)

// listener is a node that follows its links and does nothing else.
type listener struct {
	frame.Stepper
	changes []change
}

type change struct {
	at   frame.Time
	port uint16
	up   bool
}

func (*listener) Receive(frame.Time, uint16, []frame.Ref)      {}
func (*listener) Advance(frame.Time)                           {}
func (*listener) Wake(frame.Time) frame.Time                   { return frame.Never }
func (*listener) Transmit(frame.Time, uint16, []frame.Ref) int { return 0 }
func (e *listener) SetLink(now frame.Time, port uint16, up bool) {
	if now > 0 {
		e.changes = append(e.changes, change{now, port, up})
	}
}

// listeners is an engine whose nodes are listeners, two hosts and a switch.
func listeners(t *testing.T, c Config) (*Engine, map[fabric.Kind][]*listener) {
	t.Helper()
	spec := engine(t, "star(2)", c).spec
	spec.Chunks = 64
	e, err := New(c, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	all := map[fabric.Kind][]*listener{}
	topo := spec.Plan.Topology
	for i := range topo.Nodes {
		n := &listener{}
		e.AddNode(i, n, nil)
		all[topo.Nodes[i].Kind] = append(all[topo.Nodes[i].Kind], n)
	}
	for i := range topo.Links {
		l := &topo.Links[i]
		e.Connect(l.A.Node, uint16(l.A.Port), l.B.Node, uint16(l.B.Port), sim.Link{Delay: frame.Microsecond})
	}
	return e, all
}

// A link is cut in the instant at which a callback of the same worker says so,
// however late the rest of the process is.
func TestCutIsInTime(t *testing.T) {
	e, all := listeners(t, Config{Dilation: 100, Workers: 1})
	var at []frame.Time
	for i, when := range []frame.Time{50_000, 80_000} {
		e.At(when, func(now frame.Time) {
			at = append(at, now)
			if err := e.SetLink(0, i == 1); err != nil {
				e.Stop(err)
			}
		})
	}
	if err := e.Run(100_000); err != nil {
		t.Fatal(err)
	}
	if err := e.Halt(); err != nil {
		t.Fatal(err)
	}
	want := []change{{at[0], 0, false}, {at[1], 0, true}}
	for _, n := range []*listener{all[fabric.Host][0], all[fabric.Switch][0]} {
		for i := range n.changes {
			n.changes[i].port = 0
		}
		if !slices.Equal(n.changes, want) {
			t.Errorf("saw %v, want %v", n.changes, want)
		}
	}
}

// How late a fault comes on another worker is measured there.
func TestCutElsewhereIsMeasured(t *testing.T) {
	e, all := listeners(t, Config{Dilation: 100, Workers: 2})
	var at frame.Time
	e.At(50_000, func(now frame.Time) {
		at = now
		if err := e.SetLink(0, false); err != nil {
			e.Stop(err)
		}
	})
	if err := e.Run(100_000); err != nil {
		t.Fatal(err)
	}
	if err := e.Halt(); err != nil {
		t.Fatal(err)
	}
	far := all[fabric.Switch][0].changes
	if len(far) != 1 || far[0].up || far[0].at < at {
		t.Fatalf("cut at %v, the switch saw %v", at, far)
	}
	// The switch has no timers.
	if late := &e.final.Workers[1].Lateness; late.Total() != 1 || late.Max > uint64(far[0].at-at) {
		t.Errorf("%d faults were late by %d ns at most, asked for at %v and made at %v", late.Total(), late.Max, at, far[0].at)
	}
}

// The end of a reboot does not restore what a fault cut meanwhile, and one that is
// restored meanwhile stays down until then.
func TestRebootRestoresItsOwnOnly(t *testing.T) {
	e, all := listeners(t, Config{Dilation: 100, Workers: 1})
	topo := e.spec.Plan.Topology
	must := func(err error) {
		if err != nil {
			e.Stop(err)
		}
	}
	e.At(10_000, func(frame.Time) { must(e.SetLink(1, false)) })
	e.At(20_000, func(frame.Time) { must(e.Reboot(topo.Switches()[0], 30_000)) })
	e.At(30_000, func(frame.Time) { must(e.SetLink(0, false)); must(e.SetLink(1, true)) })
	if err := e.Run(100_000); err != nil {
		t.Fatal(err)
	}
	if err := e.Halt(); err != nil {
		t.Fatal(err)
	}
	if h := all[fabric.Host][0].changes; len(h) != 1 || h[0].up || h[0].at < 20_000 {
		t.Errorf("link 0 was cut while the switch rebooted: %v", h)
	}
	if h := all[fabric.Host][1].changes; len(h) != 2 || h[0].up || !h[1].up || h[1].at < 50_000 {
		t.Errorf("link 1 was restored while the switch rebooted: %v", h)
	}
}
