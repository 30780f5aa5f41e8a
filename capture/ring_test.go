package capture

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"gswitch/frame"
)

// Whatever goes in comes out, in order and unharmed, at any size and fill.
func TestRingKeepsRecords(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := NewRing(4096)
	type entry struct {
		rec  Record
		data []byte
	}
	var want []entry
	refused, wrapped := 0, 0
	for i := range 20000 {
		if rng.IntN(2) == 0 {
			data := make([]byte, rng.IntN(900))
			for k := range data {
				data[k] = byte(rng.Uint32())
			}
			rec := Record{Time: int64(i), Iface: rng.Uint32(), Wire: rng.Uint32(), Dir: Dir(rng.IntN(4)), Reason: frame.Reason(rng.IntN(int(frame.NumReasons)))}
			if r.Put(rec, data) {
				want = append(want, entry{rec, data})
			} else {
				refused++
			}
			continue
		}
		rec, data, ok := r.Next()
		if ok != (len(want) > 0) {
			t.Fatalf("step %d: Next says %v with %d records inside", i, ok, len(want))
		}
		if !ok {
			continue
		}
		if rec != want[0].rec || !bytes.Equal(data, want[0].data) {
			t.Fatalf("step %d: got %+v with %d bytes, want %+v with %d", i, rec, len(data), want[0].rec, len(want[0].data))
		}
		if r.reading > uint64(recordHeader+len(data)+7) {
			wrapped++
		}
		r.Release()
		want = want[1:]
	}
	if refused == 0 || wrapped == 0 {
		t.Errorf("the ring was full %d times and wrapped with a gap %d times; the test wants both", refused, wrapped)
	}
}

func TestRingAcrossGoroutines(t *testing.T) {
	r := NewRing(8192)
	const n = 50000
	go func() {
		b := make([]byte, 300)
		for i := range n {
			d := b[:i%len(b)]
			for k := range d {
				d[k] = byte(i)
			}
			for !r.Put(Record{Time: int64(i)}, d) {
			}
		}
	}()
	for i := 0; i < n; {
		rec, d, ok := r.Next()
		if !ok {
			continue
		}
		if rec.Time != int64(i) || len(d) != i%300 || len(d) > 0 && d[len(d)-1] != byte(i) {
			t.Fatalf("record %d is %+v with %d bytes", i, rec, len(d))
		}
		r.Release()
		i++
	}
}

func TestTapAllocatesNothing(t *testing.T) {
	f, err := ParseFilter("udp port 4791 or host 10.0.0.1 or less 100")
	if err != nil {
		t.Fatal(err)
	}
	tap := &Tap{ring: NewRing(1 << 20), filter: f, snap: 128}
	a := frame.MustArena(64, 2048, 256)
	p := frame.NewPool(a)
	v := []frame.Ref{p.New(make([]byte, 60)), p.New(make([]byte, 1000))}
	if n := testing.AllocsPerRun(100, func() {
		tap.Frames(1, a, 0, DirIn, v)
		for _, _, ok := tap.ring.Next(); ok; _, _, ok = tap.ring.Next() {
			tap.ring.Release()
		}
	}); n != 0 {
		t.Errorf("%v allocations per vector", n)
	}
	if c := tap.captured.Load(); c == 0 || tap.dropped.Load() != 0 {
		t.Errorf("captured %d, dropped %d", c, tap.dropped.Load())
	}
}

func BenchmarkTap(b *testing.B) {
	tap := &Tap{ring: NewRing(1 << 20), snap: 128}
	a := frame.MustArena(64, 2048, 256)
	p := frame.NewPool(a)
	var v []frame.Ref
	for range 32 {
		v = append(v, p.New(make([]byte, 1000)))
	}
	for b.Loop() {
		tap.Frames(1, a, 0, DirIn, v)
		for _, _, ok := tap.ring.Next(); ok; _, _, ok = tap.ring.Next() {
			tap.ring.Release()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/frame")
}
