package replay_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gswitch/config"
	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/replay"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// everything is a switch in which what it is given meets all that a switch can
// do; others replace a part of it.
const everything = `version: 1
switches:
  - name: s
    mac: 02:aa:00:00:00:01
    seed: 5
    loopback: [10.255.0.1]
    ports:
      - {name: a, interface: a, rate: 400Mbps, burst: 50us, qos: dc, trust: dscp, acl: edge}
      - {name: b, interface: b, rate: 1Gbps, qos: dc, trust: dscp, telemetry: {source: int-md, source_ports: [4791]}}
      - {name: c, interface: c, rate: 1Gbps, burst: 200us, qos: dc, trust: dscp, address: [10.1.0.1/24, "fd00:1::1/64"]}
      - {name: d, interface: d, qos: plain, trust: dscp, address: [10.2.0.1/24, "fd00:2::1/64"]}
      - {name: e, interface: e, rate: 500Mbps, qos: dc, trust: pcp, vlan: {trunk: [10, 20], native: 1}, storm_control: {broadcast: 1Mbps}}
    vlans:
      - {id: 10, name: servers, address: [10.10.0.1/24]}
      - {id: 20, name: storage}
    qos:
      dc:
        queues:
          - {queue: 0, weight: 30}
          - {queue: 3, weight: 60, ecn: {kmin: 4KB, kmax: 40KB, pmax: 0.2}}
          - {queue: 5, weight: 10, pi: {ref: 15KB, a: 4e-6, b: 3.9e-6, max: 0.1, period: 40us}}
          - {queue: 6, strict: true, max_rate: 10Mbps}
        rocc: {queues: [3], qref: 15KB, qmid: 30KB, qmax: 36KB}
        qcn: {queues: [1], set_point: 6KB, sample: 15KB}
      plain:
        queues: [{queue: 3, weight: 60}]
    buffer: {size: 2MiB, limit: 100KB}
    pfc: {classes: [3], watchdog: {detect: 20ms, restore: 10ms, action: drop}, log: 64}
    telemetry: {int: true}
    routes:
      - {prefix: 10.50.0.0/16, next_hops: [{via: 10.1.0.7}, {via: 10.2.0.7}]}
      - {prefix: 10.60.0.0/16, blackhole: true}
    acls:
      edge:
        - {seq: 10, match: {protocol: udp, dst_port: 4791, dscp: 48}, set_class: 6}
        - {seq: 20, match: {src: 10.0.0.0/24, protocol: tcp, dst_port: 1-1023}, police: {rate: 1Mbps, burst: 64KiB}}
        - {seq: 30, match: {dst: 10.99.0.0/16}, action: drop}
        - {seq: 40, match: {ethertype: 0x88f7}, set_dscp: 46, redirect: b}
`

// variants are the systems that exclude others.
var variants = map[string]func(string) string{
	"everything": func(s string) string { return s },
	"crossbar": func(s string) string {
		return strings.ReplaceAll(without(without(s, "    buffer:"), "        rocc:"), "    telemetry:", "    crossbar: {}\n    telemetry:")
	},
	"escape": func(s string) string {
		return strings.ReplaceAll(s, "    telemetry:", "    escape: {ports: [a, b, c]}\n    telemetry:")
	},
}

// without leaves out the lines that begin with a prefix.
func without(doc, prefix string) (out string) {
	for line := range strings.Lines(doc) {
		if !strings.HasPrefix(line, prefix) {
			out += line
		}
	}
	return out
}

// machine is a switch that takes its commands as they are recorded.
type machine struct {
	*vswitch.Node
	sw *vswitch.Switch
}

func (m machine) Do(_ frame.Time, b []byte) error {
	c, err := vswitch.DecodeChange(b)
	if err != nil {
		return err
	}
	if a, ok := c.(vswitch.Apply); ok {
		a.Config, err = fromDocument(string(a.Document))
		if c = a; err != nil {
			return err
		}
	}
	return m.sw.Do(c)
}

func fromDocument(doc string) (*vswitch.Config, error) {
	c, err := config.Parse("test.yaml", []byte(doc))
	if err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	return c.Resolved().Switches[0].VSwitch(nil), nil
}

func build(h *replay.Header, pool *frame.Pool) (replay.Machine, error) {
	cfg, err := fromDocument(h.Document)
	if err != nil {
		return nil, err
	}
	sw, err := vswitch.New(cfg, []*frame.Pool{pool})
	if err != nil {
		return nil, err
	}
	return machine{sw.Nodes[0], sw}, nil
}

