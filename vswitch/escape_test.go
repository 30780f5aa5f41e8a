package vswitch

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/scheduler/orders"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// escapeConfig is a bridge whose ports 1 and 2 lead to switches that take part
// and port 0 to hosts. All data is in class 3.
func escapeConfig() *Config { return escapePorts(3) }

func escapePorts(n int) *Config {
	cfg := rated(baseConfig(n), rate40G)
	cfg.Class.Queue[6] = 7
	cfg.PFC = PFCConfig{Mode: pfc.PFC, Classes: 1 << 3}
	cfg.Escape = EscapeConfig{On: true, Queue: 6}
	cfg.Buffer.XOFF, cfg.Buffer.XONOffset = 3000, 1000
	for i := range cfg.Ports {
		cfg.Ports[i].Trust, cfg.Ports[i].DefaultClass = TrustNone, 3
		cfg.Ports[i].Escape = i > 0
	}
	cfg.FDB.Static = []StaticMAC{{VLAN: 1, MAC: hostMAC(2), Port: 1}, {VLAN: 1, MAC: hostMAC(1), Port: 0}, {VLAN: 1, MAC: hostMAC(3), Port: 2}}
	return cfg
}

// token is a token for the flow of a data frame.
func token(data []byte, hops uint16) []byte {
	ip := wire.IPv4(data[14:])
	ports := uint32(data[34])<<24 | uint32(data[35])<<16 | uint32(data[36])<<8 | uint32(data[37])
	f := wire.TokenFields{Src: hostMAC(9), Hops: hops, Flow: wire.FlowID{Addrs: uint64(addr4(ip.Src()))<<32 | uint64(addr4(ip.Dst())), Ports: ports, Proto: wire.ProtoUDP}}
	b := make([]byte, wire.MinFrame)
	f.Encode(b)
	return b
}

func addr4(a [4]byte) uint32 {
	return uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
}

// marked puts the mark into a frame.
func marked(b []byte, hops uint8) []byte {
	return append(append(append([]byte(nil), b[:12]...), 0x88, 0xb5, hops, 3), b[12:]...)
}

// all takes what a port sends within some microseconds.
func (r *rig) all(port uint16) (v [][]byte) {
	for range 20 {
		r.advance(frame.Microsecond)
		v = append(v, r.out(port)...)
	}
	return v
}

// A token lets out the first frame of its flow, with a mark, and nothing else;
// it is never bridged.
func TestTokenLetsOut(t *testing.T) {
	r := newRig(t, escapeConfig())
	a, b := roce(1, 1, 100), roce(1, 2, 200)
	r.in(1, wt.PFC(hostMAC(9), 1<<3, 0xffff))
	r.in(0, a, b, a)
	if v := r.all(1); len(v) != 0 {
		t.Fatalf("%d frames past the pause", len(v))
	}
	r.in(1, token(b, 2))
	if got := r.one(1); !bytes.Equal(got, marked(b, 2)) {
		t.Fatalf("% x", got)
	}
	r.in(1, token(b, 1))
	for p := range uint16(3) {
		if v := r.all(p); len(v) != 0 {
			t.Fatalf("port %d sends % x", p, v[0])
		}
	}
	v := r.sw.Nodes[0].Escape(nil)[1]
	if v.Hits != 1 || v.Dropped != 1 || v.Free != 64 {
		t.Fatalf("%+v", v)
	}
	if d := r.drops(); d["local-consumed"] != 2 || len(d) != 2 {
		t.Fatal(d)
	}
	r.in(1, wt.PFC(hostMAC(9), 1<<3, 0))
	if v := r.all(1); len(v) != 2 || !bytes.Equal(v[0], a) || !bytes.Equal(v[1], a) {
		t.Fatalf("%d frames after the pause", len(v))
	}
}

// A switch without Escape, and a port whose neighbour does not take part,
// ignore tokens.
func TestTokenIgnored(t *testing.T) {
	off := escapeConfig()
	off.Escape = EscapeConfig{}
	deaf := escapeConfig()
	deaf.Ports[1].Escape = false
	for name, cfg := range map[string]*Config{"off": off, "deaf": deaf} {
		r := newRig(t, cfg)
		b := roce(1, 2, 200)
		r.in(1, wt.PFC(hostMAC(9), 1<<3, 0xffff))
		r.in(0, b)
		r.in(1, token(b, 1))
		for p := range uint16(3) {
			if v := r.all(p); len(v) != 0 {
				t.Fatalf("%s: port %d sends % x", name, p, v[0])
			}
		}
		r.wantDrop(1, frame.LocalUnhandled)
	}
}

