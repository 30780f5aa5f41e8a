package sim

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// host is a test's end of a cable: a source that sends frames of chosen
// lengths at line rate while it has credit, honours pauses of any class, and
// counts what it gets.
type host struct {
	pool  *frame.Pool
	clock scheduler.RateClock
	proto []byte // headers of its frames
	to    func(i uint64) (dst uint32, port uint16)
	wire  func(i uint64) uint32
	tos   func(i uint64) byte

	credit  uint64 // frames that it may still send
	sent    uint64
	got     uint64
	bytes   uint64
	paused  frame.Time
	dirty   bool
	up      bool
	history []string // nil: not kept
	keep    bool
	seq     bool // keep numbers and times of arrivals
	seqs    []uint32
	times   []frame.Time
	foresight
	timer frame.Time // when it gets more credit, Never without
	every frame.Time
	give  uint64
	ticks int
}

func newHost(pool *frame.Pool, addr uint32, rate uint64, gateway wire.MAC) *host {
	h := &host{pool: pool, timer: frame.Never}
	h.clock.SetRate(rate)
	src := netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)})
	h.proto = wt.Frame(wt.Eth(gateway, wt.MAC(uint16(addr)+100)), wt.IPv4(src.String(), "10.0.0.1", wt.TOS(2)), wt.UDP(1000, 4791), wt.Zeros(12+32))
	h.to = func(uint64) (uint32, uint16) { return addr, 0 }
	h.wire = func(uint64) uint32 { return 1090 }
	h.tos = func(uint64) byte { return 0 }
	return h
}

func (h *host) Receive(now frame.Time, _ uint16, v []frame.Ref) {
	for _, r := range v {
		m, b := h.pool.Meta(r), h.pool.Bytes(r)
		if h.keep {
			h.history = append(h.history, fmt.Sprintf("%d %d %x", now, m.Wire, b[:min(len(b), 46)]))
		}
		if len(b) >= 34 && b[12] == 0x88 && b[13] == 0x08 {
			h.paused = now // any class, a quantum is 512 bit times
			for c := range 8 {
				if b[17]>>c&1 != 0 {
					q := binary.BigEndian.Uint16(b[18+2*c:])
					h.paused = max(h.paused, now+h.clock.Span(uint32(q)*64))
				}
			}
			h.dirty = true
		} else {
			if h.seq {
				h.seqs, h.times = append(h.seqs, binary.BigEndian.Uint32(b[50:])), append(h.times, now)
			}
			h.got++
			h.arrived++
			h.bytes += uint64(m.Wire)
		}
		h.pool.Free(r)
	}
}

func (h *host) Transmit(now frame.Time, _ uint16, out []frame.Ref) int {
	if h.PortWake(now, 0) > now {
		return 0
	}
	h.clock.Idle(now)
	r := h.pool.New(h.proto)
	if r == frame.Nil {
		return 0
	}
	m, b := h.pool.Meta(r), h.pool.Bytes(r)
	dst, port := h.to(h.sent)
	n := h.wire(h.sent)
	binary.BigEndian.PutUint32(b[30:], dst)
	binary.BigEndian.PutUint16(b[34:], port)
	binary.BigEndian.PutUint32(b[50:], uint32(h.sent))
	b[15] = 2 | h.tos(h.sent)
	binary.BigEndian.PutUint16(b[16:], uint16(n-14))
	binary.BigEndian.PutUint16(b[38:], uint16(n-34))
	b[24], b[25] = 0, 0
	binary.BigEndian.PutUint16(b[24:], checksum(b[14:34]))
	m.Wire = n
	m.Depart = h.clock.Free()
	h.clock.Charge(n + 24)
	m.Span = uint32(h.clock.Free() - m.Depart)
	h.sent++
	h.credit--
	out[0] = r
	return 1
}

func checksum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s>>16 != 0 {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}

func (h *host) Advance(now frame.Time) {
	if now >= h.timer {
		h.ticks++
		h.timer += h.every
		h.credit += h.give
		h.dirty = true
	}
}

func (h *host) Wake(now frame.Time) frame.Time { return min(h.TimerWake(now), h.PortWake(now, 0)) }

