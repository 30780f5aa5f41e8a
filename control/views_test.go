package control

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// views asks the API of a switch for all that it lists, by the names of the calls.
func views(t *testing.T, r *Replayed, h *replay.Header, at frame.Time) map[string]proto.Message {
	t.Helper()
	handler, err := r.Handler(h, at)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	defer s.Close()
	client := reflect.ValueOf(api.NewControlClient(s.Client(), s.URL))
	all := map[string]proto.Message{}
	for i := range client.NumMethod() {
		name := client.Type().Method(i).Name
		if !strings.HasPrefix(name, "List") {
			continue
		}
		out := client.Method(i).Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(&api.ListRequest{})})
		if err, failed := out[1].Interface().(error); failed {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = out[0].Interface().(proto.Message)
	}
	return all
}

// viewsDocument is a switch of which there is much to show; below says what is under a port.
func viewsDocument(below func(port string) string) string {
	return fmt.Sprintf(`version: 1
switches:
  - name: s
    mac: 02:aa:00:00:00:01
    seed: 5
    loopback: [10.255.0.1]
    ports:
      - {name: a, %s, rate: 100Mbps, qos: q, trust: dscp, acl: edge}
      - {name: b, %s, rate: 10Mbps, qos: q, trust: dscp}
      - {name: c, %s, rate: 1Gbps, address: [10.1.0.1/24]}
    qos:
      q: {queues: [{queue: 0, weight: 1}, {queue: 3, weight: 3, ecn: {kmin: 4KB, kmax: 40KB, pmax: 0.2}}, {queue: 6, strict: true}]}
    buffer: {size: 1MB, limit: 50KB}
    pfc: {classes: [3], watchdog: {detect: 20ms, restore: 10ms, action: drop}, log: 64}
    telemetry: {int: true}
    routes: [{prefix: 10.50.0.0/16, next_hops: [{via: 10.1.0.7}]}, {prefix: 10.60.0.0/16, blackhole: true}]
    acls: {edge: [{seq: 10, match: {dst: 10.99.0.0/16}, action: drop}, {seq: 20, match: {protocol: tcp}, police: {rate: 1Mbps, burst: 64KiB}}]}
`, below("a"), below("b"), below("c"))
}

// viewsFrame is one of what comes to that switch: pauses, a neighbour's answer, telemetry, and
// frames to all places.
func viewsFrame(rng *rand.Rand, k int) []byte {
	self, host := wire.MAC{2, 0xaa, 0, 0, 0, 1}, func() wire.MAC { return wire.MAC{2, 0, 0, 0, 0, byte(rng.IntN(6))} }
	ip := wt.IPv4("10.0.0.1", []string{"10.0.0.2", "10.99.1.1", "10.50.3.3", "10.60.0.1"}[rng.IntN(4)], wt.TOS([]uint8{0, 26<<2 | wire.ECT0, 48 << 2}[rng.IntN(3)]), wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(k) }))
	switch rng.IntN(12) {
	case 0:
		return wt.PFC(host(), 1<<3, uint16(rng.IntN(2)*60000))
	case 1:
		return wt.Frame(wt.Eth(self, wire.MAC{2, 0, 0, 0, 1, 7}), wt.ARP(wire.ARPFields{Op: wire.ARPReply, SenderMAC: wire.MAC{2, 0, 0, 0, 1, 7}, SenderIP: wt.Addr4("10.1.0.7"), TargetMAC: self, TargetIP: wt.Addr4("10.1.0.1")}))
	case 2, 3:
		return wt.Frame(wt.Eth(self, host()), ip, wt.UDP(5, 6), wt.Zeros(600))
	case 6: // telemetry of HPCC
		b := make([]byte, wire.HPCCLen+wire.BTHLen+500)
		b[wire.HPCCLen] = wire.RCSendOnly
		return wt.Frame(wt.Eth(host(), host()), ip, wt.UDP(40009, wire.HPCCPort), wt.Payload(b))
	case 4, 5:
		return wt.Frame(wt.Eth(host(), host()), ip, wt.TCP(wire.TCPFields{SrcPort: 5, DstPort: 6, Seq: uint32(k)}), wt.Zeros(1000))
	}
	return wt.Frame(wt.Eth(host(), host()), ip, wt.UDP(5, 6), wt.Zeros(1200))
}