// A switch that has paused a neighbour sends it tokens for the flow whose way
// on is open and none for the one whose way is not, and what comes leaves
// without its mark and gives its place back.
func TestTokensAreMade(t *testing.T) {
	r := newRig(t, escapeConfig())
	open := roce(3, 1, 100)
	shut := udp(hostMAC(1), hostMAC(3), "10.0.0.1", "10.0.0.3")
	r.in(0, wt.PFC(hostMAC(1), 1<<3, 0xffff))
	r.in(2, open)
	if v := r.all(1); len(v) != 1 {
		t.Fatal(len(v))
	}
	if v := r.all(2); len(v) != 0 {
		t.Fatalf("%d frames before anything is paused", len(v))
	}
	for range 40 {
		r.in(2, shut)
	}
	r.in(0, wt.PFC(hostMAC(1), 1<<3, 0xffff))
	tokens := 0
	for i, b := range r.all(2) {
		var f wire.TokenFields
		if _, why := f.Decode(b); why != frame.Keep {
			if i != 0 {
				t.Fatalf("% x", b)
			}
			continue // the pause
		}
		if want := token(open, 1); !bytes.Equal(b[12:], want[12:]) {
			t.Fatalf("% x, want % x", b, want)
		}
		tokens++
	}
	if v := r.sw.Nodes[0].Escape(nil)[1]; tokens == 0 || v.Kept != tokens || v.Made != uint64(tokens) {
		t.Fatalf("%d tokens; %+v", tokens, v)
	}
	r.in(2, marked(open, 1))
	if v := r.sw.Nodes[0].Escape(nil)[1]; v.Taken != 0 || v.Parked != 1 || v.Kept != tokens-1 {
		t.Fatalf("%+v", v)
	}
	if got := r.one(1); !bytes.Equal(got, open) {
		t.Fatalf("% x", got)
	}
	if v := r.sw.Nodes[0].Escape(nil)[1]; v.Taken+v.Parked != 0 || v.Arrived != 1 || v.Free+v.Kept != 64 {
		t.Fatalf("%+v", v)
	}
	// One that nobody asked for is a frame like any other.
	stranger := roce(3, 7, 100)
	r.advance(frame.Microsecond) // the link is busy with the one before
	r.in(2, marked(stranger, 1))
	if got := r.one(1); !bytes.Equal(got, stranger) || r.sw.Nodes[0].Escape(nil)[1].Strays != 1 {
		t.Fatalf("% x", got)
	}
}

func TestEscapeRefused(t *testing.T) {
	for want, f := range map[string]func(*Config){
		"nothing to escape from": func(c *Config) { c.PFC = PFCConfig{} },
		"no queue 8":             func(c *Config) { c.Escape.Queue = 8 },
		"that of class 6":        func(c *Config) { c.Escape.Queue = 7 },
		"is above queue 6":       func(c *Config) { c.PFC.Classes = 1 << 7 },
		"not strict":             func(c *Config) { c.Ports[1].Scheduler.Queues[6].Weight = 1 },
		"order of its own":       func(c *Config) { c.Ports[1].Scheduler.Queues[3].Order = orders.VOQ{} },
		"negative":               func(c *Config) { c.Escape.Period = -1 },
		"places at a port":       func(c *Config) { c.Escape.Config.Flows = 1 },
	} {
		cfg := escapeConfig()
		f(cfg)
		arena := frame.MustArena(256, 2048, 128)
		if _, err := New(cfg, []*frame.Pool{frame.NewPool(arena)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Letting frames out allocates nothing.
func TestEscapeNoAllocation(t *testing.T) {
	r := newRig(t, escapeConfig())
	data := roce(1, 1, 100)
	tok := token(data, 1)
	r.in(1, wt.PFC(hostMAC(9), 1<<3, 0xffff))
	r.in(0, data, data)
	n, pool := r.sw.Nodes[0], r.pools[0]
	var v [8]frame.Ref
	in := make([]frame.Ref, 1)
	if got := testing.AllocsPerRun(200, func() {
		r.now += 20
		in[0] = pool.New(data)
		n.Receive(r.now, 0, in)
		in[0] = pool.New(tok)
		n.Receive(r.now, 1, in)
		for _, ref := range v[:n.Transmit(r.now, 1, v[:])] {
			pool.Free(ref)
		}
	}); got != 0 {
		t.Fatal(got)
	}
}

// routed is escapeConfig as a router: 10.2/16 is behind port 1 or 2.
func routedEscape(via byte) *Config {
	cfg := escapePorts(4)
	cfg.FDB.Static = nil
	for i := range cfg.Ports {
		cfg.Ports[i].Addresses = []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.0.%d.1/24", i))}
		cfg.Neighbors = append(cfg.Neighbors, StaticNeighbor{Addr: netip.AddrFrom4([4]byte{10, 0, byte(i), 2}), MAC: hostMAC(i + 1)})
		cfg.Ports[i].Escape = true
	}
	cfg.Routes = []Route{routeBy(via)}
	return cfg
}

func routeBy(via byte) Route {
	return Route{Prefix: netip.MustParsePrefix("10.2.0.0/16"), NextHops: []NextHop{{Via: netip.AddrFrom4([4]byte{10, 0, via, 2})}}}
}

// When a route changes, the tokens of its flows are made at the new port at
// once, though all their frames wait at the neighbour. What comes on a token of
// the old port has a place nevertheless.
func TestTokensFollowRoutes(t *testing.T) {
	r := newRig(t, routedEscape(1))
	self := r.sw.Program().Config.MAC
	data := udp(self, hostMAC(9), "10.2.0.1", "10.9.0.1")
	shut := udp(self, hostMAC(9), "10.0.3.2", "10.9.0.1")
	r.in(0, data)
	if v := r.all(1); len(v) != 1 {
		t.Fatal(len(v))
	}
	r.in(3, wt.PFC(hostMAC(4), 1<<3, 0xffff))
	for range 60 {
		r.in(0, shut) // until the neighbour at port 0 is paused
	}
	r.all(0)
	v := r.sw.Nodes[0].Escape(nil)
	if v[1].Kept == 0 || v[2].Made != 0 {
		t.Fatalf("before the change: %+v", v)
	}
	if err := r.sw.SetRoute(routeBy(2)); err != nil {
		t.Fatal(err)
	}
	old := v[1].Made
	r.all(0)
	v = r.sw.Nodes[0].Escape(nil)
	if v[1].Made != old || v[2].Made == 0 {
		t.Fatalf("after the change: %+v", v)
	}
	// A frame on a token that no port has out.
	r.in(0, marked(udp(self, hostMAC(9), "10.2.0.1", "10.9.0.7"), 1))
	free := v[2].Free
	if v = r.sw.Nodes[0].Escape(nil); v[2].Strays != 1 || v[2].Parked != min(free, 1) {
		t.Fatalf("without a token: %+v", v[2])
	}
}
