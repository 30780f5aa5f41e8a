package point

import (
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"testing"

	"gswitch/frame"
	"gswitch/rocc"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// Whatever protocol a flow has, a notice quotes what its sender finds it by:
// addresses, protocol and ports, of RoCEv2 the queue pair, too. A bridge
// changes nothing of it.
func TestCongestionPointQuotesFlows(t *testing.T) {
	r := st.New(t, roccConfig())
	flows := map[string][]byte{
		"TCP":    wt.TCP4(st.HostMAC(2), st.HostMAC(1), "10.0.0.1", "10.0.0.2", 1001, 80, wire.TCPAck, make([]byte, 1400)),
		"UDP":    wt.UDP4(st.HostMAC(2), st.HostMAC(1), "10.0.0.1", "10.0.0.2", 1002, 53, make([]byte, 1400)),
		"RoCEv2": st.RoCE(1, 77, 1400),
		"TCP/6":  wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.IPv6("fd00::1", "fd00::2"), wt.TCP(wire.TCPFields{SrcPort: 1003, DstPort: 80, Flags: wire.TCPAck}), wt.Zeros(1400)),
		"UDP/6":  wt.UDP6(st.HostMAC(2), st.HostMAC(1), "fd00::1", "fd00::2", 1004, 53, make([]byte, 1400)),
	}
	for range 40 {
		for _, b := range flows {
			r.In(0, b)
		}
	}
	r.Advance(rocc.For(rate40G).Period)
	list, quotes := noticesAt(t, r, 0)
	if len(list) != len(flows) {
		t.Fatalf("%d notices for %d flows", len(list), len(flows))
	}
	for _, q := range quotes {
		if least := wire.IPv4Len + wire.UDPLen + wire.BTHLen; len(q) < least {
			t.Errorf("%d bytes are quoted, want %d", len(q), least)
		}
	}
	for name, b := range flows {
		found := false
		for _, q := range quotes {
			found = found || string(q) == string(b[wire.EthernetLen:][:len(q)])
		}
		if !found {
			t.Errorf("%s: no notice quotes it: %x", name, quotes)
		}
	}
}

// A sender whose port is gone is not notified any more; what was to be sent to it
// is counted as dropped, others are notified as before, and nothing is lost.
func TestCongestionPointOutlivesItsSenders(t *testing.T) {
	for name, kind := range rocc.Kinds {
		cfg := changed(roccConfig(), func(o *Config) { o.Table = rocc.TableConfig{Kind: kind, Sample: 1, Age: 50} })
		r := st.New(t, cfg)
		T := rocc.For(rate40G).Period
		for range 60 {
			r.In(0, st.RoCE(1, 1, 1400))
			r.In(2, st.RoCE(3, 2, 1400))
		}
		r.Advance(T)
		if a, _ := noticesAt(t, r, 0); len(a) != 1 {
			t.Errorf("%s: %d notices to the one that stays", name, len(a))
		}
		if b, _ := noticesAt(t, r, 2); len(b) != 1 {
			t.Errorf("%s: %d notices to the one that goes", name, len(b))
		}
		less := *cfg
		less.Ports = append([]vswitch.PortConfig(nil), cfg.Ports[:2]...)
		less.FDB.Static = cfg.FDB.Static[:2]
		if err := r.Switch.Apply(&less); err != nil {
			t.Fatal(err)
		}
		before := r.Switch.Nodes[0].SelfDrops()[frame.EgressPortDown]
		for range 3 {
			r.Advance(T)
			if a, _ := noticesAt(t, r, 0); len(a) != 1 {
				t.Errorf("%s: %d notices to the one that stays, when the other is gone", name, len(a))
			}
		}
		if n := r.Switch.Nodes[0].SelfDrops()[frame.EgressPortDown] - before; n != 3 {
			t.Errorf("%s: %d notices found no port, want 3: %v", name, n, r.Drops())
		}
	}
}
