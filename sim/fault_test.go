package sim

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"gswitch/fault"
	"gswitch/frame"
)

// wirePair is two hosts on one cable; the first sends count frames.
func wirePair(t *testing.T, seed, count uint64, c fault.Config) (*Engine, *host, *host) {
	e := New(Config{Chunks: 4096, Seed: seed})
	a, b := newHost(e.Pool(), 1, 100e9, swMAC(0)), newHost(e.Pool(), 2, 100e9, swMAC(0))
	e.AddNode(a, nil)
	e.AddNode(b, nil)
	e.Connect(0, 0, 1, 0, Link{Delay: us})
	a.credit, b.keep = count, true
	if err := e.Fault(0, Forth, c); err != nil {
		t.Fatal(err)
	}
	return e, a, b
}

func runAll(t *testing.T, e *Engine, until frame.Time) {
	t.Helper()
	if err := e.Run(until); err != nil {
		t.Fatal(err)
	}
}

// conserved checks that no frame is unaccounted for.
func conserved(t *testing.T, e *Engine) {
	t.Helper()
	for i := range e.dirs {
		s := e.LinkStats(LinkID(i/2), Way(i%2))
		var lost uint64
		for _, n := range s.Lost {
			lost += n
		}
		if s.Handed+s.Injected != s.Delivered+lost+s.InFlight {
			t.Errorf("direction %d: %+v does not add up", i, s)
		}
	}
}

func TestRandomLoss(t *testing.T) {
	const n = 20_000
	e, _, b := wirePair(t, 3, n, fault.Config{Loss: 0.1})
	runAll(t, e, 10_000*us)
	conserved(t, e)
	if lost := e.Stats().Lost[fault.LossRandom]; math.Abs(float64(lost)-n/10) > 150 || b.got+lost != n {
		t.Errorf("%d frames of %d were lost and %d arrived, want a tenth lost", lost, n, b.got)
	}
}

// With the chain of Gilbert and Elliott the mean loss is the share of the bad
// state, and losses come in bursts of the mean length 1/ToGood.
func TestBurstLoss(t *testing.T) {
	const n = 200_000
	e, a, _ := wirePair(t, 3, n, fault.Config{Burst: fault.Burst{ToBad: 0.01, ToGood: 0.25, LossBad: 1}})
	a.wire = func(uint64) uint32 { return 100 }
	bursts, open := 0, false
	f := e.dirs[0].fault
	for range n { // the model itself, frame by frame
		switch lost := f.model.Judge(nil, nil).Loss == fault.LossBurst; {
		case lost && !open:
			bursts++
			open = true
		case !lost:
			open = false
		}
	}
	runAll(t, e, 100_000*us)
	conserved(t, e)
	want := 0.01 / (0.01 + 0.25)
	lost := float64(e.Stats().Lost[fault.LossBurst])
	if share := lost / n; math.Abs(share-want) > 0.004 {
		t.Errorf("%.4f of the frames were lost, want %.4f", share, want)
	}
	if mean := want * n / float64(bursts); math.Abs(mean-4) > 0.4 {
		t.Errorf("bursts last %.2f frames, want 4", mean)
	}
}

func TestChosenFramesAreLost(t *testing.T) {
	seq := func(k uint32) func([]byte, *frame.Meta) bool {
		return func(b []byte, m *frame.Meta) bool { return binary.BigEndian.Uint32(b[50:]) == k }
	}
	odd := func(b []byte, m *frame.Meta) bool { return b[53]&1 == 1 }
	for name, c := range map[string]struct {
		drop []fault.Drop
		want []uint32
	}{
		"by content":   {[]fault.Drop{{Match: seq(5)}}, []uint32{5}},
		"the third":    {[]fault.Drop{{First: 3}}, []uint32{2}},
		"a run":        {[]fault.Drop{{First: 3, Count: 3}}, []uint32{2, 3, 4}},
		"every fourth": {[]fault.Drop{{First: 2, Every: 4}}, []uint32{1, 5, 9}},
		"twice":        {[]fault.Drop{{First: 2, Every: 4, Count: 2}}, []uint32{1, 5}},
		"second odd":   {[]fault.Drop{{Match: odd, First: 2}}, []uint32{3}},
		"a flow":       {[]fault.Drop{{Match: fault.FiveTuple{Src: addr4(1), Proto: 17, DstPort: 4791}.Match(), First: 4}}, []uint32{3}},
		"another flow": {[]fault.Drop{{Match: fault.FiveTuple{Dst: addr4(9)}.Match()}, {Match: fault.FiveTuple{SrcPort: 7}.Match()}}, nil},
		"two rules":    {[]fault.Drop{{First: 1}, {Match: seq(7)}}, []uint32{0, 7}},
	} {
		e, _, b := wirePair(t, 1, 10, fault.Config{Drop: c.drop})
		b.seq = true
		runAll(t, e, 100*us)
		conserved(t, e)
		var want []uint32
		for k := range uint32(10) {
			if !slices.Contains(c.want, k) {
				want = append(want, k)
			}
		}
		if !slices.Equal(b.seqs, want) || e.Stats().Lost[fault.LossChosen] != uint64(len(c.want)) {
			t.Errorf("%s: arrived %v, want %v", name, b.seqs, want)
		}
	}
}

