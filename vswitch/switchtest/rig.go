// Package switchtest is a switch on a table, for the tests of what is registered
// with it.
package switchtest

import (
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// Rig is a switch on a table: frames are pushed in by hand, time is what the
// test says, and at the end every chunk must be back.
type Rig struct {
	Switch *vswitch.Switch
	Arena  *frame.Arena
	Pools  []*frame.Pool
	Now    frame.Time

	t testing.TB
}

// SelfMAC is the address of the switch.
var SelfMAC = wire.MAC{0x02, 0xaa, 0, 0, 0, 1}

// ports returns n enabled bridge ports without a rate.
func ports(n int) []vswitch.PortConfig {
	p := make([]vswitch.PortConfig, n)
	for i := range p {
		p[i] = vswitch.PortConfig{Name: string(rune('a' + i)), Enabled: true}
	}
	return p
}

// Base is a bridge of n ports without a rate.
func Base(n int) *vswitch.Config {
	return &vswitch.Config{Name: "s", MAC: SelfMAC, Seed: 1, Ports: ports(n), Class: vswitch.DefaultClassMaps()}
}

// New puts a switch on the table.
func New(t testing.TB, cfg *vswitch.Config) *Rig {
	t.Helper()
	return NewOf(t, cfg, 1, 4096)
}

// NewOf is New with several workers and so many chunks.
func NewOf(t testing.TB, cfg *vswitch.Config, workers, chunks int) *Rig {
	t.Helper()
	r := &Rig{t: t, Arena: frame.MustArena(chunks, 2048, frame.DefaultHeadroom), Now: frame.Second}
	depot := frame.NewDepot(r.Arena)
	for range workers {
		r.Pools = append(r.Pools, depot.NewPool(r.Arena))
	}
	sw, err := vswitch.New(cfg, r.Pools)
	if err != nil {
		t.Fatal(err)
	}
	r.Switch = sw
	for i := range cfg.Ports {
		r.SetLink(uint16(i), true)
	}
	t.Cleanup(func() { r.close(depot, chunks) })
	return r
}

// close takes the links down, which empties all queues, and counts chunks.
func (r *Rig) close(depot *frame.Depot, chunks int) {
	for i := range r.Switch.Program().Config.Ports {
		r.SetLink(uint16(i), false)
	}
	for _, n := range r.Switch.Nodes {
		n.Flush(r.Now)
	}
	for _, p := range r.Pools {
		p.Drain()
	}
	if free := depot.Free(); free != chunks {
		r.t.Errorf("%d of %d chunks came back: frames were lost without being freed", free, chunks)
	}
}

// SetLink notifies all workers of the link of a port.
func (r *Rig) SetLink(port uint16, up bool) {
	for _, n := range r.Switch.Nodes {
		n.SetLink(r.Now, port, up)
	}
}

// Advance lets time pass.
func (r *Rig) Advance(dt frame.Time) {
	r.Now += dt
	r.RunIdle()
}

// RunIdle runs the workers until none has frames for another.
func (r *Rig) RunIdle() {
	for range 2 * len(r.Switch.Nodes) {
		for _, n := range r.Switch.Nodes {
			n.Advance(r.Now)
		}
	}
}

// In hands frames to a port, on the worker that owns it.
func (r *Rig) In(port uint16, frames ...[]byte) {
	r.InOn(int(r.Switch.Program().Config.Ports[port].Worker), port, frames...)
}

// InOn is In on another worker.
func (r *Rig) InOn(worker int, port uint16, frames ...[]byte) {
	r.t.Helper()
	v := make([]frame.Ref, 0, len(frames))
	for _, b := range frames {
		ref := r.Pools[worker].New(b)
		if ref == frame.Nil {
			r.t.Fatal("the test ran out of chunks")
		}
		v = append(v, ref)
	}
	r.Switch.Nodes[worker].Receive(r.Now, port, v)
	r.RunIdle()
}

// Out takes what a port sends now.
func (r *Rig) Out(port uint16) (frames [][]byte) {
	w := r.Switch.Program().Config.Ports[port].Worker
	var v [64]frame.Ref
	for {
		if len(frames) > r.Arena.Chunks() {
			r.t.Fatalf("port %d sends for ever", port)
		}
		k := r.Switch.Nodes[w].Transmit(r.Now, port, v[:])
		for _, ref := range v[:k] {
			frames = append(frames, append([]byte(nil), r.Arena.Bytes(ref)...))
			r.Pools[w].Free(ref)
		}
		if k == 0 {
			return frames
		}
	}
}

// One takes the single frame that a port must send now.
func (r *Rig) One(port uint16) []byte {
	r.t.Helper()
	f := r.Out(port)
	if len(f) != 1 {
		r.t.Fatalf("port %d sends %d frames, want 1 (drops %v)", port, len(f), r.Drops())
	}
	return f[0]
}

// None checks that a port has nothing to send now.
func (r *Rig) None(port uint16) {
	r.t.Helper()
	if f := r.Out(port); len(f) != 0 {
		r.t.Fatalf("port %d sends %d frames, want none: %x", port, len(f), f[0])
	}
}

// Counts are those of a port, of all workers.
func (r *Rig) Counts(port uint16) (c vswitch.PortCounts) {
	for _, n := range r.Switch.Nodes {
		n.ReadPort(port, &c)
	}
	return c
}

// Drops lists all drops by reason.
func (r *Rig) Drops() map[string]uint64 {
	out := map[string]uint64{}
	for p := range r.Switch.Program().Config.Ports {
		c := r.Counts(uint16(p))
		for reason, n := range c.Drops {
			if n > 0 {
				out[frame.Reason(reason).String()] += n
			}
		}
	}
	return out
}

// WantDrop checks that a port counted one drop for a reason.
func (r *Rig) WantDrop(port uint16, reason frame.Reason) {
	r.t.Helper()
	if c := r.Counts(port); c.Drops[reason] != 1 {
		r.t.Errorf("port %d counted %d drops for %v, want 1; all drops: %v", port, c.Drops[reason], reason, r.Drops())
	}
}

// HostMAC is the address of a station.
func HostMAC(n int) wire.MAC { return wt.MAC(uint16(n)) }

// UDP is a datagram of 40 bytes.
func UDP(dst, src wire.MAC, dip, sip string, opts ...wt.IPOption) []byte {
	return wt.Frame(wt.Eth(dst, src), wt.IPv4(sip, dip, opts...), wt.UDP(1000, 2000), wt.Zeros(40))
}

// L2 is a datagram between two stations.
func L2(dst, src int) []byte {
	return UDP(HostMAC(dst), HostMAC(src), "10.0.0.2", "10.0.0.1")
}

// Prefixes parses prefixes.
func Prefixes(s ...string) (out []netip.Prefix) {
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// Rated gives all ports of cfg a rate, in bit/s.
func Rated(cfg *vswitch.Config, rate uint64) *vswitch.Config {
	for i := range cfg.Ports {
		cfg.Ports[i].Scheduler = scheduler.PortConfig{Rate: rate, Overhead: scheduler.EthernetOverhead}
	}
	return cfg
}

// Apply gives the switch another configuration.
func (r *Rig) Apply(cfg *vswitch.Config) {
	r.t.Helper()
	if err := r.Switch.Apply(cfg); err != nil {
		r.t.Fatal(err)
	}
	r.RunIdle()
}

// Rate40G is a rate for Rated.
const Rate40G = 40_000_000_000

// Star is a bridge of three 40 Gb/s ports, behind which stations 1, 2 and 3 are,
// in the order 1, 2, 3 of ports 0, 1, 2.
func Star() *vswitch.Config {
	cfg := Rated(Base(3), Rate40G)
	cfg.ID = 9
	cfg.FDB.Static = []vswitch.StaticMAC{{VLAN: 1, MAC: HostMAC(2), Port: 1}, {VLAN: 1, MAC: HostMAC(1), Port: 0}, {VLAN: 1, MAC: HostMAC(3), Port: 2}}
	return cfg
}

// Router is a router of two 40 Gb/s ports: 10.0.0.1 and fd00::1 are behind port
// 0, 10.0.1.2 and fd01::2 behind port 1.
func Router() *vswitch.Config {
	cfg := Rated(Base(2), Rate40G)
	cfg.ID = 3
	cfg.Ports[0].Addresses = Prefixes("10.0.0.254/24", "fd00::fe/64")
	cfg.Ports[1].Addresses = Prefixes("10.0.1.254/24", "fd01::fe/64")
	cfg.Neighbors = []vswitch.StaticNeighbor{{Addr: netip.MustParseAddr("10.0.0.1"), MAC: HostMAC(1)}, {Addr: netip.MustParseAddr("10.0.1.2"), MAC: HostMAC(2)},
		{Addr: netip.MustParseAddr("fd00::1"), MAC: HostMAC(1)}, {Addr: netip.MustParseAddr("fd01::2"), MAC: HostMAC(2)}}
	return cfg
}

// RoCE is a data frame of queue pair qp with n bytes from station src to station
// 2.
func RoCE(src int, qp uint32, n int) []byte {
	return wt.Frame(wt.Eth(HostMAC(2), HostMAC(src)), wt.IPv4(netip.AddrFrom4([4]byte{10, 0, 0, byte(src)}).String(), "10.0.0.2"), wt.UDP(49152+uint16(qp), 4791), wt.BTH(wire.RCSendMiddle, qp, 5), wt.Zeros(n))
}

// AllocatesNothing holds that loops of 50 us, in each of which port 0 receives
// these frames and ports 0 to 2 send, cost no memory.
func (r *Rig) AllocatesNothing(frames [][]byte) {
	r.t.Helper()
	n := r.Switch.Nodes[0]
	v := make([]frame.Ref, len(frames))
	var out [64]frame.Ref
	step := func() {
		for i := range v {
			v[i] = r.Pools[0].New(frames[i])
		}
		n.Receive(r.Now, 0, v)
		r.Now += 50 * frame.Microsecond
		n.Advance(r.Now)
		for p := range uint16(3) {
			left := r.Arena.Chunks()
			for k := n.Transmit(r.Now, p, out[:]); k > 0; k = n.Transmit(r.Now, p, out[:]) {
				if left -= k; left < 0 {
					r.t.Fatalf("port %d sends for ever", p)
				}
				for _, f := range out[:k] {
					r.Pools[0].Free(f)
				}
			}
		}
	}
	step()
	if allocs := testing.AllocsPerRun(200, step); allocs != 0 {
		r.t.Errorf("%v allocations", allocs)
	}
}
