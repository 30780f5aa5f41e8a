package feature

import (
	"bytes"
	"testing"

	"gswitch/command/commandtest"
)

func somePlans() []Call {
	return []Call{
		&TakePlan{ClockPlan: ClockPlan{Epoch: 7, Stage: Take, Deputy: true, Parent: 3, Second: -1, Send: []int{0, 200}, Hops: 2, MostHops: 5}},
		&TakePlan{ClockPlan: ClockPlan{Epoch: 1<<32 - 1, Stage: Narrow, Root: true, Parent: -1, Second: 255, Hops: 255, MostHops: 255}},
		&TakePlan{ClockPlan: ClockPlan{}},
	}
}

func TestPlansAreEncoded(t *testing.T) {
	commandtest.Encoded(t, somePlans(), DecodePlan)
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
	if c.Do(0, t); Refusal(c) == nil {
		t.Error("it was taken")
	}
}

func FuzzDecodePlan(f *testing.F) { commandtest.Fuzz(f, somePlans(), DecodePlan) }