// A share of one flow is lost, and nothing of another.
func TestShareOfAFlowIsLost(t *testing.T) {
	for to, most := range map[fault.FiveTuple]uint64{{Src: addr4(1)}: 400, {Src: addr4(9)}: 0} {
		e, _, b := wirePair(t, 1, 1000, fault.Config{Drop: []fault.Drop{{Match: to.Match(), Share: 0.3}}})
		runAll(t, e, 10*frame.Millisecond)
		conserved(t, e)
		lost := e.Stats().Lost[fault.LossChosen]
		if lost > most || most > 0 && lost < 200 || uint64(b.got)+lost != 1000 {
			t.Errorf("%d of 1000 lost, %d arrived", lost, b.got)
		}
	}
}

func TestCorruptedFramesEndAtTheReceiver(t *testing.T) {
	e, _, b := wirePair(t, 1, 100, fault.Config{Corrupt: 1})
	runAll(t, e, us/2) // some are on the wire, none can have arrived
	if s := e.Stats(); s.InFlight == 0 || s.Lost[fault.LossFCS] != 0 {
		t.Errorf("damaged frames are not in flight: %+v", s)
	}
	runAll(t, e, 100*us)
	conserved(t, e)
	if s := e.Stats(); s.Lost[fault.LossFCS] != 100 || b.got != 0 {
		t.Errorf("%d arrived, counted %+v", b.got, s)
	}
}

func TestJitterKeepsOrder(t *testing.T) {
	e, _, b := wirePair(t, 1, 2000, fault.Config{Jitter: 500})
	b.seq = true
	runAll(t, e, 1000*us)
	conserved(t, e)
	if len(b.seqs) != 2000 || !slices.IsSorted(b.seqs) {
		t.Fatalf("%d frames arrived, in order: %v", len(b.seqs), slices.IsSorted(b.seqs))
	}
	late, most := 0, frame.Time(0)
	for i, at := range b.times {
		over := at - us - frame.Time(float64(i+1)*89.12)
		if over > 100 {
			late++
		}
		most = max(most, over)
	}
	if late < 1000 || most > 502 {
		t.Errorf("%d of 2000 were late, by %d ns at most", late, most)
	}
}

// A frame that is held back comes exactly so much later, and those behind it
// are not held up.
func TestReordering(t *testing.T) {
	e, _, b := wirePair(t, 1, 1000, fault.Config{Reorder: 0.1, ReorderBy: 1000})
	b.seq = true
	runAll(t, e, 1000*us)
	conserved(t, e)
	if len(b.seqs) != 1000 {
		t.Fatalf("%d frames arrived", len(b.seqs))
	}
	held := 0
	for i, k := range b.seqs {
		on := us + frame.Time(float64(k+1)*89.12+1e-6)
		switch at := b.times[i]; at {
		case on:
		case on + 1000:
			held++
		default:
			t.Fatalf("frame %d arrived at %d, want %d or 1000 later", k, at, on)
		}
	}
	if held < 70 || held > 130 {
		t.Errorf("%d of 1000 were held back, want about 100", held)
	}
}

func TestDuplicates(t *testing.T) {
	e, _, b := wirePair(t, 1, 1000, fault.Config{Duplicate: 0.2})
	runAll(t, e, 1000*us)
	conserved(t, e)
	if s := e.Stats(); b.got != 1000+s.Injected || s.Injected < 150 || s.Injected > 250 {
		t.Errorf("%d arrived, %d of them twice", b.got, s.Injected)
	}
}

func TestSlowLinkHoldsItsSenderBack(t *testing.T) {
	e, a, b := wirePair(t, 1, 1<<40, fault.Config{Slow: 4})
	runAll(t, e, 1000*us)
	conserved(t, e)
	if want := 1000e3 / (4 * 89.12); math.Abs(float64(a.sent)-want) > want/100 || a.sent-b.got > 5 {
		t.Errorf("%d frames were sent and %d arrived in a millisecond, want about %.0f", a.sent, b.got, want)
	}
}

