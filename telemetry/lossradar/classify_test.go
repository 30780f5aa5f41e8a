package lossradar

import (
	"math"
	"slices"
	"testing"

	"gswitch/frame"
)

const us = frame.Microsecond

func loss(at frame.Time, flow uint32, id uint16) Loss {
	return Loss{At: at, Signature: Fields{Src: flow, Dst: 9, SrcPort: 1, DstPort: 2, Proto: 6, ID: id}.Pack()}
}

func causes(v []Loss) map[Cause]int {
	out := map[Cause]int{}
	for _, l := range v {
		out[l.Cause]++
	}
	return out
}

func TestBursts(t *testing.T) {
	th := DefaultThresholds(10e9)
	if th.Gap != 20*us {
		t.Fatalf("a gap of %v at 10 Gb/s", th.Gap)
	}
	if g := DefaultThresholds(100e6).Gap; g != 2*ms {
		t.Errorf("a gap of %v at 100 Mb/s, want 16.7 packets", g)
	}
	var run, short []Loss
	for i := range 40 {
		run = append(run, loss(frame.Time(i)*5*us, 1, uint16(100+i)))
	}
	short = slices.Clone(run[:25])
	mixed := append(slices.Clone(run), loss(51*us, 2, 3), loss(52*us, 2, 5))
	for _, c := range []struct {
		name string
		v    []Loss
		want map[Cause]int
	}{
		{"two flows, one with a gap", []Loss{loss(100*us, 1, 10), loss(112*us, 1, 12), loss(125*us, 2, 7), loss(137*us, 2, 8), loss(150*us, 2, 9)}, map[Cause]int{Congestion: 5}},
		{"forty in a row", run, map[Cause]int{Blackhole: 40}},
		{"twenty-five in a row", short, map[Cause]int{Congestion: 25}},
		{"forty in a row and a flow with a gap", mixed, map[Cause]int{Congestion: 42}},
		{"four are no burst", []Loss{loss(0, 1, 1), loss(us, 1, 2), loss(2*us, 1, 3), loss(3*us, 1, 4)}, map[Cause]int{Unknown: 4}},
		{"a gap of exactly the threshold ends a burst", []Loss{loss(0, 1, 1), loss(1*us, 1, 3), loss(2*us, 1, 5), loss(22*us, 1, 7), loss(23*us, 1, 9)}, map[Cause]int{Unknown: 5}},
		{"loops are left alone", []Loss{{Cause: Loop}, {At: 1, Cause: Loop}, {At: 2, Cause: Loop}, {At: 3, Cause: Loop}, {At: 4, Cause: Loop}}, map[Cause]int{Loop: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := slices.Clone(c.v)
			slices.Reverse(v) // reports are in no order
			th.Bursts(v, 0)
			got := causes(v)
			for k, n := range c.want {
				if got[k] != n || len(got) != len(c.want) {
					t.Errorf("%v, want %v", got, c.want)
				}
			}
		})
	}
}

// Of a batch that did not decode some losses have no name. Two flows of which a table
// drops 80 packets in a row are called so by those that do, also around the end of
// the identifications; where more is missing than was lost without a name, packets
// passed, and a queue was full.
func TestBurstsOfABatchThatDidNotDecode(t *testing.T) {
	th := DefaultThresholds(10e9)
	var v []Loss
	for i := range 80 {
		for flow := range uint32(2) {
			if l := loss(frame.Time(i)*3*us+frame.Time(flow)*us, flow, uint16(65500+i)); i%2 == 0 || i < 10 {
				v = append(v, l)
			}
		}
	}
	const missing = 2 * 34 // between the first and the last that is named of each flow
	for unnamed, want := range map[int64]Cause{missing: Blackhole, missing + 2: Blackhole, missing - 1: Congestion, 0: Congestion} {
		v := slices.Clone(v)
		slices.Reverse(v)
		th.Bursts(v, unnamed)
		if got := causes(v); got[want] != len(v) {
			t.Errorf("with %d losses without a name %v, want %v", unnamed, got, want)
		}
	}
	// 30 that are named of a flow are too few, whatever is not.
	few := slices.DeleteFunc(slices.Clone(v), func(l Loss) bool { return l.At >= 50*3*us })
	th.Bursts(few, 1000)
	if got := causes(few); got[Congestion] != 60 {
		t.Errorf("%v, want 60 of a full queue", got)
	}
}

