package vnet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gswitch/config"
	"gswitch/escape"
	"gswitch/escape/point"
	"gswitch/fabric"
	"gswitch/frame"
	"gswitch/units"
)

// deadRing is switches in a ring at 40 Gb/s in which all flows go around the
// same way, two links each, so that the pauses of the links wait for each
// other sooner or later.
func deadRing(t testing.TB, topo *fabric.Topology, e Escape, xoff units.Size) *Network {
	return build(t, deadRingConfig(topo, e, xoff))
}

func deadRingConfig(topo *fabric.Topology, e Escape, xoff units.Size) *Config {
	return ringConfig(topo, 2, e, xoff)
}

// ringConfig is a ring in which what has no more than so many links to go goes
// round the same way.
func ringConfig(topo *fabric.Topology, links int, e Escape, xoff units.Size) *Config {
	c := &Config{Topology: topo, PFC: PFC{On: true}, Buffer: config.NetworkBuffer{Size: 4 << 20, LosslessRoom: config.LosslessRoom{XOFF: xoff}, XONOffset: xoff / 10}, Wholes: e.wholes(), BaseRTT: 100 * us}
	c.Host.Class, c.Host.AckClass = 3, InClass(7)
	k := len(topo.Switches())
	for i := range k {
		for far := 2; far <= links; far++ {
			c.Detours = append(c.Detours, Detour{At: fmt.Sprint("s", i+1), To: fmt.Sprint("s", (i+far)%k+1), Via: fmt.Sprint("s", (i+1)%k+1)})
		}
	}
	return c
}

func (n *Network) advance(t testing.TB, by frame.Time) {
	t.Helper()
	if err := n.Engine.Run(n.Engine.Now() + by); err != nil {
		t.Fatal(err)
	}
	if err := n.Err(); err != nil {
		t.Fatal(err)
	}
}

// retransmitted is how many frames hosts sent twice: with go-back-N, one frame
// that overtakes another is enough.
func retransmitted(done []Done) (sum uint64) {
	for i := range done {
		sum += uint64(done[i].Retransmits)
	}
	return sum
}

func (n *Network) counts() escape.Counts {
	c, _ := n.Escaped()
	return c
}

// Three switches in a ring stand still without Escape; with it every message
// arrives, whole, in order, and in the end no place is kept or taken.
func TestEscapeFromDeadlock(t *testing.T) {
	topo := topology(t, "ring(3, 1)", 40*gig, 40*gig, time.Microsecond)
	for _, on := range []bool{false, true} {
		n := deadRing(t, topo, Escape{On: on}, 40_000)
		var done []Done
		n.OnDone(func(_ frame.Time, d *Done) { done = append(done, *d) })
		for i := range 3 {
			for range 2 {
				start(t, n, Flow{Src: i, Dst: (i + 2) % 3, Bytes: 2_000_000})
			}
		}
		n.advance(t, 2*frame.Millisecond)
		dead := n.Deadlocks(n.Engine.Now())
		switch {
		case on && len(done) != 6:
			t.Fatalf("%d of 6 messages arrived, %+v", len(done), dead)
		case !on && (len(done) > 0 || len(dead) != 1 || len(dead[0].Ports) != 3 || dead[0].Class != 3 || dead[0].Since > frame.Millisecond):
			t.Fatalf("%d messages arrived, deadlocks %+v", len(done), dead)
		}
		if n.Lost() != 0 || retransmitted(done) != 0 {
			t.Fatalf("lost %v, sent again %d", n.Drops(), retransmitted(done))
		}
		c, _ := n.Escaped()
		if on != (c.Hits > 0) || c.Strays != 0 {
			t.Fatalf("%+v", c)
		}
		if !on {
			at := dead[0].Ports[0]
			sent := func() uint64 {
				return n.Switches[at.Switch].Nodes[0].Scheduler(uint16(at.Port)).Stats(n.Engine.Now(), 3, false).DequeuedFrames
			}
			before := sent()
			n.advance(t, frame.Millisecond)
			if sent() != before {
				t.Fatal("a deadlock that ended by itself")
			}
			continue
		}
		n.advance(t, frame.Millisecond)
		checkPlaces(t, n, true)
	}
}

