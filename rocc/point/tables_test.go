package point

import (
	"gswitch/notice"
	st "gswitch/vswitch/switchtest"
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/rocc"
	"gswitch/wire"
)

// With any table the senders of two flows that fill the queue are notified; when
// they send no more, the point comes to rest. A change of the table while
// frames wait, there and back, loses and leaks nothing.
func TestCongestionPointTables(t *testing.T) {
	T := rocc.For(rate40G).Period
	for name, kind := range rocc.Kinds {
		cfg := changed(roccConfig(), func(o *Config) { o.Table = rocc.TableConfig{Kind: kind, Sample: 2, Age: 20} })
		r := st.New(t, cfg)
		n := r.Switch.Nodes[0]
		notified := map[uint32]int{}
		period := func() {
			r.Advance(T - 8*frame.Microsecond)
			r.Out(1)
			_, quotes := noticesAt(t, r, 0)
			for _, q := range quotes {
				notified[wire.BTH(q[28:]).DestQP()]++
			}
		}
		for range 40 {
			for range 8 {
				r.In(0, st.RoCE(1, 1, 1400), st.RoCE(1, 2, 1400))
			}
			period()
		}
		if notified[1] < 30 || notified[2] < 30 || len(notified) != 2 {
			t.Errorf("%s: in 40 periods were notified %v", name, notified)
		}
		if v := Views(n, nil); v[0].Table != kind || v[0].Flows != 2 {
			t.Errorf("%s: the point says %+v", name, v[0])
		}
		for _, other := range []rocc.Kind{rocc.AFD, rocc.InQueue, kind} {
			if err := r.Switch.Apply(changed(cfg, func(o *Config) { o.Table.Kind = other })); err != nil {
				t.Fatal(err)
			}
			r.In(0, st.RoCE(1, 3, 1400))
			period()
		}
		for range 1200 { // one frame leaves in each
			period()
		}
		if pointsOf(n).due != frame.Never {
			t.Errorf("%s: the point does not rest: %+v", name, Views(n, nil)[0])
		}
	}
}

// A point that leaves the arithmetic to hosts sends each update of the queue,
// and those who run the controller on them come to the rate that it would.
func TestCongestionPointSendsReadings(t *testing.T) {
	cfg := changed(roccConfig(), func(o *Config) { o.AtHosts = true })
	r := st.New(t, cfg)
	T := rocc.For(rate40G).Period
	params := rocc.For(rate40G)
	want := rocc.NewController(&params)
	var host rocc.Followers
	rate, readings := 0.0, 0
	for range 60 {
		for range 4 {
			r.In(0, st.RoCE(1, 1, 1400))
		}
		_, queue := r.Switch.Nodes[0].Scheduler(1).QueueLen(0)
		r.Advance(T - r.Now%T) // the notices took a few microseconds
		want.Update(queue)
		for range 8 {
			r.Now += frame.Microsecond
			for _, b := range r.Out(0) {
				var got rocc.Reading
				if _, err := got.Decode(b[14+20:], notice.Type4); err != nil {
					t.Fatal(err)
				}
				if uint64(got.Queue) != queue || got.Point() != 9<<32|1<<8 {
					t.Errorf("%+v, the queue is %d", got, queue)
				}
				rate = host.Take(r.Now, &got)
				readings++
			}
		}
	}
	if readings < 50 || rate != float64(want.Rate()) || rate == 40e9 {
		t.Errorf("%d readings, from which follow %v; the switch would have sent %v", readings, rate, want.Rate())
	}
	if v := Views(r.Switch.Nodes[0], nil)[0]; v.Fair != 0 || v.Notices != uint64(readings) {
		t.Errorf("%+v", v)
	}
}

func TestCongestionPointTablesAllocateNothing(t *testing.T) {
	for _, kind := range rocc.Kinds {
		for _, atHosts := range []bool{false, true} {
			cfg := changed(roccConfig(), func(o *Config) { o.Table, o.AtHosts = rocc.TableConfig{Kind: kind, Sample: 1}, atHosts })
			r := st.New(t, cfg)
			flows := [][]byte{st.RoCE(1, 1, 1000), st.RoCE(1, 2, 1000), st.RoCE(1, 3, 1000)}
			r.AllocatesNothing(slices.Repeat(flows, 4))
		}
	}
}
