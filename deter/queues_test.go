package deter

import (
	"testing"
)

// filled is a queue to which packets come, of which some are dropped, and leave.
func filled(drop map[uint32]bool, packets ...uint32) Queue {
	var q Queue
	for i, p := range packets {
		q.Arrive(0, p, drop[p])
		if i%3 == 2 {
			q.Left++
		}
	}
	return q
}

// The comparison of queues counts what differs, by flow, and drops that are wrong.
func TestCompareQueues(t *testing.T) {
	of := make([]Packet, 20)
	for i := range of {
		of[i] = Packet{Flow: uint32(i % 2), Bytes: 1000}
	}
	run := [][]Queue{{filled(map[uint32]bool{4: true, 7: true}, 0, 1, 2, 3, 4, 5, 6, 7, 8), filled(nil, 9, 10)}}
	same := CompareQueues(of, run, run)
	if same.Mean != 0 || same.P99 != 0 || same.DropError() != 0 || same.Dropped != 2 || same.Arrivals != 11 {
		t.Errorf("a run and itself: %+v", same)
	}
	if flow, most, all := same.Builder(same.Run); flow != 0 || most != 2000 || all != 4000 || same.Longest != [2]int{0, 0} {
		t.Errorf("the longest queue %v: flow %d has %d of %d", same.Longest, flow, most, all)
	}
	// 4 is not dropped, 5 is, and 7 is by the other queue.
	other := [][]Queue{{filled(map[uint32]bool{5: true}, 0, 1, 2, 3, 4, 5, 6, 8), filled(map[uint32]bool{7: true}, 9, 10, 7)}}
	e := CompareQueues(of, run, other)
	if e.FalseAccept != 1 || e.FalseDrop != 1 || e.WrongPlace != 1 || e.Either != 3 || e.DropError() != 1 {
		t.Errorf("%+v", e)
	}
	// Up to packet 4 nothing differs; 5 meets 4, 6 meets 4 and not 5, 8 the same.
	if e.Arrivals != 10 || e.Mean != (1000+2000+2000)/10.0 || e.P99 != 2000 {
		t.Errorf("%d arrivals, mean %v, p99 %v", e.Arrivals, e.Mean, e.P99)
	}
}
