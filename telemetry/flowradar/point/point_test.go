package point

import (
	"errors"
	"math/rand/v2"
	"testing"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/telemetry/flowradar"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

const slot = frame.Millisecond

func options(mode string, flows int) Config {
	c, err := (&Section{Mode: mode, Slot: 1e6, Flows: flows, Decode: "alone"}).Options(&vswitch.Config{ID: 7})
	if err != nil {
		panic(err)
	}
	return c.(Config)
}

func with(cfg *vswitch.Config, c Config) *vswitch.Config {
	cfg.ID, cfg.Options = 7, vswitch.Options{Name: c}
	return cfg
}

func of(r *st.Rig) *Point { return r.Switch.Nodes[0].Feature(Name).(*Point) }

// datagram is one of a flow, from station 1 to station 2.
func datagram(flow int) []byte {
	return wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(uint16(flow), 2000), wt.Zeros(100))
}

// begin is a switch at the beginning of a slot.
func begin(t testing.TB, cfg *vswitch.Config) *st.Rig {
	r := st.New(t, cfg)
	r.Advance(0)
	of(r).TakeReport(nil)
	return r
}

// pass sends frames through a switch.
func pass(r *st.Rig, frames ...[]byte) {
	r.In(0, frames...)
	for range len(frames) + 1 {
		r.Advance(100)
		r.Out(1)
		r.Out(2)
	}
}

// reports takes what is ready, by its wire form.
func reports(t *testing.T, r *st.Rig) (v []*flowradar.Report) {
	for {
		b, ok := of(r).TakeReport(nil)
		if !ok {
			return v
		}
		x, err := flowradar.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		v = append(v, x)
	}
}

// In every slot each flow has the packets and bytes that the switch got, with the
// ports that it came and went by, and a slot without any says so; both kinds of
// table agree.
func TestSlots(t *testing.T) {
	r := begin(t, with(st.Star(), options("both", 100)))
	first := of(r).now.Slot
	for i := range 10 {
		for range i {
			pass(r, datagram(i), datagram(i))
		}
	}
	for range 3 {
		r.Advance(slot)
	}
	v := reports(t, r)
	if len(v) != 3 || v[0].Slot != first || v[1].Slot != first+1 || v[2].Packets != 0 || v[0].Node != 7 || v[0].To != frame.Time(first+1)*slot || v[1].From != v[0].To {
		t.Fatalf("%d reports: %+v", len(v), *v[0])
	}
	table := v[0].Image.Single()
	if !table.Done() || len(table.Records) != 9 || v[0].Exact.Len() != 9 || v[0].Packets != 90 {
		t.Fatalf("%d and %d flows of 9, %d packets of 90", len(table.Records), v[0].Exact.Len(), v[0].Packets)
	}
	for i := range 9 {
		e := v[0].Exact.At(i)
		n := uint32(2 * (i + 1))
		if e.Packets != n || e.Bytes != uint64(n)*142 || e.In != 0 || e.Out != 1 || e.String() != "10.0.0.1:"+string(rune('1'+i))+" > 10.0.0.2:2000 protocol 17" {
			t.Errorf("flow %d: %+v", i, e)
		}
		if rec, ok := table.Find(e.Key); !ok || !rec.Exact || rec.Traffic != e.Traffic {
			t.Errorf("flow %d is decoded as %+v, want %+v", i, rec, e.Traffic)
		}
	}
}

