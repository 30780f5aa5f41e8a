package crossbar

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

// model is what must be true of a crossbar whatever happens to it.
type model struct {
	*rig
	taken, refused, crossed, left uint64 // bytes
	inside                        map[frame.Ref]bool
	egress                        [MaxPorts][8]uint32 // own bytes of each class
	order                         map[[3]uint16][]frame.Ref
	outChunks                     [MaxPorts]uint32
	most                          uint32 // chunks of a frame
}

// behind returns how many frames crossed to an egress port, or are crossing.
func (m *model) behind(j int) (n int) {
	for _, r := range m.out {
		if int(m.pool.Meta(r).OutPort) == j {
			n++
		}
	}
	return n + int(m.x.busyOut>>j&1)
}

// counts returns what a frame counts for at its egress port.
func (m *model) counts(r frame.Ref) uint32 { return m.x.outCost(m.pool.Meta(r).Wire) }

func (m *model) checkIngress(t *rapid.T) {
	var own, cells [MaxPorts][8]uint32
	var lossy [MaxPorts]uint32
	for r := range m.inside {
		meta := m.pool.Meta(r)
		own[meta.InPort][meta.Class] += meta.Wire
		if n := m.x.cfg.Chunks.Bytes; n != 0 {
			cells[meta.InPort][meta.Class] += (meta.Wire + n - 1) / n
		}
		if m.x.cfg.Lossless>>meta.Class&1 == 0 || meta.Flags&frame.IsClone != 0 {
			lossy[meta.InPort] += meta.Wire
		}
	}
	for i := range own {
		sum, in := uint32(0), &m.x.in[i]
		for c := 7; c >= 0; c-- {
			if sum += own[i][c]; in.drain(uint8(c)) != sum {
				t.Fatalf("port %d class %d: %d drain bytes, want %d", i, c, in.drain(uint8(c)), sum)
			}
			lossless, wants := m.x.cfg.Lossless>>c&1 != 0, in.wants>>c&1 != 0
			// Chunks may hold up the end of a pause, as long as there is anything.
			done := sum <= m.x.cfg.Unpause && (m.x.cfg.Chunks.Bytes == 0 || in.chunks+in.spare == 0)
			switch {
			case wants && (!lossless || done), !wants && lossless && (sum >= m.x.cfg.Pause || in.pressed>>c&1 != 0):
				t.Fatalf("port %d class %d: %d drain bytes, %d chunks, %d of headroom, lossless %t, pause %t", i, c, sum, in.chunks, in.spare, lossless, wants)
			}
		}
		if sum > m.x.cfg.Ingress || in.lossy != lossy[i] || m.x.cfg.Lossy != 0 && lossy[i] > m.x.cfg.Lossy {
			t.Fatalf("port %d holds %d bytes, of them lossy %d (said to be %d)", i, sum, lossy[i], in.lossy)
		}
		if in.cells != cells[i] {
			t.Fatalf("port %d has %v chunks, want %v", i, in.cells, cells[i])
		}
	}
	m.checkChunks(t)
}

// checkChunks: no port holds more than its own and what others leave, and all of them
// no more than there are.
func (m *model) checkChunks(t *rapid.T) {
	c, used := m.x.cfg.Chunks, uint32(0)
	if c.Bytes == 0 {
		return
	}
	for i := range m.x.in {
		in, sum := &m.x.in[i], uint32(0)
		for _, n := range in.cells {
			sum += n
		}
		used += in.chunks - min(in.chunks, c.Own)
		if in.chunks+in.spare != sum || in.spare > c.Headroom || in.spare == 0 && in.pressed != 0 {
			t.Fatalf("port %d: %d chunks and %d of %d of headroom are %d; pressed %#x", i, in.chunks, in.spare, c.Headroom, sum, in.pressed)
		}
	}
	if m.x.memory.used != used || used > c.Shared {
		t.Fatalf("%d chunks are used of %d (said to be %d)", used, c.Shared, m.x.memory.used)
	}
	for j := range m.x.out {
		if n := m.outChunks[j]; n > c.Egress && n > m.most { // an empty queue takes any frame
			t.Fatalf("egress port %d has %d chunks of %d", j, n, c.Egress)
		}
	}
}

func (m *model) checkEgress(t *rapid.T) {
	for j := range m.egress {
		o := &m.x.out[j]
		sum := uint32(0)
		for c := 7; c >= 0; c-- {
			sum += m.egress[j][c]
			want := sum
			if m.x.busyOut>>j&1 != 0 && int(o.class) >= c {
				want += m.counts(o.frame)
			}
			if o.drain(uint8(c)) != want {
				t.Fatalf("egress port %d class %d: %d drain bytes, want %d", j, c, o.drain(uint8(c)), want)
			}
			if m.x.cfg.Chunks.Bytes != 0 && m.behind(j) == 1 { // where chunks count, an empty queue takes any frame
				continue
			}
			if o.drain(uint8(c)) > m.x.cfg.Egress && (m.x.cfg.TotalCap || c == 7) || c == 0 && o.total > m.x.cfg.Egress+m.x.cfg.Reserve {
				t.Fatalf("egress port %d class %d holds %d bytes", j, c, o.drain(uint8(c)))
			}
		}
	}
}

// checkIdle: no egress port is idle that could take a frame.
func (m *model) checkIdle(t *rapid.T) {
	x := m.x
	if bits.OnesCount64(x.busyIn) != bits.OnesCount64(x.busyOut) {
		t.Fatalf("ingress ports %b and egress ports %b are busy", x.busyIn, x.busyOut)
	}
	for i := range x.in {
		if x.busyIn>>i&1 != 0 {
			continue
		}
		for c := range 8 {
			r := x.in[i].fifo[c].Head()
			if r == frame.Nil {
				continue
			}
			meta := m.pool.Meta(r)
			if x.busyOut>>meta.OutPort&1 == 0 && x.room(&x.out[meta.OutPort], c, m.counts(r)) && x.isFirst(&x.in[i], c) {
				t.Fatalf("class %d of port %d waits for port %d, which is idle", c, i, meta.OutPort)
			}
		}
	}
}

