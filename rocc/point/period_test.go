package point

import (
	st "gswitch/vswitch/switchtest"
	"testing"

	"gswitch/rocc"
	wt "gswitch/wire/wiretest"
)

// A congestion point goes by its own queue, whatever waits in the others of
// its port.
func TestCongestionPointSeesItsQueueAlone(t *testing.T) {
	r := st.New(t, roccConfig())
	T := rocc.For(rate40G).Period
	r.Now = 100 * T
	other := wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(3)), wt.IPv4("10.0.0.3", "10.0.0.2", wt.TOS(40<<2)), wt.UDP(1, 2), wt.Zeros(1400))
	for range 100 {
		r.In(0, st.RoCE(1, 1, 1400))
		r.In(2, other, other)
	}
	sched := r.Switch.Nodes[0].Scheduler(1)
	_, mine := sched.QueueLen(0)
	_, others := sched.QueueLen(5)
	if mine == 0 || others == 0 {
		t.Fatalf("%d bytes in queue 0, %d in queue 5", mine, others)
	}
	r.Now += T
	r.RunIdle()
	list, _ := noticesAt(t, r, 0)
	if len(list) != 1 || list[0].Queue != uint32(mine) {
		t.Errorf("queue 0 holds %d bytes, queue 5 %d, and the point sends %+v", mine, others, list)
	}
	if list, _ := noticesAt(t, r, 2); len(list) != 0 {
		t.Errorf("the flow of queue 5 gets %+v", list)
	}
}

// A worker that comes five periods late runs one update, and goes on with the
// next multiple of the period.
func TestLateWorkerUpdatesOnce(t *testing.T) {
	r := st.New(t, roccConfig())
	T := rocc.For(rate40G).Period
	r.Now = 100 * T
	for range 200 {
		r.In(0, st.RoCE(1, 1, 1400))
	}
	r.Now += 5*T + T/3
	r.RunIdle()
	n := r.Switch.Nodes[0]
	if c := pointsOf(n).all[0].count; c.Updates != 1 || c.Branch[rocc.Tuned] != 1 {
		t.Errorf("%d updates after five periods without a worker: %+v", c.Updates, c)
	}
	if pointsOf(n).due != 106*T {
		t.Errorf("the next update is due at %d, want %d", pointsOf(n).due, 106*T)
	}
}

// Notices overtake data that waits for the same port.
func TestNoticesOvertakeData(t *testing.T) {
	r := st.New(t, roccConfig())
	T := rocc.For(rate40G).Period
	r.Now = 100 * T
	back := wt.Frame(wt.Eth(st.HostMAC(1), st.HostMAC(3)), wt.IPv4("10.0.0.3", "10.0.0.1"), wt.UDP(1, 2), wt.Zeros(1400))
	for range 100 {
		r.In(0, st.RoCE(1, 1, 1400))
		r.In(2, back)
	}
	r.Now += T
	r.RunIdle()
	n := r.Switch.Nodes[0]
	if frames, _ := n.Scheduler(0).QueueLen(7); frames != 1 {
		t.Fatalf("%d frames in queue 7 of the port to the sender, want the notice", frames)
	}
	if frames, _ := n.Scheduler(0).QueueLen(0); frames == 0 {
		t.Fatal("no data waits for the port to the sender")
	}
	if m, why := wt.Parse(r.One(0)); why != 0 || m.DSCP != 56 {
		t.Errorf("the first frame that leaves has DSCP %d (%v)", m.DSCP, why)
	}
}
