package point

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// escapeConfig is a bridge whose ports 1 and 2 lead to switches that take part
// and port 0 to hosts. All data is in class 3.
func escapeConfig() *vswitch.Config { return escapePorts(3) }

func escapePorts(n int) *vswitch.Config {
	cfg := st.Rated(st.Base(n), st.Rate40G)
	cfg.Class.Queue[6] = 7
	cfg.PFC = vswitch.PFCConfig{Mode: pfc.PFC, Classes: 1 << 3}
	with(cfg, Config{Queue: 6})
	cfg.Buffer.XOFF, cfg.Buffer.XONOffset = 3000, 1000
	for i := range cfg.Ports {
		cfg.Ports[i].Trust, cfg.Ports[i].DefaultClass = vswitch.TrustNone, 3
		takePart(&cfg.Ports[i], i > 0)
	}
	cfg.FDB.Static = []vswitch.StaticMAC{{VLAN: 1, MAC: st.HostMAC(2), Port: 1}, {VLAN: 1, MAC: st.HostMAC(1), Port: 0}, {VLAN: 1, MAC: st.HostMAC(3), Port: 2}}
	return cfg
}

// token is a token for the flow of a data frame.
func token(data []byte, hops uint16) []byte {
	ip := wire.IPv4(data[14:])
	ports := uint32(data[34])<<24 | uint32(data[35])<<16 | uint32(data[36])<<8 | uint32(data[37])
	f := wire.TokenFields{Src: st.HostMAC(9), Hops: hops, Flow: wire.FlowID{Addrs: uint64(addr4(ip.Src()))<<32 | uint64(addr4(ip.Dst())), Ports: ports, Proto: wire.ProtoUDP}}
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

// A token releases the first frame of its flow, with a mark, and nothing else;
// it is never bridged.
func TestTokenLetsOut(t *testing.T) {
	r := newRig(t, escapeConfig())
	a, b := st.RoCE(1, 1, 100), st.RoCE(1, 2, 200)
	r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
	r.In(0, a, b, a)
	if v := r.all(1); len(v) != 0 {
		t.Fatalf("%d frames past the pause", len(v))
	}
	r.In(1, token(b, 2))
	if got := r.One(1); !bytes.Equal(got, marked(b, 2)) {
		t.Fatalf("% x", got)
	}
	r.In(1, token(b, 1))
	for p := range uint16(3) {
		if v := r.all(p); len(v) != 0 {
			t.Fatalf("port %d sends % x", p, v[0])
		}
	}
	v := Views(r.Switch.Nodes[0], nil)[1]
	if v.Hits != 1 || v.Dropped != 1 || v.Free != 64 {
		t.Fatalf("%+v", v)
	}
	if d := r.Drops(); d["local-consumed"] != 2 || len(d) != 2 {
		t.Fatal(d)
	}
	r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0))
	if v := r.all(1); len(v) != 2 || !bytes.Equal(v[0], a) || !bytes.Equal(v[1], a) {
		t.Fatalf("%d frames after the pause", len(v))
	}
}

// A switch without Escape, and a port whose neighbour does not take part,
// ignore tokens.
func TestTokenIgnored(t *testing.T) {
	off := escapeConfig()
	off.Options = nil
	refusing := escapeConfig()
	takePart(&refusing.Ports[1], false)
	for name, cfg := range map[string]*vswitch.Config{"off": off, "refusing": refusing} {
		r := newRig(t, cfg)
		b := st.RoCE(1, 2, 200)
		r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
		r.In(0, b)
		r.In(1, token(b, 1))
		for p := range uint16(3) {
			if v := r.all(p); len(v) != 0 {
				t.Fatalf("%s: port %d sends % x", name, p, v[0])
			}
		}
		r.WantDrop(1, frame.LocalUnhandled)
	}
}

// A switch that has paused a neighbour sends it tokens for the flow whose way
// on is open and none for the one whose way is not, and what comes leaves
// without its mark and gives its place back.
func TestTokensAreMade(t *testing.T) {
	r := newRig(t, escapeConfig())
	open := st.RoCE(3, 1, 100)
	shut := st.UDP(st.HostMAC(1), st.HostMAC(3), "10.0.0.1", "10.0.0.3")
	r.In(0, wt.PFC(st.HostMAC(1), 1<<3, 0xffff))
	r.In(2, open)
	if v := r.all(1); len(v) != 1 {
		t.Fatal(len(v))
	}
	if v := r.all(2); len(v) != 0 {
		t.Fatalf("%d frames before anything is paused", len(v))
	}
	for range 40 {
		r.In(2, shut)
	}
	r.In(0, wt.PFC(st.HostMAC(1), 1<<3, 0xffff))
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
	if v := Views(r.Switch.Nodes[0], nil)[1]; tokens == 0 || v.Kept != tokens || v.Made != uint64(tokens) {
		t.Fatalf("%d tokens; %+v", tokens, v)
	}
	r.In(2, marked(open, 1))
	if v := Views(r.Switch.Nodes[0], nil)[1]; v.Taken != 0 || v.Parked != 1 || v.Kept != tokens-1 {
		t.Fatalf("%+v", v)
	}
	if got := r.One(1); !bytes.Equal(got, open) {
		t.Fatalf("% x", got)
	}
	if v := Views(r.Switch.Nodes[0], nil)[1]; v.Taken+v.Parked != 0 || v.Arrived != 1 || v.Free+v.Kept != 64 {
		t.Fatalf("%+v", v)
	}
	// One that was not asked for is a frame like any other.
	unsolicited := st.RoCE(3, 7, 100)
	flows := Views(r.Switch.Nodes[0], nil)[1].Flows
	r.Advance(frame.Microsecond) // the link is busy with the one before
	r.In(2, marked(unsolicited, 1))
	if got := r.One(1); !bytes.Equal(got, unsolicited) || Views(r.Switch.Nodes[0], nil)[1].Strays != 1 {
		t.Fatalf("% x", got)
	}
	if v := Views(r.Switch.Nodes[0], nil)[1]; v.Flows != flows {
		t.Fatalf("%d flows are known, %d before", v.Flows, flows)
	}
}

