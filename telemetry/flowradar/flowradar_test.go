package flowradar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"gswitch/telemetry"
)

func random(r *rand.Rand) Key { return Key{Addrs: r.Uint64(), Rest: r.Uint64() & telemetry.FlowMask} }

func generator(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

// shape is a table of about m cells with a filter that does not fail.
func shape(m, k, n int, seed uint64) Params {
	return Params{FilterBits: uint32(64 * n), FilterHashes: 20, Cells: uint32(m / k * k), CellHashes: uint8(k), Seed: seed}
}

// filled returns a flowset of n random flows with 1 to 20 packets.
func filled(r *rand.Rand, p Params, n int) (*Flowset, map[Key]uint32) {
	f, truth := New(p), map[Key]uint32{}
	for len(truth) < n {
		k := random(r)
		truth[k] = 1 + r.Uint32N(20)
		f.Update(k, Traffic{Packets: truth[k]})
	}
	return f, truth
}

// byHand builds a table whose cells a test names.
func byHand(cells int, flows map[Key][]int, packets map[Key]uint32) []cell {
	out := make([]cell, cells)
	for k, at := range flows {
		for _, c := range at {
			out[c].addrs ^= k.Addrs
			out[c].flows++
			out[c].packets += packets[k]
		}
	}
	return out
}

// The vector of algorithm 7: three flows in six cells. Flows are found whose
// places are those of the vector, with parts of two cells for each hash function.
func TestSingleVector(t *testing.T) {
	r := generator(1)
	for seed := range uint64(100) {
		f := New(Params{FilterBits: 4096, FilterHashes: 4, Cells: 6, CellHashes: 3, Seed: seed})
		truth := map[Key]uint32{}
		flows := map[Key][]int{}
		for i := range 3 {
			k := random(r)
			truth[k] = []uint32{5, 7, 2}[i]
			for range truth[k] {
				f.Update(k, Traffic{Packets: 1})
			}
			_, h := hash(&f.keys, k)
			for j := range uint32(3) {
				flows[k] = append(flows[k], int(f.place(h, j)))
			}
		}
		for i, c := range byHand(6, flows, truth) {
			if got := f.cells[i]; got.addrs != c.addrs || got.flows != c.flows || got.packets != c.packets {
				t.Fatalf("cell %d is %+v, want %+v", i, got, c)
			}
		}
		table := Single(f)
		for _, rec := range table.Records {
			if truth[rec.Key] != rec.Packets || !rec.Exact {
				t.Fatalf("%+v: want %d packets", rec, truth[rec.Key])
			}
		}
		if table.Done() != (len(table.Records) == 3) {
			t.Fatalf("%d of 3 flows, done: %t", len(table.Records), table.Done())
		}
	}
}

func TestRepeatedPackets(t *testing.T) {
	for _, blocked := range []bool{false, true} {
		p := Params{FilterBits: 4096, FilterHashes: 8, Cells: 100, CellHashes: 4, Blocked: blocked}
		f, k := New(p), random(generator(2))
		for range 1000 {
			f.Update(k, Traffic{Packets: 1})
		}
		cells, set := 0, math.Round(f.Image().Occupancy()*4096)
		for _, c := range f.cells {
			if c.flows == 1 && c.packets == 1000 {
				cells++
			}
		}
		if cells != 4 || set > 8 || set < 1 || f.Flows != 1 || f.Packets != 1000 || !f.Image().Has(k) {
			t.Errorf("blocked %t: %d cells, %v bits, %d flows", blocked, cells, set, f.Flows)
		}
		f.Reset()
		if !reflect.DeepEqual(f, New(p)) {
			t.Error("an emptied flowset is not empty")
		}
	}
}

// The published sizes (figure 4.3, section 4.5.1), and the smallest filters.
func TestSizing(t *testing.T) {
	near := func(what string, got, want, share float64) {
		t.Helper()
		if math.Abs(got/want-1) > share {
			t.Errorf("%s: %.5g, want %.5g", what, got, want)
		}
	}
	for _, c := range []struct {
		n    int
		bits float64
		k    int
	}{{1e3, 23.43, 18}, {1e4, 27.91, 21}, {1e5, 32.42, 24}, {1e6, 36.96, 27}} {
		m, k := FilterBits(c.n, 1e-3)
		near(fmt.Sprintf("bits for each of %d flows", c.n), m/float64(c.n), c.bits, 0.004)
		if k != c.k {
			t.Errorf("%d flows: %d hash functions, want %d", c.n, k, c.k)
		}
	}
	near("alone, 100,000 flows", Sizing(1e5, Alone).Bytes(), 2.88e6, 0.01)
	near("helped, 100,000 flows", Sizing(1e5, Helped).Bytes(), 2.36e6, 0.01)
	// The paper sizes the count of flows by their number: 20 bits here, for which
	// ours has 16, since no cell ever holds more than a few dozen.
	near("alone, a million flows", Sizing(1e6, Alone).Bytes(), 29.7e6, 0.03)
	near("helped, a million flows", Sizing(1e6, Helped).Bytes(), 24.8e6, 0.03)
	near("export in bits/s", Sizing(1e5, Alone).Bytes()*8/10e-3, 2.3e9, 0.01)
	for _, n := range []int{1e5, 1e6} {
		if a := Sizing(n, Alone).Bytes() / NetFlowBytes(n); a < 1.14 || a > 1.20 {
			t.Errorf("%d flows alone: %.3f of NetFlow", n, a)
		}
		if h := Sizing(n, Helped).Bytes() / NetFlowBytes(n); h < 0.93 || h > 1.0 {
			t.Errorf("%d flows helped: %.3f of NetFlow", n, h)
		}
	}
	// The gain of decoding together: flows with counters that fit in equal memory.
	for _, n := range []float64{1e3, 1e4, 1e5} {
		if gain := singleCells(int(n)) / networkCells; gain < 1.25 || gain > 1.345 {
			t.Errorf("%g flows: a gain of %.3f, the paper has 1.266 to 1.30", n, gain)
		}
	}
}

// The smallest filter fails as often as it may: one slot in a thousand.
func TestFilterFails(t *testing.T) {
	r, wrong := generator(3), 0
	const n, trials = 1000, 1000
	for range trials {
		f, _ := filled(r, Params{FilterBits: 23430, FilterHashes: 18, Cells: 8, CellHashes: 4, Seed: r.Uint64()}, n)
		if f.Flows != n {
			wrong++
		}
	}
	if wrong > 5 {
		t.Errorf("%d of %d slots lost a flow, want about 1", wrong, trials)
	}
}

func rate(n, m, k, trials int) float64 {
	good := 0
	for i := range trials {
		r := generator(uint64(n*m+i) * 31)
		f, _ := filled(r, shape(m, k, n, r.Uint64()), n)
		if Single(f).Done() {
			good++
		}
	}
	return float64(good) / float64(trials)
}

// Tables that are decoded alone have a sharp threshold (section 4.3.3).
func TestSingleDecodes(t *testing.T) {
	for _, c := range []struct {
		n         int
		per       float64
		k         int
		low, high float64
	}{
		{1000, 1.30, 3, 0.95, 1}, {1000, 1.15, 3, 0, 0.05},
		{1000, 1.40, 4, 0.97, 1}, {1000, 1.20, 4, 0, 0.05},
		{10_000, 1.26, 3, 0.97, 1}, {10_000, 1.33, 4, 0.97, 1}, {10_000, 1.27, 4, 0, 0.1},
	} {
		trials := 100_000 / c.n
		if got := rate(c.n, int(c.per*float64(c.n)), c.k, trials); got < c.low || got > c.high {
			t.Errorf("%d flows, %d hashes, %.2f cells each: %.2f decode, want %.2f to %.2f", c.n, c.k, c.per, got, c.low, c.high)
		}
	}
}

// What is decoded of a table that cannot be decoded whole is right.
func TestPartsAreRight(t *testing.T) {
	for i := range 200 {
		r := generator(uint64(i) + 100)
		f, truth := filled(r, shape(900, 4, 1000, r.Uint64()), 1000)
		table := Single(f)
		if table.Done() {
			t.Fatal("1000 flows fit in 900 cells")
		}
		for _, rec := range table.Records {
			if truth[rec.Key] != rec.Packets || !rec.Exact {
				t.Fatalf("%+v: want %d", rec, truth[rec.Key])
			}
		}
	}
}

// The trap of foreign flows (vector A3): what is left in a cell after a flow of
// another switch went is not the count of the flow that it shows.
func TestForeignFlowsTaintCounters(t *testing.T) {
	tainted, solved := 0, 0
	for trial := range uint64(100) {
		r := generator(trial)
		f, truth := filled(r, shape(228, 4, 220, trial), 200)
		table := Single(f)
		alone := len(table.Records)
		for k, n := range truth {
			if _, out := table.Find(k); !out && !table.FlowsDone() {
				table.borrow(k, n+1) // the neighbour counted one more
				table.peel()
			}
		}
		if !table.FlowsDone() || alone == 200 {
			continue
		}
		if table.Done() {
			t.Fatal("a table with foreign flows claims its counters")
		}
		for i, rec := range table.Records {
			if rec.Exact != (i < alone) {
				t.Fatalf("flow %d of %d that came out alone: %+v", i, alone, rec)
			}
			if !rec.Exact {
				tainted++
			}
		}
		if s := Counters(table); s.Unsolved == 0 {
			solved++
			for _, rec := range table.Records {
				if rec.Packets != truth[rec.Key] || !rec.Exact {
					t.Fatalf("%+v, want %d", rec, truth[rec.Key])
				}
			}
		}
	}
	if tainted == 0 || solved == 0 {
		t.Errorf("%d flows came out with help, %d systems were solved: nothing was tested", tainted, solved)
	}
}

// The example of 4.3.2 by its equations: four cells, three flows, no pure cell.
func TestCountersVector(t *testing.T) {
	s := &system{k: 3, cells: []int32{0, 1, 2, 0, 1, 3, 0, 2, 3}, b: []int64{14, 12, 7, 9}, left: []int32{3, 2, 2, 2}, x: []int64{6, 0, 0}, known: make([]bool, 3)}
	s.peel()
	s.descend()
	if !s.holds() || !s.determined() || !reflect.DeepEqual(s.x, []int64{5, 7, 2}) {
		t.Errorf("%v", s.x)
	}
	// Two flows in the same cells have no counts of their own.
	twins := &system{k: 2, cells: []int32{0, 1, 0, 1, 0, 2, 1, 2}, b: []int64{7, 8, 5}, left: []int32{3, 3, 2}, x: []int64{1, 1, 1, 1}, known: make([]bool, 4)}
	if twins.determined() {
		t.Error("four flows in three cells are said to be determined")
	}
}

// Two switches that the same flows cross find all of them with fewer cells than
// flows, if their hash functions differ (section 4.4.3).
func TestPairs(t *testing.T) {
	together := func(n, m, k int, seedA, seedB uint64, r *rand.Rand) bool {
		a, truth := filled(r, shape(m, k, n, seedA), n)
		b := New(shape(m, k, n, seedB))
		for key, c := range truth {
			b.Update(key, Traffic{Packets: c})
		}
		tables := []*Table{Single(a), Single(b)}
		Network(tables, [][]int{{1}, {0}}, nil)
		for _, table := range tables {
			for _, rec := range table.Records {
				if _, ok := truth[rec.Key]; !ok {
					t.Fatalf("%+v never was", rec)
				}
			}
		}
		return tables[0].FlowsDone() && tables[1].FlowsDone()
	}
	count := func(n, m, k int, same bool) (good int) {
		for i := range 10 {
			r := generator(uint64(i) + 7)
			a := r.Uint64()
			b := r.Uint64()
			if same {
				b = a
			}
			if together(n, m, k, a, b, r) {
				good++
			}
		}
		return good
	}
	if good := count(10_000, 8100, 3, false); good < 9 {
		t.Errorf("10,000 flows in two tables of 8,100 cells: %d of 10 decode", good)
	}
	if good := count(10_000, 7500, 3, false); good > 1 {
		t.Errorf("10,000 flows in two tables of 7,500 cells: %d of 10 decode", good)
	}
	if good := count(10_000, 9700, 4, false); good < 9 {
		t.Errorf("10,000 flows, four hashes, 9,700 cells: %d of 10 decode", good)
	}
	if good := count(10_000, 9000, 4, false); good > 0 {
		t.Errorf("10,000 flows, four hashes, 9,000 cells: %d of 10 decode", good)
	}
	if good := count(10_000, 10_500, 4, true); good > 0 {
		t.Errorf("with equal seeds %d of 10 decode: they should be stuck on the same flows", good)
	}
}

// The counters of a table that is decoded with help, from the neighbour's counts,
// of which one in ten differs by a few lost packets.
func TestCountersConverge(t *testing.T) {
	r := generator(8)
	const n = 20_000
	f, truth := filled(r, shape(n*103/100, 4, n, 1), n)
	table := Single(f)
	if table.FlowsDone() {
		t.Fatal("nothing is left to solve")
	}
	for k, c := range truth {
		if _, out := table.Find(k); !out {
			if r.IntN(10) == 0 {
				c += 1 + r.Uint32N(3)
			}
			table.borrow(k, c)
		}
	}
	s := Counters(table)
	if s.Exact != n || s.Unsolved != 0 || s.Iterations > 150 {
		t.Fatalf("%+v", s)
	}
	for _, rec := range table.Records {
		if rec.Packets != truth[rec.Key] || !rec.Exact {
			t.Fatalf("%+v, want %d", rec, truth[rec.Key])
		}
	}
}

// Full rank has its threshold at 1.0238 cells for each flow with four hashes, and
// 1.089 with three. Without it no counter is called exact, although the nearest
// solution fulfils all equations.
func TestRank(t *testing.T) {
	for _, c := range []struct {
		k       int
		per     float64
		least   int
		atLeast bool
	}{{4, 1.06, 9, true}, {4, 1.005, 0, false}, {3, 1.13, 9, true}, {3, 1.06, 0, false}} {
		good := 0
		for i := range 10 {
			r := generator(uint64(i) + 50)
			const n = 1000
			f, truth := filled(r, shape(int(c.per*n), c.k, n, r.Uint64()), n)
			table := Single(f)
			for k, v := range truth {
				if _, out := table.Find(k); !out {
					table.borrow(k, v)
				}
			}
			if s := Counters(table); s.Unsolved == 0 {
				good++
			}
		}
		if c.atLeast && good < c.least || !c.atLeast && good > 0 {
			t.Errorf("%d hashes, %.3f cells for each flow: %d of 10 are determined", c.k, c.per, good)
		}
	}
}

// A flow that the filter takes for a known one shows in the cells afterwards.
func TestHiddenFlow(t *testing.T) {
	f, _ := filled(generator(9), shape(200, 4, 100, 1), 100)
	for i := range f.filter {
		f.filter[i] = ^uint64(0)
	}
	f.Update(random(generator(10)), Traffic{Packets: 3})
	table := Single(f)
	if table.Done() || !table.FlowsDone() {
		t.Error("a hidden flow went unseen")
	}
	// Its packets are in cells of others: no count is said to be exact.
	if s := Counters(table); s.Exact != 0 || s.Unsolved != 100 {
		t.Errorf("beside a hidden flow: %+v", s)
	}
}

// d-left tables of the same memory (section 4.8.2).
func TestDLeft(t *testing.T) {
	for _, c := range []struct {
		flows, d, depth int
		want, off       float64
	}{{100_000, 4, 1, 0.0103, 0.001}, {152_000, 4, 1, 0.0997, 0.003}, {100_000, 3, 5, 0, 0.0001}, {152_000, 3, 5, 0.0119, 0.002}} {
		r := generator(11)
		table := NewDLeft(161_176, c.d, c.depth, 1)
		for range c.flows {
			table.Insert(random(r))
		}
		if got := float64(table.Overflow) / float64(c.flows); math.Abs(got-c.want) > c.off {
			t.Errorf("%d flows, %d subtables, buckets of %d: %.4f have no place, want %.4f", c.flows, c.d, c.depth, got, c.want)
		}
	}
}

func TestFlowlets(t *testing.T) {
	for _, c := range []struct {
		up, down []int64
		want     []Flowlet
	}{
		{[]int64{10, 8, 0, 0}, []int64{9, 7, 1, 0}, []Flowlet{{0, 3, 18, 1}}},
		{[]int64{10, 8, 0}, []int64{9, 9, 0}, []Flowlet{{0, 2, 18, 0}}},
		{[]int64{10, 8}, []int64{9, 7}, nil},                                              // not ended
		{[]int64{5, 0, 5, 0}, []int64{5, 0, 3, 0}, []Flowlet{{0, 1, 5, 0}, {2, 3, 5, 2}}}, // two
		{[]int64{5, -1, 5, 0, 2, 0}, []int64{5, 0, 3, 0, 2, 0}, []Flowlet{{4, 5, 2, 0}}},  // a report is missing
	} {
		if got := FlowletLosses(c.up, c.down); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v less %v: %+v, want %+v", c.up, c.down, got, c.want)
		}
	}
}

