package live

import (
	"slices"
	"testing"

	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/sim"
)

// ear is a node that follows its links and does nothing else.
type ear struct {
	frame.Stepper
	heard []heard
}

type heard struct {
	at   frame.Time
	port uint16
	up   bool
}

func (*ear) Receive(frame.Time, uint16, []frame.Ref)      {}
func (*ear) Advance(frame.Time)                           {}
func (*ear) Wake(frame.Time) frame.Time                   { return frame.Never }
func (*ear) Transmit(frame.Time, uint16, []frame.Ref) int { return 0 }
func (e *ear) SetLink(now frame.Time, port uint16, up bool) {
	if now > 0 {
		e.heard = append(e.heard, heard{now, port, up})
	}
}

// ears is an engine whose nodes are ears, two hosts and a switch.
func ears(t *testing.T, c Config) (*Engine, map[fabric.Kind][]*ear) {
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
	all := map[fabric.Kind][]*ear{}
	topo := spec.Plan.Topology
	for i := range topo.Nodes {
		n := &ear{}
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
	e, all := ears(t, Config{Dilation: 100, Workers: 1})
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
	want := []heard{{at[0], 0, false}, {at[1], 0, true}}
	for _, n := range []*ear{all[fabric.Host][0], all[fabric.Switch][0]} {
		for i := range n.heard {
			n.heard[i].port = 0
		}
		if !slices.Equal(n.heard, want) {
			t.Errorf("heard %v, want %v", n.heard, want)
		}
	}
}

// How late a fault comes on another worker is measured there.
func TestCutElsewhereIsMeasured(t *testing.T) {
	e, all := ears(t, Config{Dilation: 100, Workers: 2})
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
	far := all[fabric.Switch][0].heard
	if len(far) != 1 || far[0].up || far[0].at < at {
		t.Fatalf("cut at %v, the switch heard %v", at, far)
	}
	// The switch has no timers.
	if late := &e.final.Workers[1].Lateness; late.Total() != 1 || late.Max > uint64(far[0].at-at) {
		t.Errorf("%d faults were late by %d ns at most, asked for at %v and made at %v", late.Total(), late.Max, at, far[0].at)
	}
}

// The end of a reboot does not mend what a fault cut meanwhile, and one that is
// mended meanwhile stays down until then.
func TestRebootMendsItsOwnOnly(t *testing.T) {
	e, all := ears(t, Config{Dilation: 100, Workers: 1})
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
	if h := all[fabric.Host][0].heard; len(h) != 1 || h[0].up || h[0].at < 20_000 {
		t.Errorf("link 0 was cut while the switch rebooted: %v", h)
	}
	if h := all[fabric.Host][1].heard; len(h) != 2 || h[0].up || !h[1].up || h[1].at < 50_000 {
		t.Errorf("link 1 was mended while the switch rebooted: %v", h)
	}
}
