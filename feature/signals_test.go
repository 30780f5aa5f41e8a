package feature

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSignals(t *testing.T) {
	for s, want := range map[Signals]string{0: "nothing", Losses: "losses", CNPs | EchoedMarks: "CNPs, or echoed marks", Quantized: "quantized feedback"} {
		if b, err := json.Marshal(s); err != nil || string(b) != `"`+want+`"` || s.String() != want {
			t.Errorf("%d is %s, %v, %v", s, b, s, err)
		} else if back := Signals(99); json.Unmarshal(b, &back) != nil || back != s {
			t.Errorf("%s came back as %d", b, back)
		}
	}
}

func TestUnknownSignal(t *testing.T) {
	var s Signals
	if err := json.Unmarshal([]byte(`"losses, or rumours"`), &s); err == nil || !strings.Contains(err.Error(), `"rumours" is no signal`) {
		t.Errorf("the error is %v", err)
	}
}

// Each kind that the last label distinguishes is summed up for itself, and the
// largest of a gauge counts.
func TestSum(t *testing.T) {
	sum := map[string]float64{}
	c := Counter{Name: "frames_total", Labels: []string{"queue", "kind"}, Values: []string{"in-time", "late"}}
	c.Sum(sum, 2, []string{"1", "in-time"})
	c.Sum(sum, 3, []string{"2", "in-time"})
	g := Counter{Name: "depth", Gauge: true}
	g.Sum(sum, 7, nil)
	g.Sum(sum, 5, nil)
	if len(sum) != 2 || sum["frames_in_time_total"] != 5 || sum["depth"] != 7 {
		t.Errorf("the sum is %v", sum)
	}
	if o := Options(nil).With("a", 1); o.With("b", 2)["a"] != 1 || len(o) != 1 {
		t.Errorf("%v changed, or lost something", o)
	}
}
