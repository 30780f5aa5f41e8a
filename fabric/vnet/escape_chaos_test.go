package vnet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gswitch/config"
	"gswitch/escape"
	"gswitch/escape/point"
	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/sim"
	"gswitch/transport"
	"gswitch/units"
	wirefmt "gswitch/wire"
)

// watched is an engine that looks at what nodes send and receive: hosts number
// their frames, and see that those of a flow come in order whatever happened to
// others on the way; switches lose tokens and requests for them.
type watched struct {
	Engine
	topo  *fabric.Topology
	sent  map[frame.Ref]uint64 // by the frame that a host sent last in this memory
	last  map[wirefmt.FlowID]uint64
	next  uint64
	rng   frame.Rand
	loss  uint64 // of 256 tokens
	wrong string
}

type watchedNode struct {
	frame.Stepper
	w    *watched
	pool *frame.Pool
	host bool
}

func (w *watched) AddNode(node int, s frame.Stepper, after func(frame.Time)) int {
	return w.Engine.AddNode(node, &watchedNode{s, w, w.Engine.Pool(node), w.topo.Nodes[node].Kind == fabric.Host}, after)
}

func (n *watchedNode) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	k := n.Stepper.Transmit(now, port, out)
	if n.host {
		for _, r := range out[:k] {
			n.w.next++
			n.w.sent[r] = n.w.next
		}
	}
	return k
}

func (n *watchedNode) Receive(now frame.Time, port uint16, v []frame.Ref) {
	keep := v[:0]
	for _, r := range v {
		b := n.pool.Bytes(r)
		switch mac := len(b) > 16 && b[12] == 0x88 && b[13] == 0x08; {
		case mac && b[14] == 1 && (b[15] == 2 || b[15] == 3) && n.w.rng.Uint64()%256 < n.w.loss:
			n.pool.Free(r)
			continue
		case !mac && n.host:
			n.w.order(b, r)
		}
		keep = append(keep, r)
	}
	n.Stepper.Receive(now, port, keep)
}

// order holds the frames of a flow to the order in which their host sent them.
func (w *watched) order(b []byte, r frame.Ref) {
	var key wirefmt.FlowID
	for _, c := range b[26:34] {
		key.Addrs = key.Addrs<<8 | uint64(c)
	}
	for _, c := range b[34:38] {
		key.Ports = key.Ports<<8 | uint32(c)
	}
	key.Proto = b[23]
	if w.sent[r] <= w.last[key] && w.wrong == "" {
		w.wrong = fmt.Sprintf("a frame of flow %+v overtook %d others", key, w.last[key]-w.sent[r])
	}
	w.last[key] = w.sent[r]
}

// tangle is switches in a random graph with two hosts each, in which what is
// for a switch goes by a random tree: loop-free, but seldom the shortest way.
func tangle(t *rapid.T) (*fabric.Topology, []Detour) {
	k := rapid.IntRange(3, 6).Draw(t, "switches")
	name := func(i int) string { return fmt.Sprint("s", i+1) }
	var s strings.Builder
	s.WriteString("mode: l3\nclasses: {host: {rate: 40Gbps, delay: 1us}, fabric: {rate: 40Gbps, delay: 1us}}\nhosts: [")
	for i := range 2 * k {
		fmt.Fprintf(&s, "h%d, ", i+1)
	}
	s.WriteString("]\nswitches: [")
	for i := range k {
		s.WriteString(name(i) + ", ")
	}
	s.WriteString("]\nlinks:\n")
	for i := range 2 * k {
		fmt.Fprintf(&s, "  - {a: h%d, b: %s}\n", i+1, name(i%k))
	}
	near := make([][]int, k)
	link := func(a, b int) {
		if a != b && !slices.Contains(near[a], b) {
			near[a], near[b] = append(near[a], b), append(near[b], a)
			fmt.Fprintf(&s, "  - {a: %s, b: %s}\n", name(a), name(b))
		}
	}
	for i := range k {
		link(i, (i+1)%k)
	}
	for range rapid.IntRange(0, k).Draw(t, "chords") {
		link(rapid.IntRange(0, k-1).Draw(t, "from"), rapid.IntRange(0, k-1).Draw(t, "to"))
	}
	topo, err := fabric.Parse("tangle.yaml", []byte("version: 1\nname: tangle\n"+s.String()))
	if err != nil {
		t.Fatal(err)
	}
	var routes []Detour
	around := rapid.IntRange(0, 2).Draw(t, "tree") // 0: around the ring, which makes circles sure
	for to := range k {
		seen := make([]bool, k)
		var grow func(at int)
		grow = func(at int) {
			seen[at] = true
			next := near[at]
			if around == 0 {
				next = []int{(at + k - 1) % k}
			} else if around == 1 {
				next = rapid.Permutation(near[at]).Draw(t, "branches")
			}
			for _, x := range next {
				if !seen[x] {
					routes = append(routes, Detour{At: name(x), To: name(to), Via: name(at)})
					grow(x)
				}
			}
		}
		grow(to)
	}
	return topo, routes
}

// ofFlaps is why switches lose frames when links go. A neighbour whose link comes
// back has forgotten the pause, and what it sends until it is asked again finds
// the headroom in use: so it is without Escape too.
var ofFlaps = []frame.Reason{frame.QueueFlush, frame.EgressPortDown, frame.PortDown, frame.HeadroomFull}