// What the tables of the switch drop was there and went nowhere; copies of a flood
// are one packet; what is not IP is counted as such.
func TestWhatCounts(t *testing.T) {
	cfg := with(st.Star(), options("exact", 100))
	cfg.Ports[1].MTU = 100
	r := begin(t, cfg)
	small := func(dst int) []byte {
		return wt.Frame(wt.Eth(st.HostMAC(dst), st.HostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(uint16(dst), 1), wt.Zeros(20))
	}
	pass(r, datagram(5), small(9), small(9), wt.Frame(wt.EthType(st.HostMAC(2), st.HostMAC(1), 0x9000), wt.Zeros(60)))
	r.Advance(slot)
	v := reports(t, r)[0]
	if v.Exact.Len() != 2 || v.Other != 1 || v.Packets != 3 {
		t.Fatalf("%d flows, %d others, %d packets", v.Exact.Len(), v.Other, v.Packets)
	}
	for i := range 2 {
		e := v.Exact.At(i)
		dropped := uint16(e.Rest>>24) == 5
		if dropped && (e.Out != flowradar.NoPort || e.Packets != 1) || !dropped && (e.Out == flowradar.NoPort || e.Packets != 2) {
			t.Errorf("%v: %+v", e.Key, e.Traffic)
		}
	}
}

// The fragments of a packet are of one flow, which has no ports: later ones say none, and
// neither does the first one count for them. What came whole is of its own flow.
func TestFragments(t *testing.T) {
	r := begin(t, with(st.Star(), options("both", 100)))
	fragment := func(flags uint16, data ...wt.Layer) []byte {
		return wt.Frame(append([]wt.Layer{wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) {
			f.ID, f.Proto, f.FlagsOffset = 77, wire.ProtoUDP, flags
		}))}, data...)...)
	}
	pass(r, fragment(wire.IPv4MoreFragments, wt.UDP(7, 2000), wt.Zeros(72)), fragment(wire.IPv4MoreFragments|10, wt.Zeros(80)), fragment(20, wt.Zeros(80)), datagram(7))
	r.Advance(slot)
	v := reports(t, r)[0]
	got := map[string]uint32{}
	for i := range v.Exact.Len() {
		e := v.Exact.At(i)
		got[e.String()] = e.Packets
	}
	if got["10.0.0.1:0 > 10.0.0.2:0 protocol 17"] != 3 || got["10.0.0.1:7 > 10.0.0.2:2000 protocol 17"] != 1 || len(got) != 2 {
		t.Errorf("%v", got)
	}
	if table := v.Image.Single(); !table.Done() || len(table.Records) != 2 {
		t.Errorf("%d flows are decoded", len(table.Records))
	}
}

// A packet in a tunnel is of the flow that the addresses and the protocol of its outer header
// say, with the ports of what is within (by which paths are chosen, too), at every switch: it is
// not taken for the packet that is within.
func TestTunnels(t *testing.T) {
	r := begin(t, with(st.Star(), options("both", 100)))
	in := func(layers ...wt.Layer) []byte {
		return wt.Frame(append([]wt.Layer{wt.Eth(st.HostMAC(2), st.HostMAC(1))}, layers...)...)
	}
	for port := range uint16(3) {
		inner := []wt.Layer{wt.IPv4("10.0.7.1", "10.0.8.2"), wt.UDP(port, 9), wt.Zeros(40)}
		pass(r, in(inner...), in(append([]wt.Layer{wt.IPv4("10.0.0.1", "10.0.0.2")}, inner...)...))
	}
	r.Advance(slot)
	v := reports(t, r)[0]
	got := map[string]uint32{}
	for i := range v.Exact.Len() {
		e := v.Exact.At(i)
		got[e.String()] = e.Packets
	}
	if got["10.0.0.1:1 > 10.0.0.2:9 protocol 4"] != 1 || got["10.0.7.1:1 > 10.0.8.2:9 protocol 17"] != 1 || len(got) != 6 {
		t.Errorf("%v", got)
	}
}

// A worker clears no table between two frames: the goroutine that takes a report empties it. What is
// in a table that was given back is there when it is counted in.
func TestWorkersClearNothing(t *testing.T) {
	r := begin(t, with(st.Star(), options("both", 100)))
	pass(r, datagram(1))
	r.Advance(slot)
	reports(t, r)
	out := of(r).desk.Outbox()
	left := flowradar.Key{Addrs: 7, Rest: 7}
	for i := range tables - 1 {
		x := out.Empty()
		if x == nil || x.Packets != 0 || x.Exact.Len() != 0 || x.Encoded.Flows != 0 {
			t.Fatalf("table %d of those that were given back: %+v", i, x)
		}
		x.Exact.Update(left, flowradar.Traffic{Packets: 1})
		out.Return(x)
	}
	for i := range tables - 1 {
		r.Advance(slot)
		v := reports(t, r)
		if len(v) != 1 || v[0].Exact.Len() != min(i, 1) {
			t.Errorf("slot %d: %d reports, %d flows", i, len(v), v[0].Exact.Len())
		}
	}
}

