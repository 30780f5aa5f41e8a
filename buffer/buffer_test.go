package buffer

import (
	"math"
	"strings"
	"testing"

	"gswitch/frame"
)

var testLink = Link{Rate: 10e9, Delay: 500, MaxFrame: 1514, Overhead: 24, Response: 500}

func mustNew(t testing.TB, c Config) *Buffer {
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func meta(in uint16, class uint8, out uint16, queue uint8, wire uint32) *frame.Meta {
	return &frame.Meta{InPort: in, Class: class, OutPort: out, Queue: queue, Wire: wire}
}

// check proves the invariants against the frames that are held.
func check(t testing.TB, b *Buffer, held map[*frame.Meta]bool) {
	var sum, used, reserves, groups, beyond, chunks, inGroups, inQueues uint64
	for m := range held {
		sum += uint64(m.Cost)
		chunks += b.chunksOf(uint64(m.Cost))
	}
	for row := range b.groups {
		for i := range b.groups[row] {
			g, q := &b.groups[row][i], &b.queues[row][i]
			used += g.shared
			groups += g.reserved + g.headroom + g.shared
			reserves += q.reserved
			beyond += q.beyond
			inGroups += g.chunks + g.spare
			inQueues += q.chunks
		}
	}
	waiting, shared := b.spare, uint64(0)
	for _, n := range b.waiting {
		waiting, shared = waiting+n, shared+b.beyondOwn(n)
	}
	if waiting != chunks || b.chunks != shared || inGroups != chunks || inQueues != chunks {
		t.Fatalf("%d chunks, %d of them shared (frames %d, ports %d), groups %d, queues %d", waiting, b.chunks, chunks, shared, inGroups, inQueues)
	}
	if b.held != sum || b.used != used || groups+reserves != sum || beyond != groups {
		t.Fatalf("held %d (frames %d), shared %d (groups %d), groups %d + queue reserves %d, beyond %d",
			b.held, sum, b.used, used, groups, reserves, beyond)
	}
	if b.held > b.size {
		t.Fatalf("%d bytes in a buffer of %d", b.held, b.size)
	}
	if b.total.AdmittedBytes != b.total.ReleasedBytes+b.held || b.total.AdmittedFrames != b.total.ReleasedFrames+uint64(len(held)) {
		t.Fatalf("%+v with %d held", b.total, b.held)
	}
}

// randomConfig is a buffer for one to three ports with two lossless classes.
func randomConfig(rng *frame.Rand, chunks Chunks) Config {
	c := Config{Chunks: chunks, Size: 400_000 + uint64(rng.Uint32n(100_000)), Cell: []uint32{0, 1, 64, 208}[rng.Uint32n(4)], Ports: make([]PortConfig, 1+rng.Uint32n(3))}
	for p := range c.Ports {
		c.Ports[p].Link = testLink
		for i := range c.Ports[p].Groups {
			g, q := &c.Ports[p].Groups[i], &c.Ports[p].Queues[i]
			g.Reserve, q.Reserve = uint64(rng.Uint32n(3))*1000, uint64(rng.Uint32n(3))*1000
			g.Limit.Alpha, q.Limit.Alpha = float64(rng.Uint32n(3))*0.4, float64(rng.Uint32n(3))*0.4
			g.Limit.Bytes, q.Limit.Bytes = uint64(rng.Uint32n(2))*20000, uint64(rng.Uint32n(2))*20000
			if i < 2 {
				g.Lossless, g.XONOffset = true, uint64(rng.Uint32n(3000))
			}
		}
	}
	return c
}

// Random frames, classes, pools and reconfigurations: the accounts always
// agree with what is held, and end at zero.
func TestAccountsProperty(t *testing.T) {
	for seed := uint64(0); seed < 150; seed++ {
		rng := frame.NewRand(seed)
		chunks := Chunks{}
		if seed%2 == 1 {
			chunks = Chunks{Bytes: 256 << (seed % 4), All: 900, Lossy: 700}
		}
		random := func() Config { return randomConfig(&rng, chunks) }
		b := mustNew(t, random())
		held := map[*frame.Meta]bool{}
		var list []*frame.Meta
		for i := 0; i < 4000; i++ {
			switch rng.Uint32n(9) {
			case 0, 1, 2, 3, 4:
				m := meta(uint16(rng.Uint32n(4)), uint8(rng.Uint32n(8)), uint16(rng.Uint32n(4)), uint8(rng.Uint32n(8)), 60+rng.Uint32n(1455))
				if rng.Uint32n(10) == 0 {
					m.InPort = frame.NoPort
				}
				if rng.Uint32n(10) == 0 {
					m.Flags |= frame.IsClone
				}
				if why := b.Admit(m); why == frame.Keep {
					held[m] = true
					list = append(list, m)
				} else if m.Cost != 0 || m.Pool != PoolNone {
					t.Fatal("a refused frame is charged")
				}
			case 5, 6, 7:
				if len(list) > 0 {
					k := rng.Uint32n(uint32(len(list)))
					m := list[k]
					list[k] = list[len(list)-1]
					list = list[:len(list)-1]
					delete(held, m)
					m.Queue = uint8(rng.Uint32n(8)) // where it moved meanwhile
					b.Release(m)
					b.Release(m) // once more does nothing
				}
			default:
				b.Sweep()
				if rng.Uint32n(100) == 0 {
					// A smaller buffer may hold more than its size until it drains.
					if c := random(); c.Size >= b.held {
						if err := b.Reconfigure(c); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if i%16 == 0 {
				check(t, b, held)
			}
		}
		for m := range held {
			b.Release(m)
		}
		clear(held)
		check(t, b, held)
		for row := range b.want {
			if b.want[row] != 0 {
				t.Fatalf("seed %d: an empty buffer wants pause", seed)
			}
		}
	}
}

func TestDynamicThresholdAlone(t *testing.T) {
	// With alpha a lone queue may take alpha/(1+alpha) of the pool.
	for alpha, want := range map[float64]float64{1: 0.5, 0.125: 1. / 9, 2: 2. / 3, AlphaForShare(0.11): 0.11, 0.11: 0.11 / 1.11} {
		c := Config{Size: 32 << 20, Ports: make([]PortConfig, 2)}
		c.Ports[1].Queues[3].Limit.Alpha = alpha
		b := mustNew(t, c)
		n := uint64(0)
		for {
			why := b.Admit(meta(0, 0, 1, 3, 1000))
			if why == frame.QueueTail {
				break
			} else if why != frame.Keep {
				t.Fatal(why)
			}
			n += 1000
		}
		if got := float64(n) / float64(c.Size); math.Abs(got-want) > 0.0002 {
			t.Errorf("alpha %v: %.4f of the pool, want %.4f", alpha, got, want)
		}
	}
}

func TestReasons(t *testing.T) {
	c := Config{Size: 100_000, Ports: make([]PortConfig, 2)}
	c.Ports[0].Groups[1].Limit.Bytes = 5000
	c.Ports[1].Queues[2].Limit.Bytes = 3000
	c.Ports[1].Queues[2].Reserve = 2000
	b := mustNew(t, c)
	for i, want := range []frame.Reason{0, 0, 0, 0, 0, frame.QueueTail} {
		if why := b.Admit(meta(0, 0, 1, 2, 1000)); why != want {
			t.Fatalf("frame %d: %v", i, why)
		}
	}
	for i, want := range []frame.Reason{0, 0, 0, 0, 0, frame.IngressLimit} {
		if why := b.Admit(meta(0, 1, 1, 0, 1000)); why != want {
			t.Fatalf("frame %d: %v", i, why)
		}
	}
	for b.held+1000 <= 100_000 {
		if why := b.Admit(meta(0, 0, 0, 0, 1000)); why != frame.Keep {
			t.Fatal(why, b.held)
		}
	}
	if why := b.Admit(meta(0, 0, 0, 0, 1000)); why != frame.BufferFull {
		t.Fatal(why)
	}
}

// dirty returns the ports that NextDirty gives out.
func dirty(b *Buffer) (v []uint16) {
	for {
		p, ok := b.NextDirty()
		if !ok {
			return v
		}
		v = append(v, p)
	}
}

// XOFF at the threshold, XON at the offset below, with the numbers of the
// DeTail paper: pause at 8192, unpause at 4557 bytes.
func TestXOFFXON(t *testing.T) {
	c := Config{Size: 1 << 20, Ports: make([]PortConfig, 70)}
	c.Ports[65].Link = testLink
	c.Ports[65].Groups[3] = Group{Lossless: true, Limit: Threshold{Bytes: 8192}, XONOffset: 8192 - 4557}
	b := mustNew(t, c)
	var held []*frame.Meta
	for n := 0; n < 12; n++ {
		if want := n >= 9; (b.Want(65) == 1<<3) != want {
			t.Fatalf("after %d frames of 1000 bytes: want %08b", n, b.Want(65))
		}
		m := meta(65, 3, 1, 3, 1000)
		if b.Admit(m) != frame.Keep || m.Flags&frame.Lossless == 0 {
			t.Fatal("a lossless frame was refused")
		}
		held = append(held, m)
	}
	if v := dirty(b); len(v) != 1 || v[0] != 65 || len(dirty(b)) != 0 {
		t.Fatal(v)
	}
	for n := 12; n > 0; n-- {
		if want := n > 4; (b.Want(65) != 0) != want {
			t.Fatalf("with %d frames left: want %08b", n, b.Want(65))
		}
		b.Release(held[n-1])
	}
	if v := dirty(b); len(v) != 1 || v[0] != 65 {
		t.Fatal(v)
	}
	var s Snapshot
	b.Snapshot(&s, false)
	if g := s.Ports[65].Groups[3]; g.XOFFs != 1 || g.Peak != 12000 || g.HeadroomPeak == 0 || g.Shared != 0 {
		t.Fatalf("%+v", g)
	}
}

// A threshold that falls because others fill the pool is noticed by Sweep,
// and one that rises too.
func TestSweep(t *testing.T) {
	c := Config{Size: 1 << 20, Ports: make([]PortConfig, 2)}
	c.Ports[0].Link = testLink
	c.Ports[0].Groups[3] = Group{Lossless: true, Limit: Threshold{Alpha: 0.125}}
	b := mustNew(t, c)
	for i := 0; i < 80; i++ {
		b.Admit(meta(0, 3, 1, 3, 1000))
	}
	if b.Want(0) != 0 {
		t.Fatal("too early")
	}
	var others []*frame.Meta
	for i := 0; i < 600; i++ {
		m := meta(1, 0, 1, 0, 1000)
		b.Admit(m)
		others = append(others, m)
	}
	if b.Sweep(); b.Want(0) != 1<<3 || len(dirty(b)) != 1 {
		t.Fatal("the fallen threshold was not noticed")
	}
	for _, m := range others {
		b.Release(m)
	}
	if b.Sweep(); b.Want(0) != 0 || len(dirty(b)) != 1 {
		t.Fatal("the risen threshold was not noticed")
	}
}

// Where frames of a group alone count for it there is nothing to sweep.
func TestOwnFrames(t *testing.T) {
	for _, own := range []bool{false, true} {
		c := Config{Size: 1 << 20, OwnFrames: own, Ports: make([]PortConfig, 2)}
		c.Ports[0].Link = testLink
		c.Ports[0].Groups[3] = Group{Lossless: true, Limit: Threshold{Alpha: 0.125}}
		b := mustNew(t, c)
		if b.Admit(meta(1, 0, 1, 0, 1000)); b.Unswept() == own {
			t.Errorf("own frames alone %v: unswept %v after a frame of another group", own, b.Unswept())
		}
	}
}

// Copies are lossy and leave the headroom alone.
func TestClonesStayOutOfHeadroom(t *testing.T) {
	c := Config{Size: 200_000, Ports: make([]PortConfig, 1)}
	c.Ports[0].Link = testLink
	c.Ports[0].Groups[3] = Group{Lossless: true, Limit: Threshold{Bytes: 5000}}
	b := mustNew(t, c)
	refused := false
	for i := 0; i < 1000; i++ {
		m := meta(0, 3, 0, 3, 1000)
		m.Flags = frame.IsClone
		refused = b.Admit(m) == frame.IngressLimit || refused
	}
	var s Snapshot
	if b.Snapshot(&s, true); !refused || s.Ports[0].Groups[3].Headroom != 0 {
		t.Fatalf("%+v", s.Ports[0].Groups[3])
	}
}

func TestUnsafeConfigs(t *testing.T) {
	need := Headroom(testLink, 0).Total()
	for name, f := range map[string]func(*Config) string{
		"zero size":     func(c *Config) string { c.Size = 0; return "size 0" },
		"no link":       func(c *Config) string { c.Ports[0].Link.Rate = 0; return "needs the rate" },
		"small room":    func(c *Config) string { c.Ports[0].Groups[3].Headroom = need - 1; return "at least" },
		"lossy room":    func(c *Config) string { c.Ports[0].Groups[1].Headroom = 9; return "lossless" },
		"small buffer":  func(c *Config) string { c.Size = need; return "make it at least" },
		"long cable":    func(c *Config) string { c.Ports[0].Link.Delay = frame.Second; return "headroom" },
		"negative":      func(c *Config) string { c.Ports[0].Link.Delay = -1; return "negative" },
		"huge reserve":  func(c *Config) string { c.Ports[0].Queues[2].Reserve = 1 << 60; return "queue 2" },
		"huge reserves": func(c *Config) string { c.Ports[0].Groups[2].Reserve = 1 << 63; return "class 2" },
		"static XOFF":   func(c *Config) string { c.Ports[0].Groups[3].Limit.Bytes = 1 << 30; return "at most" },
		"XON offset": func(c *Config) string {
			c.Ports[0].Groups[3].Limit.Bytes, c.Ports[0].Groups[3].XONOffset = 100, 101
			return "XON offset"
		},
		"alpha": func(c *Config) string { c.Ports[0].Queues[3].Limit.Alpha = math.NaN(); return "alpha" },
	} {
		c := Config{Size: 1 << 20, Ports: make([]PortConfig, 1)}
		c.Ports[0].Link = testLink
		c.Ports[0].Groups[3].Lossless = true
		if _, err := New(c); err != nil {
			t.Fatal(err)
		}
		want := f(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A failed change leaves everything as it was.
	c := Config{Size: 1 << 20, Ports: make([]PortConfig, 1)}
	b := mustNew(t, c)
	if b.Reconfigure(Config{}) == nil || b.size != 1<<20 {
		t.Fatal("a bad configuration took effect")
	}
}

func TestNoAllocation(t *testing.T) {
	b, v := loadedBuffer(t)
	var s Snapshot
	b.Snapshot(&s, false)
	if n := testing.AllocsPerRun(100, func() {
		cycle(b, v)
		b.Sweep()
		b.NextDirty()
		b.Snapshot(&s, true)
	}); n != 0 {
		t.Fatal(n)
	}
}

func loadedBuffer(t testing.TB) (*Buffer, []frame.Meta) {
	c := Config{Size: 32 << 20, Ports: make([]PortConfig, 8)}
	for p := range c.Ports {
		c.Ports[p].Link = testLink
		for i := range c.Ports[p].Groups {
			c.Ports[p].Groups[i].Lossless = i == 3 || i == 4
			c.Ports[p].Groups[i].Limit.Alpha = 0.125
			c.Ports[p].Queues[i].Limit.Alpha = 1
		}
	}
	v := make([]frame.Meta, 64)
	for i := range v {
		v[i] = *meta(uint16(i*3&7), uint8(i*5&7), uint16(i&7), uint8(i*5&7), 64)
	}
	return mustNew(t, c), v
}

func cycle(b *Buffer, v []frame.Meta) {
	for i := range v {
		b.Admit(&v[i])
	}
	for i := range v {
		b.Release(&v[i])
	}
}

func BenchmarkAdmitRelease(bb *testing.B) {
	b, v := loadedBuffer(bb)
	bb.ResetTimer()
	for i := 0; i < bb.N; i++ {
		cycle(b, v)
	}
	bb.ReportMetric(float64(bb.Elapsed().Nanoseconds())/float64(bb.N)/64, "ns/frame")
}

func BenchmarkSweep(bb *testing.B) {
	b, v := loadedBuffer(bb)
	for i := 0; i < bb.N; i++ {
		b.Admit(&v[i&63])
		b.Sweep()
		b.Release(&v[i&63])
	}
}

// What Try refuses is neither charged nor counted; what it takes is like
// what Admit takes.
func TestTry(t *testing.T) {
	c := Config{Size: 10_000, Ports: make([]PortConfig, 1)}
	c.Ports[0].Queues[1].Reserve = 1000
	c.Ports[0].Groups[2].Limit.Bytes, c.Ports[0].Queues[6].Limit.Bytes = 500, 500
	b := mustNew(t, c)
	m := meta(0, 2, 0, 6, 600)
	m.Cost, m.Pool = 7, 7
	if why := b.Try(m); why != frame.IngressLimit || m.Cost != 0 || m.Pool != PoolNone {
		t.Fatal(why, m.Cost, m.Pool)
	}
	if b.total != (Totals{}) {
		t.Fatalf("%+v", b.total)
	}
	m.Queue = 1
	if why := b.Try(m); why != frame.Keep || m.Cost != 600 || b.total.AdmittedFrames != 1 {
		t.Fatal(why, m.Cost, b.total)
	}
	check(t, b, map[*frame.Meta]bool{m: true})
	b.Release(m)
	check(t, b, nil)
	m.Queue = 6
	if why := b.Admit(m); why != frame.IngressLimit || b.total.RefusedFrames != 1 || b.total.RefusedBytes != 600 || b.groups[1][2].drops != 1 || b.queues[1][6].drops != 1 {
		t.Fatal(why, b.total)
	}
}
