package pipeline

import (
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"

	"gswitch/frame"
)

func TestMACKey(t *testing.T) {
	mac := MAC([]byte{0x02, 0x11, 0x22, 0x33, 0x44, 0x55})
	if mac != 0x021122334455 {
		t.Errorf("MAC = %x", mac)
	}
	k := MACKey(0xf123, mac)
	e := FDBEntry{Key: k}
	if e.VID() != 0x123 || e.MAC() != mac {
		t.Errorf("key %x unpacks to VLAN %x, MAC %x", k, e.VID(), e.MAC())
	}
}

func TestFDBLearning(t *testing.T) {
	const gran = frame.Second
	f := NewFDB(100, gran, 0)
	a, b := MACKey(1, 0xa), MACKey(2, 0xa)
	step := func(now frame.Time, key uint64, port uint16, want LearnResult, wantOld uint16) {
		t.Helper()
		if r, old := f.Learn(now, key, port); r != want || old != wantOld {
			t.Fatalf("Learn = %v from %d, want %v from %d", r, old, want, wantOld)
		}
	}
	seen := func(key uint64) (s frame.Time) {
		f.Entries(func(e FDBEntry) bool {
			if e.Key == key {
				s = e.Seen
			}
			return true
		})
		return s
	}
	step(0, a, 3, LearnNew, 3)
	step(0, b, 4, LearnNew, 4)
	step(gran/2, a, 3, LearnRefreshed, 3)
	if s := seen(a); s != 0 {
		t.Errorf("seen %d: refreshed within the granularity", s)
	}
	step(2*gran, a, 3, LearnRefreshed, 3)
	if s := seen(a); s < 2*gran-4096 || s > 2*gran {
		t.Errorf("seen %d, want %d", s, 2*gran)
	}
	step(2*gran, a, 5, LearnMoved, 3)
	if p, ok := f.Lookup(a); p != 5 || !ok {
		t.Errorf("Lookup = %d %v", p, ok)
	}
	if r := f.SetStatic(0, a, 7); r != LearnMoved {
		t.Errorf("SetStatic = %v", r)
	}
	step(3*gran, a, 7, LearnRefreshed, 7)
	step(3*gran, a, 5, LearnStaticConflict, 7)
	if n := f.Age(1000*gran, gran, f.Buckets()); n != 1 {
		t.Errorf("aged %d entries, want the learned one", n)
	}
	if f.Len() != 1 || !f.Delete(a) || f.Delete(a) || f.Len() != 0 {
		t.Error("Delete")
	}
	if p, ok := f.Lookup(a); ok || p != frame.NoPort {
		t.Errorf("deleted entry is found on port %d", p)
	}
}

// A static address finds room in a table that is full of learned ones, until
// static ones alone fill it.
func TestStaticMakesWay(t *testing.T) {
	const size = 64
	f := NewFDB(size, frame.Second, 1)
	f.SetShare(size)
	for i := range uint64(4 * size) {
		f.Learn(frame.Time(i)*frame.Second, MACKey(1, 0x020000000000+i), 3)
	}
	if f.Len() < size/2 {
		t.Fatalf("%d addresses fill no table", f.Len())
	}
	entered, full := 0, 0
	for i := range uint64(2 * size) {
		key, learned := MACKey(1, 0x060000000000+i), f.Len()-entered
		switch r := f.SetStatic(0, key, 7); {
		case r == LearnNew:
			entered++
		case learned > 0 && i < size/4: // sixteen slots cannot all be static yet
			t.Fatalf("static address %d was refused (%v) with %d learned ones in the table", i, r, learned)
		default:
			full++
			continue
		}
		if p, ok := f.Lookup(key); p != 7 || !ok {
			t.Fatalf("static address %d is at port %d, %v", i, p, ok)
		}
	}
	if full == 0 || f.Len() > size || entered < size/2 {
		t.Errorf("%d static addresses were entered and %d refused, %d are there; the table has %d", entered, full, f.Len(), size)
	}
	for i := range uint64(2 * size) {
		f.Delete(MACKey(1, 0x060000000000+i))
		f.Delete(MACKey(1, 0x020000000000+i))
		f.Delete(MACKey(1, 0x020000000000+2*size+i))
	}
	if f.Len() != 0 {
		t.Errorf("%d entries are counted in an empty table", f.Len())
	}
}

