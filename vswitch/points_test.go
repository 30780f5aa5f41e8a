package vswitch_test

import (
	"fmt"
	roccpoint "gswitch/rocc/point"
	"testing"

	crossbarpoint "gswitch/crossbar/point"
	"gswitch/frame"
	"gswitch/notice"
	"gswitch/qcn"
	qcnpoint "gswitch/qcn/point"
	"gswitch/rocc"
	"gswitch/scheduler/orders"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// roce is a data frame of a queue pair from one host to another.
func roce(from, to int, qp uint32, bytes int) []byte {
	b := wt.Frame(wt.Eth(host(to), host(from)), wt.IPv4(fmt.Sprint("10.0.0.", from), fmt.Sprint("10.0.0.", to)), wt.UDP(49152+uint16(qp), wire.RoCEv2Port), wt.BTH(wire.RCSendMiddle, qp, 5), wt.Zeros(bytes-54))
	return b
}

// pointed is a bridge of three ports at 10 Gb/s whose port 1 is a congestion
// point of RoCC with a period of ten microseconds.
func pointed() *vswitch.Config {
	cfg := bridge(3, 10e9)
	p := rocc.For(10e9)
	p.QRef, p.QMid, p.QMax, p.Period = 3_000, 6_000, 9_000, 10*frame.Microsecond
	cfg.Ports[1].Options = vswitch.Options{roccpoint.Name: roccpoint.Config{Queues: 1 << 3, Params: p}}
	return cfg
}

// notices counts what the congestion points of the switch send to the host behind a
// port, queue pair by queue pair.
func notices(t *testing.T, frames [][]byte) map[uint32]int {
	notified := map[uint32]int{}
	for _, b := range frames {
		m, why := wt.Parse(b)
		if why != frame.Keep || m.Flags&frame.HasICMP == 0 {
			continue
		}
		var n rocc.Notice
		quote, err := n.Decode(b[m.L4:], notice.Type4)
		if err != nil {
			t.Fatalf("%v: % x", err, b)
		}
		notified[wire.BTH(quote[28:]).DestQP()]++
	}
	return notified
}

// A flow is notified as long as a frame of it waits, and once more: whether its
// frames leave by the port, or are thrown away with its link, and also where
// they overtake each other in the queue, so that only their leaving shows it.
func TestFlowsEndWithTheirFrames(t *testing.T) {
	for _, how := range []string{"sent", "flushed", "drained by the watchdog", "pushed out"} {
		for _, overtake := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, overtaking %v", how, overtake), func(t *testing.T) {
				cfg := pointed()
				if overtake {
					cfg.Ports[1].Scheduler.Queues[3].Order = orders.VOQ{}
				}
				if how == "drained by the watchdog" {
					cfg.PFC.Watchdog.Detect = 100 * frame.Microsecond
				}
				if how == "pushed out" { // which no frame of a lossless class is
					cfg.PFC.Classes, cfg.Ports[1].Scheduler.PushOut.Queue = 1<<5, 1<<20
					if overtake {
						cfg.Ports[1].Scheduler.Queues[3].Order = orders.LIFO{}
					}
				}
				d := newDevice(t, cfg, 1, 1024)
				defer d.close(3)
				d.receive(1, wt.PFC(host(9), 1<<3, 0xffff))
				for qp := range uint32(6) {
					for range 4 {
						d.receive(0, roce(1, 2, qp, 1500))
					}
				}
				notified := notices(t, d.sends(0, 35*frame.Microsecond))
				if v := roccpoint.Views(d.node(1), nil)[0]; v.Flows != 6 || len(notified) != 6 {
					t.Fatalf("%d flows wait and %d were notified, want 6", v.Flows, len(notified))
				}
				switch how {
				case "sent":
					d.receive(1, wt.PFC(host(9), 1<<3, 0))
					if sent := len(d.sends(1, 60*frame.Microsecond)); sent != 24 {
						t.Fatalf("%d of 24 frames left", sent)
					}
				case "flushed":
					d.link(1, false)
					d.link(1, true)
				case "pushed out":
					next := *cfg
					next.Ports = append([]vswitch.PortConfig(nil), cfg.Ports...)
					next.Ports[1].Scheduler.PushOut.Queue = 3000
					d.apply(&next)
					d.receive(0, roce(1, 2, 9, 1500))
					if dropped := d.counts(0).Drops[frame.PushedOut]; dropped != 23 {
						t.Fatalf("%d frames were pushed out, want 23", dropped)
					}
					d.sends(0, 35*frame.Microsecond)
					if v := roccpoint.Views(d.node(1), nil)[0]; v.Flows == 0 || v.Flows > 2 {
						t.Errorf("%d flows are known of two frames", v.Flows)
					}
					if sent := len(d.sends(1, 60*frame.Microsecond)); sent != 2 {
						t.Fatalf("%d of 2 frames left", sent)
					}
				default:
					if sent := len(d.sends(1, 400*frame.Microsecond)); sent != 0 || d.counts(0).Drops[frame.PFCWatchdog] != 24 {
						t.Fatalf("%d frames left, dropped %v", sent, d.counts(0).Drops[frame.PFCWatchdog])
					}
				}
				d.sends(0, 60*frame.Microsecond)
				if v := roccpoint.Views(d.node(1), nil)[0]; v.Flows != 0 || v.QueueBytes != 0 {
					t.Errorf("%d flows are known, %d bytes wait", v.Flows, v.QueueBytes)
				}
				if notified := notices(t, d.sends(0, 3*frame.Millisecond)); len(notified) != 0 {
					t.Errorf("flows of which nothing waits are notified: %v", notified)
				}
			})
		}
	}
}

