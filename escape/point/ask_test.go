package point

import (
	"bytes"
	"testing"

	"gswitch/escape"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// request is a request for tokens of the flow of a data frame.
func request(data []byte, hops uint16) []byte {
	var t wire.TokenFields
	t.Decode(token(data, hops))
	f := wire.RequestFields{Src: t.Src, Flow: t.Flow, Hops: hops, Class: 3}
	b := make([]byte, wire.MinFrame)
	f.Encode(b)
	return b
}

// requests counts the requests among some frames by their flow.
func requests(t *testing.T, v [][]byte, hops uint16) map[wire.FlowID]int {
	t.Helper()
	n := map[wire.FlowID]int{}
	for _, b := range v {
		var f wire.RequestFields
		if _, why := f.Decode(b); why != frame.Keep {
			continue
		}
		if f.Hops != hops || f.Class != 3 {
			t.Fatalf("%+v", f)
		}
		n[f.Flow]++
	}
	return n
}

func flowIn(data []byte) wire.FlowID {
	var f wire.TokenFields
	f.Decode(token(data, 1))
	return f.Flow
}

// A port that is paused for as long as a token may be out asks its neighbour for
// tokens of each flow that waits there, again and again until the pause ends.
func TestTokensAreRequested(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*vswitch.Config)
		asks bool
	}{
		{"asks", func(*vswitch.Config) {}, true},
		{"as printed", func(c *vswitch.Config) { change(c, func(e *Config) { e.Printed = true }) }, false},
		{"the neighbour is a host", func(c *vswitch.Config) { takePart(&c.Ports[1], false) }, false},
		{"off", func(c *vswitch.Config) { c.Options = nil }, false},
	} {
		cfg := routedEscape(1)
		c.edit(cfg)
		r := newRig(t, cfg)
		r.Advance(frame.Microsecond) // nothing is due any more
		self := r.Switch.Program().Config.MAC
		r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
		a, b := st.UDP(self, st.HostMAC(9), "10.2.0.1", "10.9.0.1"), st.UDP(self, st.HostMAC(9), "10.2.0.2", "10.9.0.1")
		r.In(0, a, a, b)
		if v := r.all(1); len(v) != 0 {
			t.Fatalf("%s: %d frames after 20 us of pause", c.name, len(v))
		}
		var v [][]byte
		for range 15 {
			v = append(v, r.all(1)...)
		}
		got := requests(t, v, 1)
		if !c.asks {
			if len(v) != 0 {
				t.Fatalf("%s: % x", c.name, v[0])
			}
			continue
		}
		if len(got) != 2 || got[flowIn(a)] != 3 || got[flowIn(b)] != 3 || len(v) != 6 {
			t.Fatalf("%s: %v in %d frames", c.name, got, len(v))
		}
		if x := Views(r.Switch.Nodes[0], nil)[1]; x.Asked != 6 {
			t.Fatalf("%+v", x)
		}
		r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0))
		v = nil
		for range 15 {
			v = append(v, r.all(1)...)
		}
		if len(v) != 3 || len(requests(t, v, 1)) != 0 {
			t.Fatalf("%d frames after the pause", len(v))
		}
	}
}

// Not all flows are asked for at once, but each in its turn.
func TestAskingInTurn(t *testing.T) {
	r := newRig(t, routedEscape(1))
	self := r.Switch.Program().Config.MAC
	r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
	const flows = 3*asksAtOnce - 1
	for i := range flows {
		data := st.UDP(self, st.HostMAC(9), "10.2.0.1", "10.9.0.1")
		data[34], data[35] = byte(i), 7
		r.In(0, data)
	}
	seen := map[wire.FlowID]int{}
	for range 20 {
		v := requests(t, r.all(1), 1)
		if len(v) > asksAtOnce {
			t.Fatalf("%d requests at once", len(v))
		}
		for f, n := range v {
			seen[f] += n
		}
	}
	if len(seen) != flows {
		t.Fatalf("%d flows of %d were asked for", len(seen), flows)
	}
}