// Whatever can be listed of a switch at an instant, its replay lists at that instant, while
// frames wait, ports are paused, tables fill and routes change.
func TestViewsOfAReplay(t *testing.T) {
	doc := viewsDocument(func(port string) string { return "interface: " + port })
	h := replay.Header{Build: "test", Kind: "switch", Name: "s", Document: doc, Chunk: 2048, Chunks: 2000, Headroom: frame.DefaultHeadroom, Start: 1, Monotonic: 123_456_789_000}
	for i, name := range []string{"a", "b", "c"} {
		h.Ports = append(h.Ports, replay.Port{Name: name, Number: i})
	}
	pool := frame.NewPool(frame.MustArena(h.Chunks, h.Chunk, h.Headroom))
	m, err := Rebuild(&h, pool)
	if err != nil {
		t.Fatal(err)
	}
	live, feed := m.(*Replayed), replay.NewFeed(64, 2048)
	rec, err := replay.NewRecorder(1, live.Node, pool, feed)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := replay.NewWriter(&file, &h)
	if err != nil {
		t.Fatal(err)
	}
	rng, now := rand.New(rand.NewPCG(1, 2)), frame.Time(1)
	for port := range uint16(3) {
		rec.SetLink(now, port, true)
	}
	command := func(c vswitch.Change) {
		cmd, err := live.Switch.Prepare(c)
		if err != nil {
			t.Fatal(err)
		}
		rec.Command(now, cmd)
	}
	type instant struct {
		at  frame.Time
		all map[string]proto.Message
	}
	var seen []instant
	for i := range 2000 {
		now += frame.Time(1 + rng.IntN(100_000))
		for port := range uint16(3) {
			var v []frame.Ref
			for range rng.IntN(6) {
				if f := pool.New(viewsFrame(rng, i)); f != frame.Nil {
					v = append(v, f)
				}
			}
			if len(v) > 0 {
				rec.Receive(now, port, v)
			}
		}
		switch i % 150 {
		case 40:
			command(&vswitch.FlushFDB{})
		case 90:
			command(vswitch.SetRoute{Route: vswitch.Route{Prefix: netip.MustParsePrefix("10.70.0.0/16"), NextHops: []vswitch.NextHop{{Via: netip.AddrFrom4([4]byte{10, 1, 0, byte(2 + i/150)})}}}})
		case 120:
			rec.SetLink(now, 1, i%300 < 150)
		}
		rec.Advance(now)
		var out [8]frame.Ref
		for port := range uint16(3) {
			for _, f := range out[:rec.Transmit(now, port, out[:])] {
				pool.Free(f)
			}
		}
		if i%190 == 100 {
			seen = append(seen, instant{now, views(t, live, &h, now)})
		}
	}
	rec.End(now)
	for s := feed.Next(); s != nil; s = feed.Next() {
		if err := w.Write(s); err != nil {
			t.Fatal(err)
		}
		feed.Return(s)
	}

	in, err := replay.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.NewPlayer(in, Rebuild)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range seen {
		for {
			next, err := p.Peek()
			if err != nil {
				t.Fatal(err)
			}
			if next > x.at {
				break
			}
			if _, err := p.Step(); err != nil {
				t.Fatal(err)
			}
		}
		got := views(t, p.Node.(*Replayed), p.Header, x.at)
		for name, want := range x.all {
			if !proto.Equal(got[name], want) {
				t.Errorf("%v: %s of the replay is\n%s\nit was\n%s", x.at.Duration(), name, protojson.Format(got[name]), protojson.Format(want))
			}
		}
	}
	if n := len(seen[0].all); len(seen) < 8 || n < 17 {
		t.Errorf("%d views were compared at %d instants", n, len(seen))
	}
	changed := 0
	for name, first := range seen[0].all {
		empty, same := true, true
		for _, x := range seen {
			empty, same = empty && proto.Size(x.all[name]) == 0, same && proto.Equal(x.all[name], first)
		}
		if none := []string{"ListClocks", "ListExports", "ListPaths", "ListWorkers"}; empty && !slices.Contains(none, name) {
			t.Errorf("%s is empty at all instants", name)
		}
		if !same {
			changed++
		}
	}
	if changed < 10 {
		t.Errorf("%d views change", changed)
	}
}