// The switch survives headers with any bits wrong, and every frame is
// accounted for.
func TestFlippedBitsReachTheNode(t *testing.T) {
	n := leafSpine(t, netConfig{rate: 100e9, uplink: 100e9, delay: us, seed: 1, lossless: true}, 2, 2, 4)
	n.all(1, 400, 2, 4)
	for id := range n.links {
		for _, way := range []Way{Forth, Back} {
			if err := n.e.Fault(LinkID(id), way, fault.Config{Flip: 0.3, FlipBits: 3}); err != nil {
				t.Fatal(err)
			}
		}
	}
	n.run(t, 1000*us)
	conserved(t, n.e)
	if free := n.e.Pool().Available(); free < n.e.Pool().Chunks()-100 { // some wait for neighbours that do not exist
		t.Errorf("%d of %d chunks are free", free, n.e.Pool().Chunks())
	}
	var drops uint64
	for _, sw := range n.sw {
		for p := range 6 {
			if sw.Nodes[0].HasPort(uint16(p)) {
				c := counts(sw, uint16(p))
				drops += c.Dropped()
			}
		}
	}
	if drops == 0 {
		t.Error("no switch dropped anything")
	}
}

func TestLinkDownAndUp(t *testing.T) {
	e, a, b := wirePair(t, 1, 1<<40, fault.Config{})
	e.At(50*us, func(frame.Time) {
		if err := e.SetLink(0, false); err != nil {
			t.Error(err)
		}
	})
	runAll(t, e, 60*us)
	s := e.Stats()
	if s.InFlight != 0 || s.Lost[fault.LossLink] < 10 || s.Lost[fault.LossLink] > 13 || a.up || b.up {
		t.Errorf("after the cut: %+v", s)
	}
	sent := a.sent
	runAll(t, e, 100*us)
	if a.sent != sent {
		t.Error("a port without a link sends")
	}
	if err := e.SetLink(0, true); err != nil {
		t.Fatal(err)
	}
	runAll(t, e, 150*us)
	conserved(t, e)
	if a.sent < sent+500 || !b.up {
		t.Error("the link did not come back")
	}
}

func TestPausedAndSlowHosts(t *testing.T) {
	e, a, b := wirePair(t, 1, 1<<40, fault.Config{})
	e.At(50*us, func(now frame.Time) {
		if err := e.Pause(1, now+20*us); err != nil {
			t.Error(err)
		}
	})
	runAll(t, e, 69*us)
	got := b.got
	if got > 550 {
		t.Errorf("a paused host took frames: %d", got)
	}
	runAll(t, e, 71*us)
	if b.got < got+200 {
		t.Errorf("what waited before the host did not arrive when it went on: %d, then %d", got, b.got)
	}
	if err := e.Pause(0, 100*us); err != nil {
		t.Fatal(err)
	}
	sent := a.sent
	runAll(t, e, 99*us)
	if a.sent != sent {
		t.Error("a paused host sends")
	}
	runAll(t, e, 110*us)
	if a.sent < sent+100 {
		t.Error("the host did not go on after its pause")
	}
	if err := e.Slow(1, us); err != nil {
		t.Fatal(err)
	}
	got = b.got
	runAll(t, e, 160*us)
	if d := b.got - got; d < 49 || d > 51 {
		t.Errorf("a slow host took %d frames in 50 us, one each is what it can", d)
	}
	conserved(t, e)
}

func TestReboot(t *testing.T) {
	n := star(t, netConfig{rate: 100e9, delay: us, seed: 1}, 4)
	for _, h := range n.hosts[:3] { // three into one: a queue forms
		h.to = func(uint64) (uint32, uint16) { return hostAddr(0, 3), 1 }
		h.credit = 1 << 40
	}
	n.e.At(50*us, func(frame.Time) {
		if err := n.e.Reboot(n.nodes[0], 30*us); err != nil {
			t.Error(err)
		}
	})
	n.run(t, 79*us)
	got := n.hosts[3].got
	if s := n.e.Stats(); s.Lost[fault.LossReboot] < 30 || s.InFlight != 0 {
		t.Errorf("after the reboot: %+v", s)
	}
	var flushed uint64
	for p := range uint16(4) {
		c := counts(n.sw[0], p)
		flushed += c.Drops[frame.QueueFlush]
	}
	if flushed < 500 {
		t.Errorf("the switch lost %d queued frames", flushed)
	}
	n.run(t, 120*us)
	conserved(t, n.e)
	if n.hosts[3].got < got+300 {
		t.Error("traffic did not go on after the reboot")
	}
}

