package pipeline

import (
	"fmt"
	"math/rand"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// randomRule draws from a small universe, so that rules overlap and random
// keys hit.
func randomRule(rng *rand.Rand) Rule {
	r := Rule{Priority: int32(rng.Intn(20)) - 10}
	maybe := func(f func()) {
		if rng.Intn(4) == 0 {
			f()
		}
	}
	maybe(func() { r.MatchInPort(uint16(rng.Intn(3))) })
	maybe(func() { r.MatchVLAN(uint16(rng.Intn(3))) })
	maybe(func() { r.MatchClass(uint8(rng.Intn(3))) })
	maybe(func() { r.MatchFragment(rng.Intn(2) == 0) })
	maybe(func() { r.MatchEtherType(uint16(rng.Intn(2))) })
	maybe(func() { r.MatchSrcMAC(uint64(rng.Intn(4)), uint64(rng.Intn(4))) })
	maybe(func() { r.MatchDstMAC(uint64(rng.Intn(4)), 3) })
	maybe(func() { r.MatchDSCP(uint8(rng.Intn(3))) })
	maybe(func() { r.MatchProto([]uint8{6, 17}[rng.Intn(2)]) })
	maybe(func() { r.MatchTCPFlags(uint8(rng.Intn(4)), uint8(rng.Intn(4))) })
	if rng.Intn(2) == 0 {
		maybe(func() { r.MatchSrcIP(randomPrefix4(rng)) })
		maybe(func() { r.MatchDstIP(randomPrefix4(rng)) })
	} else {
		maybe(func() { r.MatchSrcIP(randomPrefix6(rng)) })
		maybe(func() { r.MatchDstIP(randomPrefix6(rng)) })
	}
	lo := uint16(rng.Intn(4))
	maybe(func() { r.MatchSrcPort(lo, lo+uint16(rng.Intn(3))) })
	maybe(func() { r.MatchDstPort(lo, lo+uint16(rng.Intn(3))) })
	return r
}

func randomPrefix4(rng *rand.Rand) netip.Prefix {
	return netip.PrefixFrom(addr4(rng.Uint32()&0x01010101), rng.Intn(33)).Masked()
}

func randomPrefix6(rng *rand.Rand) netip.Prefix {
	return netip.PrefixFrom(addr6(rng.Uint64()&0x01010101, rng.Uint64()&1), rng.Intn(129)).Masked()
}

func randomKey(rng *rand.Rand) Key {
	var r Rule
	r.MatchInPort(uint16(rng.Intn(3)))
	r.MatchVLAN(uint16(rng.Intn(3)))
	r.MatchClass(uint8(rng.Intn(3)))
	r.MatchFragment(rng.Intn(4) == 0)
	r.MatchEtherType(uint16(rng.Intn(2)))
	r.MatchSrcMAC(uint64(rng.Intn(4)), 3)
	r.MatchDstMAC(uint64(rng.Intn(4)), 3)
	r.MatchDSCP(uint8(rng.Intn(3)))
	r.MatchTCPFlags(uint8(rng.Intn(4)), 0xff)
	r.MatchProto([]uint8{6, 17, 1}[rng.Intn(3)])
	if rng.Intn(2) == 0 {
		r.MatchSrcIP(netip.PrefixFrom(addr4(rng.Uint32()&0x01010101), 32))
		r.MatchDstIP(netip.PrefixFrom(addr4(rng.Uint32()&0x01010101), 32))
	} else {
		r.MatchSrcIP(netip.PrefixFrom(addr6(rng.Uint64()&0x01010101, rng.Uint64()&1), 128))
		r.MatchDstIP(netip.PrefixFrom(addr6(rng.Uint64()&0x01010101, rng.Uint64()&1), 128))
	}
	p := uint16(rng.Intn(6))
	r.MatchSrcPort(p, p)
	p = uint16(rng.Intn(6))
	r.MatchDstPort(p, p)
	return r.Value
}

// linear is the definition of what a Ternary answers.
func linear(rules map[uint32]Rule, k *Key) uint32 {
	best := uint32(NoEntry)
	for id, r := range rules {
		if !r.Holds(k) {
			continue
		}
		if best == NoEntry || r.Priority > rules[best].Priority || r.Priority == rules[best].Priority && id < best {
			best = id
		}
	}
	return best
}

// Random tables, changed step by step, against a linear scan; with and without
// a flow cache, for this snapshot and for older ones.
func TestTernaryProperty(t *testing.T) {
	hits := 0
	for seed := int64(0); seed < 30; seed++ {
		rng := rand.New(rand.NewSource(seed))
		table, err := NewTernary(nil)
		if err != nil {
			t.Fatal(err)
		}
		ref := map[uint32]Rule{}
		cache := NewFlowCache(64)
		for step := 0; step < 4; step++ {
			rules := make([]Rule, rng.Intn(150))
			for i := range rules {
				rules[i] = randomRule(rng)
			}
			next, ids, err := table.With(rules...)
			if err != nil {
				t.Fatal(err)
			}
			for i, id := range ids {
				if _, taken := ref[id]; taken {
					t.Fatalf("id %d is given twice", id)
				}
				ref[id] = rules[i]
			}
			var gone []uint32
			for id := range ref {
				if rng.Intn(4) == 0 {
					gone = append(gone, id)
					delete(ref, id)
				}
			}
			old := table
			table = next.Without(gone...)
			if table.Len() != len(ref) {
				t.Fatalf("%d rules, want %d", table.Len(), len(ref))
			}
			keys := make([]Key, 400)
			for i := range keys {
				keys[i] = randomKey(rng)
				if i%3 == 0 {
					keys[i] = keys[rng.Intn(i+1)]
				}
				k := keys[i]
				want := linear(ref, &k)
				if want != NoEntry {
					hits++
				}
				if got := table.Lookup(&k); got != want {
					t.Fatalf("seed %d: Lookup = %d, want %d", seed, got, want)
				}
				table.Mask(&k)
				if got := table.Lookup(&k); got != want {
					t.Fatalf("seed %d: Lookup of the masked key = %d, want %d", seed, got, want)
				}
				if got := cache.Lookup(table, &k); got != want {
					t.Fatalf("seed %d: cached Lookup = %d, want %d", seed, got, want)
				}
				if rng.Intn(50) == 0 {
					if got, want := cache.Lookup(old, &k), old.Lookup(&k); got != want {
						t.Fatalf("seed %d: cached Lookup in the old table = %d, want %d", seed, got, want)
					}
				}
			}
			ids = make([]uint32, len(keys))
			table.LookupVec(keys, ids)
			cached := make([]uint32, len(keys))
			cache.LookupVec(table, keys, cached)
			if !slices.Equal(ids, cached) {
				t.Fatal("the vectors differ with and without cache")
			}
		}
	}
	if hits < 5000 {
		t.Errorf("only %d keys hit a rule: the test is too thin", hits)
	}
}

func TestTernaryIDs(t *testing.T) {
	a, b := Rule{Priority: 1}, Rule{Priority: 2, Action: Action{Ops: OpDrop}}
	table, err := NewTernary([]Rule{a, b})
	if err != nil {
		t.Fatal(err)
	}
	k := &Key{}
	if id := table.Lookup(k); id != 1 || !table.Action(id).Has(OpDrop) {
		t.Errorf("Lookup = %d", id)
	}
	less := table.Without(1, 77)
	if id := less.Lookup(k); id != 0 {
		t.Errorf("Lookup without the better rule = %d", id)
	}
	if _, ok := less.Rule(1); ok {
		t.Error("a deleted rule is shown")
	}
	again, ids, err := less.With(a, b)
	if err != nil || !slices.Equal(ids, []uint32{1, 2}) || again.IDs() != 3 {
		t.Errorf("ids %v, %d in all, %v", ids, again.IDs(), err)
	}
	if id := again.Lookup(k); id != 2 {
		t.Errorf("Lookup = %d", id)
	}
	// Equal priority: the lower id wins.
	same, _ := NewTernary([]Rule{a, a})
	if id := same.Lookup(k); id != 0 {
		t.Errorf("Lookup among equals = %d", id)
	}
	if id := (&Ternary{}).Lookup(k); id != NoEntry {
		t.Errorf("Lookup in an empty table = %d", id)
	}
}

func TestTernaryRefuses(t *testing.T) {
	bad := Rule{}
	bad.Value[0] = 1
	empty := Rule{}
	empty.MatchSrcPort(5, 4)
	for _, r := range []Rule{bad, empty} {
		if _, err := NewTernary([]Rule{{}, r}); err == nil || !strings.Contains(err.Error(), "rule 1") {
			t.Errorf("error %v does not name the rule", err)
		}
	}
}

func TestTernarySnapshotSwap(t *testing.T) {
	first, err := NewTernary([]Rule{{Priority: 0}})
	if err != nil {
		t.Fatal(err)
	}
	var table atomic.Pointer[Ternary]
	table.Store(first)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			cache := NewFlowCache(32)
			rng := rand.New(rand.NewSource(int64(w)))
			for !stop.Load() {
				k, tb := randomKey(rng), table.Load()
				if a, b := cache.Lookup(tb, &k), tb.Lookup(&k); a != b || a == NoEntry {
					t.Errorf("%d with cache, %d without", a, b)
					return
				}
			}
		}()
	}
	rng := rand.New(rand.NewSource(9))
	for i := 0; i < 50; i++ {
		next, _, err := table.Load().With(randomRule(rng))
		if err != nil {
			t.Error(err)
		}
		if i%3 == 0 {
			next = next.Without(uint32(1 + rng.Intn(20)))
		}
		table.Store(next)
	}
	stop.Store(true)
	wg.Wait()
}

