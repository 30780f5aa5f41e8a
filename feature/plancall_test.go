package feature

import (
	"bytes"
	"reflect"
	"testing"
)

func somePlans() []*TakePlan {
	return []*TakePlan{
		{ClockPlan: ClockPlan{Epoch: 7, Stage: Take, Deputy: true, Parent: 3, Second: -1, Send: []int{0, 200}, Hops: 2, MostHops: 5}},
		{ClockPlan: ClockPlan{Epoch: 1<<32 - 1, Stage: Narrow, Root: true, Parent: -1, Second: 255, Hops: 255, MostHops: 255}},
		{ClockPlan: ClockPlan{}},
	}
}

func TestPlansAreEncoded(t *testing.T) {
	for _, c := range somePlans() {
		b := c.Encode([]byte{99})
		if back, err := DecodePlan(b[1:]); b[0] != 99 || err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%+v came back from %x as %+v, %v", c, b, back, err)
		}
	}
	// The form outlives the version: records that were made keep their meaning.
	if got := somePlans()[0].Encode(nil); !bytes.Equal(got, []byte{1, 7, 1, 2, 4, 0, 2, 5, 2, 0, 200, 1}) {
		t.Errorf("a plan is encoded as %d", got)
	}
	for _, bad := range []string{"", "\x02", "\x01\x07", "\x01\x07\x03\x00\x00\x00\x00\x00\x00", "\x01\x07\x00\x04\x00\x00\x00\x00\x00", "\x01\x07\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if c, err := DecodePlan([]byte(bad)); err == nil {
			t.Errorf("%x is taken for %+v", bad, c)
		}
	}
}

// What is no clock refuses a plan.
func TestPlanWithoutClock(t *testing.T) {
	c := somePlans()[0]
	if c.Do(0, t); c.Refused == nil {
		t.Error("it was taken")
	}
}

func FuzzDecodePlan(f *testing.F) {
	for _, c := range somePlans() {
		f.Add(c.Encode(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodePlan(b)
		if err != nil {
			return
		}
		if again, err := DecodePlan(c.Encode(nil)); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%x is %+v, which is encoded and comes back as %+v, %v", b, c, again, err)
		}
	})
}