// Links work both ways: 1-2, 2-3, 3-4, 4-5, 2-5.
func neighbours(s int) []int {
	return map[int][]int{1: {2}, 2: {1, 3, 5}, 3: {2, 4}, 4: {3, 5}, 5: {4, 2}}[s]
}

func TestLoops(t *testing.T) {
	for _, c := range []struct {
		name      string
		counts    map[int]uint32
		cycle     bool
		confirmed bool
	}{
		{"a path", map[int]uint32{1: 10, 2: 10, 5: 10}, false, false},
		{"the route changed within the slot", map[int]uint32{1: 10, 2: 10, 3: 4, 4: 4, 5: 10}, true, false},
		{"the same, with packets under way", map[int]uint32{1: 10, 2: 9, 3: 4, 4: 4, 5: 9}, true, false},
		{"a loop of four", map[int]uint32{1: 10, 2: 50, 3: 48, 4: 46, 5: 44}, true, true},
		{"a loop of two", map[int]uint32{1: 10, 2: 50, 3: 48}, true, true},
		{"a few more than entered are under way", map[int]uint32{1: 10, 2: 12, 3: 12}, false, false},
	} {
		l, ok := FindLoop(c.counts, neighbours, 1, 5)
		if ok != c.cycle || l.Confirmed != c.confirmed {
			t.Errorf("%s: %+v (%t)", c.name, l, ok)
		}
		if c.confirmed && (l.Entering != 1 || l.Cycle[0] != 2 || l.Outside != 10) {
			t.Errorf("%s: %+v", c.name, l)
		}
	}
}

