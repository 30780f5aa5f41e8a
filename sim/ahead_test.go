package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gswitch/fault"
	"gswitch/frame"
)

// grants is what a function of AddNode may do: each time that a host has another
// few frames, some host anywhere may send more, and who it is depends on the order
// in which that happens.
type grants struct {
	n    *network
	next uint64
	log  []string
}

const (
	grantEach = 20
	grantMost = 4000
)

func (g *grants) after(h *host) func(frame.Time) {
	return func(now frame.Time) {
		for h.Pending() {
			h.taken++
			if len(g.log) == grantMost {
				continue
			}
			to := int(g.next*7) % len(g.n.hosts)
			g.next++
			g.log = append(g.log, fmt.Sprintf("%d: %d frames of %x, so %d may send", now, h.got, h.proto[29:34], to))
			g.n.hosts[to].credit += grantEach
			g.n.hosts[to].dirty = true
			g.n.e.Poke(g.n.hostNode(to))
		}
	}
}

// hostNode returns the node of a host.
func (n *network) hostNode(i int) int { return len(n.sw) + i }

// foresight counts what will arrive.
type foresight struct{ shown, arrived, taken uint64 }

func (f *foresight) Pending() bool { return f.arrived/grantEach > f.taken }

func (f *foresight) MayEnd(frame.Ref) bool {
	f.shown++
	return f.shown%grantEach == 0
}

// in runs a network in so many parts, nodes drawn into them by seed, and returns
// all that is to be the same.
func in(t *testing.T, parts int, seed uint64, then func(n *network)) (history string, n *network) {
	rng := frame.NewRand(seed)
	c := netConfig{rate: 10e9, uplink: 10e9, delay: 500, seed: 7, parts: parts, place: func(int) int { return int(rng.Uint32n(uint32(parts))) }}
	if parts <= 1 {
		c.place = nil
	}
	g := &grants{}
	n = leafSpineWith(t, c, 4, 2, 4, g)
	n.all(3, 100, 4, 4)
	if then != nil {
		then(n)
	}
	n.e.Every(20_000, 20_000, func(now frame.Time) {
		for i, h := range n.hosts {
			if h.credit == 0 {
				h.credit, h.dirty = 30, true
				n.e.Poke(n.hostNode(i))
			}
		}
	})
	n.run(t, 150_000) // in two steps: the parts stop in between
	n.run(t, 700_000)
	s := n.e.Stats()
	history = fmt.Sprintln(n.e.Digest(), s.FrameHops, s.Handed, s.InFlight, s.Lost, s.Events)
	for _, h := range n.hosts {
		history += fmt.Sprintln(h.sent, h.got, h.bytes)
	}
	for _, l := range g.log {
		history += l + "\n"
	}
	return history, n
}

// A run is the same to the bit whatever parts there are, and they do run side by
// side.
func TestPartsAgree(t *testing.T) {
	want, _ := in(t, 1, 0, nil)
	if len(want) < 5000 {
		t.Fatalf("little happened: %d bytes", len(want))
	}
	for parts := 2; parts <= 5; parts++ {
		for seed := range uint64(3) {
			got, n := in(t, parts, seed, nil)
			if got != want {
				t.Fatalf("%d parts, drawn by %d: %s", parts, seed, firstDifference(got, want))
			}
			if n.e.Stats().Windows < 500 || n.e.InStep() != "" {
				t.Errorf("%d parts, drawn by %d: %d windows (%s)", parts, seed, n.e.Stats().Windows, n.e.InStep())
			}
		}
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is\n%s\nwith one part\n%s", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, with one part %d", len(a), len(b))
}