// live is a switch that is recorded, and stepped as an engine does that polls:
// over and over, with or without need.
type live struct {
	t    testing.TB
	pool *frame.Pool
	m    machine
	rec  *replay.Recorder
	feed *replay.Feed
	file bytes.Buffer
	w    *replay.Writer
	rng  *rand.Rand
	now  frame.Time
	held []frame.Ref    // chunks that another user has
	k    int            // frames made
	keep *replay.Keeper // in place of the file

	header replay.Header
	doc    string // in force
	sent   uint64 // hash of whole frames
}

// whole takes a frame that was sent into a hash that leaves nothing out.
func whole(h uint64, now frame.Time, port uint16, b []byte) uint64 {
	f := fnv.New64a()
	fmt.Fprint(f, h, now, port)
	f.Write(replay.Comparable(bytes.Clone(b)))
	return f.Sum64()
}

func newLive(t testing.TB, doc string, chunks int, seed uint64) *live {
	t.Helper()
	h := replay.Header{Build: "test", Kind: "switch", Name: "s", Document: doc, Chunk: 2048, Chunks: chunks, Headroom: frame.DefaultHeadroom, Start: 1}
	l := &live{t: t, header: h, doc: doc, pool: frame.NewPool(frame.MustArena(chunks, h.Chunk, h.Headroom)), rng: rand.New(rand.NewPCG(seed, 1)), feed: replay.NewFeed(4, h.Chunk), now: 1}
	m, err := build(&h, l.pool)
	if err != nil {
		t.Fatal(err)
	}
	l.m = m.(machine)
	if l.rec, err = replay.NewRecorder(l.now, l.m.Node, l.pool, l.feed); err != nil {
		t.Fatal(err)
	}
	if l.w, err = replay.NewWriter(&l.file, &h); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *live) write() {
	for s := l.feed.Next(); s != nil; s = l.feed.Next() {
		err := error(nil)
		if l.keep == nil {
			err = l.w.Write(s)
		} else if s.Epoch != nil || l.keep.From() != nil {
			err = l.keep.Add(s)
		}
		if err != nil {
			l.t.Fatal(err)
		}
		l.feed.Return(s)
	}
}

// someFrame makes what hosts and neighbours send: a few flows, control, and noise.
func (l *live) someFrame() []byte {
	l.k++
	r := l.rng
	host := func(i int) wire.MAC { return wire.MAC{2, 0, 0, 0, 0, byte(i)} }
	self := wire.MAC{2, 0xaa, 0, 0, 0, 1}
	tos := []uint8{0, 26<<2 | wire.ECT0, 8 << 2, 46 << 2, 48 << 2}[r.IntN(5)]
	size := wt.Payload(make([]byte, []int{0, 10, 1000, 1400}[r.IntN(4)]))
	src, dst := host(r.IntN(5)), host(r.IntN(5))
	id := wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(l.k) })
	switch r.IntN(15) {
	case 13: // telemetry of HPCC, as other switches left it
		b := make([]byte, wire.HPCCLen+wire.BTHLen+1000)
		for i := range wire.HPCCLen {
			b[i] = byte(r.Uint32())
		}
		b[wire.HPCCLen] = wire.RCSendOnly
		return wt.Frame(wt.Eth(dst, src), wt.IPv4("10.0.0.3", "10.0.0.9", wt.TOS(tos), id), wt.UDP(40009, wire.HPCCPort), wt.Payload(b))
	case 0, 1, 2:
		return wt.Frame(wt.Eth(dst, src), wt.IPv4(fmt.Sprintf("10.0.0.%d", r.IntN(4)), "10.0.0.9", wt.TOS(tos), id), wt.UDP(uint16(40000+r.IntN(4)), 4791), wt.BTH(4, uint32(r.IntN(3)), uint32(l.k)), size)
	case 3, 4, 5:
		return wt.Frame(wt.Eth(self, src), wt.IPv4("10.1.0.9", fmt.Sprintf("10.50.0.%d", r.IntN(4)), wt.TOS(tos), wt.TTL(uint8(1+r.IntN(64))), id), wt.TCP(wire.TCPFields{SrcPort: 5000, DstPort: 80, Seq: uint32(l.k) * 1448}), size)
	case 6:
		return wt.Frame(wt.Eth(self, src), wt.IPv6("fd00:1::9", "fd00:2::7", wt.TOS(tos)), wt.UDP(1, 2), size)
	case 7:
		return wt.Frame(wt.Eth(wire.BroadcastMAC, src), wt.ARP(wire.ARPFields{Op: wire.ARPRequest, SenderMAC: src, SenderIP: wt.Addr4("10.1.0.7"), TargetIP: wt.Addr4("10.1.0.1")}))
	case 8:
		return wt.Frame(wt.Eth(self, src), wt.ARP(wire.ARPFields{Op: wire.ARPReply, SenderMAC: src, SenderIP: wt.Addr4([]string{"10.1.0.7", "10.2.0.7"}[r.IntN(2)]), TargetMAC: self, TargetIP: wt.Addr4("10.1.0.1")}))
	case 9:
		return wt.Frame(wt.Eth(self, src), wt.IPv4("10.1.0.9", "10.255.0.1", id), wt.ICMP(wire.ICMPEcho, 0, uint32(l.k)), wt.Payload([]byte("what is in a ping is answered")))
	case 10:
		return wt.Frame(wt.Eth(self, src), wt.IPv4("10.1.0.9", "10.60.0.1", id), wt.UDP(7, 9), size)
	case 11:
		return wt.PFC(host(9), 1<<3, uint16(r.IntN(2)*300))
	case 12:
		b := make([]byte, r.IntN(80))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	return wt.Frame(wt.Eth(dst, src), wt.VLAN(uint16(10*r.IntN(3)), uint8(r.IntN(8))), wt.IPv4("10.10.0.7", "10.0.0.9", wt.TOS(tos), id), wt.UDP(9, 9), size)
}

