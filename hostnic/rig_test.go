package hostnic

import (
	"fmt"
	"net/netip"
	"testing"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// rig is a network of nodes and links of its own, stepped in the order of
// time: small, slow and plain, so that what it says of the NIC does not
// depend on an engine.
type rig struct {
	t     testing.TB
	pool  *frame.Pool
	now   frame.Time
	nodes []*rigNode
	fly   []flying // in the order of sending; looked through for the earliest
	// lose, if set, decides which frames vanish on a link; touch may change them.
	lose  func(m *frame.Meta, b []byte) bool
	seen  func(from int, m *frame.Meta, b []byte) // each frame at its departure
	delay frame.Time
	// If set: which frames come twice, and how much longer one is under way.
	twice  func() bool
	jitter func() frame.Time
}

type rigNode struct {
	step frame.Stepper
	peer []int // node*16+port for each port, -1 none
}

type flying struct {
	at   frame.Time
	to   int
	port uint16
	r    frame.Ref
}

func newRig(t testing.TB, chunks, size int) *rig {
	return &rig{t: t, pool: frame.NewPool(frame.MustArena(chunks, size, 32)), delay: 1000}
}

func (g *rig) add(s frame.Stepper, ports int) int {
	n := &rigNode{step: s}
	for range ports {
		n.peer = append(n.peer, -1)
	}
	g.nodes = append(g.nodes, n)
	return len(g.nodes) - 1
}

func (g *rig) link(a, pa, b, pb int) {
	g.nodes[a].peer[pa] = b*16 + pb
	g.nodes[b].peer[pb] = a*16 + pa
	g.nodes[a].step.SetLink(g.now, uint16(pa), true)
	g.nodes[b].step.SetLink(g.now, uint16(pb), true)
}

// run steps everything until the given instant.
func (g *rig) run(until frame.Time) {
	var out [8]frame.Ref
	for {
		next := frame.Never
		for _, f := range g.fly {
			next = min(next, f.at)
		}
		for _, n := range g.nodes {
			next = min(next, n.step.TimerWake(g.now))
			for p := range n.peer {
				next = min(next, n.step.PortWake(g.now, uint16(p)))
			}
		}
		if next > until {
			g.now = until
			return
		}
		g.now = max(g.now, next)
		g.deliver()
		for id, n := range g.nodes {
			if n.step.TimerWake(g.now) <= g.now {
				n.step.Advance(g.now)
			}
			for p, peer := range n.peer {
				if peer < 0 || n.step.PortWake(g.now, uint16(p)) > g.now {
					continue
				}
				k := n.step.Transmit(g.now, uint16(p), out[:])
				for _, r := range out[:k] {
					g.depart(id, peer, r)
				}
			}
		}
	}
}

// deliver hands over what has arrived.
func (g *rig) deliver() {
	for i := 0; i < len(g.fly); {
		f := g.fly[i]
		if f.at > g.now {
			i++
			continue
		}
		g.fly = append(g.fly[:i], g.fly[i+1:]...)
		one := [1]frame.Ref{f.r}
		g.nodes[f.to].step.Receive(g.now, f.port, one[:])
	}
}

func (g *rig) depart(from, peer int, r frame.Ref) {
	m, b := g.pool.Meta(r), g.pool.Bytes(r)
	if g.seen != nil {
		g.seen(from, m, b)
	}
	if g.lose != nil && g.lose(m, b) {
		g.pool.Free(r)
		return
	}
	if g.twice != nil && g.twice() {
		if c := g.pool.Copy(r); c != frame.Nil {
			g.fly = append(g.fly, flying{m.Depart + frame.Time(m.Span) + g.delay + g.wander(), peer / 16, uint16(peer % 16), c})
		}
	}
	g.fly = append(g.fly, flying{m.Depart + frame.Time(m.Span) + g.delay + g.wander(), peer / 16, uint16(peer % 16), r})
}

func (g *rig) wander() frame.Time {
	if g.jitter == nil {
		return 0
	}
	return g.jitter()
}

func testMAC(i int) wire.MAC { return wire.MAC{2, 0, 0, 0, 0, byte(i)} }

func testConfig(i int) Config {
	return Config{
		Name: fmt.Sprintf("h%d", i), MAC: testMAC(i), Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}),
		Rate: 100e9, Payload: 1000, BaseRTT: 13 * frame.Microsecond, AckClass: -1, AckPauseClass: -1,
		Virtual: true, DSCP: [8]uint8{0, 8, 16, 24, 32, 40, 48, 56}, Seed: uint64(i),
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pair is two NICs on one cable.
type pair struct {
	*rig
	a, b *NIC
}

func newPair(t testing.TB, change func(i int, c *Config)) *pair {
	g := newRig(t, 4096, 256)
	return newPairOn(t, g, change)
}

func newPairOn(t testing.TB, g *rig, change func(i int, c *Config)) *pair {
	p := &pair{rig: g}
	for i, nic := range []**NIC{&p.a, &p.b} {
		cfg := testConfig(i + 1)
		if change != nil {
			change(i, &cfg)
		}
		n, err := New(&cfg, g.pool)
		must(t, err)
		*nic = n
		g.add(n, 1)
	}
	g.link(0, 0, 1, 0)
	return p
}

// connect opens a queue pair at both ends.
func (p *pair) connect(change func(c *QPConfig)) (qa, qb uint32) {
	return connect(p.t, p.now, p.a, p.b, change)
}

func connect(t testing.TB, now frame.Time, a, b *NIC, change func(c *QPConfig)) (qa, qb uint32) {
	t.Helper()
	open := func(n, m *NIC) uint32 {
		c := QPConfig{RemoteAddr: m.cfg.Addr, RemoteMAC: m.cfg.MAC, Class: 3,
			Transport: transport.Config{Recovery: transport.GoBackN, RTOHigh: 500 * frame.Microsecond}}
		if change != nil {
			change(&c)
		}
		q, err := n.OpenQP(now, &c)
		must(t, err)
		return q
	}
	qa, qb = open(a, b), open(b, a)
	must(t, a.ConnectQP(now, qa, qb))
	must(t, b.ConnectQP(now, qb, qa))
	return qa, qb
}

func take(n *NIC) []Completion {
	v := make([]Completion, n.Completed())
	n.TakeCompletions(v)
	return v
}

func factory(t testing.TB, name string, params map[string]string) func(*cc.Env) cc.Algorithm {
	t.Helper()
	f, err := cc.Factory(name, params)
	must(t, err)
	return f
}

// drained fails if a chunk is missing when nothing is under way.
func (g *rig) drained() {
	g.t.Helper()
	if len(g.fly) != 0 || g.pool.Available() != g.pool.Chunks() {
		g.t.Fatalf("%d frames on the links, %d of %d chunks free", len(g.fly), g.pool.Available(), g.pool.Chunks())
	}
}

// placeFunc is a Placer.
type placeFunc func(qpn uint32, packet uint64, payload []byte)

func (f placeFunc) Place(qpn uint32, packet uint64, payload []byte) { f(qpn, packet, payload) }