func TestBlackholes(t *testing.T) {
	way := []int{1, 2, 3, 4}
	for _, c := range []struct {
		has, unknown []int
		want         int
	}{{[]int{1, 2, 3, 4}, nil, -1}, {[]int{1, 2}, nil, 1}, {[]int{1}, nil, 0}, {nil, nil, -1}, {[]int{1, 2}, []int{3}, -1}, {[]int{1, 2, 4}, nil, -1}} {
		in := func(v []int) func(int) bool {
			return func(s int) bool {
				for _, x := range v {
					if x == s {
						return true
					}
				}
				return false
			}
		}
		if got := Blackhole(way, in(c.has), func(s int) bool { return !in(c.unknown)(s) }); got != c.want {
			t.Errorf("%v, %v unknown: %d, want %d", c.has, c.unknown, got, c.want)
		}
	}
}

func TestDivide(t *testing.T) {
	flows := func(n int, packets uint32) (v []Record) {
		for range n {
			v = append(v, Record{Traffic: Traffic{Packets: packets}})
		}
		return v
	}
	if m, bad := Divide([][]Record{flows(30, 10), flows(10, 10)}, 1.4); !bad || !m.Hash || m.FlowsMost != 1.5 {
		t.Errorf("%+v", m)
	}
	if m, bad := Divide([][]Record{append(flows(10, 10), flows(1, 1000)...), flows(11, 10)}, 1.5); !bad || m.Hash {
		t.Errorf("one large flow: %+v", m)
	}
	if m, bad := Divide([][]Record{flows(10, 10), flows(11, 10)}, 1.5); bad {
		t.Errorf("even: %+v", m)
	}
}

