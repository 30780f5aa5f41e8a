package vswitch

import (
	"fmt"
	"gswitch/notice"
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/rocc"
	"gswitch/wire"
)

// With any table the senders of two flows that fill the queue are told; when
// they send no more, the point comes to rest. A change of the table while
// frames wait, there and back, loses and leaks nothing.
func TestCongestionPointTables(t *testing.T) {
	T := rocc.For(rate40G).Period
	for name, kind := range rocc.Kinds {
		cfg := roccConfig()
		cfg.Ports[1].RoCC.Table = rocc.TableConfig{Kind: kind, Sample: 2, Age: 20}
		r := newRig(t, cfg)
		n := r.sw.Nodes[0]
		told := map[uint32]int{}
		period := func() {
			r.advance(T - 8*frame.Microsecond)
			r.out(1)
			_, quotes := r.notices(0)
			for _, q := range quotes {
				told[wire.BTH(q[28:]).DestQP()]++
			}
		}
		for range 40 {
			for range 8 {
				r.in(0, roce(1, 1, 1400), roce(1, 2, 1400))
			}
			period()
		}
		if told[1] < 30 || told[2] < 30 || len(told) != 2 {
			t.Errorf("%s: in 40 periods were told %v", name, told)
		}
		if v := n.RoCC(nil); v[0].Table != kind || v[0].Flows != 2 {
			t.Errorf("%s: the point says %+v", name, v[0])
		}
		for _, other := range []rocc.Kind{rocc.AFD, rocc.InQueue, kind} {
			next := *cfg
			next.Ports = append([]PortConfig(nil), cfg.Ports...)
			next.Ports[1].RoCC.Table.Kind = other
			if err := r.sw.Apply(&next); err != nil {
				t.Fatal(err)
			}
			r.in(0, roce(1, 3, 1400))
			period()
		}
		for range 1200 { // one frame leaves in each
			period()
		}
		if n.pointsDue != frame.Never {
			t.Errorf("%s: the point does not rest: %+v", name, n.RoCC(nil)[0])
		}
	}
}

// A point that leaves the arithmetic to hosts tells each update of the queue,
// and those who run the controller on them come to the rate that it would.
func TestCongestionPointTellsReadings(t *testing.T) {
	cfg := roccConfig()
	cfg.Ports[1].RoCC.AtHosts = true
	r := newRig(t, cfg)
	T := rocc.For(rate40G).Period
	want := rocc.NewController(&cfg.Ports[1].RoCC.Params)
	var host rocc.Followers
	rate, readings := 0.0, 0
	for range 60 {
		for range 4 {
			r.in(0, roce(1, 1, 1400))
		}
		_, queue := r.sw.Nodes[0].ports[1].sched.QueueLen(0)
		r.advance(T - r.now%T) // the notices took a few microseconds
		want.Update(queue)
		for range 8 {
			r.now += frame.Microsecond
			for _, b := range r.out(0) {
				var got rocc.Reading
				if _, err := got.Decode(b[14+20:], notice.Type4); err != nil {
					t.Fatal(err)
				}
				if uint64(got.Queue) != queue || got.Point() != 9<<32|1<<8 {
					t.Errorf("%+v, the queue is %d", got, queue)
				}
				rate = host.Take(r.now, &got)
				readings++
			}
		}
	}
	if readings < 50 || rate != float64(want.Rate()) || rate == 40e9 {
		t.Errorf("%d readings, from which follow %v; the switch would have told %v", readings, rate, want.Rate())
	}
	if v := r.sw.Nodes[0].RoCC(nil)[0]; v.Fair != 0 || v.Notices != uint64(readings) {
		t.Errorf("%+v", v)
	}
}

func TestCongestionPointTablesAllocateNothing(t *testing.T) {
	for name, kind := range rocc.Kinds {
		for _, atHosts := range []bool{false, true} {
			cfg := roccConfig()
			cfg.Ports[1].RoCC.Table, cfg.Ports[1].RoCC.AtHosts = rocc.TableConfig{Kind: kind, Sample: 1}, atHosts
			r := newRig(t, cfg)
			flows := [][]byte{roce(1, 1, 1000), roce(1, 2, 1000), roce(1, 3, 1000)}
			r.allocatesNothing(fmt.Sprintf("%s, at hosts %v", name, atHosts), slices.Repeat(flows, 4))
		}
	}
}