// A switch makes tokens for a flow that it is asked for, though it never sent a
// frame of it. Where its own way on is paused it asks the next one.
func TestRequested(t *testing.T) {
	r := newRig(t, routedEscape(1))
	self := r.Switch.Program().Config.MAC
	r.In(3, wt.PFC(st.HostMAC(4), 1<<3, 0xffff))
	for range 60 {
		r.In(0, st.UDP(self, st.HostMAC(9), "10.0.3.2", "10.9.0.1")) // until the neighbour at port 0 is paused
	}
	r.all(0)
	data := st.UDP(self, st.HostMAC(9), "10.2.0.1", "10.9.0.1")
	r.In(0, request(data, 1))
	tokens := 0
	for _, b := range r.all(0) {
		var f wire.TokenFields
		if _, why := f.Decode(b); why == frame.Keep && f.Flow == flowIn(data) && f.Hops == 1 {
			tokens++
		}
	}
	if v := r.all(1); len(v) != 0 || tokens == 0 {
		t.Fatalf("%d tokens, %d frames to the port that is open", tokens, len(v))
	}
	r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
	r.In(0, request(data, 5))
	if got := requests(t, r.all(1), 6); got[flowIn(data)] != 1 {
		t.Fatalf("passed on: %v", got)
	}
	// As far as can be, by no route, and back where it came from.
	away := st.UDP(self, st.HostMAC(9), "172.16.0.1", "10.9.0.1")
	back := st.UDP(self, st.HostMAC(9), "10.0.0.2", "10.9.0.1")
	r.In(0, request(data, escape.MaxHops), request(away, 1), request(back, 1))
	for p := range uint16(4) {
		for _, b := range r.all(p) {
			var f wire.RequestFields
			if _, why := f.Decode(b); why == frame.Keep && (p == 0 || f.Flow == flowIn(away) || f.Hops > 1) {
				t.Fatalf("port %d sends % x", p, b)
			}
		}
	}
	if d := r.Drops(); d["local-unhandled"] != 0 {
		t.Fatal(d)
	}
	if v := r.egress(0); v.Refused != 2 {
		t.Fatalf("%+v", v)
	}
	// What cannot be meant is not understood.
	none, class, far := request(data, 0), request(data, 1), request(data, 1)
	class[31], far[31] = 4, 200
	r.In(0, none, class, far)
	if d := r.Drops(); d["local-unhandled"] != 3 {
		t.Fatal(d)
	}
	cfg := routedEscape(1)
	takePart(&cfg.Ports[0], false)
	r = newRig(t, cfg)
	r.In(0, request(data, 1))
	r.WantDrop(0, frame.LocalUnhandled)
}

// onePlace is a router with one place at each port that has paused its neighbour
// at port 0, and sent a token there for one of two flows that leave by port 1. It
// returns a frame of that flow, and one of the other.
func onePlace(t *testing.T) (r *rig, asked, other []byte) {
	cfg := routedEscape(1)
	change(cfg, func(e *Config) {
		e.Config = escape.Config{Slots: 1, Flows: 8, PerFlow: 1, Reclaim: 10 * frame.Millisecond}
	})
	r = newRig(t, cfg)
	self := r.Switch.Program().Config.MAC
	a, b := st.UDP(self, st.HostMAC(9), "10.2.0.1", "10.9.0.1"), st.UDP(self, st.HostMAC(9), "10.2.0.1", "10.9.0.2")
	r.In(0, a, b)
	if v := r.all(1); len(v) != 2 {
		t.Fatal(len(v))
	}
	r.In(3, wt.PFC(st.HostMAC(4), 1<<3, 0xffff))
	for range 60 {
		r.In(0, st.UDP(self, st.HostMAC(9), "10.0.3.2", "10.9.0.1"))
	}
	for _, v := range r.all(0) {
		var f wire.TokenFields
		if _, why := f.Decode(v); why == frame.Keep {
			if f.Flow == flowIn(a) {
				return r, a, b
			}
			return r, b, a
		}
	}
	t.Fatal("no token")
	return nil, nil, nil
}

func (r *rig) egress(port int) View { return Views(r.Switch.Nodes[0], nil)[port] }

