package run

import (
	"fmt"
	"testing"

	"gswitch/fabric/measure"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// BenchmarkCores steps 320 hosts at 100 Gb/s, HPCC's network and load, on so many
// cores. It reports frame-hops a second, the share of events that were run side by
// side, and what the sum over windows of the longest part comes to: by how much
// that many cores could be faster than one if nothing else took time.
func BenchmarkCores(b *testing.B) {
	for _, cores := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprint(cores), func(b *testing.B) {
			var hops uint64
			for b.Loop() {
				b.StopTimer()
				n := large(b, cores)
				b.StartTimer()
				if err := n.Engine.Run(400 * frame.Microsecond); err != nil {
					b.Fatal(err)
				}
				s := n.Engine.Stats()
				hops += s.FrameHops
				b.ReportMetric(float64(s.Ahead)/float64(s.Events), "ahead")
				b.ReportMetric(float64(s.Events)/float64(s.Events-s.Ahead+s.Longest), "bound")
				b.ReportMetric(float64(s.Ahead)/float64(max(1, s.Windows)), "events/window")
			}
			b.ReportMetric(float64(hops)/b.Elapsed().Seconds()/1e6, "Mhops/s")
		})
	}
}

// large is the network of HPCC's evaluation with its load.
func large(tb testing.TB, cores int) *vnet.Network {
	s, err := scenario.Load("../../scenarios/hpcc/fig2.11cd-load.yaml", scenario.Options{Only: []string{"hpcc"}, Set: []string{"workload.background.stop=200us", "duration=400us"}})
	if err != nil {
		tb.Fatal(err)
	}
	r := &s.Runs[0]
	n, err := build(r, nil, extras{cores: cores})
	if err != nil {
		tb.Fatal(err)
	}
	rec := measure.New(measure.Config{Groups: r.Doc.Groups(), Frame: uint64(r.Doc.Hosts.Payload), Sample: frame.Millisecond, Bin: frame.Millisecond, End: frame.Time(r.Doc.Duration), Streams: make([]bool, len(r.Doc.Workload))})
	t, err := newTraffic(tb.Context(), n, here{n}, rec, r, s.File)
	if err != nil {
		tb.Fatal(err)
	}
	t.listen(rec)
	t.begin()
	return n
}

// Parts of a network do run side by side, unless something says that they may not.
func TestCoresAreUsed(t *testing.T) {
	s, err := scenario.Parse("every.yaml", []byte(every), scenario.Options{Seeds: []uint64{1}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Runs {
		r := &s.Runs[i]
		n, err := build(r, nil, extras{cores: 3, part: func(node int) int { return node }})
		if err != nil {
			t.Fatal(err)
		}
		f := vnet.Flow{Src: 0, Dst: 7, Bytes: 200_000}
		if err := n.StartFlow(0, &f); err != nil {
			t.Fatal(err)
		}
		if err := n.Engine.Run(100 * frame.Microsecond); err != nil {
			t.Fatal(err)
		}
		if s := n.Engine.Stats(); s.Windows < 50 || s.Ahead < s.Events/2 {
			t.Errorf("%s: %d of %d events in %d windows", r.Name, s.Ahead, s.Events, s.Windows)
		}
		if done := n.Counts().Finished; done != 1 {
			t.Errorf("%s: %d messages have ended", r.Name, done)
		}
	}
}