// A point that is turned on again notifies no sender whose last frame left while
// it was off.
func TestPointsForgetWhileOff(t *testing.T) {
	cfg := pointed()
	d := newDevice(t, cfg, 1, 1024)
	defer d.close(3)
	for qp := range uint32(6) {
		d.receive(0, roce(1, 2, qp, 1500), roce(1, 2, qp, 1500))
	}
	off := *cfg
	off.Ports = append([]vswitch.PortConfig(nil), cfg.Ports...)
	off.Ports[1].Options = off.Ports[1].Options.With(roccpoint.Name, roccpoint.Config{})
	d.apply(&off)
	if sent := len(d.sends(1, 100*frame.Microsecond)); sent != 12 {
		t.Fatalf("%d of 12 frames left", sent)
	}
	d.apply(cfg)
	d.sends(0, 100*frame.Microsecond)
	if v := roccpoint.Views(d.node(1), nil)[0]; v.Flows != 0 {
		t.Errorf("%d flows are known, of which nothing waits", v.Flows)
	}
}

// Behind a crossbar the egress queue is a congestion point as it is with a
// shared buffer.
func TestPointsBehindACrossbar(t *testing.T) {
	cfg := pointed()
	cfg.Options = cfg.Options.With(crossbarpoint.Name, crossbarpoint.Config{SkipBlocked: true})
	cfg.Ports[1].Options = cfg.Ports[1].Options.With(qcnpoint.Name, qcnpoint.Config{Queues: 1 << 3, Params: qcn.Params{SetPoint: 3000, Weight: 2, Sample: 1500}})
	d := newDevice(t, cfg, 1, 1024)
	defer d.close(3)
	d.receive(1, wt.PFC(host(9), 1<<3, 0xffff))
	for qp := range uint32(3) {
		for range 8 {
			d.receive(0, roce(1, 2, qp, 1500))
			d.advance(2 * frame.Microsecond)
		}
	}
	rate, crowd := roccpoint.Views(d.node(1), nil)[0], qcnpoint.Views(d.node(1), nil)[0]
	if rate.Flows != 3 || rate.Notices == 0 || rate.QueueBytes == 0 || rate.Fair >= 10e9 {
		t.Errorf("RoCC: %+v", rate)
	}
	if crowd.Samples == 0 || crowd.Messages == 0 {
		t.Errorf("QCN: %+v", crowd)
	}
	d.receive(1, wt.PFC(host(9), 1<<3, 0))
	d.sends(1, 200*frame.Microsecond)
	d.sends(0, 10*frame.Microsecond)
	if v := roccpoint.Views(d.node(1), nil)[0]; v.Flows != 0 {
		t.Errorf("%d flows are known when all have left", v.Flows)
	}
}