// In random networks with circles, while tokens and requests are lost,
// neighbours pause for no reason, links go, and tables are too small for the
// flows: no switch loses a frame but with its link, no frame of a flow overtakes
// an older one, all places and tokens are accounted for at all times. In the end
// everything has arrived and every place is free.
func TestEscapeInTangles(t *testing.T) {
	var total escape.Counts
	rapid.Check(t, func(r *rapid.T) {
		topo, routes := tangle(r)
		k := len(topo.Switches())
		w := &watched{topo: topo, sent: map[frame.Ref]uint64{}, last: map[wirefmt.FlowID]uint64{}, rng: frame.NewRand(rapid.Uint64().Draw(r, "seed"))}
		w.loss = uint64(rapid.SampledFrom([]int{0, 0, 10, 64}).Draw(r, "tokens lost, of 256"))
		flaps := rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(r, "flaps")
		table := rapid.SampledFrom([]int{4, 256, 256}).Draw(r, "flows known")
		slots := rapid.SampledFrom([]int{1, 4, 64}).Draw(r, "places")
		xoff := units.Size(rapid.SampledFrom([]int{12_000, 20_000, 60_000}).Draw(r, "xoff"))
		c := &Config{Topology: topo, Detours: routes, PFC: PFC{On: true}, Buffer: config.NetworkBuffer{Size: 8 << 20, LosslessRoom: config.LosslessRoom{XOFF: xoff}, XONOffset: xoff / 8}, BaseRTT: 100 * us,
			Wholes: Escape{On: true, Config: escape.Config{Slots: slots, Flows: table, PerFlow: slots, Reclaim: 200 * us}}.wholes()}
		c.Host.Class, c.Host.AckClass = 3, InClass(7)
		if flaps > 0 {
			c.Host.Transport = transport.Config{Recovery: transport.GoBackN, RTOHigh: 2 * frame.Millisecond}
		}
		c.Engine = func(spec *EngineSpec) (Engine, error) {
			e, err := Virtual(spec)
			w.Engine = e
			return w, err
		}
		n := build(t, c)
		var done []Done
		n.OnDone(func(_ frame.Time, d *Done) { done = append(done, *d) })
		flows := rapid.IntRange(2*k, 6*k).Draw(r, "messages")
		for i := range flows {
			dst := rapid.IntRange(0, 2*k-2).Draw(r, "to")
			if src := i % (2 * k); dst >= src {
				dst++
			}
			start(t, n, Flow{Src: i % (2 * k), Dst: dst, Bytes: uint64(rapid.IntRange(1000, 600_000).Draw(r, "bytes"))})
		}
		for range rapid.IntRange(0, 4).Draw(r, "pauses") {
			at := frame.Time(rapid.IntRange(0, 300).Draw(r, "at")) * us
			link := n.links[rapid.IntRange(0, len(n.links)-1).Draw(r, "link")]
			way := rapid.SampledFrom([]sim.Way{sim.Forth, sim.Back}).Draw(r, "way")
			n.Engine.At(at, func(now frame.Time) {
				_ = n.Engine.Storm(link, way, sim.Storm{Classes: 1 << 3, Quanta: 0xffff, Interval: 20 * us, Until: now + 100*us})
			})
		}
		for range flaps {
			at := frame.Time(rapid.IntRange(0, 300).Draw(r, "at")) * us
			link := n.links[rapid.IntRange(0, len(n.links)-1).Draw(r, "link")]
			n.Engine.At(at, func(frame.Time) { _ = n.Engine.SetLink(link, false) })
			n.Engine.At(at+50*us, func(frame.Time) { _ = n.Engine.SetLink(link, true) })
		}
		for range 20_000 {
			n.advance(t, 50*us)
			checkPlaces(r, n, false)
			if w.wrong != "" {
				r.Fatal(w.wrong)
			}
			if len(done) == flows {
				break
			}
		}
		if len(done) != flows {
			r.Fatalf("%d of %d messages arrived; circles %+v; %+v", len(done), flows, n.Deadlocks(n.Engine.Now()), n.counts())
		}
		for why, lost := range n.Drops() {
			switch reason := frame.Reason(why); {
			case lost == 0 || flaps > 0 && slices.Contains(ofFlaps, reason):
			default:
				r.Fatalf("%d frames lost: %v; %+v", lost, reason, n.counts())
			}
		}
		n.advance(t, 2*frame.Millisecond)
		for s, sw := range n.Switches {
			for _, v := range point.Views(sw.Nodes[0], nil) {
				if v.Free != slots || v.Parked != 0 || v.Made+v.Forwarded != v.Arrived+v.Reclaimed+uint64(v.Kept) {
					r.Fatalf("switch %d at rest: %+v", s, v)
				}
			}
		}
		got := n.counts()
		total.Hits += got.Hits
		total.Forwarded += got.Forwarded
		total.Reclaimed += got.Reclaimed
		total.Requests += got.Requests
	})
	if total.Hits == 0 || total.Forwarded == 0 || total.Reclaimed == 0 || total.Requests == 0 {
		t.Fatalf("%+v: the test tests nothing", total)
	}
}
