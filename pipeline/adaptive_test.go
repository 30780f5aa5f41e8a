package pipeline

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

func TestChooserNames(t *testing.T) {
	for c := range NumChoosers {
		got, err := ParseChooser(c.String())
		if err != nil || got != c {
			t.Errorf("%v is read as %v: %v", c, got, err)
		}
		if c.ByLoad() && !c.ByPort() || c.ByLoad() && c.ByFlow() {
			t.Errorf("%v goes by load, but not by port, or by the flow", c)
		}
	}
	if _, err := ParseChooser("ecmp"); err == nil {
		t.Error("ecmp is a way to choose")
	}
}

// atPorts is an adaptive group whose next hop 100+p is at port p.
func atPorts(t testing.TB, ports ...uint16) *Group {
	t.Helper()
	var m []Member
	for _, p := range ports {
		m = append(m, Member{100 + uint32(p), 1})
	}
	g, err := NewGroup(ChooseAdaptive, 256, m)
	if err == nil {
		g, err = g.AtPorts(ports)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func portsOf(ports ...uint16) (s PortSet) {
	for _, p := range ports {
		s[p/64] |= 1 << (p % 64)
	}
	return s
}

var allUp = PortSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

// counts draws n times.
func counts(g *Group, up PortSet, tiers []PortSet, n int) (hops map[uint32]int, byTier []int) {
	rng := frame.NewRand(11)
	hops, byTier = map[uint32]int{}, make([]int, len(tiers)+1)
	for range n {
		hop, tier := g.Adaptive(&up, tiers, &rng)
		hops[hop]++
		byTier[tier]++
	}
	return hops, byTier
}

// wantUniform compares with equal shares: for 1 to 15 degrees of freedom a sum
// of squares of 45 is exceeded once in ten thousand times.
func wantUniform(t *testing.T, got map[uint32]int, n int, ports ...uint16) {
	t.Helper()
	if len(got) != len(ports) {
		t.Errorf("next hops %v, want those at ports %v", got, ports)
	}
	want, x := float64(n)/float64(len(ports)), 0.0
	for _, p := range ports {
		d := float64(got[100+uint32(p)]) - want
		x += float64(d * d / want)
	}
	if x > 45 {
		t.Errorf("chi-square %.1f over ports %v: %v", x, ports, got)
	}
}

// The set that a port is chosen from: the lowest tier of those of the group,
// never a port that is on no shortest path, nor one without a link.
func TestAdaptive(t *testing.T) {
	const n = 100_000
	g := atPorts(t, 0, 1, 2, 3)
	for name, c := range map[string]struct {
		group  *Group
		up     PortSet
		tiers  []PortSet
		ports  []uint16
		inTier int
	}{
		"two are favoured":                  {g, allUp, []PortSet{portsOf(0, 2), portsOf(0, 1, 2)}, []uint16{0, 2}, 0},
		"none is, two are less so":          {g, allUp, []PortSet{{}, portsOf(0, 1)}, []uint16{0, 1}, 1},
		"none is at all":                    {g, allUp, []PortSet{{}, {}}, []uint16{0, 1, 2, 3}, 2},
		"others are favoured":               {atPorts(t, 0, 1), allUp, []PortSet{portsOf(2, 3), portsOf(0, 1, 2, 3)}, []uint16{0, 1}, 1},
		"the favoured one has no link":      {g, portsOf(1, 2, 3), []PortSet{portsOf(0), portsOf(0, 3)}, []uint16{3}, 1},
		"no link but one, which is full":    {g, portsOf(1), []PortSet{portsOf(0), portsOf(0, 3)}, []uint16{1}, 2},
		"no threshold":                      {g, allUp, nil, []uint16{0, 1, 2, 3}, 0},
		"ports far from each other":         {atPorts(t, 3, 70, 71, 255), allUp, []PortSet{portsOf(71, 255, 8)}, []uint16{71, 255}, 0},
		"far from each other, all are full": {atPorts(t, 3, 70, 71, 255), portsOf(3, 71, 255), []PortSet{portsOf(70)}, []uint16{3, 71, 255}, 1},
		"all in a word that is not first":   {atPorts(t, 130, 140, 191), allUp, []PortSet{portsOf(130, 191, 129)}, []uint16{130, 191}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			hops, tiers := counts(c.group, c.up, c.tiers, n)
			wantUniform(t, hops, n, c.ports...)
			if tiers[c.inTier] != n {
				t.Errorf("choices by tier are %v, want all in %d", tiers, c.inTier)
			}
		})
	}
	rng := frame.NewRand(1)
	if hop, _ := g.Adaptive(&PortSet{}, []PortSet{allUp}, &rng); hop != NoEntry {
		t.Errorf("without links next hop %d is taken", hop)
	}
	wide := atPorts(t, 3, 200)
	if hop, _ := wide.Adaptive(&PortSet{}, []PortSet{allUp}, &rng); hop != NoEntry {
		t.Errorf("without links next hop %d is taken", hop)
	}
}

// Whatever ports, links and tiers: the next hop is one of the group, has a
// link, and is in the tier that is reported, and no member with a link is in a
// lower one. Least takes the smallest.
func TestAdaptiveProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.SampledFrom([]int{8, 64, 256}).Draw(t, "span")
		set := rapid.SliceOfNDistinct(rapid.Uint16Range(0, uint16(span-1)), 1, 8, rapid.ID[uint16]).Draw(t, "ports")
		var m []Member
		for _, p := range set {
			m = append(m, Member{100 + uint32(p), uint32(rapid.IntRange(0, 2).Draw(t, "weight"))})
		}
		g, err := NewGroup(ChooseAdaptive, 64, m)
		if err != nil {
			t.Fatal(err)
		}
		if g, err = g.AtPorts(set); err != nil {
			t.Fatal(err)
		}
		up := portsOf(rapid.SliceOf(rapid.SampledFrom(set)).Draw(t, "up")...)
		var load [MaxPorts]uint64
		tiers := make([]PortSet, 2)
		for p := range load {
			load[p] = uint64(rapid.IntRange(0, 3).Draw(t, "load"))
			for k := range tiers {
				if load[p] <= uint64(k) {
					tiers[k][p/64] |= 1 << (p % 64)
				}
			}
		}
		var able []int
		least, first := ^uint64(0), len(tiers)
		for i, p := range set {
			if m[i].Weight > 0 && up[p/64]>>(p%64)&1 != 0 {
				able = append(able, int(p))
				least = min(least, load[p])
				first = min(first, int(load[p]))
			}
		}
		rng := frame.NewRand(rapid.Uint64().Draw(t, "seed"))
		hop, tier := g.Adaptive(&up, tiers, &rng)
		small := g.Least(&up, &load, &rng)
		if len(able) == 0 {
			if hop != NoEntry || small != NoEntry {
				t.Fatalf("no member has a link, and next hops are %d, %d", hop, small)
			}
			return
		}
		p := int(hop) - 100
		if !slices.Contains(able, p) || tier != first || min(int(load[p]), len(tiers)) != tier {
			t.Fatalf("of %v port %d with load %d is taken as in tier %d, the lowest is %d", able, p, load[p], tier, first)
		}
		if q := int(small) - 100; !slices.Contains(able, q) || load[q] != least {
			t.Fatalf("of %v port %d with load %d is taken for the least, %d", able, q, load[q], least)
		}
	})
}

