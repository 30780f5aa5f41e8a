package control

import (
	"strings"
	"testing"

	"gswitch/dataplane"
	"gswitch/feature"
)

// Captures have the time of the clocks of their ports: of each port its own, the machine's where
// there is none, or one without a time; and they say so.
func TestStampsOfCaptures(t *testing.T) {
	e, err := dataplane.New(dataplane.Config{Chunks: 64})
	if err != nil {
		t.Fatal(err)
	}
	with, unknown, without := new(dataplane.Port), new(dataplane.Port), new(dataplane.Port)
	s := Stamps{}
	s.Add(with, e.Worker(0), fixed{feature.Time{Time: 5000, Eps: 700, Root: 0xabc}})
	s.Add(unknown, e.Worker(0), fixed{feature.Time{Time: 9000, Eps: -1}})
	s.Add(without, e.Worker(0), nil)
	spec := dataplane.CaptureSpec{Ports: []*dataplane.Port{without, with, unknown}, Comment: "x"}
	s.use(&spec, e)
	epoch := e.Epoch().UnixNano()
	for i, want := range []int64{epoch, 5000, epoch} {
		if got := spec.Zero(uint32(i), 100); got != want {
			t.Errorf("port %d: time zero is %d, not %d", i, got, want)
		}
	}
	// Set back by 20 ns, stamps go on at half the speed.
	c := s[with]
	at := int64(1e18)
	before := at + spec.Zero(1, at)
	c.zero.Set(at, 4980)
	for _, k := range [][2]int64{{0, 0}, {20, 10}, {40, 20}, {50, 30}} {
		if got := at + k[0] + spec.Zero(1, at+k[0]); got != before+k[1] {
			t.Errorf("%d ns behind, %d ns by the clock, not %d", k[0], got-before, k[1])
		}
	}
	if !strings.Contains(spec.Comment, "root 0000000000000abc within 2.7µs") || !strings.Contains(spec.Comment, "have the machine's") {
		t.Errorf("it says %q", spec.Comment)
	}
	none := dataplane.CaptureSpec{Ports: []*dataplane.Port{without}, Comment: "x"}
	if s.use(&none, e); none.Zero != nil || none.Comment != "x" {
		t.Errorf("without a clock: %q", none.Comment)
	}
}
