package vswitch

import (
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// rig is a switch on a table: frames are pushed in by hand, time is what the
// test says, and at the end every chunk must be back.
type rig struct {
	t     testing.TB
	sw    *Switch
	arena *frame.Arena
	pools []*frame.Pool
	now   frame.Time
}

var selfMAC = wire.MAC{0x02, 0xaa, 0, 0, 0, 1}

// ports returns n enabled bridge ports without a rate.
func ports(n int) []PortConfig {
	p := make([]PortConfig, n)
	for i := range p {
		p[i] = PortConfig{Name: string(rune('a' + i)), Enabled: true}
	}
	return p
}

func baseConfig(n int) *Config {
	return &Config{Name: "s", MAC: selfMAC, Seed: 1, Ports: ports(n), Class: DefaultClassMaps()}
}

func newRig(t testing.TB, cfg *Config) *rig {
	t.Helper()
	return newRigOf(t, cfg, 1, 4096)
}

func newRigOf(t testing.TB, cfg *Config, workers, chunks int) *rig {
	t.Helper()
	r := &rig{t: t, arena: frame.MustArena(chunks, 2048, frame.DefaultHeadroom), now: frame.Second}
	depot := frame.NewDepot(r.arena)
	for range workers {
		r.pools = append(r.pools, depot.NewPool(r.arena))
	}
	sw, err := New(cfg, r.pools)
	if err != nil {
		t.Fatal(err)
	}
	r.sw = sw
	for i := range cfg.Ports {
		r.setLink(uint16(i), true)
	}
	t.Cleanup(func() { r.close(depot, chunks) })
	return r
}

// close takes the links down, which empties all queues, and counts chunks.
func (r *rig) close(depot *frame.Depot, chunks int) {
	for i := range r.sw.Program().ports {
		r.setLink(uint16(i), false)
	}
	for _, n := range r.sw.Nodes {
		n.Flush(r.now)
		if n.chunks.held != 0 {
			r.t.Errorf("%d frames count as held, and none is", n.chunks.held)
		}
	}
	for _, p := range r.pools {
		p.Drain()
	}
	if free := depot.Free(); free != chunks {
		r.t.Errorf("%d of %d chunks came back: frames were lost without being freed", free, chunks)
	}
}

func (r *rig) setLink(port uint16, up bool) {
	for _, n := range r.sw.Nodes {
		n.SetLink(r.now, port, up)
	}
}

func (r *rig) advance(dt frame.Time) {
	r.now += dt
	r.runAll()
}

// runAll runs the workers until none has frames for another.
func (r *rig) runAll() {
	for range 2 * len(r.sw.Nodes) {
		for _, n := range r.sw.Nodes {
			n.Advance(r.now)
		}
	}
}

// in hands frames to a port, on the worker that owns it.
func (r *rig) in(port uint16, frames ...[]byte) {
	r.inOn(int(r.sw.Program().ports[port].worker), port, frames...)
}

func (r *rig) inOn(worker int, port uint16, frames ...[]byte) {
	r.t.Helper()
	r.receiveOn(worker, port, frames...)
	r.runAll()
}

// receive has the worker of a port receive frames as one vector, and nothing else.
func (r *rig) receive(port uint16, frames ...[]byte) {
	r.t.Helper()
	r.receiveOn(int(r.sw.Program().ports[port].worker), port, frames...)
}

func (r *rig) receiveOn(worker int, port uint16, frames ...[]byte) {
	r.t.Helper()
	v := make([]frame.Ref, 0, len(frames))
	for _, b := range frames {
		ref := r.pools[worker].New(b)
		if ref == frame.Nil {
			r.t.Fatal("the test ran out of chunks")
		}
		v = append(v, ref)
	}
	r.sw.Nodes[worker].Receive(r.now, port, v)
}

// out takes what a port sends now.
func (r *rig) out(port uint16) (frames [][]byte) {
	w := r.sw.Program().ports[port].worker
	var v [64]frame.Ref
	for {
		if len(frames) > r.arena.Chunks() {
			r.t.Fatalf("port %d sends for ever", port)
		}
		k := r.sw.Nodes[w].Transmit(r.now, port, v[:])
		for _, ref := range v[:k] {
			frames = append(frames, append([]byte(nil), r.arena.Bytes(ref)...))
			r.pools[w].Free(ref)
		}
		if k == 0 {
			return frames
		}
	}
}

// one takes the single frame that a port must send now.
func (r *rig) one(port uint16) []byte {
	r.t.Helper()
	f := r.out(port)
	if len(f) != 1 {
		r.t.Fatalf("port %d sends %d frames, want 1 (drops %v)", port, len(f), r.drops())
	}
	return f[0]
}

func (r *rig) none(port uint16) {
	r.t.Helper()
	if f := r.out(port); len(f) != 0 {
		r.t.Fatalf("port %d sends %d frames, want none: %x", port, len(f), f[0])
	}
}

func (r *rig) counts(port uint16) (c PortCounts) {
	for _, n := range r.sw.Nodes {
		n.ReadPort(port, &c)
	}
	return c
}

// drops lists all drops by reason.
func (r *rig) drops() map[string]uint64 {
	out := map[string]uint64{}
	for p := range r.sw.Program().ports {
		c := r.counts(uint16(p))
		for reason, n := range c.Drops {
			if n > 0 {
				out[frame.Reason(reason).String()] += n
			}
		}
	}
	return out
}

func (r *rig) wantDrop(port uint16, reason frame.Reason) {
	r.t.Helper()
	if c := r.counts(port); c.Drops[reason] != 1 {
		r.t.Errorf("port %d counted %d drops for %v, want 1; all drops: %v", port, c.Drops[reason], reason, r.drops())
	}
}

// hostMAC is the address of a station: its number names MAC and addresses.
func hostMAC(n int) wire.MAC { return wt.MAC(uint16(n)) }

func udp(dst, src wire.MAC, dip, sip string, opts ...wt.IPOption) []byte {
	return wt.Frame(wt.Eth(dst, src), wt.IPv4(sip, dip, opts...), wt.UDP(1000, 2000), wt.Zeros(40))
}

func l2(dst, src int) []byte {
	return udp(hostMAC(dst), hostMAC(src), "10.0.0.2", "10.0.0.1")
}

func prefixes(s ...string) (out []netip.Prefix) {
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func rated(cfg *Config, rate uint64) *Config {
	for i := range cfg.Ports {
		cfg.Ports[i].Scheduler = scheduler.PortConfig{Rate: rate, Overhead: scheduler.EthernetOverhead}
	}
	return cfg
}

// roce is a data frame of n bytes from host src to host 2.
func roce(src int, qp uint32, n int) []byte {
	return wt.Frame(wt.Eth(hostMAC(2), hostMAC(src)), wt.IPv4(netip.AddrFrom4([4]byte{10, 0, 0, byte(src)}).String(), "10.0.0.2"), wt.UDP(49152+uint16(qp), 4791), wt.BTH(wire.RCSendMiddle, qp, 5), wt.Zeros(n))
}

// all takes what a port sends within some microseconds.
func (r *rig) all(port uint16) (v [][]byte) {
	for range 20 {
		r.advance(frame.Microsecond)
		v = append(v, r.out(port)...)
	}
	return v
}
