package point

import (
	"testing"

	"gswitch/buffer"
	"gswitch/escape"
	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// known lists the flows that may get tokens at a port, with the ports that they
// come by.
func (r *rig) known(port int) map[wire.FlowID]uint16 {
	v := map[wire.FlowID]uint16{}
	exits(r.Switch.Nodes[0]).ports[port].Each(func(_ uint32, key wire.FlowID, in uint16, _ uint8) { v[key] = in })
	return v
}

// A flow that leaves by another port now gets no token at the old one any more,
// though what is out there comes to nothing and its places are free again.
func TestMovedFlowIsRetired(t *testing.T) {
	r := newRig(t, routedEscape(1))
	self := r.Switch.Program().Config.MAC
	data := st.UDP(self, st.HostMAC(9), "10.2.0.1", "10.9.0.1")
	r.In(0, data)
	r.all(1)
	r.In(3, wt.PFC(st.HostMAC(4), 1<<3, 0xffff))
	for range 60 {
		r.In(0, st.UDP(self, st.HostMAC(9), "10.0.3.2", "10.9.0.1")) // until the neighbour at port 0 is paused
	}
	r.all(0)
	if err := r.Switch.SetRoute(routeBy(2)); err != nil {
		t.Fatal(err)
	}
	r.all(0)
	if in, ok := r.known(2)[flowIn(data)]; len(r.known(1)) != 0 || !ok || in != 0 {
		t.Fatalf("known at the old port %v, at the new one %v", r.known(1), r.known(2))
	}
	old := r.egress(1).Made
	for range 20 { // four times as long as tokens may stay out
		r.all(0)
	}
	if v := r.egress(1); v.Made != old || v.Kept != 0 || v.Reclaimed != old {
		t.Fatalf("at the old port: %+v, %d tokens before", v, old)
	}
	// Nor does it pass on those of others.
	if _, ok := exits(r.Switch.Nodes[0]).ports[1].Pass(r.Now, r.hashOf(data), flowIn(data), 1, func(uint16, uint8) bool { return true }); ok {
		t.Fatal("a token is passed on by the old port")
	}
	// It moves back.
	if err := r.Switch.SetRoute(routeBy(1)); err != nil {
		t.Fatal(err)
	}
	r.all(0)
	if len(r.known(2)) != 0 || len(r.known(1)) != 1 || r.egress(1).Made == old {
		t.Fatalf("back: %v, %v, %+v", r.known(1), r.known(2), r.egress(1))
	}
}

// A marked frame for which its port has no token out is lent a place there, and
// its flow is known at no other port any more.
func TestStray(t *testing.T) {
	r := newRig(t, routedEscape(1))
	self := r.Switch.Program().Config.MAC
	data := st.UDP(self, st.HostMAC(9), "10.2.0.1", "10.9.0.1")
	for port := range 4 {
		exits(r.Switch.Nodes[0]).ports[port].Note(r.hashOf(data), flowIn(data), 0, 3)
	}
	r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
	r.In(0, marked(data, 1))
	if v := r.egress(1); v.Strays != 1 || v.Parked != 1 || v.Arrived != 0 || v.Free != 64 {
		t.Fatalf("%+v", v)
	}
	for port := range 4 {
		if _, ok := r.known(port)[flowIn(data)]; ok != (port == 1) {
			t.Errorf("port %d may make tokens: %v", port, ok)
		}
	}
	// The lent place is not charged to what the neighbour has headroom for.
	if held := buffered(r.Switch.Nodes[0], 0, 3); held != 0 {
		t.Errorf("%d bytes are charged to the class", held)
	}
	// One that goes on, past the pause, takes a place until it has left.
	r.In(0, marked(st.UDP(self, st.HostMAC(9), "10.2.0.1", "10.9.0.2"), 2))
	if v := r.egress(1); v.Strays != 2 || v.Taken != 1 || v.Free != 63 {
		t.Fatalf("%+v", v)
	}
	if v := r.all(1); len(v) != 1 || r.egress(1).Taken != 0 || r.egress(1).Free != 64 {
		t.Fatalf("%d frames, %+v", len(v), r.egress(1))
	}
}

// A token waits until nothing is under way from the neighbour that is paused:
// the pause frame waits for a frame of ours and goes over the link, the neighbour
// reacts, and its frame comes over the link.
func TestPatience(t *testing.T) {
	cfg := routedEscape(1)
	for i := range cfg.Ports {
		cfg.Ports[i].CableDelay = 5000
	}
	cfg.Buffer.Size, cfg.Buffer.Response = 1<<20, 700
	r := newRig(t, cfg)
	self := r.Switch.Program().Config.MAC
	n := r.Switch.Nodes[0]
	r.In(3, wt.PFC(st.HostMAC(4), 1<<3, 0xffff))
	for range 60 {
		r.In(0, st.UDP(self, st.HostMAC(9), "10.0.3.2", "10.9.0.1"))
	}
	pfc := n.PFC(0).Class(3)
	if !pfc.XOFFSent {
		t.Fatal("the neighbour is not paused")
	}
	// Two frames of 1518 bytes and 24 on the link need 616.8 ns at 40 Gb/s.
	const least = 2*5000 + 700 + 616
	for dt, want := range map[frame.Time]bool{0: false, least / 2: false, least: false, least + 3: true} {
		n.Advance(pfc.XOFFSince + dt)
		if got := exits(n).isWaited(0, 3); got != want {
			t.Errorf("%v after the pause: %v", dt.Duration(), got)
		}
	}
	n.Advance(r.Now)
}

// Hosts that are paused get no tokens, whose flows go the same way as those of a
// switch that does.
func TestHostsGetNoTokens(t *testing.T) {
	cfg := escapePorts(4)
	cfg.FDB.Static = append(cfg.FDB.Static, vswitch.StaticMAC{VLAN: 1, MAC: st.HostMAC(4), Port: 3})
	r := newRig(t, cfg)
	n := r.Switch.Nodes[0]
	ofHost, ofSwitch := st.RoCE(1, 1, 100), st.RoCE(3, 1, 100) // by port 1
	r.In(0, ofHost)
	r.In(2, ofSwitch)
	if v := r.all(1); len(v) != 2 {
		t.Fatal(len(v))
	}
	if v := r.known(1); len(v) != 1 || v[flowIn(ofSwitch)] != 2 {
		t.Fatalf("known: %v", v)
	}
	// Not even where the flow is known.
	exits(n).ports[1].Note(r.hashOf(ofHost), flowIn(ofHost), 0, 3)
	r.In(3, wt.PFC(st.HostMAC(4), 1<<3, 0xffff))
	for range 60 {
		r.In(0, st.UDP(st.HostMAC(4), st.HostMAC(1), "10.0.0.1", "10.0.0.4"))
		r.In(2, st.UDP(st.HostMAC(4), st.HostMAC(3), "10.0.0.3", "10.0.0.4"))
	}
	if n.PFC(0).XOFFSent() != 1<<3 || n.PFC(2).XOFFSent() != 1<<3 {
		t.Fatal("not both are paused")
	}
	tokens := [3]int{}
	for range 4 {
		for port := range uint16(3) {
			for _, b := range r.all(port) {
				var f wire.TokenFields
				if _, why := f.Decode(b); why == frame.Keep {
					tokens[port]++
				}
			}
		}
	}
	if tokens[0] != 0 || tokens[1] != 0 || tokens[2] == 0 {
		t.Fatalf("tokens by port: %v", tokens)
	}
}

// A frame that escaped, has no room among those that do, and is queued as any
// other is none that was refused. One that has no room there either is one.
func TestRefusedOnce(t *testing.T) {
	cfg := escapeConfig()
	change(cfg, func(e *Config) { e.Config = escape.Config{Slots: 1, Flows: 8, PerFlow: 1, Reclaim: frame.Millisecond} })
	cfg.Buffer.Size, cfg.Buffer.QueueReserve = 1<<20, 200
	r := newRig(t, cfg)
	n := r.Switch.Nodes[0]
	for _, bytes := range []uint32{1500, 64} { // neither the queue nor the class has room beyond the reserve of the others
		for n.Charge(&frame.Meta{InPort: 2, OutPort: 1, Class: 3, Queue: 6, Wire: bytes}) {
		}
	}
	var s buffer.Snapshot
	data := st.RoCE(3, 1, 50)
	for i, refused := range []uint64{0, 1} {
		r.In(2, marked(data, 1))
		n.Buffer(&s, false)
		if s.RefusedFrames != refused || s.RefusedBytes != refused*uint64(len(data)) || s.Ports[2].Groups[3].Drops != refused || s.Ports[1].Queues[3].Drops != refused || s.Ports[1].Queues[6].Drops != 0 {
			t.Errorf("frame %d: %+v; class %+v; queues %+v", i, s.Totals, s.Ports[2].Groups[3], s.Ports[1].Queues)
		}
		if v := r.egress(1); v.Strays != uint64(i+1) || v.Taken+v.Parked+v.Kept != 0 {
			t.Errorf("frame %d: %+v", i, v)
		}
	}
	if v := r.all(1); len(v) != 1 {
		t.Errorf("%d frames left", len(v))
	}
	r.WantDrop(2, frame.HeadroomFull)
}