// Equals share the least place evenly.
func TestLeastTies(t *testing.T) {
	g := atPorts(t, 1, 65, 66, 200, 3)
	var load [MaxPorts]uint64
	load[65] = 1
	rng := frame.NewRand(2)
	got := map[uint32]int{}
	const n = 40_000
	for range n {
		got[g.Least(&allUp, &load, &rng)]++
	}
	wantUniform(t, got, n, 1, 3, 66, 200)
}

func TestAtPortsRefuses(t *testing.T) {
	g, err := NewGroup(ChooseAdaptive, 64, []Member{{1, 1}, {2, 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, ports := range [][]uint16{{1}, {5, 5}, {1, 256}, {1, frame.NoPort}} {
		if _, err := g.AtPorts(ports); err == nil {
			t.Errorf("ports %v are accepted", ports)
		}
	}
}

func TestAdaptiveDoesNotAllocate(t *testing.T) {
	g, wide := atPorts(t, 1, 2, 3, 4), atPorts(t, 1, 70, 200)
	rng := frame.NewRand(1)
	up, tiers := allUp, []PortSet{portsOf(9), portsOf(1, 3)}
	var load [MaxPorts]uint64
	f := NewFlowlets(8)
	if n := testing.AllocsPerRun(100, func() {
		g.Adaptive(&up, tiers, &rng)
		wide.Adaptive(&up, tiers, &rng)
		wide.Least(&up, &load, &rng)
		f.Key(0, 7, 5, &rng)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A flowlet goes on over a pause of gap, and ends in a longer one; flows do not
// end each other's.
func TestFlowlets(t *testing.T) {
	const gap = 500 * frame.Microsecond
	f, rng := NewFlowlets(10), frame.NewRand(4)
	a, b := uint32(0x12345678), uint32(0xfedcba98)
	key, began := f.Key(0, a, gap, &rng)
	if !began {
		t.Error("the first frame of a flow begins no flowlet, though the clock is at 0")
	}
	other, _ := f.Key(0, b, gap, &rng)
	now := frame.Time(0)
	for range 100 {
		now += gap
		if k, began := f.Key(now, a, gap, &rng); k != key || began {
			t.Fatalf("after a pause of gap the key is %x, it was %x", k, key)
		}
	}
	fresh, began := f.Key(now+gap+1, a, gap, &rng)
	if fresh == key || !began {
		t.Error("after a longer pause the key is the same")
	}
	if k, began := f.Key(gap, b, gap, &rng); k != other || began {
		t.Error("a flow ended the flowlet of another one")
	}
	// New keys are spread evenly: over 16 parts, 10000 of them.
	n := map[uint32]int{}
	var parts []uint16
	for i := range 10_000 {
		k, _ := f.Key(now+frame.Time(i+2)*2*gap, a, gap, &rng)
		n[100+k>>28]++
	}
	for p := range uint16(16) {
		parts = append(parts, p)
	}
	wantUniform(t, n, 10_000, parts...)
}

func BenchmarkChoose(b *testing.B) {
	g, wide := atPorts(b, 4, 5, 6, 7), atPorts(b, 4, 70, 130, 200)
	rng := frame.NewRand(1)
	up, tiers := allUp, []PortSet{portsOf(4, 6, 70, 200), portsOf(4, 5, 6, 7)}
	var load [MaxPorts]uint64
	f := NewFlowlets(13)
	var sum uint32
	b.Run("hash", func(b *testing.B) {
		for i := range b.N {
			sum += g.Select(uint32(i) * 2654435769)
		}
	})
	b.Run("flowlet", func(b *testing.B) {
		for i := range b.N {
			k, _ := f.Key(frame.Time(i), uint32(i)*2654435769, 1000, &rng)
			sum += g.Select(k)
		}
	})
	b.Run("adaptive", func(b *testing.B) {
		for range b.N {
			hop, _ := g.Adaptive(&up, tiers, &rng)
			sum += hop
		}
	})
	b.Run("adaptive-wide", func(b *testing.B) {
		for range b.N {
			hop, _ := wide.Adaptive(&up, tiers, &rng)
			sum += hop
		}
	})
	b.Run("least", func(b *testing.B) {
		for range b.N {
			sum += g.Least(&up, &load, &rng)
		}
	})
	if bits.OnesCount32(sum) > 32 {
		b.Fatal()
	}
}

// Flows on one entry share their flowlets: none of them changes its way within
// a gap of its own that is no longer than the timeout, and one that was idle for
// long begins anew unless another one went on.
func TestFlowletsThatCollide(t *testing.T) {
	const gap = 100
	f, rng := NewFlowlets(1), frame.NewRand(9)
	type last struct {
		at  frame.Time
		key uint32
	}
	flows := map[uint32]*last{}
	now, shared := frame.Time(0), 0
	for range 50_000 {
		now += frame.Time(rng.Uint32n(gap))
		hash := rng.Uint32n(40) << 26 // 20 flows an entry
		key, began := f.Key(now, hash, gap, &rng)
		l := flows[hash]
		if l == nil {
			l = &last{at: -2 * gap}
			flows[hash] = l
		}
		if now-l.at <= gap && key != l.key {
			t.Fatalf("flow %x leaves its way after a pause of %d", hash, now-l.at)
		}
		if now-l.at > gap && !began && key == l.key {
			shared++
		}
		*l = last{now, key}
	}
	if shared == 0 {
		t.Error("no flow went on with another one's flowlet: the test tests nothing")
	}
	// A table that was idle, however long, goes on with no flowlet.
	key, _ := f.Key(now, 0, gap, &rng)
	if k, began := f.Key(frame.Never-1, 0, gap, &rng); !began || k == key {
		t.Error("a flowlet outlived its pause")
	}
}