// loop is a loop of the engine: what arrived, what is due, what leaves.
func (l *live) loop(rate int) {
	r := l.rng
	l.now += frame.Time(r.IntN(20_000))
	if r.IntN(50) == 0 {
		l.now += frame.Time(r.IntN(5_000_000))
	}
	var v []frame.Ref
	for port := range uint16(5) {
		v = v[:0]
		for range r.IntN(rate + 1) {
			if f := l.pool.New(l.someFrame()); f != frame.Nil {
				v = append(v, f)
			}
		}
		if len(v) > 0 {
			l.rec.Receive(l.now, port, v)
		}
	}
	for range 1 + r.IntN(2) {
		l.rec.Advance(l.now)
	}
	l.drain()
}

// drain takes what is due to leave.
func (l *live) drain() {
	r := l.rng
	var out [64]frame.Ref
	for port := range uint16(5) {
		for range 1 + r.IntN(3) {
			for _, f := range out[:l.rec.Transmit(l.now, port, out[:r.IntN(len(out))])] {
				l.sent = whole(l.sent, l.now, port, l.pool.Bytes(f))
				l.pool.Free(f)
			}
		}
	}
	l.write()
}

// holdBack takes all chunks but a few.
func (l *live) holdBack(leave int) {
	for _, f := range l.held {
		l.pool.FreeChunk(f)
	}
	for l.held = l.held[:0]; l.pool.Available() > leave; {
		l.held = append(l.held, l.pool.Alloc())
	}
}

func (l *live) command(c vswitch.Change) {
	l.t.Helper()
	cmd, err := l.m.sw.Prepare(c)
	if err != nil {
		l.t.Fatal(err)
	}
	l.rec.Command(l.now, cmd)
}

// random runs the switch for n loops, with all that may happen meanwhile.
func (l *live) random(n int, doc string) {
	l.up()
	l.churn(n, doc)
	l.rec.End(l.now)
	l.write()
	if why := l.feed.Lost(); why != "" {
		l.t.Fatalf("lost: %s", why)
	}
}

func (l *live) up() {
	for port := range uint16(5) {
		l.rec.SetLink(l.now, port, true)
	}
}

func (l *live) churn(n int, doc string) {
	r := l.rng
	for i := range n {
		rate := []int{0, 0, 1, 8, 40}[i/50%5]
		l.loop(rate)
		switch r.IntN(120) {
		case 0:
			port := uint16(r.IntN(5))
			l.rec.SetLink(l.now, port, false)
			l.loop(rate)
			l.rec.SetLink(l.now, port, true)
		case 1:
			if !strings.Contains(doc, "10.1.0.1/24") {
				continue // no way there
			}
			l.command(vswitch.SetRoute{Route: vswitch.Route{Prefix: netip.MustParsePrefix("10.70.0.0/16"), NextHops: []vswitch.NextHop{{Via: netip.MustParseAddr(fmt.Sprintf("10.1.0.%d", 2+r.IntN(9)))}}}})
		case 2:
			l.command(&vswitch.FlushFDB{})
		case 3:
			next := strings.ReplaceAll(doc, "weight: 30", fmt.Sprintf("weight: %d", 1+r.IntN(50)))
			cfg, err := fromDocument(next)
			if err != nil {
				l.t.Fatal(err)
			}
			l.command(vswitch.Apply{Config: cfg, Document: []byte(next)})
			l.doc = next
		case 4:
			l.holdBack(r.IntN(8))
		case 5:
			l.holdBack(1 << 30)
		}
	}
}

