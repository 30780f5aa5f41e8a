package vswitch_test

import (
	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// device is a switch as its engine and its control plane see it: what is inside
// may be rebuilt without a change here.
type device struct {
	t     rapid.TB
	sw    *vswitch.Switch
	arena *frame.Arena
	depot *frame.Depot
	pools []*frame.Pool
	now   frame.Time
}

var deviceMAC = wire.MAC{0x02, 0xaa, 0, 0, 0, 1}

func newDevice(t rapid.TB, cfg *vswitch.Config, workers, chunks int) *device {
	t.Helper()
	d := &device{t: t, arena: frame.MustArena(chunks, 2048, frame.DefaultHeadroom), now: frame.Second}
	d.depot = frame.NewDepot(d.arena)
	for range workers {
		d.pools = append(d.pools, d.depot.NewPool(d.arena))
	}
	sw, err := vswitch.New(cfg, d.pools)
	if err != nil {
		t.Fatal(err)
	}
	d.sw = sw
	for i := range cfg.Ports {
		d.link(uint16(i), true)
	}
	d.runAll()
	return d
}

// runAll runs the workers until none has frames for another.
func (d *device) runAll() {
	for range 2 * len(d.sw.Nodes) {
		for _, n := range d.sw.Nodes {
			n.Advance(d.now)
		}
	}
}

func (d *device) advance(by frame.Time) {
	d.now += by
	d.runAll()
}

func (d *device) link(port uint16, up bool) {
	for _, n := range d.sw.Nodes {
		n.SetLink(d.now, port, up)
	}
}

// owner is the worker that has the egress queues of a port.
func (d *device) owner(port uint16) int {
	for i, n := range d.sw.Nodes {
		if n.Owns(port) {
			return i
		}
	}
	return 0
}

func (d *device) node(port uint16) *vswitch.Node { return d.sw.Nodes[d.owner(port)] }

func (d *device) receive(port uint16, frames ...[]byte) {
	d.t.Helper()
	w := d.owner(port)
	v := make([]frame.Ref, 0, len(frames))
	for _, b := range frames {
		r := d.pools[w].New(b)
		if r == frame.Nil {
			d.t.Fatal("the test ran out of chunks")
		}
		v = append(v, r)
	}
	d.sw.Nodes[w].Receive(d.now, port, v)
	d.runAll()
}

// transmit takes what a port sends now, and shows each frame to see.
func (d *device) transmit(port uint16, see func(m *frame.Meta, b []byte)) (sent int) {
	w := d.owner(port)
	var v [16]frame.Ref
	for {
		if sent > d.arena.Chunks() {
			d.t.Fatalf("port %d sends for ever", port)
		}
		k := d.sw.Nodes[w].Transmit(d.now, port, v[:])
		if k == 0 {
			return sent
		}
		for _, r := range v[:k] {
			if see != nil {
				see(d.arena.Meta(r), d.arena.Bytes(r))
			}
			d.pools[w].Free(r)
		}
		sent += k
	}
}

// sends returns copies of what a port sends within a time, microsecond by
// microsecond.
func (d *device) sends(port uint16, within frame.Time) (frames [][]byte) {
	for end := d.now + within; ; d.advance(min(frame.Microsecond, end-d.now)) {
		d.transmit(port, func(_ *frame.Meta, b []byte) { frames = append(frames, append([]byte(nil), b...)) })
		if d.now >= end {
			return frames
		}
	}
}

func (d *device) apply(cfg *vswitch.Config) {
	d.t.Helper()
	if err := d.sw.Apply(cfg); err != nil {
		d.t.Fatal(err)
	}
	d.runAll()
}

// counts are those of all workers for a port.
func (d *device) counts(port uint16) (c vswitch.PortCounts) {
	for _, n := range d.sw.Nodes {
		if n.HasPort(port) {
			n.ReadPort(port, &c)
		}
	}
	return c
}

// close takes all links down and reports chunks that did not come back.
func (d *device) close(ports int) {
	for p := range ports {
		d.link(uint16(p), false)
	}
	d.runAll()
	for _, n := range d.sw.Nodes {
		n.Flush(d.now)
	}
	for _, p := range d.pools {
		p.Drain()
	}
	if free := d.depot.Free(); free != d.arena.Chunks() {
		d.t.Errorf("%d of %d chunks came back", free, d.arena.Chunks())
	}
}

// host is the station behind port n-1: it has the address 10.0.0.n.
func host(n int) wire.MAC { return wt.MAC(uint16(n)) }

// bridge is a switch of n ports with a host behind each, all traffic in class 3,
// which is lossless.
func bridge(n int, rate uint64) *vswitch.Config {
	cfg := &vswitch.Config{Name: "s", ID: 7, MAC: deviceMAC, Seed: 1, Class: vswitch.DefaultClassMaps(), PFC: vswitch.PFCConfig{Mode: pfc.PFC, Classes: 1 << 3},
		Buffer: vswitch.BufferConfig{Size: 1 << 20, XOFF: 60_000, XONOffset: 5_000}}
	for i := range n {
		cfg.Ports = append(cfg.Ports, vswitch.PortConfig{Name: string(rune('a' + i)), Enabled: true, Trust: vswitch.TrustNone, DefaultClass: 3,
			Scheduler: scheduler.PortConfig{Rate: rate, Overhead: scheduler.EthernetOverhead}})
		cfg.FDB.Static = append(cfg.FDB.Static, vswitch.StaticMAC{VLAN: 1, MAC: host(i + 1), Port: uint16(i)})
	}
	return cfg
}