// checkPlaces holds the accounts of all ports to what they must be, at rest to
// nothing out and nothing taken.
func checkPlaces(t rapid.TB, n *Network, rest bool) {
	slots := escape.Default().Slots
	if c, _ := n.escapes(); c.Slots != 0 {
		slots = c.Slots
	}
	for s, sw := range n.Switches {
		for _, v := range point.Views(sw.Nodes[0], nil) {
			if v.Free+v.Kept+v.Taken != slots || v.Free < 0 || v.Kept < 0 || v.Taken < 0 || v.Parked < 0 || v.Parked > slots || v.Unmarked != 0 {
				t.Fatalf("switch %d: %+v", s, v)
			}
			if v.Made+v.Forwarded != v.Arrived+v.Reclaimed+uint64(v.Kept) {
				t.Fatalf("switch %d: tokens are not accounted for: %+v", s, v)
			}
			if rest && (v.Free != slots || v.Parked != 0) {
				t.Fatalf("switch %d at rest: %+v", s, v)
			}
		}
	}
	if c, _ := n.Escaped(); rest && c.Made != c.Hits+c.Dropped {
		t.Fatalf("tokens that neither got a frame nor ended: %+v", c)
	}
}

// Rings of all sizes, with any traffic, thresholds and few places: nothing is
// lost, no flow is out of order, all accounts are right at all times, and
// everything arrives. Only a port whose table holds fewer flows than have requests
// at once may evict one before its token arrives, every time anew: where tokens
// go through such ports, a circle may stay closed.
func TestEscapeProperty(t *testing.T) {
	topos := ringsOfPairs(t)
	rapid.Check(t, func(r *rapid.T) {
		k := rapid.IntRange(3, 6).Draw(r, "switches")
		links := rapid.IntRange(2, k-1).Draw(r, "links")
		e := Escape{On: true, Config: escape.Config{
			Slots: rapid.SampledFrom([]int{1, 2, 5, 64}).Draw(r, "places"), Flows: rapid.SampledFrom([]int{64, 8, 4, 2}).Draw(r, "flows"),
			PerFlow: rapid.SampledFrom([]int{1, 3, 16}).Draw(r, "per flow"), Reclaim: frame.Time(rapid.SampledFrom([]int{30, 100}).Draw(r, "reclaim")) * us}}
		xoff := units.Size(rapid.IntRange(10_000, 60_000).Draw(r, "xoff"))
		flows := make([]Flow, 3*k-rapid.IntRange(0, 2*k).Draw(r, "fewer messages"))
		for i := range flows {
			// Mostly along the circle.
			src := i % (2 * k)
			dst := (src + 2*links) % (2 * k)
			if rapid.IntRange(0, 4).Draw(r, "where") == 4 {
				if dst = rapid.IntRange(0, 2*k-1).Draw(r, "to"); dst == src {
					dst = (src + 1) % (2 * k)
				}
			}
			flows[i] = Flow{Src: src, Dst: dst, Bytes: uint64(rapid.SampledFrom([]int{400_000, 100_000, 20_000, 1000}).Draw(r, "bytes"))}
		}
		ringDelivers(t, r, ringConfig(topos[k], links, e, xoff), flows, e.Flows >= 8 || links == 2)
	})
}

// In rings that are full the property is about something: frames escape, and
// where they have further to go, so do tokens.
func TestEscapeInFullRings(t *testing.T) {
	topos := ringsOfPairs(t)
	for k := 3; k <= 6; k++ {
		for links := 2; links < k; links++ {
			var flows []Flow
			for i := range 2 * k {
				flows = append(flows, Flow{Src: i, Dst: (i + 2*links) % (2 * k), Bytes: 400_000})
			}
			for _, slots := range []int{2, 64} {
				e := Escape{On: true, Config: escape.Config{Slots: slots, Flows: 64, PerFlow: 16, Reclaim: 100 * us}}
				if c := ringDelivers(t, t, ringConfig(topos[k], links, e, 10_000), flows, true); c.Hits == 0 || links > 2 && c.Forwarded == 0 {
					t.Errorf("%d switches, %d links, %d places: %+v", k, links, slots, c)
				}
			}
		}
	}
}