func TestOver(t *testing.T) {
	th := DefaultThresholds(10e9)
	var wrap, syn, even, clumps, clump []Loss
	for i, id := range []uint16{65533, 65534, 65535, 0, 1} {
		wrap = append(wrap, loss(frame.Time(i)*12*ms, 1, id))
	}
	for i := range 20 {
		f := Fields{Src: uint32(i), Dst: 9, Proto: 6, ID: 7, SYN: i > 0}
		syn = append(syn, Loss{At: frame.Time(i) * 4 * ms, Signature: f.Pack()})
		even = append(even, loss(frame.Time(i)*5*ms, uint32(i), 1))
		clumps = append(clumps, loss(frame.Time(i/4)*20*ms+frame.Time(i%4)*us, uint32(i), 1))
		clump = append(clump, loss(50*ms+frame.Time(i)*50*us, uint32(i), 1))
	}
	for _, c := range []struct {
		name string
		v    []Loss
		want map[Cause]int
	}{
		{"consecutive across the wrap", wrap, map[Cause]int{Blackhole: 5}},
		{"SYNs", syn, map[Cause]int{Blackhole: 19, Unknown: 1}},
		{"evenly spread", even, map[Cause]int{Random: 20}},
		{"clumps", clumps, map[Cause]int{Unknown: 20}},
		{"evenly spread over a millisecond of the interval", clump, map[Cause]int{Unknown: 20}},
		{"too few to be called random", even[:9], map[Cause]int{Unknown: 9}},
		{"not consecutive", []Loss{loss(0, 1, 1), loss(12*ms, 1, 2), loss(24*ms, 1, 3), loss(36*ms, 1, 4), loss(48*ms, 1, 6)}, map[Cause]int{Unknown: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := slices.Clone(c.v)
			th.Over(v, 0)
			got := causes(v)
			for k, n := range c.want {
				if got[k] != n || len(got) != len(c.want) {
					t.Errorf("%v, want %v", got, c.want)
				}
			}
		})
	}
	// All identifications that a flow lost are looked at, those in a burst as well,
	// but only those that are not explained count.
	v := slices.Clone(wrap)
	v[0].Cause = Congestion
	th.Over(v, 0)
	if got := causes(v); got[Unknown] != 4 {
		t.Errorf("%v: four unexplained losses became a blackhole", got)
	}
}

func TestTimes(t *testing.T) {
	o := Outcome{From: 20 * ms, Decoded: Decoded{Lost: []Signature{Fields{Stamp: 1 << 13}.Pack(), Fields{Expires: true}.Pack()}}}
	v := Times(&o, DefaultTiming())
	if v[0].At != 25*ms || v[0].Cause != Unknown || v[1].At != 20*ms || v[1].Cause != Loop {
		t.Errorf("%+v", v)
	}
}

// The rule that one flipped bit broke is always among the suspects, and few are.
func TestSuspectRules(t *testing.T) {
	r := generator(11)
	prefix := func(bits int) uint32 { return uint32(uint64(0xffffffff) << (32 - bits)) }
	suspects, trials := 0, 0
	for list, n := range []int{10_000, 50_000, 200_000} {
		var rules []ACLRule
		for range n {
			src, dst := prefix(16+r.IntN(17)), prefix(16+r.IntN(17))
			mask := Tuple{Addrs: uint64(src)<<32 | uint64(dst), Rest: 0xffff<<8 | 0xff}
			if r.IntN(3) == 0 {
				mask.Rest = 0xff
			}
			v := Tuple{Addrs: r.Uint64(), Rest: uint64(r.Uint32N(1<<16))<<8 | 6}.and(mask)
			rules = append(rules, ACLRule{Value: v, Mask: mask, Deny: r.IntN(2) == 0})
		}
		for range 33 {
			broken, lost := breakRule(r.IntN, r.Uint64, rules)
			if len(lost) == 0 {
				continue
			}
			trials++
			got := SuspectRules(rules, lost)
			suspects += len(got)
			if !slices.ContainsFunc(got, func(s Suspect) bool { return s.Rule == broken }) {
				t.Errorf("list %d: rule %d is not among %v", list, broken, got)
			}
		}
	}
	t.Logf("%d suspects for %d flips", suspects, trials)
	if trials < 40 || float64(suspects)/float64(trials) > 3 {
		t.Errorf("%d suspects for %d flips, the paper has 2 to 2.5", suspects, trials)
	}
	// What stands behind the rule that accepts a packet never saw it.
	packet := Tuple{Addrs: 0x0a000001_0a000002, Rest: 6}
	all := Tuple{Addrs: math.MaxUint64, Rest: 0xff}
	if got := SuspectRules([]ACLRule{{Value: packet, Mask: all}, {Value: packet.xor(Tuple{Addrs: 1}), Mask: all, Deny: true}}, []Tuple{packet}); !slices.Equal(got, []Suspect{{Rule: 0}}) {
		t.Errorf("suspects of a list whose first rule accepts: %v", got)
	}
	if SuspectRules([]ACLRule{{Deny: true}}, nil) != nil {
		t.Error("no losses, and a suspect")
	}
}

// breakRule flips one bit of a rule that denies and returns packets that are
// dropped for it and were accepted before.
func breakRule(intn func(int) int, random func() uint64, rules []ACLRule) (int, []Tuple) {
	for range 1000 {
		i := intn(len(rules) / 10)
		rule := rules[i]
		if !rule.Deny {
			continue
		}
		var bit Tuple
		if intn(3) == 0 {
			bit.Rest = 1 << intn(24)
		} else {
			bit.Addrs = 1 << intn(64)
		}
		if bit.and(rule.Mask) == (Tuple{}) {
			continue
		}
		if intn(2) == 0 {
			rule.Value = rule.Value.xor(bit)
		} else {
			rule.Mask, rule.Value = rule.Mask.xor(bit), rule.Value.xor(rule.Value.and(bit))
		}
		var lost []Tuple
		for range 50 {
			p := Tuple{random(), random() & 0xffffffffff}
			p = p.xor(p.xor(rule.Value).and(rule.Mask)) // one that the broken rule matches
			hit := firstMatch(rules, p)
			before := firstMatch(rules[:i], p)
			if before < 0 && (hit < 0 || !rules[hit].Deny) {
				lost = append(lost, p)
			}
		}
		if len(lost) > 0 {
			return i, lost
		}
	}
	return 0, nil
}
