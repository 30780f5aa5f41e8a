package deter

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/tcp"
)

var ends = [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:40000"), netip.MustParseAddrPort("10.0.0.2:80")}

// What is seen next to the sender is what the sender itself counts: packets, and those
// sent again.
func TestObservedAtTheSender(t *testing.T) {
	for seed := range uint64(5) {
		w := newWires(t, config(), false)
		w.fate = impaired(seed, 0.01, 0.01, 0)
		w.post(3_000_000)
		w.run(100 * frame.Second)
		var o Observer
		for _, d := range w.left {
			o.Packet(d.at, 7, ends[d.end], ends[1-d.end], &d.seg)
			o.Packet(d.at+us, 8, ends[d.end], ends[1-d.end], &d.seg) // again, further on
		}
		list := o.Connections()
		if len(list) != 1 || list[0].Ends != ends {
			t.Fatalf("%d connections", len(list))
		}
		st := w.stacks[0].Conn(w.ends[0]).Stats
		d := list[0].By[0]
		if d.Retransmitted != st.Retransmitted || d.Late != 0 || st.Retransmitted == 0 || d.Packets != uint64(w.count[0]) {
			t.Errorf("seed %d: %+v, the sender counted %d retransmissions and %d packets", seed, d, st.Retransmitted, w.count[0])
		}
	}
}

// A tail that is lost comes again by a timer; a reader that does not read closes the
// window; behind a loss, what comes again fills a hole.
func TestObservedCauses(t *testing.T) {
	cfg := config()
	cfg.MinRTO = 200 * ms
	w := newWires(t, cfg, false)
	w.fate = func(from, k int) fate { return fate{lose: from == 0 && k >= 10 && k < 18} }
	w.post(20_000)
	w.run(100 * frame.Second)
	var near, far Observer
	for i, k := 0, [2]int{}; i < len(w.left); i++ {
		d := w.left[i]
		near.Packet(d.at, 1, ends[d.end], ends[1-d.end], &d.seg)
		if d.end == 1 || k[0] < 10 || k[0] >= 18 {
			far.Packet(d.at, 1, ends[d.end], ends[1-d.end], &d.seg)
		}
		k[d.end]++
	}
	st := w.stacks[0].Conn(w.ends[0]).Stats
	if a := near.Connections()[0].By[0]; a.Timeouts != st.Timeouts || a.Timeouts == 0 {
		t.Errorf("%d timeouts are seen, the sender counted %d", a.Timeouts, st.Timeouts)
	}
	if b := far.Connections()[0].By[0]; b.Late+b.Retransmitted > st.Retransmitted {
		t.Errorf("behind the loss %+v, the sender counted %d", b, st.Retransmitted)
	}
	var o Observer
	for i, win := range []uint16{100, 0, 0, 50, 0, 7} {
		o.Packet(frame.Time(i)*ms, 1, ends[0], ends[1], &tcp.Segment{Seq: 5, Ack: uint32(i), Flags: tcp.ACK, Window: win})
	}
	if z := o.Connections()[0].By[0].ZeroWindows; z != 2 {
		t.Errorf("the window closed %d times, want 2", z)
	}
}

// Whatever order packets of a stream come in, each byte is new, fills a hole or came
// again; numbers wrap.
func TestObservedHoles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var o Observer
		const n = 40
		base := uint32(0xffffffff - 100*uint32(r.IntN(n)))
		o.Packet(0, 1, ends[0], ends[1], &tcp.Segment{Seq: base, Len: 100, Flags: tcp.ACK})
		late, again, high := uint64(0), uint64(0), 0
		seen := map[int]bool{0: true}
		for k := range 3 * n {
			i := r.IntN(n)
			switch {
			case seen[i]:
				again++
			case i < high:
				late++
			}
			seen[i], high = true, max(high, i)
			o.Packet(frame.Time(k), 1, ends[0], ends[1], &tcp.Segment{Seq: base + 100*uint32(i), Len: 100, Flags: tcp.ACK})
		}
		if d := o.Connections()[0].By[0]; d.Late != late || d.Retransmitted != again {
			t.Fatalf("%d late and %d again are seen, there were %d and %d", d.Late, d.Retransmitted, late, again)
		}
	}
}
