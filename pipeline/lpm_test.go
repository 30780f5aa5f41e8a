package pipeline

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gaissmai/bart"
)

// internetRoutes returns n distinct IPv4 prefixes with lengths distributed
// roughly as in the Internet's table: mostly /24, few shorter than /16 or
// longer than /24.
func internetRoutes(n int, seed int64) []Route {
	rng := rand.New(rand.NewSource(seed))
	seen := make(map[netip.Prefix]bool, n)
	out := make([]Route, 0, n)
	for len(out) < n {
		var l int
		switch x := rng.Intn(100); {
		case x < 58:
			l = 24
		case x < 70:
			l = 22
		case x < 76:
			l = 23
		case x < 83:
			l = 20 + rng.Intn(2)
		case x < 93:
			l = 16 + rng.Intn(4)
		case x < 96:
			l = 9 + rng.Intn(7)
		default:
			l = 25 + rng.Intn(8)
		}
		p := netip.PrefixFrom(addr4(uint32(1+rng.Intn(223))<<24|rng.Uint32()>>8), l).Masked()
		if !seen[p] {
			seen[p] = true
			out = append(out, Route{p, uint32(rng.Intn(4096))})
		}
	}
	return out
}

// internetRoutes6 does the same for IPv6: 2000::/3, /32 to /48.
func internetRoutes6(n int, seed int64) []Route {
	rng := rand.New(rand.NewSource(seed))
	seen := make(map[netip.Prefix]bool, n)
	out := make([]Route, 0, n)
	for len(out) < n {
		l := [...]int{32, 32, 36, 40, 44, 48, 48, 48, 48, 29, 56, 64}[rng.Intn(12)]
		hi := 0x2000<<48 | uint64(rng.Intn(0x40))<<53 | rng.Uint64()>>11
		p := netip.PrefixFrom(addr6(hi, 0), l).Masked()
		if !seen[p] {
			seen[p] = true
			out = append(out, Route{p, uint32(rng.Intn(4096))})
		}
	}
	return out
}

func addr4(ip uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)})
}

func addr6(hi, lo uint64) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], hi)
	binary.BigEndian.PutUint64(b[8:], lo)
	return netip.AddrFrom16(b)
}

