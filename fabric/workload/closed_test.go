package workload

import (
	"strings"
	"testing"

	"gswitch/frame"
)

// Requests at a rate fall due by themselves, but none is sent before the one before it
// is answered; what comes late by that is made up for.
func TestRequestsAtARate(t *testing.T) {
	// Half of the time a request of each of the six that are open is under way:
	// waiting alone, without making up, would leave two thirds of the rate.
	c := RequestsConfig{From: hosts(0, 3), To: hosts(3, 5), Outstanding: 2, Request: Fixed(100), Persistent: true, Pairs: true, Rate: []float64{2e6, 2e6, 1e6},
		Start: frame.Millisecond, Stop: 11 * frame.Millisecond, Seed: 1}
	q, err := NewRequests(c)
	if err != nil {
		t.Fatal(err)
	}
	const answered = 1000 // ns; each of a client's four falls due every 2000 ns
	count, last := map[int32]float64{}, map[[3]int32]frame.Time{}
	for _, f := range drain(t, q, 1<<30, answered) {
		count[f.Src]++
		conn := [3]int32{f.Src, f.Dst, f.Conn}
		if at, ok := last[conn]; ok && f.At < at+answered {
			t.Fatalf("%+v while one of %d is open", f, at)
		}
		last[conn] = f.At
	}
	for h, want := range []float64{20_000, 20_000, 10_000} {
		if got := count[int32(h)]; got < 0.97*want || got > 1.03*want { // four standard deviations
			t.Errorf("client %d sent %.0f in 10 ms, want %.0f", h, got, want)
		}
	}
	if len(last) != 12 {
		t.Errorf("%d connections, want two of each pair", len(last))
	}
}

// A rate that the answers cannot keep up with is no other than none at all, but for
// the first requests.
func TestRequestsAtARateThatIsTooHigh(t *testing.T) {
	const answered = 10 * frame.Microsecond
	q, err := NewRequests(RequestsConfig{From: hosts(0, 1), To: hosts(1, 3), Outstanding: 1, Request: Fixed(100), Persistent: true, Rate: []float64{1e7},
		Stop: frame.Millisecond, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	all := drain(t, q, 1<<30, answered)
	late := 0
	for i := range all[1:] {
		if all[i+1].At > all[i].At+answered {
			late++
		}
	}
	if len(all) != 100 || late > 0 || all[0].At == 0 {
		t.Errorf("%d requests in 100 times that of an answer, %d not at once, the first at %d", len(all), late, all[0].At)
	}
}

func TestRequestsOfNoRateAreRefused(t *testing.T) {
	for rate, want := range map[float64]string{0: "makes no traffic", -1: "makes no traffic", 3.5e11: "more than one a nanosecond"} {
		_, err := NewRequests(RequestsConfig{From: hosts(0, 1), To: hosts(1, 3), Outstanding: 1, Request: Fixed(1), Rate: []float64{rate}, Stop: frame.Second})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v requests a second: %v", rate, err)
		}
	}
}
