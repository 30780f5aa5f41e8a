package point

import (
	"testing"

	"gswitch/frame"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// Packets of a port come to several workers. Those that the owner of the port does
// not see get their slack all the same, and none that they wrote themselves.
func TestAllWorkersWriteSlack(t *testing.T) {
	forged := wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.Slack(-9e9, -9e9), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1, 2), wt.Zeros(100))
	for worker := range 2 {
		r := st.NewOf(t, config(constant(100), 0), 2, 4096)
		for name, b := range map[string][]byte{"without": datagram(1), "forged": forged} {
			r.Now += frame.Millisecond
			r.InOn(worker, 0, b)
			var got []wire.Slack
			for _, b := range r.Out(1) {
				_, h := view(t, b)
				if h == nil {
					h = new(wire.Slack)
				}
				got = append(got, *h)
			}
			if len(got) != 1 || got[0].Initial() != 100 || got[0].Left() != 100 {
				t.Errorf("worker %d, %s: leaves with %x, want 100 ns", worker, name, got)
			}
		}
		policed := uint64(0)
		for _, n := range r.Switch.Nodes {
			if x := n.Feature(Name).(*points).at(0); x != nil {
				policed += x.policed
			}
		}
		if policed != 1 {
			t.Errorf("worker %d: %d packets policed, want 1", worker, policed)
		}
	}
}