func mustLPM(t testing.TB, routes []Route) *LPM {
	t.Helper()
	l, err := NewLPM(routes)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// inside returns an address of p, random in the host bits.
func inside(p netip.Prefix, rng *rand.Rand) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= byte(rng.Intn(2)) << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func TestLPMVectors(t *testing.T) {
	pfx := netip.MustParsePrefix
	l := mustLPM(t, []Route{
		{pfx("0.0.0.0/0"), 0}, {pfx("10.0.0.0/8"), 1}, {pfx("10.1.0.0/16"), 2}, {pfx("10.1.2.0/24"), 3},
		{pfx("10.1.2.128/25"), 4}, {pfx("10.1.2.255/32"), 5}, {pfx("10.0.0.0/15"), 6},
		{pfx("2001:db8::/32"), 7}, {pfx("2001:db8::1/128"), 8}, {pfx("fe80::/10"), 9},
	})
	for _, c := range []struct {
		ip   string
		want uint32
	}{
		{"9.255.255.255", 0}, {"10.2.0.0", 1}, {"10.0.255.255", 6}, {"10.1.0.0", 2}, {"10.1.2.0", 3}, {"10.1.2.127", 3},
		{"10.1.2.128", 4}, {"10.1.2.254", 4}, {"10.1.2.255", 5}, {"10.1.3.0", 2}, {"11.0.0.0", 0}, {"255.255.255.255", 0},
		{"2001:db8::", 7}, {"2001:db8::1", 8}, {"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", 7}, {"febf::", 9},
		{"2001:db9::", NoEntry}, {"fec0::", NoEntry}, {"::", NoEntry},
	} {
		v, ok := l.Lookup(netip.MustParseAddr(c.ip))
		if !ok {
			v = NoEntry
		}
		if v != c.want {
			t.Errorf("Lookup(%s) = %d, want %d", c.ip, v, c.want)
		}
	}
	if _, ok := l.Lookup(netip.Addr{}); ok {
		t.Error("the zero address has a route")
	}
	if l.Len() != 10 || l.Len4() != 7 || l.Len6() != 3 {
		t.Errorf("Len = %d, %d, %d", l.Len(), l.Len4(), l.Len6())
	}
	if v, ok := l.Get(pfx("10.1.2.128/25")); v != 4 || !ok {
		t.Errorf("Get = %d %v", v, ok)
	}
	if _, ok := l.Get(pfx("10.1.2.128/26")); ok {
		t.Error("Get finds a prefix that is not there")
	}
}

func TestLPMRefuses(t *testing.T) {
	for _, r := range []Route{
		{netip.Prefix{}, 1},
		{netip.MustParsePrefix("::ffff:10.0.0.0/104"), 1},
		{netip.MustParsePrefix("10.0.0.0/8"), MaxRouteValue + 1},
	} {
		if _, err := NewLPM([]Route{r}); err == nil {
			t.Errorf("%v is accepted", r)
		}
	}
}

// Random histories of single and batched changes over a small universe, in
// which prefixes nest deeply, against the route table as reference. Old
// snapshots are looked at again after everything else has happened.
func TestLPMProperty(t *testing.T) {
	for seed := int64(0); seed < 12; seed++ {
		rng := rand.New(rand.NewSource(seed))
		sparse := uint64(0)
		if seed%2 == 1 {
			sparse = 0x0007_0101_0701 // IPv6 routes that are often alone
		}
		randomPrefix := func() netip.Prefix {
			if rng.Intn(2) == 0 {
				ip := 0x0a000000 | rng.Uint32()&0x00030303
				return netip.PrefixFrom(addr4(ip), rng.Intn(33)).Masked()
			}
			hi := 0x2001<<48 | rng.Uint64()&(0x0101_0101_0000|sparse)
			return netip.PrefixFrom(addr6(hi, rng.Uint64()&0x0301), rng.Intn(129)).Masked()
		}
		type version struct {
			lpm *LPM
			ref *bart.Table[uint32]
		}
		now := version{mustLPM(t, nil), &bart.Table[uint32]{}}
		history := []version{now}
		for step := 0; step < 250; step++ {
			var set []Route
			var del []netip.Prefix
			n := 1
			if rng.Intn(20) == 0 {
				n = 100
			}
			for ; n > 0; n-- {
				if p := randomPrefix(); rng.Intn(3) > 0 {
					set = append(set, Route{p, uint32(rng.Intn(8))})
				} else {
					del = append(del, p)
				}
			}
			ref := now.ref
			for _, p := range del {
				ref = ref.DeletePersist(p)
			}
			for _, r := range set {
				ref = ref.InsertPersist(r.Prefix, r.Value)
			}
			next, err := now.lpm.Update(set, del)
			if err != nil {
				t.Fatal(err)
			}
			history = append(history, version{next, ref})
			if rng.Intn(10) == 0 {
				now = history[rng.Intn(len(history))] // two futures of one snapshot
			} else {
				now = history[len(history)-1]
			}
		}
		for i, v := range history {
			if v.lpm.Len() != v.ref.Size() {
				t.Fatalf("seed %d version %d: %d routes, want %d", seed, i, v.lpm.Len(), v.ref.Size())
			}
			for n := 0; n < 200; n++ {
				ip := inside(randomPrefix(), rng)
				want, wantOK := v.ref.Lookup(ip)
				if got, ok := v.lpm.Lookup(ip); got != want || ok != wantOK {
					t.Fatalf("seed %d version %d: Lookup(%v) = %d %v, want %d %v", seed, i, ip, got, ok, want, wantOK)
				}
			}
		}
	}
}

// Enough churn that dead blocks are squeezed out several times.
func TestLPMChurnStaysSmall(t *testing.T) {
	routes := internetRoutes(20000, 1)
	l := mustLPM(t, routes)
	size := len(l.v4.words)
	rng := rand.New(rand.NewSource(2))
	var err error
	for i := 0; i < 20000; i++ {
		r := routes[rng.Intn(len(routes))]
		if rng.Intn(2) == 0 {
			l, err = l.Without(r.Prefix)
		} else {
			l, err = l.With(r.Prefix, uint32(rng.Intn(1000)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(l.v4.words) > 3*size {
		t.Errorf("%d words after churn, %d before", len(l.v4.words), size)
	}
	var all []Route
	for p, v := range l.All() {
		all = append(all, Route{p, v})
	}
	fresh := mustLPM(t, all)
	for i := 0; i < 50000; i++ {
		ip := rng.Uint32()
		if i%2 == 0 {
			ip = binary.BigEndian.Uint32(inside(routes[rng.Intn(len(routes))].Prefix, rng).AsSlice())
		}
		if got, want := l.Lookup4(ip), fresh.Lookup4(ip); got != want {
			t.Fatalf("Lookup4(%v) = %d, want %d as in a fresh table", addr4(ip), got, want)
		}
	}
	used := 0
	for _, mid := range l.v4.mid {
		for _, v := range mid {
			e := l.v4.edit(false)
			e.dead = 0
			e.release(v)
			used += e.dead
		}
	}
	if used+l.v4.dead != len(l.v4.words) {
		t.Errorf("%d words used and %d dead, of %d", used, l.v4.dead, len(l.v4.words))
	}
}

// A reader sees either the old or the new answer, never a mixture, while
// routes change.
func TestLPMSnapshotSwap(t *testing.T) {
	a, b := netip.MustParsePrefix("10.0.0.0/9"), netip.MustParsePrefix("10.128.0.0/9")
	var table atomic.Pointer[LPM]
	table.Store(mustLPM(t, append(internetRoutes(5000, 3), Route{a, 0}, Route{b, 0})))
	probe := func(l *LPM) (uint32, uint32) {
		x, _ := l.Get(a)
		y, _ := l.Get(b)
		return x, y
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			out := make([]uint32, 64)
			ips := make([]uint32, 64)
			for i := range ips {
				ips[i] = 0x0a000000 + uint32(i)*0x01234567
			}
			for !stop.Load() {
				l := table.Load()
				l.Lookup4Vec(ips, out)
				if x, y := probe(l); x != y {
					t.Errorf("torn update: %d and %d", x, y)
					return
				}
			}
		}()
	}
	for v := uint32(1); v < 300; v++ {
		l, err := table.Load().Update([]Route{{a, v}, {b, v}, {netip.PrefixFrom(addr4(v<<20), 30), v}}, nil)
		if err != nil {
			t.Error(err)
		}
		table.Store(l)
	}
	stop.Store(true)
	wg.Wait()
}

func TestLPMLookupsDoNotAllocate(t *testing.T) {
	l := mustLPM(t, append(internetRoutes(1000, 4), internetRoutes6(1000, 4)...))
	ips, out := make([]uint32, 64), make([]uint32, 64)
	ips6 := make([][2]uint64, 64)
	ip := netip.MustParseAddr("2001:db8::1")
	if n := testing.AllocsPerRun(100, func() {
		l.Lookup4Vec(ips, out)
		l.Lookup6Vec(ips6, out)
		l.Lookup(ip)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLPM4(b *testing.B) {
	for _, n := range []int{10, 1000, 100000, 500000} {
		routes := internetRoutes(n, 1)
		l := mustLPM(b, routes)
		rng := rand.New(rand.NewSource(2))
		const probes = 1 << 16
		ips, out := make([]uint32, probes), make([]uint32, 64)
		for i := range ips {
			ips[i] = binary.BigEndian.Uint32(inside(routes[rng.Intn(n)].Prefix, rng).AsSlice())
		}
		b.Run(fmt.Sprintf("lookup/%d", n), func(b *testing.B) {
			var sum uint32
			for i := 0; i < b.N; i++ {
				sum += l.Lookup4(ips[i&(probes-1)])
			}
			out[0] = sum
			perFrame(b, 1)
		})
		b.Run(fmt.Sprintf("vector/%d", n), func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				at := i * 64 & (probes - 1)
				l.Lookup4Vec(ips[at:at+64], out)
			}
			perFrame(b, 64)
		})
		b.Run(fmt.Sprintf("update/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			t := l
			for i := 0; i < b.N; i++ {
				t, _ = t.With(routes[i%n].Prefix, uint32(i&0xffff))
			}
			b.ReportMetric(float64(4*len(l.v4.words))/1e6, "MB-of-blocks")
		})
	}
}

func BenchmarkLPM6(b *testing.B) {
	for _, n := range []int{10, 1000, 100000, 500000} {
		routes := internetRoutes6(n, 1)
		l := mustLPM(b, routes)
		rng := rand.New(rand.NewSource(2))
		const probes = 1 << 16
		ips, out := make([][2]uint64, probes), make([]uint32, 64)
		for i := range ips {
			a := inside(routes[rng.Intn(n)].Prefix, rng).As16()
			ips[i] = [2]uint64{binary.BigEndian.Uint64(a[:8]), binary.BigEndian.Uint64(a[8:])}
		}
		b.Run(fmt.Sprintf("vector/%d", n), func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				at := i * 64 & (probes - 1)
				l.Lookup6Vec(ips[at:at+64], out)
			}
			perFrame(b, 64)
		})
	}
}

// perFrame reports the time for each of the n frames of an iteration.
func perFrame(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/frame")
}