// From the first fault on the parts go in step, with the same result.
func TestPartsWithFaults(t *testing.T) {
	for name, then := range map[string]func(n *network){
		"loss": func(n *network) {
			n.e.At(100_000, func(frame.Time) { _ = n.e.Fault(n.links[0], Forth, fault.Config{Loss: 0.1}) })
		},
		"link":  func(n *network) { n.e.At(100_000, func(frame.Time) { _ = n.e.SetLink(n.links[17], false) }) },
		"pause": func(n *network) { n.e.At(100_000, func(frame.Time) { _ = n.e.Pause(2, 200_000) }) },
		"slow":  func(n *network) { n.e.At(100_000, func(frame.Time) { _ = n.e.Slow(n.hostNode(3), 5000) }) },
		"clock": func(n *network) {
			n.e.At(100_000, func(frame.Time) { _ = n.e.SetClock(n.hostNode(3), 20_000, -3000) })
			n.e.At(100_000, func(frame.Time) { _ = n.e.SetClock(1, -20_000, 3000) })
		},
		"reboot": func(n *network) { n.e.At(100_000, func(frame.Time) { _ = n.e.Reboot(4, 50_000) }) },
	} {
		want, _ := in(t, 1, 0, then)
		got, n := in(t, 3, 1, then)
		if got != want {
			t.Errorf("%s: %s", name, firstDifference(got, want))
		}
		if n.e.Stats().Windows == 0 {
			t.Errorf("%s: no window before it", name)
		}
	}
}

// Without foresight no part runs ahead, and what a node ends that it had not
// foreseen ends the run.
func TestPartsNeedForesight(t *testing.T) {
	e := New(Config{Parts: 2})
	e.Assign(e.AddNode(newHost(e.PoolOf(0), 1, 1e9, swMAC(0)), func(frame.Time) {}), 0, nil)
	e.Assign(e.AddNode(newHost(e.PoolOf(1), 2, 1e9, swMAC(0)), nil), 1, nil)
	e.Connect(0, 0, 1, 0, Link{Delay: 100})
	if err := e.Run(1000); err != nil || e.InStep() == "" {
		t.Errorf("%v, in step: %q", err, e.InStep())
	}

	e = New(Config{Parts: 2})
	h := newHost(e.PoolOf(1), 2, 1e9, swMAC(0))
	from := newHost(e.PoolOf(0), 1, 1e9, swMAC(0))
	from.credit = 1000
	e.Assign(e.AddNode(from, nil), 0, nil)
	e.Assign(e.AddNode(h, func(frame.Time) { h.taken = h.arrived / grantEach }), 1, blind{&h.foresight})
	e.Connect(0, 0, 1, 0, Link{Delay: 100})
	if err := e.Run(1e6); err == nil {
		t.Error("what was not foreseen was not noticed")
	}
}

// blind foresees nothing.
type blind struct{ *foresight }

func (blind) MayEnd(frame.Ref) bool { return false }

// A link without delay leaves no room to run ahead.
func TestPartsWithoutDelay(t *testing.T) {
	e := New(Config{Parts: 2})
	for i := range 2 {
		h := newHost(e.PoolOf(i), uint32(i+1), 1e9, swMAC(0))
		h.credit = 10
		e.Assign(e.AddNode(h, nil), i, nil)
	}
	e.Connect(0, 0, 1, 0, Link{})
	if err := e.Run(1e6); err != nil || e.InStep() == "" || e.Stats().FrameHops != 20 {
		t.Errorf("%v, in step: %q, %+v", err, e.InStep(), e.Stats())
	}
}

// Chunks that run out do so differently with other parts: the run ends.
func TestPartsOutOfChunks(t *testing.T) {
	e := New(Config{Parts: 2, Chunks: 1})
	for i := range 2 {
		h := newHost(e.PoolOf(i), uint32(i+1), 400e9, swMAC(0))
		h.credit = 1e6
		e.Assign(e.AddNode(h, nil), i, nil)
	}
	e.Connect(0, 0, 1, 0, Link{Delay: 1e6})
	if err := e.Run(1e7); err == nil {
		t.Error("no error")
	}
}

func TestInstants(t *testing.T) {
	rng := frame.NewRand(1)
	var h instants
	var all []frame.Time
	for range 1000 {
		at := frame.Time(rng.Uint32n(500))
		h.put(at)
		all = append(all, at)
	}
	slices.Sort(all)
	for at := range frame.Time(501) {
		i, _ := slices.BinarySearch(all, at)
		want := frame.Never
		if i < len(all) {
			want = all[i]
		}
		if got := h.from(at); got != want {
			t.Fatalf("from %d on: %d, want %d", at, got, want)
		}
	}
}