// Random histories against a map.
func TestFDBProperty(t *testing.T) {
	type entry struct {
		port   uint16
		static bool
		seen   frame.Time
	}
	for seed := int64(0); seed < 20; seed++ {
		rng := rand.New(rand.NewSource(seed))
		f := NewFDB(300, 0, 0)
		ref := map[uint64]entry{}
		rejected := uint64(0)
		now := frame.Time(0)
		share := 300
		learned := func(port uint16) (n int) {
			for _, e := range ref {
				if e.port == port && !e.static {
					n++
				}
			}
			return n
		}
		for step := 0; step < 5000; step++ {
			now += 4096 * frame.Time(rng.Intn(3))
			key, port := MACKey(uint16(rng.Intn(4)), uint64(rng.Intn(110))), uint16(rng.Intn(5))
			old, known := ref[key]
			switch op := rng.Intn(100); {
			case op < 85:
				want := LearnRefreshed
				switch {
				case !known && (len(ref) == 300 || learned(port) >= share):
					want = LearnFull
					rejected++
				case known && !old.static && old.port != port && learned(port) >= share:
					want = LearnFull // and forgotten where it was
					delete(ref, key)
					rejected++
				case !known:
					want = LearnNew
					ref[key] = entry{port, false, now}
				case old.static && old.port != port:
					want = LearnStaticConflict
				case old.static:
				case old.port != port:
					want = LearnMoved
					ref[key] = entry{port, false, now}
				default:
					ref[key] = entry{port, false, now}
				}
				if got, _ := f.Learn(now, key, port); got != want {
					t.Fatalf("Learn = %v, want %v", got, want)
				}
			case op < 90:
				if got := f.Delete(key); got != known {
					t.Fatalf("Delete = %v", got)
				}
				delete(ref, key)
			case op < 93:
				if !known && len(ref) == 300 {
					break
				}
				f.SetStatic(now, key, port)
				ref[key] = entry{port, true, now}
			case op < 98:
				const maxAge = 4096 * 100
				f.Age(now, maxAge, f.Buckets())
				for k, e := range ref {
					if !e.static && now >= maxAge && e.seen < now-maxAge {
						delete(ref, k)
					}
				}
			case op < 99:
				static := rng.Intn(2) == 0
				f.FlushPort(port, static)
				for k, e := range ref {
					if e.port == port && (static || !e.static) {
						delete(ref, k)
					}
				}
			default:
				f.FlushVLAN(FDBEntry{Key: key}.VID(), false)
				for k, e := range ref {
					if k>>48 == key>>48 && !e.static {
						delete(ref, k)
					}
				}
			}
			if seed%2 == 1 && step%500 == 0 { // what is there beyond a smaller share stays
				share = 1 + rng.Intn(100)
				f.SetShare(share)
			}
			byPort := uint64(0)
			for p := range uint16(5) {
				byPort += f.RejectedAt(p)
				if step%16 == 0 && f.Learned(p) != learned(p) {
					t.Fatalf("seed %d step %d: %d entries learned at port %d, want %d", seed, step, f.Learned(p), p, learned(p))
				}
			}
			if f.Len() != len(ref) || f.Rejected() != rejected || byPort != rejected {
				t.Fatalf("seed %d step %d: %d entries, %d rejected; want %d, %d", seed, step, f.Len(), f.Rejected(), len(ref), rejected)
			}
		}
		f.Entries(func(e FDBEntry) bool {
			if r, ok := ref[e.Key]; !ok || r != (entry{e.Port, e.Static, e.Seen}) {
				t.Fatalf("entry %+v, want %+v", e, r)
			}
			delete(ref, e.Key)
			return true
		})
		if len(ref) != 0 {
			t.Fatalf("%d entries are not shown", len(ref))
		}
	}
}

// The load limit is reached without a bucket overflowing before.
func TestFDBFillsToCapacity(t *testing.T) {
	for _, n := range []int{1, 10, 1000, 1 << 16} {
		f := NewFDB(n, 0, 0)
		rng := rand.New(rand.NewSource(1))
		for i := 0; i < n; i++ {
			if r, _ := f.Learn(0, MACKey(1, rng.Uint64()), uint16(i)); r != LearnNew {
				t.Fatalf("entry %d of %d: %v", i, n, r)
			}
		}
		if r, _ := f.Learn(0, MACKey(2, rng.Uint64()), 1); r != LearnFull || f.Rejected() != 1 || f.Len() != f.Cap() {
			t.Errorf("past the limit: %v, %d rejected, %d of %d", r, f.Rejected(), f.Len(), f.Cap())
		}
	}
}