// TestConservation: bytes that were taken in are inside or crossed, each queue
// is counted right, lists stay in order, nothing that could cross waits.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Ingress: rapid.Uint32Range(4000, 40_000).Draw(t, "ingress"), Egress: rapid.Uint32Range(1600, 20_000).Draw(t, "egress"),
			Reserve: rapid.Uint32Range(0, 5000).Draw(t, "reserve"), TotalCap: rapid.Bool().Draw(t, "total"), SkipBlocked: rapid.Bool().Draw(t, "skip"),
			Rate: 4 * gigabit, Overhead: 24, Latency: rapid.SampledFrom([]frame.Time{0, 0, 4224}).Draw(t, "latency"),
			Lossless: rapid.Byte().Draw(t, "lossless"), Pause: 3500, Unpause: 1200}
		cfg.Lossy = rapid.SampledFrom([]uint32{0, 3500}).Draw(t, "lossy")
		if rapid.Bool().Draw(t, "chunks") {
			cfg.Chunks = Divide(rapid.SampledFrom([]uint32{256, 2048}).Draw(t, "chunk"), rapid.IntRange(30, 400).Draw(t, "memory"), 6, 6, rapid.Uint32Range(0, 40).Draw(t, "headroom"))
		}
		g := newRig(&testing.T{}, cfg)
		m := &model{rig: g, inside: map[frame.Ref]bool{}, order: map[[3]uint16][]frame.Ref{}}
		chunks := func(r frame.Ref) uint32 {
			if cfg.Chunks.Bytes == 0 {
				return 0
			}
			return (g.pool.Meta(r).Wire + cfg.Chunks.Bytes - 1) / cfg.Chunks.Bytes
		}
		ports := rapid.Uint16Range(1, 6).Draw(t, "ports")
		cross := func(until frame.Time) {
			for r, at := nextOne(g.x, until); r != frame.Nil; r, at = nextOne(g.x, until) {
				meta := g.pool.Meta(r)
				if !m.inside[r] || at > until || at < g.now {
					t.Fatalf("frame %d crossed at %d", r, at)
				}
				key := [3]uint16{meta.InPort, uint16(meta.Class)}
				if m.order[key][0] != r {
					t.Fatalf("frame %d overtook another of its class at port %d", r, meta.InPort)
				}
				m.order[key] = m.order[key][1:]
				delete(m.inside, r)
				m.crossed += uint64(meta.Wire)
				m.egress[meta.OutPort][meta.Class] += m.counts(r)
				m.outChunks[meta.OutPort] += chunks(r)
				m.most = max(m.most, chunks(r))
				g.out = append(g.out, r)
			}
			g.now = until
		}
		depart := func(k int) {
			r := g.out[k]
			meta := g.pool.Meta(r)
			m.egress[meta.OutPort][meta.Class] -= m.counts(r)
			m.outChunks[meta.OutPort] -= chunks(r)
			m.left += uint64(meta.Wire)
			g.x.Leave(g.now, []frame.Ref{r})
			g.pool.Free(r)
			g.out = append(g.out[:k], g.out[k+1:]...)
		}
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				r := g.frame(rapid.Uint16Range(0, ports-1).Draw(t, "in"), rapid.Uint16Range(0, ports-1).Draw(t, "out"), rapid.Uint8Range(0, 7).Draw(t, "class"), rapid.Uint32Range(60, 1514).Draw(t, "bytes"))
				meta := g.pool.Meta(r)
				if rapid.IntRange(0, 9).Draw(t, "clone") == 0 {
					meta.Flags |= frame.IsClone
				}
				if !arriveOne(g.x, g.now, r) {
					m.refused += uint64(meta.Wire)
					g.pool.Free(r)
					return
				}
				m.taken += uint64(meta.Wire)
				m.inside[r] = true
				key := [3]uint16{meta.InPort, uint16(meta.Class)}
				m.order[key] = append(m.order[key], r)
			},
			"time":  func(t *rapid.T) { cross(g.now + rapid.SampledFrom([]frame.Time{1, 500, 3000, 20_000}).Draw(t, "wait")) },
			"event": func(*rapid.T) { cross(max(g.now, min(g.x.Due(), g.now+1e6))) },
			"leave": func(t *rapid.T) {
				if len(g.out) > 0 {
					depart(rapid.IntRange(0, len(g.out)-1).Draw(t, "which"))
				}
			},
			"": func(t *rapid.T) {
				m.checkIngress(t)
				m.checkEgress(t)
				m.checkIdle(t)
				var inside uint64
				for r := range m.inside {
					inside += uint64(g.pool.Meta(r).Wire)
				}
				if m.taken != inside+m.crossed || g.x.Held() != len(m.inside) {
					t.Fatalf("%d bytes came in, %d are inside in %d frames (said to be %d), %d crossed", m.taken, inside, len(m.inside), g.x.Held(), m.crossed)
				}
			},
		})
		// When all outputs take what there is, everything crosses.
		for range 10_000 {
			for len(g.out) > 0 {
				depart(0)
			}
			if g.x.Due() == frame.Never {
				break
			}
			cross(g.x.Due())
		}
		if len(m.inside) != 0 || m.left != m.taken {
			t.Fatalf("%d frames stay inside; %d bytes left of %d", len(m.inside), m.left, m.taken)
		}
	})
}