// aclRules is an access list as operators write it: source and destination
// prefixes of all lengths, protocol, single ports and port ranges, over a
// permit-all.
func aclRules(n int, rng *rand.Rand) []Rule {
	rules := make([]Rule, n)
	for i := range rules {
		r := &rules[i]
		r.Priority = int32(n - i)
		r.Action = Action{Ops: OpDrop | OpCount}
		if i == n-1 {
			r.Action = Action{Ops: OpPermit}
			break
		}
		if rng.Intn(10) < 8 {
			r.MatchSrcIP(netip.PrefixFrom(addr4(0x0a000000|rng.Uint32()>>8), 12+rng.Intn(21)).Masked())
		}
		if rng.Intn(10) < 8 || r.Mask == (Key{}) {
			r.MatchDstIP(netip.PrefixFrom(addr4(0xac100000|rng.Uint32()>>12), 16+rng.Intn(17)).Masked())
		}
		if rng.Intn(10) < 7 {
			r.MatchProto([]uint8{6, 17}[rng.Intn(2)])
			switch p := uint16(1 + rng.Intn(60000)); rng.Intn(3) {
			case 0:
				r.MatchDstPort(p, p)
			case 1:
				r.MatchDstPort(p, p+uint16(rng.Intn(5000)))
			}
		}
	}
	return rules
}