// However many workers learn at once, no port has more than its share.
func TestFDBShareHoldsAmongWorkers(t *testing.T) {
	f := NewFDB(1000, 0, 0)
	f.SetShare(300)
	var wg sync.WaitGroup
	for w := range uint64(4) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range uint64(1000) {
				f.Learn(0, MACKey(1, w<<32|i), 7)
				if n := f.Learned(7); n > 300+4 { // each of four may be at the look that refuses it
					t.Errorf("%d entries are counted", n)
				}
			}
		}()
	}
	wg.Wait()
	n := 0
	f.Entries(func(FDBEntry) bool { n++; return true })
	if n != 300 || f.Learned(7) != 300 || f.RejectedAt(7) != 3700 {
		t.Errorf("%d entries, %d counted, %d rejected", n, f.Learned(7), f.RejectedAt(7))
	}
	if r, _ := f.Learn(0, MACKey(1, 1<<40), 8); r != LearnNew {
		t.Errorf("another port: %v", r)
	}
}

// Workers learn, look up and age the same few addresses, while others are
// deleted and flushed. A key is only ever learned on one of two ports, so any
// other answer belongs to another key.
func TestFDBConcurrent(t *testing.T) {
	const keys = 64
	f := NewFDB(keys, 0, 0)
	var start, wg sync.WaitGroup
	start.Add(1)
	var clock atomic.Int64
	for w := 0; w < 4; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewSource(int64(w)))
			start.Wait()
			for i := 0; i < 30000; i++ {
				n := rng.Intn(keys)
				key := MACKey(1, uint64(n))
				now := frame.Time(clock.Add(4096))
				switch op := rng.Intn(100); {
				case op < 50:
					f.Learn(now, key, uint16(2*n+rng.Intn(2)))
				case op < 90:
					if p, ok := f.Lookup(key); ok && int(p)/2 != n {
						t.Errorf("key %d is on port %d", n, p)
						return
					}
				case op < 97:
					f.Delete(key)
				case op < 98:
					f.SetStatic(now, key, uint16(2*n))
				case op < 99:
					f.FlushPort(uint16(2*n), true)
				case w == 0:
					f.Age(now, 4096*1000, 8)
				}
			}
		}()
	}
	start.Done()
	wg.Wait()
	// At rest: no address twice, and the count agrees with the slots.
	seen, learned := map[uint64]bool{}, map[uint16]int{}
	f.Entries(func(e FDBEntry) bool {
		if seen[e.Key] {
			t.Errorf("address %x twice", e.Key)
		}
		seen[e.Key] = true
		if !e.Static {
			learned[e.Port]++
		}
		return true
	})
	for p := range uint16(2 * keys) {
		if f.Learned(p) != learned[p] {
			t.Errorf("%d entries learned at port %d, %d counted", learned[p], p, f.Learned(p))
		}
	}
	if len(seen) != f.Len() {
		t.Errorf("%d entries, %d counted", len(seen), f.Len())
	}
	for i := range f.buckets {
		for s := range f.buckets[i].val {
			if f.buckets[i].val[s].Load() == fdbClaimed {
				t.Error("a slot is claimed for ever")
			}
		}
	}
}

func TestFDBDoesNotAllocate(t *testing.T) {
	f := NewFDB(1000, 0, 0)
	keys, ports := make([]uint64, 64), make([]uint16, 64)
	now := frame.Time(0)
	if n := testing.AllocsPerRun(100, func() {
		now += frame.Second
		for i := range keys {
			keys[i] = MACKey(1, uint64(now)+uint64(i))
		}
		f.LearnVec(now, keys, 1)
		f.LookupVec(keys, ports)
		f.Age(now, 3*frame.Second, 16)
		f.FlushPort(1, false)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFDB(b *testing.B) {
	for _, n := range []int{10, 1000, 100000} {
		f := NewFDB(n, frame.Second, 0)
		rng := rand.New(rand.NewSource(1))
		all := make([]uint64, n)
		for i := range all {
			all[i] = MACKey(uint16(rng.Intn(8)), rng.Uint64())
			f.Learn(0, all[i], uint16(i))
		}
		const probes = 1 << 14
		keys, misses, ports := make([]uint64, probes), make([]uint64, probes), make([]uint16, 64)
		for i := range keys {
			keys[i], misses[i] = all[rng.Intn(n)], MACKey(9, rng.Uint64())
		}
		for name, probe := range map[string][]uint64{"hit": keys, "miss": misses} {
			b.Run(fmt.Sprintf("lookup-%s/%d", name, n), func(b *testing.B) {
				for i := 0; i < b.N; i++ {
					at := i * 64 & (probes - 1)
					f.LookupVec(probe[at:at+64], ports)
				}
				perFrame(b, 64)
			})
		}
		b.Run(fmt.Sprintf("refresh/%d", n), func(b *testing.B) {
			var r LearnResult
			for i := 0; i < b.N; i++ {
				r, _ = f.Learn(0, keys[i&(probes-1)], 1)
			}
			_ = r
			perFrame(b, 1)
		})
	}
}