func ringsOfPairs(t *testing.T) map[int]*fabric.Topology {
	topos := map[int]*fabric.Topology{}
	for k := 3; k <= 6; k++ {
		topos[k] = topology(t, fmt.Sprintf("ring(%d, 2)", k), 40*gig, 40*gig, time.Microsecond)
	}
	return topos
}

// ringDelivers fails if a frame is lost or sent again, or an account is wrong,
// and, if all messages must arrive, unless they do and leave everything at rest.
func ringDelivers(t *testing.T, r rapid.TB, c *Config, flows []Flow, all bool) escape.Counts {
	n := build(t, c)
	var done []Done
	n.OnDone(func(_ frame.Time, d *Done) { done = append(done, *d) })
	for _, f := range flows {
		start(t, n, f)
	}
	steps := 4000
	if !all {
		steps = 200
	}
	for i := 0; i < steps && len(done) < len(flows); i++ {
		n.advance(t, 50*us)
		checkPlaces(r, n, false)
	}
	if all && len(done) < len(flows) {
		r.Fatalf("%d of %d messages arrived; %+v; %+v", len(done), len(flows), n.Deadlocks(n.Engine.Now()), n.counts())
	}
	if n.Lost() != 0 || retransmitted(done) != 0 {
		r.Fatalf("lost %v, sent again %d; %+v", n.Drops(), retransmitted(done), n.counts())
	}
	if len(done) == len(flows) {
		n.advance(t, frame.Millisecond)
		checkPlaces(r, n, true)
	}
	return n.counts()
}

// longRing is a ring of switches with one host each in which every host sends
// all at once to the one that is so many links on, round the same way.
func longRing(t *testing.T, k, links int, delay time.Duration, xoff units.Size, e Escape) (n *Network, done *[]Done) {
	t.Helper()
	c := &Config{Topology: topology(t, fmt.Sprintf("ring(%d, 1)", k), 40*gig, 40*gig, delay), PFC: PFC{On: true}, Buffer: config.NetworkBuffer{Size: 4 << 20, LosslessRoom: config.LosslessRoom{XOFF: xoff}, XONOffset: xoff / 10}, Wholes: e.wholes(), BaseRTT: 100 * us}
	c.Host.Class, c.Host.AckClass = 3, InClass(7)
	for i := range k {
		for far := range links {
			c.Detours = append(c.Detours, Detour{At: fmt.Sprint("s", (i+far)%k+1), To: fmt.Sprint("s", (i+links)%k+1), Via: fmt.Sprint("s", (i+far+1)%k+1)})
		}
	}
	n, done = build(t, c), new([]Done)
	n.OnDone(func(_ frame.Time, d *Done) { *done = append(*done, *d) })
	for i := range k {
		start(t, n, Flow{Src: i, Dst: (i + links) % k, Bytes: 500_000})
	}
	for n.Engine.Now() < 50*frame.Millisecond && len(*done) < k {
		n.advance(t, 50*us)
		checkPlaces(t, n, false)
	}
	if n.Lost() != 0 || retransmitted(*done) != 0 {
		t.Fatalf("lost %v, sent again %d", n.Drops(), retransmitted(*done))
	}
	return n, done
}

// asPrinted is Escape as its algorithm is printed.
var asPrinted = Escape{On: true, Config: escape.Config{Printed: true}}

// stays fails the test unless the whole ring is closed and nothing moves.
func (n *Network) stays(t *testing.T, k int, done []Done) {
	t.Helper()
	before, dead := n.counts(), n.Deadlocks(n.Engine.Now())
	n.advance(t, 50*frame.Millisecond)
	if after := n.counts(); len(done) > 0 || len(dead) != 1 || len(dead[0].Ports) != k || after.Hits != before.Hits || after.Arrived != before.Arrived {
		t.Fatalf("%d messages arrived, circles %+v; %+v, then %+v", len(done), dead, before, after)
	}
}