// aclKey is a TCP packet, mostly inside a rule's prefixes.
func aclKey(rules []Rule, rng *rand.Rand) Key {
	var m Match
	m.MatchSrcIP(netip.PrefixFrom(addr4(0x0a000000|rng.Uint32()>>8), 32))
	m.MatchDstIP(netip.PrefixFrom(addr4(0xac100000|rng.Uint32()>>12), 32))
	m.MatchTCPFlags(16, 0xff)
	p := uint16(rng.Intn(65536))
	m.MatchSrcPort(p, p)
	p = uint16(1 + rng.Intn(65535))
	m.MatchDstPort(p, p)
	if rng.Intn(4) > 0 {
		r := &rules[rng.Intn(len(rules))]
		for i := range m.Value {
			m.Value[i] = m.Value[i]&^r.Mask[i] | r.Value[i]
		}
	}
	return m.Value
}

func TestTernaryLookupsDoNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	rules := aclRules(1000, rng)
	table, err := NewTernary(rules)
	if err != nil {
		t.Fatal(err)
	}
	cache := NewFlowCache(1024)
	keys, ids := make([]Key, 64), make([]uint32, 64)
	for i := range keys {
		keys[i] = aclKey(rules, rng)
	}
	other := table.Without(0)
	if n := testing.AllocsPerRun(100, func() {
		table.LookupVec(keys, ids)
		cache.LookupVec(table, keys, ids)
		cache.LookupVec(other, keys, ids)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTernary(b *testing.B) {
	for _, n := range []int{10, 1000, 10000, 100000} {
		rng := rand.New(rand.NewSource(1))
		rules := aclRules(n, rng)
		table, err := NewTernary(rules)
		if err != nil {
			b.Fatal(err)
		}
		const probes = 1 << 10 // fits a cache of 4096 flows
		keys, ids := make([]Key, probes), make([]uint32, 64)
		for i := range keys {
			keys[i] = aclKey(rules, rng)
			table.Mask(&keys[i])
		}
		b.Run(fmt.Sprintf("lookup/%d", n), func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				at := i * 64 & (probes - 1)
				table.LookupVec(keys[at:at+64], ids)
			}
			perFrame(b, 64)
			b.ReportMetric(float64(table.Tuples()), "tuples")
		})
		for _, flows := range []int{128, probes} {
			cache := NewFlowCache(4096)
			b.Run(fmt.Sprintf("cached-%d-flows/%d", flows, n), func(b *testing.B) {
				for i := 0; i < b.N; i++ {
					at := i * 64 & (flows - 1)
					cache.LookupVec(table, keys[at:at+64], ids)
				}
				perFrame(b, 64)
				b.ReportMetric(100*float64(cache.Misses)/float64(cache.Hits+cache.Misses), "%miss")
			})
		}
		small := NewFlowCache(16)
		b.Run(fmt.Sprintf("cached-none/%d", n), func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				at := i * 64 & (probes - 1)
				small.LookupVec(table, keys[at:at+64], ids)
			}
			perFrame(b, 64)
		})
		if n <= 10000 {
			b.Run(fmt.Sprintf("update/%d", n), func(b *testing.B) {
				for i := 0; i < b.N; i++ {
					if _, _, err := table.With(rules[0]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