func TestEscapeRefused(t *testing.T) {
	for want, f := range map[string]func(*vswitch.Config){
		"nothing to escape from": func(c *vswitch.Config) { c.PFC = vswitch.PFCConfig{} },
		"no queue 8":             func(c *vswitch.Config) { change(c, func(e *Config) { e.Queue = 8 }) },
		"that of class 6":        func(c *vswitch.Config) { change(c, func(e *Config) { e.Queue = 7 }) },
		"is above queue 6":       func(c *vswitch.Config) { c.PFC.Classes = 1 << 7 },
		"not strict":             func(c *vswitch.Config) { c.Ports[1].Scheduler.Queues[6].Weight = 1 },
		"negative":               func(c *vswitch.Config) { change(c, func(e *Config) { e.Period = -1 }) },
		"places at a port":       func(c *vswitch.Config) { change(c, func(e *Config) { e.Flows = 1 }) },
	} {
		cfg := escapeConfig()
		f(cfg)
		arena := frame.MustArena(256, 2048, 128)
		if _, err := vswitch.New(cfg, []*frame.Pool{frame.NewPool(arena)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Letting frames out allocates nothing.
func TestEscapeNoAllocation(t *testing.T) {
	r := newRig(t, escapeConfig())
	data := st.RoCE(1, 1, 100)
	tok := token(data, 1)
	r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
	r.In(0, data, data)
	n, pool := r.Switch.Nodes[0], r.Pools[0]
	var v [8]frame.Ref
	in := make([]frame.Ref, 1)
	if got := testing.AllocsPerRun(200, func() {
		r.Now += 20
		in[0] = pool.New(data)
		n.Receive(r.Now, 0, in)
		in[0] = pool.New(tok)
		n.Receive(r.Now, 1, in)
		for _, ref := range v[:n.Transmit(r.Now, 1, v[:])] {
			pool.Free(ref)
		}
	}); got != 0 {
		t.Fatal(got)
	}
}

// routedEscape is escapeConfig as a router: 10.2/16 is behind port 1 or 2.
func routedEscape(via byte) *vswitch.Config {
	cfg := escapePorts(4)
	cfg.FDB.Static = nil
	for i := range cfg.Ports {
		cfg.Ports[i].Addresses = []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.0.%d.1/24", i))}
		cfg.Neighbors = append(cfg.Neighbors, vswitch.StaticNeighbor{Addr: netip.AddrFrom4([4]byte{10, 0, byte(i), 2}), MAC: st.HostMAC(i + 1)})
		takePart(&cfg.Ports[i], true)
	}
	cfg.Routes = []vswitch.Route{routeBy(via)}
	return cfg
}

func routeBy(via byte) vswitch.Route {
	return vswitch.Route{Prefix: netip.MustParsePrefix("10.2.0.0/16"), NextHops: []vswitch.NextHop{{Via: netip.AddrFrom4([4]byte{10, 0, via, 2})}}}
}

// When a route changes, the tokens of its flows are made at the new port at
// once, though all their frames wait at the neighbour. What comes on a token of
// the old port has a place nevertheless.
func TestTokensFollowRoutes(t *testing.T) {
	r := newRig(t, routedEscape(1))
	self := r.Switch.Program().Config.MAC
	data := st.UDP(self, st.HostMAC(9), "10.2.0.1", "10.9.0.1")
	shut := st.UDP(self, st.HostMAC(9), "10.0.3.2", "10.9.0.1")
	r.In(0, data)
	if v := r.all(1); len(v) != 1 {
		t.Fatal(len(v))
	}
	r.In(3, wt.PFC(st.HostMAC(4), 1<<3, 0xffff))
	for range 60 {
		r.In(0, shut) // until the neighbour at port 0 is paused
	}
	r.all(0)
	v := Views(r.Switch.Nodes[0], nil)
	if v[1].Kept == 0 || v[2].Made != 0 {
		t.Fatalf("before the change: %+v", v)
	}
	if err := r.Switch.SetRoute(routeBy(2)); err != nil {
		t.Fatal(err)
	}
	old := v[1].Made
	r.all(0)
	v = Views(r.Switch.Nodes[0], nil)
	if v[1].Made != old || v[2].Made == 0 {
		t.Fatalf("after the change: %+v", v)
	}
	// A frame on a token that no port has out.
	r.In(0, marked(st.UDP(self, st.HostMAC(9), "10.2.0.1", "10.9.0.7"), 1))
	free := v[2].Free
	if v = Views(r.Switch.Nodes[0], nil); v[2].Strays != 1 || v[2].Parked != min(free, 1) {
		t.Fatalf("without a token: %+v", v[2])
	}
}