// A frame that came on a token of this switch to a port that is paused by now
// does not keep the port's place from tokens of others: those may be for frames
// that it waits for.
func TestParkedFrame(t *testing.T) {
	r, asked, other := onePlace(t)
	r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
	r.In(0, marked(asked, 1))
	if v := r.egress(1); v.Parked != 1 || v.Free != 1 || v.Arrived != 1 {
		t.Fatalf("%+v", v)
	}
	r.In(1, token(other, 1))
	var f wire.TokenFields
	for _, b := range r.all(0) {
		if _, why := f.Decode(b); why == frame.Keep {
			break
		}
	}
	if v := r.egress(1); f.Flow != flowIn(other) || f.Hops != 2 || v.Forwarded != 1 || v.Kept != 1 {
		t.Fatalf("%+v %+v", f, v)
	}
	// It is released as any other, and its place is free then.
	r.In(1, token(asked, 1))
	if v := r.all(1); len(v) != 1 || r.egress(1).Parked != 0 || r.egress(1).Free != 0 {
		t.Fatalf("%d frames, %+v", len(v), r.egress(1))
	}
}

// Where an older frame of the flow goes on in the stead of the one that came,
// what waits then takes no place, and everything is given back in the end.
func TestOlderFrameTakesThePlace(t *testing.T) {
	for name, park := range map[string]bool{"that is charged": false, "that is parked": true} {
		r, asked, other := onePlace(t)
		flow := other
		if park {
			flow = asked
		}
		r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
		if park {
			r.In(0, marked(asked, 1))
			// A token of its flow that was passed on before.
			exits(r.Switch.Nodes[0]).ports[1].Pass(r.Now, r.hashOf(asked), flowIn(asked), 1, func(uint16, uint8) bool { return true })
		} else {
			r.In(0, marked(asked, 1)) // out of the way
			r.In(1, token(other, 1))
			r.In(0, other)
		}
		parked := r.egress(1).Parked
		if v := r.egress(1); v.Kept != 1 || parked != 1 {
			t.Fatalf("%s: %+v", name, v)
		}
		r.In(0, marked(flow, 2))
		if v := r.egress(1); v.Taken != 1 || v.Kept != 0 || v.Parked != parked {
			t.Fatalf("%s: %+v", name, v)
		}
		if v := r.all(1); len(v) != 1 || v[0][14] != 1 {
			t.Fatalf("%s: %d frames", name, len(v))
		}
		if v := r.egress(1); v.Taken != 0 || v.Free != 1 || v.Parked != parked {
			t.Fatalf("%s: one waits; %+v", name, v)
		}
		r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0))
		r.In(3, wt.PFC(st.HostMAC(4), 1<<3, 0))
		for len(r.all(1))+len(r.all(3)) > 0 {
		}
		if v := r.egress(1); v.Taken+v.Parked != 0 || buffered(r.Switch.Nodes[0], 0, 3) != 0 {
			t.Fatalf("%s: at rest %+v, %d bytes held", name, v, buffered(r.Switch.Nodes[0], 0, 3))
		}
	}
}

func (r *rig) hashOf(data []byte) uint32 {
	f := flowIn(data)
	return exits(r.Switch.Nodes[0]).hasher.IPv4(f.Addrs, f.Ports, f.Proto)
}

// Asking and being asked allocates nothing.
func TestAskNoAllocation(t *testing.T) {
	r := newRig(t, routedEscape(1))
	self := r.Switch.Program().Config.MAC
	data := st.UDP(self, st.HostMAC(9), "10.2.0.1", "10.9.0.1")
	r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
	r.In(0, data)
	ask := request(data, 1)
	n, pool := r.Switch.Nodes[0], r.Pools[0]
	if n.PFC(1).XOFFSent()&^(1<<3) != 0 || n.Config().PFC.Mode != pfc.PFC {
		t.Fatal("not the port that is meant")
	}
	var v [32]frame.Ref
	in := make([]frame.Ref, 1)
	if got := testing.AllocsPerRun(200, func() {
		r.Now += 100
		exits(n).ports[1].askAt = 0
		exits(n).ask(r.Now+frame.Millisecond/2, 1)
		in[0] = pool.New(ask)
		n.Receive(r.Now, 0, in)
		for _, ref := range v[:n.Transmit(r.Now, 1, v[:])] {
			pool.Free(ref)
		}
	}); got != 0 {
		t.Fatal(got)
	}
	if !bytes.Equal(ask, request(data, 1)) || Views(n, nil)[1].Asked == 0 {
		t.Fatalf("%+v", Views(n, nil)[1])
	}
}
