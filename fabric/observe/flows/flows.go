// Package flows collects what switches count of flows (switch.flowradar), and does what
// a controller is to do about it.
package flows

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gswitch/fabric/flows"
	"gswitch/fabric/measure"
	"gswitch/fabric/observe"
	"gswitch/fabric/observe/controller"
	"gswitch/fabric/results"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	reports "gswitch/telemetry"
	"gswitch/telemetry/flowradar"
	tables "gswitch/telemetry/flowradar/point"
	"gswitch/vswitch"
)

func init() {
	observe.Register(&observe.System{
		Name:    tables.Name,
		On:      observe.Feature(tables.Name),
		Divided: "switch.flowradar: what switches count of flows is put together in one process: run it with --processes one",
		Values:  values,
		New: func(_ context.Context, r *observe.Run) (*observe.Observer, error) {
			var f *flowBook
			return &observe.Observer{
				Begin:  func(n *vnet.Network, _ *measure.Recorder) error { f = begin(n, r); return nil },
				Finish: func(_ *vnet.Network, out *results.Run) error { return f.finish(out) },
			}, nil
		},
	})
}

// flowBook is what is known of the flows of a run.
type flowBook struct {
	n       *vnet.Network
	book    *flows.Book
	control *controller.Controller
	err     error
}

// begin has what switches count brought to the book.
func begin(n *vnet.Network, r *observe.Run) *flowBook {
	f := &flowBook{n: n, control: controller.New(n, r.Doc.Controller)}
	var ids []uint16
	var shards []int
	var slot frame.Time
	for _, sw := range n.Switches {
		p := sw.Nodes[0].Feature(tables.Name).(*tables.Point)
		slot = p.Config().Slot
		ids, shards = append(ids, sw.Program().Config.ID), append(shards, len(sw.Nodes))
	}
	f.book = flows.New(n.Topology, ids, shards, slot/2, r.Dir != "")
	n.Engine.Every(slot/8, slot/8, f.take)
	return f
}

// take brings reports from the switches to the book, by the bytes that they would
// travel in.
func (f *flowBook) take(now frame.Time) {
	for sw := range f.n.Switches {
		err := f.n.Change(now, sw, vswitch.TakeReports{System: tables.Name, Taken: f.report})
		f.err = cmp.Or(f.err, err)
	}
	first := len(f.book.Findings())
	for i, x := range f.book.Advance(now) {
		if x.Kind == flowradar.Blackholed && f.control.Blackholes == "move" {
			f.control.Later(now, func(now frame.Time) { f.move(now, first+i) })
		}
	}
}

// report takes a report of a switch.
func (f *flowBook) report(_ int, _ string, body []byte) {
	r, err := flowradar.Parse(body)
	if err != nil {
		f.err = cmp.Or(f.err, err)
		return
	}
	f.book.Add(r)
}

// move sends what is for the destination of a blackholed flow by another of its
// ways: at the switch behind which it is lost, or the nearest before it that has
// several.
func (f *flowBook) move(now frame.Time, i int) {
	x := &f.book.Findings()[i].Finding
	if x.Flow.Rest&reports.HashedAddrs != 0 {
		return
	}
	for _, w := range f.book.Ways(x) {
		first, ok := f.control.Avoid(now, controller.HostRoute(x.Flow.Dst()), w)
		if first {
			f.book.Moved(i, now)
		}
		if ok {
			return // with it other flows to the same place
		}
	}
}

// finish takes what is still to come when the run is over, and writes what was found.
func (f *flowBook) finish(out *results.Run) error {
	now := f.n.Engine.Now()
	f.take(now)
	f.book.Flush(now)
	if f.err != nil {
		return f.err
	}
	put := func(name string, v float64) { out.Values[name] = v }
	share := func(name string, k, of float64) {
		if of > 0 {
			put(name, k/of)
		}
	}
	s := f.book.Sum()
	put("flow_slots_total", float64(s.Slots))
	put("flow_unknown_slots_total", float64(s.Unknown))
	put("flow_strange_reports_total", float64(f.book.Strange()))
	put("flow_slot_flows_max", float64(s.Most))
	share("flow_complete_slots_share", float64(s.Complete), float64(s.Slots))
	share("flow_exact_slots_share", float64(s.Counters), float64(s.Slots))
	share("flow_alone_share", float64(s.Alone), float64(s.Flows))
	share("flow_decoded_share", float64(s.Out), float64(s.Truth))
	share("flow_counters_share", float64(s.Right), float64(s.Truth))
	if s.Truth > 0 {
		put("flow_garbage_total", float64(s.Garbage))
	}
	var count [3]float64
	var lost, moved float64
	var delays [3][]float64
	for _, x := range f.book.Findings() {
		count[x.Kind]++
		times := 1
		if x.Kind == flowradar.Lost {
			lost += float64(x.Packets)
			times = int(x.Packets)
		}
		delays[x.Kind] = append(delays[x.Kind], slices.Repeat([]float64{(x.Seen - x.From).Seconds()}, times)...)
		if x.Moved > 0 {
			moved++
		}
	}
	put("flow_lost_total", lost)
	put("flow_blackholes_total", count[flowradar.Blackholed])
	put("flow_loops_total", count[flowradar.Looped])
	put("flow_moved_total", moved)
	for k, name := range []string{flowradar.Lost: "flow_loss_seen", flowradar.Blackholed: "flow_blackhole_seen", flowradar.Looped: "flow_loop_seen"} {
		slices.Sort(delays[k])
		results.Summarize(out.Values, name, "seconds", delays[k])
	}
	flows.Reported.Set(out, f.book.Report())
	rows, more := f.book.Rows()
	if len(rows) > 0 {
		flows.Slots.Set(out, rows)
	}
	if more > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("switch.flowradar: %d lines beyond the first %d are not in slots.csv", more, len(rows)))
	}
	return nil
}
