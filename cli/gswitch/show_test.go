package gswitch

import (
	"strings"
	"testing"

	"gswitch/control/api"
)

// Queues are listed that were used or have an order; what is not counted is a dash.
func TestPrintOrders(t *testing.T) {
	n := uint64(7)
	var b strings.Builder
	printOrders(&b, &api.Queues{Queues: []*api.Queue{
		{Switch: "s", Port: "p1", Queue: 0, Order: "fifo"},
		{Switch: "s", Port: "p1", Queue: 2, Order: "ranked", EnqueuedFrames: 90, DequeuedFrames: 80, PushedOut: 5, Inversions: &n, RankGapP99: 30, RankGapMax: 40},
		{Switch: "s", Port: "p1", Queue: 3, Order: "fifo", Admission: "codel(5ms, 100ms)", Shed: 4},
	}})
	var got []string
	for line := range strings.Lines(b.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"PORT QUEUE ORDER ADMISSION FRAMES SENT REFUSED SHED PUSHED OUT INVERSIONS GAP P99 GAP MAX",
		"p1 2 ranked - 0 80 0 0 5 7 30 40",
		"p1 3 fifo codel(5ms, 100ms) 0 0 0 4 0 - - -",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
