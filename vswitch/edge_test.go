package vswitch

import (
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/notice"
	"gswitch/qcn"
	"gswitch/rocc"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// Notices that only switches send to senders do not come in by a port to a host, and
// does by one to a switch; what hosts have to say of both goes through.
func TestHostsSendNoNoticesForSwitches(t *testing.T) {
	made := func(mode inband.Mode, op uint8, records int) []byte {
		profile := inband.DefaultProfile()
		codec := inband.NewCodec(mode, &profile)
		head := make([]byte, codec.FullLen(records))
		codec.Init(head[:codec.HeaderLen()])
		switch {
		case records > 0 && mode == inband.INTMD:
			head[2] = byte(len(head) / 4) // in words, after the shim's fashion
		case records > 0:
			head[0] = byte(records << 4)
		}
		return wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(50000, mode.Port()), wt.Payload(head), wt.BTH(op, 5, 6), wt.Zeros(20))
	}
	message := func(encode func(b, quote []byte) int) []byte {
		b := make([]byte, 128)
		b = b[:encode(b, wt.Frame(wt.Eth(hostMAC(1), hostMAC(2)), wt.IPv4("10.0.0.2", "10.0.0.3"), wt.UDP(50000, wire.RoCEv2Port), wt.BTH(wire.RCSendMiddle, 5, 6))[14:])]
		return wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.ICMP(b[0], b[1], wire.ICMP(b).Rest()), wt.Payload(b[8:]))
	}
	for name, c := range map[string]struct {
		frame []byte
		why   frame.Reason
	}{
		"notice":         {wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.ICMP(notice.Type4, 0, 0), wt.Zeros(60)), frame.NoticeAtEdge},
		"notice of IPv6": {wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.IPv6("fd00::1", "fd00::2"), wt.ICMPv6(notice.Type6, 0, 0), wt.Zeros(60)), frame.NoticeAtEdge},
		"tagged notice":  {wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.VLAN(0, 7), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.ICMP(notice.Type4, 0, 0), wt.Zeros(60)), frame.NoticeAtEdge},
		"a fair rate": {message(func(b, quote []byte) int {
			return (&rocc.Notice{Fair: 1, Unit: 1, Stretch: 15}).Encode(b, notice.Type4, quote)
		}), frame.NoticeAtEdge},
		"a reading": {message(func(b, quote []byte) int {
			return (&rocc.Reading{Params: rocc.For(1e9)}).Encode(b, notice.Type4, quote)
		}), frame.NoticeAtEdge},
		"quantized feedback":  {message(func(b, quote []byte) int { return (&qcn.Message{Feedback: 63}).Encode(b, notice.Type4, quote) }), frame.NoticeAtEdge},
		"a CNP, as hosts do":  {wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(50000, wire.RoCEv2Port), wt.BTH(wire.RoCECongestionNotify, 5, 0), wt.Zeros(20)), frame.Keep},
		"ping":                {wt.Frame(wt.Eth(hostMAC(2), hostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.ICMP(8, 0, 0), wt.Zeros(60)), frame.Keep},
		"data":                {made(inband.HPCC, wire.RCSendOnly, 0), frame.Keep},
		"forged data":         {made(inband.HPCC, wire.RCSendOnly, 3), frame.TelemetryAtEdge},
		"forged growing data": {made(inband.HPCCGrow, wire.RCSendOnly, 2), frame.TelemetryAtEdge},
		"INT-MD":              {made(inband.INTMD, wire.RCSendOnly, 0), frame.Keep},
		"echo":                {made(inband.HPCC, wire.RCAcknowledge, 3), frame.Keep},
	} {
		for _, edge := range []bool{true, false} {
			cfg := baseConfig(2)
			cfg.Ports[0].Edge = edge
			r := newRig(t, cfg)
			r.in(0, c.frame)
			out := len(r.out(1))
			want := 1
			if edge && c.why != frame.Keep {
				want = 0
				r.wantDrop(0, c.why)
			}
			if out != want {
				t.Errorf("%s, edge %v: %d frames arrive, want %d; drops %v", name, edge, out, want, r.drops())
			}
		}
	}
}

// Notices leave most of a link to what it carries, however many there are to be
// notified.
func TestNoticesShareTheLink(t *testing.T) {
	for _, share := range []bool{false, true} {
		cfg := baseConfig(2)
		cfg.ShareOwn = share
		const rate = 60e6
		cfg.Ports[0].Scheduler.Rate, cfg.Ports[0].Scheduler.Burst = rate, frame.Millisecond
		r := newRigOf(t, cfg, 1, 4096)
		n := r.sw.Nodes[0]
		var msg Message
		msg.Head[0] = notice.Type4
		msg.Set(notice.MaxLen)
		data := wt.Frame(wt.Eth(hostMAC(1), hostMAC(2)), wt.IPv4("10.0.0.2", "10.0.0.1"), wt.UDP(1, 2), wt.Zeros(60))
		to := notice.Sender{Port: 0, VID: 1, MAC: hostMAC(1).Uint64(), Len: 20, About: 1}
		copy(to.Back[:], data[14:34])
		made, carried := 0, 0
		for range 10_000 { // a second; 400 notices each 5 ms, as of a period that is too short
			for range 8 {
				n.SendNotice(r.now, &msg, &to)
			}
			r.in(1, data, data, data, data, data, data, data, data, data)
			for _, f := range r.out(0) {
				if wire.Ethernet(f).Src() == selfMAC {
					made += len(f)
				} else {
					carried += len(f)
				}
			}
			r.advance(100 * frame.Microsecond)
		}
		if got := float64(made) * 8; share && (got > rate*0.15 || got < rate*0.1) || !share && got < rate*0.9 {
			t.Errorf("share %v: notices take %.3g of %.3g bit/s", share, got, float64(rate))
		}
		if got := float64(carried) * 8; share && got < rate*0.6 || !share && got > rate*0.1 {
			t.Errorf("share %v: data has %.3g of %.3g bit/s", share, got, float64(rate))
		}
	}
}