func (h *host) SetLink(_ frame.Time, _ uint16, up bool) { h.up, h.dirty = up, true }

func (h *host) Touched(out []uint16) int {
	if !h.dirty {
		return 0
	}
	h.dirty = false
	out[0] = 0
	return 1
}

func (h *host) PortWake(now frame.Time, _ uint16) frame.Time {
	if h.credit == 0 || !h.up {
		return frame.Never
	}
	return max(now, h.clock.Free(), h.paused)
}

func (h *host) TimerWake(frame.Time) frame.Time { return h.timer }

// network is some switches and their hosts. Host i of switch s has the address
// 10.s.i.2 on port i; the ports after those of hosts lead to other switches.
type network struct {
	c     netConfig
	e     *Engine
	hosts []*host
	sw    []*vswitch.Switch
	nodes []int // of the switches
	links []LinkID
	// grants, if not nil, is what hosts do to each other.
	grants *grants
}

type netConfig struct {
	rate, uplink uint64
	delay        frame.Time
	chunks       int
	seed         uint64
	lossless     bool
	buffer       uint64
	tune         func(*vswitch.Config)
	parts        int
	place        func(node int) int // part of a node, where there are several
}

func (c *netConfig) engine() *Engine {
	return New(Config{Chunks: c.chunks, Seed: c.seed, Parts: c.parts})
}

// part returns the part of the node that is added next.
func (n *network) part() int {
	if n.c.place == nil {
		return 0
	}
	return n.c.place(len(n.e.nodes))
}

// add adds a node to the part whose pool it has.
func (n *network) add(part int, s frame.Stepper, after func(frame.Time), f Foresight) int {
	id := n.e.AddNode(s, after)
	n.e.Assign(id, part, f)
	return id
}

func hostAddr(s, i int) uint32 { return 10<<24 | uint32(s)<<16 | uint32(i)<<8 | 2 }

func swMAC(s int) wire.MAC { return wt.MAC(uint16(0x7000 + s)) }

func addr4(a uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)})
}

// switchConfig is a switch with the given number of hosts and of uplinks,
// whose neighbours are the switches peers.
func (c *netConfig) switchConfig(s, hosts int, peers []int) *vswitch.Config {
	cfg := &vswitch.Config{Name: fmt.Sprintf("s%d", s), ID: uint16(s + 1), MAC: swMAC(s), Seed: c.seed*1000 + uint64(s), Class: vswitch.DefaultClassMaps(), NoRedirects: true}
	cfg.Buffer.Size = c.buffer
	if c.buffer == 0 {
		cfg.Buffer.Size = 16 << 20
	}
	if c.lossless {
		cfg.PFC = vswitch.PFCConfig{Mode: pfc.PFC, Classes: 1}
	}
	port := func(name string, rate uint64, net string) {
		cfg.Ports = append(cfg.Ports, vswitch.PortConfig{Name: name, Enabled: true, CableDelay: c.delay, MTU: 1500,
			Scheduler: scheduler.PortConfig{Rate: rate, Overhead: scheduler.EthernetOverhead}, Addresses: []netip.Prefix{netip.MustParsePrefix(net)}})
	}
	for i := range hosts {
		port(fmt.Sprintf("h%d", i), c.rate, fmt.Sprintf("10.%d.%d.1/24", s, i))
		cfg.Neighbors = append(cfg.Neighbors, vswitch.StaticNeighbor{Addr: addr4(hostAddr(s, i)), MAC: wt.MAC(uint16(hostAddr(s, i)) + 100)})
	}
	for _, p := range peers {
		port(fmt.Sprintf("s%d", p), c.uplink, fmt.Sprintf("172.%d.%d.%d/24", 16+min(s, p), max(s, p), 1+s))
		cfg.Neighbors = append(cfg.Neighbors, vswitch.StaticNeighbor{Addr: netip.MustParseAddr(fmt.Sprintf("172.%d.%d.%d", 16+min(s, p), max(s, p), 1+p)), MAC: swMAC(p)})
	}
	if c.tune != nil {
		c.tune(cfg)
	}
	return cfg
}