// A host that sends ever new flows fills the tables of its slot, for others, too: those
// that come later are not reported by themselves then. What is not reported is counted, packets of
// all are, no flow is made up, and the next slot is whole.
func TestOneHostFillsTheTables(t *testing.T) {
	const flood = 2000
	r := begin(t, with(st.Star(), options("both", 64)))
	other := wt.Frame(wt.Eth(st.HostMAC(1), st.HostMAC(2)), wt.IPv4("10.0.0.2", "10.0.0.1"), wt.UDP(9, 9), wt.Zeros(100))
	for i := range flood {
		r.In(0, datagram(1+i))
		r.Advance(1)
		r.Out(1)
		r.Out(2)
	}
	idle := func() {
		r.In(1, other)
		r.Advance(1)
		r.Out(0)
		r.Out(2)
	}
	idle()
	r.Advance(slot)
	idle()
	r.Advance(slot)
	v := reports(t, r)
	if len(v) != 2 {
		t.Fatalf("%d reports", len(v))
	}
	full, next := v[0], v[1]
	if full.Packets != flood+1 || full.Exact.Len() != 4*64 || full.Exact.Overflow != flood+1-4*64 || full.Image.Flows < 10*64 {
		t.Errorf("%d packets, %d entries, %d packets that found the table full, %d flows", full.Packets, full.Exact.Len(), full.Exact.Overflow, full.Image.Flows)
	}
	if n := r.Switch.Nodes[0].Feature(Name).(*Point).sum[overflows]; n != full.Exact.Overflow {
		t.Errorf("the counter says %d, the report %d", n, full.Exact.Overflow)
	}
	table := full.Image.Single()
	if table.FlowsDone() {
		t.Error("a table of 64 flows reports 2000")
	}
	for _, x := range table.Records {
		if port := uint16(x.Rest >> 24); x.Src() != 0x0a000001 && x.Src() != 0x0a000002 || x.Src() == 0x0a000001 && (port == 0 || port > flood) {
			t.Errorf("%v was never there", x.Key)
		}
	}
	table = next.Image.Single()
	if !table.Done() || len(table.Records) != 1 || table.Records[0].Packets != 1 || next.Exact.Len() != 1 || next.Exact.Overflow != 0 {
		t.Errorf("the slot behind it: %+v, %d entries", table.Records, next.Exact.Len())
	}
}

// What the switch says of its own, such as that a time to live ran out, is no packet of
// a flow.
func TestOwnPackets(t *testing.T) {
	r := begin(t, with(st.Router(), options("exact", 64)))
	r.In(0, st.UDP(r.Switch.Program().Config.MAC, st.HostMAC(1), "10.0.1.2", "10.0.0.1", wt.IPv4With(func(f *wire.IPv4Fields) { f.TTL = 1 })))
	r.Advance(frame.Microsecond)
	if len(r.Out(0)) != 1 {
		t.Fatal("there is no error")
	}
	r.Advance(slot)
	if v := reports(t, r)[0]; v.Packets != 1 || v.Exact.Len() != 1 || v.Exact.At(0).Out != flowradar.NoPort {
		t.Errorf("%d packets of %d flows", v.Packets, v.Exact.Len())
	}
}

// An exporter that does not come loses no packet: a slot goes on until it does, and
// its report says so. A full table counts what it has no place for.
func TestLateExporter(t *testing.T) {
	r := begin(t, with(st.Star(), options("exact", 64)))
	sent := 0
	for i := range 100 {
		pass(r, datagram(i), datagram(i+1))
		sent += 2
		r.Advance(slot - (r.Now+slot)%slot)
	}
	packets, slots, overflow := uint64(0), uint32(0), uint64(0)
	for range 3 {
		for _, v := range reports(t, r) {
			packets += v.Packets
			slots += v.Slots
			overflow += v.Exact.Overflow
		}
		r.Advance(slot)
	}
	if packets != uint64(sent) || slots < 100 || overflow == 0 || of(r).sum[merged] == 0 {
		t.Errorf("%d packets of %d in %d slots, %d without a place, %d merged", packets, sent, slots, overflow, of(r).sum[merged])
	}
}