// Five switches and five flows, each over four links: the circle is closed
// before a frame of any flow has come to the switch by which the flow leaves it.
// The printed algorithm makes tokens for flows of which a switch has sent a
// frame, so it makes none here that finds one, and nothing ever moves. With
// requests all arrives.
func TestCircleOfUnknownFlows(t *testing.T) {
	n, done := longRing(t, 5, 4, time.Microsecond, 6_000, asPrinted)
	n.stays(t, 5, *done)
	if c := n.counts(); c.Hits != 0 || c.Asked != 0 {
		t.Fatalf("%+v", c)
	}
	for s, sw := range n.Switches {
		for _, w := range sw.Nodes[0].Waits(n.Engine.Now(), nil) {
			if to := point.Views(sw.Nodes[0], nil)[0]; to.Flows != 0 {
				t.Fatalf("switch %d, which waits at port %d, knows %d flows to its host", s, w.Port, to.Flows)
			}
		}
	}
	n, done = longRing(t, 5, 4, time.Microsecond, 6_000, Escape{On: true})
	if c := n.counts(); len(*done) != 5 || c.Requests == 0 {
		t.Fatalf("%d messages arrived; circles %+v; %+v", len(*done), n.Deadlocks(n.Engine.Now()), c)
	}
	n.advance(t, frame.Millisecond)
	checkPlaces(t, n, true)
}

// Five switches and five flows, each over four links, in which all is alike
// everywhere. Every switch makes as many tokens at once as it has places; those
// of all five meet in the places of each port, and none comes as far as to a
// frame. Were all tried again at the same time, the same would happen for ever.
func TestTokensMeet(t *testing.T) {
	n, done := longRing(t, 5, 4, time.Microsecond, 20_000, Escape{On: true})
	if len(*done) != 5 {
		t.Fatalf("%d messages arrived; circles %+v; %+v", len(*done), n.Deadlocks(n.Engine.Now()), n.counts())
	}
	n.advance(t, frame.Millisecond)
	checkPlaces(t, n, true)
}

// Where nothing pauses there is no token and no mark, and the same happens as
// without Escape.
func TestEscapeAtRest(t *testing.T) {
	topo := topology(t, "ring(3, 1)", 40*gig, 40*gig, time.Microsecond)
	var first []Done
	for _, on := range []bool{false, true} {
		n := deadRing(t, topo, Escape{On: on}, 400_000)
		start(t, n, Flow{Src: 0, Dst: 2, Bytes: 1_000_000})
		start(t, n, Flow{Src: 1, Dst: 0, Bytes: 300_000})
		done := run(t, n, 10*frame.Millisecond)
		if c, has := n.Escaped(); has != on || c.Made+c.Hits+c.Arrived+c.Strays != 0 {
			t.Fatalf("%+v", c)
		}
		if first == nil {
			first = done
		} else if fmt.Sprint(first) != fmt.Sprint(done) {
			t.Fatalf("%v\n%v", first, done)
		}
	}
}

func TestDetourRefused(t *testing.T) {
	topo := topology(t, "ring(4, 1)", 40*gig, 40*gig, time.Microsecond)
	for want, d := range map[string]Detour{
		"which is no switch beside it": {At: "s1", To: "s2", Via: "s3"},
		"which is no switch":           {At: "s1", To: "h2", Via: "s2"},
	} {
		if _, err := Build(&Config{Topology: topo, Detours: []Detour{d}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

// Escaped sums up what all ports of all switches had to do with frames that
// escape, and is false in a network where none may.
func (n *Network) Escaped() (c escape.Counts, on bool) {
	for _, sw := range n.Switches {
		for _, v := range point.Views(sw.Nodes[0], nil) {
			c.Made += v.Made
			c.Forwarded += v.Forwarded
			c.Hits += v.Hits
			c.Dropped += v.Dropped
			c.Arrived += v.Arrived
			c.Strays += v.Strays
			c.Reclaimed += v.Reclaimed
			c.Full += v.Full
			c.Asked += v.Asked
			c.Requests += v.Requests
			c.Refused += v.Refused
		}
	}
	_, on = n.escapes()
	return c, on
}