func TestUpdateAllocatesNothing(t *testing.T) {
	f, k := New(Params{FilterBits: 4096, FilterHashes: 8, Cells: 100, CellHashes: 4, Blocked: true}), Key{Addrs: 1, Rest: 2}
	if n := testing.AllocsPerRun(100, func() { f.Update(k, Traffic{Packets: 1}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, flows := range []int{1, 1000, 100_000} {
		for _, blocked := range []bool{true, false} {
			b.Run(fmt.Sprintf("flows=%d/blocked=%t", flows, blocked), func(b *testing.B) {
				p := Sizing(max(flows, 1000), Alone)
				if blocked {
					p.FilterBits, p.FilterHashes, p.Blocked = (p.FilterBits*2+511)/512*512, 8, true
				}
				f, r := New(p), generator(1)
				v := make([]Key, 1<<17)
				for i := range v {
					v[i] = random(r)
				}
				for i := 0; b.Loop(); i++ {
					f.Update(v[i*7919%flows], Traffic{Packets: 1})
				}
			})
		}
	}
}

// The filter that switches have takes fewer than one flow in a million for its own
// when it is full: with places of a block drawn by double hashing it would be a
// hundred.
func TestBlockedFilter(t *testing.T) {
	r := generator(9)
	f, _ := filled(r, Fixed(1000, Alone, 3), 1000)
	wrong := 0
	for range 1_000_000 {
		if f.Image().Has(random(r)) {
			wrong++
		}
	}
	if wrong > 3 {
		t.Errorf("%d of a million flows are taken for known ones", wrong)
	}
}

// With filters that are often wrong flows are taken out of tables that they never
// were in, and cells look pure that are not: what they show is no flow at all.
func TestPureCellsAreChecked(t *testing.T) {
	r := generator(10)
	known := map[Key]bool{}
	var tables []*Table
	for i := range uint64(4) {
		p := shape(1370, 4, 1000, 7+i)
		p.FilterBits, p.FilterHashes = 5000, 3
		f, flows := filled(r, p, 1100)
		for k := range flows {
			known[k] = true
		}
		tables = append(tables, Single(f))
	}
	Network(tables, [][]int{{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}}, nil)
	taken, wrong := 0, 0
	for _, table := range tables {
		for _, rec := range table.Records {
			taken++
			if !known[rec.Key] {
				wrong++
			}
		}
	}
	if wrong > 0 || taken < 400 {
		t.Errorf("%d of %d flows are of nobody", wrong, taken)
	}
}
