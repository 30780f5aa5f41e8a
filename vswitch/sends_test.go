package vswitch_test

import (
	"testing"

	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	wt "gswitch/wire/wiretest"
)

// echoing is a feature that sends copies for each frame that is dropped, also for its copies.
const echoing = "test-echo"

type echo struct {
	node  *vswitch.Node
	to    uint16
	size  int // bytes of a copy
	left  int // copies that it sends still, one for each frame that is dropped
	class uint8
}

func init() {
	vswitch.Register(vswitch.Feature{Name: echoing, New: func(n *vswitch.Node) vswitch.Instance {
		e := &echo{node: n}
		return vswitch.Instance{State: e, Listens: func(uint16, *vswitch.PortConfig) bool { return false }, Dropped: e.dropped}
	}})
}

func (e *echo) dropped(v []frame.Ref) {
	for range v {
		if e.left > 0 {
			e.left--
			e.send()
		}
	}
}

func (e *echo) send() {
	r := e.node.Alloc()
	b := wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.Zeros(e.size-14))
	m := e.node.Arena().Meta(r)
	m.Len, m.Wire, m.Flags, m.InPort, m.OutPort, m.Class = uint16(len(b)), uint32(len(b)), frame.IsClone, 0, e.to, e.class
	copy(e.node.Arena().Bytes(r), b)
	e.node.Send(r)
}

func echoes(r *st.Rig) *echo { return r.Switch.Nodes[0].Feature(echoing).(*echo) }

// Before the instant that PortWake gives, Transmit does nothing: what a feature sends meanwhile
// waits for Advance, for which TimerWake asks. An engine may call Transmit at any time, and
// a recorder does not note such calls.
func TestIdleTransmitSendsNothing(t *testing.T) {
	cfg := st.Rated(st.Star(), 1_000_000)
	cfg.Ports[0].Options = vswitch.Options{echoing: true}
	r := st.New(t, cfg)
	n, e := r.Switch.Nodes[0], echoes(r)
	r.In(0, st.L2(2, 1), st.L2(2, 1), st.L2(2, 1))
	if len(r.Out(1)) != 1 || n.PortWake(r.Now, 1) <= r.Now {
		t.Fatal("port 1 is to be busy, and not due")
	}
	r.SetLink(3, false)
	e.to, e.size, e.left = 3, 60, 3
	// A copy for a port whose link is down is dropped, and so is the copy for that one.
	e.send()
	n.Advance(r.Now)
	for left := 2; left >= 0; left-- {
		if e.left != left || n.TimerWake(r.Now) > r.Now {
			t.Fatalf("%d copies are left, want %d, and one waits to be sent; Advance is due at %v", e.left, left, n.TimerWake(r.Now))
		}
		r.Now += frame.Microsecond
		var out [4]frame.Ref
		if k := n.Transmit(r.Now, 1, out[:]); k != 0 || e.left != left || n.TimerWake(r.Now) > r.Now {
			t.Fatalf("Transmit of a port that is not due gave %d frames, and %d copies are left of %d", k, e.left, left)
		}
		n.Advance(r.Now)
	}
	if n.TimerWake(r.Now) <= r.Now {
		t.Error("Advance is due though nothing waits")
	}
}

// While copies are sent, frames are pushed out for them, so many that features see these before
// all copies are sent, and send more: each copy is sent once and each chunk comes back.
func TestSendsOfSends(t *testing.T) {
	cfg := st.Rated(st.Star(), 1_000_000)
	cfg.Ports[0].Options = vswitch.Options{echoing: true}
	cfg.Ports[1].Scheduler.PushOut = scheduler.PushOut{Port: 100_000}
	r := st.New(t, cfg)
	n, e := r.Switch.Nodes[0], echoes(r)
	small := wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.Zeros(46))
	for range 2000 {
		r.In(0, small)
	}
	// 64 copies of 1,400 bytes to port 1, ahead of those frames, for each of which 23 of them go.
	before := r.Drops()[frame.PushedOut.String()]
	e.to, e.size, e.class = 1, 1400, 7
	for range 64 {
		e.send()
	}
	e.to, e.size, e.class, e.left = 2, 60, 0, 1000
	n.Advance(r.Now)
	pushed := r.Drops()[frame.PushedOut.String()] - before
	large, sent := 0, 0
	for range 2000 {
		r.Advance(frame.Millisecond)
		sent += len(r.Out(2))
		for _, b := range r.Out(1) {
			if len(b) == 1400 {
				large++
			}
		}
	}
	if pushed <= 4*64 || large != 64 || sent == 0 {
		t.Errorf("%d frames were pushed out; %d of 64 large copies left, and %d of others", pushed, large, sent)
	}
}
