package point

import (
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/notice"
	"gswitch/qcn"
	qcnpoint "gswitch/qcn/point"
	"gswitch/rocc"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	wt "gswitch/wire/wiretest"
)

// Notices do not add to the congestion that they report: a sender whose way back is the
// congested port is not notified, by RoCC or by QCN, whether its frames came in there or by
// another port. Senders with another way back are.
func TestNoNoticesByTheCongestedPort(t *testing.T) {
	params := rocc.For(rate40G)
	for name, o := range map[string]vswitch.Options{
		"rocc": {Name: Config{Queues: 0xff, Params: params}},
		"qcn":  {qcnpoint.Name: qcnpoint.Config{Queues: 0xff, Params: qcn.Default()}},
	} {
		cfg := st.Router()
		cfg.Ports[1].Options = o
		// The network of senders behind port 0 is reached by port 1.
		cfg.Routes = append(cfg.Routes, vswitch.Route{Prefix: netip.MustParsePrefix("10.7.0.0/16"), NextHops: []vswitch.NextHop{{Via: netip.MustParseAddr("10.0.1.2")}}})
		r := st.New(t, cfg)
		send := func(port uint16, from string, n int) {
			mac := st.HostMAC(1 + int(port))
			for range n {
				r.In(port, wt.Frame(wt.Eth(st.SelfMAC, mac), wt.IPv4(from, "10.0.1.2"), wt.UDP(1000, 4791), wt.Zeros(1400)))
			}
		}
		notices := func() (back, others int) {
			for range 3 {
				r.Advance(params.Period)
				for port := range uint16(2) {
					for range 100 {
						for _, b := range r.Out(port) {
							if m, _ := wt.Parse(b); m.Flags&frame.HasICMP == 0 || b[m.L4] != notice.Type4 {
								continue
							}
							if port == 1 {
								back++
							} else {
								others++
							}
						}
						r.Now += frame.Microsecond
					}
				}
			}
			return back, others
		}
		send(0, "10.7.0.1", 400)
		send(1, "10.0.1.9", 400) // comes back where it came from
		if back, others := notices(); back != 0 || others != 0 {
			t.Errorf("%s: %d notices leave by the congested port, %d by the other one", name, back, others)
		}
		if r.Counts(1).Drops[frame.OwnShare] == 0 {
			t.Errorf("%s: there was no flow to be notified: drops %v", name, r.Drops())
		}
		send(0, "10.0.0.1", 400)
		if back, others := notices(); back != 0 || others == 0 {
			t.Errorf("%s: %d notices leave by the congested port, %d by the other one", name, back, others)
		}
	}
}