func open(t *testing.T, file []byte) *replay.Reader {
	t.Helper()
	in, err := replay.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// play replays a record and returns the player at its end.
// Messages of clocks have the stamps in the replay that the device gave them, early and
// late ones, and other frames have none.
func TestStampsAreRecorded(t *testing.T) {
	l := newLive(t, everything, 256, 5)
	l.up()
	type came struct {
		now, stamp frame.Time
		port       uint16
	}
	var want, got []came
	for n := range 200 {
		l.now += frame.Time(l.rng.IntN(20_000))
		port := uint16(l.rng.IntN(5))
		var v []frame.Ref
		for range 1 + l.rng.IntN(8) {
			b := l.someFrame()
			if n%8 >= 4 {
				b = tcp(0) // of a steady flow
			}
			r := l.pool.New(b)
			if l.rng.IntN(4) == 0 {
				l.pool.Meta(r).Stamp = max(1, l.now+frame.Time(l.rng.IntN(3000)-2000))
			}
			v = append(v, r)
			want = append(want, came{l.now, l.pool.Meta(r).Stamp, port})
		}
		l.rec.Receive(l.now, port, v)
		l.drain()
	}
	l.rec.End(l.now)
	l.write()
	in, err := replay.NewReader(bytes.NewReader(l.file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.NewPlayer(in, build)
	if err != nil {
		t.Fatal(err)
	}
	p.Seen = func(now frame.Time, port uint16, v []frame.Ref) {
		for _, r := range v {
			got = append(got, came{now, p.Arena.Meta(r).Stamp, port})
		}
	}
	for err == nil {
		at, _ := p.Peek()
		var e replay.Event
		if e, err = p.Step(); e.At != at {
			t.Fatalf("step %d came at %v, %v was seen ahead", e.Step, e.At, at)
		}
	}
	if !errors.Is(err, io.EOF) || !slices.Equal(got, want) {
		t.Errorf("%v; %d frames came, %d were recorded, the stamps are not the same", err, len(got), len(want))
	}
}

func play(file []byte) (*replay.Player, error) {
	in, err := replay.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	p, err := replay.NewPlayer(in, build)
	if err != nil {
		return nil, err
	}
	for {
		if _, err := p.Step(); errors.Is(err, io.EOF) {
			return p, nil
		} else if err != nil {
			return p, err
		}
	}
}

// state is what a switch shows of itself.
func state(m machine) (s struct {
	Counts    vswitch.Counts
	Self      [frame.NumReasons]uint64
	Ports     [5]vswitch.PortCounts
	FDB       []pipeline.FDBEntry
	Neighbors []vswitch.Neighbor
	Routes    []vswitch.Traffic
}) {
	s.Counts, s.Self, s.Neighbors, s.Routes = m.Counts(), m.SelfDrops(), m.Neighbors(), m.RouteCounts(nil)
	for i := range s.Ports {
		if m.HasPort(uint16(i)) {
			m.ReadPort(uint16(i), &s.Ports[i])
		}
	}
	m.sw.FDB().Entries(func(e pipeline.FDBEntry) bool { s.FDB = append(s.FDB, e); return true })
	return s
}

// Whatever a switch does with whatever it is given, its record is replayed to
// the bit: all that was sent, when, and all that it shows in the end. Calls that
// an engine makes for nothing are left out, and allocations fail.
func TestReplayIsIdentical(t *testing.T) {
	for name, change := range variants {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				doc := change(everything)
				l := newLive(t, doc, 3000, seed)
				l.random(2500, doc)
				p, err := replay.NewPlayer(open(t, l.file.Bytes()), build)
				if err != nil {
					t.Fatal(err)
				}
				hash := uint64(0)
				for {
					at, early := p.Peek()
					e, err := p.Step()
					if e.At != at || early != nil && early != err {
						t.Fatalf("step %d came at %v with %v, seen ahead were %v and %v", e.Step, e.At, err, at, early)
					}
					if errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						t.Fatal(err)
					}
					for _, f := range e.Frames {
						hash = whole(hash, e.At, e.Port, p.Arena.Bytes(f))
					}
				}
				if hash != l.sent {
					t.Error("what is not recorded of a frame came to stand in another one")
				}
				frames, sums := p.Sent()
				if frames != l.rec.Sent() || frames < 4000 || sums < 4 {
					t.Errorf("%d frames were replayed with %d hashes, %d were sent", frames, sums, l.rec.Sent())
				}
				if got, want := state(p.Node.(machine)), state(l.m); !reflect.DeepEqual(got, want) {
					t.Errorf("after the replay the switch shows\n%+v\nit was\n%+v", got, want)
				}
				if l.pool.Failed() == 0 {
					t.Error("no allocation failed")
				}
				if l.m.Counts().Programs < 3 {
					t.Error("no configuration was applied")
				}
			})
		}
	}
}