// Options come, change and go while frames pass, and what was counted is reported.
func TestOptionsChange(t *testing.T) {
	r := st.New(t, st.Star())
	pass(r, datagram(1))
	total := uint64(0)
	for _, mode := range []string{"encoded", "exact", "both", ""} {
		cfg := st.Star()
		if mode != "" {
			cfg = with(cfg, options(mode, 64))
		}
		r.Apply(cfg)
		pass(r, datagram(1))
		for _, v := range reports(t, r) {
			total += v.Packets
		}
	}
	if total != 3 {
		t.Errorf("%d packets of 3 were reported", total)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := (&Section{Mode: "both", Slot: 1e7, Flows: 4_000_000, Decode: "alone"}).Options(&vswitch.Config{})
	if at := new(vswitch.KeyError); !errors.As(err, &at) || at.Key != "flows" {
		t.Errorf("tables of gigabytes: %v", err)
	}
	a, b := options("encoded", 64), options("encoded", 64)
	if a != b || a.Encoded.Seed == 0 {
		t.Errorf("%+v, %+v", a, b)
	}
}

// 10,000 frames of which some bytes are anything: all that are IP are counted once,
// whatever becomes of them.
func TestMutatedFrames(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	r := begin(t, with(st.Star(), options("both", 5_000)))
	ends := wt.Eth(st.HostMAC(2), st.HostMAC(1))
	protos := [][]byte{datagram(1),
		wt.Frame(ends, wt.IPv4("10.0.0.1", "10.0.0.2"), wt.TCP(wire.TCPFields{SrcPort: 1000, DstPort: 80}), wt.Zeros(60)),
		wt.Frame(ends, wt.IPv6("2001:db8::1", "2001:db8::2"), wt.UDP(1, 2), wt.Zeros(60))}
	left := uint64(0)
	for range 625 {
		var v [][]byte
		for range 16 {
			b := append([]byte(nil), protos[rng.IntN(len(protos))]...)
			for range rng.IntN(4) {
				b[rng.IntN(len(b))] = byte(rng.Uint32())
			}
			v = append(v, b[:len(b)-rng.IntN(2)*rng.IntN(len(b)-1)])
		}
		r.In(0, v...)
		for range 17 {
			r.Advance(60)
			left += uint64(len(r.Out(1)))
			r.Out(2)
		}
	}
	r.Advance(slot)
	v := reports(t, r)[0]
	sum := uint64(0)
	for i := range v.Exact.Len() {
		sum += uint64(v.Exact.At(i).Packets)
	}
	if sum != v.Packets || v.Exact.Overflow != 0 || v.Packets+v.Other < left || left < 2000 {
		t.Errorf("%d packets, %d in the table, %d others, %d left", v.Packets, sum, v.Other, left)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	r := st.New(t, with(st.Star(), options("both", 64)))
	r.AllocatesNothing([][]byte{datagram(1), datagram(2)})
	of(r).flush()
	if of(r).now.Packets < 100 {
		t.Errorf("%d packets are counted", of(r).now.Packets)
	}
}

var _ feature.Reporter = (*Point)(nil)

// BenchmarkFlows is what counting costs a frame, beside a switch that does not.
func BenchmarkFlows(b *testing.B) {
	unrated := func(cfg *vswitch.Config) *vswitch.Config { return st.Rated(cfg, 0) }
	for _, c := range []struct {
		name  string
		mode  string
		flows int
	}{{"exact-1", "exact", 1}, {"exact-1k", "exact", 1000}, {"encoded-1", "encoded", 1}, {"encoded-1k", "encoded", 1000}} {
		b.Run(c.name, func(b *testing.B) {
			var frames [][]byte
			for i := range max(c.flows, 64) {
				frames = append(frames, datagram(1+i%c.flows))
			}
			st.BenchBeside(b, st.NewPump(b, unrated(st.Star()), frames), st.NewPump(b, unrated(with(st.Star(), options(c.mode, 2000))), frames))
		})
	}
}
