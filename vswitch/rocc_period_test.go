package vswitch

import (
	"testing"

	"gswitch/rocc"
	wt "gswitch/wire/wiretest"
)

// A congestion point goes by its own queue, whatever waits in the others of
// its port.
func TestCongestionPointSeesItsQueueAlone(t *testing.T) {
	r := newRig(t, roccConfig())
	T := rocc.For(rate40G).Period
	r.now = 100 * T
	other := wt.Frame(wt.Eth(hostMAC(2), hostMAC(3)), wt.IPv4("10.0.0.3", "10.0.0.2", wt.TOS(40<<2)), wt.UDP(1, 2), wt.Zeros(1400))
	for range 100 {
		r.in(0, roce(1, 1, 1400))
		r.in(2, other, other)
	}
	sched := r.sw.Nodes[0].ports[1].sched
	_, mine := sched.QueueLen(0)
	_, others := sched.QueueLen(5)
	if mine == 0 || others == 0 {
		t.Fatalf("%d bytes in queue 0, %d in queue 5", mine, others)
	}
	r.now += T
	r.settle()
	list, _ := r.notices(0)
	if len(list) != 1 || list[0].Queue != uint32(mine) {
		t.Errorf("queue 0 holds %d bytes, queue 5 %d, and the point tells %+v", mine, others, list)
	}
	if list, _ := r.notices(2); len(list) != 0 {
		t.Errorf("the flow of queue 5 is told %+v", list)
	}
}

// A worker that comes five periods late runs one update, and goes on with the
// next multiple of the period.
func TestLateWorkerUpdatesOnce(t *testing.T) {
	r := newRig(t, roccConfig())
	T := rocc.For(rate40G).Period
	r.now = 100 * T
	for range 200 {
		r.in(0, roce(1, 1, 1400))
	}
	r.now += 5*T + T/3
	r.settle()
	n := r.sw.Nodes[0]
	if c := n.points[0].count; c.Updates != 1 || c.Branch[rocc.Tuned] != 1 {
		t.Errorf("%d updates after five periods without a worker: %+v", c.Updates, c)
	}
	if n.pointsDue != 106*T {
		t.Errorf("the next update is due at %d, want %d", n.pointsDue, 106*T)
	}
}

// Notices overtake data that waits for the same port.
func TestNoticesOvertakeData(t *testing.T) {
	r := newRig(t, roccConfig())
	T := rocc.For(rate40G).Period
	r.now = 100 * T
	back := wt.Frame(wt.Eth(hostMAC(1), hostMAC(3)), wt.IPv4("10.0.0.3", "10.0.0.1"), wt.UDP(1, 2), wt.Zeros(1400))
	for range 100 {
		r.in(0, roce(1, 1, 1400))
		r.in(2, back)
	}
	r.now += T
	r.settle()
	n := r.sw.Nodes[0]
	if frames, _ := n.ports[0].sched.QueueLen(7); frames != 1 {
		t.Fatalf("%d frames in queue 7 of the port to the sender, want the notice", frames)
	}
	if frames, _ := n.ports[0].sched.QueueLen(0); frames == 0 {
		t.Fatal("no data waits for the port to the sender")
	}
	if m, why := wt.Parse(r.one(0)); why != 0 || m.DSCP != noticeDSCP {
		t.Errorf("the first frame that leaves has DSCP %d (%v)", m.DSCP, why)
	}
}