func (n *network) addSwitch(tb testing.TB, cfg *vswitch.Config) int {
	part := n.part()
	sw, err := vswitch.New(cfg, []*frame.Pool{n.e.PoolOf(part)})
	if err != nil {
		tb.Fatal(err)
	}
	n.sw = append(n.sw, sw)
	id := n.add(part, sw.Nodes[0], nil, nil)
	n.nodes = append(n.nodes, id)
	return id
}

func (n *network) addHosts(c *netConfig, s, count int) {
	for i := range count {
		part := n.part()
		h := newHost(n.e.PoolOf(part), hostAddr(s, i), c.rate, swMAC(s))
		n.hosts = append(n.hosts, h)
		var id int
		if n.grants == nil {
			id = n.add(part, h, nil, nil)
		} else {
			id = n.add(part, h, n.grants.after(h), &h.foresight)
		}
		n.links = append(n.links, n.e.Connect(id, 0, n.nodes[s], uint16(i), Link{Delay: c.delay}))
	}
}

// star is one switch and its hosts.
func star(tb testing.TB, c netConfig, hosts int) *network {
	n := &network{c: c, e: c.engine()}
	n.addSwitch(tb, c.switchConfig(0, hosts, nil))
	n.addHosts(&c, 0, hosts)
	return n
}

// leafSpine is leaves with hosts, each joined to all spines.
func leafSpine(tb testing.TB, c netConfig, leaves, spines, hosts int) *network {
	return leafSpineWith(tb, c, leaves, spines, hosts, nil)
}

func leafSpineWith(tb testing.TB, c netConfig, leaves, spines, hosts int, g *grants) *network {
	n := &network{c: c, e: c.engine(), grants: g}
	if g != nil {
		g.n = n
	}
	var up, down []int
	for s := range spines {
		up = append(up, leaves+s)
	}
	for l := range leaves {
		down = append(down, l)
	}
	via := func(from, to int) netip.Addr {
		return netip.MustParseAddr(fmt.Sprintf("172.%d.%d.%d", 16+min(from, to), max(from, to), 1+to))
	}
	for l := range leaves {
		cfg := c.switchConfig(l, hosts, up)
		r := vswitch.Route{Prefix: netip.MustParsePrefix("10.0.0.0/8")}
		for _, s := range up {
			r.NextHops = append(r.NextHops, vswitch.NextHop{Via: via(l, s)})
		}
		cfg.Routes = append(cfg.Routes, r)
		n.addSwitch(tb, cfg)
	}
	for _, s := range up {
		cfg := c.switchConfig(s, 0, down)
		for _, l := range down {
			cfg.Routes = append(cfg.Routes, vswitch.Route{Prefix: netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", l)), NextHops: []vswitch.NextHop{{Via: via(s, l)}}})
		}
		n.addSwitch(tb, cfg)
	}
	for l := range leaves {
		n.addHosts(&c, l, hosts)
	}
	for l := range leaves {
		for i, s := range up {
			n.links = append(n.links, n.e.Connect(n.nodes[l], uint16(hosts+i), n.nodes[s], uint16(l), Link{Delay: c.delay}))
		}
	}
	return n
}

// all lets every host send to pseudo-random others.
func (n *network) all(seed uint64, credit uint64, leaves, hosts int) {
	for i, h := range n.hosts {
		rnd := frame.NewRand(seed + uint64(i))
		h.to = func(uint64) (uint32, uint16) {
			j := rnd.Uint32n(uint32(len(n.hosts)))
			return hostAddr(int(j)/hosts, int(j)%hosts), uint16(rnd.Uint32n(64))
		}
		h.credit = credit
	}
}

// counts reads what a switch counted for a port.
func counts(sw *vswitch.Switch, port uint16) (c vswitch.PortCounts) {
	sw.Nodes[0].ReadPort(port, &c)
	return c
}

func (n *network) run(tb testing.TB, until frame.Time) {
	tb.Helper()
	if err := n.e.Run(until); err != nil {
		tb.Fatal(err)
	}
}