func TestStormPausesTheNetwork(t *testing.T) {
	n := star(t, netConfig{rate: 100e9, delay: us, seed: 1, lossless: true}, 4)
	pair(n, 4)
	if err := n.e.Storm(n.links[0], Forth, Storm{Classes: 1, Quanta: 0xffff, Interval: 50 * us, Until: 500 * us}); err != nil {
		t.Fatal(err)
	}
	n.run(t, 500*us)
	conserved(t, n.e)
	// Host 0 pauses the switch: what is for it backs up until its source stops.
	if got := n.hosts[0].got; got > 100 {
		t.Errorf("%d frames reached the host that forbids them", got)
	}
	if sent := n.hosts[2].sent; sent > 4000 {
		t.Errorf("the sender towards the storm was not paused: it sent %d", sent)
	}
	if got := n.hosts[1].got; got < 5000 {
		t.Errorf("others suffer: %d frames", got)
	}
	n.run(t, 2000*us)
	if got := n.hosts[0].got; got < 5000 {
		t.Errorf("only %d frames came after the storm", got)
	}
}

func TestFaultsAreChecked(t *testing.T) {
	e, _, _ := wirePair(t, 1, 0, fault.Config{})
	for _, c := range []fault.Config{{Loss: -0.1}, {Loss: 1.1}, {Corrupt: math.NaN()}, {Burst: fault.Burst{ToBad: 2}}, {Reorder: 0.5}, {Jitter: -1}, {FlipBits: 99}, {Slow: 0.5}, {Drop: []fault.Drop{{Share: 1.5}}}} {
		if err := e.Fault(0, Forth, c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	if e.Fault(1, Forth, fault.Config{}) == nil || e.Fault(0, 2, fault.Config{}) == nil || e.SetLink(-1, true) == nil || e.Pause(9, 0) == nil {
		t.Error("what does not exist was changed")
	}
	for k := range fault.NumLosses {
		if s := k.String(); s == "" || s == "unknown" || strings.Contains(s, " ") {
			t.Errorf("loss %d is called %q", k, s)
		}
	}
}

// Whatever goes wrong, on any link, frames are conserved and the run repeats.
func TestConservationUnderEverything(t *testing.T) {
	run := func(seed uint64) (string, *network) {
		n := leafSpine(t, netConfig{rate: 100e9, uplink: 100e9, delay: us / 2, seed: seed, lossless: seed%2 == 0, buffer: 1 << 20, chunks: 1 << 15}, 2, 2, 4)
		n.all(seed, 500, 2, 4)
		rnd := frame.NewRand(seed)
		for id := range n.links {
			c := fault.Config{Loss: rnd.Float64() / 20, Corrupt: rnd.Float64() / 20, Flip: rnd.Float64() / 20, Duplicate: rnd.Float64() / 20,
				Jitter: frame.Time(rnd.Uint32n(300)), Reorder: rnd.Float64() / 10, ReorderBy: frame.Time(1 + rnd.Uint32n(3000)), Burst: fault.Burst{ToBad: 0.01, ToGood: 0.2, LossBad: 0.5}}
			if rnd.Uint32n(4) == 0 {
				c.Slow = 1 + 3*rnd.Float64()
			}
			if err := n.e.Fault(LinkID(id), Way(rnd.Uint32n(2)), c); err != nil {
				t.Fatal(err)
			}
		}
		for range 6 {
			at, what, arg := frame.Time(rnd.Uint32n(100_000)), rnd.Uint32n(5), int(rnd.Uint32n(64))
			span := frame.Time(1 + rnd.Uint32n(20_000))
			n.e.At(at, func(now frame.Time) {
				link, node := LinkID(arg%len(n.links)), arg%len(n.e.nodes)
				var err error
				switch what {
				case 0:
					err = n.e.SetLink(link, false)
					n.e.At(now+span, func(frame.Time) {
						if err := n.e.SetLink(link, true); err != nil {
							t.Error(err)
						}
					})
				case 1:
					err = n.e.Pause(node, now+span)
				case 2:
					err = n.e.Reboot(node, span)
				case 3:
					err = n.e.SetClock(node, int64(arg)*1000-32000, frame.Time(arg*10-300))
				case 4:
					err = n.e.Slow(node, frame.Time(arg*10))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		for n.e.Now() < 500*us {
			n.run(t, n.e.Now()+11*us)
			conserved(t, n.e)
		}
		return n.e.Digest(), n
	}
	for seed := range uint64(8) {
		a, n := run(seed)
		if b, _ := run(seed); a != b {
			t.Errorf("seed %d: %s and %s", seed, a, b)
		}
		var lost uint64
		for _, k := range n.e.Stats().Lost {
			lost += k
		}
		if lost < 50 {
			t.Errorf("seed %d: only %d frames were lost", seed, lost)
		}
	}
}
